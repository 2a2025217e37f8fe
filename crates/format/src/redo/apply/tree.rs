//! Changes of tree pages. Each takes a page that satisfies the invariants of [`crate::tree`] to
//! another such page, or leaves it as it was.

use firn_base::{PageId, PageNo};

use super::ApplyError;
use super::tree_builder::{TreeBuilder, TreeHeader};
use crate::page::PageBuf;
use crate::tree::layout::{self, Slot, head_of};
use crate::tree::{ENTRY_OVERHEAD_BYTES, Entries, FLAG_DEAD, TREE_HEADER_BYTES, TreePage};

pub(super) fn init(
    page: &mut PageBuf,
    id: PageId,
    header: &TreeHeader<'_>,
    entries: Entries<'_>,
) -> Result<(), ApplyError> {
    let mut builder = TreeBuilder::new(id, header)?;
    for entry in entries {
        builder.push(entry.prefix, entry.suffix, entry.value)?;
    }
    builder.replace(page)
}

pub(super) fn insert(
    page: &mut PageBuf,
    slot: usize,
    key: &[u8],
    value: &[u8],
) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    let suffix = check_insert(&view, slot, key, value)?;
    let entry_bytes = suffix.len() + 2 + value.len();
    if layout::SLOT_BYTES + entry_bytes > view.contiguous_bytes() {
        if ENTRY_OVERHEAD_BYTES + suffix.len() + value.len() > view.free_bytes() {
            return Err(ApplyError::NoRoom { page: page.page_id() });
        }
        let mut compacted = page.clone();
        compact(&mut compacted, None)?;
        insert(&mut compacted, slot, key, value)?;
        *page = compacted;
        return Ok(());
    }
    let (count, start) = (view.slot_count(), view.heap_start() - entry_bytes);
    let new =
        Slot { head: head_of(suffix), offset: start as u16, suffix_length: suffix.len() as u16 };
    let bytes = page.bytes_mut();
    write_entry(&mut bytes[start..start + entry_bytes], suffix, value);
    let at = slot_at(slot);
    bytes.copy_within(at..slot_at(count), at + layout::SLOT_BYTES);
    bytes[at..at + layout::SLOT_BYTES].copy_from_slice(&new.to_bytes());
    page.put_u16(layout::SLOT_COUNT, (count + 1) as u16);
    page.put_u16(layout::HEAP_START, start as u16);
    Ok(())
}

pub(super) fn insert_run(
    page: &mut PageBuf,
    slot: usize,
    entries: Entries<'_>,
) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    let run = check_run(&view, slot, entries)?;
    let slot_bytes = run.count * layout::SLOT_BYTES;
    if slot_bytes + run.entry_bytes > view.contiguous_bytes() {
        if slot_bytes + run.entry_bytes > view.free_bytes() {
            return Err(ApplyError::NoRoom { page: page.page_id() });
        }
        let mut builder = TreeBuilder::new(view.page_id(), &TreeHeader::of(&view))?;
        push_slots(&mut builder, &view, 0..slot, None)?;
        for entry in entries {
            builder.push(entry.prefix, entry.suffix, entry.value)?;
        }
        push_slots(&mut builder, &view, slot..view.slot_count(), None)?;
        return builder.replace(page);
    }
    let (count, mut heap_start) = (view.slot_count(), view.heap_start());
    let bytes = page.bytes_mut();
    let (from, to) = (slot_at(slot), slot_at(slot + run.count));
    bytes.copy_within(from..slot_at(count), to);
    for (number, entry) in entries.iter().enumerate() {
        let end = heap_start;
        heap_start -= entry.suffix.len() + 2 + entry.value.len();
        write_entry(&mut bytes[heap_start..end], entry.suffix, entry.value);
        let new = Slot {
            head: head_of(entry.suffix),
            offset: heap_start as u16,
            suffix_length: entry.suffix.len() as u16,
        };
        let at = from + number * layout::SLOT_BYTES;
        bytes[at..at + layout::SLOT_BYTES].copy_from_slice(&new.to_bytes());
    }
    page.put_u16(layout::SLOT_COUNT, (count + run.count) as u16);
    page.put_u16(layout::HEAP_START, heap_start as u16);
    Ok(())
}

/// Number of entries of a run, and the heap bytes that they take.
struct RunSize {
    count: usize,
    entry_bytes: usize,
}

