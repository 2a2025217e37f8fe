//! `INSERT` and `REPLACE`.
//!
//! ```text
//!   INSERT INTO t (a, b) VALUES (1, 2) AS n ON DUPLICATE KEY UPDATE b = t.b + n.b
//!     source    Values [[1, 2]]
//!     old_row   b → slot 2        new_row   b → slot 3        update   b = slot 2 + slot 3
//! ```

use std::sync::Arc;

use firn_sql_catalog::Relation as CatalogRelation;
use firn_sql_catalog::model::TableModel;
use firn_sql_grammar::ast::{
    self, Expr, Function, InsertSource, Query as WrittenQuery, SetExpr, ValueOrDefault,
};
use firn_sql_logical::expression::visit::reads_of;
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot};
use firn_sql_logical::{
    Assignment, Body, BoundInsert, DuplicatePolicy, KeptRows, NeededPrivilege, OutputColumn,
    PlanContext, Query, RelationId, RelationSource, RowCheck,
};
use firn_sql_types::SqlType;
use firn_sql_types::error::{Condition, Level, Result, SqlError};

use super::function::argument_expressions;
use super::scope::{ColumnPath, Scope, ShownColumn};
use super::{
    Binder, Frame, expression_builders, expressions, group, literal, query, scope, target, update,
    view,
};

const VALUES_IS_DEPRECATED: &str = "'VALUES function' is deprecated and will be removed in a future release. Please use \
    an alias (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in the ON DUPLICATE \
    KEY UPDATE clause with alias.col instead";

/// The table behind a view into which rows are inserted.
struct BehindView {
    relation: RelationId,
    /// The view's columns, with the table columns that they show.
    names: Vec<(Arc<str>, u16)>,
    checks: Vec<RowCheck>,
}

/// The table into which rows are inserted.
struct Target<'t> {
    table: &'t Arc<TableModel>,
    /// The existing row.
    old: RelationId,
    /// The row that the statement tried to insert.
    new: RelationId,
    named: Option<usize>,
}

/// Binds an `INSERT` or `REPLACE`.
///
/// # Errors
/// The errors of its parts.
pub(super) fn insert(binder: &mut Binder<'_>, insert: &ast::Insert) -> Result<BoundInsert> {
    if !insert.partitions.is_empty() {
        return Err(SqlError::new(1747, "PARTITION () clause on non partitioned table"));
    }
    let mut wanted = vec![NeededPrivilege::Insert];
    if !insert.on_duplicate.is_empty() {
        wanted.push(NeededPrivilege::Update);
    }
    if insert.replace {
        wanted.push(NeededPrivilege::Delete);
    }
    let (table, view, named) = insert_target(binder, &insert.table, &wanted)?;
    let names = view.as_ref().map(|view| &view.names);
    let columns = insert_columns(&table, names, &insert.columns)?;
    let source_relation = RelationSource::Table(Arc::clone(&table));
    let old = match &view {
        Some(view) => view.relation,
        None => binder.typing.frame.add_relation(source_relation, table.name.clone()),
    };
    let new = binder
        .typing
        .frame
        .add_relation(RelationSource::Table(Arc::clone(&table)), table.name.clone());
    note_insert(binder, insert, &table, view.as_ref(), named, &columns);
    let ready = binder.typing.frame.relations.len();
    let target = Target { table: &table, old, new, named };
    let (source, kept, duplicates) = match &insert.source {
        InsertSource::Values(rows) => {
            let source = insert_values(binder, rows, &columns, old)?;
            let is_empty_row = rows.iter().all(Vec::is_empty);
            check_count(&source.columns, if is_empty_row { 0 } else { columns.len() })?;
            (source, None, duplicates(binder, insert, &target, None)?)
        }
        InsertSource::Query(query) => {
            insert_query(binder, insert, query, &target, &columns, ready)?
        }
    };
    let is_empty_row = matches!(&insert.source, InsertSource::Values(rows)
        if rows.iter().all(Vec::is_empty));
    let columns = if is_empty_row { Vec::new() } else { columns };
    let mut rules = target::row_rules(binder, old)?;
    rules.checks.extend(view.into_iter().flat_map(|view| view.checks));
    Ok(BoundInsert {
        table,
        columns,
        source,
        kept,
        duplicates,
        ignore: insert.ignore,
        new_row: binder.typing.frame.row_slots(new),
        old_row: binder.typing.frame.row_slots(old),
        generated: rules.generated,
        checks: rules.checks,
        defaults: rules.defaults,
    })
}

