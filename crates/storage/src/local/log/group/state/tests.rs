//! The bytes of a member's state, and which of the two slots counts.

use expect_test::expect;
use firn_base::disk::SystemDisk;
use firn_consensus::Role;

use super::*;

fn sample() -> GroupState {
    let member = |id, role| (MemberId(id), role);
    let before = [member(1, Role::Voter), member(2, Role::Voter)];
    let members = [member(1, Role::Voter), member(2, Role::Learner), member(3, Role::Logger)];
    GroupState {
        stream: LogStreamId(3),
        database: DatabaseId(*b"database's bytes"),
        incarnation: 5,
        vote: Vote { term: Term(9), member: Some(MemberId(2)) },
        base: Base {
            index: Index(0x100),
            term: Term(7),
            lsn: Lsn(0x2000),
            members: Members::new(members).unwrap(),
            before: Some(Members::new(before).unwrap()),
        },
        base_incarnation: 4,
        end: (Index(0x120), Lsn(0x3000)),
        durable: Index(0x110),
        is_restarting: false,
        watermarks: Watermarks { trx_id_limit: TrxId(0x1234), cts_limit: Cts(0x5678) },
    }
}

#[test]
fn a_slot_is_laid_out_as_drawn() {
    let bytes = sample().encode(6).unwrap();
    let rows = bytes[..216].chunks(16);
    let rows = rows.map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    // magic, version, stream, incarnation | database | sequence, vote | member, durable
    // base | LSN, incarnation, counts | end | restarting, watermarks, members, members before
    expect![[r#"
        4649524e475250000100030005000000
        64617461626173652773206279746573
        06000000000000000900000000000000
        02000000000000001001000000000000
        00010000000000000700000000000000
        00200000000000000400000003000200
        20010000000000000030000000000000
        00000000000000003412000000000000
        78560000000000000100000000000000
        01000000000000000200000000000000
        03000000000000000300000000000000
        02000000000000000100000000000000
        01000000000000000200000000000000
        0100000000000000"#]]
    .assert_eq(&rows.collect::<Vec<_>>().join("\n"));
    assert!(bytes[216..CHECKSUM_OFFSET].iter().all(|byte| *byte == 0));
    expect!["[97, 68, 4e, 0d]"].assert_eq(&format!("{:02x?}", &bytes[CHECKSUM_OFFSET..]));
}

#[test]
fn a_slot_tells_what_was_put_in() {
    let joining = GroupState {
        vote: Vote::default(),
        base: Base::joining(),
        is_restarting: true,
        ..sample()
    };
    for state in [sample(), joining] {
        assert_eq!(GroupState::decode(&state.encode(6).unwrap()), Ok(Some((6, state))));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let whole = sample().encode(6).unwrap();
    for bit in (0..SLOT_BYTES * 8).filter(|bit| bit % 64 == 3 || *bit < 2048) {
        let mut bytes = whole;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(GroupState::decode(&bytes), Ok(None), "bit {bit}");
    }
}

#[test]
fn another_version_is_refused_by_name() {
    let mut bytes = sample().encode(6).unwrap();
    bytes[8] = 2;
    let checksum = crc32c::crc32c(&bytes[..CHECKSUM_OFFSET]);
    bytes[CHECKSUM_OFFSET..].copy_from_slice(&checksum.to_le_bytes());
    let error = GroupState::decode(&bytes).unwrap_err();
    assert!(error.contains("version 2") && error.contains("reads 1"), "{error}");
}

#[test]
fn a_torn_slot_leaves_the_one_before() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(GROUP_FILE);
    let mut file = StateFile::create(&SystemDisk, place.path(), sample()).unwrap();
    for durable in 0x111..0x115 {
        let before = file.state().clone();
        file.write(GroupState { durable: Index(durable), ..sample() }).unwrap();
        let newest = StateFile::open(&SystemDisk, &path).unwrap().unwrap();
        assert_eq!(newest.state().durable, Index(durable));
        let slot = file.sequence % 2 * SLOT_BYTES as u64;
        let mut bytes = [0; 8];
        file.file.read_at(&mut bytes, slot + 40).unwrap();
        file.file.write_at(&[0xff; 8], slot + 40).unwrap();
        let torn = StateFile::open(&SystemDisk, &path).unwrap().unwrap();
        assert_eq!(torn.state(), &before);
        file.file.write_at(&bytes, slot + 40).unwrap();
    }
    file.file.write_at(&[0xff; 2 * SLOT_BYTES], 0).unwrap();
    assert!(StateFile::open(&SystemDisk, &path).unwrap().is_err());
}
