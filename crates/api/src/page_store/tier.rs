//! A tier between a node's buffer pool and the page stores: memory that several nodes share (paper 001
//! §3.1, §3.2).
//!
//! A tier stands before the page store and is one itself: reading a page through it *registers* the page
//! for this node and *fetches* it from the shared memory, or from the store behind it. What the pool does
//! with the page afterwards it tells the tier:
//!
//! ```text
//!   read ─────────── registered ──┐
//!   created ─────────────────────►│── changing, changing, … ──► released
//! ```
//!
//! * Reads and creations of a page, less its releases, are 1 while the pool caches the page and 0 when it
//!   does not, but for moments.
//! * `changing` comes before the change is in the log. A tier that has to tell other nodes of a change
//!   before the change is durable (paper 001 §3.1.4) stands before the `LogStore` as well, and lets log
//!   through when everybody was told of what came before it.

use firn_base::PageId;
use firn_format::page::PageBuf;

use super::PageStoreError;

/// How a page is latched for all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierLatchMode {
    /// Nobody changes the page's place in its tree meanwhile.
    Shared,
    /// Nobody else comes to the page by its tree.
    Exclusive,
}

/// A latch that is held among all nodes; dropping it lets go. The tier may keep it for the node until
/// another node asks (the paper's stickiness).
pub trait TierLatch: Send {}

/// What the buffer pool tells a tier. `created`, `changing` and `released` are called with the page's latch
/// held: they do not block, and call nobody back.
pub trait PageTier: Send + Sync {
    /// The page has come into the pool without being read: it begins a new life.
    fn created(&self, page: PageId);

    /// The page is about to be changed here, so that copies elsewhere grow old.
    fn changing(&self, page: PageId);

    /// The pool lets go of the page. `image` is its newest version if it is worth keeping: its log is
    /// durable, and it may be newer than what was read.
    fn released(&self, page: PageId, image: Option<&PageBuf>);

    /// Latches the page for all nodes (the paper's PLT). Blocks; called with nothing latched.
    ///
    /// # Errors
    /// [`PageStoreError::Unavailable`] or [`PageStoreError::OldEpoch`].
    fn latch(
        &self,
        page: PageId,
        mode: TierLatchMode,
    ) -> Result<Box<dyn TierLatch>, PageStoreError>;
}
