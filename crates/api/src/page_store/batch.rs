//! Reads of many pages in one call: one message to a store elsewhere, one queue of reads at a disk.

use firn_base::PageId;
use firn_format::page::PageBuf;

use super::{PageRead, PageStore, PageStoreError, PageVersion};

/// One page of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// Which page.
    pub page: PageId,
    /// Which version of it.
    pub version: PageRead,
}

/// Where the pages of a batch go. Called by the thread that has called the store, so that no buffer changes
/// hands between threads.
pub trait PageSink {
    /// The buffer for the request at `index`. Not called after that request was completed.
    fn page_mut(&mut self, index: usize) -> &mut PageBuf;

    /// The request at `index` has ended: its buffer holds the version of the reply, or anything after an
    /// error. Called once for each request.
    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>);
}

/// Reads the pages of a batch one after the other: all that a store does whose reads do not wait.
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
