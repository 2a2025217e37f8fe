//! Arbitrary bytes as a link's messages: refused, or read and written back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    firn_link::hello::check_any_bytes(bytes);
    firn_link::item::check_any_bytes(bytes);
});
