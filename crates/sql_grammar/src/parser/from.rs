//! `FROM`: tables, joins, derived tables, index hints, `JSON_TABLE`.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    IndexHint, IndexHintKind, IndexHintScope, Join, JoinConstraint, JoinKind, JsonTable,
    JsonTableColumn, JsonTableHandling, JsonTableNamedColumn, Query, TableAlias, TableFactor,
    TableWithJoins,
};
use super::super::lexer::Kind;
use super::{Parser, column, expression, query};

/// What parentheses contain in the place of a table.
enum Parenthesised {
    Query(Box<Query>),
    Tables(Box<TableWithJoins>),
}

/// Tables after `FROM`. `DUAL` is not a table.
pub(super) fn from(parser: &mut Parser<'_>) -> Result<Vec<TableWithJoins>> {
    if parser.is("DUAL") {
        parser.at += 1;
        return Ok(Vec::new());
    }
    table_references(parser)
}

/// Tables with their joins, separated by commas.
pub(super) fn table_references(parser: &mut Parser<'_>) -> Result<Vec<TableWithJoins>> {
    parser.list(table_reference)
}

#[inline(never)]
fn table_reference(parser: &mut Parser<'_>) -> Result<TableWithJoins> {
    if parser.kind() == Kind::LeftBrace {
        return odbc_join(parser);
    }
    let relation = table_factor(parser)?;
    joins_after(parser, relation)
}

/// `{ OJ … }`.
#[inline(never)]
fn odbc_join(parser: &mut Parser<'_>) -> Result<TableWithJoins> {
    parser.need(Kind::LeftBrace)?;
    parser.ident()?;
    let inner = parser.deeper(table_reference)?;
    parser.need(Kind::RightBrace)?;
    joins_after(parser, nested(inner))
}

/// The joins that follow a table.
#[inline(never)]
fn joins_after(parser: &mut Parser<'_>, relation: TableFactor) -> Result<TableWithJoins> {
    let mut joins = Vec::new();
    while let Some(kind) = join_kind(parser)? {
        join(parser, kind, &mut joins)?;
    }
    Ok(TableWithJoins { relation, joins })
}

fn join_kind(parser: &mut Parser<'_>) -> Result<Option<Joined>> {
    let natural = parser.accept("NATURAL");
    let kind = match parser.upper().as_str() {
        "JOIN" => JoinKind::Inner,
        "INNER" | "CROSS" => {
            parser.at += 1;
            JoinKind::Inner
        }
        "STRAIGHT_JOIN" if !natural => {
            parser.at += 1;
            return Ok(Some(Joined::plain(JoinKind::Straight)));
        }
        "LEFT" => outer(parser, JoinKind::Left),
        "RIGHT" => outer(parser, JoinKind::Right),
        _ if natural => return parser.error(),
        _ => return Ok(None),
    };
    parser.expect("JOIN")?;
    Ok(Some(Joined { kind, natural }))
}

fn outer(parser: &mut Parser<'_>, kind: JoinKind) -> JoinKind {
    parser.at += 1;
    parser.accept("OUTER");
    kind
}

/// A join after its words. `a JOIN b JOIN c ON x ON y` nests to the right; without a second
/// condition (`a JOIN b JOIN c ON x`), it is read from left to right.
#[inline(never)]
fn join(parser: &mut Parser<'_>, joined: Joined, joins: &mut Vec<Join>) -> Result<()> {
    let relation = match parser.kind() {
        Kind::LeftBrace => nested(odbc_join(parser)?),
        _ => table_factor(parser)?,
    };
    let kind = joined.kind;
    if joined.natural {
        joins.push(Join { relation, kind, constraint: JoinConstraint::Natural });
        return Ok(());
    }
    if let Some(constraint) = join_constraint(parser)? {
        joins.push(Join { relation, kind, constraint });
        return Ok(());
    }
    let right = parser.deeper(|parser| joins_after(parser, relation))?;
    if right.joins.is_empty() {
        if joined.needs_condition() {
            return parser.error();
        }
        joins.push(Join { relation: right.relation, kind, constraint: JoinConstraint::None });
        return Ok(());
    }
    match join_constraint(parser)? {
        Some(constraint) => joins.push(Join { relation: nested(right), kind, constraint }),
        None if joined.needs_condition() => return parser.error(),
        None => {
            joins.push(Join { relation: right.relation, kind, constraint: JoinConstraint::None });
            joins.extend(right.joins);
        }
    }
    Ok(())
}

fn join_constraint(parser: &mut Parser<'_>) -> Result<Option<JoinConstraint>> {
    // `INSERT … SELECT … JOIN t ON DUPLICATE KEY UPDATE` has no join condition there.
    if parser.is("ON") && !parser.are(&["ON", "DUPLICATE", "KEY"]) {
        parser.at += 1;
        return Ok(Some(JoinConstraint::On(expression::expression(parser)?)));
    }
    if parser.accept("USING") {
        let columns = parser.parens_list(Parser::ident)?;
        return Ok(Some(JoinConstraint::Using(columns)));
    }
    Ok(None)
}

