use super::*;
use crate::transaction::commit_order::CommitOrder;
use crate::transaction::commit_order::REGION_WORDS;
use firn_api::Timestamps;
use firn_fabric::OwnedRegion;
use std::sync::atomic::AtomicBool;

fn order() -> CommitOrder {
    CommitOrder::new(OwnedRegion::unregistered(REGION_WORDS), Cts(5), &Timestamps::Local)
        .expect("local timestamps")
}

fn snapshots(limit: usize, horizon: Cts) -> Snapshots {
    Snapshots::new(OwnedRegion::unregistered(Snapshots::region_words(limit)), horizon)
}

fn commit(order: &CommitOrder) {
    order.publish(order.allocate());
}

#[test]
fn the_oldest_snapshot_holds_the_horizon() {
    let (order, snapshots) = (order(), snapshots(4, Cts(5)));
    let (old, new) = (snapshots.take().unwrap(), snapshots.take().unwrap());
    assert_eq!(snapshots.open(&old, || order.max_committed()), Cts(5));
    commit(&order);
    assert_eq!(snapshots.open(&new, || order.max_committed()), Cts(6));
    commit(&order);
    assert_eq!(snapshots.advance_horizon(order.max_committed()), Cts(5));
    snapshots.close(&old);
    assert_eq!(snapshots.advance_horizon(order.max_committed()), Cts(6));
    snapshots.give_back(new);
    assert_eq!(snapshots.advance_horizon(order.max_committed()), Cts(7));
}

#[test]
fn slots_run_out_with_a_message_and_come_back() {
    let snapshots = snapshots(1, Cts(0));
    let slot = snapshots.take().unwrap();
    assert_eq!(snapshots.take().unwrap_err(), TooManySnapshots { limit: 1 });
    snapshots.give_back(slot);
    assert!(snapshots.take().is_ok());
}

#[test]
fn no_snapshot_is_ever_behind_the_horizon() {
    let (order, snapshots) = (order(), snapshots(8, Cts(5)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let slot = snapshots.take().unwrap();
                    for _ in 0..50_000 {
                        let snapshot = snapshots.open(&slot, || order.max_committed());
                        assert!(snapshots.horizon() <= snapshot);
                        snapshots.close(&slot);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                commit(&order);
                snapshots.advance_horizon(order.max_committed());
            }
        });
        let outcomes: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(outcomes.into_iter().all(|outcome| outcome.is_ok()));
    });
}