/// `INSERT … SELECT`. The assignments for duplicates may read the columns of the query's
/// tables, unless the query groups rows or combines several queries.
fn insert_query(
    binder: &mut Binder<'_>,
    insert: &ast::Insert,
    query: &WrittenQuery,
    target: &Target<'_>,
    columns: &[u16],
    first_relation: usize,
) -> Result<(Query, Option<KeptRows>, DuplicatePolicy)> {
    binder.block.keeps_source =
        !insert.on_duplicate.is_empty() && matches!(&*query.body, SetExpr::Select(_));
    let bound = binder.deeper(|binder| query::query(binder, query));
    binder.block.keeps_source = false;
    let source = binder.block.source_scope.take();
    let mut bound = bound?;
    let relations = first_relation..binder.typing.frame.relations.len();
    let is_read = binder.typing.frame.relations[relations.clone()].iter().any(|relation| {
        matches!(&relation.source, RelationSource::Table(other) if other.id == target.table.id)
    });
    check_count(&bound.columns, columns.len())?;
    numbers_of_bytes(binder.typing.context, query, target.table, columns, &mut bound.columns);
    let has_rows_of_tables = matches!(&bound.body, Body::Select(block) if block.grouping.is_none());
    let duplicates = duplicates(binder, insert, target, source.filter(|_| has_rows_of_tables))?;
    let of_source = |slot: &Slot| {
        let owner = binder.typing.frame.owner(*slot);
        owner.is_some_and(|RelationId(number)| relations.contains(&number))
    };
    let hidden: Vec<Slot> = match &duplicates {
        DuplicatePolicy::Update(assignments) => {
            let values = assignments.iter().filter_map(|one| one.value.as_ref());
            reads_of(values).iter().filter(of_source).collect()
        }
        _ => Vec::new(),
    };
    for slot in &hidden {
        let value = expression_builders::slot(
            *slot,
            group::slot_type(&binder.names, &binder.typing.frame, *slot),
        );
        bound.columns.push(OutputColumn { value, name: "".into(), origin: None, display: None });
    }
    let kept = is_read.then(|| kept(&mut binder.typing.frame, &bound, &hidden));
    Ok((bound, kept, duplicates))
}

/// Hexadecimal literals of the select list are numbers if they go into numeric columns.
fn numbers_of_bytes(
    context: &PlanContext<'_>,
    query: &WrittenQuery,
    table: &TableModel,
    columns: &[u16],
    outputs: &mut [OutputColumn],
) {
    let SetExpr::Select(select) = &*query.body else { return };
    if select.projection.len() != outputs.len() {
        return;
    }
    for ((item, ordinal), output) in select.projection.iter().zip(columns).zip(outputs) {
        if item.expr().is_some()
            && let Some(column) = table.by_ordinal(*ordinal)
            && matches!(output.value.kind, ExpressionKind::Literal(_))
        {
            let value = std::mem::replace(&mut output.value, expression_builders::null());
            output.value = literal::number_for_column(context, value, &column.ty);
        }
    }
}

/// Notes the privileges to insert and, for `REPLACE`, to delete.
fn note_insert(
    binder: &mut Binder<'_>,
    insert: &ast::Insert,
    table: &TableModel,
    view: Option<&BehindView>,
    named: Option<usize>,
    columns: &[u16],
) {
    let behind = view.map(|view| view.relation);
    binder.uses.note_write(
        &binder.typing.frame,
        named,
        NeededPrivilege::Insert,
        None,
        behind.map(|of| (of, 0)),
    );
    for ordinal in columns {
        let of_view = view.and_then(|view| view.names.iter().find(|(_, of)| of == ordinal));
        let own = || table.by_ordinal(*ordinal).map(|column| column.name.clone());
        if let Some(name) = of_view.map(|(name, _)| name.clone()).or_else(own) {
            let behind = behind.map(|of| (of, *ordinal));
            binder.uses.note_write(
                &binder.typing.frame,
                named,
                NeededPrivilege::Insert,
                Some(&name),
                behind,
            );
        }
    }
    if insert.replace {
        binder.uses.note_write(
            &binder.typing.frame,
            named,
            NeededPrivilege::Delete,
            None,
            behind.map(|of| (of, 0)),
        );
    }
}

