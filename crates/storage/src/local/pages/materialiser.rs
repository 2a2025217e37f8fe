//! The materialiser: the only task that writes images, the page map and the history's horizon.
//!
//! ```text
//!   offered images ─┐
//!   oldest pending ─┼─► images ─► slots ─► write, sync ─► map batch, sync ─► enter ─► release log
//!   damaged images ─┘            (free ones)             (puts, drops,      (slots    (before the
//!                                                         applied, horizon)  freed)    oldest need)
//! ```
//!
//! Log is released only up to the position that the last durable batch names as applied. A restart
//! can then distinguish a map that lost batches from one that is merely behind: the former names a
//! position before the start of the log. When there is nothing to store and more log is applied
//! than is named, an empty batch names it.
//!
//! On a full disk, a round stores as many images as there are free slots, and drops spaces even if
//! there are none. [`super::reserve`] explains how this never gets stuck.
//!
//! A round that fails leaves everything as it was: offered images stay in the queue, pending log
//! stays pending, the log is kept, and the slots are not reused until a later round is durable.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::PageStoreError;
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::page::{PAGE_SIZE, PageBuf};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Shared;
use super::allocator::{Run, SlotAllocator};
use super::history::HorizonClock;
use super::image_buffers::StockedPage;
use super::map_file::MapFile;
use super::map_format::{Batch, BatchKind, MAX_BATCH_ENTRIES};
use super::materialising_rate::{Load, Pace};
use super::reserve::Reserve;
use super::slots::SlotNo;
use super::status::{count, value};

/// How long the task sleeps when it is not called.
const TICK: Duration = Duration::from_millis(50);
/// Changes after a snapshot are folded into a new one when they are as large as the snapshot plus
/// this.
const MIN_CHANGE_BYTES: u64 = 16 << 20;
/// A snapshot that did not fit on the disk is tried again after this many bytes of changes.
const SNAPSHOT_RETRY_BYTES: u64 = 64 << 10;
/// Images that are written with one call.
const WRITE_PAGES: usize = 16;
/// Pages of the base that are copied in one round while nobody waits for them.
const BASE_PAGES: usize = 64;
/// How often a batch is written only to name the applied position.
const NAME_INTERVAL: Duration = Duration::from_secs(1);
/// Slots are scattered into holes only while fewer than one in this many is free.
const HOLES_ARE_WORTH: u32 = 8;

/// Where an image comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Offered,
    Copied,
    Built,
    Repaired,
}

/// An image on its way to the disk.
struct Image {
    page: PageId,
    lsn: Lsn,
    bytes: ImageBytes,
    source: Source,
}

/// Offered images stay visible to readers meanwhile; others belong to the round.
enum ImageBytes {
    Shared(Arc<StockedPage>),
    Own(StockedPage),
}

impl Image {
    fn offered(bytes: Arc<StockedPage>) -> Image {
        let (page, lsn) = (bytes.page_id(), bytes.lsn());
        Image { page, lsn, bytes: ImageBytes::Shared(bytes), source: Source::Offered }
    }

    fn own(mut bytes: StockedPage, source: Source) -> Image {
        bytes.seal();
        Image { page: bytes.page_id(), lsn: bytes.lsn(), bytes: ImageBytes::Own(bytes), source }
    }

    fn append_sealed(&self, into: &mut Vec<u8>) {
        match &self.bytes {
            ImageBytes::Own(bytes) => into.extend_from_slice(bytes.bytes()),
            ImageBytes::Shared(bytes) => {
                let mut sealed = PageBuf::clone(bytes);
                sealed.seal();
                into.extend_from_slice(sealed.bytes());
            }
        }
    }
}

