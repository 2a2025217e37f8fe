use firn_api::LogTail as _;
use firn_base::{PageId, PageNo, SpaceId};
use firn_fabric::{Epoch, InProcessFabric};
use firn_format::redo::GroupBuilder;

use crate::log::DURABLE_WORDS;

use super::*;

/// Bytes of the ring.
const CAPACITY: usize = 512;

/// A ring whose log is durable up to a position, and what a peer sees of it.
struct Rings {
    owner: LogTail,
    durable: OwnedRegion,
    peer: RemoteLogTail,
    end: Lsn,
    /// The regions end with it.
    _fabric: InProcessFabric,
}

fn group(tag: u32, bytes: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let page = PageId::new(SpaceId(tag), PageNo(0));
    builder.push(1, page, |body| body.resize(body.len() + bytes, tag as u8));
    builder.finish().to_vec()
}

impl Rings {
    fn new(end: Lsn) -> Rings {
        let fabric = InProcessFabric::new(Epoch(1));
        let durable = fabric.register(DURABLE_REGION, DURABLE_WORDS).unwrap();
        durable.words()[0].store(end.0, Ordering::SeqCst);
        let owner = LogTail::register(&fabric, end, CAPACITY).unwrap().unwrap();
        let peer = RemoteLogTail::connect(&*fabric.peer()).unwrap();
        Rings { owner, durable, peer, end, _fabric: fabric }
    }

    /// Stores a group, and returns where it begins.
    fn store(&mut self, tag: u32, bytes: usize) -> Lsn {
        let (start, group) = (self.end, group(tag, bytes));
        self.owner.store(start, &group);
        self.end = start.advance(group.len() as u64);
        start
    }

    fn all_durable(&self) {
        self.durable.words()[0].store(self.end.0, Ordering::SeqCst);
    }

    /// The tags of the groups that are read from there on, and the position behind them.
    fn read(&self, from: Lsn, most_bytes: usize) -> (Vec<u32>, Lsn) {
        match self.peer.read(from, most_bytes).unwrap() {
            TailRead::Piece(piece) => {
                let tag = |group: firn_api::FollowedGroup<'_>| {
                    let record = group.group.records().next().unwrap().unwrap();
                    let tag = record.page.space.0;
                    assert!(record.body.iter().all(|byte| u32::from(*byte) == tag));
                    tag
                };
                assert_eq!(piece.from, from);
                (piece.groups().map(tag).collect(), piece.to)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn durable_groups_are_read_and_no_others() {
    let mut rings = Rings::new(Lsn::FIRST);
    let first = rings.store(1, 20);
    assert_eq!(rings.peer.read(first, 4096).unwrap(), TailRead::Nothing);
    rings.all_durable();
    let second = rings.store(2, 30);
    assert_eq!(rings.read(first, 4096), (vec![1], second));
    assert_eq!(rings.peer.read(second, 4096).unwrap(), TailRead::Nothing, "not durable");
    rings.all_durable();
    assert_eq!(rings.read(first, 4096), (vec![1, 2], rings.end));
    assert_eq!(rings.read(second, 4096), (vec![2], rings.end));
    assert_eq!(rings.peer.read(rings.end, 4096).unwrap(), TailRead::Nothing);
}

#[test]
fn a_read_has_at_least_one_group_and_whole_ones_alone() {
    let mut rings = Rings::new(Lsn::FIRST);
    let first = rings.store(1, 100);
    let second = rings.store(2, 60);
    rings.all_durable();
    assert_eq!(rings.read(first, 8), (vec![1], second));
    assert_eq!(rings.read(first, (second.0 - first.0) as usize + 32), (vec![1], second));
    assert_eq!(rings.read(second, 1), (vec![2], rings.end));
}

#[test]
fn log_in_whose_place_later_log_is_comes_from_elsewhere() {
    let mut rings = Rings::new(Lsn(4000));
    let before = Lsn(3992);
    let mut starts: Vec<Lsn> = Vec::new();
    for tag in 1..200 {
        starts.push(rings.store(tag, (tag as usize * 7) % 90));
        rings.all_durable();
        assert_eq!(rings.peer.read(before, 4096).unwrap(), TailRead::Overwritten);
        for start in &starts {
            let is_kept = rings.end.0 - start.0 <= CAPACITY as u64;
            match rings.peer.read(*start, 4096).unwrap() {
                TailRead::Piece(piece) => assert!(is_kept && piece.to == rings.end),
                TailRead::Overwritten => assert!(!is_kept, "{start} to {}", rings.end),
                TailRead::Nothing => panic!("{start} is durable"),
            }
        }
    }
}

#[test]
fn more_log_than_the_ring_holds_leaves_the_last_of_it() {
    let mut rings = Rings::new(Lsn(800));
    let groups: Vec<Vec<u8>> = (1..30).map(|tag| group(tag, 50)).collect();
    rings.owner.store(rings.end, &groups.concat());
    let length = groups[0].len() as u64;
    rings.end = rings.end.advance(length * 29);
    rings.all_durable();
    assert_eq!(rings.peer.read(Lsn(800), 4096).unwrap(), TailRead::Overwritten);
    let last = Lsn(rings.end.0 - length * 3);
    assert_eq!(rings.read(last, 4096), (vec![27, 28, 29], rings.end));
}

#[test]
fn an_owner_without_a_ring_is_known_by_the_error() {
    let fabric = InProcessFabric::new(Epoch(1));
    assert!(LogTail::register(&fabric, Lsn::FIRST, 0).unwrap().is_none());
    let refused = RemoteLogTail::connect(&*fabric.peer());
    assert!(matches!(refused, Err(FabricError::Unknown(_))));
}
