//! Checks every invariant of a tree page, for the check tool and for pages of doubtful origin.
//!
//! A page that passes stays valid: a change that `apply` accepts on a valid page leaves a valid
//! page.

use firn_base::PageNo;

use super::layout::{self, common_prefix, head_of};
use super::{FLAG_DEAD, TreePage};
use crate::page::PAGE_SIZE;

/// The first invariant that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeViolation {
    /// A field of the header has a value that it never has.
    #[error("header: {0}")]
    Header(&'static str),
    /// The fences do not delimit a range, or the prefix is not theirs.
    #[error("fences: {0}")]
    Fences(&'static str),
    /// An entry does not lie in the heap, or its slot contradicts it.
    #[error("slot {slot}: {what}")]
    Entry { slot: usize, what: &'static str },
    /// Two parts share bytes of the heap.
    #[error("two parts of the heap overlap at byte {0}")]
    Overlap(usize),
    /// The number of unused heap bytes differs from the header.
    #[error("{found} bytes of the heap are unused, but the header says {expected}")]
    Garbage {
        /// Counted.
        found: usize,
        /// In the header.
        expected: usize,
    },
}

impl TreePage<'_> {
    /// Checks everything that can be seen from this page alone.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn verify(&self) -> Result<(), TreeViolation> {
        self.verify_header()?;
        self.verify_fences()?;
        for slot in 0..self.slot_count() {
            self.verify_entry(slot)?;
        }
        self.verify_children()?;
        self.verify_heap()
    }

    fn verify_header(&self) -> Result<(), TreeViolation> {
        let bytes = self.page().bytes();
        let wrong = |what| Err(TreeViolation::Header(what));
        if self.is_leaf() != (self.level() == 0) {
            return wrong("the level contradicts the page's kind");
        }
        if self.page().flags() & !FLAG_DEAD != 0 {
            return wrong("unknown flag");
        }
        if self.is_dead() && self.slot_count() != 0 {
            return wrong("a dead page has entries");
        }
        if bytes[layout::RESERVED_U8] != 0 || self.page().get_u16(layout::RESERVED_U16) != 0 {
            return wrong("a reserved byte is not zero");
        }
        Ok(())
    }

    fn verify_fences(&self) -> Result<(), TreeViolation> {
        let wrong = |what| Err(TreeViolation::Fences(what));
        if self.high_fence().is_some_and(|high| self.low_fence() >= high) {
            return wrong("the low fence is not below the high fence");
        }
        if (self.right() == PageNo::NONE) != self.high_fence().is_none() {
            return wrong("only the last page of a level ends at infinity");
        }
        let shared = self.high_fence().map_or(0, |high| common_prefix(self.low_fence(), high));
        if self.prefix().len() != shared {
            return wrong("the prefix is not what the fences share");
        }
        Ok(())
    }

    fn verify_entry(&self, slot: usize) -> Result<(), TreeViolation> {
        let wrong = |what| Err(TreeViolation::Entry { slot, what });
        let Some(found) = self.slot(slot) else { return wrong("there is no such slot") };
        let Some(value) = self.value_range(slot) else { return wrong("ends past the page") };
        if usize::from(found.offset) < self.heap_start() {
            return wrong("begins before the heap");
        }
        if found.head != head_of(self.suffix(slot)) {
            return wrong("the head is not that of the key");
        }
        if slot > 0 && self.suffix(slot - 1) >= self.suffix(slot) {
            return wrong("the key is not above its left neighbour's");
        }
        if !self.is_leaf() && value.len() != 4 {
            return wrong("the value is not a page number");
        }
        if (slot == 0 || slot + 1 == self.slot_count())
            && self.covers(&self.key(slot)) != super::Position::Inside
        {
            return wrong("the key is outside of the fences");
        }
        Ok(())
    }

    fn verify_children(&self) -> Result<(), TreeViolation> {
        if self.is_leaf() || self.is_dead() {
            return Ok(());
        }
        if self.slot_count() == 0 {
            return Err(TreeViolation::Header("an inner node has no child"));
        }
        if self.key(0) != self.low_fence() {
            let what = "the first key of an inner node is not its low fence";
            return Err(TreeViolation::Entry { slot: 0, what });
        }
        Ok(())
    }

    fn verify_heap(&self) -> Result<(), TreeViolation> {
        let fence = |offset, length| {
            let (offset, length) = (self.page().get_u16(offset), self.page().get_u16(length));
            (usize::from(offset), usize::from(length))
        };
        let mut parts = vec![fence(layout::LOW_OFFSET, layout::LOW_LENGTH)];
        if self.high_fence().is_some() {
            parts.push(fence(layout::HIGH_OFFSET, layout::HIGH_LENGTH));
        }
        parts.extend((0..self.slot_count()).map(|slot| {
            let offset = self.slot(slot).map_or(0, |slot| usize::from(slot.offset));
            (offset, self.heap_entry_bytes(slot))
        }));
        parts.retain(|&(_, length)| length > 0);
        parts.sort_unstable();
        let mut end = self.heap_start();
        for &(offset, length) in &parts {
            if offset < end {
                return Err(TreeViolation::Overlap(offset));
            }
            end = offset + length;
        }
        let used: usize = parts.iter().map(|&(_, length)| length).sum();
        let found = PAGE_SIZE - self.heap_start() - used;
        if found != self.garbage() {
            return Err(TreeViolation::Garbage { found, expected: self.garbage() });
        }
        Ok(())
    }
}
