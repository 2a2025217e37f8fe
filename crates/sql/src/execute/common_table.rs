//! Common table expressions: evaluated when they are first read, then kept.
//!
//! ```text
//!   WITH RECURSIVE c AS (query UNION ALL recursive)
//!     rows of `query` ─► delta ─► recursive reads delta ─► new delta ─► … until a delta is empty
//! ```
//!
//! Rows that do not fit in memory are kept on disk: all of them, and those of a step. The set that
//! makes the rows of a recursive one distinct has to fit.

use crate::execute::Evaluate;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::error::{Result, SqlError};
use crate::expression::Slot;
use crate::plan::{CommonTable, QueryPlan};
use crate::types::{Datum, SqlType, cast};

use super::Execution;
use super::background_free::Bulk;
use super::memory::{Reservation, size_of_values};
use super::operator::{Operator, QueryRows};
use super::row_key::write_row_key;
use super::spill::{SpillFile, SpillReader};

/// Rows that several readers share.
#[derive(Clone)]
pub(crate) enum KeptRows {
    Memory(Arc<Bulk<Vec<Box<[Datum]>>>>),
    Disk(Arc<SpillReader>),
}

/// The common tables of an execution, by their numbers.
#[derive(Default)]
pub(crate) struct CommonTables(Vec<Kept>);

#[derive(Default)]
struct Kept {
    /// All rows, with the outer values for which they hold.
    rows: Option<(Vec<Datum>, KeptRows)>,
    /// While a recursive one is being evaluated: the rows of the last step.
    delta: Option<KeptRows>,
    _held: Option<Reservation>,
}

pub(crate) struct CommonTableScan<'p> {
    number: usize,
    slots: &'p [(u16, Slot)],
    rows: Arc<Bulk<Vec<Box<[Datum]>>>>,
    next: usize,
    /// Instead of `rows`, if they are on disk.
    reader: Option<SpillReader>,
    row: Vec<Datum>,
}

impl<'p> CommonTableScan<'p> {
    pub(crate) fn new(number: usize, slots: &'p [(u16, Slot)]) -> CommonTableScan<'p> {
        CommonTableScan {
            number,
            slots,
            rows: Arc::default(),
            next: 0,
            reader: None,
            row: Vec::new(),
        }
    }
}

impl Operator for CommonTableScan<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.next = 0;
        match rows(self.number, execution)? {
            KeptRows::Memory(rows) => (self.rows, self.reader) = (rows, None),
            KeptRows::Disk(reader) => self.reader = Some(reader.again()),
        }
        Ok(())
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        execution.check_cancelled()?;
        let row = match &mut self.reader {
            Some(reader) => {
                if !reader.next(&mut self.row)? {
                    return Ok(false);
                }
                &self.row[..]
            }
            None => {
                let Some(row) = self.rows.get(self.next) else { return Ok(false) };
                self.next += 1;
                row
            }
        };
        for (column, slot) in self.slots {
            execution.frame.slots[slot.0 as usize] = row[usize::from(*column)].clone();
        }
        Ok(true)
    }
}

/// The rows of a common table, for reading now.
fn rows(number: usize, execution: &mut Execution<'_>) -> Result<KeptRows> {
    let plan = execution.plan;
    let table = plan.common_tables.get(number);
    let table = table.ok_or_else(|| SqlError::new(1105, "Unknown error: no such common table"))?;
    if execution.kept.common_tables.0.is_empty() {
        execution.kept.common_tables.0.resize_with(plan.common_tables.len(), Kept::default);
    }
    let kept = &execution.kept.common_tables.0[number];
    if let Some(delta) = &kept.delta {
        return Ok(delta.clone());
    }
    if let Some((outer, rows)) = &kept.rows {
        let mut same = table.outer_slots.iter().zip(outer);
        if same.all(|(slot, value)| execution.frame.get(*slot) == value) {
            return Ok(rows.clone());
        }
    }
    let outer = table.outer_slots.iter().map(|slot| execution.frame.get(*slot).clone()).collect();
    let (rows, held) = work_out(number, table, execution)?;
    let kept = &mut execution.kept.common_tables.0[number];
    *kept = Kept { rows: Some((outer, rows.clone())), delta: None, _held: Some(held) };
    Ok(rows)
}

/// Rows that are kept in memory while they fit, then on disk.
struct Growing {
    rows: Bulk<Vec<Box<[Datum]>>>,
    held: Reservation,
    file: Option<SpillFile>,
    count: usize,
}

impl Growing {
    fn new(execution: &Execution<'_>) -> Growing {
        let held = execution.memory().reservation();
        Growing { rows: Bulk::default(), held, file: None, count: 0 }
    }

