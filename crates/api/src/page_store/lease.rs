//! Leases: a reader of old versions holds one, so that the versions it reads are kept.

use firn_base::Lsn;

/// Keeps all versions of all pages from a position on. Ends when its last reference is dropped or
/// the store ends. A remote store may end the lease of a reader that is silent for too long; reads
/// then fail with [`super::PageStoreError::TooOld`].
pub trait PageLease: Send + Sync {
    /// Versions from here on are kept. Does not block.
    fn position(&self) -> Lsn;

    /// Gives up the versions before `to`. Positions only grow: an earlier one changes nothing. Does
    /// not block; a remote store may learn of it later.
    fn advance(&self, to: Lsn);
}
