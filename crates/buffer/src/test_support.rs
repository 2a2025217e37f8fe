//! A page store and a log that are as unhelpful as their contracts allow: a read returns the oldest
//! version that it may return.

pub(crate) mod logged;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use firn_api::{
    ImageSource, LocalImages, Offer, PageLease, PageRead, PageRequest, PageSink, PageStore,
    PageStoreError, PageVersion,
};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PAGE_HEADER_BYTES, PageBuf, PageKind};

use crate::{BufferPool, BufferPoolOptions, ExclusiveGuard};

/// Where the tests' pages have their number.
const NUMBER: usize = PAGE_HEADER_BYTES;

/// Called while a page is being read.
type ReadHook = Arc<dyn Fn(PageId) + Send + Sync>;

/// The log and the page store of a test.
#[derive(Default)]
pub(crate) struct World {
    pages: Mutex<HashMap<PageId, Versions>>,
    end: AtomicU64,
    durable: AtomicU64,
    pub(crate) auto_durable: AtomicBool,
    /// Offers that the store takes before it is full; refilled by `wait_for_room`.
    pub(crate) room: AtomicUsize,
    pub(crate) room_per_wait: AtomicUsize,
    pub(crate) waits: AtomicUsize,
    pub(crate) reads: AtomicUsize,
    pub(crate) offers: AtomicUsize,
    /// The number of pages of each batch call.
    pub(crate) batches: Mutex<Vec<usize>>,
    pub(crate) broken: Mutex<HashSet<PageId>>,
    pub(crate) misplaced: Mutex<HashSet<PageId>>,
    /// Called within each read.
    pub(crate) during_read: Mutex<Option<ReadHook>>,
    images: Mutex<Option<Arc<dyn ImageSource>>>,
}

/// A page's versions in the log, and how far the store has applied them.
#[derive(Default, Clone)]
struct Versions {
    stored: u64,
    logged: Vec<(u64, PageKind, u64)>,
}

pub(crate) fn page(number: u32) -> PageId {
    PageId::new(SpaceId(7), PageNo(number))
}

/// The test's number in a page.
pub(crate) fn number(page: &PageBuf) -> u64 {
    page.get_u64(NUMBER)
}

impl World {
    /// A log that is durable at once, and a store with endless room and `count` pages.
    pub(crate) fn with_pages(count: u32) -> Arc<World> {
        let world = World {
            auto_durable: AtomicBool::new(true),
            room: AtomicUsize::new(usize::MAX / 2),
            ..World::default()
        };
        for number in 0..count {
            world.put(page(number), PageKind::TreeLeaf, 0);
        }
        Arc::new(world)
    }

    /// Puts a page into log and store.
    pub(crate) fn put(&self, page: PageId, kind: PageKind, number: u64) {
        let lsn = self.log(page, kind, number);
        self.pages.lock().unwrap().get_mut(&page).unwrap().stored = lsn.0;
    }

    fn log(&self, page: PageId, kind: PageKind, number: u64) -> Lsn {
        let mut pages = self.pages.lock().unwrap();
        let end = self.end.fetch_add(8, Ordering::SeqCst) + 8;
        pages.entry(page).or_default().logged.push((end, kind, number));
        if self.auto_durable.load(Ordering::SeqCst) {
            self.durable.fetch_max(end, Ordering::SeqCst);
        }
        Lsn(end)
    }

