//! A tier between a node's buffer pool and the page stores: memory that several nodes share (paper
//! 001 §3.1, §3.2).
//!
//! A tier stands before the page store and implements the same trait: reading a page through it
//! *registers* the page for this node and *fetches* it from the shared memory, or from the store
//! behind it. The pool then reports to the tier what it does with the page:
//!
//! ```text
//!   read ─────────── registered ──┐
//!   created ─────────────────────►│── changing, changing, … ──► released
//! ```
//!
//! * Reads and creations of a page, minus its releases, are 1 while the pool caches the page and 0
//!   while it does not, except for moments.
//! * `changing` comes before the change is in the log. A tier that must tell other nodes of a
//!   change before the change is durable (paper 001 §3.1.4) also stands before the `LogStore`, and
//!   lets log through once every node knows of the changes before it.

use firn_base::PageId;
use firn_format::page::PageBuf;

use super::PageStoreError;

/// How a page is latched across all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierLatchMode {
    /// No node changes the page's place in its tree meanwhile.
    Shared,
    /// No other node reaches the page through its tree.
    Exclusive,
}

/// A latch across all nodes; dropping it releases it. The tier may keep it for the node until
/// another node asks (the paper's stickiness).
pub trait TierLatch: Send {}

/// A tier that does nothing. A node of which all pages are its own needs no tier at all
/// ([`super::PageStore::tier`] returns none); this is for code that wants one.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTier;

impl TierLatch for NoTier {}

impl PageTier for NoTier {
    fn created(&self, _page: PageId) {}

    fn changing(&self, _page: PageId) {}

    fn released(&self, _page: PageId, _image: Option<&PageBuf>) {}

    fn latch(
        &self,
        _page: PageId,
        _mode: TierLatchMode,
    ) -> Result<Box<dyn TierLatch>, PageStoreError> {
        // A value without a size: the box allocates nothing.
        Ok(Box::new(NoTier))
    }
}

/// What the buffer pool reports to a tier. `created`, `changing` and `released` are called under
/// the page's latch: they must not block, and must not call back.
pub trait PageTier: Send + Sync {
    /// The page came into the pool without being read: it begins a new life.
    fn created(&self, page: PageId);

    /// This node is about to change the page, so copies elsewhere become stale.
    fn changing(&self, page: PageId);

    /// The pool drops the page. `image` is its newest version if it is worth keeping: its log is
    /// durable, and it may be newer than the version that was read.
    fn released(&self, page: PageId, image: Option<&PageBuf>);

    /// Latches the page across all nodes (the paper's PLT). Blocks; called with nothing latched.
    ///
    /// # Errors
    /// [`PageStoreError::Unavailable`] or [`PageStoreError::OldEpoch`].
    fn latch(
        &self,
        page: PageId,
        mode: TierLatchMode,
    ) -> Result<Box<dyn TierLatch>, PageStoreError>;
}