/// The table into which rows are inserted, and its columns as the statement names them.
fn insert_target(
    binder: &mut Binder<'_>,
    name: &ast::TableName,
    wanted: &[NeededPrivilege],
) -> Result<(Arc<TableModel>, Option<BehindView>, Option<usize>)> {
    let schema = binder.names.schema_of(name)?;
    let alias: Arc<str> = name.name.as_str().into();
    let found = binder.typing.context.catalog.relation(&schema, &name.name);
    let model = match &found {
        Ok(CatalogRelation::Table(table)) => Some(Arc::clone(table)),
        _ => None,
    };
    let named = binder.name_table(&schema, &name.name, &alias, model.as_deref());
    binder.uses.note_wanted(named, wanted);
    match found? {
        CatalogRelation::Virtual(table) => Err(SqlError::new(
            1044,
            format!("Access denied for user to database '{}'", table.schema()),
        )),
        CatalogRelation::Table(table) if table.view().is_none() => {
            binder.uses.use_table(&table);
            Ok((table, None, Some(named)))
        }
        CatalogRelation::Table(view) => {
            binder.uses.use_table(&view);
            let (table, behind) = behind_view(binder, &view)?;
            Ok((table, Some(behind), Some(named)))
        }
    }
}

/// The table behind a view into which rows can be inserted.
fn behind_view(
    binder: &mut Binder<'_>,
    view: &Arc<TableModel>,
) -> Result<(Arc<TableModel>, BehindView)> {
    binder.names.scopes.push(Scope::default());
    binder.views.writes_through = true;
    let placed = view::bind_view(binder, view, view.name.clone(), false);
    binder.views.writes_through = false;
    let level = binder.names.scopes.len() - 1;
    let refused = || {
        let name = &view.name;
        SqlError::new(1471, format!("The target table {name} of the INSERT is not insertable-into"))
    };
    let found = placed.and_then(|_| {
        let count = binder.names.scopes[level].tables[0].columns.len();
        let places = (0..count).map(|column| ShownColumn { table: 0, column });
        let mut names = Vec::with_capacity(count);
        let mut of: Option<RelationId> = None;
        for place in places {
            let (relation, ordinal) =
                target::base_column(&binder.names, &binder.typing.frame, level, place)
                    .ok_or_else(refused)?;
            if of.is_some_and(|of| of != relation) {
                return Err(refused());
            }
            of = Some(relation);
            names.push((binder.names.scopes[level].column(place).name.clone(), ordinal));
        }
        let relation = of.ok_or_else(refused)?;
        let table = binder.typing.frame.table_of(relation)?;
        let checks = target::view_checks(&binder.names, &binder.typing.frame, relation);
        Ok((table, BehindView { relation, names, checks }))
    });
    binder.names.scopes.pop();
    found
}

fn insert_columns(
    table: &TableModel,
    names: Option<&Vec<(Arc<str>, u16)>>,
    written: &[String],
) -> Result<Vec<u16>> {
    if written.is_empty() {
        return Ok(match names {
            Some(names) => names.iter().map(|(_, ordinal)| *ordinal).collect(),
            None => table.visible_columns().map(|column| column.ordinal).collect(),
        });
    }
    let mut columns: Vec<u16> = Vec::with_capacity(written.len());
    for name in written {
        let ordinal = match names {
            Some(names) => names
                .iter()
                .find(|(other, _)| firn_sql_catalog::model::same_name(other, name))
                .map(|(_, ordinal)| *ordinal),
            None => table.column(name).map(|column| column.ordinal),
        };
        let ordinal = ordinal.ok_or_else(|| SqlError::unknown_column(name, "field list"))?;
        if columns.contains(&ordinal) {
            return Err(SqlError::new(1110, format!("Column '{name}' specified twice")));
        }
        columns.push(ordinal);
    }
    Ok(columns)
}

/// Rows written in the statement. They may read earlier columns of their own row.
fn insert_values(
    binder: &mut Binder<'_>,
    rows: &[Vec<ValueOrDefault>],
    columns: &[u16],
    row: RelationId,
) -> Result<Query> {
    let width = rows.first().map_or(0, Vec::len);
    let table = binder.typing.frame.table_of(row)?;
    let scope_table = target::row_table(&table, row, table.name.clone());
    let shown = (0..scope_table.columns.len()).map(|column| ShownColumn { table: 0, column });
    let shown = shown.collect();
    binder.names.scopes.push(Scope { tables: vec![scope_table], shown, ..Scope::default() });
    let bound = bind_rows(binder, rows, &table, columns, width);
    binder.names.scopes.pop();
    let rows = bound?;
    let slots: Vec<_> = (0..width).map(|_| binder.typing.frame.new_slot(None)).collect();
    let outputs = slots.iter().enumerate().map(|(number, slot)| {
        let first = rows.iter().map(|row: &Vec<Expression>| &row[number]);
        let ty =
            first.filter(|value| !super::update::is_default(value)).map(|value| &value.ty).next();
        let ty = ty.cloned().unwrap_or_else(SqlType::null).with_nullable(true);
        OutputColumn {
            value: expression_builders::slot(*slot, ty),
            name: "".into(),
            origin: None,
            display: None,
        }
    });
    let columns = outputs.collect();
    Ok(Query {
        body: Body::Values { rows, slots },
        columns,
        order: Vec::new(),
        offset: None,
        limit: None,
        count_all: false,
    })
}

