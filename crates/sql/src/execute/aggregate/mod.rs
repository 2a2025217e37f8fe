//! Groups and their aggregates.
//!
//! ```text
//!   input row ──► [group values │ arguments of each call] ──► accumulators of its group
//!     sorted      one group at a time
//!     hashed      all groups at once; rows of groups without memory go to disk, split by their
//!                 keys, and come back part by part
//!     rollup      rows sorted by their groups; each counts for its group and for all groups into
//!                 which it is rolled up, which come out when the next group begins
//! ```

mod accumulator;
mod at_node;
mod concatenate;
mod number;
mod over_scan;

use crate::execute::Evaluate;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::expression::{AggregateCall, Expression, Slot};
use crate::plan::{NodeKind, PlanNode};
use crate::types::{Datum, SqlType, write_sort_key};

use super::Execution;
use super::background_free::Bulk;
use super::memory::{Reservation, size_of_values};
use super::operator::{Input, Operator};
use super::partition::{PartitionReader, Partitions};
use super::sort::{Sorted, Sorter};

pub use accumulator::Accumulator;
pub(crate) use at_node::AggregateAtNode;
pub(crate) use over_scan::AggregateOverScan;

/// This many groups are kept whatever memory there is: for the single group of a query without
/// `GROUP BY`, and so that each pass over a part on disk makes it smaller.
const LEAST_GROUPS: usize = 4;

/// A group in progress.
struct Group {
    values: Vec<Datum>,
    /// How many of the values are not rolled up.
    depth: usize,
    accumulators: Vec<Accumulator>,
}

/// Groups rows.
pub(crate) struct Aggregate<'p> {
    input: Input<'p>,
    groups: &'p [(Slot, Expression)],
    calls: &'p [AggregateCall],
    sorted: bool,
    rollup: Option<&'p [Slot]>,
    /// Complete groups, the next one last.
    ready: Bulk<Vec<Group>>,
    state: State,
    held: Option<Reservation>,
    key: Vec<u8>,
    row: Vec<Datum>,
    /// The input's own values of the group slots, when a group that came out has replaced them
    /// while the input is at a later row.
    displaced: Vec<Datum>,
}

enum State {
    /// Nothing has been read.
    Opened,
    /// Rows come in order; this is the current group.
    Sorted {
        key: Vec<u8>,
        group: Group,
    },
    /// Parts on disk that are still to be processed.
    Parts(Vec<PartitionReader>),
    /// The rows of a rollup, in order.
    Rollup(Rollup),
    Ended,
}

/// Rows in the order of their groups, and the groups to which the last row belongs: first the group
/// of all rows, then those of more and more group values.
struct Rollup {
    rows: Sorted,
    open: Vec<OpenGroup>,
    key: Vec<u8>,
    /// Where each group value ends in the key.
    ends: Vec<usize>,
    /// The total has begun. There is a total even without rows.
    has_total: bool,
}

/// A group, and the memory it holds.
struct OpenGroup {
    group: Group,
    held: Option<Reservation>,
}

impl Rollup {
    /// How many of the first group values equal those of the last row.
    fn common_depth(&self, key: &[u8], ends: &[usize]) -> usize {
        let same = |(one, other): &(&usize, &usize)| key.get(..**one) == self.key.get(..**other);
        ends.iter().zip(&self.ends).take_while(same).count()
    }

    /// Begins the groups that are not open.
    fn open_groups(&mut self, values: usize, new: impl Fn() -> Group) {
        self.has_total = true;
        for depth in self.open.len()..=values {
            let mut group = new();
            group.depth = depth;
            group.values[depth..].fill(Datum::Null);
            self.open.push(OpenGroup { group, held: None });
        }
    }
}

