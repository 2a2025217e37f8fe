//! Reads and checks the pages of a page node that does not run.
//!
//! A page store works with a log, which this node has elsewhere. The check needs none of it: it is
//! of stored images alone. So the store is opened with a log that has nothing behind the position
//! up to which the pages are applied, and applies nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::{LogError, Room};
use firn_base::{Environment, Lsn, PageId};

use crate::local::page_log::{PageLog, PageLogListener, RecordVisitor};
use crate::local::{DatabaseId, LocalDirectory, LocalPages, OpenError, PageStoreOptions};

/// The pages of a node, all of them whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedPages {
    /// Stored images that were read.
    pub images: u64,
    /// Up to here, pages include the log.
    pub applied: Lsn,
}

/// Reads and checks every stored image of a node, or of a chunk of it; calls `progress` with the
/// number checked so far. Blocks for I/O.
///
/// # Errors
/// As [`PageNode::open`](super::PageNode::open) without a log; the first image that is damaged.
pub fn verify_pages(
    environment: &Environment,
    path: &Path,
    database: DatabaseId,
    progress: &mut dyn FnMut(u64),
) -> Result<VerifiedPages, OpenError> {
    let directory = LocalDirectory::open_for(environment, path, database)?;
    let open_log = |needed: Option<Lsn>| {
        let log = EndedLog::at(needed.unwrap_or(Lsn::FIRST));
        Ok(Arc::new(log) as Arc<dyn PageLog>)
    };
    let options = PageStoreOptions::default();
    let pages = LocalPages::open_with(&directory, options, Box::new(open_log))?;
    let images = pages.verify_all(progress)?;
    let applied = pages.status().applied_lsn;
    pages.close();
    Ok(VerifiedPages { images, applied })
}

/// A log of which nothing is left to apply.
struct EndedLog {
    applied: Lsn,
    durable: AtomicU64,
}

impl EndedLog {
    fn at(applied: Lsn) -> EndedLog {
        EndedLog { applied, durable: AtomicU64::new(applied.0) }
    }
}

impl PageLog for EndedLog {
    /// Pages may include more. Nobody may take that for applied, since the log between is not here.
    fn indexed_lsn(&self) -> Lsn {
        self.applied
    }

    fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Relaxed))
    }

    fn kept_from(&self) -> Lsn {
        self.applied
    }

    fn wait_until_indexed(&self, _: Lsn) -> Result<(), LogError> {
        Ok(())
    }

    fn visit_records(
        &self,
        _: PageId,
        _: Lsn,
        _: Lsn,
        _: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError> {
        Ok(())
    }

    fn release_before(&self, _: Lsn) {}

    fn waits_for_room(&self) -> bool {
        false
    }

    fn tell_page_room(&self, _: Room) {}

    fn learn_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        self.durable.fetch_max(lsn.0, Ordering::Relaxed);
        Ok(())
    }

    fn follow(&self, listener: Arc<dyn PageLogListener>) {
        listener.told_up_to(self.applied);
    }
}
