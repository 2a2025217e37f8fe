//! `ALTER TABLE` that rewrites all rows.
//!
//! ```text
//!   definitions 1   create `#sql-…` in the new shape                           commit
//!   definitions 2   lock the old table, to be dropped                          ┐
//!                   read it by one snapshot, write the new one batch by batch  │ no writes to the
//!                   the new one takes the old one's name                       ┘ old one   commit
//! ```
//!
//! Readers continue with the old table until the second change commits. A failure on the way drops
//! the new table; leftovers of a crash are removed at the next start. Where a row keeps its primary
//! key, writers also continue while the rows are copied, see [`follow`](super::follow).

use std::sync::Arc;

use firn_api::rows::{
    BuildProgress, Fetched, HeldLeaves, IsolationLevel, MetadataLock, ReadMode, RowContent,
    RowsError, Scan, ScanOptions, TableRef, Transaction, WaitPolicy, cell_value,
};
use firn_base::{IndexId, TableId};
use firn_format::definition::IndexKind;
use firn_format::row::{RowError, RowView};
use firn_format::value::{Value, ValueRef};
use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::{Datum, EvaluationContext};

use super::super::lookup::copy_name;
use super::super::model::{ColumnModel, DefaultValue, IndexPartModel, TableModel};
use super::alter::{Name, table_changed};
use super::follow::Follower;
use super::seen_leaves::SeenLeaves;
use super::table_builder::TableDraft;
use super::{
    DdlContext, RowExpression, alter_actions, default, from_rows, is_temporary_table, rename,
    validate, values,
};

/// Rows that are written in one transaction: no other session sees their table.
const BATCH_ROWS: u64 = 5_000;

/// Replaces `table` by a table of the draft's shape, with its rows. Returns their number.
///
/// # Errors
/// Rows that do not fit the new shape, locks that were not granted, and errors of the node. The old
/// table is then unchanged.
pub(super) fn copy_table(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    after: &TableDraft,
    target: &Name,
    writers: Writers,
) -> Result<u64> {
    if writers == Writers::Wait {
        context.lock(table, MetadataLock::NoWrite)?;
    }
    let id = create_copy(context, table, after)?;
    let copied = match writers {
        Writers::Wait => swap(context, table, after, target, id, |new| {
            let mut reader = snapshot(context)?;
            Copy::new(context, table, after, new)?.copy_all(&mut *reader, None)
        }),
        Writers::GoOn => copy_beside_writers(context, table, after, target, id),
    };
    if copied.is_err() {
        // The client gets the statement's own error; leftovers are removed at the next start.
        let _ = drop_copy(context, id);
    }
    copied
}

/// What writers of a table do while its rows are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writers {
    /// They wait until the new table is in place.
    Wait,
    /// They continue, and wait only while the last changes are carried over.
    GoOn,
}

/// Copies the rows, carries over concurrent changes until few are left, and the rest with writers
/// shut out.
fn copy_beside_writers(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    after: &TableDraft,
    target: &Name,
    id: TableId,
) -> Result<u64> {
    let new = context.catalog.shared().table_by_id(id)?.ok_or_else(table_changed)?;
    let copy = Copy::new(context, table, after, &new)?;
    let mut reader = snapshot(context)?;
    let mut seen = SeenLeaves::default();
    let rows = copy.copy_all(&mut *reader, Some(&mut seen))?;
    let mut follower = Follower::new(&copy, reader, seen);
    follower.catch_up()?;
    context.lock(table, MetadataLock::NoWrite)?;
    swap(context, table, after, target, id, |_| follower.carry_over().map(|_| rows))
}

/// A transaction that sees the rows as they are now.
pub(super) fn snapshot(context: &DdlContext<'_>) -> Result<Box<dyn Transaction>> {
    let mut reader = context.begin(IsolationLevel::RepeatableRead)?;
    reader.open_snapshot();
    Ok(reader)
}