fn bind_rows(
    binder: &mut Binder<'_>,
    rows: &[Vec<ValueOrDefault>],
    table: &TableModel,
    columns: &[u16],
    width: usize,
) -> Result<Vec<Vec<Expression>>> {
    let mut bound = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        if row.len() != width || width != columns.len() && width > 0 {
            let message = format!("Column count doesn't match value count at row {}", number + 1);
            return Err(SqlError::new(1136, message));
        }
        let values = row.iter().enumerate().map(|(at, value)| match value {
            ValueOrDefault::Value(expr) => {
                let bound = expressions::bind_single(binder, expr)?;
                let column = columns.get(at).and_then(|ordinal| table.by_ordinal(*ordinal));
                Ok(match column {
                    Some(column) => {
                        literal::number_for_column(binder.typing.context, bound, &column.ty)
                    }
                    None => bound,
                })
            }
            ValueOrDefault::Default => Ok(default_marker()),
        });
        bound.push(values.collect::<Result<Vec<_>>>()?);
    }
    Ok(bound)
}

/// Reads the rows again, once they are evaluated, if the query reads the table that is written.
/// Its last columns go to the slots `hidden`.
fn kept(frame: &mut Frame, query: &Query, hidden: &[Slot]) -> KeptRows {
    let own = query.columns.len() - hidden.len();
    let slots: Vec<Slot> =
        (0..own).map(|_| frame.new_slot(None)).chain(hidden.iter().copied()).collect();
    let columns = query.columns.iter().zip(&slots).map(|(column, slot)| OutputColumn {
        value: expression_builders::slot(*slot, column.value.ty.clone()),
        name: column.name.clone(),
        origin: column.origin.clone(),
        display: None,
    });
    let columns = columns.collect();
    KeptRows { slots: (0_u16..).zip(slots).collect(), columns }
}

/// The action for a duplicate key; `source` has the tables of the query whose rows are
/// inserted.
fn duplicates(
    binder: &mut Binder<'_>,
    insert: &ast::Insert,
    target: &Target<'_>,
    source: Option<Scope>,
) -> Result<DuplicatePolicy> {
    let Target { table, old, new, named } = *target;
    if insert.replace {
        return Ok(DuplicatePolicy::Replace);
    }
    if insert.on_duplicate.is_empty() {
        return Ok(DuplicatePolicy::Refuse);
    }
    let mut old_table = target::row_table(table, old, insert.table.name.as_str().into());
    old_table.named = named;
    let shown = (0..old_table.columns.len()).map(|column| ShownColumn { table: 0, column });
    let mut shown: Vec<ShownColumn> = shown.collect();
    let alias = insert.row_alias.as_ref().map_or("\u{0}new", |alias| alias.name.as_str());
    let mut new_table = target::row_table(table, new, alias.into());
    if let Some(row_alias) = insert.row_alias.as_ref().filter(|alias| !alias.columns.is_empty()) {
        let given = insert_order(table, &insert.columns);
        for (name, ordinal) in row_alias.columns.iter().zip(given) {
            let named = new_table.columns.iter().position(|column| {
                matches!(column.source, super::scope::ColumnSource::Relation(_, other) if other == ordinal)
            });
            if let Some(column) = named {
                new_table.columns[column].name = name.as_str().into();
                shown.push(ShownColumn { table: 1, column });
            }
        }
    }
    let mut tables = vec![old_table, new_table];
    let assigned = shown.clone();
    if let Some(source) = source {
        let first = tables.len();
        let places = source.shown.into_iter();
        shown.extend(
            places.map(|place| ShownColumn { table: place.table + first, column: place.column }),
        );
        tables.extend(source.tables);
    }
    binder.names.scopes.push(Scope { tables, shown, ..Scope::default() });
    let bound = bind_duplicates(binder, insert, old, &assigned);
    binder.names.scopes.pop();
    bound.map(DuplicatePolicy::Update)
}

