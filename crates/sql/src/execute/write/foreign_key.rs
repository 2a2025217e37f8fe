//! Foreign keys: rows must have their parents, and rules say what happens to children when a parent
//! changes or is deleted.
//!
//! ```text
//!   INSERT child  ─► parent's index: a row with these values?  no ─► 1452
//!   DELETE parent ─► child's index: rows with these values?    RESTRICT ─► 1451
//!                                                              CASCADE  ─► DELETE child, and so on
//!                                                              SET NULL ─► UPDATE child, and so on
//! ```
//!
//! Parents are read with shared locks, changing children with exclusive ones, both in the current
//! version: rows that a snapshot does not see count as well. A cascade goes at most
//! [`MOST_CASCADES`] tables deep. `NO ACTION` is `RESTRICT`, as in InnoDB: nothing is deferred to
//! the end of the statement. A cascade that would update a table that an update above it has
//! changed is also treated as `RESTRICT`, since it might never end.

use crate::execute::Evaluate;
use std::sync::Arc;

use firn_api::rows::{
    Direction, ReadMode, RowContent, ScanOptions, TableRef, WaitPolicy, cell_value,
};
use firn_base::TableId;
use firn_format::definition::IndexKind;
use firn_format::key::KeyRange;
use firn_format::row::RowView;
use firn_format::value::{Value, ValueRef};
use smallvec::SmallVec;

use crate::bind::{BoundRowExpression, bind_row_expression};
use crate::catalog::filled_texts::FilledTexts;
use crate::catalog::model::{ForeignKeyModel, ReferencingKey, ReferentialAction, TableModel};
use crate::catalog::notation::identifier as quoted;
use crate::error::{Result, SqlError};
use crate::logical::PlanContext;
use crate::types::Datum;

use super::super::access::Fitted;
use super::super::error::{from_key, from_row, from_rows};
use super::super::{Execution, values};
use super::assign::{Assigned, assign};
use super::reread::read_again;
use super::row::{store, stored_value};

/// How deep a cascade goes.
const MOST_CASCADES: usize = 15;

type Values = SmallVec<[Value; 2]>;
type StoredChanges<'v> = [(usize, ValueRef<'v>)];

/// The foreign keys of a table that a statement writes.
pub(super) struct ForeignKeys {
    model: Arc<TableModel>,
    /// Those whose child is the table, with their parents.
    parents: Vec<Parent>,
    children: Children,
}

/// The change of a row that its children follow, and the changes that led to it.
#[derive(Clone, Copy)]
pub(super) struct Cause<'c> {
    table: TableId,
    /// It was an update; otherwise the row was deleted.
    updates: bool,
    /// How many cascades led to it.
    depth: usize,
    above: Option<&'c Cause<'c>>,
}

impl Cause<'_> {
    /// Whether the change, or one that led to it, updated a row of this table.
    fn updated(&self, table: TableId) -> bool {
        let mut cause = Some(self);
        while let Some(one) = cause {
            if one.updates && one.table == table {
                return true;
            }
            cause = one.above;
        }
        false
    }
}

/// Foreign keys whose parent is the table.
enum Children {
    /// Not looked up yet.
    Unknown,
    None,
    Known(Arc<[ReferencingKey]>),
}

/// A row's key and its bytes.
type KeyAndPayload = (Box<[u8]>, Box<[u8]>);

/// A table and its columns that a foreign key refers to.
struct ParentTable {
    table: TableRef,
    columns: SmallVec<[u16; 2]>,
    filled: FilledTexts,
}

struct Parent {
    /// The foreign key's place in the child's list.
    key: usize,
    /// The parent's table and columns; `None` if the table does not exist.
    table: Option<ParentTable>,
}

impl ForeignKeys {
    /// The foreign keys of a table; none if the session does not check them.
    pub(super) fn of(
        model: &Arc<TableModel>,
        execution: &mut Execution<'_>,
    ) -> Result<ForeignKeys> {
        let model = Arc::clone(model);
        if !execution.limits.foreign_key_checks {
            return Ok(ForeignKeys { model, parents: Vec::new(), children: Children::None });
        }
        let mut parents = Vec::new();
        for (key, foreign_key) in model.foreign_keys.iter().enumerate() {
            parents.push(Parent { key, table: parent_table(&model, foreign_key, execution)? });
        }
        let children = match execution.has_no_children() {
            true => Children::None,
            false => Children::Unknown,
        };
        Ok(ForeignKeys { model, parents, children })
    }

