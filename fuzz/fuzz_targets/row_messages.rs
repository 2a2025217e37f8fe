//! Arbitrary bytes as a row message or a reply: refused, or read and written back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| firn_row_service::message::check_any_bytes(bytes));
