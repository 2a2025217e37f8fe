//! Opening snapshots while the horizon moves, under many orders of steps.

use std::sync::Arc;

use firn_api::Timestamps;
use firn_fabric::OwnedRegion;
use shuttle::thread;

use super::*;
use crate::transaction::commit_order::CommitOrder;
use crate::transaction::commit_order::REGION_WORDS;

fn snapshots(limit: usize, horizon: Cts) -> Snapshots {
    Snapshots::new(OwnedRegion::unregistered(Snapshots::region_words(limit)), horizon)
}

/// While a snapshot is open, the horizon is not beyond it.
fn open_snapshots_hold_the_horizon() {
    let order = Arc::new(
        CommitOrder::new(OwnedRegion::unregistered(REGION_WORDS), Cts(0), &Timestamps::Local)
            .expect("local timestamps"),
    );
    let snapshots = Arc::new(snapshots(2, Cts(0)));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (order, snapshots) = (Arc::clone(&order), Arc::clone(&snapshots));
            thread::spawn(move || {
                let slot = snapshots.take().expect("a slot");
                for _ in 0..2 {
                    let snapshot = snapshots.open(&slot, || order.max_committed());
                    assert!(snapshots.horizon() <= snapshot);
                    thread::yield_now();
                    assert!(snapshots.horizon() <= snapshot, "the horizon passed a snapshot");
                    snapshots.close(&slot);
                }
                snapshots.give_back(slot);
            })
        })
        .collect();
    for _ in 0..3 {
        order.publish(order.allocate());
        snapshots.advance_horizon(order.max_committed());
    }
    readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
}

#[test]
fn open_snapshots_hold_the_horizon_in_any_order() {
    shuttle::check_random(open_snapshots_hold_the_horizon, 5_000);
    shuttle::check_pct(open_snapshots_hold_the_horizon, 5_000, 3);
}