    /// Whether rows need parents.
    pub(super) fn is_child(&self) -> bool {
        !self.parents.is_empty()
    }

    /// Whether a change of a row may, through cascades, change a row of a table that meets the
    /// condition.
    pub(super) fn may_reach(
        &mut self,
        is_reached: &dyn Fn(TableId) -> bool,
        execution: &Execution<'_>,
    ) -> Result<bool> {
        let mut visited: SmallVec<[TableId; 4]> = SmallVec::new();
        let mut waiting: SmallVec<[Arc<[ReferencingKey]>; 4]> =
            self.children(execution)?.into_iter().collect();
        while let Some(children) = waiting.pop() {
            for child in children.iter().filter(|child| {
                let key = child.foreign_key();
                key.on_update.cascades() || key.on_delete.cascades()
            }) {
                let table = &child.child;
                if is_reached(table.id) {
                    return Ok(true);
                }
                if !visited.contains(&table.id) {
                    visited.push(table.id);
                    let catalog = execution.data.catalog.shared();
                    waiting.push(catalog.referencing(&table.schema, &table.name)?);
                }
            }
        }
        Ok(false)
    }

    /// Whether something follows an update of these columns: a look for parents, or changes of
    /// children.
    pub(super) fn follow_update(
        &mut self,
        changes: &dyn Fn(u16) -> bool,
        execution: &Execution<'_>,
    ) -> Result<bool> {
        let mut key_parts = self.model.primary_key().into_iter().flat_map(|key| &key.parts);
        let moves = key_parts.any(|part| changes(part.ordinal));
        let needs_parent =
            |key: &ForeignKeyModel| moves || key.columns.iter().any(|column| changes(*column));
        if self.parents.iter().any(|parent| needs_parent(&self.model.foreign_keys[parent.key])) {
            return Ok(true);
        }
        let Some(children) = self.children(execution)? else { return Ok(false) };
        Ok(children.iter().any(|child| {
            // A missing column is reported with the first change.
            let columns = parent_columns(&self.model, child.foreign_key());
            columns.map_or(true, |columns| columns.iter().any(|column| changes(*column)))
        }))
    }

    /// Whether something follows the deletion of a row.
    pub(super) fn follow_delete(&mut self, execution: &Execution<'_>) -> Result<bool> {
        Ok(self.children(execution)?.is_some())
    }

    /// A change of a row of this table, as the cause for changes of its children.
    fn cause<'c>(&self, updates: bool, above: Option<&'c Cause<'c>>) -> Cause<'c> {
        let depth = above.map_or(0, |above| above.depth + 1);
        Cause { table: self.model.id, updates, depth, above }
    }

    fn children(&mut self, execution: &Execution<'_>) -> Result<Option<Arc<[ReferencingKey]>>> {
        if let Children::Unknown = self.children {
            let model = &self.model;
            let found = execution.data.catalog.shared().referencing(&model.schema, &model.name)?;
            self.children = if found.is_empty() { Children::None } else { Children::Known(found) };
        }
        Ok(match &self.children {
            Children::Known(children) => Some(Arc::clone(children)),
            _ => None,
        })
    }

