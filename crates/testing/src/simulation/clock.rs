//! The clock of a process. It may run fast or slow, and its time of day may jump; neither shows in
//! the true time, by which disks and links are slow.
//!
//! ```text
//!   true time          0 ms            1,000 ms
//!   +100,000 ppm       0 ms            1,100 ms     a wait for 1,100 ms ends here
//! ```

use std::time::Duration;

/// The time on a true clock at the beginning of a run: the year 2026.
const WALL_TIME_AT_START_MS: u64 = 1_767_225_600_000;
const MILLION: u128 = 1_000_000;

/// How the clock of a process differs from the true one. The default does not.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProcessClock {
    /// How much faster it runs, in parts per million. Above minus a million.
    pub(super) drift_ppm: i32,
    /// How far its time of day is ahead, besides.
    pub(super) ahead_ms: i64,
}

impl ProcessClock {
    fn rate(self) -> u128 {
        u128::try_from(1_000_000 + i64::from(self.drift_ppm)).expect("a clock goes forward")
    }

    /// What the clock shows at a true time since the beginning.
    pub(super) fn monotonic(self, now: Duration) -> Duration {
        nanoseconds(now.as_nanos() * self.rate() / MILLION)
    }

    /// How long the process really waits if it asks for `duration`: never shorter by its own clock.
    pub(super) fn true_wait(self, duration: Duration) -> Duration {
        if self.drift_ppm == 0 {
            return duration;
        }
        nanoseconds((duration.as_nanos() * MILLION).div_ceil(self.rate()) + 1)
    }

    pub(super) fn wall_time_ms(self, now: Duration) -> u64 {
        let elapsed = self.monotonic(now).as_millis() as u64;
        (WALL_TIME_AT_START_MS + elapsed).saturating_add_signed(self.ahead_ms)
    }
}

/// A duration that a multiplication may have made too long for the type.
fn nanoseconds(count: u128) -> Duration {
    u64::try_from(count).map_or(Duration::MAX, Duration::from_nanos)
}
