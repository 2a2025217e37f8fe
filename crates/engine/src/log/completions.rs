//! Completions: listeners that are called when a commit becomes durable, instead of a thread that
//! waits for it.
//!
//! ```text
//!   when_durable(120, A)   when_durable(180, B)   when_durable(150, A)
//!   pending   120 A │ 150 A │ 180 B          complete(160) calls A once, for both, and leaves 180 B
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use firn_api::LogError;
use firn_base::Lsn;
use parking_lot::Mutex;

/// Is called when commits end whose completions it was given.
pub trait CommitListener: Send + Sync {
    /// The commits with these `tokens`, in the order of their positions in the log, are durable or
    /// never will be. One call covers the commits of one round of the log. Runs on a task of the
    /// log store: pass the result on and return.
    fn commits_ended(&self, tokens: &[u64], outcome: &Result<(), LogError>);
}

impl<F: Fn(u64, Result<(), LogError>) + Send + Sync> CommitListener for F {
    fn commits_ended(&self, tokens: &[u64], outcome: &Result<(), LogError>) {
        tokens.iter().for_each(|token| self(*token, outcome.clone()));
    }
}

/// A listener, and the token by which it knows the commit. It owns no memory: if one thread
/// allocates for each commit and another one frees, that costs both more than the call.
pub struct Completion {
    listener: Option<Arc<dyn CommitListener>>,
    token: u64,
}

impl Completion {
    /// Calls `listener` with `token`.
    pub fn new(listener: Arc<dyn CommitListener>, token: u64) -> Completion {
        Completion { listener: Some(listener), token }
    }

    /// Calls no listener. The commit becomes durable as soon as with one.
    pub(crate) fn nobody() -> Completion {
        Completion { listener: None, token: 0 }
    }

    /// Distinguishes listeners; 0: none.
    fn listener_address(&self) -> usize {
        self.listener.as_ref().map_or(0, |listener| Arc::as_ptr(listener).addr())
    }
}

struct Pending {
    lsn: Lsn,
    completion: Completion,
}

#[derive(Default)]
pub struct Completions {
    /// In the order of their positions, which is nearly the order of arrival.
    pending: Mutex<VecDeque<Pending>>,
    count: AtomicUsize,
}

impl Completions {
    /// Whether any completion is pending, due or not.
    pub fn is_pending(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Keeps `completion` until [`Completions::complete`] reaches `lsn`.
    pub fn push(&self, lsn: Lsn, completion: Completion) {
        let mut pending = self.pending.lock();
        let later = pending.iter().rev().take_while(|other| other.lsn > lsn).count();
        let place = pending.len() - later;
        pending.insert(place, Pending { lsn, completion });
        self.count.store(pending.len(), Ordering::SeqCst);
    }

    /// Calls the completions up to `durable`.
    pub fn complete(&self, durable: Lsn) {
        self.call_up_to(durable, &Ok(()));
    }

    /// Reports to all pending completions that nothing more will become durable (rule 4).
    pub fn fail(&self, error: &LogError) {
        self.call_up_to(Lsn::MAX, &Err(error.clone()));
    }

    /// Takes all due completions at once, so that threads that add some meanwhile do not wait for
    /// each call.
    fn call_up_to(&self, limit: Lsn, result: &Result<(), LogError>) {
        while self.is_pending() {
            let mut due = self.take_up_to(limit);
            if due.is_empty() {
                return;
            }
            // A stable sort: it keeps the order of each listener's commits.
            due.sort_by_key(|pending| pending.completion.listener_address());
            let same = |one: &Pending, other: &Pending| {
                one.completion.listener_address() == other.completion.listener_address()
            };
            due.chunk_by(same).for_each(|own| tell(own, result));
        }
    }

    fn take_up_to(&self, limit: Lsn) -> Vec<Pending> {
        let mut pending = self.pending.lock();
        let due = pending.partition_point(|pending| pending.lsn <= limit);
        self.count.store(pending.len() - due, Ordering::SeqCst);
        pending.drain(..due).collect()
    }
}

/// Calls the one listener of these completions.
fn tell(own: &[Pending], outcome: &Result<(), LogError>) {
    if let [Pending { completion: Completion { listener: Some(listener), .. }, .. }, ..] = own {
        let tokens: Vec<u64> = own.iter().map(|pending| pending.completion.token).collect();
        listener.commits_ended(&tokens, outcome);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<(Vec<u64>, bool)>>);

    impl CommitListener for Told {
        fn commits_ended(&self, tokens: &[u64], outcome: &Result<(), LogError>) {
            self.0.lock().push((tokens.to_vec(), outcome.is_ok()));
        }
    }

    #[test]
    fn each_listener_is_told_once_of_all_that_a_round_covers() {
        let (completions, one, other) = <(Completions, Arc<Told>, Arc<Told>)>::default();
        for (lsn, listener, token) in
            [(120, &one, 1), (180, &other, 2), (150, &one, 3), (170, &other, 4), (190, &one, 5)]
        {
            completions.push(Lsn(lsn), Completion::new(Arc::clone(listener) as _, token));
        }
        completions.push(Lsn(160), Completion::nobody());
        completions.complete(Lsn(119));
        assert!(one.0.lock().is_empty(), "nothing of it is durable");
        completions.complete(Lsn(180));
        assert_eq!(*one.0.lock(), [(vec![1, 3], true)]);
        assert_eq!(*other.0.lock(), [(vec![4, 2], true)], "in the order of the log");
        assert!(completions.is_pending());
        let error = LogError::Failed { place: "a disk".to_owned(), reason: "no sync".to_owned() };
        completions.fail(&error);
        assert_eq!(one.0.lock()[1..], [(vec![5], false)]);
        assert!(!completions.is_pending());
    }
}
