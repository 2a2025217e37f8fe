//! The chunks of one node as one page store.
//!
//! ```text
//!   reader ─► PageChunks ─┬─ chunk 3 ─► PageNode, with its directory and its log
//!                         ├─ chunk 8 ─► PageNode
//!                         └─ no chunk of the page: WrongChunk
//! ```
//!
//! Chunks come and go while readers read. A lease holds versions of all chunks, those that come
//! later included, as far as they have them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_api::{
    PageFilter, PageLease, PageRead, PageRequest, PageSink, PageStore, PageStoreError, PageVersion,
};
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;
use parking_lot::{Mutex, RwLock};

/// The chunks of a node that are open. See the module's page.
pub struct PageChunks {
    /// The node's name, in errors.
    name: String,
    chunks: RwLock<Arc<BTreeMap<u64, Part>>>,
    /// Leases of readers. Locked while chunks change, so that each chunk meets each lease.
    leases: Mutex<Vec<Weak<ChunksLease>>>,
}

#[derive(Clone)]
struct Part {
    filter: PageFilter,
    store: Arc<dyn PageStore>,
}

impl PageChunks {
    /// The chunks of the node of this name: none yet.
    #[must_use]
    pub fn new(name: &str) -> PageChunks {
        PageChunks { name: name.to_owned(), chunks: RwLock::default(), leases: Mutex::default() }
    }

    /// Reads of the pages that `filter` takes go to `store` from now on, unless a chunk with a
    /// lower number has them: while a chunk is cut in two, both give the same answers. A chunk of
    /// the same number is replaced.
    pub fn insert(&self, number: u64, filter: PageFilter, store: Arc<dyn PageStore>) {
        let mut leases = self.leases.lock();
        leases.retain(|lease| lease.strong_count() > 0);
        for lease in leases.iter().filter_map(Weak::upgrade) {
            lease.take(number, &*store);
        }
        self.change(|chunks| _ = chunks.insert(number, Part { filter, store }));
    }

    /// Reads go to the chunk for fewer pages from now on.
    pub fn narrow(&self, number: u64, filter: &PageFilter) {
        self.change(|chunks| {
            if let Some(part) = chunks.get_mut(&number) {
                part.filter = filter.clone();
            }
        });
    }

    /// The node does not have the chunk any more.
    pub fn remove(&self, number: u64) {
        let leases = self.leases.lock();
        self.change(|chunks| _ = chunks.remove(&number));
        for lease in leases.iter().filter_map(Weak::upgrade) {
            let part = lease.parts.lock().remove(&number);
            drop(part);
        }
    }

    /// How many chunks are open.
    #[must_use]
    pub fn count(&self) -> usize {
        self.chunks.read().len()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<u64, Part>)) {
        let mut chunks = self.chunks.write();
        let mut changed = BTreeMap::clone(&chunks);
        change(&mut changed);
        *chunks = Arc::new(changed);
    }

    fn chunks(&self) -> Arc<BTreeMap<u64, Part>> {
        Arc::clone(&self.chunks.read())
    }

    /// Whether chunks have come, gone or been cut since `seen`.
    fn have_changed(&self, seen: &Arc<BTreeMap<u64, Part>>) -> bool {
        !Arc::ptr_eq(&self.chunks.read(), seen)
    }

    fn wrong(&self, page: PageId) -> PageStoreError {
        PageStoreError::WrongChunk { page, place: self.name.clone() }
    }
}

/// The chunk that has the page.
fn find(chunks: &BTreeMap<u64, Part>, page: PageId) -> Option<(u64, &Part)> {
    let mut parts = chunks.iter();
    parts.find(|(_, part)| part.filter.takes(page)).map(|(number, part)| (*number, part))
}

