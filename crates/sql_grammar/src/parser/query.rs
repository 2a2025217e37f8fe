//! Queries: `WITH`, set operations, `SELECT`, `VALUES`, `TABLE`, order, limits, locks, `INTO`.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    self, CommonTable, Expr, Limit, LockClause, LockStrength, LockWait, OrderByExpr, Query,
    SelectBlock, SelectItem, SelectModifiers, SetExpr, SetOperator, TableAlias, TableName, Value,
    WindowSpec, With,
};
use super::super::lexer::Kind;
use super::Parser;

/// The most levels that set operations may add to a query's tree.
const MAX_SET_LEVELS: usize = 1_000;
/// With more operands of one kind of `UNION`, the tree is balanced instead of leaning left.
const LEANING_SIDES: usize = 16;

impl Parser<'_> {
    /// A query as a statement, which may have `INTO`.
    pub(super) fn select_statement(&mut self) -> Result<ast::Select> {
        let outer = (std::mem::replace(&mut self.into_allowed, true), self.into.take());
        let query = self.query();
        let into = std::mem::replace(&mut self.into, outer.1);
        self.into_allowed = outer.0;
        Ok(ast::Select { query: *query?, into })
    }

    /// Whether a query begins some tokens ahead, possibly with parentheses before its first word.
    pub(super) fn begins_query(&self, ahead: usize) -> bool {
        self.is_at(ahead, "SELECT")
            || self.is_at(ahead, "WITH")
            || (self.is_at(ahead, "VALUES") && self.is_at(ahead + 1, "ROW"))
            || (self.is_at(ahead, "TABLE") && self.kind_at(ahead + 1) != Kind::LeftParen)
    }

    /// The same, if there are parentheses whose first word may begin a query.
    pub(super) fn begins_query_in_parens(&self) -> bool {
        let mut ahead = 0;
        while self.kind_at(ahead) == Kind::LeftParen {
            ahead += 1;
        }
        self.begins_query(ahead)
    }

    /// A query with all its clauses.
    #[inline(never)]
    pub(super) fn query(&mut self) -> Result<Box<Query>> {
        self.deeper(|p| {
            let height = p.height;
            p.query_depth += 1;
            let with = p.with()?;
            let body = p.query_body()?;
            let query = p.query_tail(with, body)?;
            p.query_depth -= 1;
            p.height = p.height.max(height);
            Ok(query)
        })
    }

    /// What may follow a query in parentheses that turned out to be the first operand of another.
    #[inline(never)]
    pub(super) fn query_after_parens(&mut self, first: Box<Query>) -> Result<Box<Query>> {
        if !self.is_any(&["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "FOR", "LOCK"]) {
            return Ok(first);
        }
        let first = nested(first);
        let body = self.intersections(first)?;
        let body = self.set_operations(body)?;
        self.query_tail(None, body)
    }

    /// `WITH`, if present.
    #[inline(never)]
    pub(super) fn with(&mut self) -> Result<Option<With>> {
        if !self.accept("WITH") {
            return Ok(None);
        }
        let recursive = self.accept("RECURSIVE");
        let tables = self.list(Self::common_table)?;
        Ok(Some(With { recursive, tables }))
    }

    #[inline(never)]
    fn common_table(&mut self) -> Result<CommonTable> {
        let name = self.ident()?;
        let columns = self.alias_columns()?;
        self.expect("AS")?;
        let query = self.subquery()?;
        Ok(CommonTable { alias: TableAlias { name, columns }, query })
    }

    /// `(a, b)` after the name of a derived table, if present.
    pub(super) fn alias_columns(&mut self) -> Result<Vec<String>> {
        if self.kind() != Kind::LeftParen {
            return Ok(Vec::new());
        }
        self.parens_list(Self::ident)
    }

    #[inline(never)]
    fn query_body(&mut self) -> Result<Box<SetExpr>> {
        let first = self.query_operand()?;
        let first = self.intersections(first)?;
        self.set_operations(first)
    }

    /// The rest after an operand: `UNION` and `EXCEPT` with their operands, from the left.
    #[inline(never)]
    fn set_operations(&mut self, left: Box<SetExpr>) -> Result<Box<SetExpr>> {
        let mut run = SetRun::new(left);
        while let Some(word) = self.accept_any(&["UNION", "EXCEPT"]) {
            let op = if word == "UNION" { SetOperator::Union } else { SetOperator::Except };
            let all = self.set_quantifier();
            let right = self.query_operand()?;
            let right = self.intersections(right)?;
            run.push(op, all, right)?;
        }
        Ok(run.joined())
    }

    #[inline(never)]
    fn intersections(&mut self, left: Box<SetExpr>) -> Result<Box<SetExpr>> {
        let mut run = SetRun::new(left);
        while self.accept("INTERSECT") {
            let all = self.set_quantifier();
            let right = self.query_operand()?;
            run.push(SetOperator::Intersect, all, right)?;
        }
        Ok(run.joined())
    }

    /// Whether `ALL` is written; otherwise the result has no duplicates.
    fn set_quantifier(&mut self) -> bool {
        self.accept_any(&["ALL", "DISTINCT"]) == Some("ALL")
    }

    #[inline(never)]
    fn query_operand(&mut self) -> Result<Box<SetExpr>> {
        if self.kind() == Kind::LeftParen {
            let needless = self.needless_parentheses()?;
            self.at += needless;
            let inner = self.parens(Self::query).map(nested)?;
            self.at += needless;
            return Ok(inner);
        }
        if self.is("SELECT") {
            return self.select().map(selected);
        }
        if self.is("VALUES") { self.row_values() } else { self.whole_table() }
    }

    #[inline(never)]
    fn row_values(&mut self) -> Result<Box<SetExpr>> {
        self.expect("VALUES")?;
        let rows = self.list(|p| {
            p.expect("ROW")?;
            p.parens_maybe_empty(Self::expression)
        })?;
        Ok(Box::new(SetExpr::Values(rows)))
    }

    #[inline(never)]
    fn whole_table(&mut self) -> Result<Box<SetExpr>> {
        self.expect("TABLE")?;
        Ok(Box::new(SetExpr::Table(self.table_name()?)))
    }

    /// Order, limit, locks and `INTO` after a query's body.
    #[inline(never)]
    fn query_tail(&mut self, with: Option<With>, body: Box<SetExpr>) -> Result<Box<Query>> {
        let order_by = if self.is("ORDER") { self.order_by()? } else { Vec::new() };
        let limit = self.limit_clause()?;
        self.accept_into()?;
        let locks = self.locks()?;
        self.accept_into()?;
        Ok(Box::new(Query { with, body, order_by, limit, locks }))
    }

    /// `ORDER BY …`.
    pub(super) fn order_by(&mut self) -> Result<Vec<OrderByExpr>> {
        self.expect_all(&["ORDER", "BY"])?;
        self.list(|p| {
            let expr = p.expression()?;
            let ascending = p.accept_any(&["ASC", "DESC"]).map(|word| word == "ASC");
            Ok(OrderByExpr { expr, ascending })
        })
    }

    #[inline(never)]
    fn limit_clause(&mut self) -> Result<Option<Limit>> {
        if !self.accept("LIMIT") {
            return Ok(None);
        }
        let first = self.limit_value()?;
        let (count, offset) = if self.take(Kind::Comma) {
            (self.limit_value()?, Some(first))
        } else if self.accept("OFFSET") {
            (first, Some(self.limit_value()?))
        } else {
            (first, None)
        };
        Ok(Some(Limit { count, offset }))
    }

    /// A number, parameter or (in stored programs) variable.
    pub(super) fn limit_value(&mut self) -> Result<Expr> {
        match self.kind() {
            Kind::Integer | Kind::Parameter | Kind::Hex | Kind::Bits => self.simple(),
            _ => self.error(),
        }
    }

    /// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`. Each table of `OF` makes a clause.
    #[inline(never)]
    fn locks(&mut self) -> Result<Vec<LockClause>> {
        let mut locks = Vec::new();
        loop {
            if self.accept_all(&["LOCK", "IN", "SHARE", "MODE"]) {
                let (strength, wait) = (LockStrength::Share, LockWait::Wait);
                locks.push(LockClause { strength, of: None, wait });
                continue;
            }
            if !(self.is("FOR") && (self.is_at(1, "UPDATE") || self.is_at(1, "SHARE"))) {
                return Ok(locks);
            }
            self.at += 1;
            let strength = match self.expect_any(&["UPDATE", "SHARE"])? {
                "UPDATE" => LockStrength::Update,
                _ => LockStrength::Share,
            };
            let tables = if self.accept("OF") { self.list(Self::table_name)? } else { Vec::new() };
            let wait = self.lock_wait();
            let clause = |of| LockClause { strength, of, wait };
            if tables.is_empty() {
                locks.push(clause(None));
            }
            locks.extend(tables.into_iter().map(|table| clause(Some(table))));
        }
    }

    fn lock_wait(&mut self) -> LockWait {
        if self.accept("NOWAIT") {
            LockWait::Nowait
        } else if self.accept_all(&["SKIP", "LOCKED"]) {
            LockWait::SkipLocked
        } else {
            LockWait::Wait
        }
    }

    /// `SELECT` up to `HAVING` and `WINDOW`.
    #[inline(never)]
    fn select(&mut self) -> Result<Box<SelectBlock>> {
        self.expect("SELECT")?;
        let hints = self.hints();
        let (modifiers, distinct) = self.select_modifiers()?;
        let projection = self.projection()?;
        self.accept_into()?;
        let from = if self.accept("FROM") { self.from()? } else { Vec::new() };
        let selection = self.where_clause()?;
        let (group_by, rollup) = self.group_by()?;
        let having = if self.accept("HAVING") { Some(self.expression()?) } else { None };
        let named_windows = self.named_windows()?;
        Ok(Box::new(SelectBlock {
            hints,
            modifiers,
            distinct,
            projection,
            from,
            selection,
            group_by,
            rollup,
            having,
            named_windows,
        }))
    }

    /// `WHERE`, if present.
    pub(super) fn where_clause(&mut self) -> Result<Option<Expr>> {
        if self.accept("WHERE") { self.expression().map(Some) } else { Ok(None) }
    }

    fn select_modifiers(&mut self) -> Result<(SelectModifiers, bool)> {
        let mut modifiers = SelectModifiers::default();
        let mut distinct = None;
        loop {
            match self.upper().as_str() {
                "ALL" if distinct.is_none() => distinct = Some(false),
                "DISTINCT" | "DISTINCTROW" if distinct != Some(false) => distinct = Some(true),
                "HIGH_PRIORITY" => modifiers.high_priority = true,
                "STRAIGHT_JOIN" => modifiers.straight_join = true,
                "SQL_SMALL_RESULT" => modifiers.sql_small_result = true,
                "SQL_BIG_RESULT" => modifiers.sql_big_result = true,
                "SQL_BUFFER_RESULT" => modifiers.sql_buffer_result = true,
                "SQL_NO_CACHE" => modifiers.sql_no_cache = true,
                "SQL_CALC_FOUND_ROWS" => modifiers.sql_calc_found_rows = true,
                _ => break,
            }
            self.at += 1;
        }
        Ok((modifiers, distinct == Some(true)))
    }

    #[inline(never)]
    fn projection(&mut self) -> Result<Vec<SelectItem>> {
        if self.take(Kind::Star) {
            let mut items = vec![SelectItem::Wildcard];
            if self.take(Kind::Comma) {
                items.extend(self.list(Self::select_item)?);
            }
            return Ok(items);
        }
        self.list(Self::select_item)
    }

    #[inline(never)]
    fn select_item(&mut self) -> Result<SelectItem> {
        if let Some(wildcard) = self.qualified_wildcard()? {
            return Ok(wildcard);
        }
        let (first, parameters) = (self.at, self.parameters);
        let expr = self.expression()?;
        let written = self.text_since(first);
        if let Some(alias) = self.select_alias()? {
            return Ok(SelectItem::Aliased { expr, alias });
        }
        self.names_show_parameters |= self.parameters > parameters;
        Ok(match expr {
            Expr::UserVariable(_) | Expr::SystemVariable { .. } => {
                SelectItem::NamedAfterText { expr, name: written.to_owned() }
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => SelectItem::Unnamed(expr),
            expr => SelectItem::NamedAfterText { name: self.own_name(&expr, written), expr },
        })
    }

    /// The name of a column without an alias: its text, or the content of a string from its first
    /// visible character on. No name contains a zero byte.
    fn own_name(&self, expr: &Expr, written: &str) -> String {
        let text = match expr {
            Expr::Value(Value::Text(text)) => Some(&**text),
            Expr::Value(Value::LongText(number)) => {
                self.long_texts.get(*number as usize).and_then(|text| text.as_str())
            }
            _ => None,
        };
        let invisible = |one: char| one.is_ascii_whitespace() || one.is_ascii_control();
        let name = text.map_or(written, |text| text.trim_start_matches(invisible));
        let name = &name[..name.floor_char_boundary(LONGEST_OWN_NAME_BYTES)];
        name.replace('\0', "")
    }

    /// `t.*` or `db.t.*`.
    fn qualified_wildcard(&mut self) -> Result<Option<SelectItem>> {
        let is_name = matches!(self.kind(), Kind::Word | Kind::Quoted);
        let dot_star =
            |at: usize| self.kind_at(at) == Kind::Dot && self.kind_at(at + 1) == Kind::Star;
        let parts = match (is_name, dot_star(1), self.kind_at(1) == Kind::Dot && dot_star(3)) {
            (true, true, _) => 1,
            (true, _, true) => 2,
            _ => return Ok(None),
        };
        let mut table = TableName { schema: None, name: self.ident()? };
        for _ in 1..parts {
            self.need(Kind::Dot)?;
            table = TableName { schema: Some(table.name), name: self.any_ident()? };
        }
        self.need(Kind::Dot)?;
        self.need(Kind::Star)?;
        Ok(Some(SelectItem::QualifiedWildcard(table)))
    }

    fn select_alias(&mut self) -> Result<Option<String>> {
        if self.accept("AS") {
            return Ok(Some(self.ident_or_text()?));
        }
        let stands = self.is_ident_at(0) || self.kind() == Kind::Text;
        if stands { Ok(Some(self.ident_or_text()?)) } else { Ok(None) }
    }

    #[inline(never)]
    fn group_by(&mut self) -> Result<(Vec<Expr>, bool)> {
        if !self.accept("GROUP") {
            return Ok((Vec::new(), false));
        }
        self.expect("BY")?;
        if self.is("ROLLUP") && self.kind_at(1) == Kind::LeftParen {
            self.at += 1;
            let expressions = self.parens_list(Self::expression)?;
            return Ok((expressions, true));
        }
        let expressions = self.list(Self::expression)?;
        Ok((expressions, self.accept_all(&["WITH", "ROLLUP"])))
    }

    #[inline(never)]
    fn named_windows(&mut self) -> Result<Vec<(String, WindowSpec)>> {
        if !self.accept("WINDOW") {
            return Ok(Vec::new());
        }
        self.list(|p| {
            let name = p.ident()?;
            p.expect("AS")?;
            Ok((name, p.window_specification()?))
        })
    }

    /// `INTO`, which only the outermost query may have, once.
    fn accept_into(&mut self) -> Result<()> {
        if !self.is("INTO") {
            return Ok(());
        }
        if !self.into_allowed || self.query_depth > 1 || self.into.is_some() {
            return self.error();
        }
        self.at += 1;
        self.into = Some(self.target_of_into()?);
        Ok(())
    }

    #[inline(never)]
    fn target_of_into(&mut self) -> Result<ast::Into> {
        if self.accept("DUMPFILE") {
            return Ok(ast::Into::Dumpfile(self.string()?));
        }
        if !self.accept("OUTFILE") {
            return Ok(ast::Into::Variables(self.list(Self::variable)?));
        }
        let path = self.string()?;
        let charset = if self.charset_words() { Some(self.word_or_text()?) } else { None };
        Ok(ast::Into::Outfile { path, charset, format: self.file_format()? })
    }
}

/// The longest name that a column gets from its text, in bytes.
const LONGEST_OWN_NAME_BYTES: usize = 255;

// A `SetExpr` is large. It is built in functions that call no others, so that the frames of those
// that do stay small.

#[inline(never)]
fn nested(query: Box<Query>) -> Box<SetExpr> {
    Box::new(SetExpr::Query(query))
}

#[inline(never)]
fn selected(select: Box<SelectBlock>) -> Box<SetExpr> {
    Box::new(SetExpr::Select(select))
}

#[inline(never)]
fn set_operation(
    left: Box<SetExpr>,
    op: SetOperator,
    all: bool,
    right: Box<SetExpr>,
) -> Box<SetExpr> {
    Box::new(SetExpr::SetOperation { left, op, all, right })
}

/// Operands joined from the left by set operations; the last ones by operations of one kind.
///
/// Unions of one kind may be joined in any grouping, so a long run of them becomes a balanced tree.
#[expect(clippy::vec_box, reason = "the tree wants boxes, and moving one copies no operand")]
struct SetRun {
    operands: Vec<Box<SetExpr>>,
    kind: Option<(SetOperator, bool)>,
    levels: usize,
}

impl SetRun {
    fn new(first: Box<SetExpr>) -> SetRun {
        SetRun { operands: vec![first], kind: None, levels: 0 }
    }

    fn push(&mut self, op: SetOperator, all: bool, right: Box<SetExpr>) -> Result<()> {
        let kind = Some((op, all));
        let is_long = self.operands.len() > LEANING_SIDES;
        if self.kind != kind || op != SetOperator::Union {
            self.close();
            self.kind = kind;
        }
        self.levels += usize::from(!is_long || self.operands.len() == 1);
        if self.levels > MAX_SET_LEVELS {
            let message = format!("Set operations may nest {MAX_SET_LEVELS} levels deep");
            return Err(SqlError::new(1436, message));
        }
        self.operands.push(right);
        Ok(())
    }

    /// Makes the operands so far the first operand of the rest.
    fn close(&mut self) {
        let joined = join_sets(std::mem::take(&mut self.operands), self.kind);
        self.operands.extend(joined);
    }

    fn joined(mut self) -> Box<SetExpr> {
        self.close();
        self.operands.pop().unwrap_or_else(|| empty().body)
    }
}

#[expect(clippy::vec_box, reason = "the tree wants boxes, and moving one copies no operand")]
fn join_sets(
    mut operands: Vec<Box<SetExpr>>,
    kind: Option<(SetOperator, bool)>,
) -> Option<Box<SetExpr>> {
    let Some((op, all)) = kind else { return operands.pop() };
    let join = |left, right| set_operation(left, op, all, right);
    if operands.len() <= LEANING_SIDES {
        return operands.into_iter().reduce(join);
    }
    while operands.len() > 1 {
        let mut sides = operands.into_iter();
        let mut joined = Vec::with_capacity(sides.len().div_ceil(2));
        while let Some(left) = sides.next() {
            joined.push(match sides.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        operands = joined;
    }
    operands.pop()
}

/// A placeholder query, to be replaced.
pub(super) fn empty() -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Values(Vec::new())),
        order_by: Vec::new(),
        limit: None,
        locks: Vec::new(),
    }
}
