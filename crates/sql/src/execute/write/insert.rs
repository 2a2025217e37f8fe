//! `INSERT`, `REPLACE`, `INSERT … ON DUPLICATE KEY UPDATE`.
//!
//! ```text
//!   given columns ─► defaults, AUTO_INCREMENT, generated ─► checks ─► insert ─┬─► parents exist?
//!                                                             duplicate key ─┴─► act on it
//! ```
//!
//! Consecutive rows without parents to look for are [held back](super::pending) and inserted in
//! batches, until a key is a duplicate.

use crate::execute::Evaluate;
use std::cell::RefCell;

use firn_api::rows::{ReadMode, RowsError, TableRef, WaitPolicy};
use firn_format::value::ValueRef;
use smallvec::SmallVec;

use crate::catalog::model::{ColumnModel, TableModel};
use crate::error::{ErrorKind, Result, SqlError};
use crate::expression::{Expression, ExpressionKind, Slot};
use crate::logical::{Assignment, CheckedBy, DuplicatePolicy, RowCheck};
use crate::plan::{InsertPlan, NodeKind};
use crate::types::cast::{self, Source};
use crate::types::{Datum, EvaluationContext, SqlType, TypeKind};

use super::super::access::Fitted;
use super::super::error::from_rows;
use super::super::literal_rows::GivenRows;
use super::super::operator::QueryRows;
use super::super::{Execution, Outcome};
use super::assign::{
    Assigned, Nulls, asks_for_next, assign, assign_expression, assign_owned, default_with,
    lacks_default, value_of_missing,
};
use super::change::{Change, Changes, RowChange, fill_from_payload};
use super::duplicate::{Refusal, refusal};
use super::foreign_key::ForeignKeys;
use super::is_ignorable;
use super::numbers::{Numbers, positive, reported_id};
use super::pending::{Pending, Row};
use super::row::{store, stored_value};

/// How often a duplicate key is tried again if its row is gone when it is looked up.
const MOST_RETRIES: usize = 16;

/// An `INSERT` at work.
struct Inserter<'p> {
    plan: &'p InsertPlan,
    table: TableRef,
    foreign_keys: ForeignKeys,
    /// For each column that the statement does not set, by ordinal: what it gets.
    omitted: Vec<&'p ColumnModel>,
    numbers: Numbers,
    /// Memory for a row.
    row: Row,
    row_number: u64,
    /// There is one row, and no more can follow.
    is_single_row: bool,
    /// Columns that cannot be NULL and were set to NULL, for a single warning each.
    warned_of_null: RefCell<SmallVec<[u16; 4]>>,
    /// The current row has met an existing one, which it changes.
    has_met_duplicate: bool,
    /// Rows are held back and written in batches.
    holds_back: bool,
    pending: Pending,
    records: u64,
    inserted: u64,
    deleted: u64,
    updated: u64,
    /// Rows that `ON DUPLICATE KEY UPDATE` left unchanged.
    unchanged: u64,
}

/// The result of writing a row.
enum Written {
    Inserted,
    /// It met an existing row, which was updated or left; this is that row's `AUTO_INCREMENT`
    /// value.
    Met {
        id: u64,
    },
}

/// Inserts the rows of a plan.
pub(crate) fn insert(plan: &InsertPlan, execution: &mut Execution<'_>) -> Result<Outcome> {
    let mut inserter = Inserter::new(plan, execution)?;
    let done = match (execution.given.take(), &plan.source.root.kind) {
        (Some(rows), _) => inserter.insert_given(rows, execution),
        (None, NodeKind::Values { rows, slots }) => inserter.insert_values(rows, slots, execution),
        _ => inserter.insert_query(execution),
    };
    if let Err(error) = done {
        // `LAST_INSERT_ID()` returns the first number even of a statement that fails later.
        if let Some(first) = inserter.numbers.first_generated {
            execution.context.session.set_last_insert_id(first);
        }
        return Err(error);
    }
    Ok(inserter.outcome(execution))
}

