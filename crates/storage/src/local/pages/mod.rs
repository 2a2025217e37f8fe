//! The local page store: a page is a cache of the log.
//!
//! Pages are stored copy-on-write (paper 001 §3.4: "written to a new location", several versions
//! for a while). An image always goes to a free slot and becomes visible through an entry in the
//! page map. Live images are never overwritten, so a torn write harms nothing and no image is
//! written twice.
//!
//! ```text
//!   read ──► queue of offered images ─┐
//!        └─► page map ─► slot ────────┴─► + log that the image lacks ─► page
//!
//!   log ──► indexer ──► pending table ──► materialiser ─► free slots ─► page map ─► log released
//!   buffer pool ──► offered images ──────────┘
//! ```
//!
//! Relations:
//!
//! * `released ≤ named ≤ applied ≤ told ≤ durable`, where `named` is the applied position in the
//!   last durable batch of the map; every stored image's LSN is `≤ durable`;
//! * every log group that ends at or before `applied` is in images that are durable in a slot and
//!   in the map, so only reads of old versions need the log before it;
//! * every version at or after `horizon` can be built from stored images and kept log, of pages
//!   that the store keeps ([`narrowing`]).
//!
//! Latch and lock rules:
//!
//! 1. No mutex is held across an I/O, a wait, or a call to the log or to the image source.
//! 2. Lock order: one shard of the table → order, queue, history or stock; never two shards.
//! 3. Only the materialiser changes stored versions, slot allocation and the map's file.
//! 4. A slot is reused only after the map batch that freed it is durable.
//! 5. A reader trusts an image read from a slot only after it has checked checksum, page id and
//!    LSN, and trusts the log's answer only after it has seen the records that it knew of.
//!    Otherwise it asks the table again.
//!
//! Departure from the paper: the log is not copied to the pages' store and persisted there a second
//! time. The store indexes the existing log, and keeps only positions in memory.

mod allocator;
mod base;
mod copy;
mod history;
mod image_buffers;
mod loader;
mod map_file;
mod map_format;
mod materialiser;
mod materialising_rate;
mod narrowing;
mod options;
mod reader;
mod reserve;
mod slots;
mod status;
mod table;
mod version;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_api::page_store::read_in_turn;
use firn_api::{
    ImageSource, LocalImages, LogError, Offer, PageFilter, PageLease, PageRead, PageRequest,
    PageSink, PageStore, PageStoreError, PageVersion,
};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn, PageId, SpaceId};
use firn_format::page::{PAGE_SIZE, PageBuf};
use firn_format::redo::{Change, RawRecord, apply};
use parking_lot::{Mutex, RwLock};

use super::directory::{DatabaseId, LocalDirectory};
use super::page_log::{PageLog, PageLogListener};
use loader::{MapLoader, take_named_slots};
use map_file::MapFile;
use materialiser::Materialiser;
use narrowing::Narrowing;
use slots::{SlotFiles, io_error};
use status::{Counters, value};
use table::{Enqueued, PageTable};

use base::Base;

pub use base::BasePages;
pub use copy::PageCopy;
pub use options::PageStoreOptions;
pub use status::PageStoreStatus;

