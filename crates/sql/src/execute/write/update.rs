//! `UPDATE`.
//!
//! ```text
//!   source row ─► assignments, ON UPDATE, generated ─► checks ─► differing bytes ─► update
//! ```
//!
//! A row's [change](super::change) is computed while its source row is in the frame. If rows are
//! collected first, the changes are kept and made afterwards; rows that may [change
//! meanwhile](super::reread) keep only their assigned values.

use std::collections::VecDeque;
use std::fmt::Write;

use firn_api::rows::TableRef;
use firn_format::value::ValueRef;
use smallvec::SmallVec;

use crate::catalog::model::TableModel;
use crate::error::{Result, SqlError};
use crate::expression::Slot;
use crate::expression::visit::{SlotSet, add_reads};
use crate::logical::WriteTarget;
use crate::plan::{NodeKind, PlanNode, UpdatePlan};
use crate::types::Datum;

use super::super::access::Fitted;
use super::super::error::from_rows;
use super::super::memory::{Reservation, size_of_values};
use super::super::operator::build;
use super::super::seen::SeenKeys;
use super::super::{Execution, Outcome, values};
use super::assign::Nulls;
use super::batch::{BatchedWrite, WriteBatch, Written, may_run_ahead, write_all};
use super::change::{Change, Changes, RowChange, fill_from_payload};
use super::duplicate::{Refusal, refusal};
use super::foreign_key::ForeignKeys;
use super::is_ignorable;
use super::numbers::positive;
use super::point::Point;
use super::reread::{cascades_back, has_roles, read_again};
use super::row::store;

/// Room for an update's message to the client.
const INFO_BYTES: usize = 64;

/// Writes a row's changes, and checks its foreign keys.
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
    // A row without its parents is refused even if another one has its key.
    keys.before_update(table, payload, &values, execution).map_err(Refusal::Other)?;
    if let Err(error) = execution.data.transaction.update(table, key, payload, &values) {
        let mut value =
            |ordinal: u16| new_value(ordinal, model, table, payload, changes, execution);
        return Err(refusal(error, model, &mut value, context));
    }
    execution.measures.rows.updated += 1;
    pass_number(given_number(model, changes), table, execution).map_err(Refusal::Other)?;
    keys.after_update(table, payload, &values, None, execution).map_err(Refusal::Other)
}

/// The `AUTO_INCREMENT` value that a change gives a row.
fn given_number(model: &TableModel, changes: &Changes) -> Option<u64> {
    let ordinal = model.auto_increment?;
    let given = changes.iter().find(|(of, _)| *of == ordinal);
    given.and_then(|(_, value)| positive(value))
}

/// Reports to the counter an `AUTO_INCREMENT` value that a row was given.
fn pass_number(number: Option<u64>, table: &TableRef, execution: &Execution<'_>) -> Result<()> {
    match number {
        Some(number) => execution.data.node.pass_auto_increment(table, number).map_err(from_rows),
        None => Ok(()),
    }
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
    let value = super::row::stored_value(payload, ordinal, table, &*execution.data.transaction);
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
    /// Whether all rows are found before the first is changed.
    gathers: bool,
    /// Whether rows may change between being found and being changed.
    rereads: bool,
    /// The most recent row of the join's first table, if other tables are changed too.
    leading: Option<Leading>,
    found: u64,
    changed: u64,
}

/// A row of the join's first table, with its assigned values. Assignments to other tables read
/// these, as in MySQL, which changes the first table's rows while it joins.
struct Leading {
    number: usize,
    key: Box<[u8]>,
    changes: Changes,
}

struct Target<'p> {
    plan: &'p WriteTarget,
    table: TableRef,
    keys: ForeignKeys,
    /// Rows that have been seen, if the source may return one several times.
    seen: Option<SeenKeys>,
    pending: VecDeque<Pending>,
    held: Reservation,
    /// Slots of other rows that checks read.
    beside: Box<[Slot]>,
    /// Writes that wait for others; `None` if each is made at once.
    batch: Option<WriteBatch>,
}

/// A change that is made when all rows have been collected.
struct Pending {
    key: Box<[u8]>,
    row_number: u64,
    change: PendingChange,
}

