//! Arbitrary bytes as a message to or from control, or as the file of a control node: refused, or
//! read and written back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| firn_control_service::message::check_any_bytes(bytes));
