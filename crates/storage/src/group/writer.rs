//! The engine's handle of a writer, and the way of a committer through it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::{LogError, LogSource, LogWriter, Room};
use firn_base::Lsn;
use firn_base::task::monotonic;

use super::driver::Shared;
use super::turn::{Worked, closed};
use super::writing::Writing;

/// How long a committer waits for a group before its own that is being copied.
const HOLE_RETRY: Duration = Duration::from_micros(100);

/// How long a writer that ends waits until its source has heard so.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The engine's handle of a writer.
pub(super) struct GroupWriter {
    shared: Arc<Shared>,
    writing: Arc<Writing>,
}

impl GroupWriter {
    /// Starts to take log from `source`.
    pub(super) fn start(
        shared: Arc<Shared>,
        writing: Arc<Writing>,
        source: Arc<dyn LogSource>,
    ) -> GroupWriter {
        writing.start(source);
        // It may have ended already, and the task may have seen it without a source.
        if writing.failure().is_some() {
            shared.core.lock().ended.push(Arc::clone(&writing));
            shared.work.notify_all();
        }
        GroupWriter { shared, writing }
    }

    /// A committer's own work, if the turn is free.
    fn work(&self) -> Option<Worked> {
        Some(self.shared.try_turn()?.work(false))
    }
}

impl LogWriter for GroupWriter {
    fn submit(&self, lsn: Lsn) {
        self.writing.submit(lsn);
        self.shared.work.notify_all();
    }

    fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        let writing = &*self.writing;
        writing.arrive(lsn);
        let deadline = monotonic().saturating_add(self.shared.options.patience);
        loop {
            let round = writing.rounds.of(lsn);
            let event = writing.rounds.event(round);
            let ticket = event.listen();
            if writing.durable() >= lsn {
                return Ok(());
            }
            if let Some(failure) = self.failure() {
                return Err(failure);
            }
            let left = deadline.saturating_sub(monotonic());
            if left.is_zero() {
                return Err(self.shared.unavailable());
            }
            if writing.rounds.of(lsn) != round {
                continue;
            }
            let worked = if writing.taken() < lsn { self.work() } else { None };
            let pause = match worked {
                Some(Worked::Something) => continue,
                // A group before its own is being copied, and nobody reports the end of that.
                Some(Worked::Nothing) if self.shared.may_propose() => left.min(HOLE_RETRY),
                // The holder of the turn, or the task, does the rest.
                _ => left,
            };
            event.wait(ticket, Some(pause));
        }
    }

    fn group_size(&self) -> u64 {
        self.writing.group_size()
    }

    /// See [`super::answering`].
    fn wait_or_leave(&self, lsn: Lsn) -> Result<bool, LogError> {
        let writing = &*self.writing;
        if self.shared.is_silent.load(Ordering::SeqCst) {
            return self.wait_durable(lsn).map(|()| true);
        }
        writing.arrive(lsn);
        loop {
            if writing.durable() >= lsn {
                return Ok(true);
            }
            if let Some(failure) = self.failure() {
                return Err(failure);
            }
            let is_taken = writing.taken() >= lsn;
            if is_taken || self.work() != Some(Worked::Something) {
                return Ok(false);
            }
        }
    }

    fn room(&self) -> Result<Room, LogError> {
        match self.failure() {
            Some(failure) => Err(failure),
            None => self.shared.room(),
        }
    }

    fn failure(&self) -> Option<LogError> {
        self.writing.failure().or_else(|| self.shared.failure.get()).cloned()
    }

    fn close(&self) {
        self.writing.close();
        self.shared.work.notify_all();
        let has_ended = || self.writing.has_ended();
        let patience = self.shared.options.patience;
        if !self.shared.advanced.wait_until(Some(patience), has_ended) {
            // No majority answers: what was submitted may become durable or not.
            self.end();
            self.shared.advanced.wait_until(Some(LAST_WORD), has_ended);
        }
    }
}

impl GroupWriter {
    fn end(&self) {
        self.shared.end_if_current(&self.writing, closed());
        self.shared.work.notify_all();
        self.shared.advanced.notify_all();
    }
}

impl Drop for GroupWriter {
    /// Does not wait for the task, which may itself drop the writer.
    fn drop(&mut self) {
        self.writing.let_go_of_source();
        self.end();
    }
}
