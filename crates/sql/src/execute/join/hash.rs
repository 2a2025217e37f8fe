//! The right side in a hash table, with look-ups for the rows of the left side.
//!
//! ```text
//!   right fits       table of all of it;  left streams past
//!   it does not      both sides on disk, split by their keys; part by part as above
//!   a part does not  as much of its right side as fits;  its left side streams past once per piece
//! ```
//!
//! Rows whose key is NULL match nothing, unless the pair is compared by `<=>`.

use crate::execute::Evaluate;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::expression::{Expression, Slot};
use crate::logical::JoinKind;
use crate::plan::{NodeKind, PlanNode};
use crate::types::sort_key::write_comparison_key;
use crate::types::{ComparisonKind, Datum, comparison_kind};

use super::super::Execution;
use super::super::background_free::Bulk;
use super::super::memory::{Reservation, size_of_values};
use super::super::operator::{Input, Operator, all_true};
use super::super::partition::{PartitionReader, Partitions};
use super::filled::filled_slots;
use super::nested_loop::fill_null;

/// The end of a chain.
const NONE: u32 = u32::MAX;

pub(crate) struct HashJoin<'p> {
    left: Input<'p>,
    right: Input<'p>,
    plan: Plan<'p>,
    table: Table,
    /// The current left row's position in the table.
    chain: u32,
    has_matched: bool,
    is_inside: bool,
    key: Vec<u8>,
    parts: Option<Parts>,
}

/// The parts of a node.
struct Plan<'p> {
    join: JoinKind,
    keys: &'p [(Expression, Expression)],
    null_safe: &'p [bool],
    conditions: &'p [Expression],
    right_slots: &'p [Slot],
    left_slots: Vec<Slot>,
    kinds: Vec<ComparisonKind>,
}

/// Both sides on disk.
struct Parts {
    left: Vec<PartitionReader>,
    right: Vec<PartitionReader>,
    present: Option<Part>,
}

/// The part that is being processed.
struct Part {
    left: PartitionReader,
    /// The number of the left row that was read last, from 1.
    number: usize,
    /// The rest of the right side that has not been in the table yet, and the row that did not fit.
    right: PartitionReader,
    ahead: Option<(Box<[u8]>, Vec<Datum>)>,
    /// Left rows that have matched something in an earlier piece of the right side.
    matched: Vec<bool>,
    held: Reservation,
}

impl Part {
    /// Whether the table holds the whole rest of the right side.
    fn is_last_piece(&self) -> bool {
        self.ahead.is_none()
    }

    /// Notes that the current left row has matched, for the following pieces.
    fn note_match(&mut self) -> Result<()> {
        if self.is_last_piece() {
            return Ok(());
        }
        if self.matched.len() < self.number {
            self.held.require(self.number - self.matched.len())?;
            self.matched.resize(self.number, false);
        }
        self.matched[self.number - 1] = true;
        Ok(())
    }
}

/// Rows by their keys. Rows with the same key are chained in arrival order: this order decides
/// which of them an `UPDATE` of the left side meets first.
#[derive(Default)]
struct Table {
    chains: Bulk<FxHashMap<Box<[u8]>, Chain>>,
    rows: Bulk<Vec<(Box<[Datum]>, u32)>>,
    held: Option<Reservation>,
}

/// The first and the last row of a key.
#[derive(Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
}

impl Table {
    /// Adds a row; false if there is no memory for it.
    fn add(&mut self, key: &[u8], row: &[Datum], execution: &Execution<'_>) -> bool {
        let held = self.held.get_or_insert_with(|| execution.memory().reservation());
        if self.rows.len() >= NONE as usize || !held.grow(key.len() + size_of_values(row) + 64) {
            return false;
        }
        let number = self.rows.len() as u32;
        self.rows.push((row.into(), NONE));
        match self.chains.get_mut(key) {
            Some(chain) => {
                let before = std::mem::replace(&mut chain.last, number);
                self.rows[before as usize].1 = number;
            }
            None => {
                self.chains.insert(key.into(), Chain { first: number, last: number });
            }
        }
        true
    }

    fn clear(&mut self) {
        *self = Table::default();
    }
}

