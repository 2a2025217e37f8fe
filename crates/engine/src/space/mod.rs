//! Spaces: creating them, and allocating their pages.
//!
//! The allocation maps of a space record which of its pages are in use. They change in the same
//! mini-transaction as the page that is used or freed, so nothing leaks in a crash. A map covers
//! about a gibibyte. [`Spaces::prepare`] makes the next one when the last one is nearly used up;
//! call it with nothing held before an allocation.
//!
//! An allocation map is latched last (latch order in [`crate::mini_transaction`]).

mod pick;

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use firn_base::{PageId, PageNo, SpaceId, TableId};
use firn_format::page::PageKind;
use firn_format::redo::Change;
use firn_format::space::{
    AllocationMap, HEADER_PAGE, PAGES_PER_MAP, PageState, SpaceHeader, SpacePurpose, map_page_of,
};
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::{Held, MiniTransaction};
use crate::pages::{Pages, Restart};

pub use pick::PickedPage;

/// The state of a space in memory.
#[derive(Debug)]
struct SpaceState {
    /// Pages that the maps cover.
    page_count: AtomicU32,
    /// Where the next search for a free page starts.
    hint: AtomicU32,
    /// Whether the last map is nearly used up.
    wants_map: AtomicBool,
    /// Free pages that operations have reserved.
    picked: Mutex<Vec<PageNo>>,
}

/// Spaces that were dropped while old records of them may still have to be purged, or snapshots
/// read.
#[derive(Debug, Default)]
pub struct DroppedSpaces(RwLock<FxHashSet<SpaceId>>);

impl DroppedSpaces {
    pub(crate) fn note(&self, space: SpaceId) {
        self.0.write().insert(space);
    }

    /// Whether the space is known to be dropped. Until the drop is durable the page store returns
    /// its pages as they last were in durable log, each as of another position: they may never fit
    /// each other.
    pub(crate) fn contains(&self, space: SpaceId) -> bool {
        self.0.read().contains(&space)
    }
}

/// The spaces of a node.
pub struct Spaces {
    pages: Pages,
    states: RwLock<FxHashMap<SpaceId, Arc<SpaceState>>>,
    dropped: Arc<DroppedSpaces>,
    retired_before: Mutex<Vec<PageId>>,
}

/// A part of an allocation map that is searched for a free page.
struct MapPart {
    map: PageId,
    /// The first page that the map covers.
    first: u32,
    /// The first entry to examine.
    from: u16,
}

impl SpaceState {
    /// All maps, beginning with the one of the hint. That one is visited twice, the second time
    /// from its start.
    fn map_parts(&self, space: SpaceId) -> impl Iterator<Item = MapPart> + use<> {
        let page_count = self.page_count.load(Ordering::Acquire);
        let hint = self.hint.load(Ordering::Relaxed).min(page_count - 1);
        let maps = page_count / PAGES_PER_MAP;
        (0..=maps).map(move |step| {
            let first = (hint / PAGES_PER_MAP + step) % maps * PAGES_PER_MAP;
            let from = if step == 0 { (hint - first) as u16 } else { 0 };
            MapPart { map: PageId::new(space, map_page_of(PageNo(first)).0), first, from }
        })
    }
}

/// The use of a space's pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpaceUse {
    /// Pages in use, the space's own bookkeeping included.
    pub used: u64,
    /// Pages that are no longer reachable and will be freed.
    pub retired: u64,
    pub free: u64,
}

/// If the last map has fewer free pages than this, another map is made.
const FREE_PAGES_LOW: u32 = PAGES_PER_MAP / 8;

impl Spaces {
    #[must_use]
    pub fn new(pages: Pages) -> Spaces {
        Spaces {
            pages,
            states: RwLock::default(),
            dropped: Arc::default(),
            retired_before: Mutex::default(),
        }
    }

