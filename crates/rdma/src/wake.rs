//! What wakes the thread that drives a port: the port itself, or another thread.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

use crate::ucx::{Port, UcxError};

pub(crate) struct Waker {
    port: OwnedFd,
    calls: OwnedFd,
}

impl Waker {
    pub(crate) fn new(port: &mut Port) -> Result<Waker, UcxError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let failed = |error| UcxError::here("the worker cannot be waited for", &error);
        let calls = rustix::event::eventfd(0, flags).map_err(failed)?;
        Ok(Waker { port: port.descriptor()?, calls })
    }

    /// Ends the present or the next wait.
    pub(crate) fn wake(&self) {
        // It fails if billions of calls wait, of which one is enough.
        let _ = rustix::io::write(&self.calls, &1_u64.to_ne_bytes());
    }

    /// Waits until the port, which is armed, has something to do, or another thread has called.
    /// Returns early for a signal.
    pub(crate) fn wait(&self, timeout: Duration) {
        let limit = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut polled =
            [PollFd::new(&self.port, PollFlags::IN), PollFd::new(&self.calls, PollFlags::IN)];
        if rustix::event::poll(&mut polled, Some(&limit)).is_ok() && !polled[1].revents().is_empty()
        {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.calls, &mut count);
        }
    }
}
