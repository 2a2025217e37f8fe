//! Time, injected into the process.

use std::time::Duration;

/// A source of time. The operating system's in production, the scheduler's under simulation.
pub trait Clock: Send + Sync {
    /// Time since an arbitrary fixed point. Never goes back.
    fn monotonic(&self) -> Duration;

    /// Milliseconds since the Unix epoch. Jumps when the clock is set.
    fn wall_time_ms(&self) -> u64;

    /// Microseconds since the Unix epoch, in the clock's resolution.
    fn wall_time_us(&self) -> u64 {
        self.wall_time_ms().saturating_mul(1000)
    }
}

/// The operating system's clocks.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    fn wall_time_ms(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    }

    fn wall_time_us(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
    }
}
