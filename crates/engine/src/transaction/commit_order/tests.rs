use std::sync::Arc;

use super::*;
use crate::test_support::{HybridClock, Oracle};

fn order(last: u64, timestamps: &Timestamps) -> CommitOrder {
    let region = OwnedRegion::unregistered(REGION_WORDS);
    CommitOrder::new(region, Cts(last), timestamps).unwrap()
}

fn dense(last: u64) -> CommitOrder {
    order(last, &Timestamps::Local)
}

fn sparse(last: u64) -> CommitOrder {
    order(last, &Timestamps::Shared(Arc::new(Oracle::new(last))))
}

/// The next timestamp, of the node or of the shared source.
fn begin(order: &CommitOrder) -> CommitTicket {
    order.reserve().unwrap().unwrap_or_else(|| order.allocate())
}

#[test]
fn a_snapshot_does_not_pass_a_gap() {
    for order in [dense(10), sparse(10)] {
        let (first, second, third) = (begin(&order), begin(&order), begin(&order));
        order.publish(second);
        assert!(order.max_committed() < first.cts());
        order.publish(first);
        assert!((second.cts()..third.cts()).contains(&order.max_committed()));
        order.publish(third);
        assert_eq!(order.max_committed(), third.cts());
    }
}

#[test]
fn what_a_snapshot_covers_is_filled() {
    const THREADS: u64 = 4;
    const COMMITS: u64 = 20_000;
    let clock = Timestamps::Shared(Arc::new(HybridClock::default()));
    for order in [dense(0), sparse(0), order(0, &clock)] {
        let filled = parking_lot::Mutex::new(std::collections::BTreeSet::new());
        let open = parking_lot::Mutex::new(std::collections::BTreeSet::new());
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for number in 0..COMMITS {
                        let ticket = begin(&order);
                        open.lock().insert(ticket.cts());
                        if number % 50 == 0 {
                            // No timestamp that a snapshot covers is open.
                            let open = open.lock();
                            let covered = order.max_committed();
                            assert!(open.first().is_none_or(|first| *first > covered));
                        }
                        open.lock().remove(&ticket.cts());
                        filled.lock().insert(ticket.cts());
                        order.publish(ticket);
                    }
                });
            }
        });
        let filled = filled.into_inner();
        assert_eq!(filled.len() as u64, THREADS * COMMITS, "each timestamp is given once");
        assert_eq!(filled.last().copied(), Some(order.max_committed()));
    }
}

#[test]
fn a_timestamp_from_elsewhere_is_committed_and_all_later_ones_are_above_it() {
    let order = sparse(10);
    let open = begin(&order);
    let adopted = order.adopt(Cts(500)).unwrap();
    assert!(begin_and_publish(&order) > Cts(500));
    order.publish(open);
    assert!(order.max_committed() < Cts(500), "it is not published yet");
    order.publish(adopted);
    assert!(order.max_committed() > Cts(500));
    assert!(dense(10).adopt(Cts(500)).is_err());
}

fn begin_and_publish(order: &CommitOrder) -> Cts {
    let ticket = begin(order);
    order.publish(ticket);
    ticket.cts()
}

#[test]
fn a_snapshot_from_elsewhere_waits_for_those_before_it_and_holds_off_all_others() {
    let order = sparse(10);
    let before = begin(&order);
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| order.close_up_to(Cts(700)).unwrap());
        firn_base::task::sleep(std::time::Duration::from_millis(10));
        assert!(!closing.is_finished(), "{} is not visible yet", before.cts());
        order.publish(before);
        closing.join().unwrap();
    });
    assert_eq!(order.max_committed(), Cts(700));
    assert!(begin(&order).cts() > Cts(700));
    let order = dense(10);
    order.close_up_to(Cts(9)).unwrap();
    assert!(order.close_up_to(Cts(11)).is_err());
}

#[test]
fn without_the_source_nothing_is_committed_and_nobody_is_held_up() {
    let oracle = Arc::new(Oracle::new(10));
    let order = order(10, &Timestamps::Shared(Arc::clone(&oracle) as _));
    oracle.set_available(false);
    assert!(matches!(order.reserve(), Err(TimestampError::Unavailable { .. })));
    oracle.set_available(true);
    let cts = begin_and_publish(&order);
    assert_eq!(order.max_committed(), cts);
}
