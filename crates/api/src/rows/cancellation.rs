//! How a caller ends what it has asked of a node.
//!
//! A node in the same process looks at the flag. One that is reached by messages listens, and names the
//! call that is to end in a message.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// What is to happen when a caller wants an end.
pub type CancelListener = Arc<dyn Fn() + Send + Sync>;

/// A caller's wish to end what it is waiting for. It lasts until it is reset.
#[derive(Default)]
pub struct Cancellation {
    is_cancelled: Arc<AtomicBool>,
    listeners: Mutex<Vec<CancelListener>>,
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation")
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl Cancellation {
    /// Whether an end is wanted.
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// The flag itself, for those who look at it often.
    #[must_use]
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.is_cancelled
    }

    /// Asks for an end.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        // Whoever begins to listen after this look takes the lock after it, and sees the flag.
        let listeners = self.listeners.lock().clone();
        listeners.iter().for_each(|listener| listener());
    }

    /// The next operation begins; `is_cancelled`: it is to end at once.
    pub fn reset(&self, is_cancelled: bool) {
        self.is_cancelled.store(is_cancelled, Ordering::Relaxed);
    }

    /// Does some work; `listener` is called if an end is wanted before or during it, on the thread of
    /// whoever wants it.
    pub fn during<T>(&self, listener: CancelListener, work: impl FnOnce() -> T) -> T {
        self.listeners.lock().push(Arc::clone(&listener));
        if self.is_cancelled() {
            listener();
        }
        let done = work();
        self.listeners.lock().retain(|other| !Arc::ptr_eq(other, &listener));
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_listener_hears_of_an_end_before_and_during_the_work_only() {
        let cancellation = Cancellation::default();
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let listener: CancelListener = Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        cancellation.during(Arc::clone(&listener), || ());
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        cancellation.during(Arc::clone(&listener), || cancellation.cancel());
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        cancellation.during(Arc::clone(&listener), || ());
        assert_eq!(calls.load(Ordering::Relaxed), 2, "the wish lasts");
        cancellation.cancel();
        cancellation.reset(false);
        cancellation.during(listener, || ());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
