//! Commits under many orders of steps, with a window that they wrap around.

use std::sync::Arc;

use shuttle::sync::atomic::AtomicBool;
use shuttle::thread;

use super::*;

/// Whatever a snapshot covers is filled, and at last all of it is covered.
fn snapshots_cover_filled_slots() {
    const THREADS: u64 = 3;
    const COMMITS: u64 = 3;
    let order = Arc::new(CommitOrder::new(OwnedRegion::unregistered(REGION_WORDS), Cts(0)));
    let filled: Arc<Vec<AtomicBool>> =
        Arc::new((0..=THREADS * COMMITS).map(|_| AtomicBool::new(false)).collect());
    let committers: Vec<_> = (0..THREADS)
        .map(|_| {
            let (order, filled) = (Arc::clone(&order), Arc::clone(&filled));
            thread::spawn(move || {
                for _ in 0..COMMITS {
                    let cts = order.allocate();
                    filled[cts.0 as usize].store(true, Ordering::SeqCst);
                    order.publish(cts);
                    let covered = order.max_committed().0;
                    for slot in &filled[1..=covered as usize] {
                        assert!(slot.load(Ordering::SeqCst), "a snapshot passed a gap");
                    }
                }
            })
        })
        .collect();
    committers.into_iter().for_each(|committer| committer.join().expect("no panic"));
    assert_eq!(order.max_committed(), Cts(THREADS * COMMITS));
}

#[test]
fn snapshots_cover_filled_slots_in_any_order() {
    shuttle::check_random(snapshots_cover_filled_slots, 3_000);
    shuttle::check_pct(snapshots_cover_filled_slots, 3_000, 3);
}
