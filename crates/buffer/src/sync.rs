//! The primitives that the pool synchronises with: the machine's, or shuttle's when the pool is tested
//! under every order of steps (`--features shuttle`).

pub(crate) use imp::*;

#[cfg(not(feature = "shuttle"))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

    pub(crate) use firn_base::event::{Event, Ticket};
    pub(crate) use firn_base::task::yield_now;
    pub(crate) use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

    /// How often a latch is tried before its waiter sleeps.
    pub(crate) const SPINS: u32 = 40;

    /// Tells the processor that this is a spin.
    pub(crate) fn spin() {
        std::hint::spin_loop();
    }
}

#[cfg(feature = "shuttle")]
mod imp {
    use std::time::Duration;

    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
    pub(crate) use shuttle::thread::yield_now;

    pub(crate) const SPINS: u32 = 1;

    pub(crate) fn spin() {
        shuttle::thread::yield_now();
    }

    /// A mutex without poisoning.
    #[derive(Debug, Default)]
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

        pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read().ok()
        }

        pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }
    }

    /// An event count; a wait with a timeout gives up the turn once and is over.
    #[derive(Debug, Default)]
    pub(crate) struct Event {
        count: shuttle::sync::Mutex<u32>,
        moved: shuttle::sync::Condvar,
    }

    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Ticket(u32);

    impl Event {
        pub(crate) fn new() -> Event {
            Event::default()
        }

        pub(crate) fn listen(&self) -> Ticket {
            Ticket(*self.count.lock().expect("no panic"))
        }

        pub(crate) fn wait(&self, ticket: Ticket, timeout: Option<Duration>) -> bool {
            if timeout.is_some() {
                shuttle::thread::yield_now();
                return false;
            }
            let mut count = self.count.lock().expect("no panic");
            while *count == ticket.0 {
                count = self.moved.wait(count).expect("no panic");
            }
            true
        }

        pub(crate) fn wait_until(
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

        pub(crate) fn notify_all(&self) {
            *self.count.lock().expect("no panic") += 1;
            self.moved.notify_all();
        }
    }
}
