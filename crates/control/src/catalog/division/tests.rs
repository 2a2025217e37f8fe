//! What is copied, cut and given up, step by step.

use super::*;
use crate::catalog::Applied;
use crate::catalog::tests::{acknowledge, create, example, founding, health};
use crate::node::Health;
use crate::order::{Action, orders};
use crate::planner::plan;
use crate::proposal::{FoundedChunk, Proposal};

/// Three nodes with a chunk of all pages, number 1, in service. Operation 4 is the next.
fn spread() -> Catalog {
    let mut catalog = example();
    catalog.chunks.clear();
    catalog.operations.retain(|_, one| !matches!(one.kind, OperationKind::CreateChunk { .. }));
    catalog.next_chunk = 1;
    catalog.apply(&create(EVERY_SPACE.0, 0, u32::MAX)).unwrap();
    let operation = catalog.next_operation - 1;
    (1..=3).for_each(|node| drop(catalog.apply(&acknowledge(operation, 1, node))));
    catalog.settings.chunk_pages = 8;
    catalog.chunks.get_mut(&ChunkId(1)).unwrap().bytes = (1 << 20) + 1;
    catalog
}

fn divide(catalog: &Catalog) -> Proposal {
    let epoch = catalog.chunks[&ChunkId(1)].epoch;
    Proposal::Divide { chunk: ChunkId(1), epoch, reason: Reason::Asked }
}

/// A division under way, and its operation.
fn divided() -> (Catalog, u64) {
    let mut catalog = spread();
    let Ok(Applied::Operation(operation)) = catalog.apply(&divide(&catalog)) else {
        panic!("it begins");
    };
    (catalog, operation.0)
}

fn places(catalog: &Catalog, chunk: u64) -> (u32, u32) {
    let chunk = &catalog.chunks[&ChunkId(chunk)];
    (chunk.first.0, chunk.end.0)
}

/// The nodes that are told to copy a part, which has these places.
fn ordered(catalog: &Catalog) -> Vec<(u64, u32)> {
    let of_order = |order: crate::Order| match order.action {
        Action::CopyPart { of: ChunkId(1), chunk: ChunkId(2), range, .. } => {
            Some((order.node.0, range.first.0))
        }
        _ => None,
    };
    orders(catalog).into_iter().filter_map(of_order).collect()
}

const HALF: u32 = u32::MAX / 2;

#[test]
fn a_chunk_is_cut_once_all_of_its_nodes_have_the_upper_part() {
    let (mut catalog, operation) = divided();
    assert_eq!(ordered(&catalog), [(1, HALF), (2, HALF), (3, HALF)]);
    for node in [2, 3, 3, 7] {
        catalog.apply(&acknowledge(operation, 1, node)).unwrap();
        assert_eq!((catalog.chunks.len(), catalog.check()), (1, None));
        assert_eq!(places(&catalog, 1), (0, u32::MAX), "it serves all of its places");
    }
    assert_eq!(ordered(&catalog), [(1, HALF)]);
    let epoch = catalog.chunks[&ChunkId(1)].epoch;
    catalog.apply(&acknowledge(operation, 1, 1)).unwrap();
    assert_eq!((places(&catalog, 1), places(&catalog, 2)), ((0, HALF), (HALF, u32::MAX)));
    let (lower, upper) = (&catalog.chunks[&ChunkId(1)], &catalog.chunks[&ChunkId(2)]);
    assert_eq!(lower.epoch, epoch.next());
    assert_eq!((lower.bytes, upper.bytes), ((1 << 19) + 1, 1 << 19));
    assert_eq!(upper.nodes_in(ReplicaState::InService).map(|node| node.0).sum::<u64>(), 6);
    assert!(lower.operation.is_none() && upper.operation.is_none());
    assert_eq!(catalog.ended.last().unwrap().outcome, Outcome::Done);
    assert_eq!((ordered(&catalog), catalog.check()), (Vec::new(), None));
}

