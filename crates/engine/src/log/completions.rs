//! Commits that were handed over instead of waited for: what is called once they are durable.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use firn_api::LogError;
use firn_base::Lsn;
use parking_lot::Mutex;

/// Called once the position is durable, or never will be. Runs on the log writer's task: hand over and
/// return.
pub type Completion = Box<dyn FnOnce(Result<(), LogError>) + Send>;

struct Pending {
    lsn: Lsn,
    completion: Completion,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Pending) -> bool {
        self.lsn == other.lsn
    }
}
impl Eq for Pending {}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        self.lsn.cmp(&other.lsn)
    }
}

/// See the module's page.
#[derive(Default)]
pub struct Completions {
    pending: Mutex<BinaryHeap<Reverse<Pending>>>,
    count: AtomicUsize,
    /// The greatest position of all that were ever kept.
    wanted: AtomicU64,
}

impl Completions {
    /// Whether there are any, be they due or not.
    pub fn is_pending(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Whether there is one for what is durable.
    pub fn is_due(&self, durable: Lsn) -> bool {
        self.is_pending() && self.pending.lock().peek().is_some_and(|first| first.0.lsn <= durable)
    }

    /// The greatest position that a completion has waited for.
    pub fn wanted_lsn(&self) -> Lsn {
        Lsn(self.wanted.load(Ordering::SeqCst))
    }

    /// Keeps `completion` until [`Completions::complete`] reaches `lsn`.
    pub fn push(&self, lsn: Lsn, completion: Completion) {
        self.wanted.fetch_max(lsn.0, Ordering::SeqCst);
        let mut pending = self.pending.lock();
        pending.push(Reverse(Pending { lsn, completion }));
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

    fn call_up_to(&self, limit: Lsn, result: &Result<(), LogError>) {
        while self.is_pending()
            && let Some(completion) = self.pop(limit)
        {
            completion(result.clone());
        }
    }

    fn pop(&self, limit: Lsn) -> Option<Completion> {
        let mut pending = self.pending.lock();
        if pending.peek()?.0.lsn > limit {
            return None;
        }
        let Reverse(next) = pending.pop()?;
        self.count.store(pending.len(), Ordering::SeqCst);
        Some(next.completion)
    }
}
