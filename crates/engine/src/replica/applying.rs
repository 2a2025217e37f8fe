//! Who applies the log: the task that follows it, or a read that has to wait for it.
//!
//! ```text
//!   the task ── pieces from the log store ──┐
//!        └───── the writer's newest log ────┴─► one thread at a time applies ──► visible
//!   a read that waits ── the same ──────────┘
//! ```
//!
//! A read that must see more than is visible takes the writer's newest log from its memory, and
//! applies it itself up to where it is enough (003 §4.3). So it waits for applying alone: not for
//! the log store to send the log, and not for another thread to wake up. If another thread applies
//! meanwhile, the read waits for what that one makes visible. Without the writer's memory it waits
//! for the task.
//!
//! Rules, cited by number:
//!
//! A1. The thread that applies holds no latch, pin or snapshot of a read, as with any wait. It
//!     takes page latches and the dictionary's memory below its turn, and may read pages for
//!     definitions.
//! A2. Nobody waits for a turn, except the task and [`Applying::close`]. They take no turn while
//!     they wait for log or for the writer.
//! A3. The first failure to apply log ends the replica, in a read as in the task. Nobody applies
//!     what was half applied. A panic is such a failure.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::rows::Awaited;
use firn_api::{LogPiece, LogTail, TailRead};
use firn_base::Lsn;
use firn_base::event::Event;
use firn_base::task::monotonic;
use parking_lot::{Mutex, MutexGuard};

use crate::error::EngineError;
use crate::lock::LockError;

use super::Shared;
use super::applier::Applier;

/// How long a read waits for commits before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);
/// The pause between two looks at the writer's memory while it has no new log.
pub(super) const TAIL_LOOK: Duration = Duration::from_micros(300);
/// How much log a read takes at once.
const READ_BYTES: usize = 64 << 10;

/// The replica's applier, and who may use it.
pub(super) struct Applying {
    shared: Arc<Shared>,
    applier: Mutex<Applier>,
    /// A turn has ended.
    ended: Event,
    /// The writer's newest log, if its memory can be read.
    tail: Option<Arc<dyn LogTail>>,
    uses_tail: AtomicBool,
}

/// The right to apply log. Dropping it gives it on.
pub(super) struct Turn<'a> {
    applying: &'a Applying,
    /// `None` once it is given on.
    applier: Option<MutexGuard<'a, Applier>>,
}

/// What came of a look at the writer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Log, which is applied.
    Some,
    /// All durable log was applied.
    Nothing,
    /// Another thread applies.
    Busy,
    /// The log has to come from the log store.
    Elsewhere,
}

impl Deref for Turn<'_> {
    type Target = Applier;

    fn deref(&self) -> &Applier {
        self.applier.as_ref().expect("a turn has the applier until it is dropped")
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Applier {
        self.applier.as_mut().expect("a turn has the applier until it is dropped")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let what = "a thread has panicked while it applied the log";
            self.applying.shared.fail(EngineError::Invalid(what.to_owned()));
        }
        drop(self.applier.take());
        self.applying.ended.notify_all();
    }
}

impl Applying {
    pub(super) fn new(
        shared: Arc<Shared>,
        applier: Applier,
        tail: Option<Arc<dyn LogTail>>,
    ) -> Applying {
        let (applier, uses_tail) = (Mutex::new(applier), AtomicBool::new(true));
        Applying { shared, applier, ended: Event::new(), tail, uses_tail }
    }

    /// Whether log is taken from the writer's memory from now on.
    pub(super) fn use_tail(&self, on: bool) {
        if self.uses_tail.load(Ordering::Relaxed) != on {
            self.uses_tail.store(on, Ordering::Relaxed);
        }
    }