/// The source's values for the columns of the statement.
trait Given {
    /// A column's value; take it only once. `None` for `DEFAULT`.
    fn take(&mut self, number: usize) -> Option<Datum>;
    /// The value's type; each row written in the statement may have its own.
    fn ty(&self, number: usize) -> &SqlType;
    /// Whether the row ends before this value.
    fn is_missing(&self, _number: usize) -> bool {
        false
    }
    /// What happens to NULL in columns that cannot be NULL; `None`: what the statement says.
    fn nulls(&self) -> Option<Nulls<'static>> {
        None
    }
    /// Whether columns that are not given and have no default get a value silently.
    fn lets_defaults_lack(&self) -> bool {
        false
    }
    /// The values were converted.
    fn converted(&self, _context: &EvaluationContext) -> Result<()> {
        Ok(())
    }
}

/// A row whose values are used as given.
struct Taken<'r>(&'r mut dyn GivenRows);

impl Given for Taken<'_> {
    fn take(&mut self, number: usize) -> Option<Datum> {
        Some(self.0.take(number))
    }

    fn ty(&self, number: usize) -> &SqlType {
        self.0.ty(number)
    }

    fn is_missing(&self, number: usize) -> bool {
        self.0.is_missing(number)
    }

    fn nulls(&self) -> Option<Nulls<'static>> {
        self.0.are_of_file().then_some(Nulls::OfFile)
    }

    fn lets_defaults_lack(&self) -> bool {
        self.0.are_of_file()
    }

    fn converted(&self, context: &EvaluationContext) -> Result<()> {
        self.0.converted(context)
    }
}

/// A row whose values were evaluated.
struct Worked<'t> {
    values: Values,
    types: &'t [&'t SqlType],
}

type Values = SmallVec<[Option<Datum>; 8]>;
type Types<'t> = SmallVec<[&'t SqlType; 8]>;

impl Given for Worked<'_> {
    fn take(&mut self, number: usize) -> Option<Datum> {
        self.values.get_mut(number).and_then(Option::take)
    }

    fn ty(&self, number: usize) -> &SqlType {
        self.types[number]
    }
}

