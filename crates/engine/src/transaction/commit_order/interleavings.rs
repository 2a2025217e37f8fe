//! Commits under many orders of steps, with a window that they wrap around.

use std::sync::Arc;

use firn_api::TimestampSource;

use shuttle::sync::atomic::AtomicBool;
use shuttle::thread;

use super::*;

fn order(timestamps: &Timestamps) -> CommitOrder {
    let region = OwnedRegion::unregistered(REGION_WORDS);
    CommitOrder::new(region, Cts(0), timestamps).expect("a source that answers")
}

/// Whatever a snapshot covers is filled, and at last all of it is covered.
fn snapshots_cover_filled_slots() {
    const THREADS: u64 = 3;
    const COMMITS: u64 = 3;
    let order = Arc::new(order(&Timestamps::Local));
    let filled: Arc<Vec<AtomicBool>> =
        Arc::new((0..=THREADS * COMMITS).map(|_| AtomicBool::new(false)).collect());
    let committers: Vec<_> = (0..THREADS)
        .map(|_| {
            let (order, filled) = (Arc::clone(&order), Arc::clone(&filled));
            thread::spawn(move || {
                for _ in 0..COMMITS {
                    let ticket = order.allocate();
                    filled[ticket.cts().0 as usize].store(true, Ordering::SeqCst);
                    order.publish(ticket);
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

/// A source of every third number.
struct Thirds(AtomicU64);

impl TimestampSource for Thirds {
    fn next(&self) -> Result<Cts, TimestampError> {
        Ok(Cts(self.0.fetch_add(3, Ordering::SeqCst) + 3))
    }

    fn observe(&self, cts: Cts) -> Result<(), TimestampError> {
        self.0.fetch_max(cts.0, Ordering::SeqCst);
        Ok(())
    }

    fn growth_per_second(&self) -> u64 {
        1000
    }
}

/// The same for timestamps with gaps: no snapshot covers a commit that is being written.
fn snapshots_cover_no_open_commit() {
    let source = Timestamps::Shared(Arc::new(Thirds(AtomicU64::new(0))));
    let order = Arc::new(order(&source));
    let filled: Arc<Vec<AtomicBool>> = Arc::new((0..20).map(|_| AtomicBool::new(false)).collect());
    let committers: Vec<_> = (0..3)
        .map(|_| {
            let (order, filled) = (Arc::clone(&order), Arc::clone(&filled));
            thread::spawn(move || {
                for _ in 0..2 {
                    let ticket = order.reserve().expect("it answers").expect("it is shared");
                    filled[ticket.cts().0 as usize].store(true, Ordering::SeqCst);
                    order.publish(ticket);
                    let covered = order.max_committed().0 as usize;
                    for number in (3..=covered).step_by(3) {
                        assert!(filled[number].load(Ordering::SeqCst), "an open commit is covered");
                    }
                }
            })
        })
        .collect();
    committers.into_iter().for_each(|committer| committer.join().expect("no panic"));
    assert_eq!(order.max_committed(), Cts(18));
}

#[test]
fn snapshots_cover_no_open_commit_in_any_order() {
    shuttle::check_random(snapshots_cover_no_open_commit, 3_000);
    shuttle::check_pct(snapshots_cover_no_open_commit, 3_000, 3);
}
