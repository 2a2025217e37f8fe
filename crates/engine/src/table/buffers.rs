//! Memory that row operations reuse, so that a row costs no allocation.

use firn_format::key::IndexEntry;

use crate::transaction::RecordRun;

/// The destination of a read: a row's key in the clustered tree, and its payload.
#[derive(Debug, Default, Clone)]
pub struct RowBuffer {
    pub key: Vec<u8>,
    /// The row's bytes, for [`crate::table::Table::view`].
    pub payload: Vec<u8>,
}

/// The working memory of writes. One per statement or session; the contents have no meaning between
/// calls.
#[derive(Debug, Default)]
pub struct WriteBuffers {
    pub(super) key: Vec<u8>,
    pub(super) new_key: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) old: Vec<u8>,
    pub(super) entry: IndexEntry,
    pub(super) new_entry: IndexEntry,
    pub(super) rows: RecordRun,
    pub(super) entries: RecordRun,
}

/// The most memory that is kept for many rows while no statement inserts many.
const KEPT_BYTES: usize = 64 << 10;

impl WriteBuffers {
    /// Frees the memory that only a statement with many rows needs.
    pub(crate) fn shrink(&mut self) {
        for run in [&mut self.rows, &mut self.entries] {
            if run.memory_bytes() > KEPT_BYTES {
                *run = RecordRun::default();
            }
        }
    }
}