/// Checks that the entries are in order and belong before `slot`.
fn check_run(
    view: &TreePage<'_>,
    slot: usize,
    entries: Entries<'_>,
) -> Result<RunSize, ApplyError> {
    let mut size = RunSize { count: 0, entry_bytes: 0 };
    let mut last: Option<&[u8]> = None;
    for entry in entries {
        if entry.prefix != view.prefix() {
            return mismatch(view, "the prefix of a run is not the page's");
        }
        let is_above = match last {
            Some(last) => last < entry.suffix,
            None => slot <= view.slot_count() && view.is_above(slot, entry.suffix),
        };
        if !is_above {
            return mismatch(view, "a key of a run does not belong at the slot");
        }
        last = Some(entry.suffix);
        size.count += 1;
        size.entry_bytes += entry.suffix.len() + 2 + entry.value.len();
    }
    let Some(last) = last.filter(|_| view.is_leaf()) else {
        return mismatch(view, "a run without entries, or in an inner node");
    };
    if !view.is_below(slot, last) {
        return mismatch(view, "the last key of a run does not belong at the slot");
    }
    Ok(size)
}

/// Checks that the key belongs at `slot`; returns its suffix.
fn check_insert<'k>(
    view: &TreePage<'_>,
    slot: usize,
    key: &'k [u8],
    value: &[u8],
) -> Result<&'k [u8], ApplyError> {
    let is_slot = slot <= view.slot_count();
    let Some(suffix) = key.strip_prefix(view.prefix()).filter(|_| is_slot) else {
        return mismatch(view, "the key does not belong in the page");
    };
    if !view.is_above(slot, suffix) || !view.is_below(slot, suffix) {
        return mismatch(view, "the key does not belong at the slot");
    }
    check_value(view, value.len())?;
    if slot == 0 && !view.is_leaf() {
        return mismatch(view, "the first key of an inner node is not its low fence");
    }
    Ok(suffix)
}

pub(super) fn set_value(page: &mut PageBuf, slot: usize, value: &[u8]) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    let range = value_range(&view, slot)?;
    check_value(&view, value.len())?;
    let (old_length, suffix) = (range.len(), view.suffix(slot));
    if value.len() <= old_length {
        let garbage = view.garbage() + old_length - value.len();
        let bytes = page.bytes_mut();
        bytes[range.start - 2..range.start].copy_from_slice(&(value.len() as u16).to_le_bytes());
        bytes[range.start..range.start + value.len()].copy_from_slice(value);
        page.put_u16(layout::GARBAGE, garbage as u16);
        return Ok(());
    }
    let entry_bytes = suffix.len() + 2 + value.len();
    if entry_bytes > view.contiguous_bytes() {
        if value.len() - old_length > view.free_bytes() {
            return Err(ApplyError::NoRoom { page: page.page_id() });
        }
        return compact(page, Some((slot, value)));
    }
    let suffix_start = usize::from(view.slot(slot).map_or(0, |slot| slot.offset));
    let garbage = view.garbage() + view.heap_entry_bytes(slot);
    let start = view.heap_start() - entry_bytes;
    let suffix_length = suffix.len();
    let bytes = page.bytes_mut();
    bytes.copy_within(suffix_start..suffix_start + suffix_length, start);
    write_entry(&mut bytes[start + suffix_length..start + entry_bytes], &[], value);
    page.put_u16(slot_at(slot) + 4, start as u16);
    page.put_u16(layout::HEAP_START, start as u16);
    page.put_u16(layout::GARBAGE, garbage as u16);
    Ok(())
}

pub(super) fn patch_value(
    page: &mut PageBuf,
    slot: usize,
    at: usize,
    bytes: &[u8],
) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    let range = value_range(&view, slot)?;
    if at + bytes.len() > range.len() {
        return mismatch(&view, "the bytes lie outside of the value");
    }
    let start = range.start + at;
    page.bytes_mut()[start..start + bytes.len()].copy_from_slice(bytes);
    Ok(())
}

pub(super) fn remove(page: &mut PageBuf, slot: usize) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    let range = value_range(&view, slot)?;
    if slot == 0 && !view.is_leaf() {
        return mismatch(&view, "an inner node keeps its first entry");
    }
    let entry_bytes = view.heap_entry_bytes(slot);
    let (count, heap_start, garbage) = (view.slot_count(), view.heap_start(), view.garbage());
    let bytes = page.bytes_mut();
    bytes.copy_within(slot_at(slot + 1)..slot_at(count), slot_at(slot));
    bytes[slot_at(count - 1)..slot_at(count)].fill(0);
    page.put_u16(layout::SLOT_COUNT, (count - 1) as u16);
    // The last inserted entry returns to the free bytes: the usual case in a rollback.
    if range.end == heap_start + entry_bytes {
        page.put_u16(layout::HEAP_START, range.end as u16);
    } else {
        page.put_u16(layout::GARBAGE, (garbage + entry_bytes) as u16);
    }
    Ok(())
}

