//! `FROM`: tables, derived tables, and the meaning of their names.
//!
//! ```text
//!   FROM t, (SELECT a, b + 1 AS c FROM u WHERE b > 0) d
//!     scope   t: its columns    d: a → u.a, c → u.b + 1
//!     tree    t ⋈ u             conditions u.b > 0
//! ```

use std::sync::Arc;

use firn_sql_catalog::Relation as CatalogRelation;
use firn_sql_catalog::model::TableModel;
use firn_sql_catalog::virtual_table::VirtualTable;
use firn_sql_catalog::virtual_table_metadata::dictionary_column;
use firn_sql_grammar::ast::{
    IndexHint, Join, Query as WrittenQuery, TableAlias, TableFactor, TableName, TableWithJoins,
};
use firn_sql_logical::expression::Expression;
use firn_sql_logical::{
    Body, ColumnOrigin, IndexHints, JoinKind, JoinTree, Query, Relation, RelationId, RelationSource,
};
use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::metadata::flag;
use firn_sql_types::{Display, SqlType};

use super::scope::{ColumnSource, ReportedColumn, ScopeColumn, ScopeTable, ShownColumn};
use super::{
    Binder, Names, Typing, cte, display, hints, join, json_table, merge, query, union, view,
};

/// For each column of a query: its origin, and the length of its values.
pub(crate) type ShownColumns = Vec<(Option<ColumnOrigin>, Option<Display>)>;

/// A part of `FROM`.
#[derive(Debug, Default)]
pub(crate) struct FromItem {
    /// The tables; `None` if there are none.
    pub(crate) tree: Option<JoinTree>,
    /// The meaning of `*` and of unqualified names.
    pub(crate) shown: Vec<ShownColumn>,
    /// Conditions of merged queries, which belong to the join or `WHERE` around it.
    pub(crate) conditions: Vec<Expression>,
}

/// Binds `FROM` into the innermost scope.
pub(crate) fn from(binder: &mut Binder<'_>, list: &[TableWithJoins]) -> Result<FromItem> {
    join_tables(&mut binder.names, list.iter().map(tables_in).sum())?;
    let mut all = FromItem::default();
    for tables in list {
        let item = table_with_joins(binder, tables, false)?;
        all.conditions.extend(item.conditions);
        all.shown.extend(item.shown);
        all.tree = match (all.tree, item.tree) {
            (Some(left), Some(right)) => Some(inner(left, right, Vec::new())),
            (left, right) => left.or(right),
        };
        // Only LATERAL and ON see names to the left.
        binder.names.innermost().shown.clone_from(&all.shown);
    }
    Ok(all)
}

/// A table with its joins; `null_supplied`: an outer join around it may make it NULL.
pub(crate) fn table_with_joins(
    binder: &mut Binder<'_>,
    tables: &TableWithJoins,
    null_supplied: bool,
) -> Result<FromItem> {
    let is_right = |join: &Join| super::join::is_right(join);
    let mut later_right = tables.joins.iter().any(is_right);
    let mut left = factor(binder, &tables.relation, null_supplied || later_right)?;
    for (number, join) in tables.joins.iter().enumerate() {
        later_right = tables.joins[number + 1..].iter().any(is_right);
        let supplied = super::join::is_left(join) || later_right;
        let right = factor(binder, &join.relation, null_supplied || supplied)?;
        left = join::join(binder, left, right, join)?;
    }
    Ok(left)
}

fn factor(binder: &mut Binder<'_>, factor: &TableFactor, null_supplied: bool) -> Result<FromItem> {
    match factor {
        TableFactor::Table { name, alias, index_hints, partitions } => {
            if !partitions.is_empty() {
                return Err(SqlError::new(1747, "PARTITION () clause on non partitioned table"));
            }
            named_table(binder, name, alias.as_ref(), index_hints, null_supplied)
        }
        TableFactor::Derived { lateral, subquery, alias } => {
            derived(binder, *lateral, subquery, alias, null_supplied)
        }
        TableFactor::Nested(tables) => table_with_joins(binder, tables, null_supplied),
        TableFactor::JsonTable(table) => json_table::json_table(binder, table),
    }
}

