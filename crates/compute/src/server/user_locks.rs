//! User-level locks: `GET_LOCK` and its family.
//!
//! Rule: the mutex is held for a look at the table, never while a connection waits.

use firn_api::server::{ConnectionIds, LockAnswer, Patience, ServerStateError};
use firn_base::event::Event;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::wait;

/// The connection that holds a lock, and how often it was taken.
#[derive(Debug, Clone, Copy)]
struct Held {
    owner: u64,
    times: u64,
}

/// All user-level locks of a server.
#[derive(Debug, Default)]
pub(super) struct UserLocks {
    held: Mutex<FxHashMap<Box<str>, Held>>,
    /// The lock that each waiting connection waits for.
    waiting: Mutex<FxHashMap<u64, Box<str>>>,
    released: Event,
}

impl UserLocks {
    /// Takes a lock for a connection, which may already hold it. Blocks.
    pub(super) fn take(&self, connection: u64, name: &str, patience: &Patience<'_>) -> LockAnswer {
        let name: Box<str> = name.to_lowercase().into();
        if self.try_take(connection, &name) {
            return LockAnswer::Granted;
        }
        self.waiting.lock().insert(connection, name.clone());
        let is_over = || self.is_in_circle(connection, &name);
        let waited =
            wait(&self.released, patience, &|| is_over() || self.try_take(connection, &name));
        self.waiting.lock().remove(&connection);
        match waited {
            Ok(()) if self.owner(&name) == Some(connection) => LockAnswer::Granted,
            Ok(()) => LockAnswer::Deadlock,
            Err(ServerStateError::TimedOut) => LockAnswer::TimedOut,
            Err(_) => LockAnswer::Killed,
        }
    }

    fn try_take(&self, connection: u64, name: &str) -> bool {
        let mut held = self.held.lock();
        let entry = held.entry(name.into()).or_insert(Held { owner: connection, times: 0 });
        let is_mine = entry.owner == connection;
        entry.times += u64::from(is_mine);
        is_mine
    }

    /// Whether the owner of a lock waits, directly or through others, for a lock of this
    /// connection.
    fn is_in_circle(&self, connection: u64, name: &str) -> bool {
        let (held, waiting) = (self.held.lock(), self.waiting.lock());
        let mut wanted: &str = name;
        for _ in 0..=waiting.len() {
            let Some(owner) = held.get(wanted).map(|held| held.owner) else { return false };
            if owner == connection {
                return true;
            }
            let Some(next) = waiting.get(&owner) else { return false };
            wanted = next;
        }
        false
    }

    /// Releases a lock once: `None` if no connection holds it, false if another connection does.
    pub(super) fn release(&self, connection: u64, name: &str) -> Option<bool> {
        let name = name.to_lowercase();
        let mut held = self.held.lock();
        let entry = held.get_mut(name.as_str())?;
        if entry.owner != connection {
            return Some(false);
        }
        entry.times -= 1;
        if entry.times == 0 {
            held.remove(name.as_str());
            drop(held);
            self.released.notify_all();
        }
        Some(true)
    }

    /// Releases all locks of some connections; returns how often they had been taken in total.
    pub(super) fn release_all(&self, connections: ConnectionIds) -> u64 {
        let mut times = 0;
        self.held.lock().retain(|_, held| {
            let is_given_back = connections.contains(held.owner);
            times += if is_given_back { held.times } else { 0 };
            !is_given_back
        });
        if times > 0 {
            self.released.notify_all();
        }
        times
    }

    /// The locks of a connection, and how often each was taken.
    pub(super) fn of(&self, connection: u64) -> Vec<(String, u64)> {
        let held = self.held.lock();
        let own = held.iter().filter(|(_, held)| held.owner == connection);
        own.map(|(name, held)| (name.to_string(), held.times)).collect()
    }

    /// The connection that holds a lock.
    pub(super) fn owner(&self, name: &str) -> Option<u64> {
        self.held.lock().get(name.to_lowercase().as_str()).map(|held| held.owner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    static ALIVE: AtomicBool = AtomicBool::new(false);
    static KILLED: AtomicBool = AtomicBool::new(true);
    const SOON: Patience<'_> =
        Patience { timeout: Some(Duration::from_millis(5)), cancelled: &ALIVE };
    const LATE: Patience<'_> =
        Patience { timeout: Some(Duration::from_secs(10)), cancelled: &ALIVE };

    fn only(connection: u32) -> ConnectionIds {
        ConnectionIds { first: connection, last: connection }
    }

    #[test]
    fn a_lock_is_taken_as_often_as_it_is_given_back() {
        let locks = UserLocks::default();
        assert_eq!(locks.take(1, "A", &SOON), LockAnswer::Granted);
        assert_eq!(locks.take(1, "a", &SOON), LockAnswer::Granted);
        assert_eq!(locks.take(2, "a", &SOON), LockAnswer::TimedOut);
        assert_eq!(locks.release(2, "a"), Some(false));
        assert_eq!(locks.release(1, "a"), Some(true));
        assert_eq!(locks.owner("a"), Some(1));
        assert_eq!(locks.release_all(only(1)), 1);
        assert_eq!(locks.release(1, "a"), None);
    }

    #[test]
    fn a_killed_waiter_and_a_circle_end() {
        let locks = UserLocks::default();
        locks.take(1, "a", &SOON);
        locks.take(2, "b", &SOON);
        let killed = Patience { timeout: None, cancelled: &KILLED };
        assert_eq!(locks.take(2, "a", &killed), LockAnswer::Killed);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| locks.take(1, "b", &LATE));
            while locks.waiting.lock().is_empty() {
                std::thread::yield_now();
            }
            let forever = Patience { timeout: None, cancelled: &ALIVE };
            assert_eq!(locks.take(2, "a", &forever), LockAnswer::Deadlock);
            locks.release_all(only(2));
            assert_eq!(other.join().unwrap(), LockAnswer::Granted);
        });
    }
}