    /// Looks for the parents of a new row in other tables, or in its own table, where it may be its
    /// own parent.
    pub(super) fn check_parents_of_new<'v>(
        &self,
        value: &dyn Fn(u16) -> ValueRef<'v>,
        in_own_table: bool,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let is_wanted = |key: &ForeignKeyModel| self.is_own_parent(key) == in_own_table;
        self.check_parents(value, None, &is_wanted, execution)
    }

    /// Whether a key's parents are rows of the table itself.
    fn is_own_parent(&self, key: &ForeignKeyModel) -> bool {
        key.parent_schema == self.model.schema && key.parent_table == self.model.name
    }

    /// Looks for the parents of a row. `changed`: only for keys that include these ordinals.
    fn check_parents<'v>(
        &self,
        value: &dyn Fn(u16) -> ValueRef<'v>,
        changed: Option<&StoredChanges<'_>>,
        is_wanted: &dyn Fn(&ForeignKeyModel) -> bool,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        for parent in &self.parents {
            let foreign_key = &self.model.foreign_keys[parent.key];
            if !is_wanted(foreign_key) {
                continue;
            }
            let is_part = |(ordinal, _): &(usize, ValueRef<'_>)| {
                foreign_key.columns.iter().any(|column| usize::from(*column) == *ordinal)
            };
            // A row under another primary key is a new row.
            let moves = |changed: &StoredChanges<'_>| {
                let parts = self.model.primary_key().into_iter().flat_map(|key| &key.parts);
                let mut ordinals = parts.map(|part| usize::from(part.ordinal));
                ordinals.any(|ordinal| changed.iter().any(|(of, _)| *of == ordinal))
            };
            if changed.is_some_and(|changed| !changed.iter().any(is_part) && !moves(changed)) {
                continue;
            }
            let mut values: SmallVec<[ValueRef<'v>; 2]> =
                foreign_key.columns.iter().map(|column| value(*column)).collect();
            if values.iter().any(ValueRef::is_null) {
                continue;
            }
            let mode = ReadMode::Share(WaitPolicy::Wait);
            let found = match &parent.table {
                Some(ParentTable { table, columns, filled })
                    if filled.as_of_parent(&mut values) =>
                {
                    visit_rows(table, columns, &values, mode, execution, &mut |_, _| false)?
                }
                _ => 0,
            };
            if found == 0 {
                return Err(no_parent(&self.model, foreign_key));
            }
        }
        Ok(())
    }

    /// Looks for the parents, in other tables, of a row that is about to be updated.
    pub(super) fn before_update(
        &self,
        table: &TableRef,
        old: &[u8],
        changes: &StoredChanges<'_>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        if !self.is_child() {
            return Ok(());
        }
        let is_wanted = |key: &ForeignKeyModel| !self.is_own_parent(key);
        self.check_parents_of_update(table, old, changes, &is_wanted, execution)
    }

    /// Looks for the parents, in its own table, of a row that was updated, and does what its
    /// children's keys require. A row that follows its parent has had no other check before.
    pub(super) fn after_update(
        &mut self,
        table: &TableRef,
        old: &[u8],
        changes: &StoredChanges<'_>,
        above: Option<&Cause<'_>>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        if self.is_child() {
            let is_wanted = |key: &ForeignKeyModel| above.is_some() || self.is_own_parent(key);
            self.check_parents_of_update(table, old, changes, &is_wanted, execution)?;
        }
        let Some(children) = self.children(execution)? else { return Ok(()) };
        let cause = self.cause(true, above);
        for child in &*children {
            let columns = parent_columns(&self.model, child.foreign_key())?;
            let new = |ordinal: u16| {
                changes.iter().find(|(of, _)| *of == usize::from(ordinal)).map(|(_, value)| *value)
            };
            if columns.iter().all(|column| new(*column).is_none()) {
                continue;
            }
            let old_values = values_of(table, old, &columns, execution)?;
            let new_values: Values = columns
                .iter()
                .zip(&old_values)
                .map(|(column, old)| new(*column).map_or_else(|| old.clone(), |new| new.to_value()))
                .collect();
            if old_values == new_values || old_values.iter().any(Value::is_null) {
                continue;
            }
            let filled = self.filled(child, &columns);
            let [old, new] = [&old_values, &new_values].map(|of| filled.as_of_children(of));
            child_changes(child, &old, Some(&new), &cause, execution)?;
        }
        Ok(())
    }

    fn check_parents_of_update(
        &self,
        table: &TableRef,
        old: &[u8],
        changes: &StoredChanges<'_>,
        is_wanted: &dyn Fn(&ForeignKeyModel) -> bool,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let mut kept: SmallVec<[(u16, Value); 4]> = SmallVec::new();
        let keys = self.parents.iter().map(|parent| &self.model.foreign_keys[parent.key]);
        for foreign_key in keys.filter(|key| is_wanted(key)) {
            for ordinal in &foreign_key.columns {
                let value = changes.iter().find(|(of, _)| *of == usize::from(*ordinal));
                let value = match value {
                    Some((_, value)) => value.to_value(),
                    None => stored_value(old, *ordinal, table, &*execution.data.transaction)?,
                };
                kept.push((*ordinal, value));
            }
        }
        let value = |ordinal: u16| {
            let found = kept.iter().find(|(of, _)| *of == ordinal);
            found.map_or(ValueRef::Null, |(_, value)| value.as_ref())
        };
        self.check_parents(&value, Some(changes), is_wanted, execution)
    }

    /// Does what the keys of a deleted row's children require.
    pub(super) fn after_delete(
        &mut self,
        table: &TableRef,
        old: &[u8],
        above: Option<&Cause<'_>>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        self.after_removal(table, old, None, above, execution)
    }

    /// As [`ForeignKeys::after_delete`], for a row that another one replaces: children whose parent
    /// key the new row has stay.
    pub(super) fn after_replace<'v>(
        &mut self,
        table: &TableRef,
        old: &[u8],
        new: &dyn Fn(u16) -> ValueRef<'v>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        self.after_removal(table, old, Some(new), None, execution)
    }

    fn after_removal<'v>(
        &mut self,
        table: &TableRef,
        old: &[u8],
        new: Option<&dyn Fn(u16) -> ValueRef<'v>>,
        above: Option<&Cause<'_>>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let Some(children) = self.children(execution)? else { return Ok(()) };
        let cause = self.cause(false, above);
        for child in &*children {
            let columns = parent_columns(&self.model, child.foreign_key())?;
            let old_values = values_of(table, old, &columns, execution)?;
            let is_kept = new.is_some_and(|new| {
                columns.iter().zip(&old_values).all(|(column, old)| new(*column) == old.as_ref())
            });
            if !is_kept && !old_values.iter().any(Value::is_null) {
                let old = self.filled(child, &columns).as_of_children(&old_values);
                child_changes(child, &old, None, &cause, execution)?;
            }
        }
        Ok(())
    }

    fn filled(&self, child: &ReferencingKey, parent_columns: &[u16]) -> FilledTexts {
        let child_columns = &child.foreign_key().columns;
        FilledTexts::of(&self.model, parent_columns, &child.child, child_columns)
    }
}

