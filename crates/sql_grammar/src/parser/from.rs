//! `FROM`: tables, joins, derived tables, index hints, `JSON_TABLE`.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    IndexHint, IndexHintKind, IndexHintScope, Join, JoinConstraint, JoinKind, JsonTable,
    JsonTableColumn, JsonTableHandling, JsonTableNamedColumn, Query, TableAlias, TableFactor,
    TableWithJoins,
};
use super::super::lexer::Kind;
use super::Parser;

/// What parentheses contain in the place of a table.
enum Parenthesised {
    Query(Box<Query>),
    Tables(Box<TableWithJoins>),
}

impl Parser<'_> {
    /// Tables after `FROM`. `DUAL` is not a table.
    pub(super) fn from(&mut self) -> Result<Vec<TableWithJoins>> {
        if self.is("DUAL") {
            self.at += 1;
            return Ok(Vec::new());
        }
        self.table_references()
    }

    /// Tables with their joins, separated by commas.
    pub(super) fn table_references(&mut self) -> Result<Vec<TableWithJoins>> {
        self.list(Self::table_reference)
    }

    #[inline(never)]
    fn table_reference(&mut self) -> Result<TableWithJoins> {
        if self.kind() == Kind::LeftBrace {
            return self.odbc_join();
        }
        let relation = self.table_factor()?;
        self.joins_after(relation)
    }

    /// `{ OJ … }`.
    #[inline(never)]
    fn odbc_join(&mut self) -> Result<TableWithJoins> {
        self.need(Kind::LeftBrace)?;
        self.ident()?;
        let inner = self.deeper(Self::table_reference)?;
        self.need(Kind::RightBrace)?;
        self.joins_after(nested(inner))
    }

    /// The joins that follow a table.
    #[inline(never)]
    fn joins_after(&mut self, relation: TableFactor) -> Result<TableWithJoins> {
        let mut joins = Vec::new();
        while let Some(kind) = self.join_kind()? {
            self.join(kind, &mut joins)?;
        }
        Ok(TableWithJoins { relation, joins })
    }

    fn join_kind(&mut self) -> Result<Option<Joined>> {
        let natural = self.accept("NATURAL");
        let kind = match self.upper().as_str() {
            "JOIN" => JoinKind::Inner,
            "INNER" | "CROSS" => {
                self.at += 1;
                JoinKind::Inner
            }
            "STRAIGHT_JOIN" if !natural => {
                self.at += 1;
                return Ok(Some(Joined::plain(JoinKind::Straight)));
            }
            "LEFT" => self.outer(JoinKind::Left),
            "RIGHT" => self.outer(JoinKind::Right),
            _ if natural => return self.error(),
            _ => return Ok(None),
        };
        self.expect("JOIN")?;
        Ok(Some(Joined { kind, natural }))
    }

    fn outer(&mut self, kind: JoinKind) -> JoinKind {
        self.at += 1;
        self.accept("OUTER");
        kind
    }

    /// A join after its words. `a JOIN b JOIN c ON x ON y` nests to the right; without a second
    /// condition (`a JOIN b JOIN c ON x`), it is read from left to right.
    #[inline(never)]
    fn join(&mut self, joined: Joined, joins: &mut Vec<Join>) -> Result<()> {
        let relation = match self.kind() {
            Kind::LeftBrace => nested(self.odbc_join()?),
            _ => self.table_factor()?,
        };
        let kind = joined.kind;
        if joined.natural {
            joins.push(Join { relation, kind, constraint: JoinConstraint::Natural });
            return Ok(());
        }
        if let Some(constraint) = self.join_constraint()? {
            joins.push(Join { relation, kind, constraint });
            return Ok(());
        }
        let right = self.deeper(|p| p.joins_after(relation))?;
        if right.joins.is_empty() {
            if joined.needs_condition() {
                return self.error();
            }
            joins.push(Join { relation: right.relation, kind, constraint: JoinConstraint::None });
            return Ok(());
        }
        match self.join_constraint()? {
            Some(constraint) => joins.push(Join { relation: nested(right), kind, constraint }),
            None if joined.needs_condition() => return self.error(),
            None => {
                joins.push(Join {
                    relation: right.relation,
                    kind,
                    constraint: JoinConstraint::None,
                });
                joins.extend(right.joins);
            }
        }
        Ok(())
    }

    fn join_constraint(&mut self) -> Result<Option<JoinConstraint>> {
        // `INSERT … SELECT … JOIN t ON DUPLICATE KEY UPDATE` has no join condition there.
        if self.is("ON") && !self.are(&["ON", "DUPLICATE", "KEY"]) {
            self.at += 1;
            return Ok(Some(JoinConstraint::On(self.expression()?)));
        }
        if self.accept("USING") {
            let columns = self.parens_list(Self::ident)?;
            return Ok(Some(JoinConstraint::Using(columns)));
        }
        Ok(None)
    }

    #[inline(never)]
    fn table_factor(&mut self) -> Result<TableFactor> {
        if self.kind() == Kind::LeftParen {
            return match self.parenthesised_tables()? {
                Parenthesised::Query(subquery) => self.derived(false, subquery),
                Parenthesised::Tables(tables) if tables.joins.is_empty() => Ok(tables.relation),
                Parenthesised::Tables(tables) => Ok(nested(*tables)),
            };
        }
        if self.accept("LATERAL") {
            let subquery = self.subquery()?;
            return self.derived(true, subquery);
        }
        if self.is("JSON_TABLE") {
            return self.json_table();
        }
        self.named_table()
    }

    /// A query, or tables, in parentheses. Only the inside shows which, possibly after further
    /// parentheses; a query in parentheses may be an operand of a larger one.
    #[inline(never)]
    fn parenthesised_tables(&mut self) -> Result<Parenthesised> {
        self.deeper(|p| {
            p.need(Kind::LeftParen)?;
            if p.begins_query(0) {
                let query = p.query()?;
                p.need(Kind::RightParen)?;
                return Ok(Parenthesised::Query(query));
            }
            let first = match p.kind() {
                Kind::LeftParen => p.parenthesised_tables()?,
                _ => Parenthesised::Tables(Box::new(p.table_reference()?)),
            };
            let first = match first {
                Parenthesised::Query(query) => {
                    if p.kind() == Kind::RightParen || p.continues_query() {
                        let query = p.query_after_parens(query)?;
                        p.need(Kind::RightParen)?;
                        return Ok(Parenthesised::Query(query));
                    }
                    let relation = p.derived(false, query)?;
                    p.joins_after(relation)?
                }
                Parenthesised::Tables(tables) if tables.joins.is_empty() => {
                    p.joins_after(tables.relation)?
                }
                Parenthesised::Tables(tables) => match p.join_follows() {
                    true => p.joins_after(nested(*tables))?,
                    false => *tables,
                },
            };
            let tables = p.comma_joins(first)?;
            p.need(Kind::RightParen)?;
            Ok(Parenthesised::Tables(Box::new(tables)))
        })
    }

    fn continues_query(&self) -> bool {
        self.is_any(&["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "FOR", "LOCK"])
    }

    fn join_follows(&self) -> bool {
        self.is_any(&["JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN"])
    }

    /// Commas inside parentheses are joins without a condition.
    #[inline(never)]
    fn comma_joins(&mut self, first: TableWithJoins) -> Result<TableWithJoins> {
        let mut all = first;
        while self.take(Kind::Comma) {
            let next = self.table_reference()?;
            let relation = if next.joins.is_empty() { next.relation } else { nested(next) };
            let (kind, constraint) = (JoinKind::Inner, JoinConstraint::None);
            all.joins.push(Join { relation, kind, constraint });
        }
        Ok(all)
    }

    #[inline(never)]
    fn derived(&mut self, lateral: bool, subquery: Box<Query>) -> Result<TableFactor> {
        let Some(mut alias) = self.table_alias()? else {
            return Err(SqlError::new(1248, "Every derived table must have its own alias"));
        };
        alias.columns = self.alias_columns()?;
        Ok(TableFactor::Derived { lateral, subquery, alias })
    }

    /// `[AS] name`.
    fn table_alias(&mut self) -> Result<Option<TableAlias>> {
        if !(self.accept("AS") || self.is_ident_at(0)) {
            return Ok(None);
        }
        Ok(Some(TableAlias { name: self.ident()?, columns: Vec::new() }))
    }

    /// A table by name, with partitions, alias and index hints.
    #[inline(never)]
    pub(super) fn named_table(&mut self) -> Result<TableFactor> {
        let name = self.table_name()?;
        let mut partitions = self.partition_names()?;
        let alias = self.table_alias()?;
        if partitions.is_empty() {
            partitions = self.partition_names()?;
        }
        Ok(TableFactor::Table { name, alias, partitions, index_hints: self.index_hints()? })
    }

    /// `PARTITION (p, q)`, if present.
    pub(super) fn partition_names(&mut self) -> Result<Vec<String>> {
        if self.is("PARTITION") && self.kind_at(1) == Kind::LeftParen {
            self.at += 1;
            return self.parens_list(Self::ident);
        }
        Ok(Vec::new())
    }

    fn index_hints(&mut self) -> Result<Vec<IndexHint>> {
        let mut hints = Vec::new();
        while self.is_any(&["USE", "IGNORE", "FORCE"])
            && (self.is_at(1, "INDEX") || self.is_at(1, "KEY"))
        {
            hints.push(self.index_hint()?);
            self.take(Kind::Comma);
        }
        Ok(hints)
    }

    #[inline(never)]
    fn index_hint(&mut self) -> Result<IndexHint> {
        let kind = match self.expect_any(&["USE", "IGNORE", "FORCE"])? {
            "USE" => IndexHintKind::Use,
            "IGNORE" => IndexHintKind::Ignore,
            _ => IndexHintKind::Force,
        };
        self.expect_any(&["INDEX", "KEY"])?;
        let scope = match self.accept("FOR") {
            false => None,
            true => Some(match self.expect_any(&["JOIN", "ORDER", "GROUP"])? {
                "JOIN" => IndexHintScope::Join,
                "ORDER" => self.expect("BY").map(|()| IndexHintScope::OrderBy)?,
                _ => self.expect("BY").map(|()| IndexHintScope::GroupBy)?,
            }),
        };
        let indexes = self.parens_maybe_empty(|p| match p.accept("PRIMARY") {
            true => Ok("PRIMARY".to_owned()),
            false => p.ident(),
        })?;
        if indexes.is_empty() && kind != IndexHintKind::Use {
            return self.error();
        }
        Ok(IndexHint { kind, scope, indexes })
    }

    #[inline(never)]
    fn json_table(&mut self) -> Result<TableFactor> {
        self.expect("JSON_TABLE")?;
        self.need(Kind::LeftParen)?;
        let document = self.expression()?;
        self.need(Kind::Comma)?;
        let path = self.plain_value("a path of JSON_TABLE that is no literal")?;
        let columns = self.json_columns()?;
        self.need(Kind::RightParen)?;
        let Some(alias) = self.table_alias()? else {
            return Err(SqlError::new(1248, "Every derived table must have its own alias"));
        };
        Ok(TableFactor::JsonTable(Box::new(JsonTable { document, path, columns, alias })))
    }

    #[inline(never)]
    fn json_columns(&mut self) -> Result<Vec<JsonTableColumn>> {
        self.expect("COLUMNS")?;
        self.deeper(|p| p.parens_list(Self::json_column))
    }

    #[inline(never)]
    fn json_column(&mut self) -> Result<JsonTableColumn> {
        if self.is("NESTED") && (self.is_at(1, "PATH") || self.kind_at(1) == Kind::Text) {
            self.at += 1;
            self.accept("PATH");
            let path = self.string()?;
            return Ok(JsonTableColumn::Nested { path, columns: self.json_columns()? });
        }
        let name = self.ident()?;
        if self.accept_all(&["FOR", "ORDINALITY"]) {
            return Ok(JsonTableColumn::ForOrdinality(name));
        }
        let type_text = self.json_column_type()?;
        let exists = self.accept("EXISTS");
        self.expect("PATH")?;
        let path = self.string()?;
        let (on_empty, on_error) = self.json_handling()?;
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
    fn json_column_type(&mut self) -> Result<String> {
        let first = self.at;
        self.column_type()?;
        Ok(self.text_since(first).to_owned())
    }

    fn json_handling(&mut self) -> Result<(Option<JsonTableHandling>, Option<JsonTableHandling>)> {
        let (mut on_empty, mut on_error) = (None, None);
        while self.is_any(&["NULL", "ERROR", "DEFAULT"]) {
            let handling = match self.expect_any(&["NULL", "ERROR", "DEFAULT"])? {
                "NULL" => JsonTableHandling::Null,
                "ERROR" => JsonTableHandling::Error,
                _ => JsonTableHandling::Default(self.plain_value("DEFAULT of JSON_TABLE")?),
            };
            self.expect("ON")?;
            match self.expect_any(&["EMPTY", "ERROR"])? {
                "EMPTY" => on_empty = Some(handling),
                _ => on_error = Some(handling),
            }
        }
        Ok((on_empty, on_error))
    }
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