/// The task's own state. It is not shared, so it needs no lock.
pub(super) struct Materialiser {
    shared: Arc<Shared>,
    map: MapFile,
    slots: SlotAllocator,
    /// Slots named by a batch that may or may not be durable.
    suspects: Vec<SlotNo>,
    /// Slots of pages that the store does not keep, until a map without them is durable.
    others: Vec<SlotNo>,
    /// When dropping such pages is tried again after an error.
    narrow_again_at: Duration,
    /// Dropped spaces whose pages the history still needs.
    kept_drops: Vec<(SpaceId, Lsn)>,
    horizon: HorizonClock,
    pace: Pace,
    reserve: Reserve,
    /// The size of the map's changes, in bytes, at which a snapshot that the disk refused is tried
    /// again.
    snapshot_again_at: u64,
    /// When copying pages of the base is tried again after an error.
    base_again_at: Duration,
    /// Pages that could not be built, and when to try again.
    stuck: FxHashMap<PageId, Duration>,
    /// The position that the last durable batch names as applied.
    named: Lsn,
    named_at: Duration,
    released: Lsn,
    rate: Rate,
}

/// Releases all waiters when the task ends, in whichever way.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Counts the images of the current second.
#[derive(Default)]
struct Rate {
    since: Duration,
    images: u64,
}

impl Materialiser {
    pub(super) fn new(
        shared: Arc<Shared>,
        map: MapFile,
        slots: SlotAllocator,
        kept_drops: Vec<(SpaceId, Lsn)>,
        named: Lsn,
    ) -> Materialiser {
        let options = &shared.options;
        let window = Duration::from_millis(options.history_window_ms);
        let pace = Pace::new(
            options.batch_pages,
            options.behind_limit_bytes,
            options.idle_pages_per_second,
        );
        let horizon = HorizonClock::new(window, shared.table.horizon());
        let retry_delay = Duration::from_millis(options.retry_delay_ms);
        let reserve = Reserve::new(options.reserve_bytes, retry_delay);
        Materialiser {
            map,
            slots,
            suspects: Vec::new(),
            others: Vec::new(),
            narrow_again_at: Duration::ZERO,
            kept_drops,
            horizon,
            pace,
            reserve,
            snapshot_again_at: 0,
            base_again_at: Duration::ZERO,
            stuck: FxHashMap::default(),
            named,
            named_at: Duration::ZERO,
            released: Lsn(0),
            rate: Rate::default(),
            shared,
        }
    }

    /// Works until the store is closed.
    pub(super) fn run(mut self) {
        let _end = End(Arc::clone(&self.shared));
        loop {
            let ticket = self.shared.work.listen();
            if self.shared.is_closing() {
                return;
            }
            match self.round() {
                Ok(stored) if stored > 0 && self.has_more(stored) => {}
                Ok(_) => drop(self.shared.work.wait(ticket, Some(TICK))),
                Err(_) => self.pause(),
            }
        }
    }

    /// Waits a while after an error, even if the task is called.
    fn pause(&self) {
        let delay = Duration::from_millis(self.shared.options.retry_delay_ms);
        self.shared.work.wait_until(Some(delay), || self.shared.is_closing());
    }

    fn has_more(&self, stored: usize) -> bool {
        let copies_base = self.shared.hurries_base.load(Ordering::Acquire);
        stored >= self.shared.options.batch_pages || self.load().is_hurried || copies_base
    }

    /// Does the work that is due; returns the number of images stored. Blocks for I/O.
    pub(super) fn round(&mut self) -> Result<usize, PageStoreError> {
        let now = self.shared.environment.clock.monotonic();
        let horizon = self.horizon.horizon(now, self.shared.log.durable_lsn());
        self.keep_reserve(now);
        let horizon = self.shared.table.allow_horizon(horizon);
        let result = self.narrow_if_due(now).and_then(|()| {
            let images = self.choose_images(now);
            self.store(now, images, horizon)
        });
        match &result {
            Ok(stored) => self.note_success(now, *stored),
            Err(error) => self.shared.note_failure(error, true),
        }
        result
    }