/// Applies a record to a page, but does not change its LSN.
type ApplyRecord = fn(&mut PageBuf, PageId, RawRecord<'_>) -> Result<(), String>;

fn apply_record(into: &mut PageBuf, page: PageId, record: RawRecord<'_>) -> Result<(), String> {
    let change = Change::decode(&record).map_err(|damage| damage.to_string())?;
    apply(into, page, &change).map_err(|error| error.to_string())
}

/// How often the copying of a base is reported.
const COPY_REPORT: Duration = Duration::from_millis(200);

/// The longest that [`LocalImages::wait_for_room`] blocks.
const ROOM_WAIT: Duration = Duration::from_millis(20);

/// Opens the log of pages that need it from a position on; `None`: there are no pages yet.
pub type OpenLog<'l> = Box<dyn FnOnce(Option<Lsn>) -> Result<Arc<dyn PageLog>, LogError> + 'l>;

/// The pages of a local directory.
pub struct LocalPages {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

/// The state shared by readers, offers, the log's indexer and the materialiser.
struct Shared {
    environment: Environment,
    options: PageStoreOptions,
    log: Arc<dyn PageLog>,
    apply: ApplyRecord,
    files: SlotFiles,
    table: PageTable,
    /// Pages that the directory began with, if it began with any.
    base: Option<Base>,
    images: RwLock<Option<Arc<dyn ImageSource>>>,
    repairs: Mutex<Vec<PageId>>,
    narrowing: Narrowing,
    counters: Counters,
    failure: Mutex<Failure>,
    /// Wakes the materialiser.
    work: Event,
    /// A round ended.
    progress: Event,
    /// There may be room in the queue.
    room: Event,
    is_closing: AtomicBool,
    hurry_to: AtomicU64,
    /// The position that the page map names, durably, as applied.
    named: AtomicU64,
    /// Whether the base is copied as fast as possible.
    hurries_base: AtomicBool,
    durable_at_open: Lsn,
}

#[derive(Default)]
struct Failure {
    count: u64,
    is_paused: bool,
    last: Option<PageStoreError>,
}

/// Passes the indexer's reports to the store, as long as it exists.
struct Listener(Weak<Shared>);

impl LocalPages {
    /// Opens or creates the pages of a directory and starts to follow `log`. Blocks for I/O.
    ///
    /// # Errors
    /// An error of the disk, or damage.
    pub fn open(
        directory: &Arc<LocalDirectory>,
        options: PageStoreOptions,
        log: Arc<dyn PageLog>,
    ) -> Result<Arc<LocalPages>, PageStoreError> {
        LocalPages::open_over(directory, options, log, None)
    }

    /// Like [`LocalPages::open`], for a log that is opened once it is known from where on the pages
    /// need it. Blocks for I/O.
    ///
    /// # Errors
    /// As there, and those of `log`.
    pub fn open_with(
        directory: &Arc<LocalDirectory>,
        options: PageStoreOptions,
        log: OpenLog<'_>,
    ) -> Result<Arc<LocalPages>, PageStoreError> {
        LocalPages::start(directory, options, log, None)
    }

    /// Like [`LocalPages::open`], for a directory that began with pages from elsewhere and may not
    /// have copied them all. `log` of a new directory begins at the base's start and ends at its
    /// end or later. Blocks for I/O.
    ///
    /// # Errors
    /// As there.
    pub fn open_over(
        directory: &Arc<LocalDirectory>,
        options: PageStoreOptions,
        log: Arc<dyn PageLog>,
        base: Option<Arc<dyn BasePages>>,
    ) -> Result<Arc<LocalPages>, PageStoreError> {
        LocalPages::start(directory, options, Box::new(|_| Ok(log)), base)
    }

    fn start(
        directory: &Arc<LocalDirectory>,
        options: PageStoreOptions,
        log: OpenLog<'_>,
        base: Option<Arc<dyn BasePages>>,
    ) -> Result<Arc<LocalPages>, PageStoreError> {
        let environment = directory.environment();
        let home = Home { path: directory.path(), database: directory.database() };
        let (shared, materialiser) =
            open_parts(environment, home, options, log, base, apply_record)?;
        let kept = Arc::clone(directory);
        let body = Box::new(move || {
            materialiser.run();
            // The directory belongs to this process until it has stopped writing in it.
            drop(kept);
        });
        let task = environment.spawner.spawn("firn-pages", body);
        Ok(Arc::new(LocalPages { shared, task: Mutex::new(Some(task)) }))
    }

    /// Stops the background task after its current round, and releases the image source. Queued
    /// images are not written: the log has them. Blocks for I/O.
    pub fn close(&self) {
        self.shared.close();
        let task = self.task.lock().take();
        if task.is_some_and(|task| !task.join()) {
            tracing::error!("the page store's task ended with a panic");
        }
        *self.shared.images.write() = None;
    }

    /// Blocks until everything that ends at or before `lsn` is in stored images, durably, so that
    /// the store opens again without log from before; the store hurries meanwhile.
    ///
    /// # Errors
    /// An error of the disk or the log.
    pub fn materialise_up_to(&self, lsn: Lsn) -> Result<(), PageStoreError> {
        self.shared.materialise_up_to(lsn)
    }

    /// Up to about `limit` pages after `after`, sorted; empty if there are no more. Each page that
    /// the durable log up to `position` changes is among them; some may be newer, or of dropped
    /// spaces. Pages of a base that were not copied yet are missing. Blocks until the log up to
    /// there has been reported.
    ///
    /// # Errors
    /// An error of the log.
    pub fn pages_after(
        &self,
        position: Lsn,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<PageId>, PageStoreError> {
        self.shared.wait_until_told(position)?;
        Ok(self.shared.table.pages_after(after, limit))
    }

    /// Whether every page is in the directory, and none only in its base. Does not block.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.shared.base.as_ref().is_none_or(|base| base.progress().1)
    }

    /// Copies all pages of the base, as fast as possible; calls `progress` now and then with the
    /// number of pages so far. Blocks for I/O.
    ///
    /// # Errors
    /// An error of the disk or of the base.
    pub fn copy_base(&self, progress: &mut dyn FnMut(u64)) -> Result<(), PageStoreError> {
        let Some(base) = &self.shared.base else { return Ok(()) };
        let failures = self.shared.failure_count();
        self.shared.hurries_base.store(true, Ordering::Release);
        self.shared.work.notify_all();
        loop {
            let (copied, is_done) = base.progress();
            progress(copied);
            if is_done {
                return Ok(());
            }
            if self.shared.failure_count() != failures || self.shared.is_closing() {
                return Err(self.shared.last_failure());
            }
            let has_ended = || base.progress().1 || self.shared.failure_count() != failures;
            self.shared.progress.wait_until(Some(COPY_REPORT), has_ended);
        }
    }

    /// Whether the log that a read of this version needs has been reported. Does not block.
    #[must_use]
    pub fn knows(&self, page: PageId, version: PageRead) -> bool {
        let table = &self.shared.table;
        table.told() >= version.position()
            || matches!(version, PageRead::Latest { at_least }
                if table.view(page).newest_known() >= at_least)
    }

    /// The pages behind `after` that have stored images, the first `limit` of them in order. All
    /// log before the applied position is in them.
    #[must_use]
    pub fn stored_pages(&self, after: Option<PageId>, limit: usize) -> Vec<PageId> {
        let is_behind = |page: &PageId| after.is_none_or(|after| *page > after);
        let stored = self.shared.table.stored().flatten().map(|(page, _)| page);
        let mut pages: Vec<PageId> = stored.filter(is_behind).collect();
        pages.sort_unstable();
        pages.dedup();
        pages.truncate(limit);
        pages
    }

    /// Keeps only the pages that `kept` takes, and drops the others in the background. The caller
    /// refuses reads of those before. Does not block for I/O.
    pub fn keep_only(&self, kept: &PageFilter) {
        self.shared.narrowing.begin(kept);
        self.shared.work.notify_all();
    }

    /// Whether pages that are not kept may still be in the files.
    #[must_use]
    pub fn has_others(&self) -> bool {
        self.shared.narrowing.is_due()
    }

    /// The state of the store. Does not block.
    #[must_use]
    pub fn status(&self) -> PageStoreStatus {
        self.shared.status()
    }

    /// Reads and checks every stored image; calls `progress` after every few thousand with the
    /// number checked so far. Blocks for I/O.
    ///
    /// # Errors
    /// The first image that is damaged.
    pub fn verify_all(&self, progress: &mut dyn FnMut(u64)) -> Result<u64, PageStoreError> {
        let mut checked = 0;
        let mut image = PageBuf::boxed();
        for stored in self.shared.table.stored() {
            for (page, version) in stored {
                let result = self.shared.load_stored(page, &version, &mut image);
                let is_live = || self.shared.table.view(page).versions.contains(&version);
                if let Err(error) = result
                    && is_live()
                {
                    return Err(error);
                }
                checked += 1;
            }
            progress(checked);
        }
        Ok(checked)
    }
}

impl Drop for LocalPages {
    fn drop(&mut self) {
        self.close();
    }
}

/// The store's place and database.
struct Home<'a> {
    path: &'a Path,
    database: DatabaseId,
}

/// Opens everything but the background task.
fn open_parts(
    environment: &Environment,
    home: Home<'_>,
    options: PageStoreOptions,
    log: OpenLog<'_>,
    base: Option<Arc<dyn BasePages>>,
    apply: ApplyRecord,
) -> Result<(Arc<Shared>, Materialiser), PageStoreError> {
    let (directory, database) = (home.path.join("pages"), home.database);
    let disk = Arc::clone(&environment.disk);
    // An earlier life may have ended before it synced the names found now.
    disk.create_directory(&directory)
        .and_then(|()| disk.sync_directory(&directory))
        .map_err(|error| io_error(directory.display(), &error))?;
    // The log may be released once its pages are stored: then the directory's name must be durable
    // too.
    disk.sync_directory(home.path).map_err(|error| io_error(home.path.display(), &error))?;
    let mut loader = MapLoader::default();
    let mut accept = |batch| loader.accept(batch);
    let map = MapFile::open(Arc::clone(&disk), &directory, database, &mut accept)?;
    let mut contents = loader.finish();
    let (files, total) = SlotFiles::open(Arc::clone(&disk), &directory)?;
    let is_new = map.is_none();
    if is_new && total > 0 {
        return Err(map_is_missing(
            &directory,
            "the page map is missing, but page files are there",
        ));
    }
    let log = log((!is_new).then_some(contents.applied.max(Lsn::FIRST)))?;
    let log_start = log.kept_from();
    if let Some(base) = base.as_ref().filter(|_| is_new) {
        contents.begin_with(base.start(), base.end());
    }
    if is_new && base.is_none() && log_start > Lsn::FIRST {
        return Err(map_is_missing(
            &directory,
            "the page map is missing, but log was released that it stands for",
        ));
    }
    let mut map = map.unwrap_or_else(|| MapFile::new(disk, &directory, database));
    if contents.applied.max(Lsn::FIRST) < log_start {
        return Err(map.lost_its_end(contents.applied, log_start));
    }
    log.learn_durable(contents.newest_named)?;
    if contents.newest_named.max(Lsn::FIRST) > log.durable_lsn().max(Lsn::FIRST) {
        return Err(map.outlived_the_log(contents.newest_named, log.durable_lsn()));
    }
    let named = contents.applied;
    let slots = take_named_slots(&contents.versions, &files, total)?;
    let kept_drops = contents.dropped.iter().map(|(space, end)| (*space, *end));
    let kept_drops = kept_drops.filter(|(_, end)| *end > contents.horizon).collect();
    let shared = Arc::new(Shared {
        environment: environment.clone(),
        narrowing: Narrowing::new(&options.kept),
        options: options.within_bounds(),
        durable_at_open: log.durable_lsn(),
        apply,
        files,
        table: PageTable::new(contents, base.is_some()),
        base: base.map(Base::new),
        images: RwLock::new(None),
        repairs: Mutex::default(),
        counters: Counters::default(),
        failure: Mutex::default(),
        work: Event::new(),
        progress: Event::new(),
        room: Event::new(),
        is_closing: AtomicBool::new(false),
        hurry_to: AtomicU64::new(0),
        named: AtomicU64::new(named.0),
        hurries_base: AtomicBool::new(false),
        log,
    });
    if is_new {
        // A durable map comes before the first page file.
        map.write_snapshot(&mut shared.table.snapshot())?;
    }
    shared.log.follow(Arc::new(Listener(Arc::downgrade(&shared))));
    let materialiser = Materialiser::new(Arc::clone(&shared), map, slots, kept_drops, named);
    Ok((shared, materialiser))
}

fn map_is_missing(directory: &Path, reason: &str) -> PageStoreError {
    PageStoreError::StoreDamaged {
        place: directory.join("map-…").display().to_string(),
        reason: reason.to_owned(),
    }
}

impl Shared {
    fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.work.notify_all();
        self.progress.notify_all();
        self.room.notify_all();
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Whether the log from before the start has been reported. Until then, a page may be reported
    /// whose space is dropped a little later.
    fn is_caught_up_with_start(&self) -> bool {
        self.table.told() >= self.durable_at_open || self.log.indexed_lsn() >= self.durable_at_open
    }

    fn queue_limit(&self) -> usize {
        self.options.queue_bytes / PAGE_SIZE
    }

    fn report_repairable(&self, page: PageId, damage: &PageStoreError) {
        tracing::warn!(%damage, "the image was built again from an older one and the log");
        let mut repairs = self.repairs.lock();
        if !repairs.contains(&page) && repairs.len() < self.options.batch_pages {
            repairs.push(page);
        }
    }

    fn take_repairs(&self, limit: usize) -> Vec<PageId> {
        let mut repairs = self.repairs.lock();
        let kept = repairs.len().saturating_sub(limit);
        repairs.split_off(kept)
    }

    fn note_failure(&self, error: &PageStoreError, is_paused: bool) {
        let mut failure = self.failure.lock();
        let is_news = failure.last.as_ref().map(ToString::to_string) != Some(error.to_string());
        failure.count += 1;
        failure.is_paused |= is_paused;
        failure.last = Some(error.clone());
        drop(failure);
        if is_news {
            tracing::warn!(%error, "pages cannot be brought up to date; trying again");
        }
        self.progress.notify_all();
    }

    fn note_success(&self) {
        self.failure.lock().is_paused = false;
    }

    fn failure_count(&self) -> u64 {
        self.failure.lock().count
    }

    fn materialise_up_to(&self, lsn: Lsn) -> Result<(), PageStoreError> {
        self.log.wait_until_indexed(lsn)?;
        let failures = self.failure_count();
        self.hurry_to.fetch_max(lsn.0, Ordering::AcqRel);
        self.work.notify_all();
        let is_done = || self.named.load(Ordering::Acquire) >= lsn.0 && self.table.applied() >= lsn;
        let is_over = || is_done() || self.failure_count() != failures || self.is_closing();
        self.progress.wait_until(None, is_over);
        if is_done() {
            return Ok(());
        }
        Err(self.last_failure())
    }

    fn last_failure(&self) -> PageStoreError {
        let failure = self.failure.lock().last.clone();
        failure.unwrap_or_else(|| PageStoreError::Io {
            place: "page store".to_owned(),
            reason: "it was closed meanwhile".to_owned(),
        })
    }

    fn status(&self) -> PageStoreStatus {
        let (counters, failure) = (&self.counters, self.failure.lock());
        let (applied, oldest_lease) = (self.table.applied(), self.table.oldest_lease());
        PageStoreStatus {
            applied_lsn: applied,
            horizon_lsn: self.table.horizon(),
            oldest_lease: oldest_lease.map(|lease| (lease.reader.clone(), lease.position())),
            pending_pages: self.table.pending_pages() as u64,
            behind_bytes: self.log.durable_lsn().0.saturating_sub(applied.0),
            queued_bytes: self.table.queued_bytes(),
            image_memory_bytes: self.table.stock().size_bytes(),
            map_memory_bytes: self.table.map_bytes(),
            slots: value(&counters.slots),
            free_slots: value(&counters.free_slots),
            batches: value(&counters.batches),
            images_offered: value(&counters.offered),
            images_copied: value(&counters.copied),
            images_built: value(&counters.built),
            images_repaired: value(&counters.repaired),
            images_per_second: value(&counters.per_second),
            bytes_written: value(&counters.bytes_written),
            map_snapshots: value(&counters.map_snapshots),
            stuck_pages: value(&counters.stuck_pages),
            failures: failure.count,
            is_paused: failure.is_paused,
            last_error: failure.last.as_ref().map(ToString::to_string),
        }
    }

    fn offer(&self, image: &PageBuf) -> Offer {
        if image.lsn() > self.log.durable_lsn() {
            // An image without durable log would survive a crash that its log does not survive.
            return Offer::Full;
        }
        match self.table.enqueue(image, self.queue_limit()) {
            Enqueued::NotNeeded => Offer::NotNeeded,
            Enqueued::Waiting(waiting) => {
                if waiting.is_multiple_of(self.options.batch_pages) {
                    self.work.notify_all();
                }
                Offer::Taken
            }
            Enqueued::Full => {
                self.work.notify_all();
                Offer::Full
            }
        }
    }
}

impl PageStore for LocalPages {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        let as_of = match version {
            PageRead::Latest { at_least } => {
                self.shared.wait_until_known(page, at_least)?;
                // Everything reported is known, so the read includes it.
                let told = self.shared.table.told();
                self.shared.read_known(page, None, into)?;
                told.max(at_least).max(into.lsn())
            }
            PageRead::AsOf(wanted) => {
                self.shared.wait_until_told(wanted)?;
                self.shared.read_known(page, Some(wanted), into)?;
                wanted
            }
        };
        Ok(PageVersion { lsn: into.lsn(), as_of })
    }

    /// The disk reads the images in parallel; they are checked and completed in turn.
    fn read_many(&self, requests: &[PageRequest], sink: &mut dyn PageSink) {
        for request in requests.iter().skip(1) {
            let wanted = match request.version {
                PageRead::Latest { .. } => None,
                PageRead::AsOf(wanted) => Some(wanted),
            };
            self.shared.begin_read(request.page, wanted);
        }
        read_in_turn(self, requests, sink);
    }

    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        match self.shared.table.lease(reader, position) {
            Ok(lease) => Ok(lease),
            Err(kept_from) => Err(PageStoreError::NotKept { position, kept_from }),
        }
    }

    /// All pages are one chunk.
    fn applied_lsn(&self, _: PageId) -> Lsn {
        self.shared.table.applied()
    }

    fn is_covered(&self, _: PageId, lsn: Lsn) -> bool {
        self.shared.table.is_applied(lsn)
    }

    fn spaces(&self) -> Vec<SpaceId> {
        self.shared.table.spaces()
    }

    fn local_images(self: Arc<Self>) -> Option<Arc<dyn LocalImages>> {
        Some(self)
    }
}

impl LocalImages for LocalPages {
    fn offer(&self, image: &PageBuf) -> Offer {
        self.shared.offer(image)
    }

    fn wait_for_room(&self) {
        let ticket = self.shared.room.listen();
        if self.shared.table.queued() >= self.shared.queue_limit() {
            self.shared.room.wait(ticket, Some(ROOM_WAIT));
        }
    }

    fn attach(&self, source: Arc<dyn ImageSource>) {
        *self.shared.images.write() = Some(source);
    }
}

impl PageLogListener for Listener {
    fn page_changed(&self, page: PageId, start: Lsn, end: Lsn) {
        if let Some(shared) = self.0.upgrade() {
            shared.narrowing.if_kept(page, || shared.table.page_changed(page, start, end));
        }
    }

    fn space_dropped(&self, space: SpaceId, end: Lsn) {
        if let Some(shared) = self.0.upgrade()
            && shared.table.space_dropped(space, end)
        {
            shared.work.notify_all();
        }
    }

    fn told_up_to(&self, end: Lsn) {
        if let Some(shared) = self.0.upgrade() {
            shared.table.told_up_to(end);
        }
    }
}

#[cfg(test)]
mod tests;
