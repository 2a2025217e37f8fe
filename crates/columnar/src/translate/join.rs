//! Joins.
//!
//! ```text
//!   NestedLoop, right side by itself  equalities as keys ─► hash join; without keys its loop
//!   NestedLoop, right side a lookup   left side large: all of the table in a hash join instead
//!                                     left side small: the session looks up, row by row
//! ```
//!
//! The smaller side is put in the hash table.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::Schema;
use datafusion_common::{JoinSide, JoinType, NullEquality};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, PartitionMode, SortMergeJoinExec,
};
use firn_api::rows::ReadMode;
use firn_sql::execute::vectorised::{RowSource, full_scan};
use firn_sql::expression::{CompareOperator, Expression, ExpressionKind, Slot};
use firn_sql::plan::visit::{self, SlotSet};
use firn_sql::plan::{Access, JoinKind, NodeKind, PlanNode, RangePlan, ScanPlan};
use firn_sql::types::{ComparisonKind, SqlType, comparison_kind};

use super::sort::sorted_by;
use super::{Relation, Translator, Way, kept, single};
use crate::expression::{Kernel, KernelExpression, column};
use crate::operator::{Output, Stage};
use crate::session_sources::Work;
use crate::stop_reason::{Result, declined};
use crate::value::{Field, Physical};

/// Rows that a scan passes in the time of one lookup.
const LOOKUP_ROWS: f64 = 60.0;
/// Rows that a scan passes in the time that a lookup takes for each row that it touches.
const ROW_ROWS: f64 = 20.0;
/// Most pairs of rows that a join without keys may compare.
const MOST_PAIRS: f64 = 1e8;

/// The two sides of a join.
pub(super) struct Sides<'p> {
    pub(super) left: &'p PlanNode,
    pub(super) right: &'p PlanNode,
    pub(super) join: JoinKind,
    pub(super) conditions: &'p [Expression],
    pub(super) right_slots: &'p [Slot],
}

/// A pair of values that must be equal, and the type of their comparison.
struct Key {
    left: Expression,
    right: Expression,
    kind: ComparisonKind,
}

/// The columns of a scan by ordinal, with their slots, and its look-up keys.
type LookupKeys = (Vec<(u16, Slot)>, Vec<Key>);

/// The form of a join without lookups.
struct Shape<'a> {
    join: JoinKind,
    keys: Vec<Key>,
    null_safe: bool,
    conditions: Vec<&'a Expression>,
    rows: f64,
}

impl<'p> Translator<'p, '_, '_> {
    pub(super) fn hash_join(
        &mut self,
        sides: &Sides<'p>,
        keys: &[(Expression, Expression)],
        null_safe: &[bool],
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let is_safe = null_safe.iter().any(|safe| *safe);
        if is_safe && !null_safe.iter().all(|safe| *safe) {
            return declined("keys of a join differ in how NULL matches");
        }
        let key = |(left, right): &(Expression, Expression)| {
            let kind = comparison_kind(&left.ty, &right.ty, "=")?;
            Ok(Key { left: left.clone(), right: right.clone(), kind })
        };
        let keys = keys.iter().map(key).collect::<Result<Vec<_>>>()?;
        let conditions = sides.conditions.iter().collect();
        let shape = Shape { join: sides.join, keys, null_safe: is_safe, conditions, rows };
        let below = reads_below(&shape, needed);
        let left = self.node(sides.left, &below)?;
        let right = self.unordered(sides.right, &below)?;
        self.join(left, right, shape, needed)
    }

    pub(super) fn nested_loop(
        &mut self,
        sides: &Sides<'p>,
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let mut left_fills = SlotSet::default();
        visit::add_fills(sides.left, &mut left_fills);
        let mut right_reads = SlotSet::default();
        visit::add_all_reads(sides.right, &mut right_reads);
        if !right_reads.is_disjoint(&left_fills) {
            return self.lookup(sides, &left_fills, &right_reads, rows, needed);
        }
        let (keys, conditions) = equalities(sides.conditions, &left_fills);
        let shape = Shape { join: sides.join, keys, null_safe: false, conditions, rows };
        let below = reads_below(&shape, needed);
        let left = self.node(sides.left, &below)?;
        let right = self.unordered(sides.right, &below)?;
        if shape.keys.is_empty() && left.rows * right.rows > MOST_PAIRS {
            return declined("a join without keys works on rows");
        }
        self.join(left, right, shape, needed)
    }

