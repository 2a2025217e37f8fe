//! The bytes that a MySQL client sends: any bytes are packets, frames, commands and values, or
//! refused.

#![no_main]

use firn_wire::decoding::decode_as_everything;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| decode_as_everything(bytes));