fn create_copy(
    context: &DdlContext<'_>,
    table: &TableModel,
    after: &TableDraft,
) -> Result<TableId> {
    let mut definition = after.renumbered().definition()?;
    definition.schema_name = table.table.definition().schema_name.clone();
    definition.name = match is_temporary_table(table) {
        true => context.catalog.next_temporary_number().to_string(),
        false => {
            let version = table.table.definition().schema_version;
            copy_name(context.catalog.shared().owner(), table.id, version)
        }
    };
    let mut definitions = context.definitions()?;
    let id = definitions.create_table(definition).map_err(from_rows)?;
    definitions.commit().map_err(from_rows)?;
    Ok(id)
}

fn drop_copy(context: &DdlContext<'_>, id: TableId) -> Result<()> {
    let mut definitions = context.clean_up()?;
    definitions.drop_table(id).map_err(from_rows)?;
    definitions.commit().map_err(from_rows)
}

fn swap(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    after: &TableDraft,
    target: &Name,
    id: TableId,
    fill: impl FnOnce(&Arc<TableModel>) -> Result<u64>,
) -> Result<u64> {
    let node = context.catalog.shared().node();
    let mut definitions = context.definitions()?;
    definitions.drop_table(table.id).map_err(from_rows)?;
    let version = |table: &TableRef| table.definition().schema_version;
    let now = node.table(table.id).map_err(from_rows)?.ok_or_else(table_changed)?;
    if version(&now) != version(&table.table) {
        return Err(table_changed());
    }
    let new = context.catalog.shared().table_by_id(id)?.ok_or_else(table_changed)?;
    let rows = fill(&new)?;
    validate::new_constraints_of_copy(context, table, after, &new)?;
    carry_counter(context, table, after, &new)?;
    // No session uses either of the two while they are exchanged.
    context.lock(&new, MetadataLock::Exclusive)?;
    context.lock(table, MetadataLock::Exclusive)?;
    let before = (Arc::clone(&table.schema), Arc::clone(&table.name));
    if is_temporary_table(table) {
        rename::change_options(&mut *definitions, id, &mut |options| {
            options.temporary = Some(target.clone());
        })?;
    } else {
        definitions.replace_table(id, &target.0, &target.1).map_err(from_rows)?;
    }
    alter_actions::tell_renamed_columns(context, &mut *definitions, table, after)?;
    if before != *target && !is_temporary_table(table) {
        rename::tell_children(context, &mut *definitions, &before, target)?;
    }
    definitions.commit().map_err(from_rows)?;
    if is_temporary_table(table) {
        context.catalog.remove_temporary(&before.0, &before.1);
        context.catalog.put_temporary(&target.0, &target.1, id);
    }
    Ok(rows)
}

/// The new table's counter continues where the old one was, or starts where the statement says.
fn carry_counter(
    context: &DdlContext<'_>,
    table: &TableModel,
    after: &TableDraft,
    new: &TableModel,
) -> Result<()> {
    let node = context.catalog.shared().node();
    if new.auto_increment.is_none() {
        return Ok(());
    }
    if let Some(start) = after.auto_increment_start {
        return super::set_auto_increment(context, new, start);
    }
    if table.auto_increment.is_some() {
        let next = node.next_auto_increment(&table.table).map_err(from_rows)?;
        super::set_auto_increment(context, new, next)?;
    }
    Ok(())
}

/// The source of a new table's column.
enum Source {
    /// A column of the old table, as it is stored.
    Same(u16),
    /// A column of the old table, assigned to the new one.
    Assigned(u16),
    /// The same value for all rows.
    Constant(Value),
    /// Computed from the row's other columns.
    Computed(Box<dyn RowExpression>),
    Counter,
}

/// A copy in progress.
pub(super) struct Copy<'a> {
    pub(super) context: &'a DdlContext<'a>,
    pub(super) old: &'a TableModel,
    pub(super) new: &'a Arc<TableModel>,
    /// By ordinal of the new table.
    sources: Vec<Source>,
    /// The statement's context, strict.
    evaluation: EvaluationContext,
    checks: Vec<(Arc<str>, Box<dyn RowExpression>)>,
    /// The hidden row ids of both tables, if neither has a primary key: rows keep theirs.
    row_ids: Option<(u16, usize)>,
    /// Whether rows have to be decoded for expressions.
    needs_datums: bool,
}

