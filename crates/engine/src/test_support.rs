//! A log and a page store in memory, for tests of the layers above them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::page_store::page_service::{SimulatedOptions, SimulatedPages};
use firn_api::{
    ImageSource, LocalImages, LogStore, Offer, PageLease, PageRead, PageStore, PageStoreError,
    PageVersion, TimestampError, TimestampSource, Timestamps, WriterEpoch,
};
use firn_base::{Cts, Environment, IndexId, Lsn, PageId, SpaceId, TableId, TrxId};
use firn_buffer::{BufferPool, BufferPoolOptions};
use firn_fabric::{Epoch, Fabric, InProcessFabric, OwnedRegion};
use firn_format::definition::{ColumnDefinition, IndexDefinition, TableDefinition};
use firn_format::key::BinaryCollation;
use firn_format::page::PageBuf;
use firn_format::space::{SpacePurpose, UNDO_SPACE};
use parking_lot::Mutex;

use crate::dictionary::Dictionary;
use crate::log::writer::Purpose;
use crate::log::{DURABLE_REGION, DURABLE_WORDS, RedoLog, RedoLogOptions};
use crate::mini_transaction::MiniTransaction;
use crate::pages::Pages;
use crate::space::Spaces;
use crate::table::Table;
use crate::transaction::{
    IdLimits, IsolationLevel, Transaction, TransactionOptions, TransactionSystem,
};
use crate::tree::{Forest, StructureChanges, Target};

mod memory_log;

pub(crate) use memory_log::{MemoryLog, ROOM, Refusals};

/// Pages in memory; takes every offer.
#[derive(Default)]
pub(crate) struct MemoryPages {
    images: Mutex<HashMap<PageId, Box<PageBuf>>>,
}

impl PageStore for MemoryPages {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        let images = self.images.lock();
        let image = images.get(&page).ok_or(PageStoreError::Absent(page))?;
        into.bytes_mut().copy_from_slice(image.bytes());
        Ok(PageVersion { lsn: image.lsn(), as_of: image.lsn().max(version.position()) })
    }

    /// Has the newest versions only.
    fn hold(&self, _: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        Err(PageStoreError::NotKept { position, kept_from: Lsn::MAX })
    }

    fn applied_lsn(&self, _: PageId) -> Lsn {
        Lsn::FIRST
    }

    fn spaces(&self) -> Vec<SpaceId> {
        Vec::new()
    }

    fn local_images(self: Arc<Self>) -> Option<Arc<dyn LocalImages>> {
        Some(self)
    }
}

impl LocalImages for MemoryPages {
    fn offer(&self, image: &PageBuf) -> Offer {
        self.images.lock().insert(image.page_id(), Box::new(image.clone()));
        Offer::Taken
    }

    fn wait_for_room(&self) {}

    fn attach(&self, _source: Arc<dyn ImageSource>) {}
}

/// Pages over memory with a pool of `pool_bytes`.
pub(crate) fn memory_pages(pool_bytes: usize) -> Pages {
    pages_over(&MemoryLog::default(), &OwnedRegion::unregistered(1), pool_bytes)
}

/// Pages whose log publishes its durable position in a region.
fn pages_over(log: &MemoryLog, durable: &OwnedRegion, pool_bytes: usize) -> Pages {
    pages_over_store(Arc::new(MemoryPages::default()), log, durable, pool_bytes)
}

fn pages_over_store(
    store: Arc<dyn PageStore>,
    log: &impl LogStore,
    durable: &OwnedRegion,
    pool_bytes: usize,
) -> Pages {
    let environment = Environment::system();
    let (durable, published) = (durable.clone(), durable.clone());
    let log = RedoLog::start(
        log.open(WriterEpoch::Next).unwrap(),
        RedoLogOptions::default(),
        Box::new(move |lsn| published.words()[0].store(lsn.0, Ordering::Release)),
    );
    let pool = BufferPool::new(
        environment,
        store,
        Arc::new(move || Lsn(durable.words()[0].load(Ordering::Acquire))),
        BufferPoolOptions::with_budget(pool_bytes),
    );
    Pages::new(pool, log)
}

/// The space that tests put their trees in.
pub(crate) const TEST_SPACE: SpaceId = SpaceId(7);

/// A forest over memory with one space.
pub(crate) fn memory_forest(pool_bytes: usize, changes: StructureChanges) -> Forest {
    forest_over(memory_pages(pool_bytes), changes)
}

/// A forest with one space over pages in `store`.
pub(crate) fn forest_over_store(
    store: Arc<dyn PageStore>,
    log: &impl LogStore,
    pool_bytes: usize,
) -> Forest {
    let pages = pages_over_store(store, log, &OwnedRegion::unregistered(1), pool_bytes);
    forest_over(pages, StructureChanges::Concurrent)
}

