//! `DISTINCT`: the first of equal rows.
//!
//! Keys are kept in a set while memory allows. After that, rows with keys that are not in the set
//! go to disk, split by their keys, and each part is processed in the same way.

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::expression::Slot;
use crate::types::{Datum, SqlType, write_sort_key};

use super::Execution;
use super::background_free::Bulk;
use super::memory::Reservation;
use super::operator::{Input, Operator};
use super::partition::{PartitionReader, Partitions};

/// Returns each combination of slots once.
pub(crate) struct Distinct<'p> {
    input: Input<'p>,
    slots: &'p [(Slot, SqlType)],
    /// All slots that are read above.
    saved: Vec<Slot>,
    seen: Bulk<FxHashSet<Box<[u8]>>>,
    held: Option<Reservation>,
    overflow: Option<Partitions>,
    pending: Vec<PartitionReader>,
    source: Option<PartitionReader>,
    key: Vec<u8>,
}

impl<'p> Distinct<'p> {
    pub(crate) fn new(
        input: Input<'p>,
        slots: &'p [(Slot, SqlType)],
        keep: &[Slot],
    ) -> Distinct<'p> {
        let saved = slots.iter().map(|(slot, _)| *slot).chain(keep.iter().copied());
        Distinct {
            input,
            slots,
            saved: saved.collect(),
            seen: Bulk::default(),
            held: None,
            overflow: None,
            pending: Vec::new(),
            source: None,
            key: Vec::new(),
        }
    }

    /// Fills the slots with the next row of the current source.
    fn next_of_source(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let Some(source) = &mut self.source else { return self.input.next(execution) };
        let mut row: Vec<Datum> = Vec::new();
        if !source.next(&mut row)? {
            return Ok(false);
        }
        execution.frame.restore(&self.saved, row);
        Ok(true)
    }

    /// Whether the current row is the first of its kind; if that is not known yet, the row goes to
    /// disk.
    fn is_first(&mut self, execution: &Execution<'_>) -> Result<bool> {
        self.key.clear();
        for (slot, ty) in self.slots {
            write_sort_key(execution.frame.get(*slot), ty, false, &mut self.key);
        }
        if self.seen.contains(&self.key[..]) {
            return Ok(false);
        }
        if let Some(overflow) = &mut self.overflow {
            overflow.add(&self.key, &execution.frame.save(&self.saved), execution)?;
            return Ok(false);
        }
        let held = self.held.get_or_insert_with(|| execution.memory().reservation());
        if held.grow(self.key.len() + 48) {
            self.seen.insert(self.key.as_slice().into());
            return Ok(true);
        }
        let level = self.source.as_ref().map_or(0, |source| source.level() + 1);
        let mut overflow = Partitions::new(level, execution)?;
        overflow.add(&self.key, &execution.frame.save(&self.saved), execution)?;
        self.overflow = Some(overflow);
        Ok(false)
    }

    /// Continues with a part on disk; false if there is none.
    fn next_part(&mut self) -> Result<bool> {
        self.seen.discard();
        if let Some(held) = &mut self.held {
            held.clear();
        }
        if let Some(overflow) = self.overflow.take() {
            self.pending.extend(overflow.into_readers()?);
        }
        self.source = self.pending.pop();
        Ok(self.source.is_some())
    }
}

impl Operator for Distinct<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.seen.discard();
        self.held = None;
        self.overflow = None;
        self.pending.clear();
        self.source = None;
        self.input.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        loop {
            while self.next_of_source(execution)? {
                execution.check_cancelled()?;
                if self.is_first(execution)? {
                    return Ok(true);
                }
            }
            if !self.next_part()? {
                return Ok(false);
            }
        }
    }
}