#[test]
fn a_division_is_given_up_when_a_node_dies_or_loses_the_chunk() {
    let lost = |catalog: &Catalog| {
        let epoch = catalog.chunks[&ChunkId(1)].epoch;
        Proposal::Lost { chunk: ChunkId(1), node: NodeId(2), epoch }
    };
    let (begun, operation) = divided();
    let cancel = Proposal::Cancel { operation: OperationId(operation) };
    let (down, lost) = (health(2, Health::Down), lost(&begun));
    for (what, outcome) in
        [(down, Outcome::Failed), (lost, Outcome::Failed), (cancel, Outcome::Cancelled)]
    {
        for ready in [&[][..], &[2], &[1, 3]] {
            let mut catalog = begun.clone();
            for node in ready {
                catalog.apply(&acknowledge(operation, 1, *node)).unwrap();
            }
            catalog.apply(&what).unwrap();
            assert_eq!(catalog.ended.last().unwrap().outcome, outcome, "{what:?} {ready:?}");
            assert_eq!((catalog.chunks.len(), places(&catalog, 1)), (1, (0, u32::MAX)));
            assert!(catalog.was_chunk(ChunkId(2)), "what nodes have of it is deleted");
            // An acknowledgement that comes late changes nothing.
            catalog.apply(&acknowledge(operation, 1, 1)).unwrap();
            assert_eq!((catalog.chunks.len(), catalog.check()), (1, None));
        }
    }
    assert!(!begun.was_chunk(ChunkId(2)), "before, it is kept");
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let refused = |catalog: &Catalog| catalog.clone().apply(&divide(catalog)).unwrap_err();
    let (begun, operation) = divided();
    assert_eq!(refused(&begun), Refusal::Busy(OperationId(operation)));
    let mut catalog = spread();
    catalog.chunks.get_mut(&ChunkId(1)).unwrap().end = PageNo(1);
    assert_eq!(refused(&catalog), Refusal::TooNarrow(ChunkId(1)));
    let mut catalog = spread();
    catalog.apply(&health(3, Health::Down)).unwrap();
    assert!(matches!(refused(&catalog), Refusal::NotReady { .. }));
    let late = Proposal::Divide { chunk: ChunkId(1), epoch: Epoch(1), reason: Reason::Growth };
    assert!(matches!(spread().apply(&late), Err(Refusal::OldEpoch { .. })));
    let of_a_space = Proposal::Divide { chunk: ChunkId(1), epoch: Epoch(1), reason: Reason::Asked };
    assert_eq!(example().apply(&of_a_space), Err(Refusal::Busy(OperationId(3))));
}

#[test]
fn there_are_not_more_than_so_many_chunks() {
    let mut catalog = spread();
    let known = catalog.chunks.remove(&ChunkId(1)).unwrap();
    for number in 1..=MOST_CHUNKS as u64 {
        let (first, end) = (PageNo(number as u32 * 8), PageNo(number as u32 * 8 + 8));
        let bytes = catalog.split_above + 1;
        catalog.chunks.insert(ChunkId(number), Chunk { first, end, bytes, ..known.clone() });
        catalog.next_chunk = number + 1;
    }
    let epoch = known.epoch;
    let divide = |chunk| Proposal::Divide { chunk, epoch, reason: Reason::Asked };
    assert_eq!(catalog.apply(&divide(ChunkId(9))), Err(Refusal::TooManyChunks));
    assert_eq!(plan(&catalog), Vec::new());
    catalog.chunks.remove(&ChunkId(1));
    assert!(plan(&catalog).len() == 1, "{:?}", plan(&catalog));
    assert!(catalog.apply(&divide(ChunkId(9))).is_ok());
    assert_eq!(
        catalog.apply(&divide(ChunkId(5))),
        Err(Refusal::TooManyChunks),
        "one is being made"
    );
}

#[test]
fn chunks_that_have_grown_are_cut() {
    let mut catalog = spread();
    assert_eq!(plan(&catalog), Vec::new());
    let above = |bytes| Proposal::SplitAbove { bytes };
    assert!(catalog.apply(&above((1 << 19) - 1)).is_err(), "four extents have more");
    catalog.apply(&above(1 << 20)).unwrap();
    let planned = plan(&catalog);
    assert!(matches!(*planned, [Proposal::Divide { reason: Reason::Growth, .. }]), "{planned:?}");
    catalog.apply(&planned[0]).unwrap();
    assert_eq!(plan(&catalog), Vec::new(), "it is under way");
    // As long as a copy is missing, nothing is cut.
    let mut catalog = spread();
    catalog.apply(&above(1 << 20)).unwrap();
    catalog.apply(&health(3, Health::Suspected)).unwrap();
    assert_eq!(plan(&catalog), Vec::new());
}

#[test]
fn pages_of_one_chunk_lie_together_from_its_first_cut_on() {
    let mut catalog = spread();
    catalog.settings.chunk_pages = ALL_TOGETHER;
    catalog.apply(&divide(&catalog)).unwrap();
    assert_eq!(catalog.extents(), Extents::DEFAULT);
    let mut other = spread();
    other.settings.chunk_pages = 8;
    other.apply(&divide(&other)).unwrap();
    assert_eq!(other.extents().pages, 8);
}

#[test]
fn founded_chunks_may_have_numbers() {
    let one = founding().chunks[0].clone();
    let part = |first, end| FoundedChunk { first: PageNo(first), end: PageNo(end), ..one.clone() };
    let founding = || {
        let chunks = vec![part(0, 4), part(8, u32::MAX), part(4, 8)];
        crate::Founding { chunks, ..founding() }
    };
    let found = |numbers: &[u64]| {
        let mut catalog = Catalog::new(crate::ClusterId(7), crate::Settings::default()).unwrap();
        let chunks = numbers.iter().copied().map(ChunkId).collect();
        catalog.apply(&Proposal::FoundNumbered { founding: founding(), chunks }).map(|_| catalog)
    };
    let catalog = found(&[1, 3, 9]).unwrap();
    assert_eq!((places(&catalog, 9), catalog.next_chunk), ((4, 8), 10));
    assert!(catalog.was_chunk(ChunkId(2)) && catalog.check().is_none());
    for numbers in [&[1, 3][..], &[1, 3, 3], &[3, 1, 4], &[0, 1, 2], &[1, 2, u64::MAX]] {
        assert!(matches!(found(numbers), Err(Refusal::Malformed { .. })), "{numbers:?}");
    }
}
