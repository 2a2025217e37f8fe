//! Arbitrary bytes as messages of the page service: refused, or read and written back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| firn_page_service::message::check_any_bytes(bytes));