    /// Creates a space with one allocation map. The caller ensures that the id is new, and drops
    /// the space if its purpose fails.
    ///
    /// # Errors
    /// If the log has no room or has failed.
    pub fn create(
        &self,
        space: SpaceId,
        purpose: SpacePurpose,
        table: TableId,
    ) -> Result<(), EngineError> {
        self.create_for(space, purpose, table, Purpose::Forward)
    }

    /// As [`Spaces::create`], with room in the log for `log_purpose`.
    ///
    /// # Errors
    /// As [`Spaces::create`].
    pub(crate) fn create_for(
        &self,
        space: SpaceId,
        purpose: SpacePurpose,
        table: TableId,
        log_purpose: Purpose,
    ) -> Result<(), EngineError> {
        let mut frames = self.pages.pool.reserve(2);
        let mut mtr = MiniTransaction::begin(&self.pages, log_purpose)?;
        let header = mtr.create(&mut frames, PageId::new(space, HEADER_PAGE));
        mtr.change(header, &Change::Format { kind: PageKind::SpaceHeader });
        let fields =
            SpaceHeader { purpose, page_count: PAGES_PER_MAP, allocation_hint: PageNo(2), table };
        mtr.change(
            header,
            &Change::WriteBytes { at: SpaceHeader::ENCODED_AT, bytes: &fields.encode() },
        );
        let map = mtr.create(&mut frames, PageId::new(space, map_page_of(HEADER_PAGE).0));
        mtr.change(map, &Change::Format { kind: PageKind::AllocationMap });
        for index in [0, 1] {
            mtr.change(map, &Change::AllocationSet { index, state: PageState::Used });
        }
        let _ = mtr.commit();
        Ok(())
    }

    /// Drops a space with all its pages. After this only purge may use it, and finds it among the
    /// dropped ones.
    ///
    /// # Errors
    /// If the log has failed.
    pub fn drop_space(&self, space: SpaceId) -> Result<(), EngineError> {
        self.note_dropped(space);
        let mut mtr = MiniTransaction::begin(&self.pages, Purpose::Completion)?;
        mtr.note(PageId::new(space, PageNo::NONE), &Change::SpaceDropped);
        let _ = mtr.commit();
        self.states.write().remove(&space);
        self.pages.pool.discard_space(space);
        Ok(())
    }

    pub(crate) fn note_dropped(&self, space: SpaceId) {
        self.dropped.note(space);
    }

    /// The spaces that are known to be dropped.
    pub(crate) fn dropped(&self) -> Vec<SpaceId> {
        self.dropped.0.read().iter().copied().collect()
    }

    /// The set of dropped spaces, for readers.
    pub(crate) fn dropped_spaces(&self) -> &Arc<DroppedSpaces> {
        &self.dropped
    }

    /// Forgets dropped spaces that have nothing left to purge.
    pub(crate) fn forget_dropped(&self, spaces: &[SpaceId]) {
        let mut dropped = self.dropped.0.write();
        spaces.iter().for_each(|space| {
            dropped.remove(space);
        });
    }

    /// Ensures that pages can be allocated in `space`. May block; call it with nothing latched.
    ///
    /// # Errors
    /// If the space does not exist, or the log has no room or has failed.
    pub fn prepare(&self, space: SpaceId) -> Result<(), EngineError> {
        let state = self.pages.run(|| self.state(space))?;
        if state.wants_map.load(Ordering::Acquire) {
            self.add_map(space, &state)?;
        }
        Ok(())
    }

