//! The archiver: one task that sends a database's log and images to an object store.
//!
//! ```text
//!   every turn (a tenth of a second):
//!     note the moment ─► take durable log ─► send it, if it is time or there is much
//!                                        └─► a step of the image set under way, or begin one
//!                                        └─► remove what no moment of the window needs
//! ```
//!
//! Log that was sent every few seconds lies in small objects; once there is enough of it, one
//! object takes their place. A manifest follows each change (A1). An attempt that fails is repeated
//! with the same bytes, so it does not matter whether it had an effect.
//!
//! The images of a set are read while the database changes them (A4): each is as new as its LSN
//! says, and the log from the set's start on does the rest. So no version is held for the set, and
//! a slow store holds back nothing but log.

mod imaging;
mod log_buffer;
mod retention;
mod takeover;
mod turn;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::report::ArchiveProgress;
use firn_api::{LogError, LogFollower, LogStore, PageRead, PageStore, PageStoreError, Watermarks};
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn, PageId};
use firn_format::page::PageBuf;
use firn_objects::ObjectStore;
use firn_storage::local::{DatabaseId, LocalLog, LocalPages};
use parking_lot::Mutex;

use crate::format::{Gap, Mark};

/// The pages of a database, as the archiver reads them.
pub trait ArchivedPages: Send + Sync {
    /// Reads the newest version of a page that includes everything up to `at_least`. Blocks for
    /// I/O.
    ///
    /// # Errors
    /// [`PageStoreError::Absent`] if there is no such page; others are tried again.
    fn read(&self, page: PageId, at_least: Lsn, into: &mut PageBuf) -> Result<(), PageStoreError>;

    /// Up to about `limit` of the pages after `after`, sorted; empty if there are no more. Each
    /// page that exists at `position` is among them, if it is not dropped later. Blocks for I/O.
    ///
    /// # Errors
    /// They are tried again.
    fn pages_after(
        &self,
        position: Lsn,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<PageId>, PageStoreError>;

    /// Whether all pages can be listed. Not before a clone has copied its pages.
    fn is_whole(&self) -> bool;
}

impl ArchivedPages for LocalPages {
    fn read(&self, page: PageId, at_least: Lsn, into: &mut PageBuf) -> Result<(), PageStoreError> {
        PageStore::read(self, page, PageRead::Latest { at_least }, into).map(|_| ())
    }

    fn pages_after(
        &self,
        position: Lsn,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<PageId>, PageStoreError> {
        LocalPages::pages_after(self, position, after, limit)
    }

    fn is_whole(&self) -> bool {
        LocalPages::is_whole(self)
    }
}

/// What the node that writes the log knows of it. The archiver may run elsewhere.
pub trait ArchivedWriter: Send + Sync {
    /// A time, and the end of the durable log when it was later than that: everything that was
    /// acknowledged by then is before it. `None` if nobody can say so at present. May block for a
    /// message.
    fn moment(&self) -> Option<Mark>;

    /// Upper bounds of the ids in the durable log. May block.
    ///
    /// # Errors
    /// [`LogError::Unavailable`] if nobody can say so at present; others of the log.
    fn watermarks(&self) -> Result<Watermarks, LogError>;
}

/// How often a moment is looked at before there is none for now.
const LOOKS: usize = 5;

/// The time, and the end of the durable log in the same millisecond. `None` if the end is not told,
/// or the millisecond was over each time: with a position that is newer than its time, a restore to
/// that time would bring back what was written later.
pub fn mark_now(clock: &dyn Clock, durable: impl Fn() -> Option<Lsn>) -> Option<Mark> {
    (0..LOOKS).find_map(|_| {
        let time_ms = clock.wall_time_ms();
        let lsn = durable()?;
        (clock.wall_time_ms() == time_ms).then_some(Mark { time_ms, lsn })
    })
}

/// The writer of a log in this process.
pub struct LocalWriter {
    pub clock: Arc<dyn Clock>,
    pub log: Arc<LocalLog>,
}

impl ArchivedWriter for LocalWriter {
    fn moment(&self) -> Option<Mark> {
        mark_now(&*self.clock, || Some(self.log.durable_lsn()))
    }

