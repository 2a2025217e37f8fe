//! What the page store asks of the log beside it: which pages a stretch of log changes, and the
//! records of a page.
//!
//! The log's indexer task reads the durable log once, in order. It reports every change to the
//! listener. For each segment it keeps an index from page to records, which becomes the footer of
//! the segment's file.

use std::sync::Arc;

use firn_api::{LogError, Room};
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::redo::RawRecord;

/// Hears from the indexer task what the durable log changes, in the log's order. Must not block for
/// long.
pub trait PageLogListener: Send + Sync {
    /// The group from `start` to `end` has records about `page`. Reported once per group and page.
    /// At start-up, the groups of a completed segment may be reported as one, from the first
    /// group's start to the last one's end.
    fn page_changed(&self, page: PageId, start: Lsn, end: Lsn);

    /// The group that ends at `end` drops the space with all its pages.
    fn space_dropped(&self, space: SpaceId, end: Lsn);

    /// Everything that ends at or before this position has been reported.
    fn told_up_to(&self, end: Lsn);
}

/// Receives the records of one page: start and end of the group, and the record.
pub type RecordVisitor<'a> = dyn FnMut(Lsn, Lsn, RawRecord<'_>) -> Result<(), LogError> + 'a;

/// The log, as the page store sees it.
pub trait PageLog: Send + Sync {
    /// The end of the indexed log; `indexed ≤ durable`. Does not block.
    fn indexed_lsn(&self) -> Lsn;

    /// The end of the durable log. Does not block.
    fn durable_lsn(&self) -> Lsn;

    /// The start of the log that is kept. Does not block.
    fn kept_from(&self) -> Lsn;

    /// Blocks until everything up to `lsn` is indexed and reported to the listener.
    ///
    /// # Errors
    /// If the log has failed.
    fn wait_until_indexed(&self, lsn: Lsn) -> Result<(), LogError>;

    /// Calls `visit` for every record about `page` in groups with `from ≤ start` and `end ≤ to`, in
    /// order. Blocks for I/O.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`] if `from` is before the kept log, [`LogError::Damaged`], or the
    /// error of `visit`.
    fn visit_records(
        &self,
        page: PageId,
        from: Lsn,
        to: Lsn,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError>;

    /// Lets the log drop groups that end at or before `lsn`; their files are reused.
    fn release_before(&self, lsn: Lsn);

    /// Whether the log waits for room, which releasing older log can provide. Does not block.
    fn waits_for_room(&self) -> bool;

    /// Reports how much room is left for pages, so that the log refuses work that would need more.
    /// Does not block.
    fn tell_page_room(&self, room: Room);

    /// Pages include log before `lsn`, so it was durable when they were made. Who starts in a
    /// group, or reads log elsewhere, may not know yet: it learns that from the pages, or waits
    /// until the log says so.
    ///
    /// # Errors
    /// [`LogError::Unavailable`] if the log does not say so in time.
    fn learn_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        let _ = lsn;
        Ok(())
    }

    /// Starts reporting to `listener`, beginning with all kept log. Called once.
    fn follow(&self, listener: Arc<dyn PageLogListener>);
}
