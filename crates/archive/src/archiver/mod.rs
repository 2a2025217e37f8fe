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

use firn_api::{LogFollower, LogStore, PageRead, PageStore, PageStoreError, Watermarks};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn, PageId};
use firn_format::page::PageBuf;
use firn_objects::ObjectStore;
use firn_storage::local::{DatabaseId, LocalPages};
use parking_lot::Mutex;

use crate::format::Gap;

/// The pages of a database, as the archiver reads them.
pub trait ArchivedPages: Send + Sync {
    /// Reads the newest version of a page that includes everything up to `at_least`. Blocks for
    /// I/O.
    ///
    /// # Errors
    /// [`PageStoreError::Absent`] if there is no such page; others are tried again.
    fn read(&self, page: PageId, at_least: Lsn, into: &mut PageBuf) -> Result<(), PageStoreError>;

    /// Up to about `limit` pages after `after`, sorted; empty if there are no more.
    fn pages_after(&self, after: Option<PageId>, limit: usize) -> Vec<PageId>;

    /// Whether all pages can be listed. Not before a clone has copied its pages.
    fn is_whole(&self) -> bool;
}

impl ArchivedPages for LocalPages {
    fn read(&self, page: PageId, at_least: Lsn, into: &mut PageBuf) -> Result<(), PageStoreError> {
        PageStore::read(self, page, PageRead::Latest { at_least }, into).map(|_| ())
    }

    fn pages_after(&self, after: Option<PageId>, limit: usize) -> Vec<PageId> {
        LocalPages::pages_after(self, after, limit)
    }

    fn is_whole(&self) -> bool {
        LocalPages::is_whole(self)
    }
}

/// What is archived.
pub struct ArchiveSource {
    pub database: DatabaseId,
    pub log: Arc<dyn LogStore>,
    pub pages: Arc<dyn ArchivedPages>,
    /// Upper bounds of the ids in the log so far.
    pub watermarks: Watermarks,
    /// A hold on the log that the archiver may not have sent yet. It is let go once the archiver
    /// follows the log itself.
    pub hold: Option<Box<dyn LogFollower>>,
}

/// How the archiver works.
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
    /// Durable log that is not archived, in bytes.
    pub behind_bytes: u64,
    /// Everything that was acknowledged by then is archived; 0: nothing yet.
    pub as_of_ms: u64,
    /// Complete sets of images.
    pub sets: u64,
    /// The bytes of the archive.
    pub size_bytes: u64,
    /// Bytes sent since the start.
    pub sent_bytes: u64,
    /// Attempts that failed since the start.
    pub failures: u64,
    /// What is wrong now.
    pub error: Option<String>,
    /// Whether the archiver has given up; a restart with other settings is needed.
    pub has_stopped: bool,
    /// The last stretch of log that is missing.
    pub last_gap: Option<Gap>,
}

/// What the task and its owner share.
#[derive(Default)]
struct Shared {
    status: Mutex<ArchiveStatus>,
    is_closing: AtomicBool,
    wake: Event,
}

/// Archives a database in the background.
pub struct Archiver {
    shared: Arc<Shared>,
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
        let (task_shared, task_environment) = (Arc::clone(&shared), environment.clone());
        let body = move || {
            turn::run(&task_environment, &store, source, options, &task_shared);
        };
        let task = environment.spawner.spawn("firn-archive", Box::new(body));
        Archiver { shared, task: Mutex::new(Some(task)) }
    }

    /// The state. Does not block.
    #[must_use]
    pub fn status(&self) -> ArchiveStatus {
        self.shared.status.lock().clone()
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
