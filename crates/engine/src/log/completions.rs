//! Commits that were handed over instead of waited for: who is told once they are durable.
//!
//! ```text
//!   when_durable(120, A)   when_durable(180, B)   when_durable(150, A)
//!   pending   120 A │ 150 A │ 180 B          complete(160) tells A once, of both, and leaves 180 B
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use firn_api::LogError;
use firn_base::Lsn;
use parking_lot::Mutex;

/// Is told how commits have ended that were handed over to it.
pub trait CommitListener: Send + Sync {
    /// The commits that were handed over with these `tokens`, in the order of their positions in
    /// the log, are durable, or never will be: those of one round of the log together. Runs on a
    /// task of the log store: hand over and return.
    fn commits_ended(&self, tokens: &[u64], outcome: &Result<(), LogError>);
}

impl<F: Fn(u64, Result<(), LogError>) + Send + Sync> CommitListener for F {
    /// Calls for each.
    fn commits_ended(&self, tokens: &[u64], outcome: &Result<(), LogError>) {
        tokens.iter().for_each(|token| self(*token, outcome.clone()));
    }
}

/// Who is told of a commit, and by which token the commit is known there. Takes no memory of its
/// own: what one thread allocates for each commit and another one frees costs both of them more
/// than the call.
pub struct Completion {
    listener: Option<Arc<dyn CommitListener>>,
    token: u64,
}

impl Completion {
    /// `listener` is told, with `token`.
    pub fn new(listener: Arc<dyn CommitListener>, token: u64) -> Completion {
        Completion { listener: Some(listener), token }
    }

    /// Nobody is told; the commit is made durable as soon as if somebody were.
    pub(crate) fn nobody() -> Completion {
        Completion { listener: None, token: 0 }
    }

    /// What tells listeners from each other; nobody is 0.
    fn listener_address(&self) -> usize {
        self.listener.as_ref().map_or(0, |listener| Arc::as_ptr(listener).addr())
    }
}

struct Pending {
    lsn: Lsn,
    completion: Completion,
}

/// See the module's page.
#[derive(Default)]
pub struct Completions {
    /// In the order of their positions, which is nearly the order in which they come.
    pending: Mutex<VecDeque<Pending>>,
    count: AtomicUsize,
}

impl Completions {
    /// Whether there are any, be they due or not.
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

    /// Calls those that are durable.
    pub fn complete(&self, durable: Lsn) {
        self.call_up_to(durable, &Ok(()));
    }

    /// Tells all that are left that nothing more will be durable (rule 4).
    pub fn fail(&self, error: &LogError) {
        self.call_up_to(Lsn::MAX, &Err(error.clone()));
    }

    /// Takes all at once: those who hand over more meanwhile are not to wait for each call.
    fn call_up_to(&self, limit: Lsn, result: &Result<(), LogError>) {
        while self.is_pending() {
            let mut due = self.take_up_to(limit);
            if due.is_empty() {
                return;
            }
            // Keeps the order of each listener's own.
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

/// Tells the listener of all these, who is one.
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