impl<'p> Inserter<'p> {
    fn new(plan: &'p InsertPlan, execution: &mut Execution<'_>) -> Result<Inserter<'p>> {
        let table = execution.table(&plan.table, true)?;
        let foreign_keys = ForeignKeys::of(&plan.table, execution)?;
        let is_given = |column: &ColumnModel| plan.columns.contains(&column.ordinal);
        let omitted = plan.table.columns.iter();
        let omitted = omitted.filter(|column| !is_given(column) && column.generated.is_none());
        Ok(Inserter {
            plan,
            table,
            foreign_keys,
            omitted: omitted.collect(),
            numbers: Numbers::default(),
            row: Row::new(),
            row_number: 0,
            holds_back: false,
            pending: Pending::default(),
            records: 0,
            inserted: 0,
            deleted: 0,
            updated: 0,
            unchanged: 0,
            warned_of_null: RefCell::default(),
            has_met_duplicate: false,
            is_single_row: matches!(
                &plan.source.root.kind,
                NodeKind::Values { rows, .. } if rows.len() <= 1
            ) || matches!(plan.source.root.kind, NodeKind::OneRow),
        })
    }

    /// Inserts rows as they come.
    fn insert_given(
        &mut self,
        rows: &mut dyn GivenRows,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        self.is_single_row = false;
        self.holds_back = !self.foreign_keys.is_child();
        self.numbers.batch = rows.count().max(1);
        while rows.advance(execution.context)? {
            execution.check_cancelled()?;
            self.row_number += 1;
            self.insert_row(&mut Taken(rows), execution)?;
        }
        self.write_pending(execution)
    }

    fn insert_values(
        &mut self,
        rows: &'p [Vec<Expression>],
        slots: &[Slot],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let place = |column: &Expression| match column.kind {
            ExpressionKind::Slot(slot) => slots.iter().position(|filled| *filled == slot),
            _ => None,
        };
        let columns = self.plan.source.columns.iter();
        let places: Vec<Option<usize>> = columns.map(|column| place(&column.value)).collect();
        self.numbers.batch = rows.len() as u64;
        let mut types = self.source_types();
        for row in rows {
            execution.check_cancelled()?;
            self.evaluate_values(row, slots, execution)?;
            let is_default = |number: usize| {
                places[number]
                    .is_some_and(|place| row.get(place).is_some_and(Expression::is_default))
            };
            for (ty, place) in types.iter_mut().zip(&places) {
                if let Some(value) = place.and_then(|place| row.get(place)) {
                    *ty = &value.ty;
                }
            }
            self.row_number += 1;
            let values = self.given(&is_default, execution)?;
            self.insert_row(&mut Worked { values, types: &types }, execution)?;
        }
        Ok(())
    }

    /// The kind of the values of the source's column.
    fn source_of(&self, number: usize) -> Source {
        match self.plan.source.columns.get(number) {
            Some(column) if column.origin.is_some() => Source::Column,
            Some(column) => match Assigned::expression(&column.value).source {
                // Rows written in the statement have slots, too.
                Source::Column => Source::Expression,
                other => other,
            },
            None => Source::Expression,
        }
    }

    fn source_types(&self) -> Types<'p> {
        self.plan.source.columns.iter().map(|column| &column.value.ty).collect()
    }

    /// Evaluates a literal row. Its values may read earlier columns of their own row.
    fn evaluate_values(
        &self,
        row: &[Expression],
        slots: &[Slot],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        for (ordinal, slot) in &self.plan.old_row {
            let column = self.plan.table.by_ordinal(*ordinal);
            let default = column.and_then(|column| default_with(column, false, execution).ok());
            execution.frame.set(*slot, default.unwrap_or_default());
        }
        for (number, (slot, value)) in slots.iter().zip(row).enumerate() {
            if value.is_default() {
                continue;
            }
            let datum = value.evaluate(execution)?;
            if !self.plan.old_row.is_empty() {
                self.show_value(number, &datum, &value.ty, execution)?;
            }
            execution.frame.set(*slot, datum);
        }
        Ok(())
    }

    /// Makes a column's value visible to the following values of the row.
    fn show_value(
        &self,
        number: usize,
        value: &Datum,
        ty: &SqlType,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let Some(ordinal) = self.plan.columns.get(number) else { return Ok(()) };
        let slot = self.plan.old_row.iter().find(|(of, _)| of == ordinal).map(|(_, slot)| *slot);
        if let Some((slot, column)) = slot.zip(self.plan.table.by_ordinal(*ordinal)) {
            let value = match value.is_null() {
                true => Datum::Null,
                // Its warnings, and its error, come when the row is assembled.
                false => {
                    let count = execution.context.warning_count();
                    let from = Assigned::of_type(ty);
                    let value = assign(value, from, column, self.row_number + 1, execution);
                    execution.context.forget_conditions_after(count);
                    value.unwrap_or_default()
                }
            };
            execution.frame.set(slot, value);
        }
        Ok(())
    }

    fn insert_query(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.numbers.batch = 1;
        // Rows that are held back are written when the source is at another row.
        self.holds_back =
            !self.is_single_row && !self.foreign_keys.is_child() && !self.plan.reads_source();
        let types = self.source_types();
        let mut query = QueryRows::open(&self.plan.source, execution)?;
        while query.advance(execution)? {
            execution.check_cancelled()?;
            self.row_number += 1;
            let values = self.given(&|_| false, execution)?;
            self.insert_row(&mut Worked { values, types: &types }, execution)?;
        }
        self.write_pending(execution)
    }

    /// The row with the source's current values; `None` for `DEFAULT`.
    fn given(
        &self,
        is_default: &dyn Fn(usize) -> bool,
        execution: &mut Execution<'_>,
    ) -> Result<Values> {
        let columns = self.plan.source.columns.iter().enumerate();
        columns
            .map(|(number, column)| match column.value.is_default() || is_default(number) {
                true => Ok(None),
                false => column.value.evaluate(execution).map(Some),
            })
            .collect()
    }

    fn insert_row(&mut self, given: &mut dyn Given, execution: &mut Execution<'_>) -> Result<()> {
        self.records += 1;
        self.has_met_duplicate = false;
        let mut row = std::mem::take(&mut self.row);
        let done = match self.build(given, &mut row, execution) {
            Ok(number) if self.holds_back => self.hold_back(&mut row, number, execution),
            Ok(number) => self.write_row(&row, number, execution),
            // The error of an earlier row, not yet written, comes first.
            Err(error) => {
                self.write_pending(execution).and_then(|()| self.or_ignored(error, execution))
            }
        };
        self.row = row;
        done
    }

    /// Defers writing the row, to write it together with others.
    fn hold_back(
        &mut self,
        row: &mut Row,
        number: Option<u64>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        // The following rows count from the number that it sets.
        self.pass_number(row, execution)?;
        self.pending.push(row, number);
        if self.pending.is_full() { self.write_pending(execution) } else { Ok(()) }
    }

    /// Writes all rows that were held back.
    fn write_pending(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let rows = self.pending.take();
        if rows.is_empty() {
            return Ok(());
        }
        match self.try_insert_all(&rows, execution)? {
            Ok(()) => {
                self.inserted += rows.len() as u64;
                rows.iter().for_each(|(row, number)| self.note_inserted(*number, row));
            }
            Err(error) if error.may_concern_one_row() => {
                // More of them may follow.
                self.holds_back = false;
                // Rows after one that is left out already have their numbers.
                let next = self.numbers.next();
                for (row, number) in &rows {
                    self.write_row(row, *number, execution)?;
                }
                self.numbers.give_back(next);
            }
            Err(error) => return Err(from_rows(error)),
        }
        self.pending.give_back(rows);
        Ok(())
    }

    /// Inserts all rows or none.
    fn try_insert_all(
        &self,
        rows: &[(Row, Option<u64>)],
        execution: &mut Execution<'_>,
    ) -> Result<std::result::Result<(), RowsError>> {
        let mut stored = Vec::with_capacity(rows.len() * self.plan.table.ordinals());
        for (row, _) in rows {
            extend_stored(row, &self.table, execution.context, &mut stored)?;
        }
        let values: Vec<ValueRef<'_>> = stored.iter().map(Fitted::as_ref).collect();
        let inserted = execution.data.transaction.insert_rows(&self.table, &values);
        if inserted.is_ok() {
            execution.measures.rows.inserted += rows.len() as u64;
        }
        Ok(inserted)
    }

    fn write_row(
        &mut self,
        row: &Row,
        number: Option<u64>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let ignores = self.plan.ignore && self.foreign_keys.is_child();
        let before = ignores.then(|| execution.data.transaction.savepoint());
        let inserted_before = self.inserted;
        let error = match self.write(row, execution) {
            Ok(Written::Inserted) => {
                self.note_inserted(number, row);
                return Ok(());
            }
            Ok(Written::Met { id }) => {
                self.note_left_out(number, id);
                return Ok(());
            }
            Err(error) => error,
        };
        self.or_ignored(error, execution)?;
        self.note_left_out(number, self.id_of(row));
        if let Some(before) = before {
            execution.data.transaction.rollback_to(before).map_err(from_rows)?;
        }
        self.inserted = inserted_before;
        Ok(())
    }

    /// Turns an error about a row into a warning if the statement continues without the row.
    fn or_ignored(&mut self, error: SqlError, execution: &mut Execution<'_>) -> Result<()> {
        if !self.plan.ignore || !is_ignorable(&error) {
            return Err(error);
        }
        // Only a duplicate counts as a record, whatever happens to it: other rows are refused
        // before they are written.
        let is_record = error.kind == ErrorKind::DuplicateKey || self.has_met_duplicate;
        self.records -= u64::from(!is_record);
        execution.context.warn(error.code, || error.message.clone());
        Ok(())
    }

    /// Assembles the row as it will be stored; returns the number that was generated for it.
    fn build(
        &mut self,
        given: &mut dyn Given,
        row: &mut Row,
        execution: &mut Execution<'_>,
    ) -> Result<Option<u64>> {
        row.clear();
        row.resize(self.plan.table.ordinals(), Datum::Null);
        let mut defaults: SmallVec<[&'p ColumnModel; 8]> = SmallVec::new();
        let mut wants_number = self.omits_number();
        for (number, ordinal) in self.plan.columns.iter().enumerate() {
            let Some(column) = self.plan.table.by_ordinal(*ordinal) else { continue };
            if given.is_missing(number) && column.generated.is_none() {
                let value = value_of_missing(column, execution)?;
                wants_number |= column.auto_increment && asks_for_next(&value, execution.context);
                row[usize::from(*ordinal)] = value;
                continue;
            }
            match given.take(number) {
                None if column.generated.is_some() => {}
                None if column.auto_increment => wants_number = true,
                None => self.default_or_later(column, true, row, &mut defaults, execution)?,
                Some(_) if column.generated.is_some() => {
                    return Err(generated_given(column, &self.plan.table));
                }
                Some(Datum::Null) if column.auto_increment => wants_number = true,
                Some(Datum::Null) if !column.ty.nullable => {
                    let nulls = given.nulls().unwrap_or_else(|| self.nulls());
                    let value = nulls.value(column, self.row_number, execution)?;
                    row[usize::from(*ordinal)] = value;
                }
                Some(value) => {
                    let from = Assigned { ty: given.ty(number), source: self.source_of(number) };
                    let value = assign_owned(value, from, column, self.row_number, execution)?;
                    if column.auto_increment {
                        wants_number |= asks_for_next(&value, execution.context);
                        if let Some(number) = positive(&value) {
                            self.numbers.pass(number, execution);
                        }
                    }
                    row[usize::from(*ordinal)] = value;
                }
            }
        }
        for column in self.omitted.iter().copied().filter(|column| !column.auto_increment) {
            // For columns that the statement leaves out there is one warning, not one for each row.
            let warns = self.row_number <= 1;
            match given.lets_defaults_lack() && lacks_default(column) {
                true => row[usize::from(column.ordinal)] = cast::implicit_default(&column.ty),
                false => self.default_or_later(column, warns, row, &mut defaults, execution)?,
            }
        }
        given.converted(execution.context)?;
        self.fill_defaults(&defaults, row, execution)?;
        self.finish(row, execution)?;
        // A row that is refused until then takes no number. Nothing in it depends on the number.
        if wants_number { self.generate(row, execution) } else { Ok(None) }
    }

    fn omits_number(&self) -> bool {
        let column = self.plan.table.auto_increment;
        column.is_some_and(|ordinal| !self.plan.columns.contains(&ordinal))
    }

    fn default_expression(&self, ordinal: u16) -> Option<&'p Expression> {
        let mut defaults = self.plan.defaults.iter();
        defaults.find(|(of, _)| *of == ordinal).map(|(_, expression)| expression)
    }

    /// Gives a column its default. A default that is an expression over the row is evaluated when
    /// the other values are there.
    fn default_or_later(
        &self,
        column: &'p ColumnModel,
        warns: bool,
        row: &mut Row,
        later: &mut SmallVec<[&'p ColumnModel; 8]>,
        execution: &Execution<'_>,
    ) -> Result<()> {
        match self.default_expression(column.ordinal) {
            Some(_) => later.push(column),
            None => row[usize::from(column.ordinal)] = default_with(column, warns, execution)?,
        }
        Ok(())
    }

    /// What happens to NULL in columns that cannot be NULL.
    fn nulls(&self) -> Nulls<'_> {
        match self.is_single_row && !self.plan.ignore {
            true => Nulls::Refused,
            false => Nulls::Once(&self.warned_of_null),
        }
    }

    /// Evaluates defaults that are expressions over the row.
    fn fill_defaults(
        &self,
        columns: &[&'p ColumnModel],
        row: &mut Row,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        for column in columns {
            if let Some(expression) = self.default_expression(column.ordinal) {
                fill_slots(&self.plan.old_row, row, execution);
                let value = assign_expression(expression, column, self.row_number, execution)?;
                row[usize::from(column.ordinal)] = value;
            }
        }
        Ok(())
    }

    /// Evaluates generated columns and checks the constraints.
    fn finish(&self, row: &mut Row, execution: &mut Execution<'_>) -> Result<()> {
        if self.plan.generated.is_empty() && self.plan.checks.is_empty() {
            return Ok(());
        }
        fill_slots(&self.plan.old_row, row, execution);
        for (ordinal, expression) in &self.plan.generated {
            let Some(column) = self.plan.table.by_ordinal(*ordinal) else { continue };
            let value = assign_expression(expression, column, self.row_number, execution)?;
            row[usize::from(*ordinal)] = value;
            fill_slots(&self.plan.old_row, row, execution);
        }
        look_at_checks(&self.plan.checks, execution)
    }

    /// Puts the next number in the row's `AUTO_INCREMENT` column.
    fn generate(&mut self, row: &mut Row, execution: &mut Execution<'_>) -> Result<Option<u64>> {
        let Some(ordinal) = self.plan.table.auto_increment else { return Ok(None) };
        let Some(column) = self.plan.table.by_ordinal(ordinal) else { return Ok(None) };
        let greatest = greatest_number(&column.ty);
        let number = self.numbers.take(&self.table, greatest, execution)?;
        let value = assign(
            &Datum::UInt(number),
            Assigned::of_type(&SqlType::bigint_unsigned()),
            column,
            self.row_number,
            execution,
        );
        row[usize::from(ordinal)] = value?;
        Ok(Some(number))
    }

    /// Remembers the number of a row that was inserted.
    fn note_inserted(&mut self, generated: Option<u64>, row: &Row) {
        if let Some(number) = generated {
            self.numbers.first_generated.get_or_insert(number);
        }
        self.numbers.last_id = self.id_of(row);
    }

    /// Notes that a row was not inserted; the client gets `id` instead.
    fn note_left_out(&mut self, generated: Option<u64>, id: u64) {
        if let Some(number) = generated {
            self.numbers.give_back(number);
        }
        self.numbers.last_id = id;
    }

    fn id_of(&self, row: &Row) -> u64 {
        self.plan.table.auto_increment.map_or(0, |ordinal| reported_id(&row[usize::from(ordinal)]))
    }

    /// Writes a row, handling existing rows as the plan says.
    fn write(&mut self, row: &Row, execution: &mut Execution<'_>) -> Result<Written> {
        // A row without its parents is refused before it meets a duplicate.
        self.check_parents(row, false, execution)?;
        for _ in 0..MOST_RETRIES {
            let refused = match self.try_insert(row, execution) {
                Ok(()) => {
                    self.inserted += 1;
                    self.pass_number(row, execution)?;
                    self.check_parents(row, true, execution)?;
                    return Ok(Written::Inserted);
                }
                Err(refused) => refused,
            };
            let Refusal::Duplicate { index, key, error } = refused else {
                return Err(refused.into());
            };
            match &self.plan.duplicates {
                DuplicatePolicy::Refuse => return Err(error),
                DuplicatePolicy::Replace => {
                    if self.replace(row, index, &key, execution)? {
                        return Ok(Written::Inserted);
                    }
                }
                DuplicatePolicy::Update(assignments) => {
                    self.pass_number(row, execution)?;
                    let met = self.update(assignments, row, index, &key, execution)?;
                    if let Some(id) = met {
                        return Ok(Written::Met { id });
                    }
                }
            }
        }
        Err(SqlError::lock_wait_timeout())
    }

    fn try_insert(
        &self,
        row: &Row,
        execution: &mut Execution<'_>,
    ) -> std::result::Result<(), Refusal> {
        let stored = stored_row(row, &self.table, execution.context).map_err(Refusal::Other)?;
        let values: SmallVec<[ValueRef<'_>; 16]> = stored.iter().map(Fitted::as_ref).collect();
        let inserted = execution.data.transaction.insert(&self.table, &values);
        execution.measures.rows.inserted += u64::from(inserted.is_ok());
        inserted.map_err(|error| {
            let mut value = |ordinal: u16| row[usize::from(ordinal)].clone();
            refusal(error, &self.plan.table, &mut value, execution.context)
        })
    }

    /// Reports to the counter a number that the statement set itself.
    fn pass_number(&self, row: &Row, execution: &mut Execution<'_>) -> Result<()> {
        let Some(ordinal) = self.plan.table.auto_increment else { return Ok(()) };
        match positive(&row[usize::from(ordinal)]) {
            Some(number) if !self.numbers.is_own(number) => {
                execution.data.node.pass_auto_increment(&self.table, number).map_err(from_rows)
            }
            _ => Ok(()),
        }
    }

    fn check_parents(
        &mut self,
        row: &Row,
        in_own_table: bool,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        if !self.foreign_keys.is_child() {
            return Ok(());
        }
        let stored = stored_row(row, &self.table, execution.context)?;
        let value = |ordinal: u16| stored[usize::from(ordinal)].as_ref();
        self.foreign_keys.check_parents_of_new(&value, in_own_table, execution)
    }

    /// Reads the row with a key of a unique index; false if it is gone by now.
    fn find(
        &self,
        index: Option<usize>,
        key: &[u8],
        execution: &mut Execution<'_>,
        found: &mut (Vec<u8>, Vec<u8>),
    ) -> Result<bool> {
        let mode = ReadMode::Update(WaitPolicy::Wait);
        let (primary_key, payload) = found;
        let is_there = match index {
            None => {
                primary_key.extend_from_slice(key);
                execution.data.transaction.get(&self.table, key, mode, payload)
            }
            Some(index) => {
                let table = &self.table;
                execution.data.transaction.get_by_entry(
                    table,
                    index,
                    key,
                    mode,
                    primary_key,
                    payload,
                )
            }
        };
        is_there.map_err(from_rows)
    }

    /// `REPLACE`: deletes the conflicting row. True if that row is already equal and no other row
    /// can conflict: then it stays, and counts as inserted.
    fn replace(
        &mut self,
        row: &Row,
        index: Option<usize>,
        key: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<bool> {
        let mut found = (Vec::new(), Vec::new());
        if !self.find(index, key, execution, &mut found)? {
            return Ok(false);
        }
        let (key, payload) = &found;
        let new = stored_row(row, &self.table, execution.context)?;
        if self.has_one_unique_key() && self.is_stored(&new, payload, execution)? {
            self.inserted += 1;
            return Ok(true);
        }
        execution.data.transaction.delete(&self.table, key, payload).map_err(from_rows)?;
        execution.measures.rows.deleted += 1;
        let value = |ordinal: u16| new[usize::from(ordinal)].as_ref();
        self.foreign_keys.after_replace(&self.table, payload, &value, execution)?;
        self.deleted += 1;
        Ok(false)
    }

    fn has_one_unique_key(&self) -> bool {
        self.plan.table.indexes.iter().filter(|index| index.unique || index.primary).count() == 1
    }

    /// Whether a stored row has the values of a new one.
    fn is_stored(
        &self,
        new: &[Fitted<'_>],
        payload: &[u8],
        execution: &Execution<'_>,
    ) -> Result<bool> {
        let written = self.plan.table.columns.iter().filter(|column| column.generated.is_none());
        for column in written {
            let old =
                stored_value(payload, column.ordinal, &self.table, &*execution.data.transaction)?;
            if old.as_ref() != new[usize::from(column.ordinal)].as_ref() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `ON DUPLICATE KEY UPDATE`: changes the conflicting row, and returns its new `AUTO_INCREMENT`
    /// value; `None` if it is gone by now.
    fn update(
        &mut self,
        assignments: &'p [Assignment],
        row: &Row,
        index: Option<usize>,
        key: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<Option<u64>> {
        self.has_met_duplicate = true;
        let mut found = (Vec::new(), Vec::new());
        if !self.find(index, key, execution, &mut found)? {
            return Ok(None);
        }
        let (key, payload) = &found;
        fill_slots(&self.plan.new_row, row, execution);
        fill_from_payload(&self.plan.old_row, &self.plan.table, &self.table, payload, execution)?;
        let of_query = !matches!(self.plan.source.root.kind, NodeKind::Values { .. });
        let nulls = match of_query && !self.plan.ignore {
            true => Nulls::Refused,
            false => self.nulls(),
        };
        let change = RowChange {
            model: &self.plan.table,
            assignments,
            in_turn: true,
            row: &self.plan.old_row,
            generated: &self.plan.generated,
            checks: &self.plan.checks,
            row_number: self.row_number,
            nulls,
        };
        let set = match change.work_out(&self.table, payload, execution)? {
            Change::None => {
                self.unchanged += 1;
                None
            }
            Change::Columns(changes) => {
                self.apply(&changes, key, payload, execution)?;
                self.updated += 1;
                let mut changes = changes.into_iter();
                changes.find(|(of, _)| Some(*of) == self.plan.table.auto_increment)
            }
        };
        self.id_met(set.map(|(_, value)| value), payload, execution).map(Some)
    }

    /// The `AUTO_INCREMENT` value of a row with these bytes, unless the statement has set another
    /// one.
    fn id_met(
        &mut self,
        set: Option<Datum>,
        payload: &[u8],
        execution: &Execution<'_>,
    ) -> Result<u64> {
        let Some(ordinal) = self.plan.table.auto_increment else { return Ok(0) };
        if let Some(value) = set {
            positive(&value).into_iter().for_each(|number| self.numbers.pass(number, execution));
            return Ok(reported_id(&value));
        }
        let transaction = &*execution.data.transaction;
        Ok(match stored_value(payload, ordinal, &self.table, transaction)?.as_ref() {
            ValueRef::Int(number) => number as u64,
            ValueRef::UInt(number) => number,
            ValueRef::Float(number) => number as i64 as u64,
            ValueRef::Double(number) => number as i64 as u64,
            _ => 0,
        })
    }

    fn apply(
        &mut self,
        changes: &Changes,
        key: &[u8],
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let plan = self.plan;
        let keys = &mut self.foreign_keys;
        super::update::update_row(&plan.table, &self.table, keys, key, payload, changes, execution)
            .map_err(SqlError::from)
    }

    fn outcome(self, execution: &Execution<'_>) -> Outcome {
        let duplicates = match self.plan.ignore {
            true => self.records.saturating_sub(self.inserted + self.updated),
            false => self.deleted + self.updated,
        };
        let warnings = execution.context.warning_count();
        let info = match self.is_single_row {
            true => String::new(),
            false => {
                format!("Records: {}  Duplicates: {duplicates}  Warnings: {warnings}", self.records)
            }
        };
        let affected = self.inserted + self.deleted + 2 * self.updated;
        let of_query = !matches!(self.plan.source.root.kind, NodeKind::Values { .. });
        let may_update = matches!(self.plan.duplicates, DuplicatePolicy::Update(_));
        // MySQL reports no number of a query's row if the statement may update existing rows.
        let is_reported = affected > 0 && !(of_query && may_update);
        let given = if is_reported { self.numbers.last_id } else { 0 };
        Outcome {
            affected,
            found: affected + self.unchanged,
            last_insert_id: self.numbers.first_generated.unwrap_or(given),
            session_last_insert_id: self.numbers.first_generated,
            warnings,
            info,
        }
    }
}

/// The largest number that an `AUTO_INCREMENT` column can have.
fn greatest_number(ty: &SqlType) -> u64 {
    match ty.kind {
        TypeKind::Integer { width, unsigned } => {
            let bits = 8 * width.bytes() as u32 - u32::from(!unsigned);
            u64::MAX >> (64 - bits)
        }
        _ => u64::MAX,
    }
}

/// Puts a row's values in slots.
pub(super) fn fill_slots(slots: &[(u16, Slot)], row: &Row, execution: &mut Execution<'_>) {
    for (ordinal, slot) in slots {
        execution.frame.slots[slot.0 as usize] = row[usize::from(*ordinal)].clone();
    }
}

/// A row in the node's form.
fn stored_row<'r>(
    row: &'r Row,
    table: &TableRef,
    context: &EvaluationContext,
) -> Result<SmallVec<[Fitted<'r>; 16]>> {
    let mut stored = SmallVec::new();
    extend_stored(row, table, context, &mut stored)?;
    Ok(stored)
}

/// Adds a row's values in the node's form.
fn extend_stored<'r>(
    row: &'r Row,
    table: &TableRef,
    context: &EvaluationContext,
    stored: &mut impl Extend<Fitted<'r>>,
) -> Result<()> {
    for (value, column) in row.iter().zip(&table.definition().columns) {
        stored.extend([store(value, column.column_type, context)?]);
    }
    Ok(())
}

/// Evaluates the checks of the row in the frame.
pub(super) fn look_at_checks(checks: &[RowCheck], execution: &mut Execution<'_>) -> Result<()> {
    for check in checks {
        let truth = check.condition.truth(execution)?;
        match &check.of {
            CheckedBy::Constraint(name) if truth == Some(false) => {
                let message = format!("Check constraint '{name}' is violated.");
                return Err(SqlError::row_refused(3819, message));
            }
            CheckedBy::View(view) if truth != Some(true) => {
                return Err(SqlError::row_refused(1369, format!("CHECK OPTION failed '{view}'")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn generated_given(column: &ColumnModel, table: &TableModel) -> SqlError {
    let (column, table) = (&column.name, &table.name);
    SqlError::new(
        3105,
        format!(
            "The value specified for generated column '{column}' in table '{table}' is not allowed."
        ),
    )
}
