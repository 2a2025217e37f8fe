//! The log of a group's member: the local log, with a list of the group's entries beside it.
//!
//! ```text
//!   DIR/log/group.state              vote, base, and where the log was last cut        state
//!   DIR/log/0000000000000008.log     blocks │ entry sectors │ footer                   sector
//!
//!   base ≤ durable in the group ≤ synced ≤ written
//!            └ what the indexer, the pages and readers get
//! ```
//!
//! The log's bytes are in the blocks, as without a group: a position's place follows from its LSN,
//! and readers, footers and the index of pages are the same. Entries name ranges of these bytes.
//! An entry stands in an entry sector of the segment that has its last byte, or, if it has no
//! bytes, the position at which it was made. So one sync makes an entry and its bytes durable, and
//! the last sector is written again as long as entries fit.
//!
//! Invariants on disk, beside D1 to D5 of the local log:
//!
//! * G1. No block and no sector has a higher incarnation than the state: a new incarnation is
//!   durable in the state before anything is written with it. Incarnations never decrease along the
//!   list of sectors.
//! * G2. Opening, a truncation and a restart each begin an incarnation, in this order: all that
//!   stays is synced; the state gets the incarnation and the end of the log, durably; then the
//!   last sector and the block in which the log ends are written with it, durably. Whatever is
//!   behind the end with a lower incarnation is not part of the log. If the state has a higher
//!   incarnation than the blocks, the log ends where the state says.
//! * G3. Entries before the end in the state are synced with their bytes. If one is missing, that
//!   is damage.
//! * G4. A sector that names an entry as synced was written after that sync.
//! * G5. A vote is durable in the state before entries of its term are written, and after all that
//!   was written before.
//! * G6. The base in the state is durable before log in front of it is released, and a restart is
//!   durable in the state before the segments of the log before are removed.
//! * G7. No entry is written into a segment that has a footer: its log is durable in the group.
//!
//! So the list of an opened log is the longest run of sectors of which each goes on where the one
//! before ends, with no lower incarnation, as far as the blocks have the bytes.

mod list;
mod opening;
mod sector;
mod state;
mod writer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_base::Lsn;
use parking_lot::Mutex;

use list::EntryList;
pub(super) use opening::open_member;

/// What the log of a group's member has beyond that of a node alone.
pub(super) struct Membership {
    /// Taken by the holder of the writer's token (rule 3 of the log).
    list: Mutex<Option<Box<EntryList>>>,
    synced: AtomicU64,
    /// Whether anything was written since the last sync.
    is_dirty: AtomicBool,
    durable_at_open: Lsn,
    /// The pages need no log before this position. All ones: there are no pages here.
    pages: AtomicU64,
}

/// The list, in the hands of the thread that writes. Dropping it returns the list.
struct HeldList<'a> {
    membership: &'a Membership,
    list: Option<Box<EntryList>>,
}

impl HeldList<'_> {
    fn get(&mut self) -> &mut EntryList {
        self.list.as_mut().expect("it is returned by the drop")
    }
}

impl Drop for HeldList<'_> {
    fn drop(&mut self) {
        *self.membership.list.lock() = self.list.take();
    }
}

impl Membership {
    /// With everything in `list` synced, and all log before `durable` durable in the group.
    fn new(list: EntryList, durable: Lsn) -> Membership {
        Membership {
            synced: AtomicU64::new(list.end().0),
            list: Mutex::new(Some(Box::new(list))),
            is_dirty: AtomicBool::new(false),
            durable_at_open: durable,
            pages: AtomicU64::new(u64::MAX),
        }
    }

    /// # Panics
    /// If the caller does not hold the writer's token.
    fn take_list(&self) -> HeldList<'_> {
        let list = self.list.lock().take();
        assert!(list.is_some(), "the holder of the writer's token has the list");
        HeldList { membership: self, list }
    }

    /// The end of the log that was synced here, durable in the group or not.
    pub(super) fn synced(&self) -> Lsn {
        Lsn(self.synced.load(Ordering::Acquire))
    }

    pub(super) fn durable_at_open(&self) -> Lsn {
        self.durable_at_open
    }

    /// A page store follows this log, and needs all of it for now.
    pub(super) fn hold_for_pages(&self) {
        self.pages.store(0, Ordering::SeqCst);
    }

    /// The page store needs no log before `lsn`.
    pub(super) fn release_pages(&self, lsn: Lsn) {
        self.pages.fetch_max(lsn.0, Ordering::SeqCst);
    }

    fn pages_hold(&self) -> Lsn {
        Lsn(self.pages.load(Ordering::SeqCst))
    }
}