fn parent_table(
    child: &Arc<TableModel>,
    foreign_key: &ForeignKeyModel,
    execution: &mut Execution<'_>,
) -> Result<Option<ParentTable>> {
    let (schema, name) = (&foreign_key.parent_schema, &foreign_key.parent_table);
    let model = match *child.schema == **schema && *child.name == **name {
        true => Some(Arc::clone(child)),
        false => execution.data.catalog.shared().find_table(schema, name)?,
    };
    let Some(model) = model else { return Ok(None) };
    let columns = parent_columns(&model, foreign_key)?;
    let filled = FilledTexts::of(&model, &columns, child, &foreign_key.columns);
    Ok(Some(ParentTable { table: execution.table(&model, true)?, columns, filled }))
}

/// The ordinals of the columns that a foreign key refers to.
fn parent_columns(
    parent: &TableModel,
    foreign_key: &ForeignKeyModel,
) -> Result<SmallVec<[u16; 2]>> {
    let columns = foreign_key.parent_columns.iter();
    columns
        .map(|name| {
            let column = parent.column(name).map(|column| column.ordinal);
            column.ok_or_else(|| no_parent(parent, foreign_key))
        })
        .collect()
}

fn values_of(
    table: &TableRef,
    payload: &[u8],
    columns: &[u16],
    execution: &Execution<'_>,
) -> Result<Values> {
    let transaction = &*execution.data.transaction;
    columns.iter().map(|ordinal| stored_value(payload, *ordinal, table, transaction)).collect()
}

