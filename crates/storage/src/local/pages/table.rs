//! What is known of all pages: stored versions, log that is in none of them, and offered images, in
//! shards by page; and the order in which the log waits to be applied.
//!
//! ```text
//!   applied = min(first of every pending page, before the end of every drop not yet done, told)
//! ```
//!
//! Locks (see the rules in [`super`]): shard → order, shard → queue, shard → history; no two
//! shards.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use firn_api::{PageFilter, PageLease};
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PAGE_SIZE, PageBuf};
use parking_lot::{Mutex, MutexGuard, RwLock};
use rustc_hash::FxHashMap;

use super::history::{HeldPosition, History};
use super::image_buffers::{PageStock, StockedPage};
use super::map_format::{Batch, BatchKind, MAX_BATCH_ENTRIES};
use super::slots::SlotNo;
use super::version::{PageView, Pending, Version, Versions, prune};

const SHARDS: usize = 64;
/// The memory of a page with one stored image in its shard: nodes of a B-tree are about two thirds
/// full.
const VERSIONS_BYTES: usize = (size_of::<u64>() + size_of::<Versions>()) * 3 / 2;
/// The memory of a page in the order of pending pages.
const TREE_ENTRY_BYTES: usize = size_of::<(Lsn, PageId)>() * 3 / 2;

/// An offered image.
struct Queued {
    image: Arc<StockedPage>,
    /// Whether it is still in the queue; otherwise the materialiser is writing it.
    is_waiting: bool,
}

#[derive(Default)]
struct Shard {
    versions: BTreeMap<u64, Versions>,
    pending: FxHashMap<PageId, Pending>,
    queued: FxHashMap<PageId, Queued>,
}

#[derive(Default)]
struct Order {
    pages: BTreeSet<(Lsn, PageId)>,
    drops: BTreeSet<(Lsn, SpaceId)>,
}

/// What is known of all pages.
pub(super) struct PageTable {
    shards: Box<[Mutex<Shard>]>,
    order: Mutex<Order>,
    queue: Mutex<VecDeque<PageId>>,
    /// Images that were offered and not stored, including those being written.
    queued: AtomicUsize,
    /// Pending pages without a stored image, excluding those of dropped spaces.
    new_pages: AtomicUsize,
    /// Spaces that were dropped since the start, or whose log a restart may see again, with the end
    /// of the group. Space ids are not reused.
    dropped: RwLock<FxHashMap<SpaceId, Lsn>>,
    history: Mutex<History>,
    /// Memory of the images.
    stock: Arc<PageStock>,
    told: AtomicU64,
    /// The highest [`PageTable::applied`] that was computed.
    applied_seen: AtomicU64,
    /// Whether pages may have images in the directory's base, and none is the first of its page.
    has_base: bool,
    /// The applied position when the store was opened.
    applied_at_open: Lsn,
}

/// The result of adding an image to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enqueued {
    /// It waits; the queue's length.
    Waiting(usize),
    /// This version or a newer one is already here.
    NotNeeded,
    /// There are already `limit` images.
    Full,
}

impl PageTable {
    /// The table of a store with these contents.
    pub(super) fn new(contents: Contents, has_base: bool) -> PageTable {
        let mut shards: Vec<Shard> = (0..SHARDS).map(|_| Shard::default()).collect();
        let mut history = History::new(contents.horizon);
        for (page, versions) in contents.versions {
            history.hold_gaps(page, &versions, has_base);
            shards[shard_of(page)].versions.insert(page.to_u64(), versions);
        }
        PageTable {
            shards: shards.into_iter().map(Mutex::new).collect(),
            order: Mutex::default(),
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            new_pages: AtomicUsize::new(0),
            dropped: RwLock::new(contents.dropped),
            history: Mutex::new(history),
            stock: Arc::default(),
            told: AtomicU64::new(contents.applied.0),
            applied_seen: AtomicU64::new(contents.applied.0),
            has_base,
            applied_at_open: contents.applied,
        }
    }

