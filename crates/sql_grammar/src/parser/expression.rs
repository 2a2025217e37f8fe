//! Expressions, by precedence climbing.
//!
//! ```text
//!   2 OR || (unless PIPES_AS_CONCAT)  8 IN LIKE BETWEEN REGEXP MEMBER OF  13 * / % DIV MOD
//!   3 XOR                             9 |                                 14 ^
//!   4 AND &&                         10 &                                 15 || (PIPES_AS_CONCAT)
//!   5 NOT (prefix)                   11 << >>                             16 prefix - + ~ ! BINARY
//!   6 IS TRUE, IS FALSE, IS UNKNOWN  12 + -                                  COLLATE
//!   7 = < <=> …, IS NULL
//! ```
//!
//! An operator's result may be the left operand only of operators up to a level (`ceiling`),
//! because `a IN (b) IN (c)` and `a IS TRUE = b` are not expressions in MySQL's grammar.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    BinaryOperator, CaseWhen, Expr, Interval, Query, TruthTest, TypedStringKind, UnaryOperator,
    Value,
};
use super::super::keywords;
use super::super::lexer::{Kind, unquote};
use super::super::node_builders::{binary, function, text, unary};
use super::logical::logical;
use super::{Parser, function, parentheses, query};

/// The maximal height of an expression's tree.
pub(super) const MAX_HEIGHT: u32 = 3_000;

const OR: u8 = 2;
const XOR: u8 = 3;
const AND: u8 = 4;
pub(super) const IS: u8 = 6;
const COMPARISON: u8 = 7;
const PREDICATE: u8 = 8;
const BIT: u8 = 9;
const ADDITION: u8 = 12;
const CONCATENATION: u8 = 15;
const SIMPLE: u8 = 16;

pub(super) fn expression(parser: &mut Parser<'_>) -> Result<Expr> {
    climb(parser, 0)
}

/// An arithmetic expression: without comparisons, predicates, `AND` and the like.
pub(super) fn bit_expression(parser: &mut Parser<'_>) -> Result<Expr> {
    climb(parser, BIT)
}

/// An expression without operators, except signs and `COLLATE`.
pub(super) fn simple(parser: &mut Parser<'_>) -> Result<Expr> {
    climb(parser, SIMPLE)
}

/// An expression whose operators bind at least as tightly as a level. `height` is the height of
/// the tallest expression since the caller last set it.
fn climb(parser: &mut Parser<'_>, level: u8) -> Result<Expr> {
    let outer = std::mem::take(&mut parser.height);
    let expr = parser.deeper(|parser| match level {
        0 => logical(parser),
        level => climb_operators(parser, level),
    })?;
    parser.height = parser.height.max(outer);
    Ok(expr)
}

/// The same, for a level above `AND` and its like. Leaves the height of this expression.
#[inline(never)]
pub(super) fn climb_operators(parser: &mut Parser<'_>, level: u8) -> Result<Expr> {
    let mut left = prefix(parser)?;
    let mut ceiling = CONCATENATION;
    while parser.kind() == Kind::Word && parser.is("COLLATE") {
        parser.at += 1;
        let collation = parser.word_or_text()?;
        left = Expr::Collate { expr: Box::new(left), collation };
    }
    let mut height = parser.height + 1;
    while let Some((operator, binds)) = infix(parser) {
        if binds < level || binds > ceiling {
            break;
        }
        parser.height = 0;
        left = infix_expression(parser, left, operator, binds)?;
        height = height.max(parser.height) + 1;
        if height > MAX_HEIGHT {
            return Err(too_tall());
        }
        ceiling = match binds {
            IS => IS - 1,
            COMPARISON | PREDICATE => COMPARISON,
            _ => CONCATENATION,
        };
    }
    parser.height = height;
    Ok(left)
}

