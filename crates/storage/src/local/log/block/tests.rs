//! The bytes of a block, and which bytes are not a block.

use expect_test::expect;
use firn_base::Lsn;

use super::*;

fn hex(bytes: &[u8]) -> String {
    let rows = bytes.chunks(8).map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect());
    rows.collect::<Vec<String>>().join("\n")
}

fn sample() -> ([u8; BLOCK_BYTES], BlockHeader) {
    let header = BlockHeader {
        lsn: Lsn(0x1_0000_03d8),
        length: 16,
        first_group: Some(8),
        incarnation: 7,
        durable: Lsn(0x1_0000_0300),
    };
    let mut bytes = [0; BLOCK_BYTES];
    bytes[24..40].copy_from_slice(b"sixteen bytes ..");
    seal(&mut bytes, &header);
    (bytes, header)
}

#[test]
fn a_block_is_laid_out_as_drawn() {
    let (bytes, _) = sample();
    // checksum, length, first group | LSN | incarnation, distance to the durable position | data
    expect![[r#"
        d374e60110000800
        d803000001000000
        07000000e8000000
        7369787465656e20
        6279746573202e2e
        0000000000000000"#]]
    .assert_eq(&hex(&bytes[..48]));
    assert!(bytes[40..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_block_tells_what_was_put_in() {
    let (bytes, header) = sample();
    let block = open(&bytes).unwrap();
    assert_eq!(block.header, header);
    assert_eq!(block.data, b"sixteen bytes ..");
}

#[test]
fn a_distance_that_does_not_fit_says_nothing() {
    let (mut bytes, mut header) = sample();
    header.durable = Lsn(8);
    seal(&mut bytes, &header);
    assert_eq!(open(&bytes).unwrap().header.durable, Lsn(0));
}

#[test]
fn every_flipped_bit_is_found() {
    let (bytes, _) = sample();
    for bit in 0..BLOCK_BYTES * 8 {
        let mut bytes = bytes;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn zeros_are_no_block() {
    assert!(open(&[0; BLOCK_BYTES]).is_err());
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(mut bytes in proptest::collection::vec(0u8.., BLOCK_BYTES)) {
        let _ = open(&bytes);
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[0..4].copy_from_slice(&checksum.to_le_bytes());
        let _ = open(&bytes);
    }
}
