//! Tables over a remote page store, in a pool that is much too small. A second pool follows the log
//! and must show every page as the writer had it.

use std::sync::Arc;

use firn_api::page_store::page_service::SimulatedOptions;
use firn_api::{LogStore, PageRead, PageStore, PageStoreError};
use firn_base::random::{RandomSource, SplitMix};
use firn_base::{Environment, Lsn, PageId, PageNo};
use firn_buffer::{BufferPool, BufferPoolOptions, LogApplier};
use firn_format::page::PageBuf;
use firn_format::redo::Group;

use super::model::{Run, Step};
use crate::test_support::{Database, MemoryStorage};

const ROWS: u64 = 400;
const STEPS: u64 = 1200;
/// Pages of a space that are compared.
const PAGES: u64 = 80;

/// The smallest pool.
const TINY_BYTES: usize = 0;

fn random_step(random: &SplitMix) -> Step {
    let below = |limit: u64| random.next_u64() % limit;
    let id = || below(ROWS) as i64;
    let email = || (below(3) == 0).then(|| below(250) as u8);
    let age = || (below(4) > 0).then(|| below(90) as u8);
    let body = || if below(30) == 0 { 20_000 + below(9000) } else { below(900) } as usize;
    match below(20) {
        0..9 => Step::Insert { id: id(), email: email(), age: age(), body: body() },
        9..12 => Step::Update { id: id(), email: Some(email()), age: None, body: Some(body()) },
        12 => Step::Move { id: id(), to: id() },
        13..16 => Step::Delete { id: id() },
        16 | 17 => Step::Commit,
        18 => Step::Purge,
        _ => Step::Rollback,
    }
}

/// A pool that follows the log.
struct Follower {
    storage: MemoryStorage,
    pool: Arc<BufferPool>,
    applier: LogApplier,
}

impl Follower {
    fn new(storage: &MemoryStorage) -> Follower {
        let lease = storage.pages.hold("follower", Lsn::FIRST).unwrap();
        let (pool, applier) = BufferPool::at_position(
            &Environment::system(),
            Arc::clone(&storage.pages) as _,
            lease,
            &BufferPoolOptions::with_budget(TINY_BYTES),
        );
        Follower { storage: storage.clone(), pool, applier }
    }

    /// Applies up to `limit` groups.
    fn follow(&mut self, limit: u64) {
        let mut bytes = Vec::new();
        self.storage.log.read(self.applier.applied_lsn(), usize::MAX, &mut bytes).unwrap();
        let mut rest = &bytes[..];
        for _ in 0..limit {
            let Ok(group) = Group::parse(rest) else { return };
            self.applier.apply(self.applier.applied_lsn(), &group).unwrap();
            rest = &rest[group.length_bytes() as usize..];
        }
    }

    fn shown(&self, page: PageId) -> Option<Box<PageBuf>> {
        shown(&self.pool, page)
    }

    /// Compares a page with the page store's version, made from the whole log up to the position.
    fn check(&self, page: PageId) {
        let position = self.applier.applied_lsn();
        let mut expected = PageBuf::boxed();
        let expected = match self.storage.pages.read(page, PageRead::AsOf(position), &mut expected)
        {
            Ok(_) => Some(expected),
            Err(PageStoreError::Absent(_)) => None,
            Err(error) => panic!("{error}"),
        };
        assert!(self.shown(page) == expected, "{page} at {position}");
    }
}

fn shown(pool: &BufferPool, page: PageId) -> Option<Box<PageBuf>> {
    loop {
        let _pin = match pool.load(page) {
            Ok(pin) => pin,
            Err(PageStoreError::Absent(_)) => return None,
            Err(error) => panic!("{error}"),
        };
        if let Ok(guard) = pool.shared(page) {
            return Some(Box::new((*guard).clone()));
        }
    }
}

#[test]
fn tables_and_followers_stand_on_pages_that_are_elsewhere() {
    for seed in 0..2 {
        let options = SimulatedOptions { chunk_pages: 16, ..SimulatedOptions::new(seed) };
        let storage = MemoryStorage::new(options);
        let mut follower = Follower::new(&storage);
        let database = Database::over(storage.open(TINY_BYTES));
        let pages = database.node.system.pages().clone();
        let mut run = Run::new(database);
        let random = SplitMix::new(seed);
        for step in 0..STEPS {
            run.step(&random_step(&random));
            if step % 10 == 0 {
                follower.follow(random.next_u64() % 40);
                let spaces = storage.pages.spaces();
                for _ in 0..4 {
                    let any = random.next_u64() as usize % spaces.len().max(1);
                    // The service knows of none before its first look at the log.
                    let Some(space) = spaces.get(any) else { break };
                    let page_no = PageNo((random.next_u64() % PAGES) as u32);
                    follower.check(PageId::new(*space, page_no));
                }
            }
            if step % 300 == 299 {
                run.check();
                pages.log.wait_durable(pages.log.end_lsn()).unwrap();
                follower.follow(u64::MAX);
                for space in storage.pages.spaces() {
                    for page in (0..PAGES as u32).map(|number| PageId::new(space, PageNo(number))) {
                        assert!(follower.shown(page) == shown(&pages.pool, page), "{page}");
                    }
                }
            }
        }
        let (writer, follower) = (pages.pool.statistics(), follower.pool.statistics());
        assert!(writer.evictions_clean > 30 && writer.evictions_offered == 0, "{writer:?}");
        assert!(follower.pages_applied > 100 && follower.evictions_clean > 30, "{follower:?}");
        pages.log.close().unwrap();
        pages.pool.shutdown();
    }
}
