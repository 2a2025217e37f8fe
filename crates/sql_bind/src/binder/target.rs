//! Tables that a statement writes: their table references, and the expressions evaluated over their
//! rows.
//!
//! ```text
//!   UPDATE v SET x = 1      v: SELECT a AS x FROM t      target t, column a
//! ```

use std::sync::Arc;

use firn_sql_catalog::model::{DefaultValue, TableModel};
use firn_sql_grammar::{self as grammar, ast::ColumnName};
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_logical::{CheckedBy, NeededPrivilege, RelationId, RelationSource, RowCheck};
use firn_sql_types::error::{Result, SqlError};

use super::scope::{Clause, ColumnPath, ColumnSource, Scope, ScopeColumn, ScopeTable, ShownColumn};
use super::{Binder, Frame, Names, expressions};

/// The expressions evaluated over a written row.
pub(crate) struct RowRules {
    pub(crate) generated: Vec<(u16, Expression)>,
    pub(crate) checks: Vec<RowCheck>,
    pub(crate) defaults: Vec<(u16, Expression)>,
}

/// A stored column that a statement assigns to.
#[derive(Clone, Copy)]
pub(crate) struct AssignedColumn {
    pub(crate) relation: RelationId,
    pub(crate) ordinal: u16,
    /// The table of the innermost scope through which it was named.
    pub(crate) table: usize,
}

/// The table column to which a name on the left of an assignment refers.
pub(crate) fn assigned_column(
    binder: &mut Binder<'_>,
    name: &ColumnName,
    verb: &str,
) -> Result<AssignedColumn> {
    let table = name.table.as_ref();
    let path = ColumnPath {
        schema: table.and_then(|table| table.schema.as_deref()),
        table: table.map(|table| table.name.as_str()),
        column: &name.column,
    };
    let level = binder.names.scopes.len() - 1;
    let place = binder.names.scopes[level].find(&path, Clause::FieldList)?;
    let place = place.ok_or_else(|| {
        let column = &name.column;
        let of = table.map(|table| format!("{}.", table.name)).unwrap_or_default();
        SqlError::unknown_column(&format!("{of}{column}"), "field list")
    })?;
    let alias = binder.names.scopes[level].tables[place.table].alias.clone();
    let column = base_column(&binder.names, &binder.typing.frame, level, place);
    let (relation, ordinal) =
        column.ok_or_else(|| not_updatable(&binder.names, &alias, &name.column, verb))?;
    let named = binder.names.scopes[level].tables[place.table].named;
    let name = binder.names.scopes[level].column(place).name.clone();
    let column = Some((relation, ordinal));
    binder.uses.note_write(
        &binder.typing.frame,
        named,
        NeededPrivilege::Update,
        Some(&name),
        column,
    );
    Ok(AssignedColumn { relation, ordinal, table: place.table })
}

fn not_updatable(names: &Names, alias: &str, column: &str, verb: &str) -> SqlError {
    let is_merged = names.scopes.last().is_some_and(|scope| {
        scope.tables.iter().any(|table| {
            &*table.alias == alias
                && table
                    .columns
                    .iter()
                    .any(|column| matches!(column.source, ColumnSource::Expression(_)))
        })
    });
    match is_merged {
        true => SqlError::new(1348, format!("Column '{column}' is not updatable")),
        false => {
            SqlError::new(1288, format!("The target table {alias} of the {verb} is not updatable"))
        }
    }
}

/// The stored column that a column of a scope is.
pub(crate) fn base_column(
    names: &Names,
    frame: &Frame,
    level: usize,
    place: ShownColumn,
) -> Option<(RelationId, u16)> {
    let (relation, ordinal) = match &names.scopes[level].column(place).source {
        ColumnSource::Relation(relation, ordinal) => (*relation, *ordinal),
        ColumnSource::Expression(value) => {
            let ExpressionKind::Slot(slot) = value.kind else { return None };
            frame.place_of(slot)?
        }
    };
    let is_table = matches!(frame.relation(relation).source, RelationSource::Table(_));
    is_table.then_some((relation, ordinal))
}

