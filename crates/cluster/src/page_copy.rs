//! Fills the directory of a chunk with its pages at other nodes, or with those of another chunk of
//! the node itself, which is cut in two.
//!
//! ```text
//!   hold the log ──► hold the pages as of there ──► list ──► read many ──► write ──► finish
//! ```
//!
//! All pages are those of one position. The log from there on is held until the node follows it, so
//! the copy takes as long as it takes, and the other nodes serve readers meanwhile.
//!
//! Relation: `held log ≤ position of the pages ≤ durable`. The other nodes keep no versions that
//! nobody wants, and may be ahead of what this node knows to be durable. So the position is theirs,
//! if they refuse the first one.

use std::path::Path;
use std::sync::Arc;

use firn_api::{
    FollowOptions, LogError, LogFollower, LogStore, PageFilter, PageLease, PageRead, PageRequest,
    PageSink, PageStore, PageStoreError, PageVersion,
};
use firn_base::{Environment, Lsn, PageId};
use firn_control::{ChunkId, Progress};
use firn_format::page::{PAGE_SIZE, PageBuf};
use firn_page_service::{PageNodeLink, Placement, RemotePages, RemotePagesOptions};
use firn_storage::local::{DatabaseId, OpenError, PageCopy};
use firn_storage::page_node::PageNode;

use crate::layout::parts::HeldPart;
use crate::page_list::{self, Listed};

/// Pages that are read at once.
const READ_PAGES: usize = 256;
/// Pages of this node that are listed at once.
const LISTED_PAGES: usize = 65_536;
/// How often a position is asked for before the copy is begun again.
const HOLD_TRIES: usize = 16;
/// How much log a node may hold back while it copies, in bytes.
const HOLD_LIMIT_BYTES: u64 = 256 << 30;

/// Where a copy is made.
pub(crate) struct CopyPlace<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) chunk: ChunkId,
    /// The pages that are copied.
    pub(crate) part: HeldPart,
    /// Names the copy in listings of readers.
    pub(crate) name: String,
    pub(crate) path: &'a Path,
    pub(crate) database: DatabaseId,
}