    fn add_map(&self, space: SpaceId, state: &SpaceState) -> Result<(), EngineError> {
        let mut frames = self.pages.pool.reserve(1);
        self.pages.run(|| {
            let mut mtr = MiniTransaction::begin(&self.pages, Purpose::Completion)?;
            let header = mtr.exclusive(PageId::new(space, HEADER_PAGE))?;
            if !state.wants_map.load(Ordering::Acquire) {
                return Ok(());
            }
            let first = state.page_count.load(Ordering::Acquire);
            let (map_page, index) = map_page_of(PageNo(first + 1));
            let map = mtr.create(&mut frames, PageId::new(space, map_page));
            mtr.change(map, &Change::Format { kind: PageKind::AllocationMap });
            mtr.change(map, &Change::AllocationSet { index, state: PageState::Used });
            let page_count = first + PAGES_PER_MAP;
            mtr.change(header, &Change::from(&SpaceHeader::write_page_count(page_count)));
            let _ = mtr.commit();
            state.page_count.store(page_count, Ordering::Release);
            state.wants_map.store(false, Ordering::Release);
            Ok(())
        })
    }

    fn state(&self, space: SpaceId) -> Result<Arc<SpaceState>, Restart> {
        if let Some(state) = self.states.read().get(&space) {
            return Ok(Arc::clone(state));
        }
        let page = PageId::new(space, HEADER_PAGE);
        let guard = self.pages.pool.shared(page)?;
        let Some(header) = SpaceHeader::read(&guard) else {
            return Err(EngineError::NoSuchSpace(space).into());
        };
        drop(guard);
        // No page of this space was retired since the start, because retiring needs the state that
        // is created here.
        let retired = self.retired_pages(space, header.page_count)?;
        let state = Arc::new(SpaceState {
            page_count: AtomicU32::new(header.page_count),
            hint: AtomicU32::new(header.allocation_hint.0),
            wants_map: AtomicBool::new(false),
            picked: Mutex::default(),
        });
        match self.states.write().entry(space) {
            Entry::Occupied(first) => Ok(Arc::clone(first.get())),
            Entry::Vacant(slot) => {
                self.retired_before.lock().extend(retired);
                Ok(Arc::clone(slot.insert(state)))
            }
        }
    }

    /// Takes a free page of `space`, within `mtr`.
    ///
    /// # Errors
    /// [`Restart`] if a page is needed first; nothing is changed then.
    pub fn allocate(
        &self,
        mtr: &mut MiniTransaction<'_>,
        space: SpaceId,
    ) -> Result<PageNo, Restart> {
        let [page] = self.allocate_some(mtr, space)?;
        Ok(page)
    }

    /// Takes two free pages of `space`, within `mtr`.
    ///
    /// # Errors
    /// [`Restart`] if a page is needed first; nothing is changed then.
    pub fn allocate_pair(
        &self,
        mtr: &mut MiniTransaction<'_>,
        space: SpaceId,
    ) -> Result<[PageNo; 2], Restart> {
        self.allocate_some(mtr, space)
    }

    fn allocate_some<const N: usize>(
        &self,
        mtr: &mut MiniTransaction<'_>,
        space: SpaceId,
    ) -> Result<[PageNo; N], Restart> {
        let state = self.state(space)?;
        for MapPart { map, first, from } in state.map_parts(space) {
            let map = mtr.exclusive(map)?;
            let picked = state.picked.lock();
            let Some(indexes) = find_free::<N>(mtr, map, first, from, &picked) else {
                continue;
            };
            for index in indexes {
                mtr.change(map, &Change::AllocationSet { index, state: PageState::Used });
            }
            drop(picked);
            state.hint.store(first + u32::from(indexes[N - 1]) + 1, Ordering::Relaxed);
            self.note_taken(mtr, map, &state);
            return Ok(indexes.map(|index| PageNo(first + u32::from(index))));
        }
        state.wants_map.store(true, Ordering::Release);
        Err(EngineError::Invalid(format!("space {space} has no free page")).into())
    }

    /// Requests another map if this is the last one and has few free pages.
    fn note_taken(&self, mtr: &MiniTransaction<'_>, map: Held, state: &SpaceState) {
        let Some(map) = AllocationMap::new(mtr.page(map)) else { return };
        let is_last =
            map.first_page().0 + PAGES_PER_MAP == state.page_count.load(Ordering::Acquire);
        if is_last && map.free_count() < FREE_PAGES_LOW {
            state.wants_map.store(true, Ordering::Release);
        }
    }

