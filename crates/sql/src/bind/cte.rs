//! Common table expressions.
//!
//! ```text
//!   WITH a AS (SELECT …), RECURSIVE b AS (seed UNION ALL step over b) …
//!     a   bound where it is named: merged, or worked out once for all who name it
//!     b   CommonTable { query: seed, recursive: step, which reads CommonTable number }
//! ```

use std::sync::Arc;

use crate::error::{Result, SqlError};
use crate::expression::Expression;
use crate::grammar::ast::{
    Limit, Query as WrittenQuery, SetExpr, SetOperator, TableFactor, TableWithJoins, With,
};
use crate::logical::{OutputColumn, Part, Query, RelationSource};
use crate::types::{Display, SqlType};

use super::Binder;
use super::from::{FromItem, ShownColumns, column_names, shown_columns};

/// A name defined by `WITH`.
#[derive(Debug, Clone)]
pub(crate) struct CommonTableName {
    name: Arc<str>,
    columns: Vec<String>,
    query: Arc<WrittenQuery>,
    is_recursive: bool,
    /// How many names and scopes its query sees.
    visible_names: usize,
    visible_scopes: usize,
    made: Option<Made>,
}

/// A common table that is evaluated once.
#[derive(Debug, Clone)]
struct Made {
    number: usize,
    names: Vec<Arc<str>>,
    types: Vec<SqlType>,
    shown: ShownColumns,
}

impl Binder<'_> {
    /// Remembers the names of a `WITH`.
    pub(crate) fn name_common_tables(&mut self, with: &With) -> Result<()> {
        let first = self.common_names.len();
        for table in &with.tables {
            let name: Arc<str> = table.alias.name.as_str().into();
            let is_same = |other: &CommonTableName| other.name.eq_ignore_ascii_case(&name);
            if self.common_names[first..].iter().any(is_same) {
                return Err(SqlError::new(1066, format!("Not unique table/alias: '{name}'")));
            }
            let columns = table.alias.columns.iter().cloned();
            self.common_names.push(CommonTableName {
                is_recursive: with.recursive && names_itself(&table.query, &name),
                columns: columns.collect(),
                query: Arc::new((*table.query).clone()),
                visible_names: self.common_names.len(),
                visible_scopes: self.scopes.len(),
                made: None,
                name,
            });
        }
        Ok(())
    }

    /// A common table of this name as a table of the innermost scope, if there is one.
    pub(crate) fn common_table(
        &mut self,
        name: &str,
        alias: &Arc<str>,
        null_supplied: bool,
    ) -> Result<Option<FromItem>> {
        let place =
            self.common_names.iter().rposition(|table| table.name.eq_ignore_ascii_case(name));
        let Some(place) = place else { return Ok(None) };
        if let Some(made) = self.common_names[place].made.clone() {
            return self.place_made(made, alias).map(Some);
        }
        if self.common_names[place].is_recursive {
            let made = self.make_recursive(place)?;
            return self.place_made(made, alias).map(Some);
        }
        self.expand("Common table expression")?;
        let table = self.common_names[place].clone();
        let query = self.where_it_stands(place, |binder| binder.query(&table.query))?;
        let names: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        let names = column_names(&query, &names)?;
        let shown = shown_columns(&query);
        match self.merge(query, null_supplied) {
            Ok((block, columns)) => {
                let bound = Query {
                    columns: Vec::new(),
                    body: crate::logical::Body::Select(block),
                    order: Vec::new(),
                    offset: None,
                    limit: None,
                    count_all: false,
                };
                self.place_merged(bound, columns, names, shown, alias).map(Some)
            }
            Err(query) => {
                let made = self.make(*query, names);
                self.common_names[place].made = Some(made.clone());
                self.place_made(made, alias).map(Some)
            }
        }
    }

    fn place_merged(
        &mut self,
        bound: Query,
        columns: Vec<crate::expression::Expression>,
        names: Vec<Arc<str>>,
        shown: ShownColumns,
        alias: &Arc<str>,
    ) -> Result<FromItem> {
        let outputs = names.iter().zip(columns).zip(shown);
        let outputs = outputs.map(|((name, value), (origin, display))| OutputColumn {
            value,
            name: name.clone(),
            origin,
            display,
        });
        let query = Query { columns: outputs.collect(), ..bound };
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        self.place_query(query, alias.clone(), &names, false, false)
    }

    fn place_made(&mut self, made: Made, alias: &Arc<str>) -> Result<FromItem> {
        let source = RelationSource::CommonTable(made.number);
        let placed = self.place_relation(source, alias.clone(), made.names, made.types)?;
        self.tell_columns(made.shown);
        Ok(placed)
    }

    /// Runs `bind` with only the names that precede the common table visible.
    fn where_it_stands<T>(
        &mut self,
        place: usize,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let table = &self.common_names[place];
        let (visible_names, visible_scopes) = (table.visible_names, table.visible_scopes);
        let names = self.common_names.split_off(visible_names);
        let hidden: Vec<bool> = self.scopes[visible_scopes..]
            .iter_mut()
            .map(|scope| std::mem::replace(&mut scope.is_hidden, true))
            .collect();
        let bound = self.deeper(bind);
        for (scope, hidden) in self.scopes[visible_scopes..].iter_mut().zip(hidden) {
            scope.is_hidden = hidden;
        }
        self.common_names.truncate(visible_names);
        self.common_names.extend(names);
        bound
    }

    fn make(&mut self, query: Query, names: Vec<Arc<str>>) -> Made {
        let types: Vec<SqlType> =
            query.columns.iter().map(|column| column.value.ty.clone()).collect();
        let shown = shown_columns(&query);
        self.parts.push(Part::CommonTable(query));
        Made { number: self.next_common_table(), names, types, shown }
    }

    fn next_common_table(&mut self) -> usize {
        self.common_tables += 1;
        self.common_tables - 1
    }

    fn make_recursive(&mut self, place: usize) -> Result<Made> {
        let table = self.common_names[place].clone();
        let (mut seeds, mut steps, mut all) = (Vec::new(), Vec::new(), true);
        split(&table.query.body, &table.name, &mut seeds, &mut steps, &mut all);
        let name = &table.name;
        if !matches!(table.query.body.as_ref(), SetExpr::SetOperation { .. } | SetExpr::Query(_)) {
            let message =
                format!("Recursive Common Table Expression '{name}' should contain a UNION");
            return Err(SqlError::new(3573, message));
        }
        if seeds.is_empty() || steps.is_empty() {
            let message = format!(
                "Recursive Common Table Expression '{name}' should have one or more non-recursive query \
                 blocks followed by one or more recursive ones"
            );
            return Err(SqlError::new(3574, message));
        }
        let (seed, names) = self.where_it_stands(place, |binder| {
            let sides = seeds.iter().map(|seed| binder.side(seed)).collect::<Result<Vec<_>>>()?;
            let seed = binder.one_of(sides, all)?;
            let written: Vec<&str> = table.columns.iter().map(String::as_str).collect();
            let names = column_names(&seed, &written)?;
            Ok((seed, names))
        })?;
        let types = seed.columns.iter().map(|column| column.value.ty.clone().with_nullable(true));
        let types: Vec<SqlType> = types.collect();
        // Columns that depend on the seed may be NULL.
        let shown = |display| Display { nullable: None, ..display };
        let shown = seed.columns.iter().map(|column| (None, column.display.map(shown))).collect();
        self.parts.push(Part::Seed(seed));
        let number = self.next_common_table();
        let made = Made { number, names, types: types.clone(), shown };
        self.common_names[place].made = Some(made.clone());
        let step = self.with_itself(place, |binder| {
            let sides = steps.iter().map(|step| binder.side(step)).collect::<Result<Vec<_>>>()?;
            let step = binder.one_of(sides, true)?;
            Ok(binder.cast_columns(step, &types))
        })?;
        if step.columns.len() != types.len() {
            return Err(SqlError::new(
                1222,
                "The used SELECT statements have a different number of columns",
            ));
        }
        let limit = self.recursive_limit(table.query.limit.as_ref())?;
        self.parts.push(Part::Step { number, query: step, limit, distinct: !all, types });
        Ok(made)
    }

    /// The limit of a recursive query, and its offset.
    fn recursive_limit(
        &mut self,
        written: Option<&Limit>,
    ) -> Result<Option<(Expression, Option<Expression>)>> {
        let Some(Limit { count, offset }) = written else { return Ok(None) };
        let count = self.limit(count)?;
        Ok(Some((count, offset.as_ref().map(|offset| self.limit(offset)).transpose()?)))
    }

    /// As [`Binder::where_it_stands`], with the common table itself visible as well.
    fn with_itself<T>(
        &mut self,
        place: usize,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let visible = self.common_names[place].visible_names;
        self.common_names[place].visible_names = place + 1;
        let bound = self.where_it_stands(place, bind);
        self.common_names[place].visible_names = visible;
        bound
    }

    fn one_of(&mut self, mut sides: Vec<Query>, all: bool) -> Result<Query> {
        match sides.pop() {
            Some(only) if sides.is_empty() => Ok(only),
            Some(last) => {
                sides.push(last);
                self.united(crate::logical::SetOperation::Union, all, sides)
            }
            None => Err(SqlError::not_supported("a recursive query without parts")),
        }
    }
}

