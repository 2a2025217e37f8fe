//! Queries: `WITH`, set operations, `SELECT`, `VALUES`, `TABLE`, order, limits, locks, `INTO`.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    self, CommonTable, Expr, Limit, LockClause, LockStrength, LockWait, OrderByExpr, Query,
    SelectBlock, SelectItem, SelectModifiers, SetExpr, SetOperator, TableAlias, TableName, Value,
    WindowSpec, With,
};
use super::super::lexer::Kind;
use super::{Parser, dml, expression, from, function, parentheses};

/// The most levels that set operations may add to a query's tree.
const MAX_SET_LEVELS: usize = 1_000;
/// With more operands of one kind of `UNION`, the tree is balanced instead of leaning left.
const LEANING_SIDES: usize = 16;

/// A query as a statement, which may have `INTO`.
pub(super) fn select_statement(parser: &mut Parser<'_>) -> Result<ast::Select> {
    let outer = (std::mem::replace(&mut parser.into_allowed, true), parser.into.take());
    let query = query(parser);
    let into = std::mem::replace(&mut parser.into, outer.1);
    parser.into_allowed = outer.0;
    Ok(ast::Select { query: *query?, into })
}

/// Whether a query begins some tokens ahead, possibly with parentheses before its first word.
pub(super) fn begins_query(parser: &Parser<'_>, ahead: usize) -> bool {
    parser.is_at(ahead, "SELECT")
        || parser.is_at(ahead, "WITH")
        || (parser.is_at(ahead, "VALUES") && parser.is_at(ahead + 1, "ROW"))
        || (parser.is_at(ahead, "TABLE") && parser.kind_at(ahead + 1) != Kind::LeftParen)
}

/// The same, if there are parentheses whose first word may begin a query.
pub(super) fn begins_query_in_parens(parser: &Parser<'_>) -> bool {
    let mut ahead = 0;
    while parser.kind_at(ahead) == Kind::LeftParen {
        ahead += 1;
    }
    begins_query(parser, ahead)
}

/// A query with all its clauses.
#[inline(never)]
pub(super) fn query(parser: &mut Parser<'_>) -> Result<Box<Query>> {
    parser.deeper(|parser| {
        let height = parser.height;
        parser.query_depth += 1;
        let with = with(parser)?;
        let body = query_body(parser)?;
        let query = query_tail(parser, with, body)?;
        parser.query_depth -= 1;
        parser.height = parser.height.max(height);
        Ok(query)
    })
}

