//! Common table expressions.
//!
//! ```text
//!   WITH a AS (SELECT …), RECURSIVE b AS (seed UNION ALL step over b) …
//!     a   bound where it is named: merged, or evaluated once for all uses
//!     b   CommonTable { query: seed, recursive: step, which reads CommonTable number }
//! ```

use std::sync::Arc;

use firn_sql_grammar::ast::{
    Limit, Query as WrittenQuery, SetExpr, SetOperator, TableFactor, TableWithJoins, With,
};
use firn_sql_logical::expression::Expression;
use firn_sql_logical::{OutputColumn, Part, Query, RelationSource};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Display, SqlType};

use super::from::{FromItem, ShownColumns, column_names, shown_columns};
use super::{Binder, Names, Parts, Typing, from, merge, query, union};

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

/// Remembers the names of a `WITH`.
pub(crate) fn name_common_tables(names: &mut Names, with: &With) -> Result<()> {
    let first = names.common.len();
    for table in &with.tables {
        let name: Arc<str> = table.alias.name.as_str().into();
        let is_same = |other: &CommonTableName| other.name.eq_ignore_ascii_case(&name);
        if names.common[first..].iter().any(is_same) {
            return Err(SqlError::new(1066, format!("Not unique table/alias: '{name}'")));
        }
        let columns = table.alias.columns.iter().cloned();
        names.common.push(CommonTableName {
            is_recursive: with.recursive && names_itself(&table.query, &name),
            columns: columns.collect(),
            query: Arc::new((*table.query).clone()),
            visible_names: names.common.len(),
            visible_scopes: names.scopes.len(),
            made: None,
            name,
        });
    }
    Ok(())
}

/// A common table of this name as a table of the innermost scope, if there is one.
pub(crate) fn common_table(
    binder: &mut Binder<'_>,
    name: &str,
    alias: &Arc<str>,
    null_supplied: bool,
) -> Result<Option<FromItem>> {
    let place = binder.names.common.iter().rposition(|table| table.name.eq_ignore_ascii_case(name));
    let Some(place) = place else { return Ok(None) };
    if let Some(made) = binder.names.common[place].made.clone() {
        return place_made(binder, made, alias).map(Some);
    }
    if binder.names.common[place].is_recursive {
        let made = make_recursive(binder, place)?;
        return place_made(binder, made, alias).map(Some);
    }
    binder.nesting.expand("Common table expression")?;
    let table = binder.names.common[place].clone();
    let query = where_it_stands(binder, place, |binder| query::query(binder, &table.query))?;
    let names: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let names = column_names(&query, &names)?;
    let shown = shown_columns(&query);
    match merge::merge(binder, query, null_supplied) {
        Ok((block, columns)) => {
            let bound = Query {
                columns: Vec::new(),
                body: firn_sql_logical::Body::Select(block),
                order: Vec::new(),
                offset: None,
                limit: None,
                count_all: false,
            };
            place_merged(binder, bound, columns, names, shown, alias).map(Some)
        }
        Err(query) => {
            let made = make(&binder.typing, &mut binder.parts, *query, names);
            binder.names.common[place].made = Some(made.clone());
            place_made(binder, made, alias).map(Some)
        }
    }
}

fn place_merged(
    binder: &mut Binder<'_>,
    bound: Query,
    columns: Vec<firn_sql_logical::expression::Expression>,
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
    from::place_query(binder, query, alias.clone(), &names, false, false)
}

fn place_made(binder: &mut Binder<'_>, made: Made, alias: &Arc<str>) -> Result<FromItem> {
    let source = RelationSource::CommonTable(made.number);
    let placed = from::place_relation(binder, source, alias.clone(), made.names, made.types)?;
    from::tell_columns(&mut binder.names, made.shown);
    Ok(placed)
}

/// Runs `bind` with only the names that precede the common table visible.
fn where_it_stands<T>(
    binder: &mut Binder<'_>,
    place: usize,
    bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
) -> Result<T> {
    let table = &binder.names.common[place];
    let (visible_names, visible_scopes) = (table.visible_names, table.visible_scopes);
    let names = binder.names.common.split_off(visible_names);
    let hidden: Vec<bool> = binder.names.scopes[visible_scopes..]
        .iter_mut()
        .map(|scope| std::mem::replace(&mut scope.is_hidden, true))
        .collect();
    let bound = binder.deeper(bind);
    for (scope, hidden) in binder.names.scopes[visible_scopes..].iter_mut().zip(hidden) {
        scope.is_hidden = hidden;
    }
    binder.names.common.truncate(visible_names);
    binder.names.common.extend(names);
    bound
}

