//! Leases: what a reader of the past holds, so that the versions which it reads are kept.

use firn_base::Lsn;

/// Keeps all versions of all pages from a position on. Ends when the last reference to it is dropped, or with
/// the life of the store. A store elsewhere may end the lease of a reader that is silent for too long;
/// reads then fail with [`super::PageStoreError::TooOld`].
pub trait PageLease: Send + Sync {
    /// Versions from here on are kept. Does not block.
    fn position(&self) -> Lsn;

    /// Gives up the versions before `to`. Positions only grow: an earlier one changes nothing. Does not
    /// block; a store elsewhere may learn of it later.
    fn advance(&self, to: Lsn);
}
