use super::*;
use firn_fabric::{Epoch, InProcessFabric};
use std::sync::atomic::AtomicBool;

fn table(slots: usize) -> TransactionTable {
    TransactionTable::register(Arc::new(InProcessFabric::new(Epoch(1))), slots).unwrap()
}

#[test]
fn a_transaction_is_active_until_it_commits() {
    let table = table(4);
    table.begin(TrxId(1), Cts(0)).unwrap();
    assert_eq!(table.outcome(TrxId(1)), Outcome::Active);
    table.set_committing(TrxId(1));
    assert_eq!(table.outcome(TrxId(1)), Outcome::Committing);
    table.commit(TrxId(1), Cts(9), Lsn(80));
    assert_eq!(table.outcome(TrxId(1)), Outcome::Committed(Cts(9), Lsn(80)));
}

#[test]
fn a_slot_is_recycled_at_the_horizon_and_offloaded_before_it() {
    let table = table(4);
    table.begin(TrxId(1), Cts(0)).unwrap();
    table.commit(TrxId(1), Cts(9), Lsn(80));
    table.begin(TrxId(5), Cts(8)).unwrap();
    assert_eq!(table.outcome(TrxId(1)), Outcome::Committed(Cts(9), Lsn(80)));
    assert_eq!(table.offload_counts(), (1, 1));
    table.recycle(Cts(9));
    assert_eq!(table.outcome(TrxId(1)), Outcome::Settled);
    table.commit(TrxId(5), Cts(10), Lsn(88));
    table.begin(TrxId(9), Cts(10)).unwrap();
    assert_eq!(table.outcome(TrxId(5)), Outcome::Settled);
    assert_eq!(table.offload_counts(), (1, 0));
}

#[test]
fn an_offloaded_transaction_still_commits_and_rolls_back() {
    let table = table(1);
    for id in 1..=3 {
        table.begin(TrxId(id), Cts(0)).unwrap();
    }
    assert_eq!(table.outcome(TrxId(1)), Outcome::Active);
    table.commit(TrxId(1), Cts(4), Lsn(8));
    assert_eq!(table.outcome(TrxId(1)), Outcome::Committed(Cts(4), Lsn(8)));
    table.remove(TrxId(2));
    assert_eq!(table.outcome(TrxId(2)), Outcome::Settled);
    assert!(table.is_active(TrxId(3)));
}

#[test]
fn a_reader_never_takes_one_transactions_timestamp_for_anothers() {
    // Transaction n commits with timestamp 2n at position 16n. The horizon stays far behind, so
    // that slots are offloaded all the time.
    const LAST: u64 = 30_000;
    let table = table(8);
    let (begun, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in 1..=LAST {
                table.begin(TrxId(id), Cts(2 * id.saturating_sub(40))).unwrap();
                begun.store(id, Ordering::SeqCst);
                table.commit(TrxId(id), Cts(2 * id), Lsn(16 * id));
                if id % 64 == 0 {
                    table.recycle(Cts(2 * id.saturating_sub(40)));
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let newest = begun.load(Ordering::SeqCst);
                for id in newest.saturating_sub(20).max(1)..=newest {
                    match table.outcome(TrxId(id)) {
                        Outcome::Committed(cts, lsn) => {
                            assert_eq!((cts, lsn), (Cts(2 * id), Lsn(16 * id)));
                        }
                        Outcome::Settled => {
                            assert!(begun.load(Ordering::SeqCst) >= id + 8, "settled too early");
                        }
                        Outcome::Active | Outcome::Committing => {}
                    }
                }
            }
        });
    });
}

#[test]
fn any_number_of_transactions_can_be_offloaded() {
    let table = table(4);
    let count = 5_000;
    for id in 1..=count {
        table.begin(TrxId(id), Cts(0)).unwrap();
        table.commit(TrxId(id), Cts(id), Lsn(8 * id));
    }
    for id in 1..=count {
        assert_eq!(table.outcome(TrxId(id)), Outcome::Committed(Cts(id), Lsn(8 * id)));
    }
    assert_eq!(table.offload_counts().1, count - 4);
    let bytes = table.size_bytes();
    table.recycle(Cts(count - 10));
    assert_eq!(table.offload_counts().1, 6);
    for id in count + 1..=2 * count {
        table.begin(TrxId(id), Cts(id - 10)).unwrap();
        table.commit(TrxId(id), Cts(id), Lsn(8 * id));
        table.recycle(Cts(id - 9));
    }
    assert_eq!(table.size_bytes(), bytes, "the places of forgotten entries are used again");
}
