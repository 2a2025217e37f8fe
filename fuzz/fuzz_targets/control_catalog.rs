//! Arbitrary bytes as a proposal to the control group or as a catalog: refused, or read and written
//! back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| firn_control::check_any_bytes(bytes));
