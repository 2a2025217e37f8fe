//! Memory that row operations use again and again, so that a row costs no allocation.

use firn_format::key::IndexEntry;

use crate::transaction::RecordRun;

/// Where a read puts a row: its key in the clustered tree, and its payload.
#[derive(Debug, Default, Clone)]
pub struct RowBuffer {
    /// The primary key's bytes.
    pub key: Vec<u8>,
    /// The row's bytes, for [`crate::table::Table::view`].
    pub payload: Vec<u8>,
}

/// What a write works with. One per statement or session; the contents mean nothing between calls.
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

/// What the memory for many rows may be while nobody inserts many.
const KEPT_BYTES: usize = 64 << 10;

impl WriteBuffers {
    /// Gives back what only a statement with many rows needs.
    pub(crate) fn shrink(&mut self) {
        for run in [&mut self.rows, &mut self.entries] {
            if run.memory_bytes() > KEPT_BYTES {
                *run = RecordRun::default();
            }
        }
    }
}
