//! A log and a page store in memory, for tests of what stands above them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::{ImageSource, LogError, LogStore, Offer, PageRead, PageStore, PageStoreError};
use firn_base::{Environment, Lsn, PageId, SpaceId, TableId};
use firn_buffer::{BufferPool, BufferPoolOptions};
use firn_format::page::PageBuf;
use firn_format::space::SpacePurpose;
use parking_lot::Mutex;

use crate::log::{RedoLog, RedoLogOptions};
use crate::pages::Pages;
use crate::space::Spaces;
use crate::tree::{Forest, StructureChanges};

/// A log in memory.
#[derive(Default)]
pub(crate) struct MemoryLog {
    bytes: Mutex<Vec<u8>>,
}

impl LogStore for MemoryLog {
    fn append(&self, start: Lsn, groups: &[u8]) -> Result<(), LogError> {
        let mut bytes = self.bytes.lock();
        assert_eq!(start, Lsn::FIRST.advance(bytes.len() as u64));
        bytes.extend_from_slice(groups);
        Ok(())
    }

    fn sync(&self) -> Result<Lsn, LogError> {
        Ok(self.durable_lsn())
    }

    fn durable_lsn(&self) -> Lsn {
        Lsn::FIRST.advance(self.bytes.lock().len() as u64)
    }

    fn truncated_lsn(&self) -> Lsn {
        Lsn::FIRST
    }

    fn read(&self, from: Lsn, _limit: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        into.extend_from_slice(&self.bytes.lock()[from.since(Lsn::FIRST) as usize..]);
        Ok(self.durable_lsn())
    }

    fn is_room_low(&self) -> bool {
        false
    }
}

/// Pages in memory; takes every offer.
#[derive(Default)]
pub(crate) struct MemoryPages {
    images: Mutex<HashMap<PageId, Box<PageBuf>>>,
}

impl PageStore for MemoryPages {
    fn read(
        &self,
        page: PageId,
        _version: PageRead,
        into: &mut PageBuf,
    ) -> Result<(), PageStoreError> {
        let images = self.images.lock();
        let image = images.get(&page).ok_or(PageStoreError::Absent(page))?;
        into.bytes_mut().copy_from_slice(image.bytes());
        Ok(())
    }

    fn offer(&self, image: &PageBuf) -> Offer {
        self.images.lock().insert(image.page_id(), Box::new(image.clone()));
        Offer::Taken
    }

    fn wait_for_room(&self) {}

    fn attach_images(&self, _source: Arc<dyn ImageSource>) {}

    fn applied_lsn(&self) -> Lsn {
        Lsn::FIRST
    }

    fn materialise_up_to(&self, _lsn: Lsn) -> Result<(), PageStoreError> {
        Ok(())
    }

    fn spaces(&self) -> Vec<SpaceId> {
        Vec::new()
    }
}

/// Pages over memory with a pool of `pool_bytes`.
pub(crate) fn memory_pages(pool_bytes: usize) -> Pages {
    let environment = Environment::system();
    let durable = Arc::new(AtomicU64::new(0));
    let published = Arc::clone(&durable);
    let log = RedoLog::start(
        &environment,
        Arc::new(MemoryLog::default()),
        RedoLogOptions { idle_flush_ms: 1, ..RedoLogOptions::default() },
        Box::new(move |lsn| published.store(lsn.0, Ordering::Release)),
    );
    let pool = BufferPool::new(
        environment,
        Arc::new(MemoryPages::default()),
        Arc::new(move || Lsn(durable.load(Ordering::Acquire))),
        BufferPoolOptions::with_budget(pool_bytes),
    );
    Pages { pool, log }
}

/// The space that tests put their trees in.
pub(crate) const TEST_SPACE: SpaceId = SpaceId(7);

/// A forest over memory with one space.
pub(crate) fn memory_forest(pool_bytes: usize, changes: StructureChanges) -> Forest {
    let pages = memory_pages(pool_bytes);
    let spaces = Arc::new(Spaces::new(pages.clone()));
    spaces.create(TEST_SPACE, SpacePurpose::Table, TableId(1)).unwrap();
    Forest::new(pages, spaces, changes)
}
