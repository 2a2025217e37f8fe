//! Groups and their aggregates, computed by a node for which each call is a message.
//!
//! ```text
//!   SELECT d, COUNT(*), SUM(k + 1) FROM t WHERE v < 9 GROUP BY d
//!     one call ──► 'a' │ 1,204 rows │ sum 7,331      a group may come again: 'a' │ 7 rows │ sum 90
//!                  'b' │ 3 rows     │ sum 12         both are added here
//! ```
//!
//! Used for `COUNT`, `SUM`, `AVG`, `MIN` and `MAX` of integers and decimals over one table, without
//! `DISTINCT`, if the node can evaluate all of the conditions, groups and arguments. If it cannot,
//! or if one of the evaluations raises a warning or an error, the rows are read.

use firn_api::rows::{GroupSummary, Grouping, NumberSummary, Summand};
use firn_format::value::Value;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::{Result, damaged};
use crate::expression::{AggregateCall, Expression, ExpressionKind, IsTest, Slot};
use crate::functions::AggregateFunction;
use crate::plan::{NodeKind, PlanNode, ScanPlan};
use crate::types::{Datum, Decimal, SqlType, TimeZone, TypeKind};

use super::super::Execution;
use super::super::cursor::Cursor;
use super::super::memory::{Reservation, size_of_values};
use super::super::operator::{Input, Operator};
use super::super::row_key::write_row_key;
use super::Accumulator;
use super::over_scan::column;

/// A node returns its groups when it has this many, which are a message of some 100 KB.
const MOST_GROUPS_AT_NODE: u64 = 2048;

/// The groups of a scan, computed by the node.
pub(crate) struct AggregateAtNode<'p> {
    cursor: Cursor<'p>,
    groups: &'p [(Slot, Expression)],
    /// The calls, and the place of each one's summand; `None` for `COUNT(*)`.
    calls: SmallVec<[(&'p AggregateCall, Option<usize>); 4]>,
    summands: Vec<Argument<'p>>,
    /// The groups that are still to be returned, the next one last.
    ready: Vec<Group>,
    /// Their memory.
    held: Option<Reservation>,
}

/// A summand before it is sent.
enum Argument<'p> {
    /// A column of integers.
    Column(u16),
    /// An integer or a decimal.
    Number(&'p Expression),
    /// Anything, of which only is asked whether it is NULL: 1 if it is not.
    IsThere(Box<Expression>),
}

/// A group, and what its rows come to so far.
struct Group {
    values: Vec<Datum>,
    rows: u64,
    numbers: Vec<NumberSummary>,
}

impl<'p> AggregateAtNode<'p> {
    /// The aggregate of a node, if a database node may be able to compute it.
    pub(crate) fn of(node: &'p PlanNode) -> Option<AggregateAtNode<'p>> {
        let NodeKind::Aggregate { input, groups, aggregates, rollup: None, .. } = &node.kind else {
            return None;
        };
        let NodeKind::Scan(scan) = &input.kind else { return None };
        if scan.row_key.is_some() || scan.row_payload.is_some() {
            return None;
        }
        let (mut summands, mut calls) = (Vec::new(), SmallVec::new());
        for call in aggregates {
            let argument = argument(call, scan)?;
            let place = argument.is_some().then_some(summands.len());
            summands.extend(argument);
            calls.push((call, place));
        }
        let cursor = Cursor::new(scan);
        let ready = Vec::new();
        Some(AggregateAtNode { cursor, groups, calls, summands, ready, held: None })
    }

    /// The same, with a fallback over the rows in case the node cannot do it.
    pub(crate) fn or(self, by_rows: Input<'p>) -> AtNodeOrByRows<'p> {
        AtNodeOrByRows { at_node: self, by_rows, is_by_rows: false }
    }

    /// Has the node compute all groups; false if it cannot.
    fn gather(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        self.ready.clear();
        self.held = None;
        self.cursor.open(execution)?;
        if !self.cursor.may_summarise() {
            return Ok(false);
        }
        let Some(grouping) = self.grouping(execution) else { return Ok(false) };
        let mut merged = Merged::new(self.groups, execution);
        let is_done = self.cursor.summarise(&grouping, execution, |group| merged.add(&group))?;
        if is_done {
            merged.groups.reverse();
            (self.ready, self.held) = (merged.groups, Some(merged.held));
            if self.groups.is_empty() && self.ready.is_empty() {
                self.ready.push(Group::of_nothing(self.summands.len()));
            }
        }
        Ok(is_done)
    }

    /// What the node is asked for; `None` if it has no form in a message.
    fn grouping(&self, execution: &mut Execution<'_>) -> Option<Grouping> {
        let (mut groups, mut summands) = (Vec::new(), Vec::new());
        for (_, expression) in self.groups {
            groups.push(self.cursor.sent(expression, execution)?);
        }
        for argument in &self.summands {
            summands.push(match argument {
                Argument::Column(ordinal) => Summand::Column(*ordinal),
                Argument::Number(expression) => {
                    Summand::Expression(self.cursor.sent(expression, execution)?)
                }
                Argument::IsThere(expression) => {
                    Summand::Expression(self.cursor.sent(expression, execution)?)
                }
            });
        }
        Some(Grouping { groups, summands, most_groups: MOST_GROUPS_AT_NODE })
    }

    /// Puts a group in its slots.
    fn set_outputs(&self, group: Group, execution: &mut Execution<'_>) -> Result<()> {
        for (call, place) in &self.calls {
            let mut accumulator = Accumulator::new(call);
            match place.map(|place| (&self.summands[place], group.numbers[place])) {
                None => accumulator.add_rows(group.rows),
                Some((Argument::IsThere(_), number)) => {
                    accumulator.add_rows(u64::try_from(number.sum).unwrap_or(0));
                }
                Some((Argument::Column(_) | Argument::Number(_), number)) => {
                    let ty = &call.arguments[0].ty;
                    let extremes = number
                        .extremes
                        .map(|(least, greatest)| (number_of(least, ty), number_of(greatest, ty)));
                    let sum = (number.sum, ty.kind.scale());
                    accumulator.take_summary(number.values, sum, extremes)?;
                }
            }
            let value = accumulator.finish(call, execution.context)?;
            execution.frame.set(call.output, value);
        }
        for ((slot, _), value) in self.groups.iter().zip(group.values) {
            execution.frame.set(*slot, value);
        }
        Ok(())
    }
}

/// What a call sums up, `None` for `COUNT(*)`. The outer `None`: a node does not compute it.
fn argument<'p>(call: &'p AggregateCall, scan: &ScanPlan) -> Option<Option<Argument<'p>>> {
    use AggregateFunction as F;
    if call.distinct {
        return None;
    }
    match (call.function, &call.arguments[..]) {
        (F::CountRows, []) => return Some(None),
        (F::Count | F::Sum | F::Average | F::Min | F::Max, [_]) => {}
        _ => return None,
    }
    if let Some(Some(column)) = column(call, scan)
        && column.ty.kind.is_integer()
    {
        return Some(Some(Argument::Column(column.ordinal)));
    }
    let argument = &call.arguments[0];
    match argument.ty.kind {
        _ if call.function == F::Count => {
            Some(Some(Argument::IsThere(Box::new(is_there(argument)))))
        }
        TypeKind::Integer { .. } | TypeKind::Decimal { .. } => {
            Some(Some(Argument::Number(argument)))
        }
        _ => None,
    }
}

/// `argument IS NOT NULL`
fn is_there(argument: &Expression) -> Expression {
    let operand = Box::new(argument.clone());
    let kind = ExpressionKind::Is { operand, test: IsTest::Null, negated: true };
    Expression { kind, ty: SqlType::boolean().not_null() }
}

/// A number in units of its type's last digit, as a value of that type.
fn number_of(number: i128, ty: &SqlType) -> Datum {
    match ty.kind {
        TypeKind::Decimal { scale, .. } => Datum::Decimal(Decimal::from_unscaled(number, scale)),
        // The node made it of a value of this type.
        ref kind if kind.is_unsigned() => Datum::UInt(number as u64),
        _ => Datum::Int(number as i64),
    }
}

impl Group {
    fn of_nothing(numbers: usize) -> Group {
        let numbers = vec![NumberSummary::default(); numbers];
        Group { values: Vec::new(), rows: 0, numbers }
    }
}

/// Groups that a node has computed, each one once.
struct Merged<'p> {
    types: Vec<&'p SqlType>,
    places: FxHashMap<Box<[u8]>, usize>,
    groups: Vec<Group>,
    held: Reservation,
    key: Vec<u8>,
}

