//! The fast path against strong requests, under many orders of steps.

use std::sync::Arc;

use firn_base::clock::SystemClock;
use shuttle::thread;

use super::super::*;

const PATIENCE: LockPatience<'static> = LockPatience::of(Duration::from_secs(3600));

/// While a context changes the definition, no other context reads by it.
fn readers_and_a_change_never_meet() {
    let locks = MetadataLockTable::new(Arc::new(SystemClock), |_| Vec::new());
    let inside = Arc::new(crate::sync::AtomicU32::new(0));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (locks, inside) = (Arc::clone(&locks), Arc::clone(&inside));
            thread::spawn(move || {
                let context = locks.open_context();
                for _ in 0..2 {
                    let (read, transaction) = (MetadataLock::Read, LockDuration::Transaction);
                    context.acquire(TableId(1), read, transaction, &PATIENCE).expect("granted");
                    inside.fetch_add(1, Ordering::SeqCst);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    context.release_transaction();
                }
            })
        })
        .collect();
    let context = locks.open_context();
    let (exclusive, transaction) = (MetadataLock::Exclusive, LockDuration::Transaction);
    context.acquire(TableId(1), exclusive, transaction, &PATIENCE).expect("granted");
    assert_eq!(inside.load(Ordering::SeqCst), 0, "somebody reads");
    thread::yield_now();
    assert_eq!(inside.load(Ordering::SeqCst), 0, "somebody reads");
    context.release_transaction();
    readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
    assert!(locks.requests.lock().is_idle());
    assert_eq!(locks.stripe(TableId(1)).load(Ordering::SeqCst), 0);
}

#[test]
fn readers_and_a_change_never_meet_in_any_order() {
    shuttle::check_random(readers_and_a_change_never_meet, 2_000);
    shuttle::check_pct(readers_and_a_change_never_meet, 2_000, 3);
}
