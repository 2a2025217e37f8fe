//! Which slots are free. Owned by the materialiser; nothing here is shared or durable: at start-up,
//! the free slots are those that the page map does not name.

use super::slots::{SLOTS_PER_FILE, SlotNo};

/// Adjacent slots of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: SlotNo,
    pub(super) slots: u32,
}

/// A bit for each slot, and where to look next.
#[derive(Debug, Default)]
pub(super) struct SlotAllocator {
    /// Bit set: taken. Bits at and after `total` are set.
    words: Vec<u64>,
    total: u32,
    free: u32,
    cursor: u32,
}

impl SlotAllocator {
    /// `total` slots, all free.
    pub(super) fn new(total: u32) -> SlotAllocator {
        let mut this = SlotAllocator::default();
        this.extend(total);
        this
    }

    /// Adds free slots up to `total`.
    pub(super) fn extend(&mut self, total: u32) {
        self.words.resize((total as usize).div_ceil(64), u64::MAX);
        for slot in self.total..total {
            self.words[slot as usize / 64] &= !(1 << (slot % 64));
        }
        self.free += total - self.total;
        self.total = total;
    }

    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// The number of free slots.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Takes one particular slot; false if it does not exist or is taken.
    pub(super) fn take(&mut self, slot: SlotNo) -> bool {
        if slot.0 >= self.total || !self.is_free(slot.0) {
            return false;
        }
        self.words[slot.0 as usize / 64] |= 1 << (slot.0 % 64);
        self.free -= 1;
        true
    }

    /// Gives a slot back.
    ///
    /// # Panics
    /// If it is free already.
    pub(super) fn release(&mut self, slot: SlotNo) {
        assert!(slot.0 < self.total && !self.is_free(slot.0), "{slot:?} is freed twice");
        self.words[slot.0 as usize / 64] &= !(1 << (slot.0 % 64));
        self.free += 1;
    }

    /// Takes `slots` adjacent slots, if there are that many anywhere.
    pub(super) fn take_adjacent(&mut self, slots: u32) -> Option<Run> {
        let run = self
            .runs(self.cursor, self.total)
            .chain(self.runs(0, self.cursor))
            .find(|run| run.slots >= slots)?;
        Some(self.take_run(Run { slots, ..run }))
    }

    /// Takes `slots` slots in the order in which they are found, if that many are free.
    pub(super) fn take_scattered(&mut self, slots: u32) -> Option<Vec<Run>> {
        if self.free < slots {
            return None;
        }
        let mut taken = Vec::new();
        let mut wanted = slots;
        while wanted > 0 {
            let cursor = self.cursor;
            let found =
                self.runs(cursor, self.total).next().or_else(|| self.runs(0, cursor).next());
            let run = found.expect("as many slots are free as were counted");
            let run = self.take_run(Run { slots: run.slots.min(wanted), ..run });
            wanted -= run.slots;
            taken.push(run);
        }
        Some(taken)
    }

    fn take_run(&mut self, run: Run) -> Run {
        for slot in run.first.0..run.first.0 + run.slots {
            assert!(self.take(SlotNo(slot)), "a run of free slots is free");
        }
        self.cursor = run.first.0 + run.slots;
        run
    }

    fn is_free(&self, slot: u32) -> bool {
        self.words[slot as usize / 64] & (1 << (slot % 64)) == 0
    }

    /// The runs of free slots in `from..to`, cut at file boundaries.
    fn runs(&self, from: u32, to: u32) -> impl Iterator<Item = Run> + '_ {
        let mut position = from;
        std::iter::from_fn(move || {
            let first = self.next_with(position, to, true);
            if first >= to {
                return None;
            }
            let file_end = (first / SLOTS_PER_FILE + 1).saturating_mul(SLOTS_PER_FILE);
            position = self.next_with(first, to.min(file_end), false);
            Some(Run { first: SlotNo(first), slots: position - first })
        })
    }

    /// The first free (or taken) slot in `from..to`, else `to`.
    fn next_with(&self, from: u32, to: u32, is_free: bool) -> u32 {
        let mut slot = from;
        while slot < to {
            let word = self.words[slot as usize / 64];
            let matching = if is_free { !word } else { word } >> (slot % 64);
            if matching != 0 {
                return (slot + matching.trailing_zeros()).min(to);
            }
            slot = (slot / 64 + 1) * 64;
        }
        to
    }
}

#[cfg(test)]
mod tests;
