//! Spaces: which of a space's pages are in use, and the purpose of the space.
//!
//! ```text
//!   page 0                    SpaceHeader
//!   page 1 + k × 65,280       AllocationMap k: the states of pages [k × 65,280, (k + 1) × 65,280)
//!   the rest                  whatever the space is for
//!
//!   space header                          allocation map
//!   32  u32  layout version               32  u32  pages in use
//!   36  u8   purpose                      36  u32  retired pages
//!   37  u8×3 zero                         40  u8×24 zero
//!   40  u32  page count                   64  2 bits a page, lowest bits first:
//!   44  u32  allocation hint                  0 free, 1 used, 2 retired
//!   48  u64  table id, 0: none
//!   56  u64  zero
//!   64       for the owner of the space
//! ```
//!
//! *Retired*: no longer reachable, but an operation that descended earlier may still read it. It
//! becomes free when no such reader is left. After a restart there is none, so retired pages count
//! as free.

mod header;
mod map;

pub use header::{SPACE_LAYOUT_VERSION, SpaceHeader, SpacePurpose};
pub use map::{AllocationMap, PAGES_PER_MAP, PageState, map_page_of};
pub(crate) use map::{MAP_BYTES, RETIRED, STATES, USED};

use firn_base::{PageNo, SpaceId};

/// The space of the data dictionary.
pub const DICTIONARY_SPACE: SpaceId = SpaceId(0);
/// The space of the undo segments.
pub const UNDO_SPACE: SpaceId = SpaceId(1);
/// The page of a space that holds its [`SpaceHeader`].
pub const HEADER_PAGE: PageNo = PageNo(0);

#[cfg(test)]
mod tests;
