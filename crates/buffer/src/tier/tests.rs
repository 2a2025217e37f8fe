#![cfg(not(feature = "shuttle"))]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use firn_api::{
    PageLease, PageRead, PageStore, PageStoreError, PageTier, PageVersion, TierLatch, TierLatchMode,
};
use firn_base::{Environment, Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;

use crate::test_support::logged::{LoggedPages, RandomChanges};
use crate::test_support::page;
use crate::{BufferPool, BufferPoolOptions};

const PAGES: u32 = 90;

/// A tier before a store that keeps what pools hand it, and counts.
struct Tier {
    store: Arc<LoggedPages>,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    registered: HashMap<PageId, i64>,
    shared: HashMap<PageId, Box<PageBuf>>,
    /// Where the log ended when a page was last about to change.
    changing: HashMap<PageId, Lsn>,
    fetched: u64,
    latches: Vec<(PageId, TierLatchMode)>,
}

struct Latched;

impl TierLatch for Latched {}

impl PageStore for Tier {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        let image = self.told.lock().unwrap().shared.get(&page).cloned();
        let reply = match image.filter(|image| image.lsn() >= version.position()) {
            Some(image) => {
                into.bytes_mut().copy_from_slice(image.bytes());
                self.told.lock().unwrap().fetched += 1;
                PageVersion { lsn: image.lsn(), as_of: image.lsn() }
            }
            None => self.store.read(page, version, into)?,
        };
        *self.told.lock().unwrap().registered.entry(page).or_default() += 1;
        Ok(reply)
    }

    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        self.store.hold(reader, position)
    }

    fn applied_lsn(&self, page: PageId) -> Lsn {
        self.store.applied_lsn(page)
    }

    fn spaces(&self) -> Vec<SpaceId> {
        self.store.spaces()
    }

    fn tier(self: Arc<Self>) -> Option<Arc<dyn PageTier>> {
        Some(self)
    }
}

impl PageTier for Tier {
    fn created(&self, page: PageId) {
        *self.told.lock().unwrap().registered.entry(page).or_default() += 1;
    }

    fn changing(&self, page: PageId) {
        let mut told = self.told.lock().unwrap();
        told.shared.remove(&page);
        told.changing.insert(page, self.store.end());
    }

    fn released(&self, page: PageId, image: Option<&PageBuf>) {
        let mut told = self.told.lock().unwrap();
        *told.registered.entry(page).or_default() -= 1;
        if let Some(image) = image {
            told.shared.insert(page, Box::new(image.clone()));
        }
    }

    fn latch(
        &self,
        page: PageId,
        mode: TierLatchMode,
    ) -> Result<Box<dyn TierLatch>, PageStoreError> {
        self.told.lock().unwrap().latches.push((page, mode));
        Ok(Box::new(Latched))
    }
}

fn pool_over(tier: &Arc<Tier>) -> Arc<BufferPool> {
    let log = Arc::clone(&tier.store);
    let options = BufferPoolOptions {
        prefetch_tasks: 0,
        clean_ahead: false,
        ..BufferPoolOptions::with_budget(34 * 17_600)
    };
    let durable = Arc::new(move || log.end());
    BufferPool::new(Environment::system(), Arc::clone(tier) as _, durable, options)
}

impl Tier {
    fn new() -> Arc<Tier> {
        Tier::before(&LoggedPages::new())
    }

    fn before(store: &Arc<LoggedPages>) -> Arc<Tier> {
        Arc::new(Tier { store: Arc::clone(store), told: Mutex::default() })
    }

    fn assert_registered_as_cached(&self, pool: &BufferPool) {
        let told = self.told.lock().unwrap();
        for page in (0..PAGES).map(page) {
            let registered = told.registered.get(&page).copied().unwrap_or_default();
            assert_eq!(registered, i64::from(pool.contains(page)), "{page}");
        }
    }
}

#[test]
fn a_tier_learns_of_every_page_that_comes_changes_and_goes() {
    for seed in 0..4 {
        let (tier, changes) = (Tier::new(), RandomChanges::new(seed, PAGES));
        let pool = pool_over(&tier);
        for round in 0..800 {
            let before = tier.store.end();
            changes.commit(&tier.store, &pool);
            let told = tier.told.lock().unwrap().changing.clone();
            let changed = (0..PAGES).map(page).filter(|page| {
                let lsn = tier.store.as_of(*page, Lsn::MAX).map(|newest| newest.lsn());
                lsn > Some(before)
            });
            changed.for_each(|page| assert_eq!(told[&page], before, "told before the log had it"));
            // Some do not exist, and the result of reading them is discarded.
            let _ = pool.load_many(&[changes.page(), changes.page()]);
            if round % 20 == 0 {
                pool.invalidate(changes.page(), tier.store.end());
                tier.assert_registered_as_cached(&pool);
            }
        }
        pool.discard_space(page(0).space);
        tier.assert_registered_as_cached(&pool);
        assert!(tier.told.lock().unwrap().fetched > 100, "the tier gives pages back");
    }
}

#[test]
fn a_read_that_is_thrown_away_is_released() {
    let tier = Tier::new();
    let pool = pool_over(&tier);
    RandomChanges::new(1, 1).commit(&tier.store, &pool_over(&Tier::before(&tier.store)));
    let (weak, log) = (Arc::downgrade(&pool), Arc::downgrade(&tier.store));
    *tier.store.during_read.lock().unwrap() = Some(Arc::new(move |id: PageId| {
        *log.upgrade().unwrap().during_read.lock().unwrap() = None;
        weak.upgrade().unwrap().discard_space(id.space);
    }));
    drop(pool.load(page(0)).unwrap());
    assert_eq!(pool.statistics().misses, 2);
    tier.assert_registered_as_cached(&pool);
}

#[test]
fn a_page_is_latched_among_nodes_if_there_are_others() {
    let tier = Tier::new();
    let pool = pool_over(&tier);
    let latch = pool.latch_among_nodes(page(3), TierLatchMode::Exclusive).unwrap();
    assert!(latch.is_some());
    assert_eq!(tier.told.lock().unwrap().latches, [(page(3), TierLatchMode::Exclusive)]);
    let alone = tier.store.writer(34);
    assert!(alone.latch_among_nodes(page(3), TierLatchMode::Shared).unwrap().is_none());
}
