//! The lock of `FLUSH TABLES WITH READ LOCK`: nobody writes while a session holds it.
//!
//! ```text
//!   holder   holders += 1, then waits until writers = 0          (one counts up before it looks,
//!   writer   writers += 1, then looks: holders = 0, or goes back  so that one of two sees the other)
//! ```
//!
//! Statements that write, changes of definitions and `COMMIT` are writers for as long as they run; a
//! transaction that has written and is idle is none.
//!
//! Rule: nothing is locked while anybody waits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_sql::error::{Result, SqlError};
use parking_lot::Mutex;

/// See the module's page.
#[derive(Debug, Default)]
pub struct GlobalLock {
    holders: AtomicU64,
    writers: AtomicU64,
    sessions: Mutex<BTreeSet<u64>>,
    changed: Event,
}

/// A statement that writes; it ends with this.
#[derive(Debug)]
pub struct Writing(Arc<GlobalLock>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// How often a waiting session looks whether it is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

impl GlobalLock {
    /// Lets a statement write, if nobody holds the lock now. Does not block.
    #[must_use]
    pub fn try_write(self: &Arc<Self>) -> Option<Writing> {
        self.try_enter().then(|| Writing(Arc::clone(self)))
    }

    /// Lets a statement write, once nobody holds the lock. Blocks for `timeout` at most.
    ///
    /// # Errors
    /// 1223 if the session itself holds it, 1205 after the time, 1317 if the statement is to end.
    pub fn write(
        self: &Arc<Self>,
        session: u64,
        timeout: Duration,
        is_killed: &dyn Fn() -> bool,
    ) -> Result<Writing> {
        if !self.try_enter() {
            if self.sessions.lock().contains(&session) {
                let why = "Can't execute the query because you have a conflicting read lock";
                return Err(SqlError::new(1223, why));
            }
            self.wait(timeout, is_killed, &|| self.try_enter())?;
        }
        Ok(Writing(Arc::clone(self)))
    }

    /// Takes the lock for a session, and waits for the writers that are at work.
    ///
    /// # Errors
    /// 1205 after the time, 1317 if the statement is to end; the lock is not held then.
    pub fn take(
        &self,
        session: u64,
        timeout: Duration,
        is_killed: &dyn Fn() -> bool,
    ) -> Result<()> {
        if !self.sessions.lock().insert(session) {
            return Ok(());
        }
        self.holders.fetch_add(1, Ordering::SeqCst);
        let waited = self.wait(timeout, is_killed, &|| self.writers.load(Ordering::SeqCst) == 0);
        if waited.is_err() {
            self.release(session);
        }
        waited
    }

    /// Gives a session's lock back, if it has it.
    pub fn release(&self, session: u64) {
        if self.sessions.lock().remove(&session) {
            self.holders.fetch_sub(1, Ordering::SeqCst);
            self.changed.notify_all();
        }
    }

    fn try_enter(&self) -> bool {
        self.writers.fetch_add(1, Ordering::SeqCst);
        if self.holders.load(Ordering::SeqCst) == 0 {
            return true;
        }
        self.leave();
        false
    }

    fn leave(&self) {
        let before = self.writers.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.holders.load(Ordering::SeqCst) > 0 {
            self.changed.notify_all();
        }
    }

    fn wait(
        &self,
        timeout: Duration,
        is_killed: &dyn Fn() -> bool,
        is_ready: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut left = timeout;
        loop {
            let slice = left.min(LOOK_INTERVAL);
            if self.changed.wait_until(Some(slice), is_ready) {
                return Ok(());
            }
            if is_killed() {
                return Err(SqlError::new(1317, "Query execution was interrupted"));
            }
            left = left.saturating_sub(slice);
            if left.is_zero() {
                let why = "Lock wait timeout exceeded; try restarting transaction";
                return Err(SqlError::new(1205, why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn nobody_writes_while_it_is_held() {
        let lock = Arc::new(GlobalLock::default());
        let killed = || false;
        let writing = lock.write(1, SHORT, &killed).unwrap();
        assert_eq!(lock.take(2, SHORT, &killed).unwrap_err().code, 1205);
        drop(writing);
        lock.take(2, SHORT, &killed).unwrap();
        assert_eq!(lock.write(1, SHORT, &killed).unwrap_err().code, 1205);
        assert_eq!(lock.write(2, SHORT, &killed).unwrap_err().code, 1223);
        assert_eq!(lock.write(1, SHORT, &|| true).unwrap_err().code, 1317);
        lock.take(3, SHORT, &killed).unwrap();
        lock.release(2);
        assert_eq!(lock.write(1, SHORT, &killed).unwrap_err().code, 1205);
        lock.release(3);
        lock.write(1, SHORT, &killed).unwrap();
    }

    #[test]
    fn writers_and_holders_never_meet() {
        let lock = Arc::new(GlobalLock::default());
        let inside = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for session in 0..4 {
                let (lock, inside) = (&lock, &inside);
                scope.spawn(move || {
                    let long = Duration::from_secs(10);
                    for _ in 0..200 {
                        match session {
                            0 => {
                                lock.take(session, long, &|| false).unwrap();
                                assert_eq!(inside.load(Ordering::SeqCst), 0);
                                lock.release(session);
                            }
                            _ => {
                                let writing = lock.write(session, long, &|| false).unwrap();
                                inside.fetch_add(1, Ordering::SeqCst);
                                inside.fetch_sub(1, Ordering::SeqCst);
                                drop(writing);
                            }
                        }
                    }
                });
            }
        });
    }
}
