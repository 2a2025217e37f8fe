//! User-level locks: `GET_LOCK` and its family.
//!
//! Rule: the mutex is held for a look at the table, never while anybody waits.

use std::time::Duration;

use firn_base::event::Event;
use firn_sql::types::session_facts::LockAnswer;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Who has a lock, and how often it was taken.
#[derive(Debug, Clone, Copy)]
struct Held {
    owner: u64,
    times: u64,
}

/// All user-level locks of a server.
#[derive(Debug, Default)]
pub struct UserLocks {
    held: Mutex<FxHashMap<Box<str>, Held>>,
    /// For whom each waiting connection waits.
    waiting: Mutex<FxHashMap<u64, Box<str>>>,
    released: Event,
}

impl UserLocks {
    /// Takes a lock for a connection, which may have it already. `is_killed` is looked at every now and
    /// then. Blocks.
    pub fn get(
        &self,
        connection: u64,
        name: &str,
        timeout: Option<Duration>,
        is_killed: &dyn Fn() -> bool,
    ) -> LockAnswer {
        let name: Box<str> = name.to_lowercase().into();
        if self.try_take(connection, &name) {
            return LockAnswer::Granted;
        }
        self.waiting.lock().insert(connection, name.clone());
        let answer = self.wait(connection, &name, timeout, is_killed);
        self.waiting.lock().remove(&connection);
        answer
    }

    fn wait(
        &self,
        connection: u64,
        name: &str,
        timeout: Option<Duration>,
        is_killed: &dyn Fn() -> bool,
    ) -> LockAnswer {
        let mut left = timeout;
        loop {
            if self.is_in_circle(connection, name) {
                return LockAnswer::Deadlock;
            }
            let slice = left.map_or(LOOK_INTERVAL, |left| left.min(LOOK_INTERVAL));
            if self.released.wait_until(Some(slice), || self.try_take(connection, name)) {
                return LockAnswer::Granted;
            }
            if is_killed() {
                return LockAnswer::Killed;
            }
            left = left.map(|left| left.saturating_sub(slice));
            if left == Some(Duration::ZERO) {
                return LockAnswer::TimedOut;
            }
        }
    }

    fn try_take(&self, connection: u64, name: &str) -> bool {
        let mut held = self.held.lock();
        let entry = held.entry(name.into()).or_insert(Held { owner: connection, times: 0 });
        let is_mine = entry.owner == connection;
        entry.times += u64::from(is_mine);
        is_mine
    }

    /// Whether the owner of a lock waits, perhaps through others, for a lock of this connection.
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

    /// Gives a lock back once: `None` if nobody has it, false if another connection has it.
    pub fn release(&self, connection: u64, name: &str) -> Option<bool> {
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

    /// Gives all locks of a connection back; how often they had been taken in all.
    pub fn release_all(&self, connection: u64) -> u64 {
        let mut times = 0;
        self.held.lock().retain(|_, held| {
            let is_mine = held.owner == connection;
            times += if is_mine { held.times } else { 0 };
            !is_mine
        });
        if times > 0 {
            self.released.notify_all();
        }
        times
    }

    /// Who has a lock.
    #[must_use]
    pub fn owner(&self, name: &str) -> Option<u64> {
        self.held.lock().get(name.to_lowercase().as_str()).map(|held| held.owner)
    }
}

/// How often a waiter looks whether it was killed.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Option<Duration> = Some(Duration::from_millis(5));

    #[test]
    fn a_lock_is_taken_as_often_as_it_is_given_back() {
        let locks = UserLocks::default();
        let alive = || false;
        assert_eq!(locks.get(1, "A", SOON, &alive), LockAnswer::Granted);
        assert_eq!(locks.get(1, "a", SOON, &alive), LockAnswer::Granted);
        assert_eq!(locks.get(2, "a", SOON, &alive), LockAnswer::TimedOut);
        assert_eq!(locks.release(2, "a"), Some(false));
        assert_eq!(locks.release(1, "a"), Some(true));
        assert_eq!(locks.owner("a"), Some(1));
        assert_eq!(locks.release_all(1), 1);
        assert_eq!(locks.release(1, "a"), None);
    }

    #[test]
    fn a_killed_waiter_and_a_circle_end() {
        let locks = UserLocks::default();
        locks.get(1, "a", SOON, &|| false);
        locks.get(2, "b", SOON, &|| false);
        assert_eq!(locks.get(2, "a", None, &|| true), LockAnswer::Killed);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| locks.get(1, "b", Some(Duration::from_secs(10)), &|| false));
            while locks.waiting.lock().is_empty() {
                std::thread::yield_now();
            }
            assert_eq!(locks.get(2, "a", None, &|| false), LockAnswer::Deadlock);
            locks.release_all(2);
            assert_eq!(other.join().unwrap(), LockAnswer::Granted);
        });
    }
}
