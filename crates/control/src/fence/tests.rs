//! Which orders a node carries out.

use super::*;
use crate::identifiers::{NodeId, OperationId};
use crate::order::{OrderNumber, retire_stray};

fn retire(epoch: u64) -> Order {
    retire_stray(NodeId(1), ChunkId(7), Epoch(epoch))
}

fn set_members(epoch: u64) -> Order {
    let number = OrderNumber { operation: OperationId(1), step: 1, part: 0 };
    let (group, term, members) = (GroupId(3), Term(1), BTreeMap::new());
    let action = Action::SetMembers { group, term, epoch: Epoch(epoch), members };
    Order { number, node: NodeId(1), action }
}

#[test]
fn an_order_of_an_older_epoch_is_forgotten() {
    let mut fence = Fence::default();
    assert!(fence.admits(Term(1), &retire(5)));
    assert!(fence.admits(Term(1), &retire(5)), "it is repeated");
    assert!(!fence.admits(Term(1), &retire(4)));
    assert!(fence.admits(Term(1), &set_members(4)), "another subject");
    assert!(!fence.admits(Term(1), &set_members(3)));
    assert!(fence.admits(Term(1), &retire(6)));
    assert!(!fence.admits(Term(1), &retire(5)));
}

#[test]
fn a_leader_that_was_replaced_is_not_obeyed() {
    let mut fence = Fence::default();
    assert!(fence.admits(Term(3), &retire(5)));
    assert!(!fence.admits(Term(2), &retire(9)));
    assert!(fence.admits(Term(3), &retire(6)), "its epoch does not count");
}

#[test]
fn a_node_that_starts_knows_the_epochs_of_what_it_has() {
    let mut fence = Fence::default();
    fence.has_chunk(ChunkId(7), Epoch(5));
    fence.has_chunk(ChunkId(7), Epoch(3));
    assert!(!fence.admits(Term(1), &retire(4)));
    assert!(fence.admits(Term(1), &retire(5)));
}

#[test]
fn a_split_counts_for_both_halves() {
    let number = OrderNumber { operation: OperationId(1), step: 1, part: 0 };
    let split = |epoch| {
        let (chunk, upper, at) = (ChunkId(7), ChunkId(8), firn_base::PageNo(100));
        let action = Action::SplitChunk { chunk, upper, at, epoch: Epoch(epoch) };
        Order { number, node: NodeId(1), action }
    };
    let mut fence = Fence::default();
    fence.has_chunk(ChunkId(8), Epoch(6));
    assert!(!fence.admits(Term(1), &split(5)), "the upper half has changed since");
    assert!(fence.admits(Term(1), &split(6)));
    assert!(!fence.admits(Term(1), &retire(5)));
}
