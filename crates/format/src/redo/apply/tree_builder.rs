//! Lays out a tree page from scratch: fences at the page's end, then the entries downwards in key
//! order. Initialising, splitting, merging and compacting all use it, so the same entries always
//! give the same bytes.

use firn_base::{IndexId, PageId, PageNo};

use super::{ApplyError, reformat};
use crate::page::{PAGE_SIZE, PageBuf, PageKind};
use crate::tree::layout::{self, Slot, common_prefix, head_of};
use crate::tree::{TREE_HEADER_BYTES, TreePage};

/// The fields of a tree page beside its entries.
pub(super) struct TreeHeader<'a> {
    pub(super) index: IndexId,
    pub(super) level: u8,
    pub(super) low: &'a [u8],
    pub(super) high: Option<&'a [u8]>,
    pub(super) right: PageNo,
}

impl<'a> TreeHeader<'a> {
    pub(super) fn of(page: &TreePage<'a>) -> TreeHeader<'a> {
        TreeHeader {
            index: page.index(),
            level: page.level(),
            low: page.low_fence(),
            high: page.high_fence(),
            right: page.right(),
        }
    }
}

/// A tree page under construction, beside the page that it replaces.
pub(super) struct TreeBuilder {
    page: PageBuf,
    slots: usize,
    heap_start: usize,
    prefix_length: usize,
    /// Where the low fence and the suffix of the last entry are.
    low: (usize, usize),
    last_suffix: Option<(usize, usize)>,
}

impl TreeBuilder {
    pub(super) fn new(id: PageId, header: &TreeHeader<'_>) -> Result<TreeBuilder, ApplyError> {
        let mismatch = |what| Err(ApplyError::Mismatch { page: id, what });
        if header.high.is_some_and(|high| header.low >= high) {
            return mismatch("the low fence is not below the high fence");
        }
        if header.high.is_none() != (header.right == PageNo::NONE) {
            return mismatch("only the last page of a level ends at infinity");
        }
        let mut page = PageBuf::zeroed();
        let kind = if header.level == 0 { PageKind::TreeLeaf } else { PageKind::TreeInner };
        reformat(&mut page, id, kind);
        page.put_u64(layout::INDEX, header.index.0);
        page.bytes_mut()[layout::LEVEL] = header.level;
        page.put_u32(layout::RIGHT, header.right.0);
        page.put_u16(layout::HIGH_LENGTH, layout::INFINITE);
        let prefix_length = header.high.map_or(0, |high| common_prefix(header.low, high));
        page.put_u16(layout::PREFIX_LENGTH, prefix_length as u16);
        let mut builder = TreeBuilder {
            page,
            slots: 0,
            heap_start: PAGE_SIZE,
            prefix_length,
            low: (0, 0),
            last_suffix: None,
        };
        builder.low = builder.put_fence(layout::LOW_OFFSET, header.low)?;
        if let Some(high) = header.high {
            builder.put_fence(layout::HIGH_OFFSET, high)?;
        }
        Ok(builder)
    }

    fn put_fence(&mut self, field: usize, fence: &[u8]) -> Result<(usize, usize), ApplyError> {
        let start = self.take_heap(fence.len(), 0)?;
        self.page.bytes_mut()[start..start + fence.len()].copy_from_slice(fence);
        self.page.put_u16(field, start as u16);
        self.page.put_u16(field + 2, fence.len() as u16);
        Ok((start, fence.len()))
    }

    /// Takes `length` bytes of the heap, if `slot_bytes` more fit between slots and heap too.
    fn take_heap(&mut self, length: usize, slot_bytes: usize) -> Result<usize, ApplyError> {
        let slots_end = TREE_HEADER_BYTES + self.slots * layout::SLOT_BYTES;
        match self.heap_start.checked_sub(length) {
            Some(start) if slots_end + slot_bytes <= start => {
                self.heap_start = start;
                Ok(start)
            }
            _ => Err(ApplyError::NoRoom { page: self.page.page_id() }),
        }
    }

