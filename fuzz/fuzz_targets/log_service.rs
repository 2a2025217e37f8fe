//! Arbitrary bytes as messages of the log service or as its list of readers: refused, or read and
//! written back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    firn_log_service::message::check_any_bytes(bytes);
    firn_log_service::server::check_any_bytes(bytes);
});