    /// A right side that is opened for each row of the left.
    fn lookup(
        &mut self,
        sides: &Sides<'p>,
        left_fills: &SlotSet,
        right_reads: &SlotSet,
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let mut below = visit::reads_of(sides.conditions);
        below.extend(needed);
        below.extend(right_reads);
        let (feeds, scans) = (self.feeds.len(), self.scans);
        let left = self.node(sides.left, &below)?;
        if let NodeKind::Scan(scan) = &sides.right.kind
            && left.rows * (LOOKUP_ROWS + ROW_ROWS * sides.right.cost)
                > scan.table.statistics.rows()
            && let Some((slots, keys)) = self.lookup_keys(scan)
        {
            return self
                .instead_of_lookups(sides, left, left_fills, scan, slots, keys, rows, needed);
        }
        if self.scans == scans {
            // Nothing on the left is over columns: the row executor runs all of it.
            self.feeds.truncate(feeds);
            return declined("a lookup for each row works on rows");
        }
        let mut fills = left_fills.clone();
        visit::add_fills(sides.right, &mut fills);
        let types = super::simple::slot_types(sides.right);
        let (mut fields, _) = kept(&left.fields, needed);
        if matches!(sides.join, JoinKind::Inner | JoinKind::Left) {
            let mut right = SlotSet::default();
            visit::add_fills(sides.right, &mut right);
            for slot in right.intersection(needed).iter() {
                let Some(ty) = types.get(&slot) else { return declined("a slot has no type") };
                fields.push(Field::new(slot, ty)?);
            }
        }
        let work = Work::Join {
            right: RowSource::new(sides.right, self.execution),
            join: sides.join,
            conditions: sides.conditions,
            right_slots: sides.right_slots,
        };
        Ok(self.session_work(left, fields, work, rows))
    }

    /// The columns of a lookup and the values that they equal; `None` if the lookup has other
    /// conditions too.
    fn lookup_keys(&mut self, scan: &ScanPlan) -> Option<LookupKeys> {
        if scan.mode != ReadMode::Consistent || scan.row_key.is_some() || scan.row_payload.is_some()
        {
            return None;
        }
        let (index, values): (_, &[Expression]) = match &scan.access {
            Access::Point { index, key } => (*index, key),
            Access::Ranges { index, ranges } => match &ranges[..] {
                // Branches of an OR with a common key give the same range several times.
                [range, others @ ..]
                    if others.iter().all(|other| is_same(range, other))
                        && range.lower.is_none()
                        && range.upper.is_none()
                        && !range.null_safe.contains(&true) =>
                {
                    (*index, &range.equal)
                }
                _ => return None,
            },
            _ => return None,
        };
        let model = &scan.table;
        let index = match index {
            Some(number) => model.index_numbered(number)?,
            None => model.primary_key()?,
        };
        let (mut slots, mut keys) = (scan.slots.clone(), Vec::new());
        for (part, value) in index.parts.iter().zip(values) {
            let column = model.by_ordinal(part.ordinal).filter(|_| part.prefix.is_none())?;
            let known = slots.iter().find(|(ordinal, _)| *ordinal == part.ordinal);
            let slot = match known {
                Some((_, slot)) => *slot,
                None => {
                    let slot = Slot(self.next_slot);
                    self.next_slot += 1;
                    slots.push((part.ordinal, slot));
                    slot
                }
            };
            let kind = key_kind(&column.ty, &value.ty)?;
            let right = Expression { kind: ExpressionKind::Slot(slot), ty: column.ty.clone() };
            keys.push(Key { left: value.clone(), right, kind });
        }
        Some((slots, keys))
    }

