//! `FROM`: tables, joins, derived tables, index hints, `JSON_TABLE`.

use super::super::build::{ident, object};
use super::super::lexer::Kind;
use super::Parser;
use crate::error::{Result, SqlError};
use sqlparser::ast::{
    DataType, Ident, Join, JoinConstraint, JoinOperator, JsonTableColumn,
    JsonTableColumnErrorHandling, JsonTableNamedColumn, JsonTableNestedColumn, Query, TableAlias,
    TableFactor, TableIndexHintForClause, TableIndexHintType, TableIndexHints, TableIndexType,
    TableWithJoins, Value, ValueWithSpan,
};

/// What stands in parentheses where a table may.
enum Parenthesised {
    Query(Box<Query>),
    Tables(Box<TableWithJoins>),
}

impl Parser<'_> {
    /// Tables after `FROM`. `DUAL` is no table at all.
    pub(super) fn from(&mut self) -> Result<Vec<TableWithJoins>> {
        if self.is("DUAL") {
            self.at += 1;
            return Ok(Vec::new());
        }
        self.table_references()
    }

    /// Tables with their joins, with commas between.
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

    fn join_kind(&mut self) -> Result<Option<JoinKind>> {
        let natural = self.accept("NATURAL");
        let kind = match self.upper().as_str() {
            "JOIN" => JoinKind::Inner,
            "INNER" | "CROSS" => {
                self.at += 1;
                JoinKind::Inner
            }
            "STRAIGHT_JOIN" if !natural => {
                self.at += 1;
                return Ok(Some(JoinKind::Straight));
            }
            "LEFT" => self.outer(JoinKind::Left),
            "RIGHT" => self.outer(JoinKind::Right),
            _ if natural => return self.error(),
            _ => return Ok(None),
        };
        self.expect("JOIN")?;
        Ok(Some(match (natural, kind) {
            (false, kind) => kind,
            (true, JoinKind::Left) => JoinKind::NaturalLeft,
            (true, JoinKind::Right) => JoinKind::NaturalRight,
            (true, _) => JoinKind::Natural,
        }))
    }

    fn outer(&mut self, kind: JoinKind) -> JoinKind {
        self.at += 1;
        self.accept("OUTER");
        kind
    }

    /// A join after its words. `a JOIN b JOIN c ON x ON y` nests to the right; without a condition
    /// of its own (`a JOIN b JOIN c ON x`) it is read from left to right.
    #[inline(never)]
    fn join(&mut self, kind: JoinKind, joins: &mut Vec<Join>) -> Result<()> {
        let relation = match self.kind() {
            Kind::LeftBrace => nested(self.odbc_join()?),
            _ => self.table_factor()?,
        };
        if let Some(constraint) = kind.natural() {
            joins.push(made(kind, relation, constraint));
            return Ok(());
        }
        if let Some(constraint) = self.join_constraint()? {
            joins.push(made(kind, relation, constraint));
            return Ok(());
        }
        let right = self.deeper(|p| p.joins_after(relation))?;
        if right.joins.is_empty() {
            if kind.needs_condition() {
                return self.error();
            }
            joins.push(made(kind, right.relation, JoinConstraint::None));
            return Ok(());
        }
        match self.join_constraint()? {
            Some(constraint) => joins.push(made(kind, nested(right), constraint)),
            None if kind.needs_condition() => return self.error(),
            None => {
                joins.push(made(kind, right.relation, JoinConstraint::None));
                joins.extend(right.joins);
            }
        }
        Ok(())
    }

    fn join_constraint(&mut self) -> Result<Option<JoinConstraint>> {
        // `INSERT … SELECT … JOIN t ON DUPLICATE KEY UPDATE` has no condition there.
        if self.is("ON") && !self.are(&["ON", "DUPLICATE", "KEY"]) {
            self.at += 1;
            return Ok(Some(JoinConstraint::On(self.expression()?)));
        }
        if self.accept("USING") {
            let columns = self.parens_list(|p| Ok(object([p.ident()?])))?;
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

    /// A query, or tables, in parentheses. Which it is shows only inside, perhaps after further
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
            all.joins.push(made(JoinKind::Inner, relation, JoinConstraint::None));
        }
        Ok(all)
    }

    #[inline(never)]
    fn derived(&mut self, lateral: bool, subquery: Box<Query>) -> Result<TableFactor> {
        let Some(mut alias) = self.table_alias()? else {
            return Err(SqlError::new(1248, "Every derived table must have its own alias"));
        };
        alias.columns = self.alias_columns()?;
        Ok(TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None })
    }

    /// `[AS] name`.
    fn table_alias(&mut self) -> Result<Option<TableAlias>> {
        if !(self.accept("AS") || self.is_ident_at(0)) {
            return Ok(None);
        }
        let name = ident(self.ident()?);
        Ok(Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None }))
    }

    /// A table by name, with partitions, alias and index hints.
    #[inline(never)]
    pub(super) fn named_table(&mut self) -> Result<TableFactor> {
        let table = self.table_name()?;
        let name = object(table.schema.into_iter().chain([table.name]));
        let mut partitions = self.partition_names()?;
        let alias = self.table_alias()?;
        if partitions.is_empty() {
            partitions = self.partition_names()?;
        }
        Ok(TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints: Vec::new(),
            version: None,
            with_ordinality: false,
            partitions: partitions.into_iter().map(ident).collect(),
            json_path: None,
            sample: None,
            index_hints: self.index_hints()?,
        })
    }

    /// `PARTITION (p, q)`, if it is there.
    pub(super) fn partition_names(&mut self) -> Result<Vec<String>> {
        if self.is("PARTITION") && self.kind_at(1) == Kind::LeftParen {
            self.at += 1;
            return self.parens_list(Self::ident);
        }
        Ok(Vec::new())
    }

    fn index_hints(&mut self) -> Result<Vec<TableIndexHints>> {
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
    fn index_hint(&mut self) -> Result<TableIndexHints> {
        let hint_type = match self.expect_any(&["USE", "IGNORE", "FORCE"])? {
            "USE" => TableIndexHintType::Use,
            "IGNORE" => TableIndexHintType::Ignore,
            _ => TableIndexHintType::Force,
        };
        self.expect_any(&["INDEX", "KEY"])?;
        let for_clause = match self.accept("FOR") {
            false => None,
            true => Some(match self.expect_any(&["JOIN", "ORDER", "GROUP"])? {
                "JOIN" => TableIndexHintForClause::Join,
                "ORDER" => self.expect("BY").map(|()| TableIndexHintForClause::OrderBy)?,
                _ => self.expect("BY").map(|()| TableIndexHintForClause::GroupBy)?,
            }),
        };
        let index_names = self.parens_maybe_empty(|p| match p.accept("PRIMARY") {
            true => Ok(ident("PRIMARY")),
            false => p.ident().map(ident),
        })?;
        if index_names.is_empty() && hint_type != TableIndexHintType::Use {
            return self.error();
        }
        let index_type = TableIndexType::Index;
        Ok(TableIndexHints { hint_type, index_type, for_clause, index_names })
    }

    #[inline(never)]
    fn json_table(&mut self) -> Result<TableFactor> {
        self.expect("JSON_TABLE")?;
        self.need(Kind::LeftParen)?;
        let json_expr = self.expression()?;
        self.need(Kind::Comma)?;
        let json_path = self.plain_value("a path of JSON_TABLE that is no literal")?;
        let columns = self.json_columns()?;
        self.need(Kind::RightParen)?;
        let alias = self.table_alias()?;
        if alias.is_none() {
            return Err(SqlError::new(1248, "Every derived table must have its own alias"));
        }
        Ok(TableFactor::JsonTable { json_expr, json_path, columns, alias })
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
            let path = self.text_value()?;
            return Ok(JsonTableColumn::Nested(JsonTableNestedColumn {
                path,
                columns: self.json_columns()?,
            }));
        }
        let name: Ident = ident(self.ident()?);
        if self.accept_all(&["FOR", "ORDINALITY"]) {
            return Ok(JsonTableColumn::ForOrdinality(name));
        }
        let r#type = self.json_column_type()?;
        let exists = self.accept("EXISTS");
        self.expect("PATH")?;
        let path = self.text_value()?;
        let (on_empty, on_error) = self.json_handling()?;
        Ok(JsonTableColumn::Named(JsonTableNamedColumn {
            name,
            r#type,
            path,
            exists,
            on_empty,
            on_error,
        }))
    }

    /// The type of a column of `JSON_TABLE`, as text that the column grammar reads again.
    fn json_column_type(&mut self) -> Result<DataType> {
        let first = self.at;
        self.column_type()?;
        let written = self.text_since(first).to_owned();
        Ok(DataType::Custom(object([written]), Vec::new()))
    }

    fn text_value(&mut self) -> Result<ValueWithSpan> {
        Ok(Value::SingleQuotedString(self.string()?).with_empty_span())
    }

    #[allow(clippy::type_complexity)]
    fn json_handling(
        &mut self,
    ) -> Result<(Option<JsonTableColumnErrorHandling>, Option<JsonTableColumnErrorHandling>)> {
        let (mut on_empty, mut on_error) = (None, None);
        while self.is_any(&["NULL", "ERROR", "DEFAULT"]) {
            let handling = match self.expect_any(&["NULL", "ERROR", "DEFAULT"])? {
                "NULL" => JsonTableColumnErrorHandling::Null,
                "ERROR" => JsonTableColumnErrorHandling::Error,
                _ => JsonTableColumnErrorHandling::Default(
                    self.plain_value("DEFAULT of JSON_TABLE")?,
                ),
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

/// Which join the words say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JoinKind {
    Inner,
    Straight,
    Left,
    Right,
    Natural,
    NaturalLeft,
    NaturalRight,
}

impl JoinKind {
    fn needs_condition(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Right)
    }

    fn natural(self) -> Option<JoinConstraint> {
        matches!(self, JoinKind::Natural | JoinKind::NaturalLeft | JoinKind::NaturalRight)
            .then_some(JoinConstraint::Natural)
    }
}

fn made(kind: JoinKind, relation: TableFactor, constraint: JoinConstraint) -> Join {
    let operator = match kind {
        JoinKind::Inner | JoinKind::Natural => JoinOperator::Inner,
        JoinKind::Straight => JoinOperator::StraightJoin,
        JoinKind::Left | JoinKind::NaturalLeft => JoinOperator::LeftOuter,
        JoinKind::Right | JoinKind::NaturalRight => JoinOperator::RightOuter,
    };
    Join { relation, global: false, join_operator: operator(constraint) }
}

fn nested(tables: TableWithJoins) -> TableFactor {
    TableFactor::NestedJoin { table_with_joins: Box::new(tables), alias: None }
}
