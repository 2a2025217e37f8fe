//! What went over a link, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Latencies are counted by powers of two of microseconds; the last bucket has all longer ones.
pub const LATENCY_BUCKETS: usize = 26;

/// Counters that many threads write.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    pub(crate) bytes_sent: AtomicU64,
    pub(crate) bytes_received: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) items_sent: AtomicU64,
    pub(crate) calls: AtomicU64,
    pub(crate) casts: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) connections: AtomicU64,
    latency_us: AtomicU64,
    latencies: [AtomicU64; LATENCY_BUCKETS],
}

/// Counters since the link was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Without the network's frames.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Messages that were handed to the network; each has one item or several.
    pub writes: u64,
    pub items_sent: u64,
    /// Calls that were answered; of a server, calls and casts that were executed.
    pub calls: u64,
    pub casts: u64,
    /// Calls without a reply.
    pub failures: u64,
    /// Connections that both sides agreed on: reconnections and one.
    pub connections: u64,
    /// The sum over all answered calls.
    pub latency: Duration,
    /// Bucket `n` counts calls of less than 2^n microseconds that no lower bucket counts.
    pub latencies: [u64; LATENCY_BUCKETS],
}

impl Statistics {
    pub(crate) fn add(counter: &AtomicU64, number: usize) {
        counter.fetch_add(number as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_call(&self, latency: Duration) {
        let micros = latency.as_micros() as u64;
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        Statistics::add(&self.calls, 1);
        self.latency_us.fetch_add(micros, Ordering::Relaxed);
        Statistics::add(&self.latencies[bucket.min(LATENCY_BUCKETS - 1)], 1);
    }

    pub(crate) fn read(&self) -> LinkStatistics {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LinkStatistics {
            bytes_sent: of(&self.bytes_sent),
            bytes_received: of(&self.bytes_received),
            writes: of(&self.writes),
            items_sent: of(&self.items_sent),
            calls: of(&self.calls),
            casts: of(&self.casts),
            failures: of(&self.failures),
            connections: of(&self.connections),
            latency: Duration::from_micros(of(&self.latency_us)),
            latencies: std::array::from_fn(|bucket| of(&self.latencies[bucket])),
        }
    }
}