    /// The whole table instead of lookups in it.
    #[expect(clippy::too_many_arguments, reason = "what was taken apart is put together elsewhere")]
    fn instead_of_lookups(
        &mut self,
        sides: &Sides<'p>,
        left: Relation,
        left_fills: &SlotSet,
        scan: &'p ScanPlan,
        slots: Vec<(u16, Slot)>,
        keys: Vec<Key>,
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let is_own = |one: &&Expression| visit::reads(one).is_disjoint(left_fills);
        let (own, shared): (Vec<_>, Vec<_>) = scan.conditions.iter().partition(is_own);
        let (more, mut conditions) = equalities(sides.conditions, left_fills);
        let (from_scan, rest) = equalities_of(shared, left_fills);
        conditions.extend(rest);
        let keys: Vec<Key> = keys.into_iter().chain(more).chain(from_scan).collect();
        // A key that is one value for all rows is a condition on the table.
        let (fixed, keys): (Vec<Key>, Vec<Key>) =
            keys.into_iter().partition(|key| visit::reads(&key.left).is_empty());
        let fixed: Vec<Expression> = fixed.into_iter().map(equality).collect();
        let own: Vec<&Expression> = fixed.iter().chain(own).collect();
        let shape = Shape { join: sides.join, keys, null_safe: false, conditions, rows };
        let below = reads_below(&shape, needed);
        let ways = full_scan(scan, self.execution)?;
        let table_rows = scan.table.statistics.rows() * 0.4_f64.powi(own.len() as i32);
        let ordered = std::mem::replace(&mut self.ordered, false);
        let right = self.scan_ways(scan, ways, &slots, &own, false, table_rows, &below);
        self.ordered = ordered;
        let right = right?;
        self.join(left, right, shape, needed)
    }

    fn join(
        &mut self,
        left: Relation,
        right: Relation,
        shape: Shape<'_>,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let mut own = visit::reads_of(shape.conditions.iter().copied());
        own.extend(needed);
        let (mut left_keys, mut right_keys) = (Vec::new(), Vec::new());
        for key in &shape.keys {
            let one = self.compiler(&left.fields).compile(&key.left)?;
            let other = self.compiler(&right.fields).compile(&key.right)?;
            let (one, other) = self.key_outputs(one, other, key.kind)?;
            left_keys.push(one);
            right_keys.push(other);
        }
        let is_sorted = self.way == Way::Disk && !shape.keys.is_empty();
        if is_sorted && self.ordered {
            return declined("sorting would disturb an order that counts");
        }
        // The side that is looked up keeps its order. A join of sorted sides takes the left one
        // first.
        let left_is_smaller = is_sorted || !self.ordered && left.rows < right.rows;
        let left = side(left, left_keys, &own);
        let right = side(right, right_keys, &own);
        let filter = self.join_filter(&left, &right, &shape.conditions, left_is_smaller)?;
        let join = Join { left, right, left_is_smaller, is_sorted, shape: &shape, filter };
        join.build(needed)
    }

    /// A pair of keys as columns that are equal where the values are.
    fn key_outputs(
        &mut self,
        one: Kernel,
        other: Kernel,
        kind: ComparisonKind,
    ) -> Result<(Output, Output)> {
        if let ComparisonKind::Text(collation) = kind {
            if one.physical() != Physical::Bytes || other.physical() != Physical::Bytes {
                return declined("keys of a join are no texts");
            }
            return Ok((Output::Weights(one, collation), Output::Weights(other, collation)));
        }
        let common = crate::expression::common(kind, one.physical(), other.physical());
        let Some(common) = common else { return declined("keys of a join have no common layout") };
        let convert = |kernel: Kernel| match kernel.physical() == common {
            true => kernel,
            false => Kernel::Convert(Box::new(kernel), common),
        };
        let output = |kernel: Kernel| match common {
            Physical::Double => Output::Number(kernel),
            _ => Output::Value(kernel),
        };
        Ok((output(convert(one)), output(convert(other))))
    }