impl<'a> Copy<'a> {
    fn new(
        context: &'a DdlContext<'a>,
        old: &'a TableModel,
        after: &TableDraft,
        new: &'a Arc<TableModel>,
    ) -> Result<Copy<'a>> {
        let mut sources = Vec::with_capacity(after.columns.len());
        for (draft, column) in after.columns.iter().zip(0..) {
            let column = new.by_ordinal(column).ok_or_else(table_changed)?;
            sources.push(source(context, old, draft, column, new)?);
        }
        let checks = new.checks.iter().filter(|check| check.enforced).map(|check| {
            Ok((Arc::clone(&check.name), context.expressions.bind(new, &check.text)?))
        });
        let checks: Vec<_> = checks.collect::<Result<_>>()?;
        let computes = |source: &Source| matches!(source, Source::Computed(_));
        Ok(Copy {
            context,
            old,
            new,
            needs_datums: !checks.is_empty() || sources.iter().any(computes),
            row_ids: row_id_ordinal(old)
                .zip(row_id_ordinal(new))
                .map(|(old, new)| (old, usize::from(new))),
            sources,
            evaluation: default::strict_context(context.evaluation),
            checks,
        })
    }

    /// Writes to the new table, in batches.
    pub(super) fn writer(&self) -> Writer<'_> {
        Writer {
            context: self.context,
            table: self.new,
            evaluation: &self.evaluation,
            trx: None,
            rows: 0,
        }
    }

    /// Writes all rows that `reader` sees to the new table, which is empty. Returns their number,
    /// and notes in which leaves they were.
    fn copy_all(
        &self,
        reader: &mut dyn Transaction,
        mut seen: Option<&mut SeenLeaves>,
    ) -> Result<u64> {
        let estimate = self.old.statistics.rows();
        let from = reader.table_for_read(self.old.id).map_err(from_rows)?;
        let mut scan = full_scan(reader, &from)?;
        let mut writer = self.writer();
        let mut row = 0;
        while let Fetched::Rows(leaf) =
            scan.fetch_unless_held(reader, HeldLeaves::No).map_err(from_rows)?
        {
            if let Some(seen) = &mut seen {
                seen.push_batch(leaf, &*scan);
            }
            for number in 0..scan.len() {
                row += 1;
                let RowContent::Payload(payload) = scan.row(number).content else {
                    return Err(table_changed());
                };
                let values = self.values(reader, &from, payload, row)?;
                writer.insert(&values)?;
            }
            let progress = BuildProgress { rows_done: row, rows_estimated: estimate };
            if !(self.context.progress)(progress) {
                return Err(from_rows(RowsError::Cancelled));
            }
        }
        writer.commit()?;
        Ok(row)
    }

    /// The new table's row for a row of the old table.
    pub(super) fn values(
        &self,
        reader: &dyn Transaction,
        from: &TableRef,
        payload: &[u8],
        row: u64,
    ) -> Result<Vec<Value>> {
        let view = RowView::parse(&from.layout().row, payload).map_err(damaged)?;
        let mut values = Vec::with_capacity(self.sources.len());
        for (source, ordinal) in self.sources.iter().zip(0_u16..) {
            values.push(match source {
                Source::Same(column) => read(reader, from, &view, *column)?,
                Source::Assigned(column) => {
                    let stored = read(reader, from, &view, *column)?;
                    self.assigned(*column, ordinal, &stored).map_err(|error| at_row(error, row))?
                }
                Source::Constant(value) => value.clone(),
                Source::Computed(_) => Value::Null,
                Source::Counter => self.counted(row),
            });
        }
        if self.needs_datums {
            self.compute(&mut values)?;
        }
        // The engine fills in its own columns.
        values.resize(self.new.ordinals(), Value::Null);
        if let Some((old, new)) = self.row_ids {
            values[new] = read(reader, from, &view, old)?;
        }
        Ok(values)
    }

    fn counted(&self, row: u64) -> Value {
        let unsigned = self.new.auto_increment.and_then(|ordinal| self.new.by_ordinal(ordinal));
        match unsigned {
            Some(column) if column.ty.kind.is_unsigned() => Value::UInt(row),
            Some(column) if !column.ty.kind.is_integer() => Value::Double(row as f64),
            _ => Value::Int(row as i64),
        }
    }

    fn assigned(&self, from: u16, to: u16, stored: &Value) -> Result<Value> {
        let (Some(from), Some(to)) = (self.old.by_ordinal(from), self.new.by_ordinal(to)) else {
            return Err(table_changed());
        };
        if stored.is_null() {
            return match to.ty.nullable {
                true => Ok(Value::Null),
                false => Err(SqlError::new(1138, "Invalid use of NULL value")),
            };
        }
        let datum = values::from_value(stored.as_ref(), from, &self.evaluation)?;
        let datum = values::assign(&datum, &from.ty, to, &self.evaluation)?;
        values::to_value(&datum, to, &self.evaluation)
    }

    /// Evaluates generated columns in order, then checks the row.
    fn compute(&self, row: &mut [Value]) -> Result<()> {
        let mut datums = vec![Datum::Null; self.new.ordinals()];
        for (value, ordinal) in row.iter().zip(0..) {
            if let Some(column) = self.new.by_ordinal(ordinal) {
                let datum = values::from_value(value.as_ref(), column, &self.evaluation)?;
                datums[usize::from(ordinal)] = datum;
            }
        }
        for (source, ordinal) in self.sources.iter().zip(0..) {
            let (Source::Computed(expression), Some(column)) =
                (source, self.new.by_ordinal(ordinal))
            else {
                continue;
            };
            let datum = expression.evaluate(&datums, &self.evaluation)?;
            let datum = values::assign(&datum, expression.ty(), column, &self.evaluation)?;
            row[usize::from(ordinal)] = values::to_value(&datum, column, &self.evaluation)?;
            datums[usize::from(ordinal)] = datum;
        }
        for (name, check) in &self.checks {
            if validate::is_false(&check.evaluate(&datums, &self.evaluation)?) {
                return Err(validate::violated(name));
            }
        }
        Ok(())
    }
}