    /// Drops the pages that the store does not keep, if there are any. On a full disk it is tried
    /// again later.
    fn narrow_if_due(&mut self, now: Duration) -> Result<(), PageStoreError> {
        let shared = Arc::clone(&self.shared);
        if !shared.narrowing.is_due() || now < self.narrow_again_at {
            return Ok(());
        }
        let kept = shared.narrowing.kept();
        shared.table.keep_only(&kept, &mut self.others);
        if !self.others.is_empty() {
            if let Err(error) = self.map.write_snapshot(&mut shared.table.snapshot()) {
                self.narrow_again_at = now + Duration::from_millis(shared.options.retry_delay_ms);
                return match self.map.needs_snapshot() {
                    true => Err(error),
                    false => {
                        shared.note_failure(&error, false);
                        Ok(())
                    }
                };
            }
            count(&shared.counters.map_snapshots, 1);
            self.free_after_snapshot();
        }
        shared.narrowing.end(&kept);
        Ok(())
    }

    /// Rule 4: nothing that may be found after a crash names these slots any more.
    fn free_after_snapshot(&mut self) {
        let unnamed = self.suspects.drain(..).chain(self.others.drain(..));
        unnamed.for_each(|slot| self.slots.release(slot));
    }

    /// Grows the page files for the reserve, and reports the room to the log.
    fn keep_reserve(&mut self, now: Duration) {
        let new_pages = self.shared.table.new_pages();
        let missing = self.reserve.missing(now, self.slots.free(), new_pages);
        if missing > 0 && self.grow(1, missing).is_err() {
            self.reserve.note_refusal(now);
        }
        let room = self.reserve.room(self.slots.free(), new_pages, self.map.kept_share());
        self.shared.log.tell_page_room(room);
    }

    fn note_success(&mut self, now: Duration, stored: usize) {
        self.shared.note_success();
        self.release_log();
        let counters = &self.shared.counters;
        counters.stuck_pages.store(self.stuck.len() as u64, Ordering::Relaxed);
        counters.slots.store(u64::from(self.slots.total()), Ordering::Relaxed);
        counters.free_slots.store(u64::from(self.slots.free()), Ordering::Relaxed);
        self.rate.images += stored as u64;
        if now.saturating_sub(self.rate.since) >= Duration::from_secs(1) {
            counters.per_second.store(self.rate.images, Ordering::Relaxed);
            self.rate = Rate { since: now, images: 0 };
        }
        self.shared.progress.notify_all();
        self.shared.room.notify_all();
    }

    fn release_log(&mut self) {
        let releasable = self.shared.table.releasable().min(self.named);
        if releasable > self.released && self.shared.is_caught_up_with_start() {
            self.released = releasable;
            self.shared.log.release_before(releasable);
        }
    }

    // ---- which images ----

    fn choose_images(&mut self, now: Duration) -> Vec<Image> {
        let limit = self.shared.options.batch_pages;
        let mut images = self.repaired_images();
        images.extend(self.shared.table.take_queued(limit).into_iter().map(Image::offered));
        if self.shared.is_caught_up_with_start() {
            let room = limit.saturating_sub(images.len());
            self.add_pending(now, room, &mut images);
            let room = limit.saturating_sub(images.len());
            self.add_base(now, room, &mut images);
        }
        images.sort_by_key(|image| image.page);
        images.dedup_by_key(|image| image.page);
        images
    }

    fn repaired_images(&self) -> Vec<Image> {
        let pages = self.shared.take_repairs(self.shared.options.batch_pages);
        let read = |page: PageId| {
            let stored = self.shared.table.view(page).versions.last().copied()?;
            let mut bytes = self.shared.table.stock().take();
            self.shared.read_known(page, Some(stored.lsn), &mut bytes).ok()?;
            (bytes.lsn() == stored.lsn).then(|| Image::own(bytes, Source::Repaired))
        };
        pages.into_iter().filter_map(read).collect()
    }

    fn add_pending(&mut self, now: Duration, room: usize, images: &mut Vec<Image>) {
        let wanted = self.pace.pages(now, self.load()).min(room);
        if wanted == 0 {
            return;
        }
        self.stuck.retain(|_, again_at| *again_at > now);
        let chosen: FxHashSet<PageId> = images.iter().map(|image| image.page).collect();
        let wants = |page| !self.stuck.contains_key(&page) && !chosen.contains(&page);
        let pages = self.shared.table.oldest_pending(Lsn::MAX, wanted, wants);
        for page in pages {
            match self.image_of(page) {
                Ok(image) => images.push(image),
                Err(error) => self.note_stuck(page, now, &error),
            }
            self.end_stretch();
        }
    }

