//! A log of real groups, a writer's pool that appends to it, and a page store that has every
//! version.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use firn_api::page_store::conformance::{PositionLease, Subject};
use firn_api::{PageLease, PageRead, PageStore, PageStoreError, PageVersion};
use firn_base::random::{RandomSource, SplitMix};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PAGE_HEADER_BYTES, PageBuf, PageKind};
use firn_format::redo::change::no_page;
use firn_format::redo::{Change, Group, GroupBuilder, apply};
use firn_format::space::PageState;

use super::{ReadHook, page};
use crate::{BufferPool, BufferPoolOptions, LogApplier, Miss};

/// Where a header page has its number.
const NUMBER: usize = PAGE_HEADER_BYTES + 64;

/// The log, and every version of every page as the writer's pool had it.
#[derive(Default)]
pub(crate) struct LoggedPages {
    groups: Mutex<Vec<(Lsn, Vec<u8>)>>,
    versions: Mutex<HashMap<PageId, Vec<Box<PageBuf>>>>,
    dropped: Mutex<HashMap<SpaceId, Lsn>>,
    end: AtomicU64,
    leases: Mutex<Vec<Weak<PositionLease>>>,
    pub(crate) during_read: Mutex<Option<ReadHook>>,
}

impl LoggedPages {
    pub(crate) fn new() -> Arc<LoggedPages> {
        let pages = LoggedPages::default();
        pages.end.store(Lsn::FIRST.0, Ordering::SeqCst);
        Arc::new(pages)
    }

    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.end.load(Ordering::SeqCst))
    }

    /// The writer's pool, without tasks.
    pub(crate) fn writer(self: &Arc<Self>, frames: usize) -> Arc<BufferPool> {
        let log = Arc::clone(self);
        BufferPool::new(
            Environment::system(),
            Arc::clone(self) as _,
            Arc::new(move || log.end()),
            small(frames),
        )
    }

    /// A pool at the position `start`, without tasks.
    pub(crate) fn follower(
        self: &Arc<Self>,
        frames: usize,
        start: Lsn,
    ) -> (Arc<BufferPool>, LogApplier) {
        BufferPool::at_position(
            &Environment::system(),
            Arc::clone(self) as _,
            self.hold("follower", start).unwrap(),
            &small(frames),
        )
    }

    /// Applies the group that begins at the applier's position; false if there is none.
    pub(crate) fn feed(&self, applier: &mut LogApplier) -> bool {
        let start = applier.applied_lsn();
        let bytes = {
            let groups = self.groups.lock().unwrap();
            let Ok(index) = groups.binary_search_by_key(&start, |(start, _)| *start) else {
                return false;
            };
            groups[index].1.clone()
        };
        applier.apply(start, &Group::parse(&bytes).unwrap()).unwrap();
        true
    }

    /// Appends a group and makes the next versions of its pages.
    fn append(&self, bytes: &[u8]) -> Lsn {
        let start = self.end();
        let end = start.advance(bytes.len() as u64);
        self.groups.lock().unwrap().push((start, bytes.to_vec()));
        for record in Group::parse(bytes).unwrap().records() {
            let record = record.unwrap();
            match Change::decode(&record).unwrap() {
                Change::SpaceDropped => {
                    self.dropped.lock().unwrap().insert(record.page.space, end);
                }
                change => self.make_version(record.page, &change, end),
            }
        }
        end
    }

    fn make_version(&self, page: PageId, change: &Change<'_>, end: Lsn) {
        let mut versions = self.versions.lock().unwrap();
        let versions = versions.entry(page).or_default();
        if versions.last().is_none_or(|last| last.lsn() < end) {
            versions.push(versions.last().map_or_else(PageBuf::boxed, Clone::clone));
        }
        let version = versions.last_mut().unwrap();
        apply(version, page, change).unwrap();
        version.set_lsn(end);
    }

    /// One mini-transaction: changes pages of the writer's pool, each in a different way, and
    /// creates those that do not exist yet.
    pub(crate) fn change(&self, writer: &BufferPool, changes: &[(PageId, Change<'_>)]) -> Lsn {
        let mut pages: Vec<PageId> = changes.iter().map(|(page, _)| *page).collect();
        pages.dedup();
        let mut _pin = None;
        let mut guards = loop {
            let mut reservation = writer.reserve(pages.len());
            let latch = |page: &PageId| match self.newest(*page) {
                Some(_) => writer.exclusive(*page),
                None => Ok(writer.create(&mut reservation, *page)),
            };
            match pages.iter().map(latch).collect::<Result<Vec<_>, Miss>>() {
                Ok(guards) => break guards,
                Err(Miss(page)) => _pin = Some(writer.load(page).unwrap()),
            }
        };
        let mut group = GroupBuilder::new();
        for (page, change) in changes {
            let guard = guards.iter_mut().find(|guard| guard.id() == *page).unwrap();
            apply(guard.page_mut(), *page, change).unwrap();
            change.encode(*page, &mut group);
        }
        let end = self.append(group.finish());
        for guard in &mut guards {
            guard.mark_changed(end);
            assert!(self.as_of(guard.id(), end).as_deref() == Some(&**guard), "{guard:?}");
        }
        self.end.store(end.0, Ordering::SeqCst);
        end
    }

    pub(crate) fn drop_space(&self, writer: &BufferPool, space: SpaceId) {
        let mut group = GroupBuilder::new();
        Change::SpaceDropped.encode(no_page(space), &mut group);
        let end = self.append(group.finish());
        self.end.store(end.0, Ordering::SeqCst);
        writer.discard_space(space);
    }

    /// The oldest position that is held.
    fn kept_from(&self) -> Lsn {
        let leases = self.leases.lock().unwrap();
        let held = leases.iter().filter_map(Weak::upgrade).map(|lease| lease.position());
        held.min().unwrap_or(self.end())
    }

    fn newest(&self, page: PageId) -> Option<Box<PageBuf>> {
        self.as_of(page, Lsn::MAX)
    }

    /// The page in the writer's pool when the log ended at `position`.
    pub(crate) fn as_of(&self, page: PageId, position: Lsn) -> Option<Box<PageBuf>> {
        if self.dropped.lock().unwrap().get(&page.space).is_some_and(|end| *end <= position) {
            return None;
        }
        let versions = self.versions.lock().unwrap();
        let mut versions = versions.get(&page)?.iter().rev();
        versions.find(|image| image.lsn() <= position).cloned()
    }
}

fn small(frames: usize) -> BufferPoolOptions {
    BufferPoolOptions {
        prefetch_tasks: 0,
        clean_ahead: false,
        ..BufferPoolOptions::with_budget(frames * 17_600)
    }
}

/// Sets the number of a header page.
pub(crate) fn set_number(bytes: &[u8; 8]) -> Change<'_> {
    Change::WriteBytes { at: NUMBER as u16, bytes }
}