/// The one stored table behind a table of the innermost scope.
pub(crate) fn target_of(binder: &mut Binder<'_>, table: usize, verb: &str) -> Result<RelationId> {
    let level = binder.names.scopes.len() - 1;
    let alias = binder.names.scopes[level].tables[table].alias.clone();
    let refused =
        || SqlError::new(1288, format!("The target table {alias} of the {verb} is not updatable"));
    let columns = binder.names.scopes[level].tables[table].columns.len();
    let places = (0..columns).map(|column| ShownColumn { table, column });
    let mut found = None;
    for (relation, _) in
        places.filter_map(|place| base_column(&binder.names, &binder.typing.frame, level, place))
    {
        if found.is_some_and(|found| found != relation) {
            return Err(join_view_refused(&binder.names, level, table));
        }
        found = Some(relation);
    }
    let found = found.ok_or_else(refused)?;
    let named = binder.names.scopes[level].tables[table].named;
    binder.uses.note_write(
        &binder.typing.frame,
        named,
        NeededPrivilege::Delete,
        None,
        Some((found, 0)),
    );
    Ok(found)
}

fn join_view_refused(names: &Names, level: usize, table: usize) -> SqlError {
    let view = &names.scopes[level].tables[table];
    let schema = view.schema.as_deref().unwrap_or("");
    let message = format!("Can not delete from join view '{schema}.{}'", view.original);
    SqlError::new(1395, message)
}

/// A table's row as a table of a scope.
pub(crate) fn row_table(
    table: &Arc<TableModel>,
    relation: RelationId,
    alias: Arc<str>,
) -> ScopeTable {
    let columns = table.columns.iter().map(|column| ScopeColumn {
        name: column.name.clone(),
        ty: column.ty.clone(),
        source: ColumnSource::Relation(relation, column.ordinal),
        invisible: column.hidden || column.invisible,
        reported: None,
    });
    ScopeTable {
        alias,
        schema: Some(table.schema.clone()),
        original: table.name.clone(),
        columns: columns.collect(),
        nullable: false,
        model: Some(Arc::clone(table)),
        checks: Vec::new(),
        named: None,
    }
}

/// Generated columns, checks and defaults of a table, over the slots of a table reference.
pub(crate) fn row_rules(binder: &mut Binder<'_>, relation: RelationId) -> Result<RowRules> {
    let table = binder.typing.frame.table_of(relation)?;
    let mut rules = RowRules { generated: Vec::new(), checks: Vec::new(), defaults: Vec::new() };
    let has_rules = !table.checks.is_empty()
        || table.columns.iter().any(|column| {
            column.generated.is_some() || matches!(column.default, DefaultValue::Expression(_))
        });
    if !has_rules {
        return Ok(rules);
    }
    let row = row_table(&table, relation, table.name.clone());
    let scopes = std::mem::take(&mut binder.names.scopes);
    let shown = (0..row.columns.len()).map(|column| ShownColumn { table: 0, column }).collect();
    binder.names.scopes.push(Scope { tables: vec![row], shown, ..Scope::default() });
    let bound = bind_rules(binder, &table, &mut rules);
    binder.names.scopes = scopes;
    bound?;
    Ok(rules)
}

fn bind_rules(binder: &mut Binder<'_>, table: &TableModel, rules: &mut RowRules) -> Result<()> {
    for column in &table.columns {
        if let Some(generated) = &column.generated {
            rules.generated.push((column.ordinal, stored_expression(binder, &generated.text)?));
        }
        if let DefaultValue::Expression(text) = &column.default {
            rules.defaults.push((column.ordinal, stored_expression(binder, text)?));
        }
    }
    rules.generated.sort_by_key(|(ordinal, _)| *ordinal);
    for check in table.checks.iter().filter(|check| check.enforced) {
        let condition = stored_expression(binder, &check.text)?;
        rules.checks.push(RowCheck { of: CheckedBy::Constraint(check.name.clone()), condition });
    }
    Ok(())
}

/// An expression from a definition.
fn stored_expression(binder: &mut Binder<'_>, text: &str) -> Result<Expression> {
    let parsed = grammar::parse_expression(text, grammar::Mode::default())?;
    expressions::bind_single(binder, &parsed)
}

/// The conditions for rows of a table reference that is written through views.
pub(crate) fn view_checks(names: &Names, frame: &Frame, relation: RelationId) -> Vec<RowCheck> {
    let level = names.scopes.len() - 1;
    let mut checks = Vec::new();
    for (table, behind) in names.scopes[level].tables.iter().enumerate() {
        let mut places = (0..behind.columns.len()).map(|column| ShownColumn { table, column });
        let is_its =
            |place| base_column(names, frame, level, place).is_some_and(|(of, _)| of == relation);
        if !behind.checks.is_empty() && places.any(is_its) {
            let schema = behind.schema.as_deref().unwrap_or("");
            let view: Arc<str> = format!("{schema}.{}", behind.original).into();
            checks.extend(behind.checks.iter().map(|condition| RowCheck {
                of: CheckedBy::View(Arc::clone(&view)),
                condition: condition.clone(),
            }));
        }
    }
    checks
}