    #[cfg_attr(feature = "shuttle", allow(dead_code))]
    pub(crate) fn make_durable(&self) {
        self.durable.store(self.end.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    pub(crate) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    /// Does what a mini-transaction does: sets the number, logs it, stamps the page.
    pub(crate) fn change(&self, guard: &mut ExclusiveGuard<'_>, kind: PageKind, number: u64) {
        let id = guard.id();
        if guard.page_mut().kind() != Some(kind) || guard.page_id() != id {
            guard.page_mut().format(id, kind);
        }
        guard.page_mut().put_u64(NUMBER, number);
        let end = self.log(id, kind, number);
        guard.mark_changed(end);
    }

    /// A pool of `frames` frames without tasks.
    pub(crate) fn pool(self: &Arc<World>, frames: usize) -> Arc<BufferPool> {
        self.pool_with(BufferPoolOptions {
            prefetch_tasks: 0,
            clean_ahead: false,
            ..BufferPoolOptions::with_budget(frames * 17_600)
        })
    }

    pub(crate) fn pool_with(self: &Arc<World>, options: BufferPoolOptions) -> Arc<BufferPool> {
        let world = Arc::clone(self);
        let durable = Arc::new(move || world.durable());
        BufferPool::new(Environment::system(), Arc::clone(self) as _, durable, options)
    }

    pub(crate) fn image_source(&self) -> Arc<dyn ImageSource> {
        self.images.lock().unwrap().clone().unwrap()
    }
}

impl Versions {
    /// The oldest version that includes everything up to `at_least` and everything stored.
    fn oldest_allowed(&self, at_least: Lsn) -> Option<(u64, PageKind, u64)> {
        let bound = at_least.0.max(self.stored);
        self.logged.iter().rev().find(|(lsn, ..)| *lsn <= bound).copied()
    }
}

impl PageStore for World {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let during = self.during_read.lock().unwrap().clone();
        let PageRead::Latest { at_least } = version else { panic!("the pool reads the newest") };
        assert!(at_least <= self.durable(), "only what was durable was dropped");
        let versions = self.pages.lock().unwrap().get(&page).cloned();
        if let Some(during) = during {
            during(page);
        }
        if self.broken.lock().unwrap().contains(&page) {
            return Err(PageStoreError::Io { place: "disk".into(), reason: "broken".into() });
        }
        let found = versions.and_then(|versions| versions.oldest_allowed(at_least));
        let (lsn, kind, number) = found.ok_or(PageStoreError::Absent(page))?;
        let misplaced = self.misplaced.lock().unwrap().contains(&page);
        into.format(if misplaced { PageId::default() } else { page }, kind);
        into.put_u64(NUMBER, number);
        into.set_lsn(Lsn(lsn));
        Ok(PageVersion { lsn: Lsn(lsn), as_of: at_least.max(Lsn(lsn)) })
    }

    /// Replies in the wrong order.
    fn read_many(&self, requests: &[PageRequest], sink: &mut dyn PageSink) {
        self.batches.lock().unwrap().push(requests.len());
        for (index, request) in requests.iter().enumerate().rev() {
            let reply = self.read(request.page, request.version, sink.page_mut(index));
            sink.complete(index, reply);
        }
    }

    fn hold(&self, _: &str, _: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        unreachable!("these pools show the newest versions")
    }

    fn applied_lsn(&self, _: PageId) -> Lsn {
        Lsn(0)
    }

    fn spaces(&self) -> Vec<SpaceId> {
        Vec::new()
    }

    fn local_images(self: Arc<Self>) -> Option<Arc<dyn LocalImages>> {
        Some(self)
    }
}

impl LocalImages for World {
    fn offer(&self, image: &PageBuf) -> Offer {
        assert!(image.lsn() <= self.durable(), "only what is durable is offered");
        let take = |room: usize| room.checked_sub(1);
        if self.room.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
            return Offer::Full;
        }
        self.offers.fetch_add(1, Ordering::SeqCst);
        let mut pages = self.pages.lock().unwrap();
        let versions = pages.get_mut(&image.page_id()).expect("what is cached was logged");
        assert!(
            versions.logged.contains(&(image.lsn().0, image.kind().unwrap(), number(image))),
            "what is offered is a version of the log"
        );
        versions.stored = versions.stored.max(image.lsn().0);
        Offer::Taken
    }

    fn wait_for_room(&self) {
        self.waits.fetch_add(1, Ordering::SeqCst);
        self.room.fetch_add(self.room_per_wait.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    fn attach(&self, source: Arc<dyn ImageSource>) {
        *self.images.lock().unwrap() = Some(source);
    }
}
