//! Checks existing rows against new constraints.

use std::sync::Arc;

use firn_api::rows::{
    Direction, IsolationLevel, MetadataLock, ReadMode, RowContent, ScanOptions, TableRef,
    Transaction,
};
use firn_format::key::KeyLayout;
use firn_format::row::RowView;
use firn_format::value::{Value, ValueRef};
use firn_sql_types::Datum;
use firn_sql_types::error::{Result, SqlError};

use super::super::definition_text::foreign_key_text;
use super::super::filled_texts::FilledTexts;
use super::super::model::{CheckModel, ForeignKeyModel, TableModel};
use super::alter::table_changed;
use super::table_builder::TableDraft;
use super::{DdlContext, copy, default, foreign_key, from_rows, values};

/// Checks a locked table before it is replaced by a draft that leaves the rows unchanged. Returns
/// how many rows were looked at.
///
/// # Errors
/// 3819 for a row that violates a new check, 1452 for one without a parent.
pub(super) fn new_constraints(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    after: &TableDraft,
) -> Result<u64> {
    let is_new = |check: &&CheckModel| {
        check.enforced && !table.checks.iter().any(|old| old.name == check.name && old.enforced)
    };
    let checks: Vec<&CheckModel> = after.checks.iter().filter(is_new).collect();
    let mut rows = 0;
    if !checks.is_empty() {
        // New columns are constants that the checks may read: the draft has their names.
        rows = self::checks(context, table, after, &checks)?;
    }
    Ok(rows.max(foreign_keys(context, table, after, table)?))
}

/// The same for a table whose rows have been rewritten; its checks have already been evaluated.
pub(super) fn new_constraints_of_copy(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    after: &TableDraft,
    new: &Arc<TableModel>,
) -> Result<()> {
    let renumbered = after.renumbered();
    foreign_keys(context, table, &renumbered, new).map(|_| ())
}

/// Whether a condition refuses a row: false does, NULL does not.
pub(super) fn is_false(condition: &Datum) -> bool {
    match condition {
        Datum::Int(number) => *number == 0,
        Datum::UInt(number) => *number == 0,
        Datum::Double(number) => *number == 0.0,
        Datum::Decimal(number) => number.is_zero(),
        _ => false,
    }
}

/// `Check constraint 'c' is violated.`
pub(super) fn violated(name: &str) -> SqlError {
    SqlError::new(3819, format!("Check constraint '{name}' is violated."))
}

fn checks(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    after: &TableDraft,
    checks: &[&CheckModel],
) -> Result<u64> {
    let model = context.draft_model(after)?;
    let bound: Vec<_> = checks
        .iter()
        .map(|check| Ok((&check.name, context.expressions.bind(&model, &check.text)?)))
        .collect::<Result<_>>()?;
    let evaluation = default::strict_context(context.evaluation);
    each_row(context, table, |trx, from, view| {
        let mut row = Vec::with_capacity(after.columns.len());
        for column in &after.columns {
            row.push(match table.by_ordinal(column.ordinal) {
                Some(before) => {
                    let value = copy::read(trx, from, view, before.ordinal)?;
                    values::from_value(value.as_ref(), before, &evaluation)?
                }
                None => match &column.default {
                    super::super::model::DefaultValue::Literal(datum) => datum.clone(),
                    _ => Datum::Null,
                },
            });
        }
        for (name, check) in &bound {
            if is_false(&check.evaluate(&row, &evaluation)?) {
                return Err(violated(name));
            }
        }
        Ok(())
    })
}

