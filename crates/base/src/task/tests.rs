use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{Scheduler, Spawner, ThreadSpawner, install_scheduler, monotonic, sleep, yield_now};
use crate::event::Event;

#[test]
fn join_tells_whether_the_task_panicked() {
    assert!(ThreadSpawner.spawn("calm", Box::new(|| {})).join());
    assert!(!ThreadSpawner.spawn("nervous", Box::new(|| panic!("as the test wants"))).join());
}

#[test]
fn a_task_carries_its_name() {
    let seen = Arc::new(parking_lot::Mutex::new(None));
    let slot = Arc::clone(&seen);
    let body = move || *slot.lock() = std::thread::current().name().map(str::to_owned);
    assert!(ThreadSpawner.spawn("log-writer", Box::new(body)).join());
    assert_eq!(seen.lock().as_deref(), Some("log-writer"));
}

#[test]
fn sleep_lasts_as_long_as_it_was_asked_to() {
    let duration = Duration::from_millis(15);
    let before = monotonic();
    sleep(duration);
    assert!(monotonic() - before >= duration);
}

#[derive(Default)]
struct Counting {
    waits: AtomicUsize,
    wakes: AtomicUsize,
    yields: AtomicUsize,
}

impl Scheduler for Counting {
    fn wait(&self, _key: usize, _timeout: Option<Duration>) -> bool {
        self.waits.fetch_add(1, Ordering::SeqCst);
        false
    }
    fn wake_all(&self, _key: usize) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }
    fn wake_one(&self, _key: usize) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }
    fn yield_now(&self) {
        self.yields.fetch_add(1, Ordering::SeqCst);
    }
    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.waits.load(Ordering::SeqCst) as u64)
    }
}

#[test]
fn a_simulated_thread_asks_its_scheduler_for_everything() {
    let scheduler = Arc::new(Counting::default());
    let installed = Arc::clone(&scheduler);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            install_scheduler(Some(installed));
            Event::new().notify_all();
            Event::new().notify_one();
            yield_now();
            sleep(Duration::from_secs(3600));
            install_scheduler(None);
            yield_now();
        });
    });
    let counts = [&scheduler.waits, &scheduler.wakes, &scheduler.yields];
    assert_eq!(counts.map(|count| count.load(Ordering::SeqCst)), [1, 2, 1]);
}

struct NotifiesWhenDropped;

impl Drop for NotifiesWhenDropped {
    fn drop(&mut self) {
        Event::new().notify_all();
    }
}

thread_local! {
    static LATE: RefCell<Option<NotifiesWhenDropped>> = const { RefCell::new(None) };
}

#[test]
fn a_thread_that_ends_may_still_notify() {
    let body = || {
        LATE.with(|slot| *slot.borrow_mut() = Some(NotifiesWhenDropped));
        install_scheduler(Some(Arc::new(Counting::default())));
    };
    assert!(ThreadSpawner.spawn("ending", Box::new(body)).join());
}
