//! Undo: how readers, rollback and purge get from a version of a record to the version before it.
//!
//! An undo segment is a first-in-first-out stream of undo records over linked pages of
//! [`UNDO_SPACE`]. One transaction at a time uses a segment, so the records of a transaction are
//! adjacent, and the stream is in commit order:
//!
//! ```text
//!   header ─► page ◄─► page ◄─► page          first: purge eats here      last: writers append here
//!             insert 7, update 7, committed 7 │ update 9, insert 9, rolled back 9 │ insert 12 …
//!
//!   undo header page (written field by field)    undo page
//!   32  u32  segment                             32  u32  segment
//!   36  u8   state of the transaction            36  u32  previous page, u32::MAX: none
//!   37  u8×3 zero                                40  u32  next page, u32::MAX: none
//!   40  u32  first page                          44  u16  end of the records
//!   44  u32  last page                           46  u16  offset of the last record, 0: none
//!   48  u64  transaction, 0: none                48       records
//!   56  u64  its first undo record
//!   64  u64  purged up to this undo record       record: u16 length, u8 kind, u8 flags, body
//! ```
//!
//! [`UNDO_SPACE`]: crate::space::UNDO_SPACE

mod header;
mod page;
mod payload;
mod pointer;
mod record;
mod version;

pub use header::{SegmentState, UndoSegmentHeader};
pub(crate) use page::{END, LAST_RECORD, NEXT, PREVIOUS, SEGMENT};
pub use page::{UndoPage, UndoRecords};
pub use payload::{OldPayload, PatchIter, Patches, common_prefix_length, common_suffix_length};
pub use pointer::UndoPointer;
pub use record::{UNDO_RECORD_HEADER_BYTES, UndoDamage, UndoOperation, UndoRecord, record_length};
pub use version::{RECORD_VERSION_BYTES, RecordVersion};

use crate::page::PAGE_SIZE;

/// Bytes before the first record of an undo page.
pub const UNDO_HEADER_BYTES: usize = 48;
/// The longest undo record, with its header.
pub const MAX_UNDO_RECORD_BYTES: usize = PAGE_SIZE - UNDO_HEADER_BYTES;

#[cfg(test)]
mod tests;