/// Splits a recursive query into the sides that name it and those that do not.
fn split<'q>(
    body: &'q SetExpr,
    name: &str,
    seeds: &mut Vec<&'q SetExpr>,
    steps: &mut Vec<&'q SetExpr>,
    all: &mut bool,
) {
    match body {
        SetExpr::SetOperation { left, op: SetOperator::Union, all: keeps_all, right } => {
            *all &= keeps_all;
            split(left, name, seeds, steps, all);
            split(right, name, seeds, steps, all);
        }
        SetExpr::Query(query) if query.with.is_none() && query.limit.is_none() => {
            split(&query.body, name, seeds, steps, all);
        }
        side if mentions(side, name) => steps.push(side),
        side => seeds.push(side),
    }
}

fn names_itself(query: &WrittenQuery, name: &str) -> bool {
    mentions(&query.body, name)
}

/// Whether a query names a table in its `FROM`.
fn mentions(body: &SetExpr, name: &str) -> bool {
    match body {
        SetExpr::Select(select) => select.from.iter().any(|tables| tables_mention(tables, name)),
        SetExpr::Query(query) => mentions(&query.body, name),
        SetExpr::SetOperation { left, right, .. } => mentions(left, name) || mentions(right, name),
        _ => false,
    }
}

fn tables_mention(tables: &TableWithJoins, name: &str) -> bool {
    let joined = tables.joins.iter().map(|join| &join.relation);
    std::iter::once(&tables.relation).chain(joined).any(|factor| match factor {
        TableFactor::Table { name: table, .. } => {
            table.schema.is_none() && table.name.eq_ignore_ascii_case(name)
        }
        TableFactor::Derived { subquery, .. } => mentions(&subquery.body, name),
        TableFactor::Nested(tables) => tables_mention(tables, name),
        TableFactor::JsonTable(_) => false,
    })
}