fn forest_over(pages: Pages, changes: StructureChanges) -> Forest {
    let spaces = Arc::new(Spaces::new(pages.clone()));
    spaces.create(TEST_SPACE, SpacePurpose::Table, TableId(1)).unwrap();
    Forest::new(pages, spaces, changes)
}

/// Creates the tests' space with one tree.
pub(crate) fn create_tree(forest: &Forest) -> IndexId {
    forest.spaces().create(TEST_SPACE, SpacePurpose::Table, TableId(1)).unwrap();
    create_root(forest)
}

/// Creates one tree in the tests' space.
pub(crate) fn create_root(forest: &Forest) -> IndexId {
    let mut frames = forest.pages().pool.reserve(1);
    let index = forest.pages().run(|| {
        let mut mtr = MiniTransaction::begin(forest.pages(), Purpose::Forward)?;
        let index = forest.create_root(&mut mtr, &mut frames, TEST_SPACE)?;
        let _ = mtr.commit();
        Ok(index)
    });
    index.unwrap()
}

/// A transaction system over memory with one tree.
pub(crate) struct Node {
    pub(crate) system: Arc<TransactionSystem>,
    pub(crate) index: IndexId,
    pub(crate) log: MemoryLog,
    pub(crate) fabric: Arc<InProcessFabric>,
}

impl Node {
    pub(crate) fn new() -> Node {
        Node::with_options(TransactionOptions { table_slots: 64, ..Default::default() })
    }

    pub(crate) fn with_options(options: TransactionOptions) -> Node {
        Node::with_timestamps(options, &Timestamps::Local)
    }

    /// A node whose commits a shared source numbers.
    pub(crate) fn with_timestamps(options: TransactionOptions, timestamps: &Timestamps) -> Node {
        let (log, store) = (MemoryLog::default(), Arc::new(MemoryPages::default()));
        Node::over(log, store, 64 << 20, options, timestamps)
    }

    fn over(
        log: MemoryLog,
        store: Arc<dyn PageStore>,
        pool_bytes: usize,
        options: TransactionOptions,
        timestamps: &Timestamps,
    ) -> Node {
        let fabric = Arc::new(InProcessFabric::new(Epoch(1)));
        let durable = fabric.register(DURABLE_REGION, DURABLE_WORDS).unwrap();
        let pages = pages_over_store(store, &log, &durable, pool_bytes);
        let forest = Arc::new(forest_over(pages, StructureChanges::Concurrent));
        forest.spaces().create(UNDO_SPACE, SpacePurpose::Undo, TableId(0)).unwrap();
        let index = create_root(&forest);
        let limits = IdLimits { trx: TrxId(1), cts: Cts(0), horizon: Cts(0) };
        let environment = Environment::system();
        let regions = Arc::clone(&fabric) as Arc<dyn Fabric>;
        let system =
            TransactionSystem::new(&environment, &regions, forest, limits, timestamps, options)
                .unwrap();
        Node { system: Arc::new(system), index, log, fabric }
    }

    /// Commits a record, as a new one or in place of the old one.
    pub(crate) fn put(&self, key: &[u8], payload: &[u8]) {
        let mut trx = self.begin();
        if !trx.update(self.index, key, payload).unwrap() {
            trx.insert(self.index, key, payload).unwrap();
        }
        trx.commit().unwrap();
    }

    /// Deletes a record, and commits that.
    pub(crate) fn remove(&self, key: &[u8]) {
        let mut trx = self.begin();
        assert!(trx.delete(self.index, key).unwrap());
        trx.commit().unwrap();
    }

    fn begin(&self) -> Transaction {
        Transaction::begin(&self.system, IsolationLevel::RepeatableRead).unwrap()
    }

    /// Purges as much as possible.
    pub(crate) fn purge(&self) {
        self.purge_up_to(self.system.order().max_committed());
    }

    /// Purges what no snapshot from `limit` on sees.
    pub(crate) fn purge_up_to(&self, limit: Cts) {
        let horizon = self.system.snapshots().advance_horizon(limit);
        self.system.table().recycle(horizon);
        self.system.purge(horizon).unwrap();
        self.system.forest().free_unreachable().unwrap();
    }

    /// Records in the tree, deleted ones included.
    pub(crate) fn records(&self) -> usize {
        let tree = self.system.forest().tree(self.index);
        let (mut count, mut from) = (0, Some(Vec::new()));
        while let Some(key) = from {
            from = tree
                .read(Target::At(&key), |leaf| {
                    count += leaf.slot_count();
                    Ok(leaf.high_fence().map(<[u8]>::to_vec))
                })
                .unwrap();
        }
        count
    }

    /// Used pages of the undo space.
    pub(crate) fn undo_pages(&self) -> u64 {
        self.system.forest().spaces().usage(UNDO_SPACE).unwrap().used
    }
}

