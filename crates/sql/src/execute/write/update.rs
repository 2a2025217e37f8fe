//! `UPDATE`.
//!
//! ```text
//!   source row ─► assignments, ON UPDATE, generated ─► checks ─► what differs from the row's bytes ─► update
//! ```
//!
//! A row's change is worked out while its source row is in the frame; where rows are gathered first, the
//! changes are kept and made afterwards.

use std::collections::VecDeque;
use std::fmt::Write;

use firn_api::rows::{ReadMode, TableRef, WaitPolicy};
use firn_format::row::RowView;
use firn_format::value::ValueRef;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::catalog::model::{ColumnModel, TableModel};
use crate::error::{Result, SqlError};
use crate::expression::{Expression, Slot};
use crate::plan::{Assignment, RowCheck, UpdatePlan, WriteTarget};
use crate::types::Datum;

use super::super::access::Fitted;
use super::super::error::{from_row, from_rows};
use super::super::memory::{Reservation, size_of_values};
use super::super::operator::build;
use super::super::{Execution, Outcome, values};
use super::assign::{assign, assign_owned, default_of, now};
use super::duplicate::{Refusal, refusal};
use super::foreign_key::ForeignKeys;
use super::insert::look_at_checks;
use super::is_ignorable;
use super::point::Point;
use super::row::{holds, store};

/// Room for what the client is told of an update.
const INFO_BYTES: usize = 64;

/// Columns and their new values.
pub(super) type Changes = SmallVec<[(u16, Datum); 4]>;

/// What an update comes to for a row.
pub(super) enum Change {
    /// The row is so already.
    None,
    /// These columns change.
    Columns(Changes),
}

/// How a row of a table is changed.
pub(super) struct RowChange<'p> {
    pub(super) model: &'p TableModel,
    pub(super) assignments: &'p [Assignment],
    /// Slots that hold the row as it is; they are left as they were.
    pub(super) row: &'p [(u16, Slot)],
    pub(super) generated: &'p [(u16, Expression)],
    pub(super) checks: &'p [RowCheck],
    pub(super) row_number: u64,
}

