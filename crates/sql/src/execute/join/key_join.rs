//! A join by a unique key over a remote node: the rows on the right of many rows on the left are
//! looked up together.
//!
//! ```text
//!   left rows   1, then 4, 16, 64, 256 …  put aside with their keys
//!                   └──get_rows: one message──► the row on the right of each, or none
//!   each pair   left slots restored, right slots filled ──► conditions ──► out
//! ```
//!
//! Pairs come out in the order of a nested loop. Rows on the left are read ahead, so the join
//! applies only if that shows nowhere: they are not locked, and no expression that is evaluated
//! early has effects or reads what other expressions may set. An error on the left comes after
//! the pairs before it. At the last pair, the left slots are as the left side has left them, so it
//! goes on from there.

use std::collections::VecDeque;

use firn_api::rows::{FoundRow, IsolationLevel};

use crate::error::{Result, SqlError};
use crate::expression::visit::any;
use crate::expression::volatility::{has_subquery, is_row_dependent};
use crate::expression::{Expression, ExpressionKind, Slot};
use crate::logical::JoinKind;
use crate::plan::visit::{any_expression, for_each_input};
use crate::plan::{Access, NodeKind, PlanNode};
use crate::types::Datum;

use super::super::Execution;
use super::super::cursor::MOST_LOOKED_UP;
use super::super::memory::size_of_values;
use super::super::operator::{Input, Operator, all_true};
use super::super::scan::TableScan;
use super::filled::filled_slots;
use super::nested_loop::fill_null;

/// Each batch has this many times the rows of the one before: a reader that wants few rows causes
/// few look-ups.
const GROWTH: usize = 4;
/// Rows on the left of about this size make a batch, however few they are.
const MOST_BYTES: usize = 256 << 10;

/// A node that is a join by key.
pub(crate) struct KeyJoinPlan<'p> {
    left: &'p PlanNode,
    right: TableScan<'p>,
    join: JoinKind,
    conditions: &'p [Expression],
    right_slots: &'p [Slot],
}

pub(crate) struct KeyJoin<'p> {
    left: Input<'p>,
    left_slots: Vec<Slot>,
    plan: KeyJoinPlan<'p>,
    pairs: VecDeque<Pair>,
    batch_rows: usize,
    is_left_at_end: bool,
    /// The error of the left side behind the last pair.
    failed: Option<SqlError>,
}

/// A row on the left with the row on the right that has its key.
struct Pair {
    left: Box<[Datum]>,
    right: Option<FoundRow>,
}

/// Keys that are looked up together.
#[derive(Default)]
struct Batch {
    index: Option<usize>,
    keys: Vec<Vec<u8>>,
    /// The pair of each key.
    pairs: Vec<usize>,
    /// The left rows that were read.
    size_bytes: usize,
}

impl<'p> KeyJoinPlan<'p> {
    /// The join of a node, if it is one by a unique key and its left side may be read ahead.
    pub(crate) fn of(node: &'p PlanNode, execution: &Execution<'_>) -> Option<KeyJoinPlan<'p>> {
        let NodeKind::NestedLoop { left, right, join, conditions, right_slots } = &node.kind else {
            return None;
        };
        let NodeKind::Scan(scan) = &right.kind else { return None };
        let Access::Point { key, .. } = &scan.access else { return None };
        let is_early = |one: &Expression| {
            let reads_variable =
                |one: &Expression| matches!(one.kind, ExpressionKind::UserVariable(_));
            !is_row_dependent(one) && !has_subquery(one) && !any(one, &reads_variable)
        };
        let isolation = execution.data.transaction.isolation();
        let may_apply = !scan.mode.locks(isolation)
            && !any_locks(left, isolation)
            && key.iter().all(is_early)
            && !any_expression(left, &|one| !is_early(one));
        let right = TableScan::new(scan);
        may_apply.then_some(KeyJoinPlan { left, right, join: *join, conditions, right_slots })
    }

    pub(crate) fn left(&self) -> &'p PlanNode {
        self.left
    }
}

/// Whether rows are locked as they are read.
fn any_locks(node: &PlanNode, isolation: IsolationLevel) -> bool {
    let mut found = matches!(&node.kind, NodeKind::Scan(scan) if scan.mode.locks(isolation));
    for_each_input(node, &mut |input| found = found || any_locks(input, isolation));
    found
}

impl<'p> KeyJoin<'p> {
    pub(crate) fn new(plan: KeyJoinPlan<'p>, left: Input<'p>) -> KeyJoin<'p> {
        KeyJoin {
            left,
            left_slots: filled_slots(plan.left),
            plan,
            pairs: VecDeque::new(),
            batch_rows: 1,
            is_left_at_end: true,
            failed: None,
        }
    }

    /// Reads rows of the left side and looks up the right row of each.
    fn read_batch(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let mut batch = Batch::default();
        while self.pairs.len() < self.batch_rows && batch.size_bytes < MOST_BYTES {
            match self.read_left(&mut batch, execution) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        self.batch_rows = (self.batch_rows * GROWTH).min(MOST_LOOKED_UP);
        let Batch { index, keys, pairs, .. } = batch;
        if keys.is_empty() {
            return Ok(());
        }
        let mut found = Vec::with_capacity(keys.len());
        self.plan.right.cursor().look_up_all(index, &keys, &mut found, execution)?;
        for (number, row) in pairs.into_iter().zip(found) {
            self.pairs[number].right = row;
        }
        Ok(())
    }

    /// Puts the next row of the left side aside, with its key; false if there is none.
    fn read_left(&mut self, batch: &mut Batch, execution: &mut Execution<'_>) -> Result<bool> {
        execution.check_cancelled()?;
        if !self.left.next(execution)? {
            self.is_left_at_end = true;
            return Ok(false);
        }
        if let Some((index, key)) = self.plan.right.cursor().point_key(execution)? {
            batch.index = index;
            batch.keys.push(key);
            batch.pairs.push(self.pairs.len());
        }
        let left = execution.frame.save(&self.left_slots);
        batch.size_bytes += size_of_values(&left);
        self.pairs.push_back(Pair { left, right: None });
        Ok(true)
    }

    /// Fills the slots with a pair; false if it does not match.
    fn show(&mut self, pair: Pair, execution: &mut Execution<'_>) -> Result<bool> {
        execution.frame.restore(&self.left_slots, pair.left);
        match pair.right {
            Some(row) => {
                Ok(self.plan.right.show(row, execution)?
                    && all_true(self.plan.conditions, execution)?)
            }
            None => Ok(false),
        }
    }
}

impl Operator for KeyJoin<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.pairs.clear();
        self.batch_rows = 1;
        self.is_left_at_end = false;
        self.failed = None;
        self.left.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        loop {
            let Some(pair) = self.pairs.pop_front() else {
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
                if self.is_left_at_end {
                    return Ok(false);
                }
                self.read_batch(execution)?;
                continue;
            };
            execution.check_cancelled()?;
            let matches = self.show(pair, execution)?;
            match (self.plan.join, matches) {
                (JoinKind::Inner | JoinKind::Left | JoinKind::Semi, true) => return Ok(true),
                (JoinKind::Left | JoinKind::Anti, false) => {
                    fill_null(self.plan.right_slots, execution);
                    return Ok(true);
                }
                (JoinKind::Inner | JoinKind::Semi, false) | (JoinKind::Anti, true) => {}
            }
        }
    }
}
