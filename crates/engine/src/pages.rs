//! Page operations that may have to be run again.
//!
//! No latch is held across I/O (design rule 4). So an operation that needs a page which is not
//! cached answers [`Restart::Need`]; [`Pages::run`] then loads the page with nothing held and runs
//! the operation again from its start. Loaded pages stay pinned until the operation is through, so
//! that two operations in a small pool cannot keep evicting each other's pages; and an operation
//! that pins has a turn, so that many of them cannot fill a small pool with pins while each waits
//! for one more page.

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
use crate::sync::{Event, Ticket};

/// Why an operation did not come to its end in this run. A value, so that everything that it held
/// is let go on the way out.
#[derive(Debug)]
pub enum Restart {
    /// It needs this page.
    Need(PageId),
    /// What it went by has changed meanwhile.
    Again,
    /// It depends on a commit that is being decided elsewhere.
    Undecided(Undecided),
    /// It failed for good.
    Fail(EngineError),
}

/// What an operation waits for that depends on a commit which is being decided elsewhere.
#[derive(Debug)]
pub struct Undecided {
    /// Notified of each decision.
    pub(crate) decided: Arc<Event>,
    /// Ends the wait once it is true.
    pub(crate) cancelled: Option<Arc<AtomicBool>>,
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

/// How long an operation waits for a decision that is made elsewhere.
const UNDECIDED_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 50_000 });
/// How often it looks by itself: a remote coordinator writes the decision into the region without a
/// notification, and nothing wakes the waiter when its statement is killed.
const UNDECIDED_INTERVAL: Duration = Duration::from_millis(10);

/// The wait of an operation for decisions that are made elsewhere.
#[derive(Default)]
struct Patience {
    began: Option<Duration>,
    ticket: Option<Ticket>,
}

impl Patience {
    /// Waits for the next decision, once the operation has looked again since it listened.
    fn wait(&mut self, undecided: &Undecided) -> Result<(), EngineError> {
        let decided = &undecided.decided;
        if undecided.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(LockError::Cancelled.into());
        }
        let now = firn_base::task::monotonic();
        let began = *self.began.get_or_insert(now);
        if now.saturating_sub(began) >= UNDECIDED_TIMEOUT {
            return Err(LockError::Timeout.into());
        }
        if let Some(ticket) = self.ticket.take() {
            decided.wait(ticket, Some(UNDECIDED_INTERVAL));
        }
        self.ticket = Some(decided.listen());
        Ok(())
    }
}

/// The pages of a node, to be read.
#[derive(Clone)]
pub struct ReadPages {
    /// The buffer pool.
    pub pool: Arc<BufferPool>,
}

/// The pages of a node that writes, and the log that changes them.
#[derive(Clone)]
pub struct Pages {
    cached: ReadPages,
    /// The redo log.
    pub log: Arc<RedoLog>,
}

impl Pages {
    /// The pages in `pool`, changed through `log`.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, log: Arc<RedoLog>) -> Pages {
        Pages { cached: ReadPages { pool }, log }
    }

    /// The pages without the log.
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

/// Pages that one operation keeps in memory; more than any operation latches at once.
const PINS: usize = PINS_PER_TURN;

impl ReadPages {
    /// Runs `operation` until it comes to an end. Blocks for the I/O in between.
    ///
    /// # Errors
    /// What the operation failed with, or why a page could not be loaded;
    /// [`LockError::Timeout`] if it depends on a decision that does not come,
    /// [`LockError::Cancelled`] if its statement is killed meanwhile.
    pub fn run<R>(
        &self,
        mut operation: impl FnMut() -> Result<R, Restart>,
    ) -> Result<R, EngineError> {
        // Let go after the pins.
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
                // Whoever changes what the operation went by may need this processor for it.
                Err(Restart::Again) => firn_base::task::yield_now(),
                Err(Restart::Undecided(undecided)) => patience.wait(&undecided)?,
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
