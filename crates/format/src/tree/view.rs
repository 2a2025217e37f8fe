//! Reading a tree page: a view that is checked once when it is made, so that reads need no
//! `Result`.
//!
//! The check ensures that fences, prefix and slots lie within the page. In a damaged page, a slot
//! may still point anywhere; then key and value read as empty. [`TreePage::verify`] finds such
//! damage.

use std::cmp::Ordering;

use firn_base::{IndexId, PageId, PageNo};

use super::layout::{self, Slot, head_of};
use super::{ENTRY_OVERHEAD_BYTES, EntryList, FLAG_DEAD, TREE_BODY_BYTES, TREE_HEADER_BYTES};
use crate::page::{PAGE_SIZE, PageBuf, PageKind};

/// Why a page cannot be read as a part of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotATreePage {
    /// The page holds something else.
    #[error("the page is not part of a tree")]
    Kind,
    /// A field of the header points out of the page.
    #[error("the page's tree header is not valid: {0}")]
    Header(&'static str),
}

/// The position of a key relative to a page's fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Below the low fence: the descent went wrong, begin again at the root.
    Before,
    /// This page is responsible for the key.
    Inside,
    /// At or above the high fence: go to the right sibling.
    After,
}

/// A leaf or an inner node, read only. Cheap to make and to copy.
#[derive(Clone, Copy)]
pub struct TreePage<'a> {
    page: &'a PageBuf,
    slots: &'a [[u8; layout::SLOT_BYTES]],
    prefix: &'a [u8],
    low: &'a [u8],
    high: Option<&'a [u8]>,
}

impl std::fmt::Debug for TreePage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreePage")
            .field("page", &self.page.page_id())
            .field("level", &self.level())
            .field("slots", &self.slots.len())
            .field("low", &self.low)
            .field("high", &self.high)
            .field("right", &self.right())
            .finish()
    }
}

impl<'a> TreePage<'a> {
    /// Views `page` as a part of a tree.
    ///
    /// # Errors
    /// If the page is of another kind, or its header cannot be read.
    #[inline]
    pub fn new(page: &'a PageBuf) -> Result<TreePage<'a>, NotATreePage> {
        if !matches!(page.kind(), Some(PageKind::TreeLeaf | PageKind::TreeInner)) {
            return Err(NotATreePage::Kind);
        }
        let bytes = page.bytes();
        let slot_bytes = usize::from(page.get_u16(layout::SLOT_COUNT)) * layout::SLOT_BYTES;
        let heap_start = usize::from(page.get_u16(layout::HEAP_START));
        if heap_start > PAGE_SIZE || TREE_HEADER_BYTES + slot_bytes > heap_start {
            return Err(NotATreePage::Header("slots and heap"));
        }
        let (slots, _) = bytes[TREE_HEADER_BYTES..TREE_HEADER_BYTES + slot_bytes].as_chunks();
        let low = fence(page, layout::LOW_OFFSET).ok_or(NotATreePage::Header("low fence"))?;
        let prefix_length = usize::from(page.get_u16(layout::PREFIX_LENGTH));
        let prefix = low.get(..prefix_length).ok_or(NotATreePage::Header("prefix"))?;
        let high = match page.get_u16(layout::HIGH_LENGTH) {
            layout::INFINITE => None,
            _ => Some(fence(page, layout::HIGH_OFFSET).ok_or(NotATreePage::Header("high fence"))?),
        };
        Ok(TreePage { page, slots, prefix, low, high })
    }

    #[must_use]
    pub fn page(&self) -> &'a PageBuf {
        self.page
    }

    #[must_use]
    pub fn page_id(&self) -> PageId {
        self.page.page_id()
    }

    #[must_use]
    pub fn index(&self) -> IndexId {
        IndexId(self.page.get_u64(layout::INDEX))
    }

    /// The distance from the leaves; 0 for a leaf.
    #[must_use]
    #[inline]
    pub fn level(&self) -> u8 {
        self.page.bytes()[layout::LEVEL]
    }