    /// Copies pages of the base, a few in each round unless somebody waits for all.
    fn add_base(&mut self, now: Duration, room: usize, images: &mut Vec<Image>) {
        let shared = Arc::clone(&self.shared);
        let Some(base) = shared.base.as_ref().filter(|_| now >= self.base_again_at) else { return };
        let is_hurried = shared.hurries_base.load(Ordering::Acquire);
        let limit = if is_hurried { room } else { room.min(BASE_PAGES) };
        let is_here = |page: PageId| {
            shared.table.is_stored(page) || shared.table.dropped_at(page.space).is_some()
        };
        let copied = base.pages_to_copy(limit, is_here).and_then(|pages| {
            for page in pages {
                images.push(self.image_of(page)?);
                self.end_stretch();
            }
            Ok(())
        });
        if let Err(error) = copied {
            self.base_again_at = now + Duration::from_millis(shared.options.retry_delay_ms);
            shared.note_failure(&error, false);
        }
    }

    /// Yields the core, unless this task is behind.
    fn end_stretch(&self) {
        if !self.pace.is_hurried(self.load()) {
            firn_base::task::yield_now();
        }
    }

    fn load(&self) -> Load {
        let applied = self.shared.table.applied();
        Load {
            behind_bytes: self.shared.table.told().0.saturating_sub(applied.0),
            pending_pages: self.shared.table.pending_pages(),
            is_hurried: applied.0 < self.shared.hurry_to.load(Ordering::Acquire)
                || self.shared.log.waits_for_room(),
        }
    }

    fn image_of(&self, page: PageId) -> Result<Image, PageStoreError> {
        let mut bytes = self.shared.table.stock().take();
        let stored =
            self.shared.table.view(page).versions.last().map_or(Lsn(0), |stored| stored.lsn);
        let source = if self.shared.copy_cached(page, stored, &mut bytes) {
            Source::Copied
        } else {
            self.shared.read_known(page, None, &mut bytes)?;
            Source::Built
        };
        Ok(Image::own(bytes, source))
    }

    /// One page that cannot be built must not keep the others from being stored. Its log is kept.
    fn note_stuck(&mut self, page: PageId, now: Duration, error: &PageStoreError) {
        if self.shared.table.dropped_at(page.space).is_some() {
            return;
        }
        let delay = Duration::from_millis(self.shared.options.retry_delay_ms);
        self.stuck.insert(page, now + delay);
        self.shared.note_failure(error, false);
    }

    // ---- how they become durable ----

    fn store(
        &mut self,
        now: Duration,
        mut images: Vec<Image>,
        horizon: Lsn,
    ) -> Result<usize, PageStoreError> {
        let drops = self.shared.table.drops_to_do();
        let is_idle = images.is_empty() && drops.is_empty();
        if is_idle && !self.would_expire(horizon) && !self.should_name(now) {
            return Ok(0);
        }
        let slots = match self.slots_for(&mut images) {
            Err(error) if drops.is_empty() && !self.would_expire(horizon) => return Err(error),
            slots => slots.unwrap_or_default(),
        };
        let offered: Vec<PageId> = offered_pages(&images);
        let stored = self.store_batch(&images, &slots, &drops, horizon);
        match stored {
            Ok(_) => self.named_at = now,
            Err(_) => offered.into_iter().for_each(|page| self.shared.table.requeue(page)),
        }
        stored
    }

    /// Whether a batch is due only because more is applied than the map says.
    fn should_name(&self, now: Duration) -> bool {
        let is_hurried = self.named.0 < self.shared.hurry_to.load(Ordering::Acquire)
            || self.shared.log.waits_for_room();
        let is_due = is_hurried || now.saturating_sub(self.named_at) >= NAME_INTERVAL;
        is_due && self.shared.is_caught_up_with_start() && self.shared.table.applied() > self.named
    }

    fn would_expire(&self, horizon: Lsn) -> bool {
        self.shared.table.would_expire(horizon)
            || self.kept_drops.iter().any(|(_, end)| *end <= horizon)
    }

