//! Arbitrary bytes as messages of the log service: refused, or read and written back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| firn_log_service::message::check_any_bytes(bytes));
