//! Who waits for the log to become durable: threads that block, and completions that are called.
//!
//! Threads wait on one of several events, chosen by the position that they wait for, so that a sync wakes
//! those whose groups it covered, with one call for many of them, and leaves the others asleep.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use firn_api::LogError;
use firn_base::Lsn;
use firn_base::event::Event;
use parking_lot::Mutex;

const EVENTS: u64 = 64;
/// Neighbouring groups share an event: about one commit's worth of log.
const BYTES_PER_EVENT: u64 = 256;

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
pub struct Committers {
    events: Box<[Event]>,
    completions: Mutex<BinaryHeap<Reverse<Pending>>>,
}

impl Default for Committers {
    fn default() -> Committers {
        Committers::new()
    }
}

impl Committers {
    /// Nobody waits.
    #[must_use]
    pub fn new() -> Committers {
        Committers {
            events: (0..EVENTS).map(|_| Event::new()).collect(),
            completions: Mutex::new(BinaryHeap::new()),
        }
    }

    /// The event to wait on for `lsn`.
    pub fn event(&self, lsn: Lsn) -> &Event {
        &self.events[(lsn.0 / BYTES_PER_EVENT % EVENTS) as usize]
    }

    /// Keeps `completion` until [`Committers::notify`] passes `lsn`.
    pub fn push(&self, lsn: Lsn, completion: Completion) {
        self.completions.lock().push(Reverse(Pending { lsn, completion }));
    }

    /// Wakes whoever waits for a position in `(before, durable]`.
    pub fn notify(&self, before: Lsn, durable: Lsn) {
        let (first, last) = (before.0 / BYTES_PER_EVENT, durable.0 / BYTES_PER_EVENT);
        for event in first..=last.min(first + EVENTS - 1) {
            self.events[(event % EVENTS) as usize].notify_all();
        }
        self.complete(durable, &Ok(()));
    }

    /// Tells everybody that nothing more will be durable (rule 4).
    pub fn fail(&self, error: &LogError) {
        for event in &self.events {
            event.notify_all();
        }
        self.complete(Lsn::MAX, &Err(error.clone()));
    }

    fn complete(&self, durable: Lsn, result: &Result<(), LogError>) {
        loop {
            let next = {
                let mut completions = self.completions.lock();
                match completions.peek() {
                    Some(Reverse(pending)) if pending.lsn <= durable => completions.pop(),
                    _ => None,
                }
            };
            let Some(Reverse(pending)) = next else { return };
            (pending.completion)(result.clone());
        }
    }
}
