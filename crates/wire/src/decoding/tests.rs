use proptest::prelude::*;

use super::decode_as_everything;

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes: Vec<u8>) {
        decode_as_everything(&bytes);
    }

    #[test]
    fn bytes_that_begin_like_a_packet_are_too(rest: Vec<u8>, code: u8) {
        let mut packet = (rest.len() as u32 + 1).to_le_bytes().to_vec();
        packet.push(code);
        packet.extend(rest);
        decode_as_everything(&packet);
        decode_as_everything(&packet[4..]);
    }
}