/// Looks at each row, and returns how many there were.
fn each_row(
    context: &DdlContext<'_>,
    table: &TableModel,
    mut look: impl FnMut(&mut dyn Transaction, &TableRef, &RowView<'_>) -> Result<()>,
) -> Result<u64> {
    let mut trx = context.begin(IsolationLevel::RepeatableRead)?;
    let mut other = context.begin(IsolationLevel::RepeatableRead)?;
    trx.open_snapshot();
    other.open_snapshot();
    let from = trx.table_for_read(table.id).map_err(from_rows)?;
    let mut scan = copy::full_scan(&mut *trx, &from)?;
    let mut rows = 0;
    while scan.fetch(&mut *trx).map_err(from_rows)? {
        context.check_cancelled()?;
        rows += scan.len() as u64;
        for number in 0..scan.len() {
            let RowContent::Payload(payload) = scan.row(number).content else {
                return Err(table_changed());
            };
            let view = RowView::parse(&from.layout().row, payload).map_err(copy::damaged)?;
            look(&mut *other, &from, &view)?;
        }
    }
    Ok(rows)
}

/// Looks up the parent of every row of `rows`, whose columns have the draft's numbers. Returns how
/// many rows were looked at.
fn foreign_keys(
    context: &DdlContext<'_>,
    before: &TableModel,
    after: &TableDraft,
    rows: &Arc<TableModel>,
) -> Result<u64> {
    if !context.foreign_key_checks {
        return Ok(0);
    }
    let mut most = 0;
    let is_new =
        |key: &&ForeignKeyModel| !before.foreign_keys.iter().any(|old| old.name == key.name);
    for key in after.foreign_keys.iter().filter(is_new) {
        let is_self = is_own_key(key, before, after);
        let parent = match is_self {
            true => Some(Arc::clone(rows)),
            false => context.catalog.shared().find_table(&key.parent_schema, &key.parent_table)?,
        };
        let Some(parent) = parent else { continue };
        if !is_self {
            // Keeps the parent rows that were found for children.
            context.lock(&parent, MetadataLock::NoWrite)?;
        }
        most = most.max(one_foreign_key(context, after, rows, key, &parent)?);
    }
    Ok(most)
}

/// Whether a key refers to the table itself, under its old or its new name.
fn is_own_key(key: &ForeignKeyModel, before: &TableModel, after: &TableDraft) -> bool {
    let parent = (&key.parent_schema, &key.parent_table);
    parent == (&before.schema, &before.name) || parent == (&after.target.0, &after.target.1)
}

fn one_foreign_key(
    context: &DdlContext<'_>,
    after: &TableDraft,
    rows: &TableModel,
    key: &ForeignKeyModel,
    parent: &Arc<TableModel>,
) -> Result<u64> {
    let columns: Option<Vec<u16>> = key
        .parent_columns
        .iter()
        .map(|name| parent.column(name).map(|column| column.ordinal))
        .collect();
    let columns = columns.ok_or_else(table_changed)?;
    let index = parent.indexes.iter().find(|index| foreign_key::begins_with(index, &columns));
    let index = index.ok_or_else(table_changed)?;
    let number = (!index.primary).then_some(index.number);
    let layout = key_layout(&parent.table, number).ok_or_else(table_changed)?;
    let filled = FilledTexts::of(parent, &columns, rows, &key.columns);
    each_row(context, rows, |trx, from, view| {
        let mut child = Vec::with_capacity(key.columns.len());
        for ordinal in &key.columns {
            // A new column is NULL or a constant: the constant is checked when rows change.
            if rows.by_ordinal(*ordinal).is_none() {
                return Ok(());
            }
            child.push(copy::read(trx, from, view, *ordinal)?);
        }
        if child.iter().any(Value::is_null) {
            return Ok(());
        }
        let mut values: Vec<ValueRef<'_>> = child.iter().map(Value::as_ref).collect();
        let may_have_one = filled.as_of_parent(&mut values);
        if may_have_one && has_parent(trx, parent, number, layout, &values)? {
            return Ok(());
        }
        let message = format!(
            "Cannot add or update a child row: a foreign key constraint fails (`{}`.`{}`, {})",
            after.schema,
            after.name,
            foreign_key_text(key, &after.columns, &after.schema)
        );
        Err(SqlError::new(1452, message))
    })
}

/// The keys of an index by its number; `None` is the clustered one.
pub(super) fn key_layout(table: &TableRef, index: Option<usize>) -> Option<&KeyLayout> {
    let Some(number) = index else { return Some(&table.layout().clustered) };
    let id = table.definition().indexes.get(number)?.index_id;
    let mut secondary = table.layout().secondary.iter();
    secondary.find(|(other, _)| *other == id).map(|(_, layout)| layout.key())
}

fn has_parent(
    trx: &mut dyn Transaction,
    parent: &TableModel,
    index: Option<usize>,
    layout: &KeyLayout,
    child: &[ValueRef<'_>],
) -> Result<bool> {
    let table = trx.table_for_read(parent.id).map_err(from_rows)?;
    let unbounded = || std::ops::Bound::Unbounded;
    let range = layout.range(child, unbounded(), unbounded(), table.collations());
    let range = range
        .map_err(|error| SqlError::new(1030, format!("Got error '{error}' from storage engine")))?;
    let options = ScanOptions {
        index,
        range,
        direction: Direction::Forward,
        mode: ReadMode::Consistent,
        columns: Some([].into()),
        batch_rows: 1,
        filter: None,
        limit: None,
    };
    let mut scan = trx.scan(&table, &options).map_err(from_rows)?;
    while scan.fetch(trx).map_err(from_rows)? {
        if !scan.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