#[inline(never)]
fn table_factor(parser: &mut Parser<'_>) -> Result<TableFactor> {
    if parser.kind() == Kind::LeftParen {
        return match parenthesised_tables(parser)? {
            Parenthesised::Query(subquery) => derived(parser, false, subquery),
            Parenthesised::Tables(tables) if tables.joins.is_empty() => Ok(tables.relation),
            Parenthesised::Tables(tables) => Ok(nested(*tables)),
        };
    }
    if parser.accept("LATERAL") {
        let subquery = expression::subquery(parser)?;
        return derived(parser, true, subquery);
    }
    if parser.is("JSON_TABLE") {
        return json_table(parser);
    }
    named_table(parser)
}

/// A query, or tables, in parentheses. Only the inside shows which, possibly after further
/// parentheses; a query in parentheses may be an operand of a larger one.
#[inline(never)]
fn parenthesised_tables(parser: &mut Parser<'_>) -> Result<Parenthesised> {
    parser.deeper(|parser| {
        parser.need(Kind::LeftParen)?;
        if query::begins_query(parser, 0) {
            let query = query::query(parser)?;
            parser.need(Kind::RightParen)?;
            return Ok(Parenthesised::Query(query));
        }
        let first = match parser.kind() {
            Kind::LeftParen => parenthesised_tables(parser)?,
            _ => Parenthesised::Tables(Box::new(table_reference(parser)?)),
        };
        let first = match first {
            Parenthesised::Query(query) => {
                if parser.kind() == Kind::RightParen || continues_query(parser) {
                    let query = query::query_after_parens(parser, query)?;
                    parser.need(Kind::RightParen)?;
                    return Ok(Parenthesised::Query(query));
                }
                let relation = derived(parser, false, query)?;
                joins_after(parser, relation)?
            }
            Parenthesised::Tables(tables) if tables.joins.is_empty() => {
                joins_after(parser, tables.relation)?
            }
            Parenthesised::Tables(tables) => match join_follows(parser) {
                true => joins_after(parser, nested(*tables))?,
                false => *tables,
            },
        };
        let tables = comma_joins(parser, first)?;
        parser.need(Kind::RightParen)?;
        Ok(Parenthesised::Tables(Box::new(tables)))
    })
}

