//! `UNION`, `INTERSECT`, `EXCEPT`.
//!
//! ```text
//!   UNION        one side after the other; each row once unless ALL
//!   INTERSECT    rows of the first side that the others have too
//!   EXCEPT       rows of the first side that the others do not have
//!                with ALL, as often as the counts of the sides say
//! ```

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::expression::Slot;
use crate::plan::{QueryPlan, SetOperation};
use crate::types::{Datum, SqlType, write_sort_key};

use super::Execution;
use super::memory::Reservation;
use super::operator::{Input, Operator, build};

/// Combines queries.
pub(crate) struct SetOperator<'p> {
    operation: SetOperation,
    all: bool,
    inputs: Vec<(&'p QueryPlan, Input<'p>)>,
    slots: &'p [(Slot, SqlType)],
    /// The side that rows come from now.
    side: usize,
    /// How often each key has come, or may still come.
    counts: FxHashMap<Box<[u8]>, u64>,
    held: Option<Reservation>,
    key: Vec<u8>,
}

impl<'p> SetOperator<'p> {
    pub(crate) fn new(
        operation: SetOperation,
        all: bool,
        inputs: &'p [QueryPlan],
        slots: &'p [(Slot, SqlType)],
        execution: &Execution<'_>,
    ) -> SetOperator<'p> {
        let inputs = inputs.iter().map(|query| (query, build(&query.root, execution)));
        SetOperator {
            operation,
            all,
            inputs: inputs.collect(),
            slots,
            side: 0,
            counts: FxHashMap::default(),
            held: None,
            key: Vec::new(),
        }
    }

    /// Fills the slots with a side's next row.
    fn next_of(&mut self, side: usize, execution: &mut Execution<'_>) -> Result<bool> {
        let Some((query, input)) = self.inputs.get_mut(side) else { return Ok(false) };
        execution.check_cancelled()?;
        if !input.next(execution)? {
            return Ok(false);
        }
        // All are worked out before one is stored: they may read what others are stored in.
        let row: Vec<Datum> = query
            .columns
            .iter()
            .map(|column| column.value.evaluate(execution))
            .collect::<Result<_>>()?;
        for ((slot, _), value) in self.slots.iter().zip(row) {
            execution.set(*slot, value);
        }
        Ok(true)
    }

    fn write_key(&mut self, execution: &Execution<'_>) {
        self.key.clear();
        for (slot, ty) in self.slots {
            write_sort_key(execution.get(*slot), ty, false, &mut self.key);
        }
    }

    /// Counts the present row's key; answers how often it has come before.
    fn count(&mut self, execution: &Execution<'_>) -> Result<u64> {
        self.write_key(execution);
        if let Some(count) = self.counts.get_mut(&self.key[..]) {
            *count += 1;
            return Ok(*count - 1);
        }
        let held = self.held.get_or_insert_with(|| execution.memory().reservation());
        held.require(self.key.len() + 48)?;
        self.counts.insert(self.key.as_slice().into(), 1);
        Ok(0)
    }

    /// Counts the rows of the sides behind the first: of `INTERSECT` what all of them have, of `EXCEPT`
    /// what any of them has.
    fn count_others(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let mut common: Option<FxHashMap<Box<[u8]>, u64>> = None;
        for side in 1..self.inputs.len() {
            self.inputs[side].1.open(execution)?;
            while self.next_of(side, execution)? {
                self.count(execution)?;
            }
            if self.operation == SetOperation::Intersect {
                let counts = std::mem::take(&mut self.counts);
                common = Some(match common {
                    None => counts,
                    Some(before) => both(before, &counts),
                });
            }
        }
        if let Some(common) = common {
            self.counts = common;
        }
        Ok(())
    }

    /// Whether the present row of the first side comes out.
    fn is_wanted(&mut self, execution: &Execution<'_>) -> Result<bool> {
        self.write_key(execution);
        let is_intersection = self.operation == SetOperation::Intersect;
        let left = match self.counts.get_mut(&self.key[..]) {
            // EXCEPT without ALL marks what has come out by a count that no row takes away.
            Some(count) if self.all => {
                let left = *count;
                *count = count.saturating_sub(1);
                left
            }
            Some(count) if is_intersection => std::mem::take(count),
            Some(count) => *count,
            None => 0,
        };
        let wanted = (left > 0) == is_intersection;
        if wanted && !is_intersection && !self.all {
            self.count(execution)?;
        }
        Ok(wanted)
    }
}

/// Keys that are in both, as often as in the one that has them less often.
fn both(
    mut one: FxHashMap<Box<[u8]>, u64>,
    other: &FxHashMap<Box<[u8]>, u64>,
) -> FxHashMap<Box<[u8]>, u64> {
    one.retain(|key, count| {
        *count = (*count).min(other.get(key).copied().unwrap_or(0));
        *count > 0
    });
    one
}

impl Operator for SetOperator<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.counts.clear();
        self.held = None;
        self.side = 0;
        if self.operation != SetOperation::Union {
            self.count_others(execution)?;
        }
        match self.inputs.first_mut() {
            Some((_, first)) => first.open(execution),
            None => Ok(()),
        }
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        loop {
            if self.next_of(self.side, execution)? {
                let wanted = match self.operation {
                    SetOperation::Union => self.all || self.count(execution)? == 0,
                    _ => self.is_wanted(execution)?,
                };
                if wanted {
                    return Ok(true);
                }
                continue;
            }
            self.side += 1;
            if self.operation != SetOperation::Union || self.side >= self.inputs.len() {
                return Ok(false);
            }
            self.inputs[self.side].1.open(execution)?;
        }
    }
}