/// The operator here, and its precedence.
pub(super) fn infix(parser: &Parser<'_>) -> Option<(Infix, u8)> {
    let symbol = |op, level| Some((Infix::Binary(op), level));
    match parser.kind() {
        Kind::Word => infix_word(parser),
        Kind::OrOr if parser.mode.pipes_as_concat => symbol(BinaryOperator::Concat, CONCATENATION),
        Kind::OrOr => Some((Infix::Chain(BinaryOperator::Or), OR)),
        Kind::AndAnd => Some((Infix::Chain(BinaryOperator::And), AND)),
        Kind::Pipe => symbol(BinaryOperator::BitwiseOr, BIT),
        Kind::Ampersand => symbol(BinaryOperator::BitwiseAnd, 10),
        Kind::ShiftLeft => symbol(BinaryOperator::ShiftLeft, 11),
        Kind::ShiftRight => symbol(BinaryOperator::ShiftRight, 11),
        Kind::Plus => symbol(BinaryOperator::Plus, ADDITION),
        Kind::Minus => symbol(BinaryOperator::Minus, ADDITION),
        Kind::Star => symbol(BinaryOperator::Multiply, 13),
        Kind::Slash => symbol(BinaryOperator::Divide, 13),
        Kind::Percent => symbol(BinaryOperator::Modulo, 13),
        Kind::Caret => symbol(BinaryOperator::BitwiseXor, 14),
        kind => comparison_operator(kind).map(|op| (Infix::Comparison(op), COMPARISON)),
    }
}

fn infix_word(parser: &Parser<'_>) -> Option<(Infix, u8)> {
    let predicate = |ahead: usize| match parser.upper_at(ahead).as_str() {
        "IN" => Some(Infix::In),
        "LIKE" => Some(Infix::Like),
        "BETWEEN" => Some(Infix::Between),
        "REGEXP" | "RLIKE" => Some(Infix::Regexp),
        _ => None,
    };
    match parser.upper().as_str() {
        "OR" => Some((Infix::Chain(BinaryOperator::Or), OR)),
        "XOR" => Some((Infix::Chain(BinaryOperator::Xor), XOR)),
        "AND" => Some((Infix::Chain(BinaryOperator::And), AND)),
        "DIV" => Some((Infix::Binary(BinaryOperator::IntegerDivide), 13)),
        "MOD" => Some((Infix::Binary(BinaryOperator::Modulo), 13)),
        "IS" => {
            let ahead = 1 + usize::from(parser.is_at(1, "NOT"));
            let level = if parser.is_at(ahead, "NULL") { COMPARISON } else { IS };
            Some((Infix::Is, level))
        }
        "MEMBER" if parser.is_at(1, "OF") => Some((Infix::Member, PREDICATE)),
        "SOUNDS" if parser.is_at(1, "LIKE") => Some((Infix::Sounds, PREDICATE)),
        "NOT" => predicate(1).map(|infix| (infix, PREDICATE)),
        _ => predicate(0).map(|infix| (infix, PREDICATE)),
    }
}

#[inline(never)]
fn infix_expression(parser: &mut Parser<'_>, left: Expr, infix: Infix, binds: u8) -> Result<Expr> {
    let negated = infix.is_predicate() && parser.accept("NOT");
    parser.at += 1;
    match infix {
        Infix::Binary(op) => {
            let right = right_operand(parser, op, binds)?;
            Ok(binary(left, op, right))
        }
        // `logical` takes these.
        Infix::Chain(_) => parser.error(),
        Infix::Comparison(op) => comparison(parser, left, op),
        Infix::Is => is_expression(parser, left),
        Infix::In => in_expression(parser, left, negated),
        Infix::Like => like(parser, left, negated),
        Infix::Between => between(parser, left, negated),
        Infix::Regexp => {
            let pattern = Box::new(climb(parser, BIT)?);
            Ok(Expr::Regexp { negated, expr: Box::new(left), pattern })
        }
        Infix::Member => {
            parser.expect("OF")?;
            let array = Box::new(parser.parens(expression)?);
            Ok(Expr::MemberOf { value: Box::new(left), array })
        }
        Infix::Sounds => {
            parser.expect("LIKE")?;
            let right = function("soundex", vec![climb(parser, BIT)?]);
            Ok(binary(function("soundex", vec![left]), BinaryOperator::Eq, right))
        }
    }
}

fn right_operand(parser: &mut Parser<'_>, op: BinaryOperator, binds: u8) -> Result<Expr> {
    let may_be_interval = matches!(op, BinaryOperator::Plus | BinaryOperator::Minus);
    if may_be_interval && is_interval(parser) { interval(parser) } else { climb(parser, binds + 1) }
}

#[inline(never)]
fn comparison(parser: &mut Parser<'_>, left: Expr, op: BinaryOperator) -> Result<Expr> {
    let left = Box::new(left);
    if parser.kind_at(1) == Kind::LeftParen
        && let Some(quantifier) = parser.accept_any(&["ALL", "ANY", "SOME"])
    {
        let subquery = subquery(parser)?;
        return Ok(Expr::Quantified { left, op, all: quantifier == "ALL", subquery });
    }
    let right = Box::new(climb(parser, PREDICATE)?);
    Ok(Expr::BinaryOp { left, op, right })
}