    fn watermarks(&self) -> Result<Watermarks, LogError> {
        self.log.watermarks_of_durable()
    }
}

/// A database that has gone on without the end of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenOver {
    /// Who was chosen to archive before that was so with a lower number.
    pub first_epoch: u64,
    /// Up to here the log is as it was before.
    pub at: Lsn,
}

pub struct ArchiveSource {
    pub database: DatabaseId,
    /// Of the processes of a cluster, one is chosen to archive. Later choices have higher numbers;
    /// 0: there is nobody to choose from.
    pub epoch: u64,
    /// The database has lost the end of its log, and has another one from there.
    pub taken_over: Option<TakenOver>,
    pub log: Arc<dyn LogStore>,
    pub pages: Arc<dyn ArchivedPages>,
    pub writer: Arc<dyn ArchivedWriter>,
    /// A hold on the log that the archiver may not have sent yet. It is let go once the archiver
    /// follows the log itself.
    pub hold: Option<Box<dyn LogFollower>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// How long new log waits before it is sent, in milliseconds.
    pub interval_ms: u64,
    /// How far back moments are kept, in milliseconds.
    pub window_ms: u64,
    /// How much log, in bytes before the durable end, is kept for the archiver. Beyond it, the
    /// archive gets a gap.
    pub hold_log_bytes: u64,
    /// Log that is put into one object, in bytes.
    pub piece_bytes: usize,
    /// A set of images begins when this much log has been written since the last one, in bytes.
    pub images_after_bytes: u64,
    /// Images of one pack.
    pub pack_images: usize,
    /// The longest pause after an attempt that failed, in milliseconds.
    pub longest_pause_ms: u64,
}

impl Default for ArchiveOptions {
    fn default() -> ArchiveOptions {
        ArchiveOptions {
            interval_ms: 10_000,
            window_ms: 7 * 24 * 3600 * 1000,
            hold_log_bytes: 16 << 30,
            piece_bytes: 16 << 20,
            images_after_bytes: 256 << 20,
            pack_images: 256,
            longest_pause_ms: 30_000,
        }
    }
}

/// What the archiver tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveStatus {
    /// The end of the archived log; `None` until the archive has been read.
    pub archived: Option<Lsn>,
    pub progress: ArchiveProgress,
    /// Whether the archiver has given up; a restart with other settings is needed.
    pub has_stopped: bool,
    /// The last stretch of log that is missing.
    pub last_gap: Option<Gap>,
}

/// What the task and its owner share.
#[derive(Default)]
struct Shared {
    told: Mutex<Told>,
    is_closing: AtomicBool,
    wake: Event,
}

/// What the task told last. A call to the store may hold it up for long.
#[derive(Default)]
struct Told {
    status: ArchiveStatus,
    /// When the task last looked how far it is behind.
    at: Duration,
}

impl Told {
    /// The status at `now`, with a log that is durable up to `durable`.
    fn status_at(&self, now: Duration, durable: Lsn) -> ArchiveStatus {
        let mut status = self.status.clone();
        let Some(archived) = status.archived else { return status };
        status.progress.behind_bytes = durable.0.saturating_sub(archived.0);
        if status.progress.behind_bytes > 0 {
            status.progress.behind_ms += now.saturating_sub(self.at).as_millis() as u64;
        }
        status
    }
}

/// Archives a database in the background.
pub struct Archiver {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    log: Arc<dyn LogStore>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

impl Archiver {
    /// Starts to archive. Does not wait for the object store.
    #[must_use]
    pub fn start(
        environment: &Environment,
        store: Arc<dyn ObjectStore>,
        source: ArchiveSource,
        options: ArchiveOptions,
    ) -> Archiver {
        let shared = Arc::new(Shared::default());
        let (clock, log) = (Arc::clone(&environment.clock), Arc::clone(&source.log));
        let (task_shared, task_environment) = (Arc::clone(&shared), environment.clone());
        let body = move || {
            turn::run(&task_environment, &store, source, options, &task_shared);
        };
        let task = environment.spawner.spawn("firn-archive", Box::new(body));
        Archiver { shared, clock, log, task: Mutex::new(Some(task)) }
    }

    /// The state; how far the archive is behind is that of the moment, also while the store does
    /// not answer. Does not block.
    #[must_use]
    pub fn status(&self) -> ArchiveStatus {
        let (now, durable) = (self.clock.monotonic(), self.log.durable_lsn());
        self.shared.told.lock().status_at(now, durable)
    }

    /// Sends the rest of the durable log, if the store takes it at once, and ends. Blocks for I/O.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.shared.wake.notify_all();
        let task = self.task.lock().take();
        if task.is_some_and(|task| !task.join()) {
            tracing::error!("the archiver ended with a panic");
        }
    }
}

impl Drop for Archiver {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Waits for about `pause`, or until the archiver is closed.
    fn pause(&self, pause: Duration) {
        self.wake.wait_until(Some(pause), || self.is_closing());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A clock that shows these times, one after the other.
    struct Shown(Mutex<VecDeque<u64>>);

    impl Clock for Shown {
        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn wall_time_ms(&self) -> u64 {
            self.0.lock().pop_front().expect("a time to show")
        }
    }

    fn mark(times: &[u64]) -> Option<Mark> {
        mark_now(&Shown(Mutex::new(times.iter().copied().collect())), || Some(Lsn(8)))
    }

    #[test]
    fn a_position_is_no_newer_than_its_time() {
        assert_eq!(mark(&[100, 100]), Some(Mark { time_ms: 100, lsn: Lsn(8) }));
        assert_eq!(mark(&[100, 101, 110, 110]), Some(Mark { time_ms: 110, lsn: Lsn(8) }));
        assert_eq!(mark(&[1, 5, 11, 15, 21, 25, 31, 35, 41, 45]), None);
    }
}
