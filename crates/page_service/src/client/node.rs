//! What this process knows of a page node: how fast it answers, and whether to avoid it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::network::NodeId;
use firn_link::Caller;
use parking_lot::Mutex;

/// Answers that are remembered.
const REMEMBERED: usize = 64;
/// Answers after which the quantile is computed again.
const FRESH: usize = 8;
/// For how long a node is avoided after it was slow or failed once; doubles with each time in a
/// row.
const LEAST_AVOIDANCE: Duration = Duration::from_millis(50);
const MOST_AVOIDANCE: Duration = Duration::from_secs(2);

pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) caller: Arc<Caller>,
    /// Latch rule 1: the mutex is a leaf.
    latencies: Mutex<Latencies>,
    /// The clock's microseconds until which other nodes are asked first.
    avoided_until_us: AtomicU64,
    /// Times in a row that the node was slow or failed.
    failures: AtomicU32,
}

/// The last answers' times in microseconds.
#[derive(Default)]
struct Latencies {
    recent_us: Vec<u32>,
    next: usize,
    /// Nine of ten are at most this; of no answers, none.
    usual_us: Option<u32>,
}

impl Latencies {
    fn note(&mut self, took: Duration) {
        let took_us = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        match self.recent_us.get_mut(self.next) {
            Some(place) => *place = took_us,
            None => self.recent_us.push(took_us),
        }
        self.next = (self.next + 1) % REMEMBERED;
        if self.recent_us.len() < FRESH || self.next.is_multiple_of(FRESH) {
            let mut sorted = self.recent_us.clone();
            sorted.sort_unstable();
            self.usual_us = Some(sorted[sorted.len() * 9 / 10]);
        }
    }
}

impl Node {
    pub(super) fn new(id: NodeId, caller: Arc<Caller>) -> Node {
        Node {
            id,
            caller,
            latencies: Mutex::default(),
            avoided_until_us: AtomicU64::new(0),
            failures: AtomicU32::new(0),
        }
    }

    /// How the node is called in errors.
    pub(super) fn name(&self) -> String {
        match self.caller.peer() {
            Some(identity) => format!("page node {} ({})", self.id, identity.name),
            None => format!("page node {}", self.id),
        }
    }

    /// Until then, nodes that are avoided for a shorter time are asked first.
    pub(super) fn avoided_until(&self) -> Duration {
        Duration::from_micros(self.avoided_until_us.load(Ordering::Relaxed))
    }

    /// The time that nine of ten recent answers took at most; `None` if there were none.
    pub(super) fn usual_latency(&self) -> Option<Duration> {
        let usual_us = self.latencies.lock().usual_us?;
        Some(Duration::from_micros(u64::from(usual_us)))
    }

    /// It answered without having waited for log.
    pub(super) fn note_answer(&self, took: Duration) {
        self.latencies.lock().note(took);
        self.failures.store(0, Ordering::Relaxed);
    }

    /// It failed, or another node was faster by far.
    pub(super) fn note_failure(&self, now: Duration) {
        // Several failures at a time count as one.
        let before = match self.avoided_until() > now {
            true => self.failures.load(Ordering::Relaxed).saturating_sub(1),
            false => self.failures.fetch_add(1, Ordering::Relaxed),
        };
        let avoidance = (LEAST_AVOIDANCE * (1 << before.min(6))).min(MOST_AVOIDANCE);
        let until = (now + avoidance).as_micros() as u64;
        self.avoided_until_us.fetch_max(until, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_latency_is_that_of_nine_of_ten() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.usual_us, None);
        (1..=REMEMBERED as u64).for_each(|us| latencies.note(Duration::from_micros(us)));
        assert_eq!(latencies.usual_us, Some(58));
        (0..REMEMBERED).for_each(|_| latencies.note(Duration::from_millis(7)));
        assert_eq!(latencies.usual_us, Some(7000), "older answers are forgotten");
        latencies.note(Duration::MAX);
        assert_eq!(latencies.recent_us.len(), REMEMBERED);
    }
}
