//! The primitives that lock-free parts and the lock manager synchronise with: the machine's, or shuttle's
//! when they are tested under many orders of steps (`--features shuttle`).

pub(crate) use imp::*;

#[cfg(not(feature = "shuttle"))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

    pub(crate) use firn_base::event::Event;
    pub(crate) use firn_base::task::yield_now;
    pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

    /// Waits a moment for another thread that is in the middle of a few instructions.
    pub(crate) fn spin() {
        std::hint::spin_loop();
    }
}

#[cfg(feature = "shuttle")]
mod imp {
    use std::time::Duration;

    pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
    pub(crate) use shuttle::thread::yield_now;

    pub(crate) fn spin() {
        yield_now();
    }

    /// A mutex without poisoning.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no panic under the mutex")
        }
    }

    /// A read-write lock without poisoning.
    #[derive(Debug)]
    pub(crate) struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> RwLock<T> {
            RwLock(shuttle::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("no panic under the lock")
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no panic under the lock")
        }
    }

    /// An event count; a wait with a timeout gives up the turn once and is over.
    #[derive(Debug)]
    pub(crate) struct Event {
        count: Mutex<u32>,
        moved: shuttle::sync::Condvar,
    }

    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Ticket(u32);

    impl Event {
        pub(crate) fn new() -> Event {
            Event { count: Mutex::new(0), moved: shuttle::sync::Condvar::new() }
        }

        pub(crate) fn listen(&self) -> Ticket {
            Ticket(*self.count.lock())
        }

        pub(crate) fn wait(&self, ticket: Ticket, timeout: Option<Duration>) -> bool {
            if timeout.is_some() {
                shuttle::thread::yield_now();
                return false;
            }
            let mut count = self.count.lock();
            while *count == ticket.0 {
                count = self.moved.wait(count).expect("no panic under the mutex");
            }
            true
        }

        pub(crate) fn notify_all(&self) {
            *self.count.lock() += 1;
            self.moved.notify_all();
        }
    }
}