    fn store_batch(
        &mut self,
        images: &[Image],
        slots: &[Run],
        drops: &[(SpaceId, Lsn)],
        horizon: Lsn,
    ) -> Result<usize, PageStoreError> {
        let drops = &drops[..drops.len().min(MAX_BATCH_ENTRIES - images.len())];
        let written = self.write_images(images, slots).and_then(|()| self.write_snapshot_if_due());
        if let Err(error) = written {
            // The map never named these slots.
            all_slots(slots).for_each(|slot| self.slots.release(slot));
            return Err(error);
        }
        let batch = self.batch(images, slots, drops, horizon);
        if let Err(error) = self.map.append(&batch) {
            self.give_up(slots);
            return Err(error);
        }
        self.named = batch.applied;
        self.enter(&batch, slots);
        // Somebody who waits for this then finds the pages.
        self.shared.named.store(batch.applied.0, Ordering::Release);
        self.count_stored(images);
        Ok(images.len())
    }

    fn batch(
        &self,
        images: &[Image],
        slots: &[Run],
        drops: &[(SpaceId, Lsn)],
        horizon: Lsn,
    ) -> Batch {
        let table = &self.shared.table;
        let puts = images.iter().zip(all_slots(slots)).filter_map(|(image, slot)| {
            let is_repair = image.source == Source::Repaired;
            let version = table.prepare(image.page, image.lsn, slot, is_repair)?;
            Some((image.page, version))
        });
        let puts: Vec<_> = puts.collect();
        Batch {
            kind: BatchKind::Change,
            applied: table.applied_with(&puts, drops),
            horizon: horizon.max(table.horizon()),
            puts,
            drops: drops.to_vec(),
        }
    }

    /// Until there is a new snapshot, a restart may or may not find the batch that names these
    /// slots.
    fn give_up(&mut self, slots: &[Run]) {
        if self.map.needs_snapshot() {
            self.suspects.extend(all_slots(slots));
        } else {
            all_slots(slots).for_each(|slot| self.slots.release(slot));
        }
    }

    /// Takes slots for the images, or for as many of them as a full disk has free slots. Pages
    /// whose older image frees its slot then come first; the other offered images return to the
    /// queue.
    fn slots_for(&mut self, images: &mut Vec<Image>) -> Result<Vec<Run>, PageStoreError> {
        let error = match self.take_slots(images.len() as u32) {
            Ok(slots) => return Ok(slots),
            Err(error) => error,
        };
        let free = self.slots.free();
        images.sort_by_key(|image| (!self.shared.table.is_stored(image.page), image.page));
        let left = images.split_off(free as usize);
        offered_pages(&left).into_iter().for_each(|page| self.shared.table.requeue(page));
        match self.slots.take_scattered(free) {
            Some(slots) if free > 0 => {
                self.shared.note_failure(&error, false);
                Ok(slots)
            }
            _ => Err(error),
        }
    }

