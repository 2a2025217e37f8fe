//! Scans.

use std::sync::Arc;

use firn_api::rows::{Direction, ReadMode};
use firn_format::key::KeyRange;
use firn_sql::execute::vectorised::{ScanWays, scan_ways};
use firn_sql::expression::{Expression, Slot};
use firn_sql::plan::ScanPlan;
use firn_sql::plan::visit::{self, SlotSet};

use firn_sql::types::TypeKind;

use super::{Relation, Translator};
use crate::cache::{CacheUse, ColumnForm};
use crate::scan::split;
use crate::scan::{ScanColumn, ScanPart, ScanShape, TableScan};
use crate::stop_reason::{Result, declined};
use crate::value::Field;

/// Rows of a table below which a scan is not split.
const SPLIT_ROWS: f64 = 50_000.0;

/// An index and a range of it.
type Way = (Option<usize>, KeyRange);

impl<'p> Translator<'p, '_, '_> {
    pub(super) fn scan(
        &mut self,
        plan: &'p ScanPlan,
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        if plan.mode != ReadMode::Consistent || plan.row_key.is_some() || plan.row_payload.is_some()
        {
            return declined("a locking read works on rows");
        }
        let Some(ways) = scan_ways(plan, self.execution)? else {
            return declined("single rows are looked up one by one");
        };
        self.answer_subqueries(&plan.conditions)?;
        let slots: Vec<(u16, Slot)> = plan.slots.clone();
        let conditions: Vec<&Expression> = plan.conditions.iter().collect();
        self.scan_ways(plan, ways, &slots, &conditions, plan.covered, rows, needed)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a plan's scan and a join's differ in all of these"
    )]
    /// A scan of these ranges, which fills these slots and returns the needed ones.
    pub(super) fn scan_ways(
        &mut self,
        plan: &ScanPlan,
        ways: ScanWays,
        slots: &[(u16, Slot)],
        conditions: &[&Expression],
        covered: bool,
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let tested = visit::reads_of(conditions.iter().copied());
        // An index returns its columns in the order in which they are requested, which the shape
        // keeps.
        let is_tested = |slot: &(u16, Slot)| tested.contains(slot.1);
        let (first, rest): (Vec<_>, Vec<_>) = slots.iter().copied().partition(is_tested);
        let rest = rest.into_iter().filter(|(_, slot)| needed.contains(*slot));
        let (tested_count, mut columns) = (first.len(), Vec::new());
        for (ordinal, slot) in first.into_iter().chain(rest) {
            let Some(column) = plan.table.by_ordinal(ordinal) else {
                return declined("the table has no such column");
            };
            columns.push(ScanColumn { ordinal, field: Field::new(slot, &column.ty)? });
        }
        let all: Vec<Field> = columns.iter().map(|column| column.field.clone()).collect();
        let conditions = {
            let mut compiler = self.compiler(&all);
            conditions.iter().map(|one| compiler.compile(one)).collect::<Result<Vec<_>>>()?
        };
        let is_output = |&number: &usize| needed.contains(all[number].slot);
        let output: Vec<usize> = (0..all.len()).filter(is_output).collect();
        let fields = output.iter().map(|&number| all[number].clone()).collect();
        let shape = ScanShape {
            direction: plan.direction,
            covered,
            tested: if covered { columns.len() } else { tested_count },
            columns,
            conditions,
            output,
            time_zone: self.execution.context.time_zone.clone(),
            cache: None,
        };
        let cache = self.cache_use(&shape, &ways, covered);
        let shape = ScanShape { cache, ..shape };
        let parted = self.split(plan, &ways);
        let (table, mut parts) = (ways.table, Vec::new());
        for ranges in parted {
            let Some(reader) = self.execution.data.transaction.reader() else {
                return declined("the node lends no readers");
            };
            let reader = self.scope.reader(reader);
            parts.push(ScanPart { reader, table: Arc::clone(&table), ranges });
        }
        self.scans += 1;
        Ok(Relation { plan: Arc::new(TableScan::new(shape, parts)), fields, rows })
    }

    /// The cache for the scan's columns.
    fn cache_use(&self, shape: &ScanShape, ways: &ScanWays, covered: bool) -> Option<CacheUse> {
        let cache = self.resources.column_cache.as_ref()?;
        if !self.execution.limits.uses_column_cache || shape.direction != Direction::Forward {
            return None;
        }
        let definition = ways.table.definition();
        let index = if covered { ways.ranges.first()?.0 } else { None };
        let form = |column: &ScanColumn| {
            let ty = column.field.ty.clone();
            let is_of_zone = matches!(ty.kind, TypeKind::Timestamp { .. });
            ColumnForm {
                table: definition.table_id,
                index,
                ordinal: column.ordinal,
                ty,
                row_version: definition.row_version,
                time_zone: is_of_zone.then(|| shape.time_zone.clone()),
            }
        };
        Some(cache.open(shape.columns.iter().map(form).collect()))
    }

    /// The parts of a scan that are read at the same time.
    fn split(&mut self, plan: &ScanPlan, ways: &ScanWays) -> Vec<Vec<Way>> {
        let threads = self.resources.threads.workers();
        let [(index, range)] = &ways.ranges[..] else { return vec![ways.ranges.clone()] };
        let is_worth_it = plan.table.statistics.rows() >= SPLIT_ROWS && threads > 1;
        if self.ordered || !is_worth_it {
            return vec![ways.ranges.clone()];
        }
        let estimate = |range: &KeyRange| {
            let found = self.execution.data.node.estimate(&ways.table, *index, range);
            found.map_or(0.0, |found| found.entries)
        };
        let ranges = split::split(range, threads, &estimate);
        ranges.into_iter().map(|range| vec![(*index, range)]).collect()
    }
}
