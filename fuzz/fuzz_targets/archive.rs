//! Arbitrary bytes as each kind of object of an archive: refused, or read and written back
//! unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| firn_archive::format::check_any_bytes(bytes));
