//! What functions need from the session and from outside the statement.

pub use firn_api::server::LockAnswer;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::random::{GOLDEN_GAMMA, mix};

use crate::error::Result;

/// How a `SLEEP()` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepEnd {
    /// The time is over.
    Elapsed,
    /// The statement was killed.
    Killed,
    /// The statement ends because it is run again elsewhere.
    Cut,
}

/// The session as functions see it, with access to clock and randomness. Calls do not block, except
/// [`SessionFacts::sleep`] and [`SessionFacts::get_lock`].
pub trait SessionFacts: fmt::Debug + Send + Sync {
    /// `CONNECTION_ID()`
    fn connection_id(&self) -> u64;
    /// `USER()`: the name sent by the client, and its host.
    fn user(&self) -> String;
    /// `CURRENT_USER()`: the account that the client was matched with.
    fn current_user(&self) -> String;
    /// `CURRENT_ROLE()`
    fn current_role(&self) -> String {
        "NONE".to_owned()
    }
    /// `DATABASE()`
    fn database(&self) -> Option<String>;
    /// `VERSION()`
    fn version(&self) -> String;
    /// `LAST_INSERT_ID()`, from before the statement.
    fn last_insert_id(&self) -> u64;
    /// `LAST_INSERT_ID(x)`
    fn set_last_insert_id(&self, id: u64);
    /// `@@insert_id`, which is used once: the next number to generate for a row; 0: none.
    fn take_insert_id(&self) -> u64 {
        0
    }
    /// `ROW_COUNT()`
    fn row_count(&self) -> i64;
    /// `FOUND_ROWS()`
    fn found_rows(&self) -> u64;
    /// `@@block_encryption_mode`
    fn block_encryption_mode(&self) -> String {
        "aes-128-ecb".to_owned()
    }

    /// Microseconds since 1970 UTC, now and not at the statement's beginning.
    fn wall_time_us(&self) -> i64;
    /// The next random word.
    fn random_u64(&self) -> u64;
    /// The 48 bits that identify this server in UUIDs.
    fn node_id(&self) -> u64;
    /// A number that increases with each call, over all sessions of the server.
    fn next_sequence(&self) -> u64;

    /// Whether the statement may continue.
    ///
    /// # Errors
    /// 1317 if it was cancelled, 3024 if its time is over.
    fn check_interrupted(&self) -> Result<()> {
        Ok(())
    }

    /// Waits this long, or until the statement is killed.
    fn sleep(&self, duration: Duration) -> SleepEnd;

    /// Takes a user-level lock, waiting at most this long; `None`: for ever.
    fn get_lock(&self, name: &str, timeout: Option<Duration>) -> LockAnswer;
    /// Releases a user-level lock: `None` if no session holds it, false if another session does.
    fn release_lock(&self, name: &str) -> Option<bool>;
    /// Releases all user-level locks; returns their number.
    fn release_all_locks(&self) -> u64;
    /// The connection that holds a user-level lock.
    fn lock_owner(&self, name: &str) -> Option<u64>;
}

/// No session: expressions of definitions, and tests. Time stands still at 1970, nothing is locked.
#[derive(Debug, Default)]
pub struct DetachedSession {
    last_insert_id: AtomicU64,
    sequence: AtomicU64,
}

impl SessionFacts for DetachedSession {
    fn connection_id(&self) -> u64 {
        0
    }

    fn user(&self) -> String {
        String::new()
    }

    fn current_user(&self) -> String {
        String::new()
    }

    fn database(&self) -> Option<String> {
        None
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn last_insert_id(&self) -> u64 {
        self.last_insert_id.load(Ordering::Relaxed)
    }

    fn set_last_insert_id(&self, id: u64) {
        self.last_insert_id.store(id, Ordering::Relaxed);
    }

    fn row_count(&self) -> i64 {
        -1
    }

    fn found_rows(&self) -> u64 {
        0
    }

    fn wall_time_us(&self) -> i64 {
        0
    }

    fn random_u64(&self) -> u64 {
        // The same words in every run.
        mix(self.next_sequence().wrapping_mul(GOLDEN_GAMMA))
    }

    fn node_id(&self) -> u64 {
        0
    }

    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    fn sleep(&self, _duration: Duration) -> SleepEnd {
        SleepEnd::Elapsed
    }

    fn get_lock(&self, _name: &str, _timeout: Option<Duration>) -> LockAnswer {
        LockAnswer::Granted
    }

    fn release_lock(&self, _name: &str) -> Option<bool> {
        None
    }

    fn release_all_locks(&self) -> u64 {
        0
    }

    fn lock_owner(&self, _name: &str) -> Option<u64> {
        None
    }
}