    /// Frees a page within `mtr`.
    ///
    /// # Errors
    /// [`Restart`] if a page is needed first; nothing is changed then.
    pub fn free(&self, mtr: &mut MiniTransaction<'_>, page: PageId) -> Result<(), Restart> {
        self.set(mtr, page, PageState::Free)?;
        let state = self.state(page.space)?;
        state.hint.fetch_min(page.page_no.0, Ordering::Relaxed);
        Ok(())
    }

    /// Marks a page as retired within `mtr`: it is no longer reachable but may still be read.
    ///
    /// # Errors
    /// [`Restart`] if a page is needed first; nothing was changed.
    pub fn retire(&self, mtr: &mut MiniTransaction<'_>, page: PageId) -> Result<(), Restart> {
        self.set(mtr, page, PageState::Retired)
    }

    fn set(
        &self,
        mtr: &mut MiniTransaction<'_>,
        page: PageId,
        state: PageState,
    ) -> Result<(), Restart> {
        self.state(page.space)?;
        let (map_page, index) = map_page_of(page.page_no);
        let map = mtr.exclusive(PageId::new(page.space, map_page))?;
        mtr.change(map, &Change::AllocationSet { index, state });
        Ok(())
    }

    /// The use of a space's pages. Reads the space's maps.
    ///
    /// # Errors
    /// If the space does not exist or a map cannot be read.
    pub fn usage(&self, space: SpaceId) -> Result<SpaceUse, EngineError> {
        let state = self.pages.run(|| self.state(space))?;
        let mut usage = SpaceUse::default();
        for first in (0..state.page_count.load(Ordering::Acquire)).step_by(PAGES_PER_MAP as usize) {
            let page = PageId::new(space, map_page_of(PageNo(first)).0);
            self.pages.run(|| {
                let guard = self.pages.pool.shared(page)?;
                let map = AllocationMap::new(&guard).ok_or_else(|| EngineError::Corrupt {
                    page,
                    what: "it is not an allocation map".to_owned(),
                })?;
                usage.used += u64::from(map.used_count());
                usage.retired += u64::from(map.retired_count());
                usage.free += u64::from(map.free_count());
                Ok(())
            })?;
        }
        Ok(usage)
    }

    /// Pages that were retired before the last restart, in spaces that have been used since. They
    /// have no readers; the caller must free them.
    pub fn take_retired(&self) -> Vec<PageId> {
        std::mem::take(&mut *self.retired_before.lock())
    }

    /// The pages of a space that are retired now.
    fn retired_pages(&self, space: SpaceId, page_count: u32) -> Result<Vec<PageId>, Restart> {
        let mut retired = Vec::new();
        for first in (0..page_count).step_by(PAGES_PER_MAP as usize) {
            let guard = self.pages.pool.shared(PageId::new(space, map_page_of(PageNo(first)).0))?;
            let Some(map) = AllocationMap::new(&guard).filter(|map| map.retired_count() > 0) else {
                continue;
            };
            let mut from = 0;
            while let Some(index) = map.find(PageState::Retired, from) {
                retired.push(PageId::new(space, PageNo(first + u32::from(index))));
                from = index + 1;
            }
        }
        Ok(retired)
    }
}

fn find_free<const N: usize>(
    mtr: &MiniTransaction<'_>,
    map: Held,
    first: u32,
    from: u16,
    picked: &[PageNo],
) -> Option<[u16; N]> {
    let map = AllocationMap::new(mtr.page(map))?;
    let mut indexes = [0; N];
    let mut from = from;
    for slot in &mut indexes {
        *slot = pick::find_free(&map, first, from, picked)?;
        from = *slot + 1;
    }
    Some(indexes)
}