fn named_table(
    binder: &mut Binder<'_>,
    name: &TableName,
    alias: Option<&TableAlias>,
    hints: &[IndexHint],
    null_supplied: bool,
) -> Result<FromItem> {
    let shown_name: Arc<str> = alias.map_or(name.name.as_str(), |alias| &alias.name).into();
    if name.schema.is_none()
        && let Some(item) = cte::common_table(binder, &name.name, &shown_name, null_supplied)?
    {
        return Ok(item);
    }
    let schema = binder.names.schema_of(name)?;
    let found = binder.typing.context.catalog.relation(&schema, &name.name).inspect_err(|_| {
        binder.name_table(&schema, &name.name, &shown_name, None);
    })?;
    let model = match &found {
        CatalogRelation::Table(table) => {
            binder.uses.use_table(table);
            Some(Arc::clone(table))
        }
        CatalogRelation::Virtual(_) => None,
    };
    let named = binder.name_table(&schema, &name.name, &shown_name, model.as_deref());
    let item = match found {
        CatalogRelation::Virtual(table) => virtual_table(binder, table, shown_name)?,
        CatalogRelation::Table(table) if table.view().is_some() => {
            view::bind_view(binder, &table, shown_name, null_supplied)?
        }
        CatalogRelation::Table(table) => {
            if !binder.nesting.is_outermost() && binder.uses.written.contains(&table.id) {
                let message = format!(
                    "You can't specify target table '{shown_name}' for update in FROM clause"
                );
                return Err(SqlError::new(1093, message));
            }
            let hints = hints::index_hints(&binder.block, &table, &shown_name, hints)?;
            base_table(binder, table, shown_name, hints)?.1
        }
    };
    if let Some(table) = binder.names.innermost().tables.last_mut() {
        table.named = Some(named);
    }
    Ok(item)
}

/// A stored table.
pub(crate) fn base_table(
    binder: &mut Binder<'_>,
    table: Arc<TableModel>,
    alias: Arc<str>,
    hints: IndexHints,
) -> Result<(RelationId, FromItem)> {
    let relation =
        binder.typing.frame.add_relation(RelationSource::Table(Arc::clone(&table)), alias.clone());
    binder.typing.frame.relation_mut(relation).hints = hints;
    binder.typing.frame.relation_mut(relation).slots = vec![None; table.ordinals()];
    let columns = table.shown_columns().map(|column| ScopeColumn {
        name: column.name.clone(),
        ty: column.ty.clone(),
        source: ColumnSource::Relation(relation, column.ordinal),
        invisible: column.invisible,
        reported: None,
    });
    let scope_table = ScopeTable {
        alias,
        schema: Some(table.schema.clone()),
        original: table.name.clone(),
        columns: columns.collect(),
        nullable: false,
        model: Some(table),
        checks: Vec::new(),
        named: None,
    };
    let shown = push_table(binder, scope_table)?;
    let tree = Some(JoinTree::Relation(relation));
    Ok((relation, FromItem { tree, shown, conditions: Vec::new() }))
}

fn virtual_table(
    binder: &mut Binder<'_>,
    table: Arc<dyn VirtualTable>,
    alias: Arc<str>,
) -> Result<FromItem> {
    let relation = binder
        .typing
        .frame
        .add_relation(RelationSource::Virtual(Arc::clone(&table)), alias.clone());
    let columns = table.columns().iter().zip(0_u16..).map(|(column, number)| ScopeColumn {
        name: column.name.into(),
        ty: column.ty.clone(),
        source: ColumnSource::Relation(relation, number),
        invisible: false,
        reported: reported_of_dictionary(&*table, column.name, &alias),
    });
    let columns: Vec<ScopeColumn> = columns.collect();
    let scope_table = ScopeTable {
        alias,
        schema: Some(table.schema().into()),
        original: table.name().into(),
        columns,
        nullable: false,
        model: None,
        checks: Vec::new(),
        named: None,
    };
    let shown = push_table(binder, scope_table)?;
    Ok(FromItem { tree: Some(JoinTree::Relation(relation)), shown, conditions: Vec::new() })
}

/// Adds a table to the innermost scope; returns the meaning of its columns.
pub(crate) fn push_table(binder: &mut Binder<'_>, table: ScopeTable) -> Result<Vec<ShownColumn>> {
    let same = |other: &ScopeTable| {
        other.alias.eq_ignore_ascii_case(&table.alias)
            && (other.schema == table.schema || other.schema.is_none() || table.schema.is_none())
    };
    if binder.names.innermost().tables.iter().any(same) {
        let message = format!("Not unique table/alias: '{}'", table.alias);
        return Err(SqlError::new(1066, message));
    }
    let columns_bytes = table.columns.len() * size_of::<ScopeColumn>();
    binder.typing.context.watch.hold(size_of::<Relation>() + columns_bytes)?;
    binder.typing.context.watch.step()?;
    let number = binder.names.innermost().tables.len();
    let shown = (0..table.columns.len()).map(|column| ShownColumn { table: number, column });
    let shown = shown.collect();
    binder.names.innermost().tables.push(table);
    Ok(shown)
}

