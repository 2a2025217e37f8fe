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
use super::super::build::{binary, function, text, unary};
use super::super::lexer::{Kind, unquote};
use super::super::words;
use super::Parser;

/// The maximal height of an expression's tree.
const MAX_HEIGHT: u32 = 3_000;
/// With more operands of `AND`, `OR` or `XOR`, the tree is balanced instead of leaning left.
const LEANING_OPERANDS: usize = 16;

const OR: u8 = 2;
const XOR: u8 = 3;
const AND: u8 = 4;
const NOT: u8 = 5;
const IS: u8 = 6;
const COMPARISON: u8 = 7;
const PREDICATE: u8 = 8;
const BIT: u8 = 9;
const ADDITION: u8 = 12;
const CONCATENATION: u8 = 15;
const SIMPLE: u8 = 16;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.climb(0)
    }

    /// An arithmetic expression: without comparisons, predicates, `AND` and the like.
    pub(super) fn bit_expression(&mut self) -> Result<Expr> {
        self.climb(BIT)
    }

    /// An expression without operators, except signs and `COLLATE`.
    pub(super) fn simple(&mut self) -> Result<Expr> {
        self.climb(SIMPLE)
    }

    /// An expression whose operators bind at least as tightly as a level. `height` is the height of
    /// the tallest expression since the caller last set it.
    fn climb(&mut self, level: u8) -> Result<Expr> {
        let outer = std::mem::take(&mut self.height);
        let expr = self.deeper(|p| p.climb_operators(level))?;
        self.height = self.height.max(outer);
        Ok(expr)
    }

    #[inline(never)]
    fn climb_operators(&mut self, level: u8) -> Result<Expr> {
        let is_not = self.is("NOT") && !self.mode.high_not_precedence;
        let mut left = self.prefix(level)?;
        let mut ceiling = if is_not { NOT - 1 } else { CONCATENATION };
        while self.kind() == Kind::Word && self.is("COLLATE") {
            self.at += 1;
            let collation = self.word_or_text()?;
            left = Expr::Collate { expr: Box::new(left), collation };
        }
        let mut height = self.height + 1;
        while let Some((operator, binds)) = self.infix() {
            if binds < level || binds > ceiling {
                break;
            }
            self.height = 0;
            left = self.infix_expression(left, operator, binds)?;
            height = height.max(self.height) + 1;
            if height > MAX_HEIGHT {
                return Err(too_tall());
            }
            ceiling = match binds {
                OR | XOR | AND => binds,
                IS => IS - 1,
                COMPARISON | PREDICATE => COMPARISON,
                _ => CONCATENATION,
            };
        }
        self.height = height;
        Ok(left)
    }

    /// The operator here, and its precedence.
    fn infix(&self) -> Option<(Infix, u8)> {
        let symbol = |op, level| Some((Infix::Binary(op), level));
        match self.kind() {
            Kind::Word => self.infix_word(),
            Kind::OrOr if self.mode.pipes_as_concat => {
                symbol(BinaryOperator::Concat, CONCATENATION)
            }
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
            kind => comparison(kind).map(|op| (Infix::Comparison(op), COMPARISON)),
        }
    }

    fn infix_word(&self) -> Option<(Infix, u8)> {
        let predicate = |ahead: usize| match self.upper_at(ahead).as_str() {
            "IN" => Some(Infix::In),
            "LIKE" => Some(Infix::Like),
            "BETWEEN" => Some(Infix::Between),
            "REGEXP" | "RLIKE" => Some(Infix::Regexp),
            _ => None,
        };
        match self.upper().as_str() {
            "OR" => Some((Infix::Chain(BinaryOperator::Or), OR)),
            "XOR" => Some((Infix::Chain(BinaryOperator::Xor), XOR)),
            "AND" => Some((Infix::Chain(BinaryOperator::And), AND)),
            "DIV" => Some((Infix::Binary(BinaryOperator::IntegerDivide), 13)),
            "MOD" => Some((Infix::Binary(BinaryOperator::Modulo), 13)),
            "IS" => {
                let ahead = 1 + usize::from(self.is_at(1, "NOT"));
                let level = if self.is_at(ahead, "NULL") { COMPARISON } else { IS };
                Some((Infix::Is, level))
            }
            "MEMBER" if self.is_at(1, "OF") => Some((Infix::Member, PREDICATE)),
            "SOUNDS" if self.is_at(1, "LIKE") => Some((Infix::Sounds, PREDICATE)),
            "NOT" => predicate(1).map(|infix| (infix, PREDICATE)),
            _ => predicate(0).map(|infix| (infix, PREDICATE)),
        }
    }

    #[inline(never)]
    fn infix_expression(&mut self, left: Expr, infix: Infix, binds: u8) -> Result<Expr> {
        let negated = infix.is_predicate() && self.accept("NOT");
        self.at += 1;
        match infix {
            Infix::Binary(op) => {
                let right = self.right_operand(op, binds)?;
                Ok(binary(left, op, right))
            }
            Infix::Chain(op) => self.chain(left, op, binds),
            Infix::Comparison(op) => self.comparison(left, op),
            Infix::Is => self.is_expression(left),
            Infix::In => self.in_expression(left, negated),
            Infix::Like => self.like(left, negated),
            Infix::Between => self.between(left, negated),
            Infix::Regexp => {
                let pattern = Box::new(self.climb(BIT)?);
                Ok(Expr::Regexp { negated, expr: Box::new(left), pattern })
            }
            Infix::Member => {
                self.expect("OF")?;
                let array = Box::new(self.parens(Self::expression)?);
                Ok(Expr::MemberOf { value: Box::new(left), array })
            }
            Infix::Sounds => {
                self.expect("LIKE")?;
                let right = function("soundex", vec![self.climb(BIT)?]);
                Ok(binary(function("soundex", vec![left]), BinaryOperator::Eq, right))
            }
        }
    }

    fn right_operand(&mut self, op: BinaryOperator, binds: u8) -> Result<Expr> {
        let may_be_interval = matches!(op, BinaryOperator::Plus | BinaryOperator::Minus);
        if may_be_interval && self.is_interval() { self.interval() } else { self.climb(binds + 1) }
    }

    /// Operands joined by one of `AND`, `OR` and `XOR`. A long chain becomes a balanced tree with
    /// the same meaning, because all three are associative.
    #[inline(never)]
    fn chain(&mut self, left: Expr, op: BinaryOperator, binds: u8) -> Result<Expr> {
        let mut operands = vec![left, self.climb(binds + 1)?];
        while let Some((Infix::Chain(next), _)) = self.infix()
            && next == op
        {
            self.at += 1;
            operands.push(self.climb(binds + 1)?);
        }
        if operands.len() > LEANING_OPERANDS {
            self.height += operands.len().ilog2() + 1;
            return Ok(balanced(operands, op));
        }
        self.height += operands.len() as u32;
        let joined = operands.into_iter().reduce(|left, right| binary(left, op, right));
        joined.map_or_else(|| self.error(), Ok)
    }

    #[inline(never)]
    fn comparison(&mut self, left: Expr, op: BinaryOperator) -> Result<Expr> {
        let left = Box::new(left);
        if self.kind_at(1) == Kind::LeftParen
            && let Some(quantifier) = self.accept_any(&["ALL", "ANY", "SOME"])
        {
            let subquery = self.subquery()?;
            return Ok(Expr::Quantified { left, op, all: quantifier == "ALL", subquery });
        }
        let right = Box::new(self.climb(PREDICATE)?);
        Ok(Expr::BinaryOp { left, op, right })
    }

    #[inline(never)]
    fn is_expression(&mut self, left: Expr) -> Result<Expr> {
        let negated = self.accept("NOT");
        let test = match self.expect_any(&["NULL", "TRUE", "FALSE", "UNKNOWN"])? {
            "NULL" => TruthTest::Null,
            "TRUE" => TruthTest::True,
            "FALSE" => TruthTest::False,
            _ => TruthTest::Unknown,
        };
        Ok(Expr::Is { expr: Box::new(left), test, negated })
    }

    #[inline(never)]
    fn in_expression(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        let expr = Box::new(left);
        if self.kind() == Kind::LeftParen && self.begins_query(1) {
            return Ok(Expr::InSubquery { expr, subquery: self.subquery()?, negated });
        }
        self.need(Kind::LeftParen)?;
        let mut list = vec![self.expression()?];
        if matches!(list[0], Expr::Subquery(_))
            && let Some(Expr::Subquery(first)) = list.pop()
        {
            list.push(Expr::Subquery(self.query_after_parens(first)?));
        }
        while self.take(Kind::Comma) {
            list.push(self.expression()?);
        }
        self.need(Kind::RightParen)?;
        if list.len() == 1
            && matches!(list[0], Expr::Subquery(_))
            && let Some(Expr::Subquery(subquery)) = list.pop()
        {
            return Ok(Expr::InSubquery { expr, subquery, negated });
        }
        Ok(Expr::InList { expr, list, negated })
    }

    #[inline(never)]
    fn like(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        let pattern = Box::new(self.climb(BIT)?);
        let escape = match self.accept("ESCAPE") {
            true => Some(self.plain_value("ESCAPE of an expression")?),
            false => None,
        };
        Ok(Expr::Like { negated, expr: Box::new(left), pattern, escape })
    }

    /// A literal or parameter, where the tree allows nothing else.
    pub(super) fn plain_value(&mut self, what: &str) -> Result<Value> {
        match self.in_tree(Self::simple)? {
            Expr::Value(value) => Ok(value),
            _ => Err(SqlError::not_supported(what)),
        }
    }

    #[inline(never)]
    fn between(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        let low = Box::new(self.climb(BIT)?);
        self.expect("AND")?;
        let high = Box::new(self.climb(PREDICATE)?);
        Ok(Expr::Between { expr: Box::new(left), negated, low, high })
    }

    /// The start of an expression: anything except an operator between two operands.
    #[inline(never)]
    fn prefix(&mut self, level: u8) -> Result<Expr> {
        match self.kind() {
            Kind::Word => self.word_expression(level),
            Kind::Quoted => self.name_expression(),
            Kind::Text => self.text_operand().map(Expr::Value),
            Kind::NationalText => Ok(self.national_text()),
            Kind::Integer | Kind::Decimal | Kind::Float => Ok(self.number()),
            Kind::Hex | Kind::Bits => Ok(Expr::Value(self.bytes())),
            Kind::Parameter => Ok(self.parameter()),
            Kind::UserVariable => self.user_variable(),
            Kind::AtAt => self.system_variable(),
            Kind::LeftParen => self.parenthesised(),
            Kind::LeftBrace => self.odbc(),
            Kind::Minus => self.sign(UnaryOperator::Minus),
            Kind::Plus => self.sign(UnaryOperator::Plus),
            Kind::Tilde => self.sign(UnaryOperator::BitwiseNot),
            Kind::Bang => self.sign(UnaryOperator::BangNot),
            _ => self.error(),
        }
    }

    /// A literal, optionally with a sign; a `COLLATE` after it is left for the caller.
    #[inline(never)]
    pub(super) fn literal(&mut self) -> Result<Expr> {
        match self.kind() {
            Kind::Minus | Kind::Plus => {
                let minus = self.advance().kind == Kind::Minus;
                let op = if minus { UnaryOperator::Minus } else { UnaryOperator::Plus };
                Ok(unary(op, self.number()))
            }
            _ => self.prefix(SIMPLE),
        }
    }

    #[inline(never)]
    fn sign(&mut self, op: UnaryOperator) -> Result<Expr> {
        self.at += 1;
        Ok(unary(op, self.simple()?))
    }

    #[inline(never)]
    fn number(&mut self) -> Expr {
        let token = self.advance();
        Expr::Value(Value::Number(self.text_of(token).to_owned()))
    }

    #[inline(never)]
    fn bytes(&mut self) -> Value {
        let token = self.advance();
        let written = self.text_of(token);
        let digits = written[2..].trim_end_matches('\'');
        if token.kind == Kind::Bits {
            return Value::Bits(digits.to_owned());
        }
        let odd = if digits.len() % 2 == 1 { "0" } else { "" };
        Value::Hexadecimal(format!("{odd}{}", digits.to_ascii_uppercase()))
    }

    #[inline(never)]
    fn national_text(&mut self) -> Expr {
        let token = self.advance();
        let said = unquote(&self.text_of(token)[1..], !self.mode.no_backslash_escapes);
        Expr::Introduced { charset: "_utf8mb3".to_owned(), value: Value::Text(said) }
    }

    #[inline(never)]
    fn parameter(&mut self) -> Expr {
        self.at += 1;
        self.parameters += 1;
        Expr::Value(Value::Parameter(self.parameters - 1))
    }

    #[inline(never)]
    fn user_variable(&mut self) -> Result<Expr> {
        let variable = Expr::UserVariable(self.variable()?);
        if self.take(Kind::Assign) {
            return Ok(binary(variable, BinaryOperator::Assignment, self.climb(0)?));
        }
        Ok(variable)
    }

    #[inline(never)]
    fn system_variable(&mut self) -> Result<Expr> {
        let (scope, name) = self.system_variable_name()?;
        Ok(Expr::SystemVariable { scope, name })
    }

    /// `@@name` or `@@scope.name`: scope and name, both in lower case.
    pub(super) fn system_variable_name(&mut self) -> Result<(String, String)> {
        self.need(Kind::AtAt)?;
        let mut scope = String::new();
        if self.kind_at(1) == Kind::Dot
            && let Some(said) =
                self.accept_any(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"])
        {
            scope = said.to_ascii_lowercase();
            self.at += 1;
        }
        let mut name = self.variable_part()?;
        if self.take(Kind::Dot) {
            name = format!("{name}.{}", self.variable_part()?);
        }
        Ok((scope, name))
    }

    /// A part of a system variable's name. No part contains a point, so the parts of the whole name
    /// are unambiguous.
    fn variable_part(&mut self) -> Result<String> {
        let part = self.any_ident()?.to_ascii_lowercase();
        if part.contains('.') {
            return Err(SqlError::new(1193, format!("Unknown system variable '{part}'")));
        }
        Ok(part)
    }

    /// `(…)`: a subquery, a row, or an expression, whose parentheses are dropped.
    #[inline(never)]
    fn parenthesised(&mut self) -> Result<Expr> {
        let needless = self.needless_parentheses()?;
        self.at += needless;
        let inner = self.in_parentheses()?;
        // Their closing parentheses were found here.
        self.at += needless;
        Ok(inner)
    }

    fn in_parentheses(&mut self) -> Result<Expr> {
        if self.begins_query(1) {
            return Ok(Expr::Subquery(self.subquery()?));
        }
        self.need(Kind::LeftParen)?;
        let mut items = self.list(Self::expression)?;
        if items.len() > 1 {
            self.need(Kind::RightParen)?;
            return Ok(Expr::Tuple(items));
        }
        let Some(mut only) = items.pop() else { return self.error() };
        if let Expr::Subquery(query) = only {
            only = Expr::Subquery(self.query_after_parens(query)?);
        }
        self.need(Kind::RightParen)?;
        Ok(only)
    }

    /// A query in parentheses.
    #[inline(never)]
    pub(super) fn subquery(&mut self) -> Result<Box<Query>> {
        self.parens(Self::query)
    }

    /// `{d '…'}`, `{t '…'}`, `{ts '…'}`, `{fn f(…)}`.
    #[inline(never)]
    fn odbc(&mut self) -> Result<Expr> {
        self.need(Kind::LeftBrace)?;
        let kind = self.ident()?.to_ascii_lowercase();
        let inner = self.in_tree(Self::expression)?;
        self.need(Kind::RightBrace)?;
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
    fn word_expression(&mut self, level: u8) -> Result<Expr> {
        let next = self.kind_at(1);
        match self.upper().as_str() {
            "NOT" if level <= NOT || self.mode.high_not_precedence => self.not(),
            "NULL" => self.constant(Value::Null),
            "TRUE" if next != Kind::Dot => self.constant(Value::Boolean(true)),
            "FALSE" if next != Kind::Dot => self.constant(Value::Boolean(false)),
            "CASE" => self.case(),
            "EXISTS" if next == Kind::LeftParen => {
                self.at += 1;
                Ok(Expr::Exists(self.subquery()?))
            }
            "BINARY" => {
                self.at += 1;
                let expr = self.simple()?;
                Ok(super::function::binary_prefix(expr))
            }
            "MATCH" => {
                self.at += 1;
                self.match_against()
            }
            "ROW" if next == Kind::LeftParen => {
                self.at += 1;
                Ok(Expr::Tuple(self.parens_list(Self::expression)?))
            }
            "INTERVAL" if self.is_interval() => {
                let interval = self.interval()?;
                if self.kind() == Kind::Plus { Ok(interval) } else { self.error() }
            }
            "DATE" if next == Kind::Text => self.typed_text(TypedStringKind::Date),
            "TIME" if next == Kind::Text => self.typed_text(TypedStringKind::Time),
            "TIMESTAMP" if next == Kind::Text => self.typed_text(TypedStringKind::Timestamp),
            _ if matches!(next, Kind::Text | Kind::Hex | Kind::Bits) && self.is_introducer() => {
                self.introduced()
            }
            _ if next == Kind::LeftParen && self.is_function() => self.function_call(),
            word if words::is_bare_function(word) => self.bare_function(),
            _ => self.name_expression(),
        }
    }

    #[inline(never)]
    fn not(&mut self) -> Result<Expr> {
        self.at += 1;
        let level = if self.mode.high_not_precedence { SIMPLE } else { NOT };
        Ok(unary(UnaryOperator::Not, self.climb(level)?))
    }

    fn constant(&mut self, constant: Value) -> Result<Expr> {
        self.at += 1;
        Ok(Expr::Value(constant))
    }

    fn is_introducer(&self) -> bool {
        words::is_introducer(self.text_of(self.token(0)))
    }

    #[inline(never)]
    fn introduced(&mut self) -> Result<Expr> {
        let token = self.advance();
        let charset = self.text_of(token).to_ascii_lowercase();
        let value = match self.kind() {
            Kind::Text => Value::Text(self.string()?),
            _ => self.bytes(),
        };
        Ok(Expr::Introduced { charset, value })
    }

    #[inline(never)]
    fn typed_text(&mut self, kind: TypedStringKind) -> Result<Expr> {
        self.at += 1;
        Ok(Expr::TypedString { kind, text: self.string()? })
    }

    #[inline(never)]
    fn case(&mut self) -> Result<Expr> {
        self.expect("CASE")?;
        let operand = match self.is("WHEN") {
            true => None,
            false => Some(Box::new(self.expression()?)),
        };
        let mut branches = Vec::new();
        while self.accept("WHEN") {
            let condition = self.expression()?;
            self.expect("THEN")?;
            branches.push(CaseWhen { condition, result: self.expression()? });
        }
        if branches.is_empty() {
            return self.error();
        }
        let otherwise = match self.accept("ELSE") {
            true => Some(Box::new(self.expression()?)),
            false => None,
        };
        self.expect("END")?;
        Ok(Expr::Case { operand, branches, otherwise })
    }

    /// A column, optionally with a JSON path after it; or a function of a database.
    #[inline(never)]
    fn name_expression(&mut self) -> Result<Expr> {
        let mut parts = Vec::new();
        if self.take(Kind::Dot) {
            parts.push(self.any_ident()?);
        } else {
            parts.push(self.ident()?);
        }
        while self.kind() == Kind::Dot && self.kind_at(1) != Kind::Star && parts.len() < 3 {
            self.at += 1;
            parts.push(self.any_ident()?);
        }
        if parts.len() <= 2 && self.kind() == Kind::LeftParen {
            let name = parts.pop().unwrap_or_default();
            return self.arguments_of(parts.pop(), name);
        }
        let column = match parts.pop() {
            Some(only) if parts.is_empty() => Expr::Identifier(only),
            Some(last) => {
                parts.push(last);
                Expr::CompoundIdentifier(parts)
            }
            None => return self.error(),
        };
        self.json_path(column)
    }

    fn json_path(&mut self, column: Expr) -> Result<Expr> {
        let op = match self.kind() {
            Kind::Arrow => BinaryOperator::Arrow,
            Kind::LongArrow => BinaryOperator::LongArrow,
            _ => return Ok(column),
        };
        self.at += 1;
        Ok(binary(column, op, text(self.string()?)))
    }

    /// Whether `INTERVAL` here starts an interval and not the function, which has a comma inside
    /// its parentheses.
    pub(super) fn is_interval(&self) -> bool {
        if !self.is("INTERVAL") {
            return false;
        }
        if self.kind_at(1) != Kind::LeftParen {
            return true;
        }
        let mut depth = 0;
        for ahead in 1.. {
            match self.kind_at(ahead) {
                Kind::LeftParen => depth += 1,
                Kind::RightParen => depth -= 1,
                Kind::Comma if depth == 1 => return self.begins_query(2),
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
    pub(super) fn interval(&mut self) -> Result<Expr> {
        self.expect("INTERVAL")?;
        let value = Box::new(self.expression()?);
        Ok(Expr::Interval(Interval { value, unit: self.unit()? }))
    }

    /// The unit of an interval, in upper case.
    pub(super) fn unit(&mut self) -> Result<&'static str> {
        let token = self.token(0);
        match words::unit(self.text_of(token)) {
            Some(unit) if token.kind == Kind::Word => {
                self.at += 1;
                Ok(unit)
            }
            _ => self.error(),
        }
    }
}

/// The tree of an expression is so tall that a traversal might overflow the stack.
fn too_tall() -> SqlError {
    let message = format!(
        "Expressions may nest {MAX_HEIGHT} levels deep; use parentheses or fewer operators"
    );
    SqlError::new(1436, message)
}

fn balanced(mut operands: Vec<Expr>, op: BinaryOperator) -> Expr {
    while operands.len() > 1 {
        let mut joined = Vec::with_capacity(operands.len().div_ceil(2));
        let mut left = None;
        for operand in operands {
            match left.take() {
                None => left = Some(operand),
                Some(first) => joined.push(binary(first, op, operand)),
            }
        }
        joined.extend(left);
        operands = joined;
    }
    operands.pop().unwrap_or(Expr::Value(Value::Null))
}

/// The comparison for a token.
pub(super) fn comparison(kind: Kind) -> Option<BinaryOperator> {
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
enum Infix {
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
