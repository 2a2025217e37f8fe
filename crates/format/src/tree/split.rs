//! Where to cut a full page in two, which key separates the halves, and whether two pages fit in
//! one.
//!
//! A split of page `L` at slot `s`: a new page gets the entries from `s` on, with `low = separator`
//! and `L`'s old high fence and sibling; `L` is truncated at `s`, with `high = separator` and the
//! new page as sibling. Both changes are in one log group. A later group adds the new page to the
//! parent (paper 000 §4.1); until then readers reach it through `L`.

use super::layout::common_prefix;
use super::{ENTRY_OVERHEAD_BYTES, TREE_BODY_BYTES, TreePage};

/// The shortest key with `left_max < key ≤ right_min`: a prefix of `right_min`.
///
/// Requires `left_max < right_min`; otherwise all of `right_min` is returned.
#[must_use]
pub fn separator<'k>(left_max: &[u8], right_min: &'k [u8]) -> &'k [u8] {
    let length = common_prefix(left_max, right_min) + 1;
    right_min.get(..length).unwrap_or(right_min)
}

impl TreePage<'_> {
    /// The first slot whose entries move to a new right sibling, if there is no room for `key`,
    /// which belongs at slot `insert_at`.
    ///
    /// Keys in ascending order arrive at the end of a page. Then the left page stays full and the
    /// new one begins with `key`, so that pages filled in key order end up full. Otherwise the
    /// bytes are halved. The result is `slot_count()` only in the first case; the new page then
    /// starts empty (a leaf) or with `key` alone (an inner node). It is 0 only for a leaf of one
    /// entry, before which `key` belongs: that entry moves to the new page, and `key` gets the old
    /// one.
    ///
    /// Both halves have room for their new fences, if no key is longer than
    /// [`super::MAX_KEY_BYTES`] and no entry longer than [`super::MAX_ENTRY_BYTES`]. The half of
    /// `key` may still be too full for it and is then split again, at most until `key` has a leaf
    /// to itself.
    #[must_use]
    pub fn split_slot(&self, insert_at: usize, key: &[u8]) -> usize {
        let count = self.slot_count();
        if insert_at >= count && count > 0 {
            return if self.fits_high_fence(count, key) { count } else { count - 1 }.max(1);
        }
        if count == 1 && self.is_leaf() {
            return 0;
        }
        self.halving_slot()
    }

    /// Whether the page, cut before `slot`, has room for the separator from `right_min` as high
    /// fence.
    fn fits_high_fence(&self, slot: usize, right_min: &[u8]) -> bool {
        let fence = if self.is_leaf() && slot > 0 {
            separator(&self.key(slot - 1), right_min).len()
        } else {
            right_min.len()
        };
        fence <= self.free_bytes() + self.high_fence().map_or(0, <[u8]>::len)
    }

    /// The slot at which half of the bytes are to the left.
    fn halving_slot(&self) -> usize {
        let count = self.slot_count();
        let total: usize = (0..count).map(|slot| self.entry_bytes(slot)).sum();
        let mut left = 0;
        for slot in 0..count {
            left += self.entry_bytes(slot);
            if left * 2 >= total {
                return (slot + 1).clamp(1, count.saturating_sub(1).max(1));
            }
        }
        1
    }

    /// The key that separates the halves of a split at `slot`. `insert_key` is the key that arrives
    /// at `slot_count()`, or before slot 0 if `slot` is 0. For a leaf this is the shortest possible
    /// key, for an inner node the first key of the right half, because key 0 of the new page must
    /// equal its low fence.
    #[must_use]
    pub fn split_separator(&self, slot: usize, insert_key: &[u8]) -> Vec<u8> {
        let right_min = if slot < self.slot_count() { self.key(slot) } else { insert_key.to_vec() };
        match slot.checked_sub(1) {
            Some(left) if self.is_leaf() => separator(&self.key(left), &right_min).to_vec(),
            None if self.is_leaf() => separator(insert_key, &right_min).to_vec(),
            _ => right_min,
        }
    }

    /// Bytes of the body that this page would take with all entries of `right`, its right sibling.
    #[must_use]
    pub fn merged_bytes(&self, right: &TreePage<'_>) -> usize {
        let prefix_length =
            right.high_fence().map_or(0, |high| common_prefix(self.low_fence(), high));
        let entries = |page: &TreePage<'_>| -> usize {
            let keys_grow_by = page.prefix().len().saturating_sub(prefix_length);
            (0..page.slot_count()).map(|slot| page.entry_bytes(slot) + keys_grow_by).sum()
        };
        let fences = self.low_fence().len() + right.high_fence().map_or(0, <[u8]>::len);
        fences + entries(self) + entries(right)
    }

    /// Whether this page can take all entries of `right`, its right sibling, and then still an
    /// entry of `spare_bytes`.
    #[must_use]
    pub fn can_absorb(&self, right: &TreePage<'_>, spare_bytes: usize) -> bool {
        self.level() == right.level()
            && self.merged_bytes(right) + ENTRY_OVERHEAD_BYTES + spare_bytes <= TREE_BODY_BYTES
    }
}