    /// Whether this is a leaf.
    #[must_use]
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.page.kind() == Some(PageKind::TreeLeaf)
    }

    /// Whether the page was merged away: go back to the root.
    #[must_use]
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.page.flags() & FLAG_DEAD != 0
    }

    #[must_use]
    #[inline]
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The smallest key that may be here.
    #[must_use]
    #[inline]
    pub fn low_fence(&self) -> &'a [u8] {
        self.low
    }

    /// The smallest key beyond this page; `None`: the page covers all keys from the low fence on.
    #[must_use]
    #[inline]
    pub fn high_fence(&self) -> Option<&'a [u8]> {
        self.high
    }

    /// The right sibling; [`PageNo::NONE`] for the last page of the level.
    #[must_use]
    #[inline]
    pub fn right(&self) -> PageNo {
        PageNo(self.page.get_u32(layout::RIGHT))
    }

    /// The prefix of all keys of the page.
    #[must_use]
    #[inline]
    pub fn prefix(&self) -> &'a [u8] {
        self.prefix
    }

    /// The position of `key` relative to the fences.
    #[must_use]
    #[inline]
    pub fn covers(&self, key: &[u8]) -> Position {
        if key < self.low {
            Position::Before
        } else if self.high.is_some_and(|high| key >= high) {
            Position::After
        } else {
            Position::Inside
        }
    }

    /// The slot of `key`, or the slot to insert it at.
    ///
    /// # Errors
    /// The slot to insert at, if the page does not have the key.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let Some(suffix) = key.strip_prefix(self.prefix) else {
            return Err(if key < self.prefix { 0 } else { self.slots.len() });
        };
        let head = head_of(suffix);
        let (mut from, mut to) = (0, self.slots.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.compare(middle, head, suffix) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(from)
    }

    /// The first slot whose key is not below `key`; `slot_count()` if there is none.
    #[must_use]
    #[inline]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|slot| slot)
    }

    /// The slot and the child that lead to `key`, in an inner node that covers it. [`PageNo::NONE`]
    /// if the page has no such entry, which only damage can cause.
    #[must_use]
    #[inline]
    pub fn find_child(&self, key: &[u8]) -> (usize, PageNo) {
        let slot = self.search(key).unwrap_or_else(|slot| slot.saturating_sub(1));
        (slot, self.child(slot))
    }

    /// Compares the key at `slot` with the key that has this suffix.
    #[inline]
    fn compare(&self, slot: usize, head: u32, suffix: &[u8]) -> Ordering {
        let found = Slot::from_bytes(&self.slots[slot]);
        found.head.cmp(&head).then_with(|| self.suffix_of(found).cmp(suffix))
    }

    #[inline]
    fn suffix_of(&self, slot: Slot) -> &'a [u8] {
        let start = usize::from(slot.offset);
        self.page.bytes().get(start..start + usize::from(slot.suffix_length)).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn slot(&self, slot: usize) -> Option<Slot> {
        self.slots.get(slot).map(Slot::from_bytes)
    }

    /// The rest of the key at `slot` after the prefix; empty if the slot does not exist.
    #[must_use]
    #[inline]
    pub fn suffix(&self, slot: usize) -> &'a [u8] {
        self.slot(slot).map_or(&[], |slot| self.suffix_of(slot))
    }

    /// Whether the key with this suffix is above the key before `slot`, and not below the low
    /// fence.
    #[must_use]
    pub fn is_above(&self, slot: usize, suffix: &[u8]) -> bool {
        match slot.checked_sub(1) {
            Some(left) => self.suffix(left) < suffix,
            // The prefix is the first part of the low fence.
            None => self.low.get(self.prefix.len()..).is_none_or(|low| low <= suffix),
        }
    }

    /// Whether the key with this suffix is below the key at `slot`, and below the high fence.
    #[must_use]
    pub fn is_below(&self, slot: usize, suffix: &[u8]) -> bool {
        if slot < self.slots.len() {
            return suffix < self.suffix(slot);
        }
        self.high.is_none_or(|high| match high.strip_prefix(self.prefix) {
            Some(high) => suffix < high,
            None => self.prefix < high,
        })
    }

    /// Writes the key at `slot` into `key`, replacing its content.
    #[inline]
    pub fn key_into(&self, slot: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix);
        key.extend_from_slice(self.suffix(slot));
    }

    #[must_use]
    pub fn key(&self, slot: usize) -> Vec<u8> {
        [self.prefix, self.suffix(slot)].concat()
    }

    /// Where the value at `slot` lies in the page.
    pub(crate) fn value_range(&self, slot: usize) -> Option<std::ops::Range<usize>> {
        let slot = self.slot(slot)?;
        let length_at = usize::from(slot.offset) + usize::from(slot.suffix_length);
        let length = self.page.bytes().get(length_at..)?.first_chunk::<2>()?;
        let start = length_at + 2;
        let end = start + usize::from(u16::from_le_bytes(*length));
        (end <= PAGE_SIZE).then_some(start..end)
    }

    /// The value at `slot`; empty if the slot does not exist.
    #[must_use]
    #[inline]
    pub fn value(&self, slot: usize) -> &'a [u8] {
        self.value_range(slot).and_then(|range| self.page.bytes().get(range)).unwrap_or_default()
    }

    /// The suffix of the key at `slot`, and the value; both empty if the slot does not exist.
    #[must_use]
    #[inline]
    pub fn suffix_and_value(&self, slot: usize) -> (&'a [u8], &'a [u8]) {
        let found = self.slot(slot).and_then(|slot| {
            let start = usize::from(slot.offset);
            let entry = self.page.bytes().get(start..)?;
            let (suffix, rest) = entry.split_at_checked(usize::from(slot.suffix_length))?;
            let (length, rest) = rest.split_first_chunk::<2>()?;
            Some((suffix, rest.get(..usize::from(u16::from_le_bytes(*length)))?))
        });
        found.unwrap_or_default()
    }

    /// The child at `slot` of an inner node; [`PageNo::NONE`] if the slot does not exist.
    #[must_use]
    #[inline]
    pub fn child(&self, slot: usize) -> PageNo {
        match <[u8; 4]>::try_from(self.value(slot)) {
            Ok(bytes) => PageNo(u32::from_le_bytes(bytes)),
            Err(_) => PageNo::NONE,
        }
    }

    /// Bytes of the heap entry at `slot`, without its slot.
    pub(crate) fn heap_entry_bytes(&self, slot: usize) -> usize {
        self.suffix(slot).len() + 2 + self.value(slot).len()
    }

    /// All bytes of the entry at `slot`.
    #[must_use]
    pub fn entry_bytes(&self, slot: usize) -> usize {
        ENTRY_OVERHEAD_BYTES + self.suffix(slot).len() + self.value(slot).len()
    }

    pub(crate) fn heap_start(&self) -> usize {
        usize::from(self.page.get_u16(layout::HEAP_START))
    }

    pub(crate) fn garbage(&self) -> usize {
        usize::from(self.page.get_u16(layout::GARBAGE))
    }

    /// Bytes between the slots and the heap.
    pub(crate) fn contiguous_bytes(&self) -> usize {
        self.heap_start() - TREE_HEADER_BYTES - self.slots.len() * layout::SLOT_BYTES
    }

    /// Bytes that new entries may take. Some of them may need a compaction first, which changes do
    /// when necessary.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        (self.contiguous_bytes() + self.garbage()).min(TREE_BODY_BYTES)
    }

    /// Bytes of slots, entries and fences. For a merge they must fit into the neighbour.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        TREE_BODY_BYTES - self.free_bytes()
    }

    /// The bytes of an entry with a key (of this page's range) and a value of these lengths.
    #[must_use]
    pub fn needed_bytes(&self, key_length: usize, value_length: usize) -> usize {
        ENTRY_OVERHEAD_BYTES + key_length.saturating_sub(self.prefix.len()) + value_length
    }

    /// Whether an entry with a key (of this page's range) and a value of these lengths can be
    /// inserted.
    #[must_use]
    pub fn fits(&self, key_length: usize, value_length: usize) -> bool {
        self.needed_bytes(key_length, value_length) <= self.free_bytes()
    }

    /// Whether the value at `slot` can be replaced by one of this length.
    #[must_use]
    pub fn fits_replacement(&self, slot: usize, value_length: usize) -> bool {
        let old_length = self.value(slot).len();
        slot < self.slots.len()
            && (value_length <= old_length || value_length - old_length <= self.free_bytes())
    }

    /// Copies the entries of some slots, for the change that moves them to another page.
    #[must_use]
    pub fn entries(&self, slots: std::ops::Range<usize>) -> EntryList {
        let mut list = EntryList::with_prefix(self.prefix);
        list.reserve(self.used_bytes());
        for slot in slots.start..slots.end.min(self.slots.len()) {
            list.push(self.suffix(slot), self.value(slot));
        }
        list
    }
}

/// The fence whose offset and length are at `field`.
#[inline]
fn fence(page: &PageBuf, field: usize) -> Option<&[u8]> {
    let offset = usize::from(page.get_u16(field));
    let length = usize::from(page.get_u16(field + 2));
    page.bytes().get(offset..offset + length)
}
