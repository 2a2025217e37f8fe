//! Frames between processes: any bytes are a header or refused; a valid one is written back
//! unchanged.

#![no_main]

use firn_base::network::frame::{FrameHeader, HEADER_BYTES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return };
    if let Ok(decoded) = FrameHeader::decode(header) {
        assert_eq!(decoded.encode(), *header);
        if decoded.check(payload).is_ok() {
            assert_eq!(FrameHeader::of(&[payload]), Some(decoded));
        }
    }
});
