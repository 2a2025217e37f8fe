//! Opening a log whose files a crash, a disk or a person has changed.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::fs;

use super::super::tests::{group, open, open_writer, place, read_all, small};
use super::super::{LocalLog, block::BlockHeader};
use super::*;
use firn_base::Environment;

/// The directory of a log whose synced part is `groups`, followed by `unsynced`.
struct Crashed {
    place: tempfile::TempDir,
    durable: Lsn,
    written: Lsn,
    bytes: Vec<u8>,
}

fn crashed(groups: &[Vec<u8>], unsynced: &[Vec<u8>]) -> Crashed {
    let place = place();
    let log = open(place.path()).unwrap();
    let mut bytes = Vec::new();
    for group in groups {
        log.append(log.end_lsn(), group).unwrap();
        bytes.extend_from_slice(group);
    }
    let durable = log.sync().unwrap();
    log.append(durable, &unsynced.concat()).unwrap();
    bytes.extend(unsynced.concat());
    let written = log.end_lsn();
    drop(log);
    Crashed { place, durable, written, bytes }
}

impl Crashed {
    fn segments(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(self.place.path().join("log")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().path()).collect();
        names.retain(|path| segment::parse_file_name(path).is_some());
        names.sort();
        names
    }

    /// File and offset of the block that holds `lsn`.
    fn locate(&self, lsn: Lsn) -> (PathBuf, usize) {
        let payload = u64::from(segment::blocks_in(small().segment_size_bytes)) * 488;
        let number = (lsn.0 - 8) / payload;
        let path = self.segments()[number as usize].clone();
        (path, 4096 + ((lsn.0 - 8) % payload / 488 * 512) as usize)
    }

    fn change_block(&self, lsn: Lsn, change: impl FnOnce(&mut [u8])) {
        let (path, offset) = self.locate(lsn);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes[offset..offset + 512]);
        fs::write(&path, bytes).unwrap();
    }

    fn block(&self, lsn: Lsn) -> Vec<u8> {
        let (path, offset) = self.locate(lsn);
        fs::read(path).unwrap()[offset..offset + 512].to_vec()
    }

    fn reopen(&self) -> Arc<LocalLog> {
        open(self.place.path()).unwrap()
    }

    fn refusal(&self) -> LogError {
        match open(self.place.path()).map(|log| log.end_lsn()) {
            Err(OpenError::Log(error @ LogError::Damaged { .. })) => error,
            other => panic!("damage was not refused: {other:?}"),
        }
    }

    /// The end of the last group that ends at or before `lsn`.
    fn boundary_before(&self, lsn: Lsn) -> Lsn {
        let mut end = Lsn::FIRST;
        for length in group_lengths(&self.bytes) {
            if end.advance(length) > lsn {
                break;
            }
            end = end.advance(length);
        }
        end
    }
}

fn group_lengths(mut bytes: &[u8]) -> Vec<u64> {
    let mut lengths = Vec::new();
    while !bytes.is_empty() {
        let length = group_length(bytes).unwrap();
        lengths.push(length);
        bytes = &bytes[length as usize..];
    }
    lengths
}

fn groups(count: u32, length: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| group(number, length + number as usize % 5 * 8)).collect()
}

/// The positions of the blocks from that of `from` to that of `to`.
fn block_starts(from: Lsn, to: Lsn) -> impl Iterator<Item = Lsn> {
    let first = from.0 - (from.0 - 8) % 488;
    (first..to.0).step_by(488).map(Lsn)
}

#[test]
fn a_tail_torn_at_any_sector_ends_with_the_last_whole_group() {
    let sample = || crashed(&groups(3, 300), &groups(20, 300));
    let (durable, written) = (sample().durable, sample().written);
    for lost in block_starts(durable, written).skip(1) {
        let crashed = sample();
        for lsn in block_starts(lost, written) {
            crashed.change_block(lsn, |block| block.fill(0));
        }
        let log = crashed.reopen();
        let end = log.end_lsn();
        assert_eq!(end, crashed.boundary_before(lost));
        assert!(end >= durable);
        assert_eq!(read_all(&log), crashed.bytes[..end.since(Lsn::FIRST) as usize]);
    }
}

#[test]
fn a_hole_in_the_unsynced_tail_is_no_damage() {
    let sample = || crashed(&groups(3, 300), &groups(20, 300));
    let (durable, written) = (sample().durable, sample().written);
    for lost in block_starts(durable, written).skip(1) {
        let crashed = sample();
        crashed.change_block(lost, |block| block[100] ^= 1);
        assert_eq!(crashed.reopen().end_lsn(), crashed.boundary_before(lost));
    }
}

#[test]
fn a_hole_in_the_durable_part_is_refused() {
    let mut all = groups(20, 300);
    let later = all.split_off(15);
    let sample = || crashed(&all, &later);
    let (durable, written) = (sample().durable, sample().written);
    assert!(written.since(durable) > 488, "a block behind is needed as a witness");
    for lost in block_starts(Lsn::FIRST, durable) {
        let crashed = sample();
        if lost.advance(488) > durable {
            continue;
        }
        crashed.change_block(lost, |block| block[100] ^= 1);
        let LogError::Damaged { at, what } = crashed.refusal() else { unreachable!() };
        let (path, place) = crashed.locate(lost);
        assert_eq!(at, segment::place(&path, place as u64), "{what}");
    }
}

#[test]
fn a_lost_write_in_the_durable_part_is_refused() {
    let crashed = crashed(&groups(10, 300), &groups(10, 300));
    // The block returns to an earlier valid version, which is shorter.
    crashed.change_block(Lsn(8 + 488), |block| {
        let header = BlockHeader {
            lsn: Lsn(8 + 488),
            length: 160,
            first_group: block::open(block).unwrap().header.first_group.filter(|at| *at < 160),
            incarnation: block::open(block).unwrap().header.incarnation,
            durable: Lsn(8),
        };
        block[24 + 160..].fill(0);
        block::seal(block, &header);
    });
    crashed.refusal();
}

