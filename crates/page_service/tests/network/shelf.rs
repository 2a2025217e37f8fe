//! A page store whose every answer the test decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_api::page_store::conformance::PositionLease;
use firn_api::{PageLease, PageRead, PageStore, PageStoreError, PageVersion};
use firn_base::event::Event;
use firn_base::task::sleep;
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PageBuf, PageKind};
use parking_lot::Mutex;

/// What is wrong with a shelf's images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    /// It returns the image of another page.
    OtherPage,
    /// It returns an image that is older than the request.
    Older,
    /// It claims that a read as of a position is of another one.
    OtherPosition,
}

#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) state: Mutex<State>,
    changed: Event,
}

#[derive(Default)]
pub(crate) struct State {
    /// Log that has arrived.
    log: Lsn,
    pub(crate) applied: Lsn,
    /// The first position that can be held.
    pub(crate) kept_from: Lsn,
    /// How long each page takes.
    pub(crate) delay: Duration,
    pub(crate) lie: Option<Lie>,
    /// Every read says that the page is elsewhere.
    pub(crate) is_elsewhere: bool,
    /// Pages that were read.
    pub(crate) reads: u64,
    leases: BTreeMap<String, Weak<PositionLease>>,
}

pub(crate) fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

impl Shelf {
    /// A shelf that has log up to `log`.
    pub(crate) fn with_log(log: u64) -> Arc<Shelf> {
        let shelf = Arc::new(Shelf::default());
        shelf.add_log(log);
        shelf
    }

    pub(crate) fn add_log(&self, log: u64) {
        self.state.lock().log = Lsn(log);
        self.changed.notify_all();
    }

    /// The positions of the leases that it has, by the readers' names.
    pub(crate) fn held(&self) -> Vec<(String, u64)> {
        let state = self.state.lock();
        let live = state.leases.iter().filter_map(|(name, lease)| Some((name, lease.upgrade()?)));
        live.map(|(name, lease)| (name.clone(), lease.position().0)).collect()
    }
}

impl PageStore for Shelf {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        let (delay, lie, is_elsewhere, log) = {
            let mut state = self.state.lock();
            state.reads += 1;
            (state.delay, state.lie, state.is_elsewhere, state.log)
        };
        if delay > Duration::ZERO {
            sleep(delay);
        }
        if is_elsewhere {
            return Err(PageStoreError::WrongChunk { page, place: "the shelf".to_owned() });
        }
        let position = version.position();
        assert!(position <= log, "a worker would wait for log up to {position}");
        let other = PageId::new(page.space, PageNo(page.page_no.0 + 1));
        into.format(if lie == Some(Lie::OtherPage) { other } else { page }, PageKind::Undo);
        into.set_lsn(Lsn(8));
        let as_of = match (version, lie) {
            (_, Some(Lie::Older)) => Lsn(position.0 - 8),
            (PageRead::AsOf(position), Some(Lie::OtherPosition)) => Lsn(position.0 + 8),
            (PageRead::AsOf(position), _) => position,
            (PageRead::Latest { .. }, _) => log,
        };
        Ok(PageVersion { lsn: into.lsn(), as_of })
    }

    fn wait_until_ready(&self, _: PageId, version: PageRead, timeout: Duration) -> bool {
        self.changed.wait_until(Some(timeout), || version.position() <= self.state.lock().log)
    }

    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        let mut state = self.state.lock();
        if position < state.kept_from {
            return Err(PageStoreError::NotKept { position, kept_from: state.kept_from });
        }
        let lease = Arc::new(PositionLease::new(position));
        state.leases.insert(reader.to_owned(), Arc::downgrade(&lease));
        Ok(lease)
    }

    fn applied_lsn(&self, _: PageId) -> Lsn {
        self.state.lock().applied
    }

    fn spaces(&self) -> Vec<SpaceId> {
        vec![SpaceId(1)]
    }
}