    fn shard(&self, page: PageId) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(page)].lock()
    }

    /// What is known of a page now.
    pub(super) fn view(&self, page: PageId) -> PageView {
        let shard = self.shard(page);
        PageView {
            versions: shard.versions.get(&page.to_u64()).cloned().unwrap_or_default(),
            pending: shard.pending.get(&page).copied(),
            has_base: self.has_base,
            queued: shard.queued.get(&page).map(|queued| Arc::clone(&queued.image)),
        }
    }

    /// The end of the group that dropped the space, if it was dropped.
    pub(super) fn dropped_at(&self, space: SpaceId) -> Option<Lsn> {
        self.dropped.read().get(&space).copied()
    }

    /// Everything that ends here or before was reported.
    pub(super) fn told(&self) -> Lsn {
        Lsn(self.told.load(Ordering::Acquire))
    }

    /// Notes that everything up to `end` was reported.
    pub(super) fn told_up_to(&self, end: Lsn) {
        self.told.fetch_max(end.0, Ordering::AcqRel);
    }

    /// Everything that ends here or before is in stored images.
    pub(super) fn applied(&self) -> Lsn {
        let order = self.order.lock();
        let page = order.pages.first().map_or(Lsn::MAX, |(first, _)| *first);
        let space = order.drops.first().map_or(Lsn::MAX, |(end, _)| Lsn(end.0 - 1));
        let applied = self.told().min(page).min(space);
        self.applied_seen.fetch_max(applied.0, Ordering::AcqRel);
        applied
    }

    /// Whether everything that ends at or before `lsn` is in stored images.
    pub(super) fn is_applied(&self, lsn: Lsn) -> bool {
        lsn.0 <= self.applied_seen.load(Ordering::Acquire) || lsn <= self.applied()
    }

    /// A lower bound of [`PageTable::applied`] once these images and drops are entered.
    pub(super) fn applied_with(&self, puts: &[(PageId, Version)], drops: &[(SpaceId, Lsn)]) -> Lsn {
        // Everything reported later begins after this.
        let told = self.told();
        let left = |(page, version): &(PageId, Version)| {
            let pending = self.shard(*page).pending.get(page).copied();
            let rest = pending.filter(|pending| pending.last > version.lsn);
            (*page, rest.map_or(Lsn::MAX, |pending| pending.first.max(version.lsn)))
        };
        let left: FxHashMap<PageId, Lsn> = puts.iter().map(left).collect();
        let is_dropped = |space: SpaceId| drops.iter().any(|drop| drop.0 == space);
        let order = self.order.lock();
        let mut waiting = order.pages.iter();
        let page = waiting.find(|(_, page)| !left.contains_key(page) && !is_dropped(page.space));
        let page = page.map_or(Lsn::MAX, |(first, _)| *first);
        let space = order.drops.iter().find(|(_, space)| !is_dropped(*space));
        let space = space.map_or(Lsn::MAX, |(end, _)| Lsn(end.0 - 1));
        left.values().copied().fold(told.min(page).min(space), Lsn::min)
    }

    /// Notes that the log changes a page.
    pub(super) fn page_changed(&self, page: PageId, start: Lsn, end: Lsn) {
        let dropped_at = self.dropped_at(page.space);
        let mut shard = self.shard(page);
        if let Some(pending) = shard.pending.get_mut(&page) {
            pending.last = pending.last.max(end);
            return;
        }
        let newest = shard.newest(page);
        let stored = newest.map_or(Lsn(0), |version| version.lsn);
        if dropped_at.is_none() && end > stored.max(self.applied_at_open) {
            let first = start.max(stored).max(self.applied_at_open);
            let is_new = newest.is_none();
            self.new_pages.fetch_add(usize::from(is_new), Ordering::Relaxed);
            shard.pending.insert(page, Pending { first, last: end, is_new });
            self.order.lock().pages.insert((first, page));
        } else if let Some(dropped_at) = dropped_at.filter(|at| end <= *at && end > stored) {
            self.changed_before_drop(
                &mut shard,
                page,
                Pending { first: start, last: end, is_new: false },
                dropped_at,
            );
        }
    }

    /// A restart reports a space again whose drop is already in the map. The history may need the
    /// log.
    fn changed_before_drop(
        &self,
        shard: &mut Shard,
        page: PageId,
        pending: Pending,
        dropped_at: Lsn,
    ) {
        let mut history = self.history.lock();
        if dropped_at > history.horizon() {
            let stored = shard.newest(page).map_or(Lsn(0), |version| version.lsn);
            let first = pending.first.max(stored);
            shard.pending.insert(page, Pending { first, ..pending });
            history.hold(page, first, dropped_at);
        }
    }

    /// Notes that the log drops a space; false if the store knows.
    pub(super) fn space_dropped(&self, space: SpaceId, end: Lsn) -> bool {
        if end <= self.applied_at_open || self.dropped.read().contains_key(&space) {
            return false;
        }
        self.order.lock().drops.insert((end, space));
        self.dropped.write().insert(space, end);
        true
    }

    /// Drops that are not yet in the durable map.
    pub(super) fn drops_to_do(&self) -> Vec<(SpaceId, Lsn)> {
        self.order.lock().drops.iter().map(|(end, space)| (*space, *end)).collect()
    }

    /// Every drop that a restart must know of, given the map's applied position and horizon.
    pub(super) fn drops_to_keep(&self, applied: Lsn, horizon: Lsn) -> Vec<(SpaceId, Lsn)> {
        let to_do = self.drops_to_do();
        let dropped = self.dropped.read();
        let durable = dropped.iter().filter(|drop| !to_do.contains(&(*drop.0, *drop.1)));
        durable
            .map(|(space, end)| (*space, *end))
            .filter(|drop| drop.1 > applied.min(horizon))
            .collect()
    }

    /// Adds an image to the queue unless it has `limit`.
    pub(super) fn enqueue(&self, image: &PageBuf, limit: usize) -> Enqueued {
        let page = image.page_id();
        if self.dropped_at(page.space).is_some() {
            return Enqueued::NotNeeded;
        }
        let mut shard = self.shard(page);
        let stored = shard.newest(page).map_or(Lsn(0), |version| version.lsn);
        if image.lsn() <= stored {
            return Enqueued::NotNeeded;
        }
        if let Some(queued) = shard.queued.get_mut(&page) {
            if image.lsn() <= queued.image.lsn() {
                return Enqueued::NotNeeded;
            }
            queued.image = Arc::new(self.stock.copy(image));
            return Enqueued::Waiting(self.wait_in_queue(page, queued));
        }
        if self.queued.fetch_add(1, Ordering::AcqRel) >= limit {
            self.queued.fetch_sub(1, Ordering::AcqRel);
            return Enqueued::Full;
        }
        let mut queued = Queued { image: Arc::new(self.stock.copy(image)), is_waiting: false };
        let waiting = self.wait_in_queue(page, &mut queued);
        shard.queued.insert(page, queued);
        Enqueued::Waiting(waiting)
    }

    fn wait_in_queue(&self, page: PageId, queued: &mut Queued) -> usize {
        let mut queue = self.queue.lock();
        if !std::mem::replace(&mut queued.is_waiting, true) {
            queue.push_back(page);
        }
        queue.len()
    }

    /// Images offered and not stored.
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Acquire)
    }

    /// Takes up to `limit` images out of the queue, for writing. Reads still see them.
    pub(super) fn take_queued(&self, limit: usize) -> Vec<Arc<StockedPage>> {
        let pages: Vec<PageId> = {
            let mut queue = self.queue.lock();
            let count = limit.min(queue.len());
            queue.drain(..count).collect()
        };
        let take = |page: PageId| {
            let mut shard = self.shard(page);
            let queued = shard.queued.get_mut(&page)?;
            queued.is_waiting = false;
            Some(Arc::clone(&queued.image))
        };
        pages.into_iter().filter_map(take).collect()
    }

    /// Returns an image to the queue that could not be written.
    pub(super) fn requeue(&self, page: PageId) {
        if let Some(queued) = self.shard(page).queued.get_mut(&page) {
            self.wait_in_queue(page, queued);
        }
    }

    /// Up to `limit` pages with pending log that starts before `before`, oldest first.
    pub(super) fn oldest_pending(
        &self,
        before: Lsn,
        limit: usize,
        wants: impl Fn(PageId) -> bool,
    ) -> Vec<PageId> {
        let order = self.order.lock();
        let starts_before = order.pages.iter().take_while(|(first, _)| *first < before);
        starts_before.map(|(_, page)| *page).filter(|page| wants(*page)).take(limit).collect()
    }

    /// Pages with pending log.
    pub(super) fn pending_pages(&self) -> usize {
        self.order.lock().pages.len()
    }

    /// Slots that pending pages will take beyond those that their older images free.
    pub(super) fn new_pages(&self) -> usize {
        self.new_pages.load(Ordering::Relaxed)
    }

    /// Whether an image of the page is stored.
    pub(super) fn is_stored(&self, page: PageId) -> bool {
        self.shard(page).newest(page).is_some()
    }

    /// How an image would be entered if it were stored now; `None` if it is not needed. A repair
    /// replaces the newest image.
    pub(super) fn prepare(
        &self,
        page: PageId,
        lsn: Lsn,
        slot: SlotNo,
        is_repair: bool,
    ) -> Option<Version> {
        if self.dropped_at(page.space).is_some() {
            return None;
        }
        let shard = self.shard(page);
        let newest = shard.newest(page);
        match newest {
            Some(newest) if newest.lsn == lsn && is_repair => Some(Version { slot, ..newest }),
            Some(newest) if newest.lsn >= lsn => None,
            _ => {
                // Log about the page that was not reported yet starts after the reported log.
                let since = shard.pending.get(&page).map_or(self.told(), |pending| pending.first);
                let since = since.max(newest.map_or(Lsn(0), |newest| newest.lsn)).min(lsn);
                let is_first = newest.is_none() && !self.has_base;
                Some(Version { lsn, since, slot, is_first })
            }
        }
    }

    /// Enters an image that is durable in its slot and in the map (rule 3). Slots that are no
    /// longer needed are added to `freed`.
    pub(super) fn enter(&self, page: PageId, version: Version, freed: &mut Vec<SlotNo>) {
        let mut guard = self.shard(page);
        let shard = &mut *guard;
        let versions = shard.versions.entry(page.to_u64()).or_default();
        match versions.last_mut() {
            // The previous image was damaged; its slot is not reused before a restart.
            Some(newest) if newest.lsn == version.lsn => *newest = version,
            newest => {
                assert!(newest.is_none_or(|newest| newest.lsn < version.lsn), "versions go up");
                versions.push(version);
            }
        }
        let mut history = self.history.lock();
        prune(versions, history.horizon(), freed);
        let has_before = version.is_first || self.has_base || versions.len() > 1;
        if version.lsn > history.horizon() && has_before {
            history.hold(page, version.since, version.lsn);
        }
        drop(history);
        self.settle_pending(shard, page, version.lsn);
        if shard.queued.get(&page).is_some_and(|queued| queued.image.lsn() <= version.lsn) {
            shard.queued.remove(&page);
            self.queued.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn settle_pending(&self, shard: &mut Shard, page: PageId, stored: Lsn) {
        let Some(pending) = shard.pending.get_mut(&page) else { return };
        self.forget_new(pending);
        let mut order = self.order.lock();
        order.pages.remove(&(pending.first, page));
        if pending.last <= stored {
            shard.pending.remove(&page);
        } else {
            pending.first = pending.first.max(stored);
            order.pages.insert((pending.first, page));
        }
    }

    fn forget_new(&self, pending: &mut Pending) {
        let was_new = std::mem::replace(&mut pending.is_new, false);
        self.new_pages.fetch_sub(usize::from(was_new), Ordering::Relaxed);
    }

    /// Moves the horizon and frees what only reads before it needed.
    pub(super) fn move_horizon(&self, horizon: Lsn, freed: &mut Vec<SlotNo>) {
        let expired = self.history.lock().move_horizon(horizon);
        for page in expired {
            if let Some(versions) = self.shard(page).versions.get_mut(&page.to_u64()) {
                prune(versions, horizon, freed);
            }
        }
    }

    /// The horizon that is in force.
    pub(super) fn horizon(&self) -> Lsn {
        self.history.lock().horizon()
    }

    /// Keeps every version from `position` on; fails with the oldest position that can be held if
    /// that is too old.
    pub(super) fn lease(&self, reader: &str, position: Lsn) -> Result<Arc<HeldPosition>, Lsn> {
        self.history.lock().lease(reader, position)
    }

    /// The lease on the oldest position.
    pub(super) fn oldest_lease(&self) -> Option<Arc<HeldPosition>> {
        self.history.lock().leases().min_by_key(|lease| lease.position())
    }

    /// How far the horizon may move towards `wanted`.
    pub(super) fn allow_horizon(&self, wanted: Lsn) -> Lsn {
        self.history.lock().allow_horizon(wanted)
    }

    /// Whether moving the horizon to `horizon` would free something.
    pub(super) fn would_expire(&self, horizon: Lsn) -> bool {
        self.history.lock().would_expire(horizon)
    }

    /// Nothing that is known needs log that ends here or before.
    pub(super) fn releasable(&self) -> Lsn {
        let applied = self.applied();
        applied.min(self.history.lock().needs_log_from())
    }

    /// Removes the pending log of a dropped space's pages; the history keeps what it needs.
    pub(super) fn retire_space(&self, space: SpaceId, dropped_at: Lsn) {
        for shard in &self.shards {
            let mut guard = shard.lock();
            let shard = &mut *guard;
            let queued = shard.queued.len();
            shard.queued.retain(|page, _| page.space != space);
            self.queued.fetch_sub(queued - shard.queued.len(), Ordering::AcqRel);
            let in_space = shard.pending.iter_mut().filter(|(page, _)| page.space == space);
            for (page, pending) in in_space {
                self.forget_new(pending);
                self.order.lock().pages.remove(&(pending.first, *page));
                self.history.lock().hold(*page, pending.first, dropped_at);
            }
        }
        self.order.lock().drops.remove(&(dropped_at, space));
    }

    /// Removes the pages of a space that no read can ask for any more.
    pub(super) fn purge_space(&self, space: SpaceId, freed: &mut Vec<SlotNo>) {
        let first = PageId::new(space, PageNo(0)).to_u64();
        let last = PageId::new(space, PageNo(u32::MAX)).to_u64();
        for shard in &self.shards {
            let mut shard = shard.lock();
            let pages: Vec<u64> =
                shard.versions.range(first..=last).map(|(page, _)| *page).collect();
            for page in pages {
                let versions = shard.versions.remove(&page).unwrap_or_default();
                freed.extend(versions.iter().map(|version| version.slot));
            }
            shard.pending.retain(|page, _| page.space != space);
        }
    }

    /// Removes all that is known of pages that `kept` does not take. The slots of their images are
    /// added to `freed`.
    pub(super) fn keep_only(&self, kept: &PageFilter, freed: &mut Vec<SlotNo>) {
        for shard in &self.shards {
            let mut guard = shard.lock();
            let shard = &mut *guard;
            let gone =
                shard.versions.extract_if(.., |page, _| !kept.takes(PageId::from_u64(*page)));
            gone.for_each(|(_, versions)| freed.extend(versions.iter().map(|one| one.slot)));
            let queued = shard.queued.len();
            shard.queued.retain(|page, _| kept.takes(*page));
            self.queued.fetch_sub(queued - shard.queued.len(), Ordering::AcqRel);
            shard.pending.retain(|page, pending| {
                let is_kept = kept.takes(*page);
                if !is_kept {
                    self.forget_new(pending);
                    self.order.lock().pages.remove(&(pending.first, *page));
                }
                is_kept
            });
        }
    }

    /// The stored versions of one shard's pages, each page's oldest first.
    fn shard_contents(&self, number: usize) -> Vec<(PageId, Version)> {
        let shard = self.shards[number].lock();
        let pages = shard.versions.iter();
        pages
            .flat_map(|(page, versions)| {
                versions.iter().map(|version| (PageId::from_u64(*page), *version))
            })
            .collect()
    }

    /// The stored versions of every page, shard by shard.
    pub(super) fn stored(&self) -> impl Iterator<Item = Vec<(PageId, Version)>> + '_ {
        (0..SHARDS).map(|number| self.shard_contents(number))
    }

    /// The whole map in batches. Only the materialiser changes it (rule 3), so it is a consistent
    /// snapshot.
    pub(super) fn snapshot(&self) -> impl Iterator<Item = Batch> + '_ {
        let (applied, horizon) = (self.applied(), self.horizon());
        let batch = move |kind, puts, drops| Batch { kind, applied, horizon, puts, drops };
        let part = move |puts: &[(PageId, Version)]| {
            batch(BatchKind::SnapshotPart, puts.to_vec(), Vec::new())
        };
        let parts = self
            .stored()
            .flat_map(move |puts| puts.chunks(MAX_BATCH_ENTRIES).map(part).collect::<Vec<Batch>>());
        let drops = self.drops_to_keep(applied, horizon);
        let drops: Vec<Vec<_>> = drops.chunks(MAX_BATCH_ENTRIES).map(<[_]>::to_vec).collect();
        let dropped =
            drops.into_iter().map(move |drops| batch(BatchKind::SnapshotPart, Vec::new(), drops));
        let end = batch(BatchKind::SnapshotEnd, Vec::new(), Vec::new());
        parts.chain(dropped).chain(std::iter::once(end))
    }

    /// Up to about `limit` pages after `after` that are known here, sorted; some may be of dropped
    /// spaces. Empty if there are no more.
    pub(super) fn pages_after(&self, after: Option<PageId>, limit: usize) -> Vec<PageId> {
        let from = after.map_or(0, |page| page.to_u64().saturating_add(1));
        let mut pages = BTreeSet::new();
        for shard in &self.shards {
            let shard = shard.lock();
            pages.extend(shard.versions.range(from..).take(limit).map(|(page, _)| *page));
            let others = shard.pending.keys().chain(shard.queued.keys());
            pages.extend(others.map(|page| page.to_u64()).filter(|page| *page >= from));
        }
        let pages = pages.into_iter().map(PageId::from_u64).take(limit);
        pages.collect()
    }

    /// The spaces with stored, offered or pending pages that were not dropped, sorted.
    pub(super) fn spaces(&self) -> Vec<SpaceId> {
        let mut spaces = BTreeSet::new();
        for shard in &self.shards {
            let shard = shard.lock();
            spaces.extend(shard.versions.keys().map(|page| PageId::from_u64(*page).space));
            spaces.extend(shard.pending.keys().chain(shard.queued.keys()).map(|page| page.space));
        }
        spaces.into_iter().filter(|space| self.dropped_at(*space).is_none()).collect()
    }

    /// Memory for images.
    pub(super) fn stock(&self) -> &Arc<PageStock> {
        &self.stock
    }

    /// Approximate memory of the table, without the images.
    pub(super) fn map_bytes(&self) -> u64 {
        let of_shard = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            shard.versions.len() * VERSIONS_BYTES
                + shard.pending.capacity() * size_of::<(PageId, Pending)>()
        };
        let waiting = self.order.lock().pages.len() * TREE_ENTRY_BYTES;
        (self.shards.iter().map(of_shard).sum::<usize>() + waiting) as u64
    }

    /// Bytes of the images that are offered and not stored.
    pub(super) fn queued_bytes(&self) -> u64 {
        (self.queued() * PAGE_SIZE) as u64
    }
}

impl Shard {
    fn newest(&self, page: PageId) -> Option<Version> {
        self.versions.get(&page.to_u64())?.last().copied()
    }
}

/// Spreads the pages of every space over all shards.
fn shard_of(page: PageId) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    (page.to_u64().wrapping_mul(GOLDEN) >> 58) as usize
}

/// The content of the durable map.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Images of each page, oldest first.
    pub(super) versions: BTreeMap<PageId, Versions>,
    pub(super) dropped: FxHashMap<SpaceId, Lsn>,
    /// Everything up to here is in images.
    pub(super) applied: Lsn,
    /// Older versions are gone.
    pub(super) horizon: Lsn,
    /// The newest position that it names.
    pub(super) newest_named: Lsn,
}

impl Contents {
    /// The contents of a new directory over base images, the newest of which is as of `end`.
    pub(super) fn begin_with(&mut self, start: Lsn, end: Lsn) {
        (self.applied, self.horizon, self.newest_named) = (start, end, end);
    }
}
