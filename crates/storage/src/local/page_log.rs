//! What the page store asks of the log beside it: which pages a stretch of log changes, and the records
//! of one page.
//!
//! The log's indexer task reads the durable log once, in order. It tells the listener of every change,
//! and keeps for each segment an index from page to records, which closes the segment's file.

use std::sync::Arc;

use firn_api::{LogError, Room};
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::redo::RawRecord;

/// Is told what the durable log changes, in the log's order, by the indexer task. Must not block long.
pub trait PageLogListener: Send + Sync {
    /// The group from `start` to `end` has records about `page`. Told once a group and page. At start-up
    /// the groups of a closed segment may be told as one: from the first group's start to the last one's
    /// end.
    fn page_changed(&self, page: PageId, start: Lsn, end: Lsn);

    /// The group that ends at `end` drops the space with all its pages.
    fn space_dropped(&self, space: SpaceId, end: Lsn);

    /// Everything that ends at or before this position has been told.
    fn told_up_to(&self, end: Lsn);
}

/// Receives the records of one page: start and end of the group, and the record.
pub type RecordVisitor<'a> = dyn FnMut(Lsn, Lsn, RawRecord<'_>) -> Result<(), LogError> + 'a;

/// The log, as the page store sees it.
pub trait PageLog: Send + Sync {
    /// The end of what is indexed; `indexed ≤ durable`. Does not block.
    fn indexed_lsn(&self) -> Lsn;

    /// The end of what is durable. Does not block.
    fn durable_lsn(&self) -> Lsn;

    /// The start of what is kept. Does not block.
    fn kept_from(&self) -> Lsn;

    /// Blocks until everything up to `lsn` is indexed and the listener has been told.
    ///
    /// # Errors
    /// If the log has failed.
    fn wait_until_indexed(&self, lsn: Lsn) -> Result<(), LogError>;

    /// Calls `visit` for every record about `page` in groups with `from ≤ start` and `end ≤ to`, in
    /// order. Blocks for I/O.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`] if `from` is before what is kept, [`LogError::Damaged`], or what `visit` said.
    fn visit_records(
        &self,
        page: PageId,
        from: Lsn,
        to: Lsn,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError>;

    /// Lets the log forget what ends at or before `lsn`; its files are reused.
    fn release_before(&self, lsn: Lsn);

    /// Whether the log waits for room, which the release of older log can give. Does not block.
    fn waits_for_room(&self) -> bool;

    /// Says how much room is left for pages, so that work which would need more is not admitted to
    /// the log. Does not block.
    fn tell_page_room(&self, room: Room);

    /// Starts telling `listener`, beginning with everything that is kept. Called once.
    fn follow(&self, listener: Arc<dyn PageLogListener>);
}