/// Does what a foreign key requires for the children of a row that had `old` and now has `new`, or
/// is deleted.
fn child_changes(
    child: &ReferencingKey,
    old: &[Value],
    new: Option<&[Value]>,
    cause: &Cause<'_>,
    execution: &mut Execution<'_>,
) -> Result<()> {
    let foreign_key = child.foreign_key();
    let action = if new.is_some() { foreign_key.on_update } else { foreign_key.on_delete };
    let table = execution.table(&child.child, true)?;
    let values: SmallVec<[ValueRef<'_>; 2]> = old.iter().map(Value::as_ref).collect();
    let deletes = new.is_none() && action == ReferentialAction::Cascade;
    let comes_back = !deletes && cause.updated(child.child.id);
    if !action.cascades() || comes_back {
        let mode = ReadMode::Share(WaitPolicy::Wait);
        let columns = &foreign_key.columns;
        let found = visit_rows(&table, columns, &values, mode, execution, &mut |_, _| false)?;
        return if found > 0 { Err(has_children(&child.child, foreign_key)) } else { Ok(()) };
    }
    let mut rows: Vec<KeyAndPayload> = Vec::new();
    let mode = ReadMode::Update(WaitPolicy::Wait);
    visit_rows(&table, &foreign_key.columns, &values, mode, execution, &mut |key, payload| {
        rows.push((key.into(), payload.into()));
        true
    })?;
    if rows.is_empty() {
        return Ok(());
    }
    if cause.depth >= MOST_CASCADES {
        return Err(SqlError::new(
            3008,
            format!("Foreign key cascade delete/update exceeds max depth of {MOST_CASCADES}."),
        ));
    }
    let mut keys = ForeignKeys::of(&child.child, execution)?;
    let generated = Generated::of(&child.child, execution)?;
    // A cascade of one row may change the following ones.
    let rereads = rows.len() > 1 && keys.may_reach(&|table| table == child.child.id, execution)?;
    for (key, mut payload) in rows {
        execution.check_cancelled()?;
        if rereads {
            let mut present = Vec::new();
            if !read_again(&table, &key, &mut present, execution)? {
                continue;
            }
            let columns = &foreign_key.columns;
            let was = values_of(&table, &payload, columns, execution)?;
            if values_of(&table, &present, columns, execution)? != was {
                continue;
            }
            payload = present.into();
        }
        let generated = &generated;
        let change = Cascade { table: &table, key: &key, payload: &payload, cause, generated };
        match (action, new) {
            (ReferentialAction::Cascade, None) => {
                execution.data.transaction.delete(&table, &key, &payload).map_err(from_rows)?;
                execution.measures.rows.deleted += 1;
                keys.after_delete(&table, &payload, Some(cause), execution)?;
            }
            (ReferentialAction::Cascade, Some(new)) => {
                let values = new.iter().map(Value::as_ref);
                change.update(&foreign_key.columns, values, &mut keys, execution)?;
            }
            _ => {
                let nulls = foreign_key.columns.iter().map(|_| ValueRef::Null);
                change.update(&foreign_key.columns, nulls, &mut keys, execution)?;
            }
        }
    }
    Ok(())
}

/// A child's row that changes with its parent.
struct Cascade<'r> {
    table: &'r TableRef,
    key: &'r [u8],
    payload: &'r [u8],
    cause: &'r Cause<'r>,
    generated: &'r Generated,
}

