use proptest::prelude::*;

use super::{Malformed, PayloadReader, PayloadWriter};

proptest! {
    #[test]
    fn a_length_encoded_integer_is_read_as_it_was_written(value: u64, width in 0u32..64) {
        let value = value >> width;
        let mut payload = Vec::new();
        payload.put_length_encoded_integer(value);
        let mut reader = PayloadReader::new(&payload);
        prop_assert_eq!(reader.length_encoded_integer(), Ok(value));
        prop_assert!(reader.is_empty());
    }

    #[test]
    fn any_bytes_are_fields_or_refused(payload: Vec<u8>, choices: Vec<u8>) {
        let mut reader = PayloadReader::new(&payload);
        for choice in choices {
            let _ = match choice % 6 {
                0 => reader.u8().map(drop),
                1 => reader.u24().map(drop),
                2 => reader.length_encoded_integer().map(drop),
                3 => reader.length_encoded_bytes().map(drop),
                4 => reader.zero_terminated().map(drop),
                _ => reader.take(usize::from(choice)).map(drop),
            };
        }
    }
}

#[test]
fn a_length_that_no_payload_can_have_is_refused() {
    let mut reader = PayloadReader::new(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    assert_eq!(reader.length_encoded_bytes(), Err(Malformed));
    assert_eq!(PayloadReader::new(&[0xfb]).length_encoded_integer(), Err(Malformed));
    assert_eq!(PayloadReader::new(&[0xff]).length_encoded_integer(), Err(Malformed));
}

#[test]
fn a_string_without_its_zero_is_refused_or_the_rest() {
    assert_eq!(PayloadReader::new(b"ab").zero_terminated(), Err(Malformed));
    assert_eq!(PayloadReader::new(b"ab").zero_terminated_or_rest(), b"ab");
    assert_eq!(PayloadReader::new(b"ab\0c").zero_terminated_or_rest(), b"ab");
}
