//! The primitives of lock-free parts and short mutexes, in two versions: the machine's, and
//! shuttle's, under which tests explore the orders of steps.
//!
//! ```text
//!   crate::sync  ──►  machine   always there
//!                └─►  explored  with the feature `shuttle`, for `cargo test --features shuttle` only
//! ```
//!
//! Each crate chooses a version by its own feature: Cargo unifies features, so all crates of a
//! build see the same features of this crate.

/// The machine's.
pub mod machine {
    pub use std::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };

    pub use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

    pub use crate::event::{Event, Ticket};
    pub use crate::task::yield_now;

    /// Waits a moment for a thread that is within a few instructions of the awaited state.
    #[inline]
    pub fn spin() {
        std::hint::spin_loop();
    }
}

/// Shuttle's.
#[cfg(feature = "shuttle")]
pub mod explored {
    use std::time::Duration;

    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };
    pub use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
    pub use shuttle::thread::yield_now;

    pub fn spin() {
        yield_now();
    }

    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no panic under the mutex")
        }
    }

    /// A read-write lock without poisoning.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub fn new(value: T) -> RwLock<T> {
            RwLock(shuttle::sync::RwLock::new(value))
        }

        /// Waits until there is no writer.
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("no panic under the lock")
        }

        /// Waits until there is no reader and no other writer.
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no panic under the lock")
        }

        /// Does not wait; `None` if there is a writer.
        pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read().ok()
        }

        /// Does not wait; `None` if there is a reader or a writer.
        pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }
    }

    /// An event count. A wait with a timeout yields its turn once and then ends.
    #[derive(Debug, Default)]
    pub struct Event {
        count: Mutex<u32>,
        moved: shuttle::sync::Condvar,
    }

    /// The count when the waiter took the ticket.
    #[derive(Debug, Clone, Copy)]
    pub struct Ticket(u32);

    impl Event {
        pub fn new() -> Event {
            Event::default()
        }

        pub fn listen(&self) -> Ticket {
            Ticket(*self.count.lock())
        }

        pub fn wait(&self, ticket: Ticket, timeout: Option<Duration>) -> bool {
            if timeout.is_some() {
                yield_now();
                return false;
            }
            let mut count = self.count.lock();
            while *count == ticket.0 {
                count = self.moved.wait(count).expect("no panic under the mutex");
            }
            true
        }

        pub fn wait_until(
            &self,
            timeout: Option<Duration>,
            mut condition: impl FnMut() -> bool,
        ) -> bool {
            loop {
                let ticket = self.listen();
                if condition() {
                    return true;
                }
                if !self.wait(ticket, timeout) {
                    return condition();
                }
            }
        }

        pub fn notify_all(&self) {
            *self.count.lock() += 1;
            self.moved.notify_all();
        }

        pub fn notify_one(&self) {
            *self.count.lock() += 1;
            self.moved.notify_one();
        }
    }
}