impl Cascade<'_> {
    fn update<'v>(
        &self,
        columns: &[u16],
        values: impl Iterator<Item = ValueRef<'v>>,
        keys: &mut ForeignKeys,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let ordinals = columns.iter().map(|column| usize::from(*column));
        let given: SmallVec<[(usize, ValueRef<'v>); 2]> = ordinals.zip(values).collect();
        let generated = self.generated.of_row(self.table, self.payload, &given, execution)?;
        let definitions = &self.table.definition().columns;
        let context = execution.context;
        let stored: Vec<(usize, Fitted<'_>)> = generated
            .iter()
            .map(|(ordinal, value)| {
                let ordinal = usize::from(*ordinal);
                Ok((ordinal, store(value, definitions[ordinal].column_type, context)?))
            })
            .collect::<Result<_>>()?;
        let computed = stored.iter().map(|(ordinal, value)| (*ordinal, value.as_ref()));
        let changes: SmallVec<[(usize, ValueRef<'_>); 2]> =
            given.iter().copied().chain(computed).collect();
        let updated =
            execution.data.transaction.update(self.table, self.key, self.payload, &changes);
        updated.map_err(from_rows)?;
        execution.measures.rows.updated += 1;
        keys.after_update(self.table, self.payload, &changes, Some(self.cause), execution)
    }
}

/// The generated columns of a table, which are computed again when a cascade has changed a row.
struct Generated {
    model: Arc<TableModel>,
    columns: Vec<(u16, BoundRowExpression)>,
}

impl Generated {
    fn of(model: &Arc<TableModel>, execution: &Execution<'_>) -> Result<Generated> {
        let context = PlanContext::new(execution.data.catalog, None, execution.context);
        let columns = model.columns.iter().filter_map(|column| {
            let text = &column.generated.as_ref()?.text;
            let bound = bind_row_expression(model, text, &context);
            Some(bound.map(|bound| (column.ordinal, bound)))
        });
        let mut columns = columns.collect::<Result<Vec<_>>>()?;
        columns.sort_by_key(|(ordinal, _)| *ordinal);
        Ok(Generated { model: Arc::clone(model), columns })
    }

    /// Their values over a row with these changes.
    fn of_row(
        &self,
        table: &TableRef,
        payload: &[u8],
        changes: &[(usize, ValueRef<'_>)],
        execution: &mut Execution<'_>,
    ) -> Result<Vec<(u16, Datum)>> {
        let mut values: Vec<(u16, Datum)> = Vec::with_capacity(self.columns.len());
        for (ordinal, bound) in &self.columns {
            let Some(column) = self.model.by_ordinal(*ordinal) else { continue };
            let mut frame = vec![Datum::Null; bound.frame_slots as usize];
            for (read, slot) in &bound.columns {
                let known =
                    values.iter().find(|(of, _)| of == read).map(|(_, value)| value.clone());
                frame[slot.0 as usize] = match known {
                    Some(value) => value,
                    None => self.present(*read, table, payload, changes, execution)?,
                };
            }
            let frame_before = std::mem::replace(&mut execution.frame.slots, frame);
            let value = bound.expression.evaluate(execution);
            execution.frame.slots = frame_before;
            let value =
                assign(&value?, Assigned::expression(&bound.expression), column, 1, execution)?;
            values.push((*ordinal, value));
        }
        Ok(values)
    }

    fn present(
        &self,
        ordinal: u16,
        table: &TableRef,
        payload: &[u8],
        changes: &[(usize, ValueRef<'_>)],
        execution: &Execution<'_>,
    ) -> Result<Datum> {
        let Some(column) = self.model.by_ordinal(ordinal) else { return Ok(Datum::Null) };
        if let Some((_, value)) = changes.iter().find(|(of, _)| *of == usize::from(ordinal)) {
            return values::datum(*value, &column.ty, execution.context);
        }
        let stored = stored_value(payload, ordinal, table, &*execution.data.transaction)?;
        values::datum(stored.as_ref(), &column.ty, execution.context)
    }
}

/// Visits rows whose `columns` have these values, until `visit` returns false; returns how many
/// were visited.
fn visit_rows(
    table: &TableRef,
    columns: &[u16],
    values: &[ValueRef<'_>],
    mode: ReadMode,
    execution: &mut Execution<'_>,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<u64> {
    let way = index_over(table, columns, values)?;
    let checks_rows = way.is_none();
    let (index, range) = way.unwrap_or_else(|| (None, KeyRange::all()));
    // A reader with a shared lock only wants to know whether there is a row.
    let batch_rows = if matches!(mode, ReadMode::Share(_)) { 1 } else { usize::MAX };
    let options = ScanOptions {
        index,
        range,
        direction: Direction::Forward,
        mode,
        columns: None,
        batch_rows,
        filter: None,
        limit: None,
    };
    let mut scan = execution.data.transaction.scan(table, &options).map_err(from_rows)?;
    let mut shown = 0;
    while scan.fetch(execution.data.transaction).map_err(from_rows)? {
        execution.check_cancelled()?;
        for number in 0..scan.len() {
            let row = scan.row(number);
            let RowContent::Payload(payload) = row.content else { continue };
            if checks_rows && !has_values(table, payload, columns, values, execution)? {
                execution.data.transaction.unlock(table, row.key);
                continue;
            }
            shown += 1;
            if !visit(row.key, payload) {
                return Ok(shown);
            }
        }
    }
    Ok(shown)
}

/// An index that begins with these columns, and its keys with these values.
fn index_over(
    table: &TableRef,
    columns: &[u16],
    values: &[ValueRef<'_>],
) -> Result<Option<(Option<usize>, KeyRange)>> {
    let (definition, layout) = (table.definition(), table.layout());
    for (number, index) in definition.indexes.iter().enumerate() {
        let leading = index.parts.iter().map(|part| part.column);
        let begins = leading.take(columns.len()).eq(columns.iter().copied());
        let whole = index.parts.iter().take(columns.len()).all(|part| part.prefix_length.is_none());
        if !begins || !whole || index.state != firn_format::definition::IndexState::Ready {
            continue;
        }
        let (number, keys) = match index.kind {
            IndexKind::Clustered => (None, &layout.clustered),
            _ => {
                let secondary = layout.secondary.iter().find(|(id, _)| *id == index.index_id);
                let Some((_, secondary)) = secondary else { continue };
                (Some(number), secondary.key())
            }
        };
        let mut prefix = Vec::new();
        keys.encode_parts(values, table.collations(), &mut prefix).map_err(from_key)?;
        return Ok(Some((number, KeyRange::prefix(prefix))));
    }
    Ok(None)
}

fn has_values(
    table: &TableRef,
    payload: &[u8],
    columns: &[u16],
    values: &[ValueRef<'_>],
    execution: &Execution<'_>,
) -> Result<bool> {
    let view = RowView::parse(&table.layout().row, payload).map_err(from_row)?;
    let mut overflow = Vec::new();
    for (column, value) in columns.iter().zip(values) {
        let cell = view.column(usize::from(*column)).map_err(from_row)?;
        let stored = cell_value(&*execution.data.transaction, table, cell, &mut overflow);
        if stored.map_err(from_rows)? != *value {
            return Ok(false);
        }
    }
    Ok(true)
}

fn no_parent(child: &TableModel, foreign_key: &ForeignKeyModel) -> SqlError {
    let constraint = describe(child, foreign_key);
    SqlError::row_refused(
        1452,
        format!("Cannot add or update a child row: a foreign key constraint fails ({constraint})"),
    )
}

fn has_children(child: &TableModel, foreign_key: &ForeignKeyModel) -> SqlError {
    let constraint = describe(child, foreign_key);
    SqlError::row_refused(
        1451,
        format!(
            "Cannot delete or update a parent row: a foreign key constraint fails ({constraint})"
        ),
    )
}

/// `` `test`.`child`, CONSTRAINT `fk` FOREIGN KEY (`a`) REFERENCES `parent` (`id`) ON DELETE
/// CASCADE ``
fn describe(child: &TableModel, foreign_key: &ForeignKeyModel) -> String {
    let names = |names: Vec<String>| names.join(", ");
    let columns = foreign_key.columns.iter().filter_map(|ordinal| child.by_ordinal(*ordinal));
    let columns = names(columns.map(|column| quoted(&column.name)).collect());
    let parents = names(foreign_key.parent_columns.iter().map(|name| quoted(name)).collect());
    let mut parent = quoted(&foreign_key.parent_table);
    if foreign_key.parent_schema != child.schema {
        parent = format!("{}.{parent}", quoted(&foreign_key.parent_schema));
    }
    let (schema, table, name) =
        (quoted(&child.schema), quoted(&child.name), quoted(&foreign_key.name));
    let on_delete = action_text("DELETE", foreign_key.on_delete);
    let on_update = action_text("UPDATE", foreign_key.on_update);
    format!(
        "{schema}.{table}, CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {parent} \
         ({parents}){on_delete}{on_update}"
    )
}

fn action_text(event: &str, action: ReferentialAction) -> String {
    let action = match action {
        ReferentialAction::NoAction => return String::new(),
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    };
    format!(" ON {event} {action}")
}