#[inline(never)]
fn is_expression(parser: &mut Parser<'_>, left: Expr) -> Result<Expr> {
    let negated = parser.accept("NOT");
    let test = match parser.expect_any(&["NULL", "TRUE", "FALSE", "UNKNOWN"])? {
        "NULL" => TruthTest::Null,
        "TRUE" => TruthTest::True,
        "FALSE" => TruthTest::False,
        _ => TruthTest::Unknown,
    };
    Ok(Expr::Is { expr: Box::new(left), test, negated })
}

#[inline(never)]
fn in_expression(parser: &mut Parser<'_>, left: Expr, negated: bool) -> Result<Expr> {
    let expr = Box::new(left);
    if parser.kind() == Kind::LeftParen && query::begins_query(parser, 1) {
        return Ok(Expr::InSubquery { expr, subquery: subquery(parser)?, negated });
    }
    parser.need(Kind::LeftParen)?;
    let mut list = vec![expression(parser)?];
    if matches!(list[0], Expr::Subquery(_))
        && let Some(Expr::Subquery(first)) = list.pop()
    {
        list.push(Expr::Subquery(query::query_after_parens(parser, first)?));
    }
    while parser.take(Kind::Comma) {
        list.push(expression(parser)?);
    }
    parser.need(Kind::RightParen)?;
    if list.len() == 1
        && matches!(list[0], Expr::Subquery(_))
        && let Some(Expr::Subquery(subquery)) = list.pop()
    {
        return Ok(Expr::InSubquery { expr, subquery, negated });
    }
    Ok(Expr::InList { expr, list, negated })
}

#[inline(never)]
fn like(parser: &mut Parser<'_>, left: Expr, negated: bool) -> Result<Expr> {
    let pattern = Box::new(climb(parser, BIT)?);
    let escape = match parser.accept("ESCAPE") {
        true => Some(plain_value(parser, "ESCAPE of an expression")?),
        false => None,
    };
    Ok(Expr::Like { negated, expr: Box::new(left), pattern, escape })
}

/// A literal or parameter, where the tree allows nothing else.
pub(super) fn plain_value(parser: &mut Parser<'_>, what: &str) -> Result<Value> {
    match parser.in_tree(simple)? {
        Expr::Value(value) => Ok(value),
        _ => Err(SqlError::not_supported(what)),
    }
}

#[inline(never)]
fn between(parser: &mut Parser<'_>, left: Expr, negated: bool) -> Result<Expr> {
    let low = Box::new(climb(parser, BIT)?);
    parser.expect("AND")?;
    let high = Box::new(climb(parser, PREDICATE)?);
    Ok(Expr::Between { expr: Box::new(left), negated, low, high })
}

/// The start of an expression: anything except an operator between two operands.
#[inline(never)]
fn prefix(parser: &mut Parser<'_>) -> Result<Expr> {
    match parser.kind() {
        Kind::Word => word_expression(parser),
        Kind::Quoted => name_expression(parser),
        Kind::Text => parser.text_operand().map(Expr::Value),
        Kind::NationalText => Ok(national_text(parser)),
        Kind::Integer | Kind::Decimal | Kind::Float => Ok(number(parser)),
        Kind::Hex | Kind::Bits => Ok(Expr::Value(bytes(parser))),
        Kind::Parameter => Ok(parameter(parser)),
        Kind::UserVariable => user_variable(parser),
        Kind::AtAt => system_variable(parser),
        Kind::LeftParen => parenthesised(parser),
        Kind::LeftBrace => odbc(parser),
        Kind::Minus => sign(parser, UnaryOperator::Minus),
        Kind::Plus => sign(parser, UnaryOperator::Plus),
        Kind::Tilde => sign(parser, UnaryOperator::BitwiseNot),
        Kind::Bang => sign(parser, UnaryOperator::BangNot),
        _ => parser.error(),
    }
}

/// A literal, optionally with a sign; a `COLLATE` after it is left for the caller.
#[inline(never)]
pub(super) fn literal(parser: &mut Parser<'_>) -> Result<Expr> {
    match parser.kind() {
        Kind::Minus | Kind::Plus => {
            let minus = parser.advance().kind == Kind::Minus;
            let op = if minus { UnaryOperator::Minus } else { UnaryOperator::Plus };
            Ok(unary(op, number(parser)))
        }
        _ => prefix(parser),
    }
}

