//! Reads that begin before the replica has applied what they must see, and wait only if they meet a
//! change (003 §4.2).
//!
//! ```text
//!   visible at the writer 44, applied 40
//!     definitions unchanged since ──► the read begins at 40 and must see 44
//!     a definition has changed ─────► it waits before names are looked up
//! ```
//!
//! [`crate::transaction::behind`] decides for each leaf. A writer on another machine is asked by
//! messages; its log is given the time of one before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use firn_api::Modifications;
use firn_api::rows::Awaited;
use firn_base::{Cts, Lsn, PageId};
use firn_buffer::BufferPool;

use crate::error::EngineError;
use crate::transaction::behind::{Behind, Following};

use super::Shared;
use super::applying::Applying;

/// The longest that a read waits for log before it asks the writer.
const MOST_SETTLE: Duration = Duration::from_millis(20);

/// A replica whose writer tells what has changed.
pub(crate) struct ByPage {
    shared: Arc<Shared>,
    applying: Arc<Applying>,
    pool: Arc<BufferPool>,
    modifications: Arc<dyn Modifications>,
    /// Reads that met a change and waited.
    waits: AtomicU64,
    #[cfg(test)]
    faults: Faults,
}

/// What is done wrong on purpose.
#[cfg(test)]
#[derive(Default)]
struct Faults {
    unseen: AtomicBool,
    definitions: AtomicBool,
}

/// Transactions in the applied log that have changed definitions and have not ended, or whose
/// definitions are not followed yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenChanges(Arc<AtomicUsize>);

impl OpenChanges {
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

impl ByPage {
    pub(super) fn new(
        shared: Arc<Shared>,
        applying: Arc<Applying>,
        pool: Arc<BufferPool>,
        modifications: Arc<dyn Modifications>,
    ) -> ByPage {
        ByPage {
            shared,
            applying,
            pool,
            modifications,
            waits: AtomicU64::new(0),
            #[cfg(test)]
            faults: Faults::default(),
        }
    }

    /// How many reads have met a change and waited.
    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Whether the definitions here are those of the writer at the time of the call.
    pub(crate) fn has_newest_definitions(&self) -> bool {
        #[cfg(test)]
        if self.faults.definitions.load(Ordering::Relaxed) {
            return true;
        }
        // In this order: a change that is applied and not followed yet is among the open ones.
        let applied = self.applied();
        let is_applied = self.modifications.of_definitions().is_ok_and(|last| last <= applied);
        is_applied && !self.shared.open_changes.is_any()
    }

    /// Gives log that is under way the time of a question to the writer: a question that takes a
    /// message helps only a replica that lags by more. Blocks for that time at most.
    pub(crate) fn settle(&self, awaited: Awaited) {
        let Some(round_trip) = self.modifications.round_trip() else { return };
        let shared = &self.shared;
        let is_over = || shared.reached(awaited).is_some() || shared.failure.get().is_some();
        shared.moved.wait_until(Some(round_trip.min(MOST_SETTLE).min(awaited.patience)), is_over);
    }

    #[cfg(test)]
    pub(super) fn ignore_unseen(&self) {
        self.faults.unseen.store(true, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn ignore_definitions(&self) {
        self.faults.definitions.store(true, Ordering::Relaxed);
    }

    /// For a transaction that must see what is awaited.
    pub(crate) fn behind(self: &Arc<Self>, awaited: Awaited) -> Behind {
        Behind::new(Arc::clone(self) as _, awaited)
    }
}

impl Following for ByPage {
    fn reached(&self, awaited: Awaited) -> Option<Cts> {
        self.shared.reached(awaited)
    }

    fn applied(&self) -> Lsn {
        self.pool.applied_lsn().unwrap_or_default()
    }

    fn last_change(&self, page: PageId) -> Option<Lsn> {
        self.modifications.round_trip().is_none().then(|| self.ask_last_change(page))
    }

    fn ask_last_change(&self, page: PageId) -> Lsn {
        self.modifications.of_page(page).unwrap_or(Lsn::MAX)
    }

    fn wait(&self, awaited: Awaited, cancelled: Option<&AtomicBool>) -> Result<(), EngineError> {
        if self.shared.reached(awaited).is_some() {
            return Ok(());
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        let until = firn_base::task::monotonic().saturating_add(awaited.patience);
        self.applying.catch_up(awaited, until, cancelled)
    }

    #[cfg(test)]
    fn ignores_unseen(&self) -> bool {
        self.faults.unseen.load(Ordering::Relaxed)
    }
}