/// `assigned`: the columns to which names on the left refer.
fn bind_duplicates(
    binder: &mut Binder<'_>,
    insert: &ast::Insert,
    old: RelationId,
    assigned: &[ShownColumn],
) -> Result<Vec<Assignment>> {
    let assignments = insert.on_duplicate.iter().map(|assignment| {
        let all = std::mem::replace(&mut binder.names.innermost().shown, assigned.to_vec());
        let column = target::assigned_column(binder, &assignment.column, "INSERT");
        binder.names.innermost().shown = all;
        let ordinal = column?.ordinal;
        let value = update::assigned_value(binder, old, ordinal, &assignment.value)?;
        Ok(Assignment { ordinal, value })
    });
    assignments.collect()
}

/// `VALUES(c)`: the value that the statement tried to insert.
pub(crate) fn values_function(binder: &mut Binder<'_>, function: &Function) -> Result<Expression> {
    let column = column_argument(function)?;
    let level = binder.names.scopes.len() - 1;
    let is_insert =
        binder.names.scopes[level].tables.get(1).is_some_and(|table| table.model.is_some())
            && binder.names.scopes[level].shown.iter().all(|place| place.table != 1);
    warn_of_values(binder.typing.context, is_insert);
    if !is_insert {
        return Ok(expression_builders::null());
    }
    let columns = &binder.names.scopes[level].tables[0].columns;
    let place =
        columns.iter().position(|other| firn_sql_catalog::model::same_name(&other.name, &column));
    let place = place.ok_or_else(|| SqlError::unknown_column(&column, "field list"))?;
    scope::column_value(binder, level, ShownColumn { table: 1, column: place })
}

/// `VALUES(c)` is deprecated, and has a meaning only in `ON DUPLICATE KEY UPDATE`.
fn warn_of_values(context: &PlanContext<'_>, is_insert: bool) {
    let (code, message) = match is_insert {
        true => (1287, VALUES_IS_DEPRECATED),
        false => (1681, "'VALUES function' is deprecated and will be removed in a future release."),
    };
    let message = message.to_owned();
    let condition = Condition { level: Level::Warning, code, message };
    context.conditions.borrow_mut().push(condition);
}

/// `DEFAULT(c)`: a column's default.
pub(crate) fn default_function(binder: &mut Binder<'_>, function: &Function) -> Result<Expression> {
    use firn_sql_catalog::model::DefaultValue;
    let column = column_argument(function)?;
    let level = binder.names.scopes.len() - 1;
    let path = ColumnPath { schema: None, table: None, column: &column };
    let place = binder.names.scopes[level].find(&path, binder.names.clause)?;
    let found = place.and_then(|place| {
        let (relation, ordinal) =
            target::base_column(&binder.names, &binder.typing.frame, level, place)?;
        let table = binder.typing.frame.table_of(relation).ok()?;
        table.by_ordinal(ordinal).cloned()
    });
    let found = found.ok_or_else(|| SqlError::unknown_column(&column, "field list"))?;
    match found.default {
        DefaultValue::Literal(datum) => Ok(expression_builders::literal(datum, found.ty)),
        DefaultValue::Null => Ok(super::cast::typed_null(found.ty)),
        DefaultValue::CurrentTimestamp { fsp } => expression_builders::call(
            &mut binder.typing,
            "NOW",
            vec![expression_builders::integer(i64::from(fsp))],
        ),
        DefaultValue::None | DefaultValue::Expression(_) => {
            Err(SqlError::new(1364, format!("Field '{column}' doesn't have a default value")))
        }
    }
}

fn check_count(columns: &[OutputColumn], wanted: usize) -> Result<()> {
    if columns.len() == wanted {
        return Ok(());
    }
    Err(SqlError::new(1136, "Column count doesn't match value count at row 1"))
}

fn insert_order(table: &TableModel, written: &[String]) -> Vec<u16> {
    match written.is_empty() {
        true => table.visible_columns().map(|column| column.ordinal).collect(),
        false => {
            let columns = written.iter().filter_map(|name| table.column(name));
            columns.map(|column| column.ordinal).collect()
        }
    }
}

fn column_argument(function: &Function) -> Result<String> {
    match argument_expressions(function)?.as_slice() {
        [Expr::Identifier(name)] => Ok(name.clone()),
        [Expr::CompoundIdentifier(parts)] => Ok(parts.last().cloned().unwrap_or_default()),
        _ => Err(SqlError::not_supported("this argument")),
    }
}

fn default_marker() -> Expression {
    Expression { kind: ExpressionKind::Unresolved("DEFAULT".into()), ty: SqlType::null() }
}