    /// The conditions of a join over the columns of both sides that they read.
    fn join_filter(
        &mut self,
        left: &Side,
        right: &Side,
        conditions: &[&Expression],
        left_is_build: bool,
    ) -> Result<Option<JoinFilter>> {
        if conditions.is_empty() {
            return Ok(None);
        }
        let reads = visit::reads_of(conditions.iter().copied());
        let (mut fields, mut indices, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for (side, is_build) in [(left, left_is_build), (right, !left_is_build)] {
            for (index, field) in side.fields.iter().enumerate() {
                if !reads.contains(field.slot) {
                    continue;
                }
                let name = format!("c{}", fields.len());
                columns.push(arrow::datatypes::Field::new(name, field.physical.data_type(), true));
                fields.push(field.clone());
                let side = if is_build { JoinSide::Left } else { JoinSide::Right };
                indices.push(ColumnIndex { index, side });
            }
        }
        let kernels = {
            let mut compiler = self.compiler(&fields);
            conditions.iter().map(|one| compiler.compile(one)).collect::<Result<Vec<_>>>()?
        };
        let expression = Arc::new(KernelExpression(Arc::new(Kernel::And(kernels))));
        Ok(Some(JoinFilter::new(expression, indices, Arc::new(Schema::new(columns)))))
    }
}

/// A side of a join: the fields that are read, then the keys.
struct Side {
    plan: Arc<dyn ExecutionPlan>,
    fields: Vec<Field>,
    keys: usize,
}

fn side(relation: Relation, keys: Vec<Output>, own: &SlotSet) -> Side {
    let (fields, mut outputs) = kept(&relation.fields, own);
    let count = keys.len();
    outputs.extend(keys);
    let plan = Arc::new(Stage::new(relation.plan, Vec::new(), outputs));
    Side { plan, fields, keys: count }
}

/// A join with translated sides.
struct Join<'a> {
    left: Side,
    right: Side,
    /// The left side is put in the hash table.
    left_is_smaller: bool,
    /// Both sides are sorted by their keys, and then merged.
    is_sorted: bool,
    shape: &'a Shape<'a>,
    filter: Option<JoinFilter>,
}

impl Join<'_> {
    fn build(self, needed: &SlotSet) -> Result<Relation> {
        let kind = match (self.shape.join, self.left_is_smaller) {
            (JoinKind::Inner, _) => JoinType::Inner,
            (JoinKind::Left, true) => JoinType::Left,
            (JoinKind::Left, false) => JoinType::Right,
            (JoinKind::Semi, true) => JoinType::LeftSemi,
            (JoinKind::Semi, false) => JoinType::RightSemi,
            (JoinKind::Anti, true) => JoinType::LeftAnti,
            (JoinKind::Anti, false) => JoinType::RightAnti,
        };
        let has_right = matches!(self.shape.join, JoinKind::Inner | JoinKind::Left);
        // Where each side's columns begin in the join's output.
        let (left_width, right_width) =
            (self.left.fields.len() + self.left.keys, self.right.fields.len() + self.right.keys);
        let (left_start, right_start) = match (has_right, self.left_is_smaller) {
            (false, _) => (0, 0),
            (true, true) => (0, left_width),
            (true, false) => (right_width, 0),
        };
        let (mut fields, mut projection) = (Vec::new(), Vec::new());
        let right_fields: &[Field] = if has_right { &self.right.fields } else { &[] };
        let places = [(left_start, &self.left.fields[..]), (right_start, right_fields)];
        for (start, side) in places {
            for (number, field) in side.iter().enumerate() {
                if needed.contains(field.slot) {
                    fields.push(field.clone());
                    projection.push(start + number);
                }
            }
        }
        let plan = self.plan(kind, projection, &fields)?;
        Ok(Relation { plan, fields, rows: self.shape.rows })
    }

    /// Plans the join; `projection` selects its columns, which are `fields`.
    fn plan(
        &self,
        kind: JoinType,
        projection: Vec<usize>,
        fields: &[Field],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (build, probe) = match self.left_is_smaller {
            true => (&self.left, &self.right),
            false => (&self.right, &self.left),
        };
        let (build_plan, probe_plan) = (single(Arc::clone(&build.plan)), Arc::clone(&probe.plan));
        let filter = self.filter.clone();
        if build.keys == 0 {
            let probe_plan = single(probe_plan);
            let join = NestedLoopJoinExec::try_new(
                build_plan,
                probe_plan,
                filter,
                &kind,
                Some(projection),
            );
            return Ok(Arc::new(join?));
        }
        let key = |number: usize| {
            (column(build.fields.len() + number), column(probe.fields.len() + number))
        };
        let keys = (0..build.keys).map(key).collect();
        let equality = match self.shape.null_safe {
            true => NullEquality::NullEqualsNull,
            false => NullEquality::NullEqualsNothing,
        };
        if self.is_sorted {
            let sorted = |side: &Side| {
                let keys = side.fields.len()..side.fields.len() + side.keys;
                sorted_by(single(Arc::clone(&side.plan)), keys)
            };
            let order = vec![SortOptions::default(); build.keys];
            let (left, right) = (sorted(build), sorted(probe));
            let join =
                SortMergeJoinExec::try_new(left, right, keys, filter, kind, order, equality)?;
            let wanted = projection.iter().zip(fields);
            let wanted = wanted.map(|(&number, field)| Kernel::Column(number, field.physical));
            let outputs = wanted.map(Output::Value).collect();
            return Ok(Arc::new(Stage::new(Arc::new(join), Vec::new(), outputs)));
        }
        let join = HashJoinExec::try_new(
            build_plan,
            probe_plan,
            keys,
            filter,
            &kind,
            Some(projection),
            PartitionMode::CollectLeft,
            equality,
            false,
        );
        Ok(Arc::new(join?))
    }
}