impl<'p> HashJoin<'p> {
    /// # Panics
    /// If `node` is not a hash join.
    pub(crate) fn new(left: Input<'p>, right: Input<'p>, node: &'p PlanNode) -> HashJoin<'p> {
        let NodeKind::HashJoin {
            left: left_node,
            join,
            keys,
            null_safe,
            conditions,
            right_slots,
            ..
        } = &node.kind
        else {
            panic!("a hash join is built of another node")
        };
        let plan = Plan {
            join: *join,
            keys,
            null_safe,
            conditions,
            right_slots,
            left_slots: filled_slots(left_node),
            kinds: Vec::new(),
        };
        HashJoin {
            left,
            right,
            plan,
            table: Table::default(),
            chain: NONE,
            has_matched: false,
            is_inside: false,
            key: Vec::new(),
            parts: None,
        }
    }

    /// Puts the right side in the table, or both sides on disk.
    fn build(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.right.open(execution)?;
        while self.right.next(execution)? {
            execution.check_cancelled()?;
            if !self.plan.right_key(&mut self.key, execution)? {
                continue;
            }
            let row = execution.frame.save(self.plan.right_slots);
            if !self.table.add(&self.key, &row, execution) {
                return self.split(&row, execution);
            }
        }
        Ok(())
    }

    /// Splits both sides by their keys; the right side is at `row`.
    fn split(&mut self, row: &[Datum], execution: &mut Execution<'_>) -> Result<()> {
        let mut right = Partitions::new(0, execution)?;
        right.add(&self.key, &with_key(&self.key, row), execution)?;
        let table = std::mem::take(&mut self.table);
        for (key, chain) in &*table.chains {
            let mut number = chain.first;
            while let Some((row, next)) = table.rows.get(number as usize) {
                right.add(key, &with_key(key, row), execution)?;
                number = *next;
            }
        }
        drop(table);
        while self.right.next(execution)? {
            if self.plan.right_key(&mut self.key, execution)? {
                let row = execution.frame.save(self.plan.right_slots);
                right.add(&self.key, &with_key(&self.key, &row), execution)?;
            }
        }
        let mut left = Partitions::new(0, execution)?;
        self.left.open(execution)?;
        while self.left.next(execution)? {
            // A left row without a key may come out too; it can go to any part.
            if !self.plan.left_key(&mut self.key, execution)? {
                self.key.clear();
            }
            let row = execution.frame.save(&self.plan.left_slots);
            left.add(&self.key, &row, execution)?;
        }
        let (left, right) = (left.into_all_readers()?, right.into_all_readers()?);
        self.parts = Some(Parts { left, right, present: None });
        Ok(())
    }

    /// Fills the slots with the next row of the left side.
    fn next_left(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if self.parts.is_none() {
            return self.left.next(execution);
        }
        let mut row = Vec::new();
        loop {
            let Some(parts) = &mut self.parts else { return Ok(false) };
            if let Some(present) = &mut parts.present {
                if present.left.next(&mut row)? {
                    present.number += 1;
                    execution.frame.restore(&self.plan.left_slots, row);
                    return Ok(true);
                }
                if !present.is_last_piece() {
                    present.left = present.left.again();
                    present.number = 0;
                    self.load(execution)?;
                    continue;
                }
            }
            let Some((left, right)) = parts.left.pop().zip(parts.right.pop()) else {
                parts.present = None;
                return Ok(false);
            };
            let (matched, held) = (Vec::new(), execution.memory().reservation());
            parts.present = Some(Part { left, number: 0, right, ahead: None, matched, held });
            self.load(execution)?;
        }
    }

    /// Loads the next piece of the current part's right side into the table.
    fn load(&mut self, execution: &Execution<'_>) -> Result<()> {
        self.table.clear();
        let Some(part) = self.parts.as_mut().and_then(|parts| parts.present.as_mut()) else {
            return Ok(());
        };
        if let Some((key, row)) = part.ahead.take()
            && !self.table.add(&key, &row, execution)
        {
            return Err(execution.memory().refusal());
        }
        let mut row = Vec::new();
        while part.right.next(&mut row)? {
            execution.check_cancelled()?;
            let Some(Datum::Text(key)) = row.pop() else { return Err(part.right.damaged()) };
            if !self.table.add(&key, &row, execution) {
                if self.table.rows.is_empty() {
                    return Err(execution.memory().refusal());
                }
                part.ahead = Some(((*key).into(), row));
                return Ok(());
            }
        }
        Ok(())
    }

    fn part(&mut self) -> Option<&mut Part> {
        self.parts.as_mut()?.present.as_mut()
    }

    /// Whether the current left row has matched in an earlier piece of the right side.
    fn has_matched_before(&mut self) -> bool {
        self.part().is_some_and(|part| part.matched.get(part.number.wrapping_sub(1)) == Some(&true))
    }

    /// Looks a left row up.
    fn look_up(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.is_inside = true;
        self.has_matched = self.has_matched_before();
        self.chain = match self.plan.left_key(&mut self.key, execution)? {
            true => self.table.chains.get(&self.key[..]).map_or(NONE, |chain| chain.first),
            false => NONE,
        };
        Ok(())
    }

    /// Goes to the next matching pair; false if the left row has no more.
    fn next_match(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        while let Some((row, next)) = self.table.rows.get(self.chain as usize) {
            execution.check_cancelled()?;
            self.chain = *next;
            for (slot, value) in self.plan.right_slots.iter().zip(row) {
                execution.frame.slots[slot.0 as usize] = value.clone();
            }
            if all_true(self.plan.conditions, execution)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A row followed by its key.
fn with_key(key: &[u8], row: &[Datum]) -> Vec<Datum> {
    row.iter().cloned().chain([Datum::text(key)]).collect()
}

impl Plan<'_> {
    fn left_key(&self, key: &mut Vec<u8>, execution: &mut Execution<'_>) -> Result<bool> {
        self.write_key(self.keys.iter().map(|(left, _)| left), key, execution)
    }

    fn right_key(&self, key: &mut Vec<u8>, execution: &mut Execution<'_>) -> Result<bool> {
        self.write_key(self.keys.iter().map(|(_, right)| right), key, execution)
    }

    /// Replaces `key` by the current row's key; false if it matches nothing.
    fn write_key<'e>(
        &self,
        sides: impl Iterator<Item = &'e Expression>,
        key: &mut Vec<u8>,
        execution: &mut Execution<'_>,
    ) -> Result<bool> {
        key.clear();
        for (number, side) in sides.enumerate() {
            let operand = side.operand(execution)?;
            let value = side.of(&operand, execution)?;
            if value.is_null() && self.null_safe.get(number) != Some(&true) {
                return Ok(false);
            }
            write_comparison_key(value, self.kinds[number], key);
        }
        Ok(true)
    }
}

impl Operator for HashJoin<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        if self.plan.kinds.is_empty() {
            let kinds = self.plan.keys.iter();
            let kinds = kinds.map(|(left, right)| comparison_kind(&left.ty, &right.ty, "="));
            self.plan.kinds = kinds.collect::<Result<_>>()?;
        }
        self.table.clear();
        self.parts = None;
        self.is_inside = false;
        self.build(execution)?;
        if self.parts.is_none() {
            self.left.open(execution)?;
        }
        Ok(())
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        loop {
            if !self.is_inside {
                if !self.next_left(execution)? {
                    return Ok(false);
                }
                execution.check_cancelled()?;
                self.look_up(execution)?;
                if self.has_matched && matches!(self.plan.join, JoinKind::Semi | JoinKind::Anti) {
                    self.is_inside = false;
                    continue;
                }
            }
            if self.next_match(execution)? {
                self.has_matched = true;
                self.part().map_or(Ok(()), Part::note_match)?;
                match self.plan.join {
                    JoinKind::Inner | JoinKind::Left => return Ok(true),
                    JoinKind::Semi => {
                        self.is_inside = false;
                        return Ok(true);
                    }
                    JoinKind::Anti => {
                        self.is_inside = false;
                        continue;
                    }
                }
            }
            self.is_inside = false;
            let may_match_yet = self.part().is_some_and(|part| !part.is_last_piece());
            let comes_alone = matches!(self.plan.join, JoinKind::Left | JoinKind::Anti);
            if !self.has_matched && !may_match_yet && comes_alone {
                fill_null(self.plan.right_slots, execution);
                return Ok(true);
            }
        }
    }
}