#[test]
fn a_missing_file_is_refused() {
    let sample = || crashed(&groups(100, 300), &[]);
    let with_log = (sample().written.0 - 8) / (16 * 488) + 1;
    assert!(with_log > 3);
    for number in 1..with_log as usize {
        let crashed = sample();
        fs::remove_file(&crashed.segments()[number]).unwrap();
        let error = crashed.refusal();
        assert!(error.to_string().contains("missing"), "{error}");
    }
    let all_gone = sample();
    all_gone.segments().iter().for_each(|path| fs::remove_file(path).unwrap());
    all_gone.refusal();
    let newest_gone = sample();
    let names = newest_gone.segments();
    names[with_log as usize - 1..].iter().for_each(|path| fs::remove_file(path).unwrap());
    newest_gone.refusal();
}

#[test]
fn a_damaged_foreign_or_cut_header_is_refused() {
    let sample = || crashed(&groups(60, 300), &[]);
    // Files that contain log. How many segments are ahead depends on when the keeper was stopped.
    for number in 0..3 {
        let damaged = sample();
        let path = damaged.segments()[number].clone();
        let good = fs::read(&path).unwrap();
        let mut bytes = good.clone();
        bytes[33] ^= 1;
        fs::write(&path, &bytes).unwrap();
        damaged.refusal();
        // An index may already follow the payload. It works without its end.
        let blocks = segment::blocks_in(small().segment_size_bytes);
        let payload_end = segment::payload_end_offset(blocks) as usize;
        fs::write(&path, &good[..payload_end - 1]).unwrap();
        damaged.refusal();
        fs::copy(&sample().segments()[number], &path).unwrap();
        let error = damaged.refusal().to_string();
        assert!(error.contains("belongs to database"), "{error}");
    }
}

#[test]
fn the_unsynced_tail_of_an_earlier_life_is_not_taken_for_log() {
    // The first life leaves blocks after the end of its log, like a crash that loses a block in the
    // middle of the tail.
    let first_life = crashed(&groups(3, 300), &groups(20, 300));
    let lost = first_life.durable.advance(2 * 488);
    first_life.change_block(lost, |block| block.fill(0));
    let left: Vec<(Lsn, Vec<u8>)> = block_starts(lost.advance(488), first_life.written)
        .map(|lsn| (lsn, first_life.block(lsn)))
        .collect();
    // The second life writes the same groups again from its end on, so the positions match.
    let log = first_life.reopen();
    let end = log.end_lsn();
    let rest = &first_life.bytes[end.since(Lsn::FIRST) as usize..];
    let first_length = group_length(rest).unwrap() as usize;
    log.append(end, &rest[..first_length]).unwrap();
    let second_end = log.sync().unwrap();
    drop(log);
    for (lsn, bytes) in left {
        first_life.change_block(lsn, |block| {
            // Only blocks that the second life has not written.
            if lsn > second_end {
                block.copy_from_slice(&bytes);
            }
        });
    }
    assert_eq!(first_life.reopen().end_lsn(), second_end);
}

#[test]
fn a_block_that_only_a_lost_start_would_join_is_not_taken_for_log() {
    // The log ends inside a full block, whose rest is a group that was cut off. The next life
    // overwrites from there, and a crash keeps only its second block.
    let sample = crashed(&groups(2, 300), &[group(9, 2000)]);
    let last_block = block_starts(Lsn::FIRST, sample.written).last().unwrap();
    sample.change_block(last_block, |block| block.fill(0));
    let log = sample.reopen();
    assert_eq!(log.end_lsn(), sample.durable);
    let boundary = sample.block(sample.durable);
    log.append(sample.durable, &group(7, 1500)).unwrap();
    drop(log);
    sample.change_block(sample.durable, |block| block.copy_from_slice(&boundary));
    assert_eq!(sample.reopen().end_lsn(), sample.durable);
}

#[test]
fn each_opening_takes_a_new_incarnation() {
    let crashed = crashed(&groups(2, 300), &[]);
    let incarnation = || block::open(&crashed.block(crashed.durable)).unwrap().header.incarnation;
    let before = incarnation();
    drop(crashed.reopen());
    drop(crashed.reopen());
    assert_eq!(incarnation(), before + 2);
}

#[test]
fn a_first_start_that_did_not_get_to_its_end_is_done_again() {
    let crashed = crashed(&[], &[]);
    let format = crashed.place.path().join("FORMAT");
    let text = fs::read_to_string(&format).unwrap().replace("log created\n", "");
    fs::write(&format, text).unwrap();
    fs::write(crashed.place.path().join("log/7.new"), b"half a file").unwrap();
    assert_eq!(crashed.reopen().end_lsn(), Lsn::FIRST);
    assert!(!crashed.place.path().join("log/7.new").exists());
}

#[test]
fn segments_keep_their_size_when_the_option_changes() {
    let crashed = crashed(&groups(30, 300), &[]);
    let directory = LocalDirectory::open(&Environment::system(), crashed.place.path()).unwrap();
    let options = LogOptions { segment_size_bytes: 4096 + 40 * 512, ..small() };
    let log = open_writer(&directory, options).unwrap();
    log.append(log.end_lsn(), &groups(200, 300).concat()).unwrap();
    log.sync().unwrap();
    let expected = [crashed.bytes.clone(), groups(200, 300).concat()].concat();
    assert_eq!(read_all(&log), expected);
    drop((log, directory));
    assert_eq!(read_all(&crashed.reopen()), expected);
}