/// A log in memory, and a page service that follows it.
#[derive(Clone)]
pub(crate) struct MemoryStorage {
    pub(crate) log: MemoryLog,
    pub(crate) pages: Arc<SimulatedPages>,
}

impl MemoryStorage {
    pub(crate) fn new(options: SimulatedOptions) -> MemoryStorage {
        let log = MemoryLog::default();
        let followed = log.clone();
        let read = move |from| {
            let mut bytes = Vec::new();
            followed.read(from, usize::MAX, &mut bytes).ok().map(|_| bytes)
        };
        MemoryStorage { log, pages: SimulatedPages::new(options, Box::new(read)) }
    }

    /// A node over this storage, which is empty, with a pool of `pool_bytes`.
    pub(crate) fn open(&self, pool_bytes: usize) -> Node {
        let options = TransactionOptions { table_slots: 64, ..Default::default() };
        let pages = Arc::clone(&self.pages);
        Node::over(self.log.clone(), pages, pool_bytes, options, &Timestamps::Local)
    }
}

/// A node with a dictionary and the schema `s`.
pub(crate) struct Database {
    pub(crate) node: Node,
    pub(crate) dictionary: Arc<Dictionary>,
}

impl Database {
    pub(crate) fn new() -> Database {
        Database::over(Node::new())
    }

    pub(crate) fn over(node: Node) -> Database {
        let dictionary = Dictionary::open(&node.system, Arc::new(BinaryCollation)).unwrap();
        let mut ddl = dictionary.ddl().unwrap();
        ddl.create_schema("s", b"").unwrap();
        ddl.commit().unwrap();
        Database { node, dictionary }
    }

    pub(crate) fn begin(&self) -> Transaction {
        Transaction::begin(&self.node.system, IsolationLevel::RepeatableRead).unwrap()
    }

    pub(crate) fn create(&self, definition: TableDefinition) -> Arc<Table> {
        let mut ddl = self.dictionary.ddl().unwrap();
        let id = ddl.create_table(definition).unwrap();
        ddl.commit().unwrap();
        self.dictionary.table(id).unwrap()
    }

    /// Purges and reclaims as much as possible.
    pub(crate) fn clean_up(&self) {
        self.node.purge();
        self.dictionary.reclaim(self.node.system.snapshots().horizon()).unwrap();
    }
}

/// A definition of a table in the schema `s`.
pub(crate) fn table_definition(
    name: &str,
    columns: Vec<ColumnDefinition>,
    indexes: Vec<IndexDefinition>,
) -> TableDefinition {
    TableDefinition { columns, indexes, ..TableDefinition::new("s", name) }
}

/// An oracle that several nodes share. Its numbers ascend, with gaps.
pub(crate) struct Oracle {
    last: AtomicU64,
    is_available: std::sync::atomic::AtomicBool,
}

impl Oracle {
    pub(crate) fn new(last: u64) -> Oracle {
        Oracle { last: AtomicU64::new(last), is_available: true.into() }
    }

    pub(crate) fn set_available(&self, is_available: bool) {
        self.is_available.store(is_available, Ordering::SeqCst);
    }

    fn ask<T>(&self, answer: impl FnOnce() -> T) -> Result<T, TimestampError> {
        match self.is_available.load(Ordering::SeqCst) {
            true => Ok(answer()),
            false => Err(TimestampError::Unavailable { reason: "it is cut off".to_owned() }),
        }
    }
}

impl TimestampSource for Oracle {
    fn next(&self) -> Result<Cts, TimestampError> {
        // Other nodes take numbers too.
        self.ask(|| Cts(self.last.fetch_add(7, Ordering::SeqCst) + 7))
    }

    fn observe(&self, cts: Cts) -> Result<(), TimestampError> {
        self.ask(|| self.last.fetch_max(cts.0, Ordering::SeqCst)).map(drop)
    }

    fn growth_per_second(&self) -> u64 {
        1 << 20
    }
}

/// A hybrid logical clock: microseconds of the wall clock, and a counter in the low bits.
#[derive(Default)]
pub(crate) struct HybridClock {
    last: AtomicU64,
}

const COUNTER_BITS: u32 = 12;

impl TimestampSource for HybridClock {
    fn next(&self) -> Result<Cts, TimestampError> {
        let now = Environment::system().clock.wall_time_us() << COUNTER_BITS;
        let next = |last: u64| Some(now.max(last + 1));
        let last = self.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        Ok(Cts(now.max(last.unwrap_or_else(|last| last) + 1)))
    }

    fn observe(&self, cts: Cts) -> Result<(), TimestampError> {
        self.last.fetch_max(cts.0, Ordering::SeqCst);
        Ok(())
    }

    fn growth_per_second(&self) -> u64 {
        1_000_000 << COUNTER_BITS
    }
}
