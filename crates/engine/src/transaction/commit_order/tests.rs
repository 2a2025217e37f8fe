use super::*;

fn order(last: u64) -> CommitOrder {
    CommitOrder::new(OwnedRegion::unregistered(REGION_WORDS), Cts(last))
}

#[test]
fn a_snapshot_does_not_pass_a_gap() {
    let order = order(10);
    let (first, second, third) = (order.allocate(), order.allocate(), order.allocate());
    order.publish(second);
    assert_eq!(order.max_committed(), Cts(10));
    order.publish(first);
    assert_eq!(order.max_committed(), second);
    order.publish(third);
    assert_eq!(order.max_committed(), third);
}

#[test]
fn what_a_snapshot_covers_is_filled() {
    const THREADS: u64 = 4;
    const COMMITS: u64 = 20_000;
    let order = order(0);
    let slots: Vec<AtomicU64> = (0..=THREADS * COMMITS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..COMMITS {
                    let cts = order.allocate();
                    slots[cts.0 as usize].store(1, Ordering::Release);
                    order.publish(cts);
                    let seen = order.max_committed().0 as usize;
                    assert_eq!(slots[seen].load(Ordering::Acquire), 1);
                }
            });
        }
    });
    assert_eq!(order.max_committed(), Cts(THREADS * COMMITS));
}