    fn add(&mut self, row: &[Datum], execution: &Execution<'_>) -> Result<()> {
        self.count += 1;
        if let Some(file) = &mut self.file {
            return file.append(row);
        }
        if self.held.grow(size_of_values(row)) {
            self.rows.push(row.into());
            return Ok(());
        }
        let mut file = execution.workspace.create_spill_file()?;
        self.rows.iter().try_for_each(|row| file.append(row))?;
        file.append(row)?;
        self.rows.discard();
        self.held.clear();
        self.file = Some(file);
        Ok(())
    }

    /// The rows, and the memory that they hold.
    fn finish(self) -> Result<(KeptRows, Reservation)> {
        let rows = match self.file {
            Some(file) => KeptRows::Disk(Arc::new(file.into_reader()?)),
            None => KeptRows::Memory(Arc::new(self.rows)),
        };
        Ok((rows, self.held))
    }
}

impl KeptRows {
    /// Calls `take` with each row, until it wants no more.
    fn each(&self, mut take: impl FnMut(&[Datum]) -> Result<bool>) -> Result<()> {
        match self {
            KeptRows::Memory(rows) => {
                for row in rows.iter() {
                    if !take(row)? {
                        break;
                    }
                }
            }
            KeptRows::Disk(reader) => {
                let (mut reader, mut row) = (reader.again(), Vec::new());
                while reader.next(&mut row)? && take(&row)? {}
            }
        }
        Ok(())
    }
}

/// Collects rows; only the first of equal ones if they must be distinct.
struct Gathering<'t> {
    types: &'t [SqlType],
    seen: Option<Bulk<FxHashSet<Box<[u8]>>>>,
    /// The memory of the keys in `seen`.
    seen_held: Reservation,
    rows: Growing,
}

impl Gathering<'_> {
    fn add_all(&mut self, query: &QueryPlan, execution: &mut Execution<'_>) -> Result<()> {
        let mut query_rows = QueryRows::open(query, execution)?;
        let (mut row, mut key) = (Vec::new(), Vec::new());
        while query_rows.next(execution, &mut row)? {
            execution.check_cancelled()?;
            for ((value, ty), column) in row.iter_mut().zip(self.types).zip(&query.columns) {
                if column.value.ty.kind != ty.kind {
                    *value = cast::cast(value, &column.value.ty, ty, execution.context)?;
                }
            }
            if let Some(seen) = &mut self.seen {
                key.clear();
                write_row_key(&row, self.types, &mut key);
                if seen.contains(&key[..]) {
                    continue;
                }
                self.seen_held.require(key.len() + 32)?;
                seen.insert(key.as_slice().into());
            }
            self.rows.add(&row, execution)?;
        }
        Ok(())
    }
}

fn work_out(
    number: usize,
    table: &CommonTable,
    execution: &mut Execution<'_>,
) -> Result<(KeptRows, Reservation)> {
    let seen = (table.recursive.is_some() && table.distinct).then(Bulk::default);
    let (seen_held, rows) = (execution.memory().reservation(), Growing::new(execution));
    let mut gathering = Gathering { types: &table.types, seen, seen_held, rows };
    gathering.add_all(&table.query, execution)?;
    let Some(recursive) = &table.recursive else { return gathering.rows.finish() };
    let (most, left_out) = limit_of(table, execution)?;
    let mut all = Growing::new(execution);
    let mut passed = 0;
    let mut steps = 0;
    while gathering.rows.count > 0 && passed < most {
        if steps > execution.limits.recursion_depth {
            return Err(too_deep(steps));
        }
        let given = std::mem::replace(&mut gathering.rows, Growing::new(execution));
        let (delta, _held) = given.finish()?;
        delta.each(|row| {
            execution.check_cancelled()?;
            passed += 1;
            if passed > left_out {
                all.add(row, execution)?;
            }
            Ok(passed < most)
        })?;
        if passed >= most {
            break;
        }
        execution.kept.common_tables.0[number].delta = Some(delta);
        let step = gathering.add_all(recursive, execution);
        execution.kept.common_tables.0[number].delta = None;
        step?;
        steps += 1;
    }
    all.finish()
}

/// The number of rows at which a recursive query ends, and how many of the first are skipped.
fn limit_of(table: &CommonTable, execution: &mut Execution<'_>) -> Result<(usize, usize)> {
    let Some((limit, offset)) = &table.limit else { return Ok((usize::MAX, 0)) };
    let number = |value: Datum| match value {
        Datum::Int(number) => usize::try_from(number).unwrap_or(0),
        Datum::UInt(number) => usize::try_from(number).unwrap_or(usize::MAX),
        _ => 0,
    };
    let limit = number(limit.evaluate(execution)?);
    let offset = offset.as_ref().map(|offset| offset.evaluate(execution)).transpose()?;
    let offset = offset.map_or(0, number);
    Ok((limit.saturating_add(offset), offset))
}

fn too_deep(steps: u64) -> SqlError {
    SqlError::new(
        3636,
        format!(
            "Recursive query aborted after {steps} iterations. Try increasing \
             @@cte_max_recursion_depth to a larger value."
        ),
    )
}
