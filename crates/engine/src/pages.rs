//! Page operations that may have to run again.
//!
//! No latch is held across I/O (design rule 4). So an operation that needs a page which is not
//! cached returns [`Restart::Need`]. [`ReadPages::run`] then loads the page with nothing held, and
//! runs the operation again from its start. Loaded pages stay pinned until the operation has ended,
//! so that two operations in a small pool cannot keep evicting each other's pages. An operation
//! that pins pages has a turn, so that many operations cannot fill a small pool with pins while
//! each waits for one more page.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::PageId;
use firn_buffer::{BufferPool, Miss, PINS_PER_TURN};
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::lock::LockError;
use crate::log::RedoLog;
use crate::modifications::ModificationTracker;
use crate::sync::{Event, Ticket};

/// Why a run of an operation did not complete. It is a value, so that the return path drops
/// everything that the operation holds.
#[derive(Debug)]
pub enum Restart {
    /// The operation needs this page.
    Need(PageId),
    /// The operation relied on a state that has changed in the meantime.
    Again,
    /// The operation depends on a commit that is not finished.
    Unfinished(UnfinishedCommit),
    /// The operation must see commits that this node has not applied yet.
    Behind(Box<dyn CatchUp>),
    /// The operation has failed and must not run again.
    Fail(EngineError),
}

/// The wait for a commit that another node is deciding, or that earlier commits hold back while
/// their timestamps come from a shared source.
#[derive(Debug)]
pub struct UnfinishedCommit {
    /// Notified when the commit's state may have changed.
    pub(crate) changed: Arc<Event>,
    /// Ends the wait when it becomes true.
    pub(crate) cancelled: Option<Arc<AtomicBool>>,
}

/// The wait until a node that follows another one has applied what an operation must see.
pub trait CatchUp: std::fmt::Debug + Send {
    /// Blocks until then. Called with nothing held.
    ///
    /// # Errors
    /// If it takes too long, the node does not follow any more, or the operation's statement is
    /// killed.
    fn wait(&self) -> Result<(), EngineError>;
}

impl From<Miss> for Restart {
    fn from(miss: Miss) -> Restart {
        Restart::Need(miss.0)
    }
}

impl<E: Into<EngineError>> From<E> for Restart {
    fn from(error: E) -> Restart {
        Restart::Fail(error.into())
    }
}

/// How long an operation waits for unfinished commits. In tests it is longer than a thread may be
/// held up by a busy machine.
const UNFINISHED_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 50 });
/// How often the waiter checks for itself. A remote coordinator writes the decision into the region
/// without a notification, and killing a statement does not wake its waiter.
const UNFINISHED_INTERVAL: Duration = Duration::from_millis(10);

/// The wait of an operation for unfinished commits.
#[derive(Default)]
struct Patience {
    began: Option<Duration>,
    listening: Option<(Arc<Event>, Ticket)>,
}

impl Patience {
    /// Waits for the next change. Does not wait in the first call for an event: the operation must
    /// run once more after it has started to listen.
    fn wait(&mut self, unfinished: UnfinishedCommit) -> Result<(), EngineError> {
        let changed = unfinished.changed;
        if unfinished.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(LockError::Cancelled.into());
        }
        let now = firn_base::task::monotonic();
        let began = *self.began.get_or_insert(now);
        if now.saturating_sub(began) >= UNFINISHED_TIMEOUT {
            return Err(LockError::Timeout.into());
        }
        if let Some((event, ticket)) = self.listening.take()
            && Arc::ptr_eq(&event, &changed)
        {
            changed.wait(ticket, Some(UNFINISHED_INTERVAL));
        }
        let ticket = changed.listen();
        self.listening = Some((changed, ticket));
        Ok(())
    }
}

/// The pages of a node, for reading.
#[derive(Clone)]
pub struct ReadPages {
    pub pool: Arc<BufferPool>,
}

/// The pages of a node that writes, and the log of their changes.
#[derive(Clone)]
pub struct Pages {
    cached: ReadPages,
    pub log: Arc<RedoLog>,
    /// Told of each page that changes, if replicas ask for that.
    modifications: Option<Arc<ModificationTracker>>,
}

