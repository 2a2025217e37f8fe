//! Commits whose threads have left: the listeners that get the outcomes.
//!
//! ```text
//!   push(120, A)   push(180, B)   push(150, C)
//!   waiting   120 A │ 150 C │ 180 B          answer(160) calls A and C, and leaves B
//! ```
//!
//! [`super::completions`] serves few threads with many commits each. Here, each commit has its own
//! listener, and a listener has one commit at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::LogError;
use firn_api::rows::{CommitListener, RowsResult};
use firn_base::Lsn;
use parking_lot::Mutex;

use crate::error::EngineError;

/// How many listeners a thread takes at a time. Others that have waited for the same round take the
/// next ones.
const TAKEN_AT_ONCE: usize = 4;

struct Left {
    lsn: Lsn,
    listener: Arc<dyn CommitListener>,
}

/// See the module documentation.
#[derive(Default)]
pub(super) struct LeftCommits {
    /// In the order of their positions, which is nearly the order of arrival.
    waiting: Mutex<VecDeque<Left>>,
    /// The position of the last one; 0 if there is none.
    last: AtomicU64,
}

impl LeftCommits {
    /// The highest position; 0 if no commit is left.
    pub(super) fn last(&self) -> Lsn {
        Lsn(self.last.load(Ordering::SeqCst))
    }

    /// Keeps `listener` until [`LeftCommits::answer`] reaches `lsn`.
    pub(super) fn push(&self, lsn: Lsn, listener: &Arc<dyn CommitListener>) {
        let mut waiting = self.waiting.lock();
        let later = waiting.iter().rev().take_while(|other| other.lsn > lsn).count();
        let place = waiting.len() - later;
        waiting.insert(place, Left { lsn, listener: Arc::clone(listener) });
        self.note_last(&waiting);
    }

    /// Takes the listener back. False if it was called, or is being called.
    pub(super) fn withdraw(&self, lsn: Lsn, listener: &Arc<dyn CommitListener>) -> bool {
        let mut waiting = self.waiting.lock();
        let first = waiting.partition_point(|left| left.lsn < lsn);
        let same = |left: &Left| left.lsn == lsn && Arc::ptr_eq(&left.listener, listener);
        let Some(at) = waiting.iter().skip(first).position(same) else { return false };
        let removed = waiting.remove(first + at);
        self.note_last(&waiting);
        removed.is_some()
    }

    /// Reports to the listeners up to `durable` that their commits are durable.
    pub(super) fn answer(&self, durable: Lsn) {
        self.call_up_to(durable, || Ok(()));
    }

    /// Reports to all listeners that the log does not confirm their commits.
    pub(super) fn fail(&self, error: &LogError) {
        self.call_up_to(Lsn::MAX, || Err(EngineError::OutcomeUnknown(error.clone()).into()));
    }

    fn call_up_to(&self, limit: Lsn, outcome: impl Fn() -> RowsResult<()>) {
        while self.last().0 > 0 {
            let due = self.take_up_to(limit);
            if due.iter().all(Option::is_none) {
                return;
            }
            due.into_iter().flatten().for_each(|left| left.listener.commit_ended(outcome()));
        }
    }

    fn take_up_to(&self, limit: Lsn) -> [Option<Left>; TAKEN_AT_ONCE] {
        let mut waiting = self.waiting.lock();
        let due = std::array::from_fn(|_| waiting.pop_front_if(|left| left.lsn <= limit));
        self.note_last(&waiting);
        due
    }

    fn note_last(&self, waiting: &VecDeque<Left>) {
        self.last.store(waiting.back().map_or(0, |left| left.lsn.0), Ordering::SeqCst);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// The outcomes that one listener got.
    #[derive(Default)]
    struct Told(Mutex<Vec<bool>>);

    impl CommitListener for Told {
        fn commit_ended(&self, outcome: RowsResult<()>) {
            self.0.lock().push(outcome.is_ok());
        }
    }

    fn failed() -> LogError {
        LogError::Failed { place: "a disk".to_owned(), reason: "no sync".to_owned() }
    }

    #[test]
    fn each_listener_hears_once_what_became_of_its_commit() {
        let left = LeftCommits::default();
        let told: [Arc<Told>; 7] = Default::default();
        let listener = |place: usize| Arc::clone(&told[place]) as Arc<dyn CommitListener>;
        for (place, lsn) in [120, 180, 150, 170, 190, 160, 165].into_iter().enumerate() {
            left.push(Lsn(lsn), &listener(place));
        }
        assert_eq!(left.last(), Lsn(190));
        left.answer(Lsn(119));
        assert!(told.iter().all(|one| one.0.lock().is_empty()), "nothing of it is durable");
        assert!(!left.withdraw(Lsn(170), &listener(0)), "another one is there");
        assert!(left.withdraw(Lsn(170), &listener(3)));
        left.answer(Lsn(180));
        assert!(!left.withdraw(Lsn(120), &listener(0)), "it was called");
        assert_eq!(left.last(), Lsn(190));
        left.fail(&failed());
        assert_eq!(left.last(), Lsn(0));
        let heard = told.each_ref().map(|one| one.0.lock().clone());
        let (yes, no, none) = (vec![true], vec![false], vec![]);
        assert_eq!(heard, [&yes, &yes, &yes, &none, &no, &yes, &yes].map(Clone::clone));
    }
}
