//! Readers of a slot that changes hands, under many orders of steps.

use std::sync::Arc;

use firn_fabric::{Epoch, InProcessFabric};
use shuttle::thread;

use super::*;
use crate::log::DURABLE_REGION;
use crate::transaction::commit_order;
use crate::transaction::remote::RemoteTransactions;
use crate::transaction::snapshots::{self, Snapshots};

/// Transaction n commits with timestamp 10n; a reader never sees another's, nor "settled" too
/// early.
fn outcomes_belong_to_their_transaction() {
    let fabric = Arc::new(InProcessFabric::new(Epoch(1)));
    let table = Arc::new(TransactionTable::register(fabric, 2).expect("a new fabric"));
    table.begin(TrxId(1), Cts(0)).expect("there is memory");
    let writers: Vec<_> = [(1, None), (2, Some(3)), (4, None)]
        .into_iter()
        .map(|(first, second)| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                for id in [Some(first), second].into_iter().flatten() {
                    if id != 1 {
                        table.begin(TrxId(id), Cts(0)).expect("there is memory");
                    }
                    table.commit(TrxId(id), Cts(10 * id), Lsn(8 * id));
                }
            })
        })
        .collect();
    for _ in 0..3 {
        match table.outcome(TrxId(1)) {
            Outcome::Active => {}
            Outcome::Committed(cts, lsn) => assert_eq!((cts, lsn), (Cts(10), Lsn(8))),
            other => panic!("transaction 1 is {other:?} at horizon 0"),
        }
        thread::yield_now();
    }
    writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    for id in 1..=4 {
        assert_eq!(table.outcome(TrxId(id)), Outcome::Committed(Cts(10 * id), Lsn(8 * id)));
    }
}

#[test]
fn outcomes_belong_to_their_transaction_in_any_order() {
    shuttle::check_random(outcomes_belong_to_their_transaction, 5_000);
    shuttle::check_pct(outcomes_belong_to_their_transaction, 5_000, 3);
}

/// A coordinator sets a transaction to COMMITTING while its slot passes to another one. From then
/// on nobody meets it as ACTIVE.
fn a_slot_is_reused_under_a_coordinator() {
    let fabric = Arc::new(InProcessFabric::new(Epoch(1)));
    let table = TransactionTable::register(Arc::clone(&fabric) as _, 1).expect("a new fabric");
    for (name, words) in [
        (commit_order::REGION, commit_order::REGION_WORDS),
        (snapshots::REGION, Snapshots::region_words(1)),
        (DURABLE_REGION, 1),
    ] {
        drop(fabric.register(name, words).expect("a new fabric"));
    }
    let table = Arc::new(table);
    table.begin(TrxId(1), Cts(0)).expect("there is memory");
    let owner = {
        let table = Arc::clone(&table);
        thread::spawn(move || table.begin(TrxId(2), Cts(0)).expect("there is memory"))
    };
    let remote = RemoteTransactions::connect(fabric.peer()).expect("the regions are there");
    let lowest = remote.set_committing(TrxId(1)).expect("the fabric does not fail");
    assert!(lowest.is_some(), "it is in the table");
    assert_eq!(table.outcome(TrxId(1)), Outcome::Committing);
    owner.join().expect("no panic");
    assert_eq!(table.outcome(TrxId(1)), Outcome::Committing);
    assert_eq!(table.outcome(TrxId(2)), Outcome::Active);
}

#[test]
fn a_coordinator_misses_no_transaction_whose_slot_is_reused() {
    shuttle::check_random(a_slot_is_reused_under_a_coordinator, 5_000);
    shuttle::check_pct(a_slot_is_reused_under_a_coordinator, 5_000, 3);
}