#[inline(never)]
fn sign(parser: &mut Parser<'_>, op: UnaryOperator) -> Result<Expr> {
    parser.at += 1;
    Ok(unary(op, simple(parser)?))
}

#[inline(never)]
fn number(parser: &mut Parser<'_>) -> Expr {
    let token = parser.advance();
    Expr::Value(Value::Number(parser.text_of(token).to_owned()))
}

#[inline(never)]
fn bytes(parser: &mut Parser<'_>) -> Value {
    let token = parser.advance();
    let written = parser.text_of(token);
    let digits = written[2..].trim_end_matches('\'');
    if token.kind == Kind::Bits {
        return Value::Bits(digits.to_owned());
    }
    let odd = if digits.len() % 2 == 1 { "0" } else { "" };
    Value::Hexadecimal(format!("{odd}{}", digits.to_ascii_uppercase()))
}

#[inline(never)]
fn national_text(parser: &mut Parser<'_>) -> Expr {
    let token = parser.advance();
    let said = unquote(&parser.text_of(token)[1..], !parser.mode.no_backslash_escapes);
    Expr::Introduced { charset: "_utf8mb3".to_owned(), value: Value::Text(said) }
}

#[inline(never)]
fn parameter(parser: &mut Parser<'_>) -> Expr {
    parser.at += 1;
    parser.parameters += 1;
    Expr::Value(Value::Parameter(parser.parameters - 1))
}

#[inline(never)]
fn user_variable(parser: &mut Parser<'_>) -> Result<Expr> {
    let variable = Expr::UserVariable(parser.variable()?);
    if parser.take(Kind::Assign) {
        return Ok(binary(variable, BinaryOperator::Assignment, climb(parser, 0)?));
    }
    Ok(variable)
}

#[inline(never)]
fn system_variable(parser: &mut Parser<'_>) -> Result<Expr> {
    let (scope, name) = system_variable_name(parser)?;
    Ok(Expr::SystemVariable { scope, name })
}