impl<'p> Aggregate<'p> {
    /// # Panics
    /// If `node` is no aggregate.
    pub(crate) fn new(input: Input<'p>, node: &'p PlanNode) -> Aggregate<'p> {
        let NodeKind::Aggregate { groups, aggregates, sorted, rollup, .. } = &node.kind else {
            panic!("an aggregate is built of another node")
        };
        Aggregate {
            input,
            groups,
            calls: aggregates,
            sorted: *sorted && !groups.is_empty(),
            rollup: rollup.as_deref(),
            ready: Bulk::default(),
            state: State::Opened,
            held: None,
            key: Vec::new(),
            row: Vec::new(),
            displaced: Vec::new(),
        }
    }

    /// Evaluates the current row: group values, then arguments.
    fn evaluate_row(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.row.clear();
        for (_, expression) in self.groups {
            self.row.push(expression.evaluate(execution)?);
        }
        for call in self.calls {
            for argument in &call.arguments {
                self.row.push(argument.evaluate(execution)?);
            }
            for key in &call.order {
                self.row.push(key.expression.evaluate(execution)?);
            }
        }
        Ok(())
    }

    fn write_key(&mut self) {
        self.key.clear();
        for (value, ty) in self.row.iter().zip(types_of(self.groups)) {
            write_sort_key(value, ty, false, &mut self.key);
        }
    }

    fn new_group(&self) -> Group {
        Group {
            values: self.row[..self.groups.len()].to_vec(),
            depth: self.groups.len(),
            accumulators: self.calls.iter().map(Accumulator::new).collect(),
        }
    }

    /// Counts the current row in a group.
    fn count(&mut self, group: &mut Group, execution: &Execution<'_>) -> Result<()> {
        let held = self.held.get_or_insert_with(|| execution.memory().reservation());
        let mut rest = &self.row[self.groups.len()..];
        for (call, accumulator) in self.calls.iter().zip(&mut group.accumulators) {
            let (arguments, after) = rest.split_at(call.arguments.len());
            let (order, after) = after.split_at(call.order.len());
            accumulator.add(call, arguments, order, held, execution)?;
            rest = after;
        }
        Ok(())
    }

    /// Reads rows up to the end of a group.
    fn next_sorted(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        for ((slot, _), value) in self.groups.iter().zip(self.displaced.drain(..)) {
            execution.frame.set(*slot, value);
        }
        loop {
            let more = self.input.next(execution)?;
            execution.check_cancelled()?;
            if more {
                self.evaluate_row(execution)?;
                self.write_key();
            }
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Sorted { key, mut group } if more && key == self.key => {
                    self.count(&mut group, execution)?;
                    self.state = State::Sorted { key, group };
                }
                before => {
                    if more {
                        self.held = None;
                        let mut group = self.new_group();
                        self.count(&mut group, execution)?;
                        self.state = State::Sorted { key: self.key.clone(), group };
                    }
                    if let State::Sorted { group, .. } = before {
                        self.ready.push(group);
                        return Ok(());
                    }
                    if !more {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Groups all rows of the input, or of a part on disk.
    fn hash(
        &mut self,
        mut part: Option<PartitionReader>,
        execution: &mut Execution<'_>,
    ) -> Result<Vec<PartitionReader>> {
        let mut numbers: Bulk<FxHashMap<Box<[u8]>, usize>> = Bulk::default();
        let mut groups: Bulk<Vec<Group>> = Bulk::default();
        let mut overflow: Option<Partitions> = None;
        self.held = Some(execution.memory().reservation());
        while self.next_row(&mut part, execution)? {
            execution.check_cancelled()?;
            self.write_key();
            if let Some(number) = numbers.get(&self.key[..]) {
                self.count(&mut groups[*number], execution)?;
                continue;
            }
            let size_bytes =
                self.key.len() + size_of_values(&self.row) + 64 + 64 * self.calls.len();
            let is_kept = self.may_keep(size_bytes, execution) || groups.len() < LEAST_GROUPS;
            if overflow.is_none() && is_kept {
                numbers.insert(self.key.as_slice().into(), groups.len());
                let mut group = self.new_group();
                self.count(&mut group, execution)?;
                groups.push(group);
                continue;
            }
            let level = part.as_ref().map_or(0, |part| part.level() + 1);
            let overflow = match &mut overflow {
                Some(overflow) => overflow,
                None => overflow.insert(Partitions::new(level, execution)?),
            };
            overflow.add(&self.key, &self.row, execution)?;
        }
        groups.reverse();
        self.ready = groups;
        overflow.map_or(Ok(Vec::new()), Partitions::into_readers)
    }

    /// Takes memory for another group: up to a half of the statement's, because the groups' content
    /// may grow.
    fn may_keep(&mut self, size_bytes: usize, execution: &Execution<'_>) -> bool {
        let memory = execution.memory();
        let is_half_free = memory.used_bytes() <= memory.limit_bytes() / 2;
        is_half_free && self.held.as_mut().is_some_and(|held| held.grow(size_bytes))
    }

    /// Puts the next row's values in `self.row`.
    fn next_row(
        &mut self,
        part: &mut Option<PartitionReader>,
        execution: &mut Execution<'_>,
    ) -> Result<bool> {
        if let Some(part) = part {
            return part.next(&mut self.row);
        }
        if !self.input.next(execution)? {
            return Ok(false);
        }
        self.evaluate_row(execution)?;
        Ok(true)
    }

    /// Puts all rows in order.
    fn begin_rollup(&mut self, execution: &mut Execution<'_>) -> Result<Rollup> {
        let mut sorter = Sorter::new(None, execution);
        while self.next_row(&mut None, execution)? {
            execution.check_cancelled()?;
            self.write_key();
            sorter.add(&self.key, execution, || self.row.as_slice().into())?;
        }
        Ok(Rollup {
            rows: sorter.finish()?,
            open: Vec::new(),
            key: Vec::new(),
            ends: Vec::new(),
            has_total: false,
        })
    }

    /// Reads rows up to the end of a group; false if there are no more.
    fn next_rolled_up(
        &mut self,
        rollup: &mut Rollup,
        execution: &mut Execution<'_>,
    ) -> Result<bool> {
        while let Some(row) = rollup.rows.next()? {
            execution.check_cancelled()?;
            self.row = row.into();
            let ends = self.write_key_ends();
            let common = rollup.common_depth(&self.key, &ends);
            let is_new = common < self.groups.len() || rollup.open.is_empty();
            if is_new {
                // The last one comes out first.
                let complete = rollup.open.drain((common + 1).min(rollup.open.len())..);
                *self.ready = complete.map(|open| open.group).collect();
                rollup.open_groups(self.groups.len(), || self.new_group());
                std::mem::swap(&mut rollup.key, &mut self.key);
                rollup.ends = ends;
            }
            for OpenGroup { group, held } in &mut rollup.open {
                std::mem::swap(&mut self.held, held);
                let counted = self.count(group, execution);
                std::mem::swap(&mut self.held, held);
                counted?;
            }
            if !self.ready.is_empty() {
                return Ok(true);
            }
        }
        if !rollup.has_total {
            self.row.clear();
            self.row.resize(self.groups.len(), Datum::Null);
            rollup.open_groups(0, || self.new_group());
        }
        *self.ready = rollup.open.drain(..).map(|open| open.group).collect();
        Ok(!self.ready.is_empty())
    }

    /// The current row's key, and where each group value ends in it.
    fn write_key_ends(&mut self) -> Vec<usize> {
        self.key.clear();
        let mut ends = Vec::with_capacity(self.groups.len());
        for (value, ty) in self.row.iter().zip(types_of(self.groups)) {
            write_sort_key(value, ty, false, &mut self.key);
            ends.push(self.key.len());
        }
        ends
    }

    /// Continues until a group is ready; false if there is none left.
    fn advance(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        while self.ready.is_empty() {
            match &mut self.state {
                State::Opened if self.rollup.is_some() => {
                    let rollup = self.begin_rollup(execution)?;
                    self.state = State::Rollup(rollup);
                }
                State::Rollup(_) => {
                    let State::Rollup(mut rollup) =
                        std::mem::replace(&mut self.state, State::Ended)
                    else {
                        continue;
                    };
                    if self.next_rolled_up(&mut rollup, execution)? {
                        self.state = State::Rollup(rollup);
                    }
                }
                State::Opened if !self.sorted => {
                    let parts = self.hash(None, execution)?;
                    self.state = State::Parts(parts);
                    self.add_empty_group();
                }
                State::Opened | State::Sorted { .. } => self.next_sorted(execution)?,
                State::Parts(parts) => {
                    let Some(part) = parts.pop() else {
                        self.state = State::Ended;
                        continue;
                    };
                    let mut parts = std::mem::take(parts);
                    parts.extend(self.hash(Some(part), execution)?);
                    self.state = State::Parts(parts);
                }
                State::Ended => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Without `GROUP BY` there is one group, with or without rows.
    fn add_empty_group(&mut self) {
        if self.groups.is_empty() && self.ready.is_empty() {
            self.row.clear();
            let group = self.new_group();
            self.ready.push(group);
        }
    }
}

fn types_of(groups: &[(Slot, Expression)]) -> impl Iterator<Item = &SqlType> {
    groups.iter().map(|(_, expression)| &expression.ty)
}

impl Operator for Aggregate<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.ready.discard();
        self.state = State::Opened;
        self.held = None;
        self.displaced.clear();
        self.input.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if !self.advance(execution)? {
            return Ok(false);
        }
        let Some(group) = self.ready.pop() else { return Ok(false) };
        if self.sorted {
            self.displaced.clear();
            let present = self.groups.iter().map(|(slot, _)| execution.frame.get(*slot).clone());
            self.displaced.extend(present);
        }
        for ((slot, _), value) in self.groups.iter().zip(group.values) {
            execution.frame.set(*slot, value);
        }
        for (call, accumulator) in self.calls.iter().zip(group.accumulators) {
            let value = accumulator.finish(call, execution.context)?;
            execution.frame.set(call.output, value);
        }
        for (number, slot) in self.rollup.iter().copied().flatten().enumerate() {
            execution.frame.set(*slot, Datum::Int(i64::from(number >= group.depth)));
        }
        Ok(true)
    }
}