fn make(typing: &Typing<'_>, parts: &mut Parts, query: Query, names: Vec<Arc<str>>) -> Made {
    let (types, shown) = from::stored_columns(typing, &query);
    Made { number: parts.push_common_table(query), names, types, shown }
}

fn make_recursive(binder: &mut Binder<'_>, place: usize) -> Result<Made> {
    let table = binder.names.common[place].clone();
    let (mut seeds, mut steps, mut all) = (Vec::new(), Vec::new(), true);
    split(&table.query.body, &table.name, &mut seeds, &mut steps, &mut all);
    let name = &table.name;
    if !matches!(table.query.body.as_ref(), SetExpr::SetOperation { .. } | SetExpr::Query(_)) {
        let message = format!("Recursive Common Table Expression '{name}' should contain a UNION");
        return Err(SqlError::new(3573, message));
    }
    if seeds.is_empty() || steps.is_empty() {
        let message = format!(
            "Recursive Common Table Expression '{name}' should have one or more non-recursive query \
             blocks followed by one or more recursive ones"
        );
        return Err(SqlError::new(3574, message));
    }
    let (seed, names) = where_it_stands(binder, place, |binder| {
        let sides =
            seeds.iter().map(|seed| query::side(binder, seed)).collect::<Result<Vec<_>>>()?;
        let seed = one_of(&mut binder.typing, sides, all)?;
        let written: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        let names = column_names(&seed, &written)?;
        Ok((seed, names))
    })?;
    let types = seed.columns.iter().map(|column| column.value.ty.clone().with_nullable(true));
    let types: Vec<SqlType> = types.collect();
    // Columns that depend on the seed may be NULL.
    let shown = |display| Display { nullable: None, ..display };
    let shown = seed.columns.iter().map(|column| (None, column.display.map(shown))).collect();
    let number = binder.parts.push_seed(seed);
    let made = Made { number, names, types: types.clone(), shown };
    binder.names.common[place].made = Some(made.clone());
    let step = with_itself(binder, place, |binder| {
        let sides =
            steps.iter().map(|step| query::side(binder, step)).collect::<Result<Vec<_>>>()?;
        let step = one_of(&mut binder.typing, sides, true)?;
        Ok(union::cast_columns(&mut binder.typing, step, &types, &[]))
    })?;
    if step.columns.len() != types.len() {
        return Err(SqlError::new(
            1222,
            "The used SELECT statements have a different number of columns",
        ));
    }
    let limit = recursive_limit(binder, table.query.limit.as_ref())?;
    binder.parts.push(Part::Step { number, query: step, limit, distinct: !all, types });
    Ok(made)
}

/// The limit of a recursive query, and its offset.
fn recursive_limit(
    binder: &mut Binder<'_>,
    written: Option<&Limit>,
) -> Result<Option<(Expression, Option<Expression>)>> {
    let Some(Limit { count, offset }) = written else { return Ok(None) };
    let count = query::limit(binder, count)?;
    Ok(Some((count, offset.as_ref().map(|offset| query::limit(binder, offset)).transpose()?)))
}

/// As [`where_it_stands`], with the common table itself visible as well.
fn with_itself<T>(
    binder: &mut Binder<'_>,
    place: usize,
    bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
) -> Result<T> {
    let visible = binder.names.common[place].visible_names;
    binder.names.common[place].visible_names = place + 1;
    let bound = where_it_stands(binder, place, bind);
    binder.names.common[place].visible_names = visible;
    bound
}

fn one_of(typing: &mut Typing<'_>, mut sides: Vec<Query>, all: bool) -> Result<Query> {
    match sides.pop() {
        Some(only) if sides.is_empty() => Ok(only),
        Some(last) => {
            sides.push(last);
            union::united(typing, firn_sql_logical::SetOperation::Union, all, sides)
        }
        None => Err(SqlError::not_supported("a recursive query without parts")),
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