/// The column that clusters the rows of a table without a primary key.
fn row_id_ordinal(table: &TableModel) -> Option<u16> {
    let definition = table.table.definition();
    let clustered = definition.indexes.iter().find(|index| index.kind == IndexKind::Clustered)?;
    let ordinal = clustered.parts.first()?.column;
    definition.columns.get(usize::from(ordinal))?.hidden.then_some(ordinal)
}

fn source(
    context: &DdlContext<'_>,
    old: &TableModel,
    draft: &ColumnModel,
    new: &ColumnModel,
    table: &Arc<TableModel>,
) -> Result<Source> {
    if let Some(generated) = &new.generated {
        return Ok(Source::Computed(context.expressions.bind(table, &generated.text)?));
    }
    if let Some(before) = old.by_ordinal(draft.ordinal) {
        return Ok(if before.ty == new.ty && before.float_limits() == new.float_limits() {
            Source::Same(before.ordinal)
        } else {
            Source::Assigned(before.ordinal)
        });
    }
    if new.auto_increment {
        return Ok(Source::Counter);
    }
    let datum = match &new.default {
        DefaultValue::Expression(text) => {
            return Ok(Source::Computed(context.expressions.bind(table, text)?));
        }
        DefaultValue::Literal(datum) => Some(datum.clone()),
        DefaultValue::CurrentTimestamp { fsp } => {
            Some(values::statement_time(context.evaluation, *fsp))
        }
        DefaultValue::None if !new.ty.nullable => values::implicit_default(&new.ty.kind),
        _ => None,
    };
    Ok(Source::Constant(match datum {
        Some(datum) => values::to_value(&datum, new, context.evaluation)?,
        None => Value::Null,
    }))
}