impl RowChange<'_> {
    /// Works out the change of the row with these bytes.
    pub(super) fn work_out(
        &self,
        table: &TableRef,
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<Change> {
        let saved: SmallVec<[Datum; 8]> =
            self.row.iter().map(|(_, slot)| execution.get(*slot).clone()).collect();
        let change = self.work_out_in_place(table, payload, execution);
        for ((_, slot), value) in self.row.iter().zip(saved) {
            execution.set(*slot, value);
        }
        change
    }

    fn work_out_in_place(
        &self,
        table: &TableRef,
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<Change> {
        let mut changes = Changes::new();
        for assignment in self.assignments.iter().filter(|one| !self.is_generated(one.ordinal)) {
            let value = self.assigned(assignment, execution)?;
            self.put(assignment.ordinal, value, &mut changes, execution);
        }
        self.drop_unchanged(&mut changes, table, payload, execution)?;
        if changes.is_empty() {
            return Ok(Change::None);
        }
        let given = changes.len();
        for column in self.model.columns.iter().filter(|column| self.is_set_to_now(column)) {
            let fsp = column.on_update_now.unwrap_or(0);
            let value = now(fsp, &column.ty, execution.context)?;
            self.put(column.ordinal, value, &mut changes, execution);
        }
        for (ordinal, expression) in self.generated {
            let Some(column) = self.model.by_ordinal(*ordinal) else { continue };
            let value = expression.evaluate(execution)?;
            let value = assign(&value, &expression.ty, column, self.row_number, execution)?;
            self.put(*ordinal, value, &mut changes, execution);
        }
        if changes.len() > given {
            self.drop_unchanged(&mut changes, table, payload, execution)?;
        }
        look_at_checks(self.checks, execution)?;
        Ok(Change::Columns(changes))
    }

    fn assigned(&self, assignment: &Assignment, execution: &mut Execution<'_>) -> Result<Datum> {
        let column = self.model.by_ordinal(assignment.ordinal);
        let column = column.ok_or_else(|| SqlError::new(1105, "Unknown error: no such column"))?;
        match &assignment.value {
            None => default_of(column, execution),
            Some(expression) => {
                let value = expression.evaluate(execution)?;
                assign_owned(value, &expression.ty, column, self.row_number, execution)
            }
        }
    }

    /// Generated columns may be set to their default, which is what they are worked out to.
    fn is_generated(&self, ordinal: u16) -> bool {
        self.model.by_ordinal(ordinal).is_some_and(|column| column.generated.is_some())
    }

    fn is_set_to_now(&self, column: &ColumnModel) -> bool {
        let mut assigned = self.assignments.iter();
        column.on_update_now.is_some() && !assigned.any(|one| one.ordinal == column.ordinal)
    }

    /// Gives a column a value that what is evaluated next sees.
    fn put(
        &self,
        ordinal: u16,
        value: Datum,
        changes: &mut Changes,
        execution: &mut Execution<'_>,
    ) {
        if let Some((_, slot)) = self.row.iter().find(|(of, _)| *of == ordinal) {
            execution.set(*slot, value.clone());
        }
        match changes.iter_mut().find(|(of, _)| *of == ordinal) {
            Some((_, present)) => *present = value,
            None => changes.push((ordinal, value)),
        }
    }

    fn drop_unchanged(
        &self,
        changes: &mut Changes,
        table: &TableRef,
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let mut failed = None;
        let columns = &table.definition().columns;
        let overflow = &mut execution.scratch.overflow;
        let (context, transaction) = (execution.context, &*execution.transaction);
        changes.retain(|(ordinal, value)| {
            let column_type = columns[usize::from(*ordinal)].column_type;
            let same = store(value, column_type, context).and_then(|value| {
                holds(payload, *ordinal, value.as_ref(), table, transaction, overflow)
            });
            match same {
                Ok(same) => !same,
                Err(error) => {
                    failed = Some(error);
                    true
                }
            }
        });
        failed.map_or(Ok(()), Err)
    }
}

/// Puts the values of a row's bytes in slots.
pub(super) fn fill_from_payload(
    slots: &[(u16, Slot)],
    model: &TableModel,
    table: &TableRef,
    payload: &[u8],
    execution: &mut Execution<'_>,
) -> Result<()> {
    let view = RowView::parse(&table.layout().row, payload).map_err(from_row)?;
    for (ordinal, slot) in slots {
        let Some(column) = model.by_ordinal(*ordinal) else { continue };
        let cell = view.column(usize::from(*ordinal)).map_err(from_row)?;
        let overflow = &mut execution.scratch.overflow;
        let value = firn_api::rows::cell_value(&*execution.transaction, table, cell, overflow);
        let value = values::datum(value.map_err(from_rows)?, &column.ty, execution.context)?;
        execution.frame[slot.0 as usize] = value;
    }
    Ok(())
}

/// Writes a row's changes, and looks at its foreign keys.
pub(super) fn update_row(
    model: &TableModel,
    table: &TableRef,
    keys: &mut ForeignKeys,
    key: &[u8],
    payload: &[u8],
    changes: &Changes,
    execution: &mut Execution<'_>,
) -> std::result::Result<(), Refusal> {
    let columns = &table.definition().columns;
    let context = execution.context;
    let stored: SmallVec<[(usize, Fitted<'_>); 4]> = changes
        .iter()
        .map(|(ordinal, value)| {
            let ordinal = usize::from(*ordinal);
            Ok((ordinal, store(value, columns[ordinal].column_type, context)?))
        })
        .collect::<Result<_>>()
        .map_err(Refusal::Other)?;
    let values: SmallVec<[(usize, ValueRef<'_>); 4]> =
        stored.iter().map(|(ordinal, value)| (*ordinal, value.as_ref())).collect();
    if let Err(error) = execution.transaction.update(table, key, payload, &values) {
        let mut value =
            |ordinal: u16| new_value(ordinal, model, table, payload, changes, execution);
        return Err(refusal(error, model, &mut value, context));
    }
    execution.rows.updated += 1;
    keys.after_update(table, payload, &values, 0, execution).map_err(Refusal::Other)
}

/// A column's value after a change; NULL if the row is damaged.
fn new_value(
    ordinal: u16,
    model: &TableModel,
    table: &TableRef,
    payload: &[u8],
    changes: &Changes,
    execution: &Execution<'_>,
) -> Datum {
    if let Some((_, value)) = changes.iter().find(|(of, _)| *of == ordinal) {
        return value.clone();
    }
    let value = super::row::stored_value(payload, ordinal, table, &*execution.transaction);
    let column = model.by_ordinal(ordinal);
    let datum = value.ok().zip(column).and_then(|(value, column)| {
        values::datum(value.as_ref(), &column.ty, execution.context).ok()
    });
    datum.unwrap_or_default()
}

/// An `UPDATE` at work.
struct Updater<'p> {
    plan: &'p UpdatePlan,
    targets: Vec<Target<'p>>,
    found: u64,
    changed: u64,
}

struct Target<'p> {
    plan: &'p WriteTarget,
    table: TableRef,
    keys: ForeignKeys,
    /// Rows that have been seen, if the source may give one several times.
    seen: Option<FxHashSet<Box<[u8]>>>,
    pending: VecDeque<Pending>,
    held: Reservation,
}

/// A change that is made when all rows have been gathered.
struct Pending {
    key: Box<[u8]>,
    payload: Box<[u8]>,
    changes: Changes,
}

/// Updates the rows of a plan.
pub(crate) fn update(plan: &UpdatePlan, execution: &mut Execution<'_>) -> Result<Outcome> {
    let mut targets = Vec::with_capacity(plan.targets.len());
    for target in &plan.targets {
        targets.push(Target {
            plan: target,
            table: execution.table(&target.table, true)?,
            keys: ForeignKeys::of(&target.table, execution)?,
            seen: gathers(plan).then(FxHashSet::default),
            pending: VecDeque::new(),
            held: execution.memory().reservation(),
        });
    }
    let mut updater = Updater { plan, targets, found: 0, changed: 0 };
    match Point::of(&plan.source, execution) {
        Some(point) => {
            let table = updater.targets[0].table.clone();
            point.visit(&table, execution, |row, execution| {
                updater.change(0, &row.key, &row.payload, execution)
            })?;
        }
        None => updater.update_source(execution)?,
    }
    updater.make_pending(execution)?;
    Ok(updater.outcome(execution))
}

/// Whether all rows are looked for before the first is changed.
fn gathers(plan: &UpdatePlan) -> bool {
    plan.gather_first || plan.targets.len() > 1
}

impl Updater<'_> {
    fn update_source(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let mut source = build(&self.plan.source, execution);
        source.open(execution)?;
        while source.next(execution)? {
            execution.check_cancelled()?;
            for number in 0..self.targets.len() {
                self.visit(number, execution)?;
            }
        }
        Ok(())
    }

    /// Looks at a target's row in the frame.
    fn visit(&mut self, number: usize, execution: &mut Execution<'_>) -> Result<()> {
        let target = self.targets[number].plan;
        // NULL: the row of an outer join that matched nothing.
        let Datum::Text(key) = execution.get(target.row_key).clone() else { return Ok(()) };
        let Datum::Text(payload) = execution.get(target.row_payload).clone() else {
            return Ok(());
        };
        self.change(number, &key, &payload, execution)
    }

    /// Works out the change of a target's row whose values are in the frame, and makes it if its time is now.
    fn change(
        &mut self,
        number: usize,
        key: &[u8],
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let target = &mut self.targets[number];
        if let Some(seen) = &mut target.seen {
            if seen.contains(key) {
                return Ok(());
            }
            target.held.require(key.len() + 32)?;
            seen.insert(key.into());
        }
        self.found += 1;
        let change = RowChange {
            model: &target.plan.table,
            assignments: &target.plan.assignments,
            row: &target.plan.row,
            generated: &target.plan.generated,
            checks: &target.plan.checks,
            row_number: self.found,
        };
        let changes = match change.work_out(&target.table, payload, execution) {
            Ok(Change::None) => return Ok(()),
            Ok(Change::Columns(changes)) => changes,
            Err(error) if self.plan.ignore && is_ignorable(&error) => {
                execution.context.warn(error.code, || error.message.clone());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if !gathers(self.plan) {
            return self.make(number, key, payload, &changes, execution);
        }
        let values: SmallVec<[Datum; 4]> = changes.iter().map(|(_, value)| value.clone()).collect();
        target.held.require(key.len() + payload.len() + size_of_values(&values) + 64)?;
        let (key, payload) = (key.into(), payload.into());
        target.pending.push_back(Pending { key, payload, changes });
        Ok(())
    }

    fn make_pending(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        for number in 0..self.targets.len() {
            while let Some(pending) = self.targets[number].pending.pop_front() {
                execution.check_cancelled()?;
                let Pending { key, mut payload, changes } = pending;
                if self.targets[number].keys.may_cascade(execution)? {
                    // An earlier row's cascade may have changed this one.
                    let mut present = Vec::new();
                    let mode = ReadMode::Update(WaitPolicy::Wait);
                    let table = &self.targets[number].table;
                    let found = execution.transaction.get(table, &key, mode, &mut present);
                    if !found.map_err(from_rows)? {
                        continue;
                    }
                    payload = present.into();
                }
                self.make(number, &key, &payload, &changes, execution)?;
            }
        }
        Ok(())
    }

    fn make(
        &mut self,
        number: usize,
        key: &[u8],
        payload: &[u8],
        changes: &Changes,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let target = &mut self.targets[number];
        let ignores = self.plan.ignore;
        let before = ignores.then(|| execution.transaction.savepoint());
        let (model, table) = (&target.plan.table, &target.table);
        let updated = update_row(model, table, &mut target.keys, key, payload, changes, execution);
        match (updated.map_err(SqlError::from), before) {
            (Ok(()), _) => self.changed += 1,
            (Err(error), Some(before)) if is_ignorable(&error) => {
                execution.transaction.rollback_to(before).map_err(from_rows)?;
                execution.context.warn(error.code, || error.message.clone());
            }
            (Err(error), _) => return Err(error),
        }
        Ok(())
    }

    fn outcome(&self, execution: &Execution<'_>) -> Outcome {
        let warnings = execution.context.warning_count();
        let (found, affected) = (self.found, self.changed);
        let mut info = String::with_capacity(INFO_BYTES);
        let _ = write!(info, "Rows matched: {found}  Changed: {affected}  Warnings: {warnings}");
        Outcome { affected, found, warnings, info, ..Outcome::default() }
    }
}
