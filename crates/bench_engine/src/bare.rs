//! Group commit without transactions: the cost of waking and switching threads on this machine,
//! whatever else the threads do.
//!
//! ```text
//!   a commit   appended += 1, then wait until durable >= that
//!   who leads  write and sync for [durable, appended), durable = appended, pass on the lead, wake
//! ```
//!
//! Leading and waiting work as in the engine's log (`firn_engine::log::role`), except for
//! gathering. The gap between its rate and the disk's is the cost of the waiting threads; the gap
//! between its rate and the engine's is the cost of the transactions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::event::Event;

use crate::BenchError;
use crate::disk_loop::DiskLoop;
use crate::drive::{Drive, Driven};

/// Rounds that share an event wake each other's waiters needlessly, and nothing else.
const EVENTS: u64 = 16;

/// Commits without transactions.
pub(super) struct BareCommits<'d> {
    disk: &'d DiskLoop,
    bytes_per_commit: usize,
    appended: AtomicU64,
    taken: AtomicU64,
    durable: AtomicU64,
    is_led: AtomicBool,
    rounds: [Event; EVENTS as usize],
}

impl<'d> BareCommits<'d> {
    /// Commits that each write this many bytes to the disk.
    pub(super) fn new(disk: &'d DiskLoop, bytes_per_commit: usize) -> BareCommits<'d> {
        BareCommits {
            disk,
            bytes_per_commit,
            appended: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            is_led: AtomicBool::new(false),
            rounds: std::array::from_fn(|_| Event::new()),
        }
    }

    /// Commits on this many threads. Blocks.
    ///
    /// # Errors
    /// If the file could not be written.
    pub(super) fn drive(&self, threads: usize, duration: Duration) -> Result<Driven, BenchError> {
        Drive { threads, duration, timed_one_in: 1 }.run(|_| || self.commit())
    }

    fn commit(&self) -> Result<(), BenchError> {
        let own = self.appended.fetch_add(1, Ordering::SeqCst) + 1;
        while self.durable.load(Ordering::SeqCst) < own {
            if self.is_led.swap(true, Ordering::SeqCst) {
                self.wait_for_round(own);
            } else {
                self.lead(own)?;
            }
        }
        Ok(())
    }

    fn event_of(&self, round: u64) -> &Event {
        &self.rounds[(round % EVENTS) as usize]
    }

    fn wait_for_round(&self, own: u64) {
        let (durable, taken) =
            (self.durable.load(Ordering::SeqCst), self.taken.load(Ordering::SeqCst));
        let event = self.event_of(if own <= taken { durable } else { taken });
        let ticket = event.listen();
        let is_as_before = self.is_led.load(Ordering::SeqCst)
            && self.durable.load(Ordering::SeqCst) == durable
            && self.taken.load(Ordering::SeqCst) == taken;
        if is_as_before && durable < own {
            event.wait(ticket, None);
        }
    }

    fn lead(&self, own: u64) -> Result<(), BenchError> {
        let from = self.durable.load(Ordering::SeqCst);
        let (mut end, mut written) = (from, Ok(()));
        if from < own {
            end = self.appended.load(Ordering::SeqCst);
            self.taken.store(end, Ordering::SeqCst);
            let position = from * self.bytes_per_commit as u64;
            let bytes = (end - from) as usize * self.bytes_per_commit;
            written = self.disk.write_and_sync(position, bytes);
            // This runs after an error too: the run ends then, and no thread may wait for ever.
            self.durable.store(end, Ordering::SeqCst);
        }
        self.is_led.store(false, Ordering::SeqCst);
        self.event_of(end).notify_one();
        if from < end {
            self.event_of(from).notify_all();
        }
        written
    }
}