/// What may follow a query in parentheses that turned out to be the first operand of another.
#[inline(never)]
pub(super) fn query_after_parens(parser: &mut Parser<'_>, first: Box<Query>) -> Result<Box<Query>> {
    if !parser.is_any(&["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "FOR", "LOCK"]) {
        return Ok(first);
    }
    let first = nested(first);
    let body = intersections(parser, first)?;
    let body = set_operations(parser, body)?;
    query_tail(parser, None, body)
}

/// `WITH`, if present.
#[inline(never)]
pub(super) fn with(parser: &mut Parser<'_>) -> Result<Option<With>> {
    if !parser.accept("WITH") {
        return Ok(None);
    }
    let recursive = parser.accept("RECURSIVE");
    let tables = parser.list(common_table)?;
    Ok(Some(With { recursive, tables }))
}

#[inline(never)]
fn common_table(parser: &mut Parser<'_>) -> Result<CommonTable> {
    let name = parser.ident()?;
    let columns = alias_columns(parser)?;
    parser.expect("AS")?;
    let query = expression::subquery(parser)?;
    Ok(CommonTable { alias: TableAlias { name, columns }, query })
}

/// `(a, b)` after the name of a derived table, if present.
pub(super) fn alias_columns(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    if parser.kind() != Kind::LeftParen {
        return Ok(Vec::new());
    }
    parser.parens_list(Parser::ident)
}

#[inline(never)]
fn query_body(parser: &mut Parser<'_>) -> Result<Box<SetExpr>> {
    let first = query_operand(parser)?;
    let first = intersections(parser, first)?;
    set_operations(parser, first)
}

/// The rest after an operand: `UNION` and `EXCEPT` with their operands, from the left.
#[inline(never)]
fn set_operations(parser: &mut Parser<'_>, left: Box<SetExpr>) -> Result<Box<SetExpr>> {
    let mut run = SetRun::new(left);
    while let Some(word) = parser.accept_any(&["UNION", "EXCEPT"]) {
        let op = if word == "UNION" { SetOperator::Union } else { SetOperator::Except };
        let all = set_quantifier(parser);
        let right = query_operand(parser)?;
        let right = intersections(parser, right)?;
        run.push(op, all, right)?;
    }
    Ok(run.joined())
}

#[inline(never)]
fn intersections(parser: &mut Parser<'_>, left: Box<SetExpr>) -> Result<Box<SetExpr>> {
    let mut run = SetRun::new(left);
    while parser.accept("INTERSECT") {
        let all = set_quantifier(parser);
        let right = query_operand(parser)?;
        run.push(SetOperator::Intersect, all, right)?;
    }
    Ok(run.joined())
}

/// Whether `ALL` is written; otherwise the result has no duplicates.
fn set_quantifier(parser: &mut Parser<'_>) -> bool {
    parser.accept_any(&["ALL", "DISTINCT"]) == Some("ALL")
}

#[inline(never)]
fn query_operand(parser: &mut Parser<'_>) -> Result<Box<SetExpr>> {
    if parser.kind() == Kind::LeftParen {
        let needless = parentheses::needless_parentheses(parser)?;
        parser.at += needless;
        let inner = parser.parens(query).map(nested)?;
        parser.at += needless;
        return Ok(inner);
    }
    if parser.is("SELECT") {
        return select(parser).map(selected);
    }
    if parser.is("VALUES") { row_values(parser) } else { whole_table(parser) }
}

#[inline(never)]
fn row_values(parser: &mut Parser<'_>) -> Result<Box<SetExpr>> {
    parser.expect("VALUES")?;
    let rows = parser.list(|parser| {
        parser.expect("ROW")?;
        parser.parens_maybe_empty(expression::expression)
    })?;
    Ok(Box::new(SetExpr::Values(rows)))
}

#[inline(never)]
fn whole_table(parser: &mut Parser<'_>) -> Result<Box<SetExpr>> {
    parser.expect("TABLE")?;
    Ok(Box::new(SetExpr::Table(parser.table_name()?)))
}

/// Order, limit, locks and `INTO` after a query's body.
#[inline(never)]
fn query_tail(
    parser: &mut Parser<'_>,
    with: Option<With>,
    body: Box<SetExpr>,
) -> Result<Box<Query>> {
    let order_by = if parser.is("ORDER") { order_by(parser)? } else { Vec::new() };
    let limit = limit_clause(parser)?;
    accept_into(parser)?;
    let locks = locks(parser)?;
    accept_into(parser)?;
    Ok(Box::new(Query { with, body, order_by, limit, locks }))
}

pub(super) fn order_by(parser: &mut Parser<'_>) -> Result<Vec<OrderByExpr>> {
    parser.expect_all(&["ORDER", "BY"])?;
    parser.list(|parser| {
        let expr = expression::expression(parser)?;
        let ascending = parser.accept_any(&["ASC", "DESC"]).map(|word| word == "ASC");
        Ok(OrderByExpr { expr, ascending })
    })
}

#[inline(never)]
fn limit_clause(parser: &mut Parser<'_>) -> Result<Option<Limit>> {
    if !parser.accept("LIMIT") {
        return Ok(None);
    }
    let first = limit_value(parser)?;
    let (count, offset) = if parser.take(Kind::Comma) {
        (limit_value(parser)?, Some(first))
    } else if parser.accept("OFFSET") {
        (first, Some(limit_value(parser)?))
    } else {
        (first, None)
    };
    Ok(Some(Limit { count, offset }))
}

/// Whether a parameter is a `?`, or a literal that was lifted from a place where a count may be.
fn says_a_count(written: &str) -> bool {
    let is_hexadecimal = |digits: &str| digits.starts_with(['x', 'X']);
    written == "?"
        || written.bytes().all(|byte| byte.is_ascii_digit())
        || is_hexadecimal(written.trim_start_matches('0'))
}

/// A number, parameter or (in stored programs) variable.
pub(super) fn limit_value(parser: &mut Parser<'_>) -> Result<Expr> {
    match parser.kind() {
        Kind::Parameter if !says_a_count(parser.text_of(parser.token(0))) => parser.error(),
        Kind::Integer | Kind::Parameter | Kind::Hex | Kind::Bits => expression::simple(parser),
        _ => parser.error(),
    }
}

/// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`. Each table of `OF` makes a clause.
#[inline(never)]
fn locks(parser: &mut Parser<'_>) -> Result<Vec<LockClause>> {
    let mut locks = Vec::new();
    loop {
        if parser.accept_all(&["LOCK", "IN", "SHARE", "MODE"]) {
            let (strength, wait) = (LockStrength::Share, LockWait::Wait);
            locks.push(LockClause { strength, of: None, wait });
            continue;
        }
        if !(parser.is("FOR") && (parser.is_at(1, "UPDATE") || parser.is_at(1, "SHARE"))) {
            return Ok(locks);
        }
        parser.at += 1;
        let strength = match parser.expect_any(&["UPDATE", "SHARE"])? {
            "UPDATE" => LockStrength::Update,
            _ => LockStrength::Share,
        };
        let tables =
            if parser.accept("OF") { parser.list(Parser::table_name)? } else { Vec::new() };
        let wait = lock_wait(parser);
        let clause = |of| LockClause { strength, of, wait };
        if tables.is_empty() {
            locks.push(clause(None));
        }
        locks.extend(tables.into_iter().map(|table| clause(Some(table))));
    }
}

fn lock_wait(parser: &mut Parser<'_>) -> LockWait {
    if parser.accept("NOWAIT") {
        LockWait::Nowait
    } else if parser.accept_all(&["SKIP", "LOCKED"]) {
        LockWait::SkipLocked
    } else {
        LockWait::Wait
    }
}

/// `SELECT` up to `HAVING` and `WINDOW`.
#[inline(never)]
fn select(parser: &mut Parser<'_>) -> Result<Box<SelectBlock>> {
    parser.expect("SELECT")?;
    let hints = parser.hints();
    let (modifiers, distinct) = select_modifiers(parser)?;
    let projection = projection(parser)?;
    accept_into(parser)?;
    let from = if parser.accept("FROM") { from::from(parser)? } else { Vec::new() };
    let selection = where_clause(parser)?;
    let (group_by, rollup) = group_by(parser)?;
    let having = if parser.accept("HAVING") { Some(expression::expression(parser)?) } else { None };
    let named_windows = named_windows(parser)?;
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
pub(super) fn where_clause(parser: &mut Parser<'_>) -> Result<Option<Expr>> {
    if parser.accept("WHERE") { expression::expression(parser).map(Some) } else { Ok(None) }
}

fn select_modifiers(parser: &mut Parser<'_>) -> Result<(SelectModifiers, bool)> {
    let mut modifiers = SelectModifiers::default();
    let mut distinct = None;
    loop {
        match parser.upper().as_str() {
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
        parser.at += 1;
    }
    Ok((modifiers, distinct == Some(true)))
}

#[inline(never)]
fn projection(parser: &mut Parser<'_>) -> Result<Vec<SelectItem>> {
    if parser.take(Kind::Star) {
        let mut items = vec![SelectItem::Wildcard];
        if parser.take(Kind::Comma) {
            items.extend(parser.list(select_item)?);
        }
        return Ok(items);
    }
    parser.list(select_item)
}

#[inline(never)]
fn select_item(parser: &mut Parser<'_>) -> Result<SelectItem> {
    if let Some(wildcard) = qualified_wildcard(parser)? {
        return Ok(wildcard);
    }
    let (first, parameters) = (parser.at, parser.parameters);
    let expr = expression::expression(parser)?;
    let written = parser.text_since(first);
    if let Some(alias) = select_alias(parser)? {
        return Ok(SelectItem::Aliased { expr, alias });
    }
    parser.names_show_parameters |= parser.parameters > parameters;
    Ok(match expr {
        Expr::UserVariable(_) | Expr::SystemVariable { .. } => {
            SelectItem::NamedAfterText { expr, name: written.to_owned() }
        }
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => SelectItem::Unnamed(expr),
        expr => SelectItem::NamedAfterText { name: own_name(parser, &expr, written), expr },
    })
}

/// The name of a column without an alias: its text, or the content of a string from its first
/// visible character on. No name contains a zero byte.
fn own_name(parser: &Parser<'_>, expr: &Expr, written: &str) -> String {
    let text = match expr {
        Expr::Value(Value::Text(text)) => Some(&**text),
        Expr::Value(Value::LongText(number)) => {
            parser.long_texts.get(*number as usize).and_then(|text| text.as_str())
        }
        _ => None,
    };
    let invisible = |one: char| one.is_ascii_whitespace() || one.is_ascii_control();
    let name = text.map_or(written, |text| text.trim_start_matches(invisible));
    let name = &name[..name.floor_char_boundary(LONGEST_OWN_NAME_BYTES)];
    name.replace('\0', "")
}

/// `t.*` or `db.t.*`.
fn qualified_wildcard(parser: &mut Parser<'_>) -> Result<Option<SelectItem>> {
    let is_name = matches!(parser.kind(), Kind::Word | Kind::Quoted);
    let dot_star =
        |at: usize| parser.kind_at(at) == Kind::Dot && parser.kind_at(at + 1) == Kind::Star;
    let parts = match (is_name, dot_star(1), parser.kind_at(1) == Kind::Dot && dot_star(3)) {
        (true, true, _) => 1,
        (true, _, true) => 2,
        _ => return Ok(None),
    };
    let mut table = TableName { schema: None, name: parser.ident()? };
    for _ in 1..parts {
        parser.need(Kind::Dot)?;
        table = TableName { schema: Some(table.name), name: parser.any_ident()? };
    }
    parser.need(Kind::Dot)?;
    parser.need(Kind::Star)?;
    Ok(Some(SelectItem::QualifiedWildcard(table)))
}

fn select_alias(parser: &mut Parser<'_>) -> Result<Option<String>> {
    if parser.accept("AS") {
        return Ok(Some(parser.ident_or_text()?));
    }
    let stands = parser.is_ident_at(0) || parser.kind() == Kind::Text;
    if stands { Ok(Some(parser.ident_or_text()?)) } else { Ok(None) }
}

#[inline(never)]
fn group_by(parser: &mut Parser<'_>) -> Result<(Vec<Expr>, bool)> {
    if !parser.accept("GROUP") {
        return Ok((Vec::new(), false));
    }
    parser.expect("BY")?;
    if parser.is("ROLLUP") && parser.kind_at(1) == Kind::LeftParen {
        parser.at += 1;
        let expressions = parser.parens_list(expression::expression)?;
        return Ok((expressions, true));
    }
    let expressions = parser.list(expression::expression)?;
    Ok((expressions, parser.accept_all(&["WITH", "ROLLUP"])))
}

#[inline(never)]
fn named_windows(parser: &mut Parser<'_>) -> Result<Vec<(String, WindowSpec)>> {
    if !parser.accept("WINDOW") {
        return Ok(Vec::new());
    }
    parser.list(|parser| {
        let name = parser.ident()?;
        parser.expect("AS")?;
        Ok((name, function::window_specification(parser)?))
    })
}

/// `INTO`, which only the outermost query may have, once.
fn accept_into(parser: &mut Parser<'_>) -> Result<()> {
    if !parser.is("INTO") {
        return Ok(());
    }
    if !parser.into_allowed || parser.query_depth > 1 || parser.into.is_some() {
        return parser.error();
    }
    parser.at += 1;
    parser.into = Some(target_of_into(parser)?);
    Ok(())
}

#[inline(never)]
fn target_of_into(parser: &mut Parser<'_>) -> Result<ast::Into> {
    if parser.accept("DUMPFILE") {
        return Ok(ast::Into::Dumpfile(parser.string()?));
    }
    if !parser.accept("OUTFILE") {
        return Ok(ast::Into::Variables(parser.list(Parser::variable)?));
    }
    let path = parser.string()?;
    let charset = if parser.charset_words() { Some(parser.word_or_text()?) } else { None };
    Ok(ast::Into::Outfile { path, charset, format: dml::file_format(parser)? })
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
            return Err(SqlError::too_complex(message));
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
