//! The races that the rules mention, under orders of steps that shuttle chooses. For shuttle, a
//! wait that never ends is a deadlock, which fails the test.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use firn_base::clock::SystemClock;
use firn_base::{IndexId, TrxId};
use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use shuttle::thread;

use crate::lock::{LockError, LockManager, LockMode, LockTarget, Outcome};

const INDEX: IndexId = IndexId(1);

/// The steps of one thread.
type Body = Box<dyn FnOnce(&LockManager) + Send>;

fn key(key: &[u8]) -> LockTarget<'_> {
    LockTarget::Record { index: INDEX, key }
}

fn everything() -> LockTarget<'static> {
    LockTarget::Range { index: INDEX, low: Bound::Unbounded, high: Bound::Unbounded }
}

fn manager() -> Arc<LockManager> {
    Arc::new(LockManager::new(Arc::new(SystemClock)))
}

fn lock(
    locks: &LockManager,
    owner: u64,
    target: LockTarget<'_>,
    mode: LockMode,
) -> Result<(), LockError> {
    match locks.request(TrxId(owner), target, mode) {
        Outcome::Queued(wait) => locks.wait(wait, None),
        Outcome::Granted | Outcome::Held => Ok(()),
    }
}

/// Runs the bodies as threads in many orders. At the end the lock manager must be empty.
fn explore(setup: fn() -> Vec<Body>) {
    let run = move || {
        let locks = manager();
        let threads: Vec<_> = setup()
            .into_iter()
            .map(|body| {
                let locks = Arc::clone(&locks);
                thread::spawn(move || body(&locks))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(locks.is_empty(), "something is left behind");
    };
    shuttle::check_random(run, 2000);
    shuttle::check_pct(run, 2000, 3);
}

#[test]
fn one_at_a_time() {
    explore(|| {
        let inside = Arc::new(AtomicU32::new(0));
        (1..=3)
            .map(|owner| {
                let inside = Arc::clone(&inside);
                let body = move |locks: &LockManager| {
                    lock(locks, owner, key(b"ant"), LockMode::Exclusive).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    locks.release_all(TrxId(owner));
                };
                Box::new(body) as Body
            })
            .collect()
    });
}

#[test]
fn an_explicit_lock_is_never_added_after_its_holder_has_ended() {
    explore(|| {
        let active = Arc::new(AtomicBool::new(true));
        let writer = Arc::clone(&active);
        let mut bodies: Vec<Body> = vec![Box::new(move |locks| {
            writer.store(false, Ordering::SeqCst);
            locks.release_all(TrxId(1));
            let left = locks.snapshot().into_iter().find(|lock| lock.owner == TrxId(1));
            assert_eq!(left, None);
        })];
        for reader in 2..=3 {
            let active = Arc::clone(&active);
            bodies.push(Box::new(move |locks| {
                let is_active = || active.load(Ordering::SeqCst);
                locks.make_explicit(TrxId(1), INDEX, b"ant", is_active);
                lock(locks, reader, key(b"ant"), LockMode::Shared).unwrap();
                assert!(!active.load(Ordering::SeqCst), "read past an active writer");
                locks.release_all(TrxId(reader));
            }));
        }
        bodies
    });
}

#[test]
fn a_deadlock_has_one_victim() {
    explore(|| {
        let victims = Arc::new(AtomicU32::new(0));
        let ended = Arc::new(AtomicU32::new(0));
        [(1, b"ant", b"bee"), (2, b"bee", b"cat"), (3, b"cat", b"ant")]
            .into_iter()
            .map(|(owner, first, second)| {
                let (victims, ended) = (Arc::clone(&victims), Arc::clone(&ended));
                let body = move |locks: &LockManager| {
                    lock(locks, owner, key(first), LockMode::Exclusive).unwrap();
                    let second = lock(locks, owner, key(second), LockMode::Exclusive);
                    if second.is_err() {
                        victims.fetch_add(1, Ordering::SeqCst);
                    }
                    locks.release_all(TrxId(owner));
                    if ended.fetch_add(1, Ordering::SeqCst) == 2 {
                        assert!(victims.load(Ordering::SeqCst) <= 1);
                    }
                };
                Box::new(body) as Body
            })
            .collect()
    });
}

#[test]
fn ranges_and_keys_wake_each_other() {
    explore(|| {
        let inside = Arc::new(AtomicU32::new(0));
        let mut bodies: Vec<Body> = Vec::new();
        for (owner, letter) in [(1, b"a"), (2, b"b")] {
            let inside = Arc::clone(&inside);
            bodies.push(Box::new(move |locks| {
                lock(locks, owner, key(letter), LockMode::Exclusive).unwrap();
                assert!(inside.fetch_add(1, Ordering::SeqCst) < 100);
                inside.fetch_sub(1, Ordering::SeqCst);
                locks.release_all(TrxId(owner));
            }));
        }
        bodies.push(Box::new(move |locks| {
            lock(locks, 3, everything(), LockMode::Exclusive).unwrap();
            assert_eq!(inside.fetch_add(100, Ordering::SeqCst), 0);
            inside.fetch_sub(100, Ordering::SeqCst);
            locks.release_all(TrxId(3));
        }));
        bodies
    });
}

#[test]
fn a_wait_that_is_given_up_lets_the_others_go_on() {
    explore(|| {
        let mut bodies: Vec<Body> = vec![Box::new(|locks| {
            lock(locks, 1, key(b"ant"), LockMode::Shared).unwrap();
            locks.cancel(TrxId(3));
            locks.release_all(TrxId(1));
        })];
        bodies.push(Box::new(|locks| {
            if let Outcome::Queued(wait) = locks.request(TrxId(2), key(b"ant"), LockMode::Exclusive)
            {
                let result = locks.wait(wait, Some(Duration::ZERO));
                assert!(matches!(result, Ok(()) | Err(LockError::Timeout)));
            }
            locks.release_all(TrxId(2));
        }));
        bodies.push(Box::new(|locks| {
            let result = lock(locks, 3, key(b"ant"), LockMode::Exclusive);
            assert!(matches!(result, Ok(()) | Err(LockError::Cancelled)));
            locks.release_all(TrxId(3));
        }));
        bodies.push(Box::new(|locks| {
            lock(locks, 4, key(b"ant"), LockMode::Shared).unwrap();
            locks.release_all(TrxId(4));
        }));
        bodies
    });
}

#[test]
fn a_write_and_a_scan_do_not_miss_each_other() {
    explore(|| {
        let leaf = Arc::new(shuttle::sync::Mutex::new(TrxId::NONE));
        let active = Arc::new(AtomicBool::new(true));
        let (written, writes) = (Arc::clone(&leaf), Arc::clone(&active));
        let writer = move |locks: &LockManager| {
            loop {
                let mut record = written.lock().unwrap();
                if !locks.has_conflict(TrxId(1), INDEX, b"ant", LockMode::Exclusive) {
                    *record = TrxId(1);
                    break;
                }
                let outcome = locks.request(TrxId(1), key(b"ant"), LockMode::Exclusive);
                drop(record);
                if let Outcome::Queued(wait) = outcome {
                    locks.wait(wait, None).unwrap();
                }
            }
            writes.store(false, Ordering::SeqCst);
            locks.release_all(TrxId(1));
        };
        let scan = move |locks: &LockManager| {
            lock(locks, 2, everything(), LockMode::Shared).unwrap();
            let read = || loop {
                let record = leaf.lock().unwrap();
                if *record == TrxId::NONE || !active.load(Ordering::SeqCst) {
                    return *record;
                }
                let is_active = || active.load(Ordering::SeqCst);
                locks.make_explicit(*record, INDEX, b"ant", is_active);
                let outcome = locks.request(TrxId(2), key(b"ant"), LockMode::Shared);
                drop(record);
                if let Outcome::Queued(wait) = outcome {
                    locks.wait(wait, None).unwrap();
                }
            };
            assert_eq!(read(), read(), "a phantom");
            locks.release_all(TrxId(2));
        };
        vec![Box::new(writer), Box::new(scan)]
    });
}