pub(super) fn truncate(
    page: &mut PageBuf,
    from_slot: usize,
    high: &[u8],
    right: PageNo,
) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    if from_slot > view.slot_count() {
        return mismatch(&view, "there is no such slot");
    }
    if view.high_fence().is_some_and(|old| high >= old) {
        return mismatch(&view, "the new high fence is not below the old one");
    }
    let header = TreeHeader { high: Some(high), right, ..TreeHeader::of(&view) };
    let mut builder = TreeBuilder::new(view.page_id(), &header)?;
    push_slots(&mut builder, &view, 0..from_slot, None)?;
    builder.replace(page)
}

pub(super) fn absorb(
    page: &mut PageBuf,
    entries: Entries<'_>,
    high: Option<&[u8]>,
    right: PageNo,
) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    let header = TreeHeader { high, right, ..TreeHeader::of(&view) };
    let mut builder = TreeBuilder::new(view.page_id(), &header)?;
    push_slots(&mut builder, &view, 0..view.slot_count(), None)?;
    for entry in entries {
        builder.push(entry.prefix, entry.suffix, entry.value)?;
    }
    builder.replace(page)
}

pub(super) fn kill(page: &mut PageBuf) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    let mut builder = TreeBuilder::new(view.page_id(), &TreeHeader::of(&view))?;
    builder.set_flags(FLAG_DEAD);
    builder.replace(page)
}

/// Rewrites the page without garbage, optionally with another value at one slot.
fn compact(page: &mut PageBuf, replaced: Option<(usize, &[u8])>) -> Result<(), ApplyError> {
    let view = live_view(page)?;
    let mut builder = TreeBuilder::new(view.page_id(), &TreeHeader::of(&view))?;
    push_slots(&mut builder, &view, 0..view.slot_count(), replaced)?;
    builder.replace(page)
}

fn push_slots(
    builder: &mut TreeBuilder,
    view: &TreePage<'_>,
    slots: std::ops::Range<usize>,
    replaced: Option<(usize, &[u8])>,
) -> Result<(), ApplyError> {
    for slot in slots {
        let value = match replaced {
            Some((at, value)) if at == slot => value,
            _ => view.value(slot),
        };
        builder.push(view.prefix(), view.suffix(slot), value)?;
    }
    Ok(())
}

fn live_view(page: &PageBuf) -> Result<TreePage<'_>, ApplyError> {
    let view = TreePage::new(page)
        .map_err(|_| ApplyError::Damaged { page: page.page_id(), what: "tree header" })?;
    if view.is_dead() {
        return mismatch(&view, "the page is dead");
    }
    Ok(view)
}

fn mismatch<T>(view: &TreePage<'_>, what: &'static str) -> Result<T, ApplyError> {
    Err(ApplyError::Mismatch { page: view.page_id(), what })
}

/// Where the value at `slot` is.
fn value_range(view: &TreePage<'_>, slot: usize) -> Result<std::ops::Range<usize>, ApplyError> {
    if slot >= view.slot_count() {
        return mismatch(view, "there is no such slot");
    }
    view.value_range(slot)
        .filter(|range| range.start >= view.heap_start())
        .ok_or(ApplyError::Damaged { page: view.page_id(), what: "slot" })
}

fn check_value(view: &TreePage<'_>, length: usize) -> Result<(), ApplyError> {
    if view.is_leaf() || length == 4 {
        Ok(())
    } else {
        mismatch(view, "an inner node's value is not a page number")
    }
}

fn slot_at(slot: usize) -> usize {
    TREE_HEADER_BYTES + slot * layout::SLOT_BYTES
}

fn write_entry(target: &mut [u8], suffix: &[u8], value: &[u8]) {
    let (key, rest) = target.split_at_mut(suffix.len());
    key.copy_from_slice(suffix);
    rest[..2].copy_from_slice(&(value.len() as u16).to_le_bytes());
    rest[2..].copy_from_slice(value);
}
