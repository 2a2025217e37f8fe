//! Pages of B-link trees: leaves and inner nodes share one slotted layout (paper 000 §4.1, Lehman &
//! Yao).
//!
//! ```text
//!   page header │ tree header │ slots →      free      ← heap (entries, fences) │
//!   0           32            64                       heap start               16384
//!
//!  32  u64  index id         40  u8   level, 0: leaf      41  u8   reserved, zero
//!  42  u16  slots            44  u16  heap start          46  u16  garbage in the heap, bytes
//!  48  u16  prefix length    50  u16  low fence offset    52  u16  low fence length
//!  54  u16  high fence offset             56  u16  high fence length, 0xFFFF: +infinity
//!  58  u16  reserved, zero   60  u32  right sibling, u32::MAX: none
//!
//!   slot (8 bytes)                                heap entry
//!   0  u32  first 4 bytes of the key's suffix     0   key suffix
//!   4  u16  offset of the entry                   +n  u16  value length
//!   6  u16  length n of the suffix                    value
//! ```
//!
//! Invariants, `page` being any live page of a tree and `right` its right sibling:
//!
//! ```text
//!   page.low ≤ every key of page < page.high       keys strictly ascending
//!   page.high = right.low                          no right sibling  ⇔  page.high = +infinity
//!   prefix = what low and high have in common      (nothing if high = +infinity)
//!   inner: value = child's page number; entry i leads to keys in [key i, key i+1)
//!   inner: at least one entry, key 0 = page.low
//!   dead:  no entries; whoever meets it goes back to the root
//! ```
//!
//! Departures from Lehman & Yao: explicit fences tell a reader from the page alone whether its key
//! has moved right, and a merged page is marked dead instead of being reached by a link. There is
//! no left link: a cursor that moves backwards descends again with the low fence.
//!
//! The leftmost page of each level has the empty key as its low fence.

mod entries;
pub(crate) mod layout;
mod split;
mod verify;
mod view;

pub use entries::{Entries, EntriesIter, Entry, EntryList};
pub use split::separator;
pub use verify::TreeViolation;
pub use view::{NotATreePage, Position, TreePage};

use crate::page::PAGE_SIZE;

/// Bytes before the first slot.
pub const TREE_HEADER_BYTES: usize = 64;
/// Bytes that slots, entries and fences share.
pub const TREE_BODY_BYTES: usize = PAGE_SIZE - TREE_HEADER_BYTES;
/// Bytes of an entry besides its key suffix and value: the slot and the value's length.
pub const ENTRY_OVERHEAD_BYTES: usize = layout::SLOT_BYTES + 2;
/// The longest key of a tree.
pub const MAX_KEY_BYTES: usize = 3584;
/// Most bytes of key and value of one entry together. One such entry and two fences of
/// [`MAX_KEY_BYTES`] fit in a page, so splits can give any entry a leaf to itself.
pub const MAX_ENTRY_BYTES: usize = TREE_BODY_BYTES - 2 * MAX_KEY_BYTES - ENTRY_OVERHEAD_BYTES;
/// Page flag of a page that was merged away.
pub const FLAG_DEAD: u8 = 1;

#[cfg(test)]
mod tests;
