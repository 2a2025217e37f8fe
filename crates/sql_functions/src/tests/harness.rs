//! Expressions written as text, processed by resolve, casts and evaluation as in a statement.
//!
//! ```text
//!   table    lines of   expression → result
//!   result   the text of the value, NULL, or !code for an error; ~code… for the warnings left
//! ```
//!
//! Operators are between their operands, evaluated from the left, without precedence.

use firn_sql_types::cast::cast;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::temporal::parse::{DateRules, parse_date_time, parse_time};
use firn_sql_types::{Datum, Decimal, EvaluationContext, JsonValue, SqlType, TypeKind};

use crate::{Call, ResolveContext, find};
use firn_format::value::CollationId;

const CONNECTION: CollationId = CollationId(255);
/// The names of functions that are not words, longest first.
const SIGNS: [&str; 13] = ["->>", "->", "<<", ">>", "||", "+", "-", "*", "/", "%", "|", "&", "^"];
const WORDS: [&str; 4] = ["DIV", "REGEXP", "MEMBER OF", "SOUNDS LIKE"];

/// A value with its type, and whether it is a literal.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) datum: Datum,
    pub(super) ty: SqlType,
    pub(super) literal: bool,
}

impl Value {
    fn literal(datum: Datum, ty: SqlType) -> Value {
        Value { datum, ty: ty.not_null(), literal: true }
    }
}

/// Calls a function by name, as a statement does.
pub(super) fn call(name: &str, arguments: &[Value], context: &EvaluationContext) -> Result<Value> {
    let function = find(name).ok_or_else(|| SqlError::new(1305, name))?;
    function.check_arity(arguments.len())?;
    let types: Vec<SqlType> = arguments.iter().map(|argument| argument.ty.clone()).collect();
    let constants: Vec<Option<Datum>> =
        arguments.iter().map(|a| a.literal.then(|| a.datum.clone())).collect();
    let resolve_context = ResolveContext {
        sql_mode: context.sql_mode,
        connection_collation: CONNECTION,
        div_precision_increment: context.div_precision_increment,
        constants: &constants,
    };
    let signature = (function.resolve)(&types, &resolve_context)?;
    assert_eq!(signature.arguments.len(), arguments.len(), "signature of {name}");
    let mut data = Vec::new();
    for (argument, to) in arguments.iter().zip(&signature.arguments) {
        data.push(cast(&argument.datum, &argument.ty, to, context)?);
    }
    let types: Vec<_> = signature.arguments.iter().collect();
    let call = Call { context, arguments: &types, result: &signature.result };
    let datum = (function.evaluate)(&data, &call)?;
    assert!(fits(&datum, &signature.result), "{name} gave {datum:?} as {:?}", signature.result);
    Ok(Value { datum, ty: signature.result, literal: false })
}

/// Whether a value has the variant that its type requires.
fn fits(datum: &Datum, ty: &SqlType) -> bool {
    match datum {
        Datum::Null => true,
        Datum::Int(_) => matches!(ty.kind, TypeKind::Integer { unsigned: false, .. }),
        Datum::UInt(_) => ty.kind.is_unsigned() || ty.kind.is_enum_or_set(),
        Datum::Double(number) => {
            number.is_finite() && matches!(ty.kind, TypeKind::Float | TypeKind::Double)
        }
        Datum::Decimal(_) => matches!(ty.kind, TypeKind::Decimal { .. }),
        Datum::Text(octets) => {
            ty.kind.is_binary() || (ty.kind.is_text() && octets.as_str().is_some())
        }
        Datum::Date(_) => ty.kind == TypeKind::Date,
        Datum::Time(_) => matches!(ty.kind, TypeKind::Time { .. }),
        Datum::DateTime(_) => {
            matches!(ty.kind, TypeKind::DateTime { .. } | TypeKind::Timestamp { .. })
        }
        Datum::Json(_) => ty.kind == TypeKind::Json,
    }
}

/// Checks each line of a table.
pub(super) fn check(table: &str) {
    check_in(table, || EvaluationContext {
        statement_time_us: 1_700_000_000_123_456,
        ..EvaluationContext::default()
    });
}