/// `@@name` or `@@scope.name`: scope and name, both in lower case.
pub(super) fn system_variable_name(parser: &mut Parser<'_>) -> Result<(String, String)> {
    parser.need(Kind::AtAt)?;
    let mut scope = String::new();
    if parser.kind_at(1) == Kind::Dot
        && let Some(said) =
            parser.accept_any(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"])
    {
        scope = said.to_ascii_lowercase();
        parser.at += 1;
    }
    let mut name = variable_part(parser)?;
    if parser.take(Kind::Dot) {
        name = format!("{name}.{}", variable_part(parser)?);
    }
    Ok((scope, name))
}

/// A part of a system variable's name. No part contains a point, so the parts of the whole name
/// are unambiguous.
fn variable_part(parser: &mut Parser<'_>) -> Result<String> {
    let part = parser.any_ident()?.to_ascii_lowercase();
    if part.contains('.') {
        return Err(SqlError::new(1193, format!("Unknown system variable '{part}'")));
    }
    Ok(part)
}

/// `(…)`: a subquery, a row, or an expression, whose parentheses are dropped.
#[inline(never)]
fn parenthesised(parser: &mut Parser<'_>) -> Result<Expr> {
    let needless = parentheses::needless_parentheses(parser)?;
    parser.at += needless;
    let inner = in_parentheses(parser)?;
    // Their closing parentheses were found here.
    parser.at += needless;
    Ok(inner)
}

fn in_parentheses(parser: &mut Parser<'_>) -> Result<Expr> {
    if query::begins_query(parser, 1) {
        return Ok(Expr::Subquery(subquery(parser)?));
    }
    parser.need(Kind::LeftParen)?;
    let mut items = parser.list(expression)?;
    if items.len() > 1 {
        parser.need(Kind::RightParen)?;
        return Ok(Expr::Tuple(items));
    }
    let Some(mut only) = items.pop() else { return parser.error() };
    if let Expr::Subquery(query) = only {
        only = Expr::Subquery(query::query_after_parens(parser, query)?);
    }
    parser.need(Kind::RightParen)?;
    // Parentheses are no node of the tree.
    parser.height = parser.height.saturating_sub(1);
    Ok(only)
}

/// A query in parentheses.
#[inline(never)]
pub(super) fn subquery(parser: &mut Parser<'_>) -> Result<Box<Query>> {
    parser.parens(query::query)
}

/// `{d '…'}`, `{t '…'}`, `{ts '…'}`, `{fn f(…)}`.
#[inline(never)]
fn odbc(parser: &mut Parser<'_>) -> Result<Expr> {
    parser.need(Kind::LeftBrace)?;
    let kind = parser.ident()?.to_ascii_lowercase();
    let inner = parser.in_tree(expression)?;
    parser.need(Kind::RightBrace)?;
    let kind = match kind.as_str() {
        "d" => TypedStringKind::Date,
        "t" => TypedStringKind::Time,
        "ts" => TypedStringKind::Timestamp,
        _ => return Ok(inner),
    };
    Ok(match inner {
        Expr::Value(Value::Text(text)) => Expr::TypedString { kind, text },
        inner => inner,
    })
}

#[inline(never)]
fn word_expression(parser: &mut Parser<'_>) -> Result<Expr> {
    let next = parser.kind_at(1);
    match parser.upper().as_str() {
        "NOT" if parser.mode.high_not_precedence => not(parser),
        "NULL" => constant(parser, Value::Null),
        "TRUE" if next != Kind::Dot => constant(parser, Value::Boolean(true)),
        "FALSE" if next != Kind::Dot => constant(parser, Value::Boolean(false)),
        "CASE" => case(parser),
        "EXISTS" if next == Kind::LeftParen => {
            parser.at += 1;
            Ok(Expr::Exists(subquery(parser)?))
        }
        "BINARY" => {
            parser.at += 1;
            let expr = simple(parser)?;
            Ok(super::function::binary_prefix(expr))
        }
        "MATCH" => {
            parser.at += 1;
            function::match_against(parser)
        }
        "ROW" if next == Kind::LeftParen => {
            parser.at += 1;
            Ok(Expr::Tuple(parser.parens_list(expression)?))
        }
        "INTERVAL" if is_interval(parser) => {
            let interval = interval(parser)?;
            if parser.kind() == Kind::Plus { Ok(interval) } else { parser.error() }
        }
        "DATE" if next == Kind::Text => typed_text(parser, TypedStringKind::Date),
        "TIME" if next == Kind::Text => typed_text(parser, TypedStringKind::Time),
        "TIMESTAMP" if next == Kind::Text => typed_text(parser, TypedStringKind::Timestamp),
        _ if matches!(next, Kind::Text | Kind::Hex | Kind::Bits) && is_introducer(parser) => {
            introduced(parser)
        }
        _ if next == Kind::LeftParen && function::is_function(parser) => {
            function::function_call(parser)
        }
        word if keywords::is_bare_function(word) => function::bare_function(parser),
        _ => name_expression(parser),
    }
}

#[inline(never)]
fn not(parser: &mut Parser<'_>) -> Result<Expr> {
    parser.at += 1;
    Ok(unary(UnaryOperator::Not, simple(parser)?))
}

fn constant(parser: &mut Parser<'_>, constant: Value) -> Result<Expr> {
    parser.at += 1;
    Ok(Expr::Value(constant))
}

fn is_introducer(parser: &Parser<'_>) -> bool {
    keywords::is_introducer(parser.text_of(parser.token(0)))
}

#[inline(never)]
fn introduced(parser: &mut Parser<'_>) -> Result<Expr> {
    let token = parser.advance();
    let charset = parser.text_of(token).to_ascii_lowercase();
    let value = match parser.kind() {
        Kind::Text => Value::Text(parser.string()?),
        _ => bytes(parser),
    };
    Ok(Expr::Introduced { charset, value })
}

#[inline(never)]
fn typed_text(parser: &mut Parser<'_>, kind: TypedStringKind) -> Result<Expr> {
    parser.at += 1;
    Ok(Expr::TypedString { kind, text: parser.string()? })
}

#[inline(never)]
fn case(parser: &mut Parser<'_>) -> Result<Expr> {
    parser.expect("CASE")?;
    let operand = match parser.is("WHEN") {
        true => None,
        false => Some(Box::new(expression(parser)?)),
    };
    let mut branches = Vec::new();
    while parser.accept("WHEN") {
        let condition = expression(parser)?;
        parser.expect("THEN")?;
        branches.push(CaseWhen { condition, result: expression(parser)? });
    }
    if branches.is_empty() {
        return parser.error();
    }
    let otherwise = match parser.accept("ELSE") {
        true => Some(Box::new(expression(parser)?)),
        false => None,
    };
    parser.expect("END")?;
    Ok(Expr::Case { operand, branches, otherwise })
}

/// A column, optionally with a JSON path after it; or a function of a database.
#[inline(never)]
fn name_expression(parser: &mut Parser<'_>) -> Result<Expr> {
    let mut parts = Vec::new();
    if parser.take(Kind::Dot) {
        parts.push(parser.any_ident()?);
    } else {
        parts.push(parser.ident()?);
    }
    while parser.kind() == Kind::Dot && parser.kind_at(1) != Kind::Star && parts.len() < 3 {
        parser.at += 1;
        parts.push(parser.any_ident()?);
    }
    if parts.len() <= 2 && parser.kind() == Kind::LeftParen {
        let name = parts.pop().unwrap_or_default();
        return function::arguments_of(parser, parts.pop(), name);
    }
    let column = match parts.pop() {
        Some(only) if parts.is_empty() => Expr::Identifier(only),
        Some(last) => {
            parts.push(last);
            Expr::CompoundIdentifier(parts)
        }
        None => return parser.error(),
    };
    json_path(parser, column)
}

fn json_path(parser: &mut Parser<'_>, column: Expr) -> Result<Expr> {
    let op = match parser.kind() {
        Kind::Arrow => BinaryOperator::Arrow,
        Kind::LongArrow => BinaryOperator::LongArrow,
        _ => return Ok(column),
    };
    parser.at += 1;
    Ok(binary(column, op, text(parser.string()?)))
}

/// Whether `INTERVAL` here starts an interval and not the function, which has a comma inside
/// its parentheses.
pub(super) fn is_interval(parser: &Parser<'_>) -> bool {
    if !parser.is("INTERVAL") {
        return false;
    }
    if parser.kind_at(1) != Kind::LeftParen {
        return true;
    }
    let mut depth = 0;
    for ahead in 1.. {
        match parser.kind_at(ahead) {
            Kind::LeftParen => depth += 1,
            Kind::RightParen => depth -= 1,
            Kind::Comma if depth == 1 => return query::begins_query(parser, 2),
            Kind::End => return true,
            _ => {}
        }
        if depth == 0 {
            return true;
        }
    }
    true
}

/// `INTERVAL n unit`.
#[inline(never)]
pub(super) fn interval(parser: &mut Parser<'_>) -> Result<Expr> {
    parser.expect("INTERVAL")?;
    let value = Box::new(expression(parser)?);
    Ok(Expr::Interval(Interval { value, unit: unit(parser)? }))
}

/// The unit of an interval, in upper case.
pub(super) fn unit(parser: &mut Parser<'_>) -> Result<&'static str> {
    let token = parser.token(0);
    match keywords::unit(parser.text_of(token)) {
        Some(unit) if token.kind == Kind::Word => {
            parser.at += 1;
            Ok(unit)
        }
        _ => parser.error(),
    }
}

/// The tree of an expression is so tall that a traversal might overflow the stack.
pub(super) fn too_tall() -> SqlError {
    let message = format!(
        "Expressions may nest {MAX_HEIGHT} levels deep; use parentheses or fewer operators"
    );
    SqlError::too_complex(message)
}

/// The comparison for a token.
pub(super) fn comparison_operator(kind: Kind) -> Option<BinaryOperator> {
    Some(match kind {
        Kind::Equal => BinaryOperator::Eq,
        Kind::NullSafeEqual => BinaryOperator::NullSafeEq,
        Kind::NotEqual => BinaryOperator::NotEq,
        Kind::Less => BinaryOperator::Lt,
        Kind::LessEqual => BinaryOperator::LtEq,
        Kind::Greater => BinaryOperator::Gt,
        Kind::GreaterEqual => BinaryOperator::GtEq,
        _ => return None,
    })
}

/// An operator between two expressions.
pub(super) enum Infix {
    Binary(BinaryOperator),
    Chain(BinaryOperator),
    Comparison(BinaryOperator),
    Is,
    In,
    Like,
    Between,
    Regexp,
    Member,
    Sounds,
}

impl Infix {
    /// Whether `NOT` may stand before it.
    fn is_predicate(&self) -> bool {
        matches!(self, Infix::In | Infix::Like | Infix::Between | Infix::Regexp)
    }
}
