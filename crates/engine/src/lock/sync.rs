//! The primitives that the lock manager synchronises with: the machine's, or shuttle's when it is tested
//! under many orders of steps (`--features shuttle`).

pub(super) use imp::*;

#[cfg(not(feature = "shuttle"))]
mod imp {
    pub(in super::super) use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    pub(in super::super) use firn_base::event::Event;
    pub(in super::super) use parking_lot::{
        Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    };
}

#[cfg(feature = "shuttle")]
mod imp {
    use std::time::Duration;

    pub(in super::super) use shuttle::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    pub(in super::super) use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    /// A mutex without poisoning.
    #[derive(Debug)]
    pub(in super::super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(in super::super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no panic under the mutex")
        }
    }

    /// A read-write lock without poisoning.
    #[derive(Debug)]
    pub(in super::super) struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(in super::super) fn new(value: T) -> RwLock<T> {
            RwLock(shuttle::sync::RwLock::new(value))
        }

        pub(in super::super) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("no panic under the lock")
        }

        pub(in super::super) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no panic under the lock")
        }
    }

    /// An event count; a wait with a timeout gives up the turn once and is over.
    #[derive(Debug)]
    pub(in super::super) struct Event {
        count: Mutex<u32>,
        moved: shuttle::sync::Condvar,
    }

    #[derive(Debug, Clone, Copy)]
    pub(in super::super) struct Ticket(u32);

    impl Event {
        pub(in super::super) fn new() -> Event {
            Event { count: Mutex::new(0), moved: shuttle::sync::Condvar::new() }
        }

        pub(in super::super) fn listen(&self) -> Ticket {
            Ticket(*self.count.lock())
        }

        pub(in super::super) fn wait(&self, ticket: Ticket, timeout: Option<Duration>) -> bool {
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

        pub(in super::super) fn notify_all(&self) {
            *self.count.lock() += 1;
            self.moved.notify_all();
        }
    }
}