    /// Waits until no other thread applies (rule A2).
    pub(super) fn begin(&self) -> Turn<'_> {
        loop {
            let ticket = self.ended.listen();
            if let Some(turn) = self.try_begin() {
                return turn;
            }
            self.ended.wait(ticket, Some(LOOK));
        }
    }

    fn try_begin(&self) -> Option<Turn<'_>> {
        let applier = self.applier.try_lock()?;
        Some(Turn { applying: self, applier: Some(applier) })
    }

    /// Applies a piece of log that came while the place at the writer was held.
    ///
    /// # Errors
    /// Why it cannot be applied; the replica has failed then, or had before.
    pub(super) fn apply(&self, piece: &LogPiece) -> Result<(), EngineError> {
        let mut turn = self.begin();
        if let Some(failure) = self.shared.failure.get() {
            return Err(failure.clone());
        }
        turn.apply(piece, &|_| false).inspect_err(|error| self.shared.fail(error.clone()))
    }

    /// Makes what the writer has announced visible, if that much is applied.
    ///
    /// # Errors
    /// As [`Applying::apply`].
    pub(super) fn publish(&self) -> Result<(), EngineError> {
        self.begin().publish()
    }

    /// Applies the writer's newest log, about `most_bytes` at once, until `is_enough` says so of
    /// the position. Does not wait for another thread that applies.
    pub(super) fn take_from_tail(
        &self,
        most_bytes: usize,
        is_enough: &dyn Fn(Lsn) -> bool,
    ) -> Taken {
        let tail = self.tail.as_ref().filter(|_| self.uses_tail.load(Ordering::Relaxed));
        let Some(tail) = tail else { return Taken::Elsewhere };
        let Some(mut turn) = self.try_begin() else { return Taken::Busy };
        if self.shared.is_over() {
            return Taken::Elsewhere;
        }
        let piece = match tail.read(turn.position, most_bytes) {
            Ok(TailRead::Piece(piece)) => piece,
            Ok(TailRead::Nothing) => return Taken::Nothing,
            Ok(TailRead::Overwritten) => return Taken::Elsewhere,
            Err(error) => {
                tracing::debug!(%error, "log comes from the log store");
                return Taken::Elsewhere;
            }
        };
        // Rule 4: the log was written before it was read, and the place is held still.
        if !turn.holds_place() {
            return Taken::Elsewhere;
        }
        match turn.apply(&piece, is_enough) {
            Ok(()) => Taken::Some,
            Err(error) => {
                self.shared.fail(error);
                Taken::Elsewhere
            }
        }
    }

    /// Blocks until snapshots see what is awaited. May apply the log meanwhile.
    ///
    /// # Errors
    /// [`EngineError::NotCaughtUp`] at `until`, which is `patience` after the wait began;
    /// [`LockError::Cancelled`] if `cancelled` becomes true.
    pub(super) fn catch_up(
        &self,
        awaited: Awaited,
        until: Duration,
        cancelled: Option<&AtomicBool>,
    ) -> Result<(), EngineError> {
        let shared = &self.shared;
        let is_cancelled = || cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed));
        let is_over = || shared.reached(awaited).is_some() || shared.failure.get().is_some();
        loop {
            let left = until.saturating_sub(monotonic());
            if shared.reached(awaited).is_some() {
                return Ok(());
            }
            if is_cancelled() {
                return Err(LockError::Cancelled.into());
            }
            let reason = match shared.failure.get() {
                Some(failure) => Some(failure.to_string()),
                None => left.is_zero().then(|| "the log has not come so far".to_owned()),
            };
            if let Some(reason) = reason {
                return Err(EngineError::NotCaughtUp { patience: awaited.patience, reason });
            }
            let pause = match self.take_awaited(awaited, until, &is_cancelled) {
                Taken::Some => continue,
                Taken::Nothing | Taken::Busy => TAIL_LOOK,
                Taken::Elsewhere => LOOK,
            };
            shared.moved.wait_until(Some(left.min(pause)), is_over);
        }
    }

    /// Applies the newest log until what is awaited may be visible, or the read gives up.
    fn take_awaited(
        &self,
        awaited: Awaited,
        until: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Taken {
        let shared = &self.shared;
        let before = Lsn(shared.position.load(Ordering::Acquire));
        // A commit with a lower timestamp may lie beyond the position; then all log helps.
        let position = if before < awaited.position { awaited.position } else { Lsn::MAX };
        let is_enough = |applied: Lsn| {
            applied >= position
                || shared.versions.newest() >= awaited.commits
                || is_cancelled()
                || monotonic() >= until
        };
        self.take_from_tail(READ_BYTES, &is_enough)
    }

    /// Waits until nobody applies. Nobody will from then on: the replica is stopping.
    pub(super) fn close(&self) {
        drop(self.begin());
    }
}
