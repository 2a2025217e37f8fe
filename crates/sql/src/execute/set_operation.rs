//! `UNION`, `INTERSECT`, `EXCEPT`.
//!
//! ```text
//!   UNION        one side after the other
//!   INTERSECT    rows of the first side that the others have too
//!   EXCEPT       rows of the first side that the others do not have
//!                with ALL, as often as the counts of the sides say
//! ```
//!
//! Without `ALL`, a [`Distinct`] returns each row of `UNION` once, and each row of the first side
//! of `EXCEPT`. The counts of the sides after the first are kept in memory, as long as they leave
//! that `Distinct` as much memory as they use. If they do not fit, all sides are put on disk, split
//! by their keys, and processed part by part.

use crate::execute::Evaluate;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::expression::Slot;
use crate::logical::SetOperation;
use crate::plan::QueryPlan;
use crate::types::{Datum, SqlType, write_sort_key};

use super::Execution;
use super::background_free::Bulk;
use super::distinct::Distinct;
use super::memory::Reservation;
use super::operator::{Input, Operator, build};
use super::partition::{PartitionReader, Partitions};

/// Combines queries.
pub(crate) struct SetOperator<'p> {
    operation: SetOperation,
    all: bool,
    inputs: Vec<(&'p QueryPlan, Input<'p>)>,
    /// Instead of the first input: each of its rows once, already in the slots.
    distinct_first: Option<Input<'p>>,
    slots: &'p [(Slot, SqlType)],
    /// The side from which rows come now.
    side: usize,
    /// How often each key of the sides after the first may still come.
    counts: Counts,
    held: Option<Reservation>,
    /// All sides are on disk.
    is_split: bool,
    /// Parts on disk that are still to be processed.
    parts: Vec<Part>,
    /// The rows of the first side in the current part.
    source: Option<PartitionReader>,
    key: Vec<u8>,
}

type Counts = Bulk<FxHashMap<Box<[u8]>, u64>>;

/// Rows of all sides whose keys are in one part.
struct Part {
    first: PartitionReader,
    others: Vec<PartitionReader>,
}

