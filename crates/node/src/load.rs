//! How much a process does.

use std::num::NonZero;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::endpoint::Endpoint;

/// What a process has done since it started, and how many statements an endpoint has answered. The
/// figures only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// How long the process has had processors.
    pub processor: Duration,
    /// How many processors it can have at the same time.
    pub processors: u32,
    /// Statements that read.
    pub reads: u64,
    /// How long they took together, in microseconds.
    pub read_us: u64,
}

impl Endpoint {
    /// Adds up the counts of all sessions: not for every statement.
    #[must_use]
    pub fn load(&self) -> Load {
        let [reads, ..] = self.instance().totals().durations;
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Load {
            processor: processor_time(),
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            reads: reads.buckets.iter().sum(),
            read_us: reads.sum_us,
        }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
