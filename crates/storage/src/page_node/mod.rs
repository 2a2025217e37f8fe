//! A page node: it has pages without having the log.
//!
//! ```text
//!   log store, elsewhere ──► received log ──► page store of a local directory ──► readers
//!                        ◄── lease ──────────  pages, page map
//! ```
//!
//! The node follows the log as a reader, filtered by the pages that it has, and materialises them
//! for itself (001 §3.4). The log is durable where it comes from, so page nodes agree on nothing
//! among themselves: two nodes with the same pages give the same bytes at the same position.
//!
//! The page store is the one of the local directory ([`crate::local::pages`]); only its log is
//! another one ([`ReceivedLog`]). The node's lease holds the log that the page store may still
//! need. A node whose lease was dropped, because it was away for too long, cannot start: its pages
//! must be copied from another node ([`PageNode::begin_copy`]), as those of a node that is new.

mod chunks;
mod received_log;
mod records;
mod shared_reader;
mod verify;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{
    LogError, LogStore, PageFilter, PageLease, PageRead, PageRequest, PageSink, PageStore,
    PageStoreError, PageVersion,
};
use firn_base::{Environment, Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;
use parking_lot::RwLock;

use crate::local::page_log::PageLog;
use crate::local::{
    DatabaseId, LocalDirectory, LocalPages, OpenError, PageCopy, PageStoreOptions,
    pages::PageStoreStatus,
};

pub use chunks::PageChunks;
pub use received_log::{LogSource, ReceivedLog, ReceivedLogOptions, ReceivedLogStatus};
pub use shared_reader::{SharedReader, SharedReaderStatus};
pub use verify::{VerifiedPages, verify_pages};

/// How a page node works.
#[derive(Debug, Clone, Default)]
pub struct PageNodeOptions {
    pub log: ReceivedLogOptions,
    pub pages: PageStoreOptions,
}

/// What a page node tells of itself.
#[derive(Debug, Clone)]
pub struct PageNodeStatus {
    pub log: ReceivedLogStatus,
    pub pages: PageStoreStatus,
}

/// Pages in a local directory that follow a log kept elsewhere.
pub struct PageNode {
    name: String,
    /// The pages that it has.
    filter: RwLock<PageFilter>,
    log: Arc<ReceivedLog>,
    pages: Arc<LocalPages>,
}

impl PageNode {
    /// Opens the node's directory, or creates it for `database`, and begins to follow `store`.
    /// Blocks for I/O and for the log store's answer.
    ///
    /// # Errors
    /// If the directory belongs to another process or database or is damaged, the log store does
    /// not answer, or log that the pages need is gone there.
    pub fn open(
        environment: &Environment,
        path: &Path,
        database: DatabaseId,
        store: Arc<dyn LogStore>,
        options: PageNodeOptions,
    ) -> Result<Arc<PageNode>, OpenError> {
        PageNode::open_over(environment, path, database, LogSource::Own(store), options)
    }

    /// As [`PageNode::open`], for one of several chunks of a node: it gets its log together with
    /// the others.
    ///
    /// # Errors
    /// As [`PageNode::open`].
    pub fn open_sharing(
        environment: &Environment,
        path: &Path,
        database: DatabaseId,
        reader: &Arc<SharedReader>,
        options: PageNodeOptions,
    ) -> Result<Arc<PageNode>, OpenError> {
        let source = LogSource::Shared(Arc::clone(reader));
        PageNode::open_over(environment, path, database, source, options)
    }

    fn open_over(
        environment: &Environment,
        path: &Path,
        database: DatabaseId,
        source: LogSource,
        options: PageNodeOptions,
    ) -> Result<Arc<PageNode>, OpenError> {
        let directory = LocalDirectory::open_for(environment, path, database)?;
        let (name, filter) = (options.log.name.clone(), options.log.pages.clone());
        let mut opened = None;
        let open_log = |needed| {
            let log = ReceivedLog::open(environment, source, options.log, needed)?;
            Ok(opened.insert(log).clone() as Arc<dyn PageLog>)
        };
        let pages = PageStoreOptions { kept: filter.clone(), ..options.pages };
        let pages = LocalPages::open_with(&directory, pages, Box::new(open_log));
        let (pages, log) = match (pages, opened) {
            (Ok(pages), Some(log)) => (pages, log),
            (Ok(_), None) => unreachable!("pages are opened with their log"),
            // The log cannot be followed.
            (Err(PageStoreError::Log(error)), None) => return Err(error.into()),
            (Err(error), _) => return Err(error.into()),
        };
        Ok(Arc::new(PageNode { name, filter: RwLock::new(filter), log, pages }))
    }

    /// Begins to fill the directory of a node with pages of another one as of `position`. Once that
    /// is finished, the node opens, if the log is kept from there on. Blocks for I/O.
    ///
    /// # Errors
    /// As [`PageNode::open`].
    pub fn begin_copy(
        environment: &Environment,
        path: &Path,
        database: DatabaseId,
        position: Lsn,
    ) -> Result<PageCopy, OpenError> {
        let directory = LocalDirectory::open_for(environment, path, database)?;
        Ok(PageCopy::begin(&directory, position)?)
    }

    /// See [`LocalPages::stored_pages`]. Pages that the node does not have any more may be among
    /// them.
    #[must_use]
    pub fn stored_pages(&self, after: Option<PageId>, limit: usize) -> Vec<PageId> {
        self.pages.stored_pages(after, limit)
    }

    /// The node has only those of its pages from now on that `filter` takes. Reads of the others
    /// fail with [`PageStoreError::WrongChunk`], those under way included. Their images are dropped
    /// in the background; a node that is opened with the filter drops them, too. Does not block for
    /// I/O.
    pub fn narrow(&self, filter: &PageFilter) {
        // Before the first page goes: a read that has missed it finds out that it was not here.
        *self.filter.write() = filter.clone();
        self.log.narrow(filter);
        self.pages.keep_only(filter);
    }

    /// A node that was opened by [`PageNode::open`] gets its log together with other chunks from
    /// now on. `reader` reads the same store. Does not block.
    pub fn share_log(&self, reader: &Arc<SharedReader>) {
        self.log.share(reader);
    }

    /// Whether pages that the node does not have any more are still in its files.
    #[must_use]
    pub fn is_narrowing(&self) -> bool {
        self.pages.has_others()
    }

    /// Blocks until everything that ends at or before `lsn` is in stored images; the node hurries
    /// meanwhile.
    ///
    /// # Errors
    /// An error of the disk or the log.
    pub fn materialise_up_to(&self, lsn: Lsn) -> Result<(), PageStoreError> {
        self.pages.materialise_up_to(lsn)
    }

    /// The node's state. Does not block.
    #[must_use]
    pub fn status(&self) -> PageNodeStatus {
        PageNodeStatus { log: self.log.status(), pages: self.pages.status() }
    }

    /// Stops the background tasks and returns the lease. Blocks until their I/O is done.
    pub fn close(&self) {
        self.log.close();
        self.pages.close();
    }

    fn takes(&self, page: PageId) -> bool {
        self.filter.read().takes(page)
    }

    fn check_is_here(&self, page: PageId) -> Result<(), PageStoreError> {
        match self.takes(page) {
            true => Ok(()),
            false => Err(PageStoreError::WrongChunk { page, place: self.name.clone() }),
        }
    }

    /// Log that has not arrived is a reason to ask another node, or this one again.
    fn of_log(&self, page: PageId, error: PageStoreError) -> PageStoreError {
        match error {
            PageStoreError::Log(LogError::Unavailable { reason }) => {
                PageStoreError::Unavailable { page, place: self.name.clone(), reason }
            }
            other => other,
        }
    }
}

impl PageStore for PageNode {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        self.check_is_here(page)?;
        let reply = self.pages.read(page, version, into);
        // The page may have gone meanwhile.
        self.check_is_here(page)?;
        reply.map_err(|error| self.of_log(page, error))
    }

    fn read_many(&self, requests: &[PageRequest], sink: &mut dyn PageSink) {
        self.pages.read_many(requests, &mut Checked { node: self, requests, sink });
    }

    fn wait_until_ready(&self, page: PageId, version: PageRead, timeout: Duration) -> bool {
        !self.takes(page)
            || self.pages.knows(page, version)
            || self.log.wait_for(version.position(), timeout)
    }

    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        self.pages.hold(reader, position)
    }

    fn applied_lsn(&self, page: PageId) -> Lsn {
        self.pages.applied_lsn(page)
    }

    fn is_covered(&self, page: PageId, lsn: Lsn) -> bool {
        self.pages.is_covered(page, lsn)
    }

    fn spaces(&self) -> Vec<SpaceId> {
        self.pages.spaces()
    }
}

/// Corrects the replies for pages that the node does not have.
struct Checked<'a> {
    node: &'a PageNode,
    requests: &'a [PageRequest],
    sink: &'a mut dyn PageSink,
}

impl PageSink for Checked<'_> {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        self.sink.page_mut(index)
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        let page = self.requests[index].page;
        let reply = reply.map_err(|error| self.node.of_log(page, error));
        self.sink.complete(index, self.node.check_is_here(page).and(reply));
    }
}
