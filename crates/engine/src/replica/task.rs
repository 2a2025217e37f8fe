//! The task of a replica: it follows the log, and looks at the writer now and then.
//!
//! ```text
//!   log comes ──► looks at the writer's memory every 0.3 ms; the follower only holds its lease
//!      ▲  │ nothing for 20 ms, or the log is not in that memory
//!      │  ▼
//!   waits in the follower, which brings the log
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::{Followed, LogFollower, WriterError, WriterPlace};
use firn_base::Lsn;
use firn_base::clock::Clock;

use crate::error::EngineError;

use super::ages::Ages;
use super::applying::{Applying, TAIL_LOOK, Taken};
use super::{ReplicaOptions, Shared};

/// The pause before a writer that did not answer is asked again.
const RETRY: Duration = Duration::from_millis(100);
/// How long no log comes before the task waits for it in the follower.
const QUIET: Duration = Duration::from_millis(20);

pub(super) struct Task {
    pub(super) shared: Arc<Shared>,
    pub(super) applying: Arc<Applying>,
    pub(super) follower: Box<dyn LogFollower>,
    /// Rule 3.
    pub(super) place: Box<dyn WriterPlace>,
    /// When the last successful look at the writer began.
    pub(super) held_at: Duration,
    pub(super) looked_at: Duration,
    pub(super) ages: Ages,
    pub(super) options: ReplicaOptions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) news: News,
}

/// What the task knows of log that came from the writer's memory.
#[derive(Default)]
pub(super) struct News {
    /// The end of the applied log when the task looked last.
    seen: Lsn,
    /// When that had moved.
    came_at: Duration,
    /// The follower has to skip what came.
    is_ahead: bool,
    /// When the follower was told of it.
    told_at: Duration,
}

impl Task {
    pub(super) fn run(&mut self) {
        while !self.shared.is_over() {
            match self.step() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.shared.fail(error);
                    return;
                }
            }
        }
    }

    /// Applies the next piece of log; false at its end.
    fn step(&mut self) -> Result<bool, EngineError> {
        if !self.take_from_tail() && !self.follow()? {
            return Ok(false);
        }
        #[cfg(test)]
        self.go_too_far()?;
        self.look_at_writer()?;
        self.applying.publish()?;
        Ok(true)
    }

    /// Takes log from the writer's memory. Whether log comes from there: else the follower is
    /// waited for.
    fn take_from_tail(&mut self) -> bool {
        let is_over = |_| self.shared.stopping.load(Ordering::Acquire);
        let taken = self.applying.take_from_tail(self.options.piece_bytes, &is_over);
        if taken == Taken::Elsewhere {
            return false;
        }
        let now = self.clock.monotonic();
        let position = Lsn(self.shared.position.load(Ordering::Acquire));
        if position > self.news.seen {
            (self.news.seen, self.news.came_at) = (position, now);
        } else if now.saturating_sub(self.news.came_at) >= QUIET {
            return false;
        }
        self.news.is_ahead = true;
        if now.saturating_sub(self.news.told_at) >= self.options.interval {
            self.news.told_at = now;
            self.tell_follower();
        }
        if taken != Taken::Some {
            firn_base::task::sleep(TAIL_LOOK);
        }
        true
    }

    /// The follower skips what came from the writer's memory, and lets it go.
    fn tell_follower(&mut self) {
        let position = Lsn(self.shared.position.load(Ordering::Acquire));
        if std::mem::take(&mut self.news.is_ahead) && position > self.follower.position() {
            self.follower.skip_to(position);
            self.follower.release(position);
        }
    }

    /// Waits for log from the log store, and applies it; false at its end.
    fn follow(&mut self) -> Result<bool, EngineError> {
        self.tell_follower();
        match self.follower.next(self.options.piece_bytes, self.options.interval)? {
            Followed::Piece(piece) => {
                if !self.wait_for_place()? {
                    return Ok(false);
                }
                self.applying.apply(&piece)?;
                self.follower.release(piece.to);
                Ok(true)
            }
            Followed::Nothing => Ok(true),
            Followed::End => Ok(false),
        }
    }

    /// Rule 4: asks the writer until the place is surely held. False if the replica is closed.
    fn wait_for_place(&mut self) -> Result<bool, EngineError> {
        while self.clock.monotonic().saturating_sub(self.held_at) >= self.place.lease() {
            if self.shared.is_over() {
                return Ok(false);
            }
            self.look()?;
            if self.is_cut_off() {
                let stopping = || self.shared.stopping.load(Ordering::Acquire);
                self.shared.moved.wait_until(Some(RETRY), stopping);
            }
        }
        Ok(true)
    }

    /// Now and then: asks the writer what is durable, and reports what is still needed here.
    fn look_at_writer(&mut self) -> Result<(), EngineError> {
        let passed = self.clock.monotonic().saturating_sub(self.looked_at);
        let pause = if self.is_cut_off() { RETRY } else { self.options.interval };
        if passed < pause { Ok(()) } else { self.look() }
    }

    fn is_cut_off(&self) -> bool {
        self.shared.is_cut_off.load(Ordering::Acquire)
    }

    /// Asks the writer. One that does not answer is asked again later.
    fn look(&mut self) -> Result<(), EngineError> {
        let began = self.clock.monotonic();
        let versions = &self.shared.versions;
        self.ages.note(began, versions.newest());
        if let Some(oldest) =
            self.options.snapshot_limit.and_then(|limit| self.ages.at(began, limit))
        {
            versions.snapshots().give_up_below(oldest);
        }
        let horizon = versions.snapshots().advance_horizon(versions.newest());
        versions.table().recycle(horizon);
        let looked = self.place.look(horizon);
        self.looked_at = self.clock.monotonic();
        match looked {
            Ok(positions) => {
                self.held_at = began;
                self.shared.is_cut_off.store(false, Ordering::Release);
                *self.shared.positions.lock() = positions;
                let mut turn = self.applying.begin();
                turn.held_until = began.saturating_add(self.place.lease());
                turn.announce(&positions);
                Ok(())
            }
            Err(error @ WriterError::Unreachable { .. }) => {
                if !self.shared.is_cut_off.swap(true, Ordering::AcqRel) {
                    tracing::warn!(%error, "the replica cannot reach the node that writes");
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A fault on purpose: the place passes snapshots that are open.
    #[cfg(test)]
    fn go_too_far(&mut self) -> Result<(), EngineError> {
        if self.options.fault == Some(super::faults::Fault::PlaceTooFar) {
            self.place.look(self.shared.versions.newest())?;
        }
        Ok(())
    }
}
