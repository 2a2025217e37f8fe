//! Waits, in small stories.

#![allow(clippy::disallowed_types, reason = "tests use the machine as it is")]

use std::sync::atomic::AtomicU64;

use firn_api::rows::Cancellation;
use firn_base::clock::SystemClock;

use super::super::*;
use MetadataLock::{Exclusive, Read, Upgradable, Write};

const T: TableId = TableId(7);
const U: TableId = TableId(8);

struct Stage {
    locks: Arc<MetadataLockTable>,
}

impl Stage {
    fn new() -> Stage {
        Stage { locks: MetadataLockTable::new(Arc::new(SystemClock), |_| Vec::new()) }
    }

    /// Waits until `count` requests wait.
    fn until_waiting(&self, count: usize) {
        while self.locks.requests.lock().waiting_count() < count {
            std::thread::yield_now();
        }
    }
}

fn take(context: &LockContext, table: TableId, lock: MetadataLock) -> RowsResult<()> {
    let patience = LockPatience::of(Duration::from_secs(60));
    context.acquire(table, lock, LockDuration::Transaction, &patience)
}

#[test]
fn a_waiting_change_goes_before_later_readers_and_they_after_it() {
    let stage = Stage::new();
    let (reader, change, late) =
        (stage.locks.open_context(), stage.locks.open_context(), stage.locks.open_context());
    take(&reader, T, Read).unwrap();
    let order = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            take(&change, T, Exclusive).unwrap();
            assert_eq!(order.fetch_add(1, Ordering::SeqCst), 0);
            change.release_transaction();
        });
        stage.until_waiting(1);
        scope.spawn(|| {
            take(&late, T, Read).unwrap();
            assert_eq!(order.fetch_add(1, Ordering::SeqCst), 1);
            late.release_transaction();
        });
        stage.until_waiting(2);
        // The change does not concern another table, nor a reader that has the lock.
        take(&reader, U, Write).unwrap();
        take(&reader, T, Read).unwrap();
        reader.release_transaction();
    });
    assert!(stage.locks.requests.lock().is_idle());
}

#[test]
fn a_stronger_lock_behind_a_waiting_change_is_a_deadlock_of_the_statement() {
    let stage = Stage::new();
    let (reader, change) = (stage.locks.open_context(), stage.locks.open_context());
    take(&reader, T, Read).unwrap();
    std::thread::scope(|scope| {
        let change = scope.spawn(|| take(&change, T, Exclusive));
        stage.until_waiting(1);
        assert_eq!(take(&reader, T, Write), Err(RowsError::Deadlock));
        assert!(reader.holds(T, Read));
        reader.release_transaction();
        change.join().unwrap().unwrap();
    });
}

#[test]
fn an_upgrade_goes_before_other_changes_that_wait() {
    let stage = Stage::new();
    let (one, other) = (stage.locks.open_context(), stage.locks.open_context());
    take(&one, T, Upgradable).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| take(&other, T, Exclusive));
        stage.until_waiting(1);
        take(&one, T, Exclusive).unwrap();
        one.release_transaction();
        other.join().unwrap().unwrap();
    });
}

#[test]
fn a_wait_ends_with_its_time_or_when_it_is_called_off() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.locks.open_context(), stage.locks.open_context());
    take(&holder, T, Exclusive).unwrap();
    let timeout = Duration::from_millis(20);
    let patience = LockPatience::of(timeout);
    let late = waiter.acquire(T, Read, LockDuration::Transaction, &patience);
    assert_eq!(late, Err(RowsError::LockWaitTimeout));
    let cancellation = Cancellation::default();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let timeout = Duration::from_secs(60);
            let patience =
                LockPatience { cancelled: Some(&cancellation), ..LockPatience::of(timeout) };
            waiter.acquire(T, Exclusive, LockDuration::Transaction, &patience)
        });
        stage.until_waiting(1);
        cancellation.cancel();
        assert_eq!(waiting.join().unwrap(), Err(RowsError::Cancelled));
    });
    holder.release_transaction();
    take(&waiter, T, Exclusive).unwrap();
}

/// A waits behind B's change, B for C, and C for a row of A.
#[test]
fn a_circle_through_a_row_is_found() {
    let locks = MetadataLockTable::new(Arc::new(SystemClock), |trx| match trx {
        3 => vec![1],
        _ => Vec::new(),
    });
    let stage = Stage { locks };
    let (a, b, c) =
        (stage.locks.open_context(), stage.locks.open_context(), stage.locks.open_context());
    take(&c, T, Write).unwrap();
    std::thread::scope(|scope| {
        let change = scope.spawn(|| take(&b, T, Exclusive));
        stage.until_waiting(1);
        let reader = scope.spawn(|| {
            let timeout = Duration::from_secs(60);
            let patience = LockPatience { transaction: Some(1), ..LockPatience::of(timeout) };
            a.acquire(T, Read, LockDuration::Transaction, &patience)
        });
        stage.until_waiting(2);
        c.waits_at_rows(Some(3));
        assert_eq!(reader.join().unwrap(), Err(RowsError::Deadlock));
        c.waits_at_rows(None);
        c.release_transaction();
        change.join().unwrap().unwrap();
    });
}

#[test]
fn many_tables_and_detached_locks_are_given_back() {
    let stage = Stage::new();
    let (session, change) = (stage.locks.open_context(), stage.locks.open_context());
    for table in 1..40 {
        take(&session, TableId(table), if table % 2 == 0 { Read } else { Write }).unwrap();
    }
    let detached = session.detach();
    session.release_transaction();
    let patience = LockPatience::of(Duration::ZERO);
    let exclusive = |table| {
        change.acquire(TableId(table), Exclusive, LockDuration::Transaction, &patience).is_ok()
    };
    assert!((1..40).all(|table| !exclusive(table)));
    drop(detached);
    assert!((1..40).all(exclusive));
}