/// Checks each line of a table in its own context.
pub(super) fn check_in(table: &str, context: impl Fn() -> EvaluationContext) {
    let mut failures = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (expression, expected) = line.rsplit_once(" →").expect("a line has an arrow");
        let got = show(expression, &context());
        if got.trim() != expected.trim() {
            failures.push(format!("{expression}\n   expected {expected}\n        got {got}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn show(expression: &str, context: &EvaluationContext) -> String {
    let mut parser = Parser { rest: expression, context };
    let value = match parser.expression() {
        Ok(value) => value,
        Err(error) => return format!("!{}", error.code),
    };
    assert!(parser.rest.trim().is_empty(), "left over: {}", parser.rest);
    let warnings: String =
        context.take_conditions().iter().map(|condition| format!(" ~{}", condition.code)).collect();
    format!("{}{warnings}", text_of(&value, context))
}

fn text_of(value: &Value, context: &EvaluationContext) -> String {
    if value.datum.is_null() {
        return "NULL".to_owned();
    }
    let text = if value.ty.kind.is_string() {
        value.datum.clone()
    } else {
        let text = SqlType::varchar(1 << 20, CONNECTION);
        cast(&value.datum, &value.ty, &text, context).expect("every value has a text")
    };
    match text.as_bytes().map(|bytes| std::str::from_utf8(bytes)) {
        Some(Ok(text)) => text.replace('\n', "⏎").replace('\0', "␀"),
        other => format!("{other:?} {text:?}"),
    }
}

struct Parser<'a> {
    rest: &'a str,
    context: &'a EvaluationContext,
}

impl Parser<'_> {
    fn take(&mut self, wanted: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expression(&mut self) -> Result<Value> {
        let mut left = self.operand()?;
        loop {
            let operators = SIGNS.iter().chain(&WORDS);
            let Some(operator) = operators.into_iter().find(|operator| self.take(operator)) else {
                return Ok(left);
            };
            let right = self.operand()?;
            left = call(operator, &[left, right], self.context)?;
        }
    }

    fn operand(&mut self) -> Result<Value> {
        if self.take("(") {
            let value = self.expression()?;
            assert!(self.take(")"), "unclosed at {}", self.rest);
            return Ok(value);
        }
        if self.take("~") {
            let operand = self.operand()?;
            return call("~", &[operand], self.context);
        }
        if self.take("'") {
            return Ok(text_literal(&self.quoted()));
        }
        let number = self.rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let negative = self.rest.starts_with('-');
        if number > 0 || negative {
            return Ok(self.number());
        }
        let word =
            self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let (name, rest) = self.rest.split_at(word);
        let name = name.to_owned();
        self.rest = rest;
        self.named(&name)
    }

    fn quoted(&mut self) -> String {
        let mut out = String::new();
        loop {
            let end = self.rest.find('\'').expect("text is closed");
            out.push_str(&self.rest[..end]);
            self.rest = &self.rest[end + 1..];
            if !self.rest.starts_with('\'') {
                return out;
            }
            out.push('\'');
            self.rest = &self.rest[1..];
        }
    }

    fn number(&mut self) -> Value {
        let signed = usize::from(self.rest.starts_with('-'));
        let mut length = signed;
        let bytes = self.rest.as_bytes();
        while bytes.get(length).is_some_and(|b| {
            b.is_ascii_digit()
                || matches!(b, b'.' | b'e')
                || (matches!(b, b'-' | b'+') && bytes[length - 1] == b'e')
        }) {
            length += 1;
        }
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        number_literal(text)
    }

    fn named(&mut self, name: &str) -> Result<Value> {
        if self.rest.starts_with('\'') {
            self.rest = &self.rest[1..];
            let text = self.quoted();
            return Ok(typed_literal(name, &text));
        }
        match name {
            "NULL" => return Ok(Value { datum: Datum::Null, ty: SqlType::null(), literal: true }),
            "TRUE" => return Ok(Value::literal(Datum::TRUE, SqlType::boolean())),
            "FALSE" => return Ok(Value::literal(Datum::FALSE, SqlType::boolean())),
            _ => (),
        }
        assert!(self.take("("), "no call: {name}{}", self.rest);
        let mut arguments = Vec::new();
        while !self.take(")") {
            arguments.push(self.expression()?);
            self.take(",");
        }
        call(&name.replace("_USING", " USING"), &arguments, self.context)
    }
}

fn text_literal(text: &str) -> Value {
    let chars = text.chars().count() as u32;
    Value::literal(Datum::text(text), SqlType::varchar(chars, CONNECTION))
}

fn number_literal(text: &str) -> Value {
    if text.contains('e') {
        return Value::literal(Datum::Double(text.parse().expect("a double")), SqlType::double());
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::literal(Datum::Int(number), SqlType::bigint());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Value::literal(Datum::UInt(number), SqlType::bigint_unsigned());
    }
    let number = Decimal::parse(text).expect("a decimal");
    let precision = number.digits().max(number.scale());
    Value::literal(Datum::Decimal(number), SqlType::decimal(precision, number.scale()))
}

/// `x'…'`, `DATE'…'`, `TIME'…'`, `TIMESTAMP'…'`, `JSON'…'`, `b'…'` for a column of bytes.
fn typed_literal(name: &str, text: &str) -> Value {
    let fsp = text.split_once('.').map_or(0, |(_, fraction)| fraction.len().min(6)) as u8;
    let moment = || parse_date_time(text.as_bytes(), DateRules::LENIENT).value.expect("a date");
    match name {
        "x" | "b" => {
            let bytes = crate::string::from_hex(text.as_bytes()).expect("digits");
            let ty = SqlType::varbinary(bytes.len() as u32);
            Value { literal: name == "x", ..Value::literal(Datum::text(bytes), ty) }
        }
        "DATE" => Value::literal(moment().date_time.date.into(), SqlType::new(TypeKind::Date)),
        "TIME" => {
            let time = parse_time(text.as_bytes(), DateRules::LENIENT).value.expect("a time");
            Value::literal(time.into(), SqlType::new(TypeKind::Time { fsp }))
        }
        "TIMESTAMP" => {
            Value::literal(moment().date_time.into(), SqlType::new(TypeKind::DateTime { fsp }))
        }
        "JSON" => {
            let document = JsonValue::parse(text).expect("a document");
            Value {
                literal: false,
                ..Value::literal(document.into(), SqlType::new(TypeKind::Json))
            }
        }
        other => panic!("no literal: {other}"),
    }
}