/// Checks whether the innermost block may join this many more tables.
pub(crate) fn may_join(names: &mut Names, tables: usize) -> bool {
    names.innermost().joined_tables + tables <= super::MOST_TABLES
}

/// Counts tables that the innermost block joins.
pub(crate) fn join_tables(names: &mut Names, tables: usize) -> Result<()> {
    if !may_join(names, tables) {
        let most = super::MOST_TABLES;
        let message = format!("Too many tables; MySQL can only use {most} tables in a join");
        return Err(SqlError::new(1116, message));
    }
    names.innermost().joined_tables += tables;
    Ok(())
}

fn derived(
    binder: &mut Binder<'_>,
    lateral: bool,
    subquery: &WrittenQuery,
    alias: &TableAlias,
    null_supplied: bool,
) -> Result<FromItem> {
    let last = binder.names.scopes.len() - 1;
    let before = std::mem::replace(&mut binder.names.scopes[last].is_hidden, !lateral);
    // A derived table is evaluated before rows are written.
    let written = std::mem::take(&mut binder.uses.written);
    let bound = binder.deeper(|binder| query::query(binder, subquery));
    binder.uses.written = written;
    binder.names.scopes[last].is_hidden = before;
    let names: Vec<&str> = alias.columns.iter().map(String::as_str).collect();
    place_query(binder, bound?, alias.name.as_str().into(), &names, lateral, null_supplied)
}

/// Makes a bound query a table of the innermost scope: as part of the block, or by itself.
pub(crate) fn place_query(
    binder: &mut Binder<'_>,
    query: Query,
    alias: Arc<str>,
    names: &[&str],
    lateral: bool,
    null_supplied: bool,
) -> Result<FromItem> {
    let names = column_names(&query, names)?;
    let query = with_columns(&mut binder.typing, query);
    let shown = shown_columns(&query);
    match merge::merge(binder, query, null_supplied) {
        Ok((block, columns)) => {
            let columns = names.into_iter().zip(columns).zip(shown);
            let columns = columns.map(|((name, value), (origin, display))| ScopeColumn {
                reported: Some(reported_of(&name, origin, display, &alias, false)),
                name,
                ty: value.ty.clone(),
                source: ColumnSource::Expression(value),
                invisible: false,
            });
            let columns = columns.collect();
            let shown = push_table(binder, derived_table(alias, columns))?;
            // The query was counted as one table.
            let tables = block.from.as_ref().map_or(0, JoinTree::count);
            join_tables(&mut binder.names, tables.saturating_sub(1))?;
            Ok(FromItem { tree: block.from, shown, conditions: block.conditions })
        }
        Err(query) => {
            let (types, shown) = stored_columns(&binder.typing, &query);
            let source = RelationSource::Derived { query: Some(query), lateral };
            let placed = place_relation(binder, source, alias, names, types)?;
            tell_columns(&mut binder.names, shown);
            Ok(placed)
        }
    }
}

/// The query, whose values fit columns.
fn with_columns(typing: &mut Typing<'_>, mut query: Query) -> Query {
    let types = query.columns.iter().map(|column| column.value.ty.clone().as_column());
    let types: Vec<SqlType> = types.collect();
    let mut columns = query.columns.iter_mut().zip(&types);
    if columns.all(|(column, ty)| column.value.ty.kind == ty.kind) {
        return query;
    }
    for (column, ty) in query.columns.iter_mut().zip(&types) {
        if column.value.ty.kind != ty.kind {
            column.display = column.display.map(union::of_cut_numbers);
        }
    }
    union::cast_columns(typing, query, &types, &[])
}

/// Makes a table reference with these columns a table of the innermost scope.
pub(crate) fn place_relation(
    binder: &mut Binder<'_>,
    source: RelationSource,
    alias: Arc<str>,
    names: Vec<Arc<str>>,
    types: Vec<SqlType>,
) -> Result<FromItem> {
    let relation = binder.typing.frame.add_relation(source, alias.clone());
    let numbered = names.into_iter().zip(types).zip(0_u16..);
    let columns = numbered.map(|((name, ty), number)| ScopeColumn {
        name,
        ty,
        source: ColumnSource::Relation(relation, number),
        invisible: false,
        reported: None,
    });
    let columns = columns.collect();
    let shown = push_table(binder, derived_table(alias, columns))?;
    Ok(FromItem { tree: Some(JoinTree::Relation(relation)), shown, conditions: Vec::new() })
}

