//! The ring under many orders of steps.

use firn_api::LogTail as _;
use firn_base::{PageId, PageNo, SpaceId};
use firn_fabric::{Epoch, InProcessFabric};
use firn_format::redo::GroupBuilder;
use shuttle::thread;

use crate::log::DURABLE_WORDS;

use super::*;

/// Groups that the owner stores. The ring holds less than three of them.
const GROUPS: u32 = 6;

fn group(tag: u32) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let page = PageId::new(SpaceId(tag), PageNo(0));
    builder.push(1, page, |body| body.resize(body.len() + 12, tag as u8));
    builder.finish().to_vec()
}

/// One thread stores groups and makes them durable, and one reads them. What is read are the groups
/// of the positions that were asked for.
fn read_while_log_is_stored(ignores_kept: bool) {
    let length = group(1).len();
    let fabric = InProcessFabric::new(Epoch(1));
    let durable = fabric.register(DURABLE_REGION, DURABLE_WORDS).expect("a region");
    durable.words()[0].store(Lsn::FIRST.0, Ordering::SeqCst);
    let owner = LogTail::register(&fabric, Lsn::FIRST, length * 2 + 8).expect("a region");
    let owner = owner.expect("it has bytes");
    let mut peer = RemoteLogTail::connect(&*fabric.peer()).expect("the owner lives");
    peer.ignores_kept = ignores_kept;
    let storing = thread::spawn(move || {
        let mut end = Lsn::FIRST;
        for tag in 1..=GROUPS {
            owner.store(end, &group(tag));
            end = end.advance(length as u64);
            durable.words()[0].store(end.0, Ordering::SeqCst);
        }
    });
    let (mut position, mut tag) = (Lsn::FIRST, 1);
    while tag <= GROUPS {
        match peer.read(position, length).expect("no group is torn") {
            TailRead::Piece(piece) => {
                let read: Vec<u32> = piece
                    .groups()
                    .map(|found| {
                        let record = found.group.records().next().expect("a record");
                        let record = record.expect("a whole record");
                        let space = record.page.space.0;
                        assert!(record.body.iter().all(|byte| u32::from(*byte) == space), "torn");
                        space
                    })
                    .collect();
                assert_eq!(read, [tag], "torn, or of another position");
                position = piece.to;
                tag += 1;
            }
            TailRead::Nothing => thread::yield_now(),
            // The log store has it.
            TailRead::Overwritten => {
                position = position.advance(length as u64);
                tag += 1;
            }
        }
    }
    storing.join().expect("no panic");
}

#[test]
fn what_is_read_is_whole_in_any_order() {
    shuttle::check_random(|| read_while_log_is_stored(false), 3_000);
    shuttle::check_pct(|| read_while_log_is_stored(false), 3_000, 3);
}

#[test]
// It is found as such, or as a group whose head is no head.
#[should_panic(expected = "torn")]
fn a_reader_that_ignores_what_was_overwritten_is_found() {
    shuttle::check_random(|| read_while_log_is_stored(true), 3_000);
}