/// Why a copy was not finished.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    #[error("no node to copy from is known")]
    NoSource,
    /// Nobody wants it any more.
    #[error("the copy was given up")]
    GivenUp,
    /// The node's record cannot be written. What it does not have, control is not to count on.
    #[error("the node cannot note what it has; make room on its disk")]
    NotNoted,
    #[error(transparent)]
    List(#[from] page_list::ListError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Pages(#[from] PageStoreError),
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Where pages are copied from.
pub(crate) enum CopySource {
    /// The same chunk at other nodes.
    Nodes(Vec<PageNodeLink>),
    /// A chunk of this node that has these pages, and which part of it that is, in percent.
    Own(Arc<PageNode>, u64),
}

impl CopySource {
    /// Pages behind `after`, those that are not copied included.
    fn list(
        &self,
        place: &CopyPlace<'_>,
        position: Lsn,
        after: Option<PageId>,
    ) -> Result<Listed, CopyError> {
        match self {
            CopySource::Nodes(nodes) => list(nodes, place, position, after),
            CopySource::Own(node, percent) => {
                node.materialise_up_to(position)?;
                let pages = node.stored_pages(after, LISTED_PAGES);
                let status = node.status().pages;
                let total = status.slots.saturating_sub(status.free_slots) * percent / 100;
                Ok(Listed { pages, total })
            }
        }
    }
}

/// Copies the chunk. Returns what holds the log from the copy's position on. `go_on` is told how
/// far the copy is, and says whether it is still wanted. Blocks.
///
/// # Errors
/// [`CopyError`]. Then the directory has no pages.
pub(crate) fn copy_pages(
    place: &CopyPlace<'_>,
    log: &dyn LogStore,
    source: &CopySource,
    go_on: &mut dyn FnMut(Progress) -> bool,
) -> Result<Box<dyn LogFollower>, CopyError> {
    let from = log.durable_lsn().max(Lsn::FIRST);
    let kept = log.follow(FollowOptions {
        name: place.name.clone(),
        from,
        until: None,
        pages: PageFilter::All,
        hold_limit_bytes: HOLD_LIMIT_BYTES,
    })?;
    // The members that hold the log have just said what is durable.
    let position = log.durable_lsn().max(from);
    let copied = match source {
        CopySource::Own(node, _) => copy_as_of(place, position, &**node, source, go_on),
        CopySource::Nodes(nodes) => {
            let placement = Placement::everywhere(nodes.clone());
            let placement = placement.map_err(|_| CopyError::NoSource)?;
            let options = RemotePagesOptions::default();
            let pages = RemotePages::open(place.environment, placement, options);
            let copied = copy_as_of(place, position, &*pages, source, go_on);
            pages.close();
            copied
        }
    };
    copied.map(|()| kept)
}

fn copy_as_of(
    place: &CopyPlace<'_>,
    wanted: Lsn,
    pages: &dyn PageStore,
    source: &CopySource,
    go_on: &mut dyn FnMut(Progress) -> bool,
) -> Result<(), CopyError> {
    let held = hold(pages, &place.name, wanted)?;
    let position = held.position();
    let (environment, database) = (place.environment, place.database);
    let mut copy = PageNode::begin_copy(environment, place.path, database, position)?;
    let (mut after, filter) = (None, place.part.filter());
    loop {
        let mut listed = source.list(place, position, after)?;
        let Some(last) = listed.pages.last() else { break };
        after = Some(*last);
        listed.pages.retain(|page| filter.takes(*page));
        for some in listed.pages.chunks(READ_PAGES) {
            read(pages, position, some, &mut copy)?;
            let bytes = |pages: u64| pages * PAGE_SIZE as u64;
            let done = bytes(copy.pages() as u64);
            if !go_on(Progress { done, total: bytes(listed.total).max(done) }) {
                return Err(CopyError::GivenUp);
            }
        }
    }
    copy.finish()?;
    drop(held);
    Ok(())
}

/// Holds the pages as of a position, or as of the next one that is kept.
fn hold(
    pages: &dyn PageStore,
    reader: &str,
    mut position: Lsn,
) -> Result<Arc<dyn PageLease>, PageStoreError> {
    for _ in 1..HOLD_TRIES {
        match pages.hold(reader, position) {
            Err(PageStoreError::NotKept { kept_from, .. }) if kept_from > position => {
                position = kept_from;
            }
            other => return other,
        }
    }
    pages.hold(reader, position)
}

/// Asks one node after the other.
fn list(
    sources: &[PageNodeLink],
    place: &CopyPlace<'_>,
    position: Lsn,
    after: Option<PageId>,
) -> Result<Listed, CopyError> {
    let mut last = CopyError::NoSource;
    for source in sources {
        match page_list::list(&source.caller, place.chunk, &place.part.places(), position, after) {
            Ok(listed) => return Ok(listed),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

fn read(
    pages: &dyn PageStore,
    position: Lsn,
    some: &[PageId],
    copy: &mut PageCopy,
) -> Result<(), CopyError> {
    let version = PageRead::AsOf(position);
    let requests: Vec<_> = some.iter().map(|page| PageRequest { page: *page, version }).collect();
    let buffers = (0..some.len()).map(|_| PageBuf::boxed()).collect();
    let mut sink = CopySink { pages: some, buffers, copy, failure: None };
    pages.read_many(&requests, &mut sink);
    sink.failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Writes pages as they arrive.
struct CopySink<'a> {
    pages: &'a [PageId],
    buffers: Vec<Box<PageBuf>>,
    copy: &'a mut PageCopy,
    failure: Option<PageStoreError>,
}

impl PageSink for CopySink<'_> {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        &mut self.buffers[index]
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        let added = match reply {
            Ok(_) => self.copy.add(self.pages[index], &self.buffers[index]),
            // It was made after the position, or its space was dropped before.
            Err(PageStoreError::Absent(_)) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = added {
            self.failure.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use firn_base::SpaceId;

    use super::*;

    /// Pages whose versions go while a position is asked for.
    struct Moving {
        kept_from: AtomicU64,
        refusals: u64,
    }

    struct Held(Lsn);

    impl PageLease for Held {
        fn position(&self) -> Lsn {
            self.0
        }

        fn advance(&self, _: Lsn) {}
    }

    impl PageStore for Moving {
        fn hold(&self, _: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
            let kept_from = Lsn(self.kept_from.load(Ordering::Relaxed) * Lsn::ALIGNMENT);
            if position >= kept_from {
                return Ok(Arc::new(Held(position)));
            }
            if kept_from.0 / Lsn::ALIGNMENT < self.refusals {
                self.kept_from.fetch_add(1, Ordering::Relaxed);
            }
            Err(PageStoreError::NotKept { position, kept_from })
        }

        fn read(
            &self,
            page: PageId,
            _: PageRead,
            _: &mut PageBuf,
        ) -> Result<PageVersion, PageStoreError> {
            Err(PageStoreError::Absent(page))
        }

        fn applied_lsn(&self, _: PageId) -> Lsn {
            Lsn(0)
        }

        fn is_covered(&self, _: PageId, _: Lsn) -> bool {
            false
        }

        fn spaces(&self) -> Vec<SpaceId> {
            Vec::new()
        }
    }

    fn position_of_a_copy(refusals: u64) -> Option<u64> {
        let pages = Moving { kept_from: 1.into(), refusals };
        let held = hold(&pages, "copy", Lsn(0)).ok()?;
        Some(held.position().0 / Lsn::ALIGNMENT)
    }

    #[test]
    fn a_copy_goes_along_with_what_the_other_nodes_keep() {
        assert_eq!(position_of_a_copy(1), Some(1));
        assert_eq!(position_of_a_copy(9), Some(9));
        assert_eq!(position_of_a_copy(1000), None, "it does not ask for ever");
    }
}
