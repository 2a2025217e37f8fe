//! Reads of many pages in one call: one message to a remote store, one queue of reads at a disk.

use firn_base::PageId;
use firn_format::page::PageBuf;

use super::{PageRead, PageStore, PageStoreError, PageVersion};

/// One page of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    pub page: PageId,
    pub version: PageRead,
}

/// Where the pages of a batch go. Called by the thread that called the store, so no buffer crosses
/// threads.
pub trait PageSink {
    /// The buffer for the request at `index`. Not called after that request is complete.
    fn page_mut(&mut self, index: usize) -> &mut PageBuf;

    /// The request at `index` has ended. On success its buffer holds the version in `reply`; after
    /// an error its content is undefined. Called once for each request.
    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>);
}

/// Reads the pages of a batch one after the other; enough for a store whose reads do not wait.
pub fn read_in_turn(
    store: &(impl PageStore + ?Sized),
    requests: &[PageRequest],
    sink: &mut dyn PageSink,
) {
    for (index, request) in requests.iter().enumerate() {
        let reply = store.read(request.page, request.version, sink.page_mut(index));
        sink.complete(index, reply);
    }
}