/// Records the origins of the columns of the last table of the innermost scope, which is
/// evaluated by itself.
pub(crate) fn tell_columns(names: &mut Names, shown: ShownColumns) {
    let Some(table) = names.innermost().tables.last_mut() else { return };
    for (column, (origin, display)) in table.columns.iter_mut().zip(shown) {
        column.reported = Some(reported_of(&column.name, origin, display, &table.alias, true));
    }
}

/// The column names of a query: those written after its alias, or its own.
pub(crate) fn column_names(query: &Query, written: &[&str]) -> Result<Vec<Arc<str>>> {
    if written.is_empty() {
        let names: Vec<Arc<str>> = query.columns.iter().map(|column| column.name.clone()).collect();
        for (number, name) in names.iter().enumerate() {
            let is_same = |other: &Arc<str>| firn_sql_catalog::model::same_name(other, name);
            if names[..number].iter().any(is_same) {
                return Err(SqlError::duplicate_column(name));
            }
        }
        return Ok(names);
    }
    if written.len() != query.columns.len() {
        return Err(SqlError::of_kind(
            ErrorKind::ColumnNamesMisfit,
            1353,
            "In definition of view, derived table or common table expression, SELECT list and column \
             names list have different column counts",
        ));
    }
    Ok(written.iter().map(|name| Arc::from(*name)).collect())
}

/// How many tables a part of `FROM` names.
fn tables_in(tables: &TableWithJoins) -> usize {
    let joined = tables.joins.iter().map(|join| &join.relation);
    let factors = std::iter::once(&tables.relation).chain(joined);
    let count = factors.map(|factor| match factor {
        TableFactor::Nested(tables) => tables_in(tables),
        _ => 1,
    });
    count.sum()
}

/// What clients see of a query's columns.
pub(crate) fn shown_columns(query: &Query) -> ShownColumns {
    query.columns.iter().map(|column| (column.origin.clone(), column.display)).collect()
}

/// The types of a query's columns in a temporary table, and what clients see of them there.
pub(crate) fn stored_columns(typing: &Typing<'_>, query: &Query) -> (Vec<SqlType>, ShownColumns) {
    let is_kept = merge::is_shown_kept(query);
    let is_set = !matches!(query.body, Body::Select(_));
    let stored = query.columns.iter().map(|column| {
        let (ty, display) = match is_kept {
            true => display::stored_column(typing, column, is_set),
            false => (column.value.ty.clone(), column.display),
        };
        (ty, (column.origin.clone(), display))
    });
    stored.unzip()
}

/// What clients see of a column of `information_schema`.
fn reported_of_dictionary(
    table: &dyn VirtualTable,
    column: &str,
    alias: &Arc<str>,
) -> Option<Box<ReportedColumn>> {
    if table.schema() != "information_schema" {
        return None;
    }
    let found = dictionary_column(table.name(), column)?;
    let (schema, original_table) = found.of.unwrap_or(("", table.name()));
    let origin = ColumnOrigin {
        schema: schema.into(),
        table: alias.clone(),
        original_table: original_table.into(),
        original_name: column.into(),
        flags: 0,
        reported: Some(found.ty),
    };
    Some(Box::new(ReportedColumn { origin, display: None }))
}

/// What clients see of a subquery's column, which is stored in a temporary table or stands for an
/// expression.
fn reported_of(
    name: &Arc<str>,
    origin: Option<ColumnOrigin>,
    display: Option<Display>,
    alias: &Arc<str>,
    is_kept: bool,
) -> Box<ReportedColumn> {
    let nowhere = || ColumnOrigin {
        schema: "".into(),
        table: alias.clone(),
        original_table: "".into(),
        original_name: name.clone(),
        flags: 0,
        reported: None,
    };
    let mut origin = ColumnOrigin { table: alias.clone(), ..origin.unwrap_or_else(nowhere) };
    if is_kept {
        origin.flags &= !flag::OF_KEYS;
        origin.reported = None;
        origin.original_name = name.clone();
    }
    let display = display.map(|one| if is_kept { one.as_stored() } else { one });
    Box::new(ReportedColumn { origin, display })
}

fn derived_table(alias: Arc<str>, columns: Vec<ScopeColumn>) -> ScopeTable {
    ScopeTable {
        original: alias.clone(),
        alias,
        schema: None,
        columns,
        nullable: false,
        model: None,
        checks: Vec::new(),
        named: None,
    }
}

/// Two trees joined.
pub(crate) fn inner(left: JoinTree, right: JoinTree, conditions: Vec<Expression>) -> JoinTree {
    JoinTree::Join {
        kind: JoinKind::Inner,
        left: Box::new(left),
        right: Box::new(right),
        conditions,
    }
}
