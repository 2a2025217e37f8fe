//! Group commit without transactions: what waking and switching threads costs on the machine,
//! whatever they do.
//!
//! ```text
//!   a commit   appended += 1, then wait until durable >= that
//!   who leads  write and sync for [durable, appended), durable = appended, pass the lead on, wake the others
//! ```
//!
//! It is led and waited for as the engine's log is (`firn_engine::log::role`), but for gathering.
//! Between its rate and the disk's lies what threads cost that wait; between its rate and the
//! engine's, what transactions do.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::event::Event;

use crate::BenchError;
use crate::disk_loop::DiskLoop;
use crate::drive::{Drive, Driven};

/// Rounds that share an event merely wake each other's waiters for nothing.
const EVENTS: u64 = 16;

/// Commits that are nothing but commits.
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
    /// Commits that each have the disk write so many bytes.
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

    /// Commits on so many threads. Blocks.
    ///
    /// # Errors
    /// Why the file could not be written.
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
            // After an error too: the run ends with it, and nobody is to wait for ever.
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