/// The slots that are requested from a join's sides.
fn reads_below(shape: &Shape<'_>, needed: &SlotSet) -> SlotSet {
    let mut below = visit::reads_of(shape.conditions.iter().copied());
    below.extend(needed);
    for key in &shape.keys {
        visit::add_reads(&key.left, &mut below);
        visit::add_reads(&key.right, &mut below);
    }
    below
}

/// The type in which a column and its lookup value compare, if the index compares in the same way.
fn key_kind(column: &SqlType, value: &SqlType) -> Option<ComparisonKind> {
    let kind = comparison_kind(column, value, "=").ok()?;
    let same = |side: &SqlType| kind.operand_type(side).kind == side.kind;
    (same(column) && same(value) && kind != ComparisonKind::Json).then_some(kind)
}

fn is_same(one: &RangePlan, other: &RangePlan) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

/// Conditions that equate a value of the left with one of the right, and the others.
fn equalities<'a>(
    conditions: &'a [Expression],
    left_fills: &SlotSet,
) -> (Vec<Key>, Vec<&'a Expression>) {
    equalities_of(conditions.iter().collect(), left_fills)
}

fn equalities_of<'a>(
    conditions: Vec<&'a Expression>,
    left_fills: &SlotSet,
) -> (Vec<Key>, Vec<&'a Expression>) {
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for condition in conditions {
        match key_of(condition, left_fills) {
            Some(key) => keys.push(key),
            None => others.push(condition),
        }
    }
    (keys, others)
}

fn key_of(condition: &Expression, left_fills: &SlotSet) -> Option<Key> {
    let ExpressionKind::Compare { operator: CompareOperator::Equal, kind, sides } = &condition.kind
    else {
        return None;
    };
    let is_row = |side: &Expression| matches!(side.kind, ExpressionKind::Row(_));
    if is_row(&sides[0]) || is_row(&sides[1]) || *kind == ComparisonKind::Json {
        return None;
    }
    let of_left = |side: &Expression| {
        let reads = visit::reads(side);
        !reads.is_empty() && reads.is_subset(left_fills)
    };
    let of_right = |side: &Expression| {
        let reads = visit::reads(side);
        !reads.is_empty() && reads.is_disjoint(left_fills)
    };
    let (left, right) = match (&sides[0], &sides[1]) {
        (one, other) if of_left(one) && of_right(other) => (one, other),
        (one, other) if of_left(other) && of_right(one) => (other, one),
        _ => return None,
    };
    Some(Key { left: left.clone(), right: right.clone(), kind: *kind })
}

/// A key as a condition.
fn equality(key: Key) -> Expression {
    let sides = Box::new([key.right, key.left]);
    let kind = ExpressionKind::Compare { operator: CompareOperator::Equal, kind: key.kind, sides };
    Expression { kind, ty: SqlType::boolean() }
}