impl PageStore for PageChunks {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        loop {
            let chunks = self.chunks();
            let (_, part) = find(&chunks, page).ok_or_else(|| self.wrong(page))?;
            match part.store.read(page, version, into) {
                // The page has just become one of another chunk.
                Err(PageStoreError::WrongChunk { .. }) if self.have_changed(&chunks) => {}
                reply => return reply,
            }
        }
    }

    fn read_many(&self, requests: &[PageRequest], sink: &mut dyn PageSink) {
        let chunks = self.chunks();
        let mut by_chunk: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, request) in requests.iter().enumerate() {
            match find(&chunks, request.page) {
                Some((number, _)) => by_chunk.entry(number).or_default().push(index),
                None => sink.complete(index, Err(self.wrong(request.page))),
            }
        }
        for (number, indexes) in by_chunk {
            let store = &chunks[&number].store;
            let some: Vec<PageRequest> = indexes.iter().map(|index| requests[*index]).collect();
            let (node, seen) = (self, &chunks);
            let mut picked = Picked { node, seen, requests: &some, indexes: &indexes, sink };
            store.read_many(&some, &mut picked);
        }
    }

    fn wait_until_ready(&self, page: PageId, version: PageRead, timeout: Duration) -> bool {
        let chunks = self.chunks();
        find(&chunks, page)
            .is_none_or(|(_, part)| part.store.wait_until_ready(page, version, timeout))
    }

    /// Every chunk holds the position, or none.
    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        let mut leases = self.leases.lock();
        let chunks = self.chunks();
        if chunks.is_empty() {
            let (page, place) = (PageId::from_u64(0), self.name.clone());
            let reason = "none of its chunks is open".to_owned();
            return Err(PageStoreError::Unavailable { page, place, reason });
        }
        let hold =
            |(number, part): (&u64, &Part)| Ok((*number, part.store.hold(reader, position)?));
        let parts = chunks.iter().map(hold).collect::<Result<_, PageStoreError>>()?;
        let lease = Arc::new(ChunksLease {
            reader: reader.to_owned(),
            position: Mutex::new(position),
            parts: Mutex::new(parts),
        });
        leases.push(Arc::downgrade(&lease));
        Ok(lease)
    }

    fn applied_lsn(&self, page: PageId) -> Lsn {
        find(&self.chunks(), page).map_or(Lsn(0), |(_, part)| part.store.applied_lsn(page))
    }

    fn is_covered(&self, page: PageId, lsn: Lsn) -> bool {
        find(&self.chunks(), page).is_some_and(|(_, part)| part.store.is_covered(page, lsn))
    }

    fn spaces(&self) -> Vec<SpaceId> {
        let chunks = self.chunks();
        let mut spaces: Vec<_> = chunks.values().flat_map(|part| part.store.spaces()).collect();
        spaces.sort_unstable();
        spaces.dedup();
        spaces
    }
}

/// Some requests of a batch.
struct Picked<'a> {
    node: &'a PageChunks,
    /// The chunks when they were picked.
    seen: &'a Arc<BTreeMap<u64, Part>>,
    requests: &'a [PageRequest],
    /// Their places in the batch.
    indexes: &'a [usize],
    sink: &'a mut dyn PageSink,
}

impl PageSink for Picked<'_> {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        self.sink.page_mut(self.indexes[index])
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        let place = self.indexes[index];
        let reply = match reply {
            // The page has just become one of another chunk.
            Err(PageStoreError::WrongChunk { .. }) if self.node.have_changed(self.seen) => {
                let PageRequest { page, version } = self.requests[index];
                self.node.read(page, version, self.sink.page_mut(place))
            }
            reply => reply,
        };
        self.sink.complete(place, reply);
    }
}

/// A lease on the versions of all chunks. Both mutexes are leaves.
struct ChunksLease {
    reader: String,
    position: Mutex<Lsn>,
    parts: Mutex<BTreeMap<u64, Arc<dyn PageLease>>>,
}

impl ChunksLease {
    /// Holds the versions of a chunk that comes. If it does not have them any more, its readers
    /// are told so when they ask.
    fn take(&self, number: u64, store: &dyn PageStore) {
        if let Ok(part) = store.hold(&self.reader, self.position()) {
            let replaced = self.parts.lock().insert(number, part);
            drop(replaced);
        }
    }
}

impl PageLease for ChunksLease {
    fn position(&self) -> Lsn {
        *self.position.lock()
    }

    fn advance(&self, to: Lsn) {
        {
            let mut position = self.position.lock();
            *position = to.max(*position);
        }
        let parts: Vec<_> = self.parts.lock().values().cloned().collect();
        parts.iter().for_each(|part| part.advance(to));
    }
}
