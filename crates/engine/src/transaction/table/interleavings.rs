//! Readers of a slot that changes hands, under many orders of steps.

use std::sync::Arc;

use firn_fabric::{Epoch, InProcessFabric};
use shuttle::thread;

use super::*;

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
