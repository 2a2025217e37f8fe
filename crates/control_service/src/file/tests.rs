//! The bytes of the file, and what becomes of torn and damaged ones.

use std::sync::atomic::{AtomicU64, Ordering};

use expect_test::expect;
use firn_base::disk::SECTOR_BYTES;
use firn_base::event::Event;
use firn_base::{Environment, Lsn};
use firn_consensus::{Base, Content, Entry, Index, MemberId, Members, Role, Term};
use firn_control::{Catalog, ClusterId, Settings};
use firn_testing::simulation::for_each_seed;

use super::frame::{Frame, FrameKind};
use super::*;

fn members() -> Members {
    Members::new([1, 2, 3].map(|id| (MemberId(id), Role::Voter))).unwrap()
}

fn founding() -> Whole {
    Whole::founding(members(), &Catalog::new(ClusterId(7), Settings::default()).unwrap())
}

fn entry(index: u64, term: u64, start: u64, bytes: &[u8]) -> StoredEntry {
    let content = match bytes {
        [] => Content::Mark,
        bytes => Content::Log { bytes: bytes.len() as u64, checksum: crc32c::crc32c(bytes) },
    };
    let (index, term, start) = (Index(index), Term(term), Lsn(start));
    StoredEntry { entry: Entry { index, term, start, content }, bytes: bytes.to_vec() }
}

fn write(term: u64, append: Vec<StoredEntry>) -> StoredWrite {
    StoredWrite { vote: Some((Term(term), 2)), truncate: None, append, durable: Index(1) }
}