    /// Adds an entry behind the others; its key is `front` followed by `back`.
    pub(super) fn push(
        &mut self,
        front: &[u8],
        back: &[u8],
        value: &[u8],
    ) -> Result<(), ApplyError> {
        let length = front.len() + back.len();
        let Some(suffix_length) = length.checked_sub(self.prefix_length) else {
            return self.mismatch("an entry's key does not begin with the page's prefix");
        };
        let start = self.take_heap(suffix_length + 2 + value.len(), layout::SLOT_BYTES)?;
        self.check_prefix(front, back)?;
        // The part of the key that the page's prefix covers may end within `front` or within
        // `back`.
        let front = &front[self.prefix_length.min(front.len())..];
        let back = &back[back.len() - (suffix_length - front.len())..];
        let bytes = self.page.bytes_mut();
        let mut at = start;
        for part in [front, back, &(value.len() as u16).to_le_bytes(), value] {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.push_slot(start, suffix_length)
    }

    fn check_prefix(&self, front: &[u8], back: &[u8]) -> Result<(), ApplyError> {
        let (low, _) = self.low;
        let prefix = &self.page.bytes()[low..low + self.prefix_length];
        let split = self.prefix_length.min(front.len());
        if front[..split] == prefix[..split] && back.starts_with(&prefix[split..]) {
            Ok(())
        } else {
            self.mismatch("an entry's key does not begin with the page's prefix")
        }
    }

    fn push_slot(&mut self, start: usize, suffix_length: usize) -> Result<(), ApplyError> {
        let bytes = self.page.bytes();
        let suffix = &bytes[start..start + suffix_length];
        let in_order = match self.last_suffix {
            Some((last, length)) => bytes[last..last + length] < *suffix,
            None => {
                let (low, length) = self.low;
                bytes[low + self.prefix_length..low + length] <= *suffix
            }
        };
        if !in_order {
            return self.mismatch("an entry's key is out of order");
        }
        let slot = Slot {
            head: head_of(suffix),
            offset: start as u16,
            suffix_length: suffix_length as u16,
        };
        let at = TREE_HEADER_BYTES + self.slots * layout::SLOT_BYTES;
        self.page.bytes_mut()[at..at + layout::SLOT_BYTES].copy_from_slice(&slot.to_bytes());
        self.slots += 1;
        self.last_suffix = Some((start, suffix_length));
        Ok(())
    }

    fn mismatch<T>(&self, what: &'static str) -> Result<T, ApplyError> {
        Err(ApplyError::Mismatch { page: self.page.page_id(), what })
    }

    /// Marks the page as merged away.
    pub(super) fn set_flags(&mut self, flags: u8) {
        self.page.set_flags(flags);
    }

    /// Replaces the content of `page`, whose LSN stays.
    pub(super) fn replace(mut self, page: &mut PageBuf) -> Result<(), ApplyError> {
        self.page.put_u16(layout::SLOT_COUNT, self.slots as u16);
        self.page.put_u16(layout::HEAP_START, self.heap_start as u16);
        self.check_ends()?;
        self.page.set_lsn(page.lsn());
        *page = self.page;
        Ok(())
    }

    /// Checks what depends on the first and the last entry.
    fn check_ends(&self) -> Result<(), ApplyError> {
        let id = self.page.page_id();
        let view = TreePage::new(&self.page)
            .map_err(|_| ApplyError::Damaged { page: id, what: "tree header" })?;
        let Some(last) = view.slot_count().checked_sub(1) else {
            return if view.is_leaf() || view.is_dead() {
                Ok(())
            } else {
                self.mismatch("an inner node without a child")
            };
        };
        let suffix_of_high = view.high_fence().map(|high| &high[self.prefix_length..]);
        if suffix_of_high.is_some_and(|high| view.suffix(last) >= high) {
            return self.mismatch("an entry's key is not below the high fence");
        }
        if view.is_leaf() {
            return Ok(());
        }
        if *view.suffix(0) != view.low_fence()[self.prefix_length..] {
            return self.mismatch("the first key of an inner node is not its low fence");
        }
        if (0..=last).any(|slot| view.value(slot).len() != 4) {
            return self.mismatch("an inner node's value is not a page number");
        }
        Ok(())
    }
}
