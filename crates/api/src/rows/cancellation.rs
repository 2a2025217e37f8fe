//! How a caller cancels a request to a node.
//!
//! A node in the same process polls the flag. A remote node registers a listener, which names the
//! call to cancel in a message.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Called when a caller cancels.
pub type CancelListener = Arc<dyn Fn() + Send + Sync>;

/// A caller's request to cancel what it waits for. It stays set until it is reset.
#[derive(Default)]
pub struct Cancellation {
    is_cancelled: Arc<AtomicBool>,
    listeners: Mutex<Vec<CancelListener>>,
    is_confirming: AtomicBool,
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation")
            .field("is_cancelled", &self.is_cancelled())
            .field("is_confirming", &self.is_confirming())
            .finish_non_exhaustive()
    }
}

impl Cancellation {
    /// Whether the caller has cancelled.
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// The flag itself, for code that polls it often.
    #[must_use]
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.is_cancelled
    }

    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        // A listener that registers after this look takes the lock after it, and sees the flag.
        let listeners = self.listeners.lock().clone();
        listeners.iter().for_each(|listener| listener());
    }

    /// Begins the next operation; `is_cancelled`: it ends at once.
    pub fn reset(&self, is_cancelled: bool) {
        self.is_cancelled.store(is_cancelled, Ordering::Relaxed);
    }

    /// Runs some work; `listener` is called if the caller cancels before or during it, on the
    /// thread that cancels.
    pub fn during<T>(&self, listener: CancelListener, work: impl FnOnce() -> T) -> T {
        self.listeners.lock().push(Arc::clone(&listener));
        if self.is_cancelled() {
            listener();
        }
        let done = work();
        self.listeners.lock().retain(|other| !Arc::ptr_eq(other, &listener));
        done
    }

    /// Runs the end of a transaction, whose outcome is decided as soon as its record is in the log.
    /// Ending the wait for that record would leave the outcome unknown, so it is not cancelled:
    /// the canceller sees [`Cancellation::is_confirming`] and ends the connection instead.
    #[inline]
    pub fn while_confirming<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_confirming.store(true, Ordering::Relaxed);
        let done = work();
        self.is_confirming.store(false, Ordering::Relaxed);
        done
    }

    /// Whether the end of a transaction waits for its confirmation.
    #[must_use]
    pub fn is_confirming(&self) -> bool {
        self.is_confirming.load(Ordering::Relaxed)
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