impl<'p> SetOperator<'p> {
    pub(crate) fn new(
        operation: SetOperation,
        all: bool,
        inputs: &'p [QueryPlan],
        slots: &'p [(Slot, SqlType)],
        execution: &Execution<'_>,
    ) -> SetOperator<'p> {
        let distinct_first = (operation == SetOperation::Except && !all).then(|| {
            let sides = &inputs[..inputs.len().min(1)];
            let only = SetOperator::new(SetOperation::Union, true, sides, slots, execution);
            Box::new(Distinct::new(Box::new(only), slots, &[])) as Input<'p>
        });
        let inputs = inputs.iter().map(|query| (query, build(&query.root, execution)));
        SetOperator {
            distinct_first,
            operation,
            all,
            inputs: inputs.collect(),
            slots,
            side: 0,
            counts: Counts::default(),
            held: None,
            is_split: false,
            parts: Vec::new(),
            source: None,
            key: Vec::new(),
        }
    }

    /// Fills the slots with a side's next row.
    fn next_of(&mut self, side: usize, execution: &mut Execution<'_>) -> Result<bool> {
        execution.check_cancelled()?;
        if let (0, Some(first)) = (side, &mut self.distinct_first) {
            return first.next(execution);
        }
        let Some((query, input)) = self.inputs.get_mut(side) else { return Ok(false) };
        if !input.next(execution)? {
            return Ok(false);
        }
        // All are evaluated before one is stored: they may read slots that others are stored in.
        let row: Vec<Datum> = query
            .columns
            .iter()
            .map(|column| column.value.evaluate(execution))
            .collect::<Result<_>>()?;
        for ((slot, _), value) in self.slots.iter().zip(row) {
            execution.frame.set(*slot, value);
        }
        Ok(true)
    }

    fn open_side(&mut self, side: usize, execution: &mut Execution<'_>) -> Result<()> {
        match (side, &mut self.distinct_first, self.inputs.get_mut(side)) {
            (0, Some(first), _) => first.open(execution),
            (_, _, Some((_, input))) => input.open(execution),
            (_, _, None) => Ok(()),
        }
    }

    fn write_key(&mut self, execution: &Execution<'_>) {
        self.key.clear();
        for (slot, ty) in self.slots {
            write_sort_key(execution.frame.get(*slot), ty, false, &mut self.key);
        }
    }

    /// Counts the key that was written last; false if there is no memory for it.
    fn count(&mut self, execution: &Execution<'_>) -> bool {
        if let Some(count) = self.counts.get_mut(&self.key[..]) {
            *count += 1;
            return true;
        }
        let held = self.held.get_or_insert_with(|| execution.memory().reservation());
        if !held.grow(self.key.len() + 48) {
            return false;
        }
        self.counts.insert(self.key.as_slice().into(), 1);
        true
    }

    /// Whether the counts leave memory for the rows of the first side, if those are kept.
    fn leaves_memory(&self, execution: &Execution<'_>) -> bool {
        let budget = execution.memory();
        let left = budget.limit_bytes().saturating_sub(budget.used_bytes());
        let held = self.held.as_ref().map_or(0, Reservation::size_bytes);
        self.distinct_first.is_none() || held <= left
    }

    /// Counts the rows of the sides after the first: for `INTERSECT` those that all of them have,
    /// for `EXCEPT` those that any of them has. False if there is no memory for it.
    fn count_others(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let mut common: Option<Counts> = None;
        for side in 1..self.inputs.len() {
            self.open_side(side, execution)?;
            while self.next_of(side, execution)? {
                self.write_key(execution);
                if !self.count(execution) || !self.leaves_memory(execution) {
                    return Ok(false);
                }
            }
            self.side_counted(&mut common);
        }
        self.counts = common.unwrap_or_else(|| std::mem::take(&mut self.counts));
        Ok(true)
    }

    fn side_counted(&mut self, common: &mut Option<Counts>) {
        if self.operation == SetOperation::Intersect {
            let counts = std::mem::take(&mut self.counts);
            *common = Some(match common.take() {
                None => counts,
                Some(before) => both(before, &counts),
            });
        }
    }

    /// Puts all sides on disk.
    fn split(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.forget();
        self.is_split = true;
        let slots: Vec<Slot> = self.slots.iter().map(|(slot, _)| *slot).collect();
        let mut sides = Vec::with_capacity(self.inputs.len());
        for side in 0..self.inputs.len() {
            let mut parts = Partitions::new(0, execution)?;
            self.open_side(side, execution)?;
            while self.next_of(side, execution)? {
                self.write_key(execution);
                parts.add(&self.key, &execution.frame.save(&slots), execution)?;
            }
            sides.push(parts.into_all_readers()?.into_iter());
        }
        let Some((first, others)) = sides.split_first_mut() else { return Ok(()) };
        for first in first {
            let others = others.iter_mut().filter_map(Iterator::next).collect();
            self.parts.push(Part { first, others });
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.counts = Counts::default();
        self.held = None;
    }

    /// Continues with the next part on disk; false if there is none.
    fn next_part(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let Some(part) = self.parts.pop() else { return Ok(false) };
        self.forget();
        let mut common: Option<Counts> = None;
        let mut row: Vec<Datum> = Vec::new();
        for mut side in part.others {
            while side.next(&mut row)? {
                execution.check_cancelled()?;
                self.restore(&mut row, execution);
                if !self.count(execution) {
                    return Err(execution.memory().refusal());
                }
            }
            self.side_counted(&mut common);
        }
        self.counts = common.unwrap_or_else(|| std::mem::take(&mut self.counts));
        self.source = Some(part.first);
        Ok(true)
    }

    /// Puts a row from the disk in the slots, and writes its key.
    fn restore(&mut self, row: &mut Vec<Datum>, execution: &mut Execution<'_>) {
        for ((slot, _), value) in self.slots.iter().zip(row.drain(..)) {
            execution.frame.set(*slot, value);
        }
        self.write_key(execution);
    }

    /// Fills the slots with the first side's next row, and writes its key.
    fn next_of_first(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let mut row: Vec<Datum> = Vec::new();
        while let Some(source) = &mut self.source {
            execution.check_cancelled()?;
            if source.next(&mut row)? {
                self.restore(&mut row, execution);
                return Ok(true);
            }
            self.source = None;
            self.next_part(execution)?;
        }
        if self.is_split {
            return Ok(false);
        }
        let found = self.next_of(0, execution)?;
        self.write_key(execution);
        Ok(found)
    }

    /// Whether the first side's row whose key was written last comes out.
    fn is_wanted(&mut self) -> bool {
        let is_intersection = self.operation == SetOperation::Intersect;
        let left = match self.counts.get_mut(&self.key[..]) {
            Some(count) if self.all => {
                let left = *count;
                *count = count.saturating_sub(1);
                left
            }
            Some(count) if is_intersection => std::mem::take(count),
            Some(count) => *count,
            None => 0,
        };
        (left > 0) == is_intersection
    }
}

/// Keys that are in both, as often as in the one that has them less often.
fn both(mut one: Counts, other: &Counts) -> Counts {
    one.retain(|key, count| {
        *count = (*count).min(other.get(key).copied().unwrap_or(0));
        *count > 0
    });
    one
}

impl Operator for SetOperator<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.forget();
        self.is_split = false;
        self.parts.clear();
        self.source = None;
        self.side = 0;
        if self.operation != SetOperation::Union && !self.count_others(execution)? {
            self.split(execution)?;
            self.next_part(execution)?;
            return Ok(());
        }
        self.open_side(0, execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if self.operation != SetOperation::Union {
            while self.next_of_first(execution)? {
                if self.is_wanted() {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        while !self.next_of(self.side, execution)? {
            self.side += 1;
            if self.side >= self.inputs.len() {
                return Ok(false);
            }
            self.open_side(self.side, execution)?;
        }
        Ok(true)
    }
}