impl Pages {
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, log: Arc<RedoLog>) -> Pages {
        Pages { cached: ReadPages { pool }, log, modifications: None }
    }

    /// The same pages, whose changes are noted in `modifications`.
    pub(crate) fn with_modifications(
        self,
        modifications: Option<Arc<ModificationTracker>>,
    ) -> Pages {
        Pages { modifications, ..self }
    }

    pub(crate) fn modifications(&self) -> Option<&ModificationTracker> {
        self.modifications.as_deref()
    }

    #[must_use]
    pub fn cached(&self) -> &ReadPages {
        &self.cached
    }
}

impl Deref for Pages {
    type Target = ReadPages;

    #[inline]
    fn deref(&self) -> &ReadPages {
        &self.cached
    }
}

/// The pages that one operation keeps pinned. No operation latches more pages at once.
const PINS: usize = PINS_PER_TURN;

impl ReadPages {
    /// Runs `operation` until it completes. Blocks for the I/O in between.
    ///
    /// # Errors
    /// The operation's error, or why a page could not be loaded; [`LockError::Timeout`] if the
    /// commit that it depends on does not finish in time, [`LockError::Cancelled`] if its statement
    /// is killed meanwhile; or why this node has not applied what the operation must see.
    pub fn run<R>(
        &self,
        mut operation: impl FnMut() -> Result<R, Restart>,
    ) -> Result<R, EngineError> {
        // Declared before the pins, so it is dropped after them.
        let mut turn = None;
        let mut pins: SmallVec<[_; PINS]> = SmallVec::new();
        let mut patience = Patience::default();
        loop {
            match operation() {
                Ok(result) => return Ok(result),
                Err(Restart::Need(page)) => {
                    turn.get_or_insert_with(|| self.pool.turn());
                    if pins.len() == PINS {
                        drop(pins.remove(0));
                    }
                    pins.push(self.pool.load(page)?);
                }
                // The thread that changes the awaited state may need this processor.
                Err(Restart::Again) => firn_base::task::yield_now(),
                Err(Restart::Unfinished(unfinished)) => patience.wait(unfinished)?,
                Err(Restart::Behind(commits)) => {
                    // The task that applies the log may need them to read definitions.
                    pins.clear();
                    drop(turn.take());
                    commits.wait()?;
                }
                Err(Restart::Fail(error)) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use firn_base::random::{RandomSource, SplitMix};
    use firn_base::{PageNo, SpaceId};
    use firn_format::page::PageKind;
    use firn_format::redo::Change;

    use super::*;
    use crate::log::writer::Purpose;
    use crate::mini_transaction::MiniTransaction;
    use crate::test_support::memory_pages;

    const PAGES: u64 = 300;

    fn page(number: u64) -> PageId {
        PageId::new(SpaceId(3), PageNo(number as u32))
    }

    #[test]
    fn operations_that_need_more_pages_than_the_pool_has_take_turns() {
        let pages = memory_pages(0);
        for number in 0..PAGES {
            let mut frames = pages.pool.reserve(1);
            let mut mtr = MiniTransaction::begin(&pages, Purpose::Forward).unwrap();
            let held = mtr.create(&mut frames, page(number));
            mtr.change(held, &Change::Format { kind: PageKind::AllocationMap });
            let _ = mtr.commit();
        }
        assert!(pages.pool.frame_count() < 10 * PINS);
        std::thread::scope(|scope| {
            for seed in 0..10 {
                let pages = &pages;
                scope.spawn(move || {
                    let random = SplitMix::new(seed);
                    for _ in 0..100 {
                        let first = random.next_u64() % (PAGES - 8 * 30);
                        let wanted = (0..8).map(|step| page(first + step * 30));
                        let read = pages.run(|| {
                            let guards = wanted.clone().map(|page| pages.pool.shared(page));
                            Ok(guards.collect::<Result<Vec<_>, _>>()?.len())
                        });
                        assert_eq!(read.unwrap(), 8);
                    }
                });
            }
        });
    }
}