    /// Takes adjacent slots if there are any or the files can grow, else fills holes.
    fn take_slots(&mut self, count: u32) -> Result<Vec<Run>, PageStoreError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if let Some(run) = self.slots.take_adjacent(count) {
            return Ok(vec![run]);
        }
        let has_holes = self.slots.free() > self.slots.total() / HOLES_ARE_WORTH + count;
        let least = count.saturating_sub(self.slots.free()).max(1);
        let grown = if has_holes { Ok(()) } else { self.grow(least, count) };
        match (self.slots.take_adjacent(count), grown) {
            (Some(run), _) => Ok(vec![run]),
            (None, Ok(())) => self.slots.take_scattered(count).ok_or_else(|| no_slots(count)),
            (None, Err(error)) => self.slots.take_scattered(count).ok_or(error),
        }
    }

    /// Adds `wanted` slots, or more if that is worth a call; at least `least` if a nearly full disk
    /// has no room for all.
    fn grow(&mut self, least: u32, wanted: u32) -> Result<(), PageStoreError> {
        let mut step = ((self.shared.options.grow_bytes / PAGE_SIZE as u64) as u32).max(wanted);
        loop {
            match self.shared.files.grow(self.slots.total(), step) {
                Ok(total) => {
                    self.slots.extend(total);
                    return Ok(());
                }
                Err(_) if step > least => step = (step / 2).max(least),
                Err(error) => return Err(error),
            }
        }
    }

    fn write_images(&self, images: &[Image], slots: &[Run]) -> Result<(), PageStoreError> {
        let mut rest = images;
        let mut bytes = Vec::with_capacity(images.len().min(WRITE_PAGES) * PAGE_SIZE);
        for run in slots {
            let (written, behind) = rest.split_at(run.slots as usize);
            for (number, piece) in written.chunks(WRITE_PAGES).enumerate() {
                bytes.clear();
                piece.iter().for_each(|image| image.append_sealed(&mut bytes));
                let first = SlotNo(run.first.0 + (number * WRITE_PAGES) as u32);
                self.shared.files.write(first, &bytes)?;
                self.end_stretch();
            }
            rest = behind;
        }
        let mut files: Vec<usize> = slots.iter().map(|run| run.first.file()).collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter().try_for_each(|file| self.shared.files.sync(file))
    }

    fn write_snapshot_if_due(&mut self) -> Result<(), PageStoreError> {
        let is_long = self.map.change_bytes() > self.map.snapshot_bytes().max(MIN_CHANGE_BYTES);
        let is_due = is_long && self.map.change_bytes() >= self.snapshot_again_at;
        if !self.map.needs_snapshot() && !is_due {
            return Ok(());
        }
        if let Err(error) = self.map.write_snapshot(&mut self.shared.table.snapshot()) {
            if self.map.needs_snapshot() {
                return Err(error);
            }
            // The map continues after its changes, which are just long.
            self.snapshot_again_at = self.map.change_bytes() + SNAPSHOT_RETRY_BYTES;
            self.shared.note_failure(&error, false);
            return Ok(());
        }
        self.snapshot_again_at = 0;
        count(&self.shared.counters.map_snapshots, 1);
        self.free_after_snapshot();
        Ok(())
    }

    /// Rule 4: slots are freed here, after the batch that frees them is durable.
    fn enter(&mut self, batch: &Batch, slots: &[Run]) {
        let table = &self.shared.table;
        let mut freed = Vec::new();
        table.move_horizon(batch.horizon, &mut freed);
        batch.puts.iter().for_each(|(page, version)| table.enter(*page, *version, &mut freed));
        let entered: FxHashSet<SlotNo> = batch.puts.iter().map(|(_, put)| put.slot).collect();
        freed.extend(all_slots(slots).filter(|slot| !entered.contains(slot)));
        batch.drops.iter().for_each(|(space, end)| table.retire_space(*space, *end));
        self.kept_drops.extend(&batch.drops);
        self.kept_drops.retain(|(space, end)| {
            let is_over = *end <= batch.horizon;
            if is_over {
                table.purge_space(*space, &mut freed);
            }
            !is_over
        });
        freed.into_iter().for_each(|slot| self.slots.release(slot));
    }

    fn count_stored(&self, images: &[Image]) {
        let counters = &self.shared.counters;
        for image in images {
            let counter = match image.source {
                Source::Offered => &counters.offered,
                Source::Copied => &counters.copied,
                Source::Built => &counters.built,
                Source::Repaired => &counters.repaired,
            };
            count(counter, 1);
        }
        count(&counters.batches, 1);
        count(&counters.bytes_written, (images.len() * PAGE_SIZE) as u64);
        tracing::trace!(images = images.len(), batches = value(&counters.batches), "stored images");
    }
}

fn offered_pages(images: &[Image]) -> Vec<PageId> {
    let offered = images.iter().filter(|image| image.source == Source::Offered);
    offered.map(|image| image.page).collect()
}

fn all_slots(runs: &[Run]) -> impl Iterator<Item = SlotNo> + '_ {
    runs.iter().flat_map(|run| (run.first.0..run.first.0 + run.slots).map(SlotNo))
}

fn no_slots(count: u32) -> PageStoreError {
    PageStoreError::Io { place: "page files".to_owned(), reason: format!("no {count} free slots") }
}