enum PendingChange {
    /// For the row with these bytes.
    Made { payload: Box<[u8]>, changes: Changes },
    /// These values were assigned; the change follows from the row as it is then. `beside` has the
    /// values of [`Target::beside`].
    Assigned { values: Changes, beside: Box<[Datum]> },
}

/// Updates the rows of a plan.
pub(crate) fn update(plan: &UpdatePlan, execution: &mut Execution<'_>) -> Result<Outcome> {
    let gathers = plan.gather_first || plan.targets.len() > 1;
    let mut targets = Vec::with_capacity(plan.targets.len());
    for target in &plan.targets {
        targets.push(Target {
            plan: target,
            table: execution.table(&target.table, true)?,
            keys: ForeignKeys::of(&target.table, execution)?,
            seen: gathers.then(|| SeenKeys::new(execution)),
            pending: VecDeque::new(),
            held: execution.memory().reservation(),
            beside: Box::default(),
            batch: None,
        });
    }
    let keys = targets.iter_mut().map(|target| &mut target.keys);
    let rereads = has_roles(&plan.targets) || cascades_back(&plan.targets, keys, execution)?;
    let mut updater =
        Updater { plan, targets, gathers, rereads, leading: None, found: 0, changed: 0 };
    match Point::of(&plan.source, execution) {
        Some(point) => {
            updater.rereads = false;
            let table = updater.targets[0].table.clone();
            point.visit(&table, execution, |row, execution| {
                updater.change(0, &row.key, &row.payload, execution)
            })?;
        }
        None => {
            updater.batch_writes(execution)?;
            if let Err(error) = updater.update_source(execution) {
                // The error of an earlier row, not yet written, comes first.
                let writes_first = !updater.gathers || reads_one_table(&plan.source);
                let goes_on = !error.ends_transaction() && execution.check_cancelled().is_ok();
                if writes_first && goes_on {
                    updater.make_pending(execution)?;
                }
                return Err(error);
            }
        }
    }
    updater.make_pending(execution)?;
    Ok(updater.outcome(execution))
}

/// Whether the rows come from one table: otherwise all are found before the first is written.
fn reads_one_table(source: &PlanNode) -> bool {
    match &source.kind {
        NodeKind::Scan(_) => true,
        NodeKind::Filter { input, .. }
        | NodeKind::Compute { input, .. }
        | NodeKind::Sort { input, .. }
        | NodeKind::Limit { input, .. } => reads_one_table(input),
        _ => false,
    }
}

impl<'p> Target<'p> {
    fn row_change(&self, row_number: u64) -> RowChange<'p> {
        RowChange {
            model: &self.plan.table,
            assignments: &self.plan.assignments,
            in_turn: self.plan.in_turn,
            row: &self.plan.row,
            generated: &self.plan.generated,
            checks: &self.plan.checks,
            row_number,
            nulls: if self.plan.may_be_absent { Nulls::BadData } else { Nulls::Each },
        }
    }

    /// Computes what to do with a row later.
    fn keep(
        &self,
        change: &RowChange<'_>,
        payload: &[u8],
        rereads: bool,
        execution: &mut Execution<'_>,
    ) -> Result<Option<PendingChange>> {
        if rereads {
            let values = change.assigned_values(execution)?;
            let beside = execution.frame.save(&self.beside);
            return Ok(Some(PendingChange::Assigned { values, beside }));
        }
        Ok(match change.work_out(&self.table, payload, execution)? {
            Change::None => None,
            Change::Columns(changes) => {
                Some(PendingChange::Made { payload: payload.into(), changes })
            }
        })
    }
}

impl Pending {
    fn size_bytes(&self) -> usize {
        let (changes, beside) = match &self.change {
            PendingChange::Made { payload, changes } => (changes, payload.len()),
            PendingChange::Assigned { values, beside } => (values, size_of_values(beside)),
        };
        let values: SmallVec<[Datum; 4]> = changes.iter().map(|(_, value)| value.clone()).collect();
        self.key.len() + beside + size_of_values(&values) + 64
    }
}