/// A scan of all rows in primary key order, as the transaction sees them.
pub(super) fn full_scan(trx: &mut dyn Transaction, table: &TableRef) -> Result<Box<dyn Scan>> {
    let options = ScanOptions::all();
    trx.scan(table, &options).map_err(from_rows)
}

/// A column of a row that was read.
pub(super) fn read(
    trx: &dyn Transaction,
    table: &TableRef,
    view: &RowView<'_>,
    ordinal: u16,
) -> Result<Value> {
    let mut buffer = Vec::new();
    let cell = view.column(usize::from(ordinal)).map_err(damaged)?;
    Ok(cell_value(trx, table, cell, &mut buffer).map_err(from_rows)?.to_value())
}

pub(super) fn damaged(error: RowError) -> SqlError {
    SqlError::new(1030, format!("Got error '{error}' from storage engine"))
}

/// Conversion errors name the row in which they occurred.
fn at_row(error: SqlError, row: u64) -> SqlError {
    if error.kind == ErrorKind::BadValue {
        let message = error.message.trim_end_matches(" at row 1");
        return SqlError { message: format!("{message} at row {row}"), ..error };
    }
    error
}

/// Writes the new table, one batch per transaction.
pub(super) struct Writer<'a> {
    context: &'a DdlContext<'a>,
    table: &'a TableModel,
    evaluation: &'a EvaluationContext,
    trx: Option<(Box<dyn Transaction>, TableRef)>,
    rows: u64,
}

impl<'a> Writer<'a> {
    /// The batch's transaction and the table in it, for one more row.
    fn batch(&mut self) -> Result<&mut (Box<dyn Transaction>, TableRef)> {
        if self.rows >= BATCH_ROWS {
            self.commit_batch()?;
        }
        self.rows += 1;
        match &mut self.trx {
            Some(open) => Ok(open),
            none => {
                let mut trx = self.context.begin(IsolationLevel::ReadCommitted)?;
                let table = trx.table_for_write(self.table.id).map_err(from_rows)?;
                Ok(none.insert((trx, table)))
            }
        }
    }

    /// Deletes the row with this primary key.
    pub(super) fn delete(&mut self, key: &[u8]) -> Result<()> {
        let mut payload = Vec::new();
        let (trx, table) = self.batch()?;
        let mode = ReadMode::Update(WaitPolicy::Wait);
        if trx.get(table, key, mode, &mut payload).map_err(from_rows)? {
            trx.delete(table, key, &payload).map_err(from_rows)?;
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, row: &[Value]) -> Result<()> {
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        let (trx, table) = self.batch()?;
        trx.insert(table, &values).map_err(|error| match error {
            RowsError::DuplicateKey { index, .. } => self.duplicate(index, row),
            other => from_rows(other),
        })
    }

    fn duplicate(&self, index: IndexId, row: &[Value]) -> SqlError {
        let definition = self.table.table.definition();
        let number = definition.indexes.iter().position(|other| other.index_id == index);
        let Some(index) = number.and_then(|number| self.table.index_numbered(number)) else {
            return SqlError::new(1062, "Duplicate entry");
        };
        let value = |part: &IndexPartModel| {
            let column = self.table.by_ordinal(part.ordinal)?;
            Some((row.get(usize::from(part.ordinal))?.clone(), column))
        };
        let values: Vec<_> = index.parts.iter().map(value).collect();
        values::duplicate_entry(self.table, &index.name, &values, self.evaluation)
    }

    fn commit_batch(&mut self) -> Result<()> {
        self.rows = 0;
        match self.trx.take() {
            Some((trx, _)) => {
                self.context.cancelled.while_confirming(|| trx.commit()).map_err(from_rows)
            }
            None => Ok(()),
        }
    }

    pub(super) fn commit(mut self) -> Result<()> {
        self.commit_batch()
    }
}