fn continues_query(parser: &Parser<'_>) -> bool {
    parser.is_any(&["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "FOR", "LOCK"])
}

fn join_follows(parser: &Parser<'_>) -> bool {
    parser.is_any(&["JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN"])
}

/// Commas inside parentheses are joins without a condition.
#[inline(never)]
fn comma_joins(parser: &mut Parser<'_>, first: TableWithJoins) -> Result<TableWithJoins> {
    let mut all = first;
    while parser.take(Kind::Comma) {
        let next = table_reference(parser)?;
        let relation = if next.joins.is_empty() { next.relation } else { nested(next) };
        let (kind, constraint) = (JoinKind::Inner, JoinConstraint::None);
        all.joins.push(Join { relation, kind, constraint });
    }
    Ok(all)
}

#[inline(never)]
fn derived(parser: &mut Parser<'_>, lateral: bool, subquery: Box<Query>) -> Result<TableFactor> {
    let Some(mut alias) = table_alias(parser)? else {
        return Err(SqlError::new(1248, "Every derived table must have its own alias"));
    };
    alias.columns = query::alias_columns(parser)?;
    Ok(TableFactor::Derived { lateral, subquery, alias })
}

/// `[AS] name`.
fn table_alias(parser: &mut Parser<'_>) -> Result<Option<TableAlias>> {
    if !(parser.accept("AS") || parser.is_ident_at(0)) {
        return Ok(None);
    }
    Ok(Some(TableAlias { name: parser.ident()?, columns: Vec::new() }))
}

/// A table by name, with partitions, alias and index hints.
#[inline(never)]
pub(super) fn named_table(parser: &mut Parser<'_>) -> Result<TableFactor> {
    let name = parser.table_name()?;
    let mut partitions = partition_names(parser)?;
    let alias = table_alias(parser)?;
    if partitions.is_empty() {
        partitions = partition_names(parser)?;
    }
    Ok(TableFactor::Table { name, alias, partitions, index_hints: index_hints(parser)? })
}

/// `PARTITION (p, q)`, if present.
pub(super) fn partition_names(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    if parser.is("PARTITION") && parser.kind_at(1) == Kind::LeftParen {
        parser.at += 1;
        return parser.parens_list(Parser::ident);
    }
    Ok(Vec::new())
}

fn index_hints(parser: &mut Parser<'_>) -> Result<Vec<IndexHint>> {
    let mut hints = Vec::new();
    while parser.is_any(&["USE", "IGNORE", "FORCE"])
        && (parser.is_at(1, "INDEX") || parser.is_at(1, "KEY"))
    {
        hints.push(index_hint(parser)?);
        parser.take(Kind::Comma);
    }
    Ok(hints)
}

#[inline(never)]
fn index_hint(parser: &mut Parser<'_>) -> Result<IndexHint> {
    let kind = match parser.expect_any(&["USE", "IGNORE", "FORCE"])? {
        "USE" => IndexHintKind::Use,
        "IGNORE" => IndexHintKind::Ignore,
        _ => IndexHintKind::Force,
    };
    parser.expect_any(&["INDEX", "KEY"])?;
    let scope = match parser.accept("FOR") {
        false => None,
        true => Some(match parser.expect_any(&["JOIN", "ORDER", "GROUP"])? {
            "JOIN" => IndexHintScope::Join,
            "ORDER" => parser.expect("BY").map(|()| IndexHintScope::OrderBy)?,
            _ => parser.expect("BY").map(|()| IndexHintScope::GroupBy)?,
        }),
    };
    let indexes = parser.parens_maybe_empty(|parser| match parser.accept("PRIMARY") {
        true => Ok("PRIMARY".to_owned()),
        false => parser.ident(),
    })?;
    if indexes.is_empty() && kind != IndexHintKind::Use {
        return parser.error();
    }
    Ok(IndexHint { kind, scope, indexes })
}

#[inline(never)]
fn json_table(parser: &mut Parser<'_>) -> Result<TableFactor> {
    parser.expect("JSON_TABLE")?;
    parser.need(Kind::LeftParen)?;
    let document = expression::expression(parser)?;
    parser.need(Kind::Comma)?;
    let path = expression::plain_value(parser, "a path of JSON_TABLE that is no literal")?;
    let columns = json_columns(parser)?;
    parser.need(Kind::RightParen)?;
    let Some(alias) = table_alias(parser)? else {
        return Err(SqlError::new(1248, "Every derived table must have its own alias"));
    };
    Ok(TableFactor::JsonTable(Box::new(JsonTable { document, path, columns, alias })))
}

#[inline(never)]
fn json_columns(parser: &mut Parser<'_>) -> Result<Vec<JsonTableColumn>> {
    parser.expect("COLUMNS")?;
    parser.deeper(|parser| parser.parens_list(json_column))
}

#[inline(never)]
fn json_column(parser: &mut Parser<'_>) -> Result<JsonTableColumn> {
    if parser.is("NESTED") && (parser.is_at(1, "PATH") || parser.kind_at(1) == Kind::Text) {
        parser.at += 1;
        parser.accept("PATH");
        let path = parser.string()?;
        return Ok(JsonTableColumn::Nested { path, columns: json_columns(parser)? });
    }
    let name = parser.ident()?;
    if parser.accept_all(&["FOR", "ORDINALITY"]) {
        return Ok(JsonTableColumn::ForOrdinality(name));
    }
    let type_text = json_column_type(parser)?;
    let exists = parser.accept("EXISTS");
    parser.expect("PATH")?;
    let path = parser.string()?;
    let (on_empty, on_error) = json_handling(parser)?;
    Ok(JsonTableColumn::Named(JsonTableNamedColumn {
        name,
        type_text,
        path,
        exists,
        on_empty,
        on_error,
    }))
}

/// The type of a column of `JSON_TABLE`, as text that the column grammar parses again.
fn json_column_type(parser: &mut Parser<'_>) -> Result<String> {
    let first = parser.at;
    column::column_type(parser)?;
    Ok(parser.text_since(first).to_owned())
}

fn json_handling(
    parser: &mut Parser<'_>,
) -> Result<(Option<JsonTableHandling>, Option<JsonTableHandling>)> {
    let (mut on_empty, mut on_error) = (None, None);
    while parser.is_any(&["NULL", "ERROR", "DEFAULT"]) {
        let handling = match parser.expect_any(&["NULL", "ERROR", "DEFAULT"])? {
            "NULL" => JsonTableHandling::Null,
            "ERROR" => JsonTableHandling::Error,
            _ => JsonTableHandling::Default(expression::plain_value(
                parser,
                "DEFAULT of JSON_TABLE",
            )?),
        };
        parser.expect("ON")?;
        match parser.expect_any(&["EMPTY", "ERROR"])? {
            "EMPTY" => on_empty = Some(handling),
            _ => on_error = Some(handling),
        }
    }
    Ok((on_empty, on_error))
}

/// The properties that the words of a join give.
#[derive(Clone, Copy)]
struct Joined {
    kind: JoinKind,
    natural: bool,
}

impl Joined {
    fn plain(kind: JoinKind) -> Joined {
        Joined { kind, natural: false }
    }

    fn needs_condition(self) -> bool {
        matches!(self.kind, JoinKind::Left | JoinKind::Right)
    }
}

fn nested(tables: TableWithJoins) -> TableFactor {
    TableFactor::Nested(Box::new(tables))
}
