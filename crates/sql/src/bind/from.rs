//! `FROM`: tables, derived tables, and the meaning of their names.
//!
//! ```text
//!   FROM t, (SELECT a, b + 1 AS c FROM u WHERE b > 0) d
//!     scope   t: its columns    d: a → u.a, c → u.b + 1
//!     tree    t ⋈ u             conditions u.b > 0
//! ```

use std::sync::Arc;

use crate::catalog::Relation as CatalogRelation;
use crate::catalog::model::TableModel;
use crate::catalog::told::dictionary_column;
use crate::catalog::virtual_table::VirtualTable;
use crate::error::{Result, SqlError};
use crate::expression::Expression;
use crate::grammar::ast::{
    IndexHint, Join, Query as WrittenQuery, TableAlias, TableFactor, TableName, TableWithJoins,
};
use crate::logical::{
    ColumnOrigin, IndexHints, JoinKind, JoinTree, Query, Relation, RelationId, RelationSource,
};
use crate::types::metadata::flag;
use crate::types::{Display, SqlType};

use super::Binder;
use super::scope::{ColumnSource, ScopeColumn, ScopeTable, ShownColumn, ToldColumn};

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

impl Binder<'_> {
    /// Binds `FROM` into the innermost scope.
    pub(crate) fn from(&mut self, list: &[TableWithJoins]) -> Result<FromItem> {
        self.join_tables(list.iter().map(tables_in).sum())?;
        let mut all = FromItem::default();
        for tables in list {
            let item = self.table_with_joins(tables, false)?;
            all.conditions.extend(item.conditions);
            all.shown.extend(item.shown);
            all.tree = match (all.tree, item.tree) {
                (Some(left), Some(right)) => Some(inner(left, right, Vec::new())),
                (left, right) => left.or(right),
            };
            // Only LATERAL and ON see names to the left.
            self.scope().shown.clone_from(&all.shown);
        }
        Ok(all)
    }

    /// A table with its joins; `null_supplied`: an outer join around it may make it NULL.
    pub(crate) fn table_with_joins(
        &mut self,
        tables: &TableWithJoins,
        null_supplied: bool,
    ) -> Result<FromItem> {
        let is_right = |join: &Join| super::join::is_right(join);
        let mut later_right = tables.joins.iter().any(is_right);
        let mut left = self.factor(&tables.relation, null_supplied || later_right)?;
        for (number, join) in tables.joins.iter().enumerate() {
            later_right = tables.joins[number + 1..].iter().any(is_right);
            let supplied = super::join::is_left(join) || later_right;
            let right = self.factor(&join.relation, null_supplied || supplied)?;
            left = self.join(left, right, join)?;
        }
        Ok(left)
    }

    fn factor(&mut self, factor: &TableFactor, null_supplied: bool) -> Result<FromItem> {
        match factor {
            TableFactor::Table { name, alias, index_hints, partitions } => {
                if !partitions.is_empty() {
                    return Err(SqlError::new(
                        1747,
                        "PARTITION () clause on non partitioned table",
                    ));
                }
                self.named_table(name, alias.as_ref(), index_hints, null_supplied)
            }
            TableFactor::Derived { lateral, subquery, alias } => {
                self.derived(*lateral, subquery, alias, null_supplied)
            }
            TableFactor::Nested(tables) => self.table_with_joins(tables, null_supplied),
            TableFactor::JsonTable(table) => self.json_table(table),
        }
    }

    fn named_table(
        &mut self,
        name: &TableName,
        alias: Option<&TableAlias>,
        hints: &[IndexHint],
        null_supplied: bool,
    ) -> Result<FromItem> {
        let shown_name: Arc<str> = alias.map_or(name.name.as_str(), |alias| &alias.name).into();
        if name.schema.is_none()
            && let Some(item) = self.common_table(&name.name, &shown_name, null_supplied)?
        {
            return Ok(item);
        }
        let schema = self.schema_of(name)?;
        let found = self.context.catalog.relation(&schema, &name.name).inspect_err(|_| {
            self.name_table(&schema, &name.name, &shown_name, None);
        })?;
        let model = match &found {
            CatalogRelation::Table(table) => {
                self.use_table(table);
                Some(Arc::clone(table))
            }
            CatalogRelation::Virtual(_) => None,
        };
        let named = self.name_table(&schema, &name.name, &shown_name, model.as_deref());
        let item = match found {
            CatalogRelation::Virtual(table) => self.virtual_table(table, shown_name)?,
            CatalogRelation::Table(table) if table.view().is_some() => {
                self.view(&table, shown_name, null_supplied)?
            }
            CatalogRelation::Table(table) => {
                if self.depth > 0 && self.written.contains(&table.id) {
                    let message = format!(
                        "You can't specify target table '{shown_name}' for update in FROM clause"
                    );
                    return Err(SqlError::new(1093, message));
                }
                let hints = self.index_hints(&table, &shown_name, hints)?;
                self.base_table(table, shown_name, hints)?.1
            }
        };
        if let Some(table) = self.scope().tables.last_mut() {
            table.named = named;
        }
        Ok(item)
    }

    /// The schema of a table's name.
    pub(crate) fn schema_of(&self, name: &TableName) -> Result<Arc<str>> {
        match &name.schema {
            Some(schema) => Ok(schema.as_str().into()),
            None => self.schema.clone().ok_or_else(|| SqlError::new(1046, "No database selected")),
        }
    }

    /// A stored table.
    pub(crate) fn base_table(
        &mut self,
        table: Arc<TableModel>,
        alias: Arc<str>,
        hints: IndexHints,
    ) -> Result<(RelationId, FromItem)> {
        let relation = self.add_relation(RelationSource::Table(Arc::clone(&table)), alias.clone());
        self.relations[relation.0].hints = hints;
        self.relations[relation.0].slots = vec![None; table.ordinals()];
        let columns = table.shown_columns().map(|column| ScopeColumn {
            name: column.name.clone(),
            ty: column.ty.clone(),
            source: ColumnSource::Relation(relation, column.ordinal),
            invisible: column.invisible,
            told: None,
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
        let shown = self.push_table(scope_table)?;
        let tree = Some(JoinTree::Relation(relation));
        Ok((relation, FromItem { tree, shown, conditions: Vec::new() }))
    }

    fn virtual_table(&mut self, table: Arc<dyn VirtualTable>, alias: Arc<str>) -> Result<FromItem> {
        let relation =
            self.add_relation(RelationSource::Virtual(Arc::clone(&table)), alias.clone());
        let columns = table.columns().iter().zip(0_u16..).map(|(column, number)| ScopeColumn {
            name: column.name.into(),
            ty: column.ty.clone(),
            source: ColumnSource::Relation(relation, number),
            invisible: false,
            told: told_of_dictionary(&*table, column.name, &alias),
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
        let shown = self.push_table(scope_table)?;
        Ok(FromItem { tree: Some(JoinTree::Relation(relation)), shown, conditions: Vec::new() })
    }

    /// Adds a table reference to the statement.
    pub(crate) fn add_relation(&mut self, source: RelationSource, alias: Arc<str>) -> RelationId {
        self.relations.push(Relation {
            source,
            alias,
            slots: Vec::new(),
            mode: firn_api::rows::ReadMode::Consistent,
            hints: IndexHints::default(),
            row_slots: None,
        });
        RelationId(self.relations.len() - 1)
    }

    /// Adds a table to the innermost scope; returns the meaning of its columns.
    pub(crate) fn push_table(&mut self, table: ScopeTable) -> Result<Vec<ShownColumn>> {
        let same = |other: &ScopeTable| {
            other.alias.eq_ignore_ascii_case(&table.alias)
                && (other.schema == table.schema
                    || other.schema.is_none()
                    || table.schema.is_none())
        };
        if self.scope().tables.iter().any(same) {
            let message = format!("Not unique table/alias: '{}'", table.alias);
            return Err(SqlError::new(1066, message));
        }
        let columns_bytes = table.columns.len() * size_of::<ScopeColumn>();
        self.context.watch.hold(size_of::<Relation>() + columns_bytes)?;
        self.context.watch.step()?;
        let number = self.scope().tables.len();
        let shown = (0..table.columns.len()).map(|column| ShownColumn { table: number, column });
        let shown = shown.collect();
        self.scope().tables.push(table);
        Ok(shown)
    }

    /// Checks whether the innermost block may join this many more tables.
    pub(crate) fn may_join(&mut self, tables: usize) -> bool {
        self.scope().joined_tables + tables <= super::MOST_TABLES
    }

    /// Counts tables that the innermost block joins.
    pub(crate) fn join_tables(&mut self, tables: usize) -> Result<()> {
        if !self.may_join(tables) {
            let most = super::MOST_TABLES;
            let message = format!("Too many tables; MySQL can only use {most} tables in a join");
            return Err(SqlError::new(1116, message));
        }
        self.scope().joined_tables += tables;
        Ok(())
    }

    fn derived(
        &mut self,
        lateral: bool,
        subquery: &WrittenQuery,
        alias: &TableAlias,
        null_supplied: bool,
    ) -> Result<FromItem> {
        let last = self.scopes.len() - 1;
        let before = std::mem::replace(&mut self.scopes[last].is_hidden, !lateral);
        // A derived table is evaluated before rows are written.
        let written = std::mem::take(&mut self.written);
        let bound = self.deeper(|binder| binder.query(subquery));
        self.written = written;
        self.scopes[last].is_hidden = before;
        let names: Vec<&str> = alias.columns.iter().map(String::as_str).collect();
        self.place_query(bound?, alias.name.as_str().into(), &names, lateral, null_supplied)
    }

    /// Makes a bound query a table of the innermost scope: as part of the block, or by itself.
    pub(crate) fn place_query(
        &mut self,
        query: Query,
        alias: Arc<str>,
        names: &[&str],
        lateral: bool,
        null_supplied: bool,
    ) -> Result<FromItem> {
        let names = column_names(&query, names)?;
        let shown = shown_columns(&query);
        match self.merge(query, null_supplied) {
            Ok((block, columns)) => {
                let columns = names.into_iter().zip(columns).zip(shown);
                let columns = columns.map(|((name, value), (origin, display))| ScopeColumn {
                    told: Some(told_of(&name, origin, display, &alias, false)),
                    name,
                    ty: value.ty.clone(),
                    source: ColumnSource::Expression(value),
                    invisible: false,
                });
                let columns = columns.collect();
                let shown = self.push_table(derived_table(alias, columns))?;
                // The query was counted as one table.
                let tables = block.from.as_ref().map_or(0, JoinTree::count);
                self.join_tables(tables.saturating_sub(1))?;
                Ok(FromItem { tree: block.from, shown, conditions: block.conditions })
            }
            Err(query) => {
                let types: Vec<SqlType> =
                    query.columns.iter().map(|column| column.value.ty.clone()).collect();
                let source = RelationSource::Derived { query: Some(query), lateral };
                let placed = self.place_relation(source, alias, names, types)?;
                self.tell_columns(shown);
                Ok(placed)
            }
        }
    }

    /// Makes a table reference with these columns a table of the innermost scope.
    pub(crate) fn place_relation(
        &mut self,
        source: RelationSource,
        alias: Arc<str>,
        names: Vec<Arc<str>>,
        types: Vec<SqlType>,
    ) -> Result<FromItem> {
        let relation = self.add_relation(source, alias.clone());
        let numbered = names.into_iter().zip(types).zip(0_u16..);
        let columns = numbered.map(|((name, ty), number)| ScopeColumn {
            name,
            ty,
            source: ColumnSource::Relation(relation, number),
            invisible: false,
            told: None,
        });
        let columns = columns.collect();
        let shown = self.push_table(derived_table(alias, columns))?;
        Ok(FromItem { tree: Some(JoinTree::Relation(relation)), shown, conditions: Vec::new() })
    }

    /// Records the origins of the columns of the last table of the innermost scope, which is
    /// evaluated by itself.
    pub(crate) fn tell_columns(&mut self, shown: ShownColumns) {
        let Some(table) = self.scope().tables.last_mut() else { return };
        for (column, (origin, display)) in table.columns.iter_mut().zip(shown) {
            column.told = Some(told_of(&column.name, origin, display, &table.alias, true));
        }
    }
}

/// The column names of a query: those written after its alias, or its own.
pub(crate) fn column_names(query: &Query, written: &[&str]) -> Result<Vec<Arc<str>>> {
    if written.is_empty() {
        let names: Vec<Arc<str>> = query.columns.iter().map(|column| column.name.clone()).collect();
        for (number, name) in names.iter().enumerate() {
            let is_same = |other: &Arc<str>| crate::catalog::model::same_name(other, name);
            if names[..number].iter().any(is_same) {
                return Err(SqlError::new(1060, format!("Duplicate column name '{name}'")));
            }
        }
        return Ok(names);
    }
    if written.len() != query.columns.len() {
        return Err(SqlError::new(
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

/// What clients see of a column of `information_schema`.
fn told_of_dictionary(
    table: &dyn VirtualTable,
    column: &str,
    alias: &Arc<str>,
) -> Option<Box<ToldColumn>> {
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
        told: Some(found.ty),
    };
    Some(Box::new(ToldColumn { origin, display: None }))
}

/// What clients see of a subquery's column, which is stored in a temporary table or stands for an
/// expression.
fn told_of(
    name: &Arc<str>,
    origin: Option<ColumnOrigin>,
    display: Option<Display>,
    alias: &Arc<str>,
    is_kept: bool,
) -> Box<ToldColumn> {
    let nowhere = || ColumnOrigin {
        schema: "".into(),
        table: alias.clone(),
        original_table: "".into(),
        original_name: name.clone(),
        flags: 0,
        told: None,
    };
    let mut origin = ColumnOrigin { table: alias.clone(), ..origin.unwrap_or_else(nowhere) };
    if is_kept {
        origin.flags &= !flag::OF_KEYS;
        origin.told = None;
    }
    let display = display.map(|one| if is_kept { one.as_stored() } else { one });
    Box::new(ToldColumn { origin, display })
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