/// The number of a header page.
pub(crate) fn number(page: &PageBuf) -> u64 {
    page.get_u64(NUMBER)
}

/// Random mini-transactions over `count` pages; the even ones are headers, the others maps.
pub(crate) struct RandomChanges {
    random: SplitMix,
    count: u32,
}

impl RandomChanges {
    pub(crate) fn new(seed: u64, count: u32) -> RandomChanges {
        RandomChanges { random: SplitMix::new(seed), count }
    }

    pub(crate) fn below(&self, limit: u32) -> u32 {
        (self.random.next_u64() % u64::from(limit)) as u32
    }

    pub(crate) fn page(&self) -> PageId {
        page(self.below(self.count))
    }

    /// Changes one to four pages, in any order; some begin a new life.
    pub(crate) fn commit(&self, log: &LoggedPages, writer: &BufferPool) {
        let mut pages: Vec<PageId> = Vec::new();
        while pages.is_empty() || (pages.len() < 4 && self.below(4) > 0) {
            let page = self.page();
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        let bytes = self.random.next_u64().to_le_bytes();
        let mut changes = Vec::new();
        for page in pages {
            let is_header = page.page_no.0.is_multiple_of(2);
            let kind = if is_header { PageKind::SpaceHeader } else { PageKind::AllocationMap };
            if log.newest(page).is_none() || self.below(10) == 0 {
                changes.push((page, Change::Format { kind }));
            }
            let change = match is_header {
                true => set_number(&bytes),
                false => Change::AllocationSet {
                    index: self.below(1000) as u16,
                    state: if self.below(2) == 0 { PageState::Used } else { PageState::Free },
                },
            };
            changes.push((page, change));
        }
        log.change(writer, &changes);
    }
}

impl PageStore for LoggedPages {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        let hook = self.during_read.lock().unwrap().clone();
        let position = match version {
            PageRead::Latest { .. } => self.end(),
            PageRead::AsOf(position) => position,
        };
        let image = self.as_of(page, position);
        if let Some(hook) = hook {
            hook(page);
        }
        let kept_from = self.kept_from();
        if version == PageRead::AsOf(position) && position < kept_from {
            return Err(PageStoreError::TooOld { page, wanted: position, kept_from });
        }
        into.bytes_mut().copy_from_slice(image.ok_or(PageStoreError::Absent(page))?.bytes());
        Ok(PageVersion { lsn: into.lsn(), as_of: position.max(into.lsn()) })
    }

    fn hold(&self, _: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        let lease = Arc::new(PositionLease::new(position));
        self.leases.lock().unwrap().push(Arc::downgrade(&lease));
        Ok(lease)
    }

    fn applied_lsn(&self, _: PageId) -> Lsn {
        Lsn(0)
    }

    fn spaces(&self) -> Vec<SpaceId> {
        Vec::new()
    }
}

/// A page of a different space than [`page`].
pub(crate) fn other_page(number: u32) -> PageId {
    PageId::new(SpaceId(8), PageNo(number))
}

/// The store and its log, as a subject of the suite for page stores.
pub(crate) struct Promises(pub(crate) Arc<LoggedPages>);

impl Subject for Promises {
    fn store(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.0) as _
    }

    fn append(&mut self, group: &[u8]) -> Lsn {
        let end = self.0.append(group);
        self.0.end.store(end.0, Ordering::SeqCst);
        end
    }

    fn work(&mut self) {}

    fn truncate_log(&mut self, position: Lsn) {
        assert_eq!(position, Lsn(0), "it covers nothing");
    }

    fn restart(&mut self) {
        self.0.leases.lock().unwrap().clear();
    }
}