impl<'p> Merged<'p> {
    fn new(groups: &'p [(Slot, Expression)], execution: &Execution<'_>) -> Merged<'p> {
        Merged {
            types: groups.iter().map(|(_, expression)| &expression.ty).collect(),
            places: FxHashMap::default(),
            groups: Vec::new(),
            held: execution.memory().reservation(),
            key: Vec::new(),
        }
    }

    /// Adds a group; false if there is no memory for it, or if a sum is too large.
    fn add(&mut self, group: &GroupSummary) -> Result<bool> {
        let value = |(stored, ty): (&Value, &&SqlType)| {
            Datum::from_value_ref(stored.as_ref(), ty, &TimeZone::utc()).map_err(damaged)
        };
        let values = group.values.iter().zip(&self.types).map(value);
        let values: Vec<Datum> = values.collect::<Result<_>>()?;
        self.key.clear();
        write_row_key(&values, self.types.iter().copied(), &mut self.key);
        if let Some(place) = self.places.get(&self.key[..]) {
            let known = &mut self.groups[*place];
            known.rows += group.rows;
            for (own, other) in known.numbers.iter_mut().zip(&group.numbers) {
                let Some(sum) = own.plus(*other) else { return Ok(false) };
                *own = sum;
            }
            return Ok(true);
        }
        let size_bytes = self.key.len() + size_of_values(&values) + 64 + 64 * group.numbers.len();
        if !self.held.grow(size_bytes) {
            return Ok(false);
        }
        self.places.insert(self.key.as_slice().into(), self.groups.len());
        self.groups.push(Group { values, rows: group.rows, numbers: group.numbers.clone() });
        Ok(true)
    }
}

/// An aggregate computed by the node, or over the rows if the node cannot do it.
pub(crate) struct AtNodeOrByRows<'p> {
    at_node: AggregateAtNode<'p>,
    by_rows: Input<'p>,
    is_by_rows: bool,
}

impl Operator for AtNodeOrByRows<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let before = execution.context.warning_count();
        self.is_by_rows = !self.at_node.gather(execution)?;
        if !self.is_by_rows {
            return Ok(());
        }
        // Both cursors evaluate the bounds of their ranges, and warn alike.
        execution.context.forget_conditions_after(before);
        self.by_rows.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if self.is_by_rows {
            return self.by_rows.next(execution);
        }
        let Some(group) = self.at_node.ready.pop() else { return Ok(false) };
        self.at_node.set_outputs(group, execution)?;
        Ok(true)
    }
}