impl Updater<'_> {
    /// Lets writes wait for others where that saves messages and changes nothing else.
    fn batch_writes(&mut self, execution: &Execution<'_>) -> Result<()> {
        if !execution.data.is_remote || self.rereads {
            return Ok(());
        }
        for target in &mut self.targets {
            let in_order =
                self.gathers || !self.plan.ignore && may_run_ahead(&self.plan.source, target.plan);
            let changes = |ordinal: u16| target.plan.changes_column(ordinal);
            if in_order && !target.keys.follow_update(&changes, execution)? {
                target.batch = Some(WriteBatch::default());
            }
        }
        Ok(())
    }

    fn update_source(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        if self.rereads {
            execution.data.scans_row_by_row = !self.gathers;
            for target in &mut self.targets {
                let mut reads = SlotSet::default();
                target.plan.checks.iter().for_each(|check| add_reads(&check.condition, &mut reads));
                target.plan.row.iter().for_each(|(_, slot)| reads.remove(*slot));
                target.beside = reads.iter().collect();
            }
        }
        let mut source = build(&self.plan.source, execution);
        source.open(execution)?;
        while source.next(execution)? {
            execution.check_cancelled()?;
            match self.targets.len() {
                1 => self.visit(0, execution)?,
                _ => self.visit_all(execution)?,
            }
        }
        Ok(())
    }

    /// Processes all targets' rows in the frame.
    fn visit_all(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let first = self.targets.iter().map(|target| target.plan).find(|target| target.in_turn);
        let slots: SmallVec<[Slot; 8]> =
            first.into_iter().flat_map(|target| &target.row).map(|(_, slot)| *slot).collect();
        let saved = execution.frame.save(&slots);
        if let Some(leading) = &self.leading {
            let target = &self.targets[leading.number];
            let is_same = |key: &Datum| key.as_bytes() == Some(&leading.key[..]);
            if is_same(execution.frame.get(target.plan.row_key)) {
                target.row_change(0).show(&leading.changes, execution);
            }
        }
        for number in 0..self.targets.len() {
            self.visit(number, execution)?;
        }
        // Joins continue with the row as it was found.
        execution.frame.restore(&slots, saved);
        Ok(())
    }

    /// Makes the first table's assigned values visible to the following targets.
    fn lead(&mut self, number: usize, pending: &Pending, execution: &mut Execution<'_>) {
        if self.targets.len() == 1 || !self.targets[number].plan.in_turn {
            return;
        }
        let (PendingChange::Made { changes, .. } | PendingChange::Assigned { values: changes, .. }) =
            &pending.change;
        self.targets[number].row_change(0).show(changes, execution);
        let (key, changes) = (pending.key.clone(), changes.clone());
        self.leading = Some(Leading { number, key, changes });
    }

    /// Processes a target's row in the frame.
    fn visit(&mut self, number: usize, execution: &mut Execution<'_>) -> Result<()> {
        let target = self.targets[number].plan;
        // NULL: the row of an outer join that matched nothing.
        let Datum::Text(key) = execution.frame.get(target.row_key).clone() else { return Ok(()) };
        let Datum::Text(payload) = execution.frame.get(target.row_payload).clone() else {
            return Ok(());
        };
        if self.gathers || !self.rereads {
            return self.change(number, &key, &payload, execution);
        }
        let table = self.targets[number].table.clone();
        let mut present = Vec::new();
        if !read_again(&table, &key, &mut present, execution)? {
            return Ok(());
        }
        fill_from_payload(&target.row, &target.table, &table, &present, execution)?;
        self.change(number, &key, &present, execution)
    }

    /// Computes the change of a target's row whose values are in the frame, and makes it if it is
    /// not deferred.
    fn change(
        &mut self,
        number: usize,
        key: &[u8],
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let target = &mut self.targets[number];
        if let Some(seen) = &mut target.seen
            && !seen.add(key)?
        {
            return Ok(());
        }
        self.found += 1;
        let change = target.row_change(self.found);
        if !self.gathers {
            return match change.work_out(&target.table, payload, execution) {
                Ok(Change::None) => Ok(()),
                Ok(Change::Columns(changes)) => {
                    self.make(number, key, payload, &changes, execution)
                }
                Err(error) => self.or_ignored(error, execution),
            };
        }
        let kept = match target.keep(&change, payload, self.rereads, execution) {
            Ok(Some(kept)) => kept,
            Ok(None) => return Ok(()),
            Err(error) => return self.or_ignored(error, execution),
        };
        let pending = Pending { key: key.into(), row_number: self.found, change: kept };
        target.held.require(pending.size_bytes())?;
        self.lead(number, &pending, execution);
        self.targets[number].pending.push_back(pending);
        Ok(())
    }

    /// Makes all changes that have not been made yet.
    fn make_pending(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let mut present = Vec::new();
        for number in 0..self.targets.len() {
            while let Some(pending) = self.targets[number].pending.pop_front() {
                execution.check_cancelled()?;
                let Pending { key, row_number, change } = pending;
                let (values, beside) = match change {
                    PendingChange::Made { payload, changes } => {
                        self.make(number, &key, &payload, &changes, execution)?;
                        continue;
                    }
                    PendingChange::Assigned { values, beside } => (values, beside),
                };
                let target = &self.targets[number];
                if !read_again(&target.table, &key, &mut present, execution)? {
                    let message = format!("Can't find record in '{}'", target.plan.table.name);
                    return Err(SqlError::new(1032, message));
                }
                execution.frame.restore(&target.beside, beside);
                let change = target.row_change(row_number);
                match change.apply(values, &target.table, &present, execution) {
                    Ok(Change::None) => {}
                    Ok(Change::Columns(changes)) => {
                        self.make(number, &key, &present, &changes, execution)?;
                    }
                    Err(error) => self.or_ignored(error, execution)?,
                }
            }
            self.make_batch(number, execution)?;
        }
        Ok(())
    }

    /// Turns an error about a row into a warning if the statement continues without the row.
    fn or_ignored(&self, error: SqlError, execution: &mut Execution<'_>) -> Result<()> {
        if !self.plan.ignore || !is_ignorable(&error) {
            return Err(error);
        }
        execution.context.warn(error.code, || error.message.clone());
        Ok(())
    }

    /// Makes a change, or puts it in the batch.
    fn make(
        &mut self,
        number: usize,
        key: &[u8],
        payload: &[u8],
        changes: &Changes,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let Some(batch) = &mut self.targets[number].batch else {
            return self.make_alone(number, key, payload, changes, execution);
        };
        let write = BatchedWrite::new(key, payload, Some(changes.clone()), execution);
        if batch.add(write) { self.make_batch(number, execution) } else { Ok(()) }
    }

    /// Makes the changes in a target's batch.
    fn make_batch(&mut self, number: usize, execution: &mut Execution<'_>) -> Result<()> {
        let target = &mut self.targets[number];
        let rows = target.batch.as_mut().map(WriteBatch::take).unwrap_or_default();
        if rows.is_empty() {
            return Ok(());
        }
        match write_all(&rows, &target.table, execution)? {
            Written::All => {
                self.changed += rows.len() as u64;
                execution.measures.rows.updated += rows.len() as u64;
                let changes = rows.iter().filter_map(|row| row.changes.as_ref());
                let numbers = changes.filter_map(|one| given_number(&target.plan.table, one));
                pass_number(numbers.max(), &target.table, execution)
            }
            Written::None => {
                // More of them may follow.
                target.batch = None;
                self.make_each(number, &rows, execution)
            }
        }
    }

    fn make_each(
        &mut self,
        number: usize,
        rows: &[BatchedWrite],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        for row in rows {
            let Some(changes) = &row.changes else { continue };
            let made = self.make_alone(number, &row.key, &row.payload, changes, execution);
            if made.is_err() && !self.gathers {
                row.forget_later_conditions(execution);
            }
            made?;
        }
        Ok(())
    }

    fn make_alone(
        &mut self,
        number: usize,
        key: &[u8],
        payload: &[u8],
        changes: &Changes,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let target = &mut self.targets[number];
        let ignores = self.plan.ignore;
        let before = ignores.then(|| execution.data.transaction.savepoint());
        let (model, table) = (&target.plan.table, &target.table);
        let updated = update_row(model, table, &mut target.keys, key, payload, changes, execution);
        match (updated.map_err(SqlError::from), before) {
            (Ok(()), _) => self.changed += 1,
            (Err(error), Some(before)) if is_ignorable(&error) => {
                execution.data.transaction.rollback_to(before).map_err(from_rows)?;
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