fn hex(bytes: &[u8]) -> String {
    let rows = bytes
        .chunks(16)
        .map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn frames_add_up() {
    let mut bytes = Frame::of(FrameKind::Whole, 1, &founding());
    let first = write(2, vec![entry(2, 2, 8, b"abc"), entry(3, 2, 11, b"d"), entry(4, 2, 12, b"")]);
    bytes.extend_from_slice(&Frame::of(FrameKind::Writes, 2, &vec![first]));
    let (truncate, append) = (Some(Index(3)), vec![entry(3, 5, 11, b"other")]);
    let second = StoredWrite { vote: None, truncate, append, durable: Index(2) };
    bytes.extend_from_slice(&Frame::of(FrameKind::Writes, 3, &vec![write(5, Vec::new()), second]));
    let entries = vec![entry(2, 2, 8, b"abc"), entry(3, 5, 11, b"other")];
    let whole = Whole { vote: (Term(5), 2), durable: Index(2), entries, ..founding() };
    assert_eq!(Whole::of_frames(&bytes), Ok(whole.clone()));
    // A frame that is out of place was not written by a control node.
    bytes.extend_from_slice(&Frame::of(FrameKind::Writes, 3, &vec![write(6, Vec::new())]));
    assert!(Whole::of_frames(&bytes).unwrap_err().contains("frame 4"));
    let mut changed = whole;
    changed.entries[1].bytes = b"wrong".to_vec();
    let error = Whole::of_frames(&Frame::of(FrameKind::Whole, 1, &changed)).unwrap_err();
    assert!(error.contains("entry 3 does not match"), "{error}");
}

/// The bytes of a frame before its padding.
fn dump(frame: &[u8]) -> String {
    let end = frame.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    assert_eq!(frame.len() % SECTOR_BYTES, 0);
    hex(&frame[..end])
}

#[test]
fn frames_have_these_bytes() {
    let whole = Whole {
        vote: (Term(2), 3),
        base: Base::founding(Term(1), Lsn::FIRST, members()),
        durable: Index(1),
        catalog: vec![0xca, 0xca],
        entries: vec![entry(2, 2, 8, b"abc")],
    };
    expect![[r#"
        46 6e 43 74 01 00 01 00 01 00 00 00 00 00 00 00
        20 00 00 00 4b 39 cf 05 02 03 01 01 08 03 01 00
        02 00 03 00 00 01 02 ca ca 01 02 02 08 01 03 b7
        ff ac b2 03 03 61 62 63"#]]
    .assert_eq(&dump(&Frame::of(FrameKind::Whole, 1, &whole)));
    let writes = vec![
        write(3, Vec::new()),
        StoredWrite {
            vote: None,
            truncate: Some(Index(2)),
            append: vec![entry(2, 3, 8, b""), entry(3, 3, 8, b"xyz")],
            durable: Index(2),
        },
    ];
    let frame = Frame::of(FrameKind::Writes, 2, &writes);
    expect![[r#"
        46 6e 43 74 01 00 02 00 02 00 00 00 00 00 00 00
        1f 00 00 00 b0 db 07 2a 02 01 03 02 00 00 01 00
        01 02 02 02 03 08 00 00 03 03 08 01 03 85 d1 8d
        a9 02 03 78 79 7a 02"#]]
    .assert_eq(&dump(&frame));
    assert_eq!(written_writes(&frame), Some(writes));
}

fn open(
    environment: &Environment,
    founding: Option<Whole>,
) -> Result<(MemberFile, Whole), FileError> {
    MemberFile::open(&environment.disk, Path::new("/control"), founding)
}

#[test]
fn what_was_synced_is_read_again_and_what_was_not_is_cut_off() {
    for_each_seed(0..40, |world| {
        let disk = world.new_disk();
        let process = world.start("one", &disk);
        let synced = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&synced);
        let task = process.spawn("write", move |environment| {
            let (mut file, whole) = open(environment, Some(founding())).unwrap();
            assert_eq!(whole, founding());
            let (long, longer) = ([7; 2000], [8; 3000]);
            let entries =
                [entry(2, 1, 8, &long), entry(3, 2, 2008, b"abc"), entry(4, 3, 2011, &longer)];
            for entry in entries {
                let term = entry.entry.term.0;
                file.append(&[write(term, vec![entry])]).unwrap();
                count.store(term, Ordering::SeqCst);
            }
            file.append(&[write(4, Vec::new())]).unwrap();
            count.store(4, Ordering::SeqCst);
            Event::new().wait_until(None, || false);
        });
        let random = world.random();
        process.wait_for_switches(random.below(30));
        process.crash();
        assert!(task.join().is_err());
        let process = world.start("one", &disk);
        let opened =
            process.run(|environment| open(environment, Some(founding())).map(|one| one.1));
        let whole = opened.unwrap().unwrap();
        let terms: Vec<u64> = whole.entries.iter().map(|one| one.entry.term.0).collect();
        assert!([1, 2, 3].starts_with(&terms), "{terms:?}");
        let synced = synced.load(Ordering::SeqCst);
        assert!(terms.len() as u64 >= synced.min(3) && whole.vote.0.0 >= synced);
        // It goes on behind what was read.
        let last = whole.entries.len() as u64 + 2;
        let more = process.run(move |environment| {
            let (mut file, again) = open(environment, None).unwrap();
            assert_eq!(again, whole);
            let start = again.entries.last().map_or(8, |one| one.entry.end().0);
            file.append(&[write(9, vec![entry(last, 9, start, b"new")])]).unwrap();
            drop(file);
            open(environment, None).unwrap().1
        });
        assert_eq!(more.unwrap().entries.last().unwrap().bytes, b"new");
    });
}

#[test]
fn a_synced_frame_that_is_damaged_is_noticed() {
    for_each_seed(0..10, |world| {
        let disk = world.new_disk();
        let process = world.start("one", &disk);
        let written = process.run(|environment| {
            let (mut file, _) = open(environment, Some(founding())).unwrap();
            let whole_bytes = file.whole_bytes;
            file.append(&[write(1, vec![entry(2, 1, 8, b"abc")])]).unwrap();
            file.append(&[write(2, Vec::new())]).unwrap();
            whole_bytes
        });
        let random = world.random();
        let first = written.unwrap();
        // The first frame, or the second, whose loss the third betrays.
        let at = if random.chance(0.5) { random.below(60) } else { first + random.below(40) };
        assert!(disk.flip_bit(Path::new("/control/control.group"), at, random.below(8) as u8));
        let opened = process.run(|environment| open(environment, None).map(|_| ()));
        let error = opened.unwrap().unwrap_err();
        assert!(matches!(error, FileError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("Restore it"), "{error}");
    });
}

#[test]
fn one_process_at_a_time_and_no_member_is_founded_by_mistake() {
    for_each_seed(0..3, |world| {
        let disk = world.new_disk();
        let process = world.start("one", &disk);
        process
            .run(|environment| {
                let missing = open(environment, None).map(|_| ()).unwrap_err();
                assert!(matches!(missing, FileError::Missing { .. }), "{missing}");
                let (_file, _) = open(environment, Some(founding())).unwrap();
                let second = open(environment, None).map(|_| ()).unwrap_err();
                assert!(matches!(second, FileError::Locked { .. }), "{second}");
            })
            .unwrap();
    });
}

#[test]
fn a_file_of_a_newer_release_is_refused() {
    let mut frame = Frame::of(FrameKind::Whole, 1, &founding());
    frame[4] = 2;
    let length = u32::from_le_bytes(frame[16..20].try_into().unwrap()) as usize;
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&frame[..20]), &frame[24..24 + length]);
    frame[20..24].copy_from_slice(&checksum.to_le_bytes());
    let error = Whole::of_frames(&frame).unwrap_err();
    assert!(error.contains("version 2"), "{error}");
}
