//! The running calls, so that others can cancel them (M2 of the crate).
//!
//! ```text
//!   call 7 begins ── runs ── ends        cancel 7 before: the call ends at once
//!                      ▲                 cancel 7 after:  nothing happens
//!                  cancel 7
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use firn_api::rows::Cancellation;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::message::CallNumber;

/// How many cancellations are kept for calls that have not arrived. A cancellation that arrives
/// after its call has ended stays until this many younger ones have come.
const EARLY: usize = 1024;

/// The running calls of one client.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    running: FxHashMap<CallNumber, Arc<Cancellation>>,
    /// Calls that were cancelled before they began.
    early: BTreeSet<CallNumber>,
}

/// A running call, until this is dropped.
pub(super) struct RunningCall<'a> {
    calls: &'a RunningCalls,
    number: CallNumber,
}

impl RunningCalls {
    /// Registers a call; its object learns of a cancellation through `cancellation`.
    pub(super) fn begin(
        &self,
        number: CallNumber,
        cancellation: &Arc<Cancellation>,
    ) -> RunningCall<'_> {
        let mut calls = self.0.lock();
        cancellation.reset(calls.early.remove(&number));
        calls.running.insert(number, Arc::clone(cancellation));
        RunningCall { calls: self, number }
    }

    pub(super) fn cancel(&self, number: CallNumber) {
        let mut calls = self.0.lock();
        if let Some(cancellation) = calls.running.get(&number) {
            cancellation.cancel();
            return;
        }
        calls.early.insert(number);
        if calls.early.len() > EARLY {
            calls.early.pop_first();
        }
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().running.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_reaches_its_call_and_no_other() {
        let calls = RunningCalls::default();
        let cancellation = Arc::default();
        calls.cancel(CallNumber(1));
        drop(calls.begin(CallNumber(2), &cancellation));
        assert!(!cancellation.is_cancelled());
        let first = calls.begin(CallNumber(1), &cancellation);
        assert!(cancellation.is_cancelled(), "the wish came first");
        drop(first);
        let third = calls.begin(CallNumber(3), &cancellation);
        assert!(!cancellation.is_cancelled(), "the wish was for another call");
        calls.cancel(CallNumber(3));
        assert!(cancellation.is_cancelled());
        drop(third);
    }

    #[test]
    fn wishes_that_came_too_late_are_forgotten() {
        let calls = RunningCalls::default();
        (0..2 * EARLY as u64).for_each(|number| calls.cancel(CallNumber(number)));
        assert_eq!(calls.0.lock().early.len(), EARLY);
    }
}
