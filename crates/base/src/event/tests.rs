use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::Event;
use crate::task::monotonic;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

#[test]
fn a_notification_between_look_and_wait_is_not_lost() {
    let event = Event::new();
    let ticket = event.listen();
    event.notify_all();
    let before = monotonic();
    assert!(event.wait(ticket, Some(LONG)));
    assert!(monotonic() - before < LONG / 2);
}

#[test]
fn a_wait_that_nobody_ends_times_out() {
    let event = Event::new();
    let before = monotonic();
    assert!(!event.wait_until(Some(SHORT), || false));
    assert!(monotonic() - before >= SHORT);
}

#[test]
fn the_timeout_of_wait_until_is_a_total_deadline() {
    let event = Event::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                event.notify_all();
                crate::task::sleep(SHORT / 20);
            }
        });
        let before = monotonic();
        assert!(!event.wait_until(Some(SHORT), || false));
        assert!(monotonic() - before < LONG / 2);
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_condition_that_holds_needs_no_wait_and_no_time() {
    let event = Event::new();
    assert!(event.wait_until(Some(Duration::ZERO), || true));
    assert!(!event.wait_until(Some(Duration::ZERO), || false));
    assert!(event.wait_until(Some(Duration::MAX), || true));
}

#[test]
fn everybody_who_waits_is_woken() {
    let event = Event::new();
    let open = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| event.wait_until(Some(LONG), || open.load(Ordering::SeqCst))))
            .collect();
        open.store(true, Ordering::SeqCst);
        event.notify_all();
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
    });
}

#[test]
fn turns_passed_to_and_fro_lose_no_wake_up() {
    const TURNS: u64 = 20_000;
    let event = Event::new();
    let turn = AtomicU64::new(0);
    let play = |parity: u64| {
        for own in (0..TURNS).filter(|number| number % 2 == parity) {
            assert!(event.wait_until(Some(LONG), || turn.load(Ordering::SeqCst) == own));
            turn.store(own + 1, Ordering::SeqCst);
            event.notify_all();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(0));
        scope.spawn(|| play(1));
    });
    assert_eq!(turn.load(Ordering::SeqCst), TURNS);
}

#[test]
fn a_notification_of_one_reaches_somebody() {
    const WAITERS: u64 = 8;
    let event = Event::new();
    let (permits, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let take =
        || permits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    std::thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| {
                assert!(event.wait_until(Some(LONG), || take().is_ok()));
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        for number in 0..WAITERS {
            permits.fetch_add(1, Ordering::SeqCst);
            event.notify_one();
            while done.load(Ordering::SeqCst) <= number {
                crate::task::yield_now();
            }
        }
    });
}
