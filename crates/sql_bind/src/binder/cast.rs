//! `CAST`, `CONVERT`, `COLLATE`, and functions with their own grammar.

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset};
use firn_sql_functions as functions;
use firn_sql_grammar::ast::{CastType, Digits, Expr, Function, Interval, TrimSide};
use firn_sql_grammar::render;
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{Expression, ExpressionKind, IsTest, volatility};
use firn_sql_types::decimal::{MAX_PRECISION, MAX_SCALE};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::hexadecimal::hexadecimal_digits;
use firn_sql_types::temporal::interval::IntervalUnit;
use firn_sql_types::{Before, Coercibility, Datum, SqlType, TypeKind, WorkedOut, cast};

use super::expressions::{DEPRECATED, deprecated};
use super::function::json_truth;
use super::mean::unrounded;
use super::{
    Binder, Typing, coerce, display, documents, expression_builders, expressions, literal,
    parameter, predicate,
};

/// The deprecation text for `NCHAR` and its relatives.
const NATIONAL: &str = "NATIONAL/NCHAR/NVARCHAR implies the character set UTF8MB3, which will be \
                        replaced by UTF8MB4 in a future release. Please consider using CHAR(x) \
                        CHARACTER SET UTF8MB4 in order to be unambiguous.";

/// Casts to longer texts are checked against the limit of each execution. Shorter ones need a check
/// only if the session that planned them had a lower limit. That is rare, so most plans need no
/// further node.
const UNCHECKED_CHARS: u64 = 65_535;

/// Expressions with their own node in the grammar's tree that are not common.
pub(crate) fn special(binder: &mut Binder<'_>, expr: &Expr) -> Result<Expression> {
    match expr {
        Expr::Cast { is_binary_prefix, expr, to, charset, array: false } => {
            if *is_binary_prefix {
                expressions::warn(
                    binder.typing.context,
                    DEPRECATED,
                    deprecated("BINARY expr", "CAST"),
                );
            }
            let operand = expressions::bind_single(binder, expr)?;
            let operand = match to {
                CastType::Json => {
                    let value = documents::with_own_digits(json_truth(operand, expr));
                    documents::within_document(value)
                }
                _ => number_to_cast(&binder.typing, operand, to),
            };
            explicit_cast(&mut binder.typing, operand, to, charset.as_deref())
        }
        Expr::Convert { expr, charset } => {
            let operand = expressions::bind_single(binder, expr)?;
            // CHAR(codes USING set) is as weak as a literal.
            let coercibility = match &**expr {
                Expr::Function(function) if is_char(function) => operand.ty.coercibility,
                _ => Coercibility::Implicit,
            };
            convert_charset(&mut binder.typing, operand, charset, coercibility)
        }
        Expr::Collate { expr, collation } => {
            let operand = expressions::bind_single(binder, expr)?;
            collate(&mut binder.typing, operand, collation)
        }
        Expr::Introduced { charset, value } => {
            let operand = literal::literal(binder.typing.context, value)?;
            introduced(binder.typing.context, operand, charset.trim_start_matches('_'))
        }
        Expr::TypedString { kind, text } => literal::typed_string(&mut binder.typing, *kind, text),
        Expr::Unit(unit) => literal::literal_text(binder.typing.context, unit),
        Expr::Extract { unit, expr } => {
            let unit = literal::literal_text(binder.typing.context, unit)?;
            let operand = expressions::bind_single(binder, expr)?;
            expression_builders::call(&mut binder.typing, "EXTRACT", vec![unit, operand])
        }
        Expr::Trim { side, what, expr } => {
            let operand = expressions::bind_single(binder, expr)?;
            trim(binder, *side, what.as_deref(), operand)
        }
        Expr::MemberOf { value, array } => {
            let arguments = vec![
                json_truth(expressions::bind_single(binder, value)?, value),
                expressions::bind_single(binder, array)?,
            ];
            let arguments = documents::with_documents(&mut binder.typing, "MEMBER OF", arguments)?;
            expression_builders::call(&mut binder.typing, "MEMBER OF", arguments)
        }
        Expr::MatchAgainst { .. } => Err(SqlError::not_supported("MATCH … AGAINST")),
        Expr::Interval(_) => Err(SqlError::not_supported("INTERVAL outside of date arithmetic")),
        other => Err(SqlError::not_supported(&render(other))),
    }
}

/// A hexadecimal literal is a number in a cast to a numeric type.
fn number_to_cast(typing: &Typing<'_>, operand: Expression, to: &CastType) -> Expression {
    let to_text = matches!(
        to,
        CastType::Char(_)
            | CastType::NationalChar(_)
            | CastType::Binary(_)
            | CastType::Json
            | CastType::Date
            | CastType::Datetime(_)
            | CastType::Time(_)
    );
    match to_text {
        true => operand,
        false => literal::as_number(typing.context, operand),
    }
}

pub(super) fn explicit_cast(
    typing: &mut Typing<'_>,
    operand: Expression,
    data_type: &CastType,
    charset: Option<&str>,
) -> Result<Expression> {
    let kind = cast_kind(typing.context, &operand, data_type, charset)?;
    let operand = parameter::inferred(typing.context, operand, &parameter::of_cast(&kind));
    let is_never_null = match kind.is_string() {
        true => !typing.context.evaluation.sql_mode.is_strict(),
        false => kind.is_numeric() && kind != TypeKind::Year,
    };
    let nullable = operand.ty.nullable || !is_never_null;
    let ty = SqlType::new(kind).with_nullable(nullable).with_coercibility(Coercibility::Implicit);
    let operand = match &ty.kind {
        kind if kind.is_string() || kind.is_temporal() && *kind != TypeKind::Year => {
            coerce::number_of_year(typing, operand)
        }
        _ => operand,
    };
    let operand = match ty.kind.is_temporal() && ty.kind != TypeKind::Year {
        true => documents::read_as_moment(typing, operand, &ty.kind),
        false => operand,
    };
    let operand = coerce::zero_filled(typing, operand, &ty);
    let is_choice = matches!(operand.kind, ExpressionKind::Case { .. });
    if is_choice && operand.ty.kind.is_numeric() && ty.kind.is_string() {
        return Ok(coerce::cast_to(typing, operand, ty));
    }
    let operand = match ty.kind.is_integer() {
        true => {
            let operand = coerce::whole_seconds(typing, operand);
            coerce::in_integers(typing, operand, &ty)
        }
        false => operand,
    };
    let operand = if ty.kind.is_numeric() { unrounded(operand) } else { operand };
    let cast = Expression {
        kind: firn_sql_logical::expression::ExpressionKind::Cast(Box::new(operand)),
        ty,
    };
    // A bytes literal would be a number beside numbers.
    let cast = if cast.ty.kind.is_binary() { cast } else { coerce::fold(typing, cast) };
    Ok(within_packet(typing.context, cast, data_type))
}

/// A cast to an explicit length: a value longer than a packet is NULL in execution.
fn within_packet(context: &PlanContext<'_>, cast: Expression, data_type: &CastType) -> Expression {
    let (CastType::Char(Some(length)) | CastType::NationalChar(Some(length))) = data_type else {
        return cast;
    };
    let limit = context.evaluation.max_allowed_packet_bytes.min(UNCHECKED_CHARS);
    let Some(function) = functions::find("CAST AS CHAR").filter(|_| *length > limit) else {
        return cast;
    };
    let ty = cast.ty.clone().with_nullable(true);
    let chars = expression_builders::integer(i64::try_from(*length).unwrap_or(i64::MAX));
    Expression { kind: ExpressionKind::Call { function, arguments: vec![cast, chars] }, ty }
}

/// Characters of a text in another character set: of the longest texts, as many as there are if
/// each takes four bytes.
fn chars_of_long(chars: u32, charset: Charset) -> u32 {
    match (charset.max_character_bytes(), chars) {
        (1, u32::MAX) => u32::MAX / 4,
        _ => chars,
    }
}

fn cast_kind(
    context: &PlanContext<'_>,
    operand: &Expression,
    data_type: &CastType,
    charset: Option<&str>,
) -> Result<TypeKind> {
    let fsp = |digits: &Option<u64>| digits.unwrap_or(0).min(6) as u8;
    Ok(match data_type {
        CastType::Signed => SqlType::bigint().kind,
        CastType::Unsigned => SqlType::bigint_unsigned().kind,
        CastType::Binary(length) => {
            let longest = length.map_or(operand.ty.max_text_bytes(), |length| length as u32);
            match length {
                Some(_) => TypeKind::Binary { max_bytes: longest },
                None => TypeKind::Varbinary { max_bytes: longest },
            }
        }
        CastType::Char(length) | CastType::NationalChar(length) => {
            if matches!(data_type, CastType::NationalChar(_)) {
                expressions::warn(context, 3720, NATIONAL.to_owned());
            }
            let written = length.map(|length| length as u32);
            let max_chars = written.unwrap_or_else(|| shown_chars(&operand.ty));
            let connection = context.evaluation.connection_collation;
            match charset.map(charset_named).transpose()? {
                Some(Charset::Binary) => TypeKind::Varbinary { max_bytes: max_chars },
                Some(charset) => TypeKind::Varchar {
                    max_chars: written.unwrap_or_else(|| chars_of_long(max_chars, charset)),
                    collation: charset.default_collation(),
                },
                None => TypeKind::Varchar { max_chars, collation: connection },
            }
        }
        CastType::Date => TypeKind::Date,
        CastType::Datetime(digits) => TypeKind::DateTime { fsp: fsp(digits) },
        CastType::Time(digits) => TypeKind::Time { fsp: fsp(digits) },
        CastType::Decimal(info) => decimal_kind(info)?,
        CastType::Float(info) => match info {
            Digits::Precision(digits) if *digits > 24 => TypeKind::Double,
            _ => TypeKind::Float,
        },
        CastType::Double => TypeKind::Double,
        CastType::Json => TypeKind::Json,
        CastType::Year => TypeKind::Year,
        CastType::Geometry(name) => {
            return Err(SqlError::not_supported(&format!("CAST AS {name}")));
        }
    })
}

/// The characters that clients see of a value as a text: as many as it has bits, for bits.
fn shown_chars(ty: &SqlType) -> u32 {
    match ty.kind {
        TypeKind::Bit { bits } => bits.into(),
        _ => ty.max_text_chars(),
    }
}

fn convert_charset(
    typing: &mut Typing<'_>,
    operand: Expression,
    charset: &str,
    coercibility: Coercibility,
) -> Result<Expression> {
    let charset = charset_named(charset)?;
    let max = shown_chars(&operand.ty);
    let ty = match charset {
        Charset::Binary => SqlType::varbinary(max),
        charset => SqlType::varchar(chars_of_long(max, charset), charset.default_collation()),
    };
    let ty = ty.with_nullable(operand.ty.nullable).with_coercibility(coercibility);
    // What the character set does not have becomes a question mark here, and is no error.
    let is_converted = match operand.ty.kind {
        TypeKind::Bit { .. } => true,
        ref kind => kind.is_binary() || kind.is_text() && operand.ty.charset() != ty.charset(),
    };
    let mut text = match is_converted && ty.kind.is_text() {
        true => {
            coerce::fold(typing, Expression { kind: ExpressionKind::Cast(Box::new(operand)), ty })
        }
        false => coerce::cast_to(typing, operand, ty),
    };
    if typing.context.evaluation.sql_mode.is_strict() {
        let shown = display::display(typing, &text);
        let operand = (text.ty.clone(), shown);
        let written = operand.clone();
        text.ty.before = Before::of(WorkedOut {
            shown,
            nullable: true,
            operand,
            written,
            bytes: None,
            is_quiet: false,
        });
        text.ty.nullable |= matches!(text.kind, ExpressionKind::Cast(_));
    }
    Ok(text)
}

/// A literal with a character set introducer: its bytes, as written, are text of that character
/// set.
fn introduced(context: &PlanContext<'_>, operand: Expression, charset: &str) -> Result<Expression> {
    let charset = charset_named(charset)?;
    let max = operand.ty.max_text_chars();
    let ty = match charset {
        Charset::Binary => SqlType::varbinary(max),
        charset => SqlType::varchar(max, charset.default_collation()),
    };
    let ExpressionKind::Literal(literal) = &operand.kind else {
        return Err(SqlError::not_supported("a character set before what is no literal"));
    };
    let bytes = cast::to_binary(literal, &operand.ty, context.evaluation);
    let text = charset.decode(&bytes).ok_or_else(|| invalid_literal(&bytes, charset))?;
    let literal = expression_builders::literal(Datum::text(&*text), ty);
    // Bytes with an introducer are a string everywhere; other bytes are a number beside
    // numbers.
    Ok(match charset {
        Charset::Binary => {
            Expression { ty: literal.ty.clone(), kind: ExpressionKind::Cast(Box::new(literal)) }
        }
        _ => literal,
    })
}

fn collate(typing: &mut Typing<'_>, operand: Expression, name: &str) -> Result<Expression> {
    let found = collation::by_name(name);
    let found = found.ok_or_else(|| SqlError::new(1273, format!("Unknown collation: '{name}'")))?;
    if matches!(operand.kind, ExpressionKind::Literal(Datum::Null))
        && operand.ty.kind == TypeKind::Null
        && found.id != CollationId::BINARY
    {
        let message = format!("COLLATION '{name}' is not valid for CHARACTER SET 'binary'");
        return Err(SqlError::new(1253, message));
    }
    let operand = predicate::as_text(typing, operand);
    let of_operand = operand.ty.collation().map(collation::get);
    if let Some(of_operand) = of_operand.filter(|of_operand| of_operand.charset != found.charset) {
        let charset = of_operand.charset.name();
        let message = format!("COLLATION '{name}' is not valid for CHARACTER SET '{charset}'");
        return Err(SqlError::new(1253, message));
    }
    let shown = display::display(typing, &operand);
    let nullable = typing.context.evaluation.sql_mode.is_strict()
        || display::nullable::shown_nullable(typing, &operand);
    let of = (operand.ty.clone(), shown);
    let before = Before::of(WorkedOut {
        shown,
        nullable,
        operand: of.clone(),
        written: of,
        bytes: None,
        is_quiet: false,
    });
    let ty = SqlType::varchar(operand.ty.max_text_chars(), found.id)
        .with_nullable(operand.ty.nullable)
        .with_coercibility(Coercibility::Explicit);
    let ty = SqlType { before, ..ty };
    let kind = operand.kind;
    // A column under another collation keeps its bytes; the cast marks that its index cannot be
    // used.
    Ok(match kind {
        firn_sql_logical::expression::ExpressionKind::Literal(_) => Expression { kind, ty },
        kind => {
            let operand = Expression { kind, ty: operand.ty };
            Expression {
                kind: firn_sql_logical::expression::ExpressionKind::Cast(Box::new(operand)),
                ty,
            }
        }
    })
}

fn trim(
    binder: &mut Binder<'_>,
    side: Option<TrimSide>,
    what: Option<&Expr>,
    operand: Expression,
) -> Result<Expression> {
    let name = match side {
        None | Some(TrimSide::Both) => "TRIM",
        Some(TrimSide::Leading) if what.is_none() => "LTRIM",
        Some(TrimSide::Trailing) if what.is_none() => "RTRIM",
        Some(TrimSide::Leading) => "TRIM LEADING",
        Some(TrimSide::Trailing) => "TRIM TRAILING",
    };
    let mut arguments = vec![operand];
    if let Some(what) = what {
        arguments.push(expressions::bind_single(binder, what)?);
    }
    expression_builders::call(&mut binder.typing, name, arguments)
}

/// `date ± INTERVAL n unit`
pub(crate) fn add_interval(
    binder: &mut Binder<'_>,
    left: &Expr,
    right: &Expr,
    minus: bool,
) -> Result<Expression> {
    let (date, interval) = match (left, right) {
        (Expr::Interval(interval), date) | (date, Expr::Interval(interval)) => (date, interval),
        _ => return Err(SqlError::not_supported("INTERVAL here")),
    };
    let date = expressions::bind_single(binder, date)?;
    date_arithmetic(binder, date, interval, minus)
}

/// `DATE_ADD` and `DATE_SUB`.
pub(crate) fn date_arithmetic(
    binder: &mut Binder<'_>,
    date: Expression,
    interval: &Interval,
    minus: bool,
) -> Result<Expression> {
    // A unit of several parts reads the text.
    let of_unit = IntervalUnit::by_name(interval.unit);
    let is_compound = of_unit.is_some_and(IntervalUnit::is_compound);
    let count = expressions::bind_single(binder, &interval.value)?;
    let typing = &mut binder.typing;
    let (date, count) = match of_unit {
        Some(unit) => parameter::inferred_interval(typing.context, date, count, unit),
        None => (date, count),
    };
    let count = match (is_compound, &count.ty.kind) {
        // As it is shown, with the digits of a column's definition.
        (true, TypeKind::Float | TypeKind::Double) => predicate::as_text(typing, count),
        (true, TypeKind::Integer { .. }) if coerce::is_zero_filled(&typing.frame, &count) => {
            predicate::as_text(typing, count)
        }
        (true, _) => count,
        (false, _) => literal::as_number(typing.context, count),
    };
    let count = match interval.unit {
        unit if unit.eq_ignore_ascii_case("SECOND") => {
            coerce::cut_to_definition(typing, count, date.ty.kind.fsp())?
        }
        _ if !is_compound && chooses_number(&count) => {
            let ty = SqlType::bigint().with_nullable(count.ty.nullable);
            coerce::cast_to(typing, count, ty)
        }
        _ => count,
    };
    let count = match is_compound {
        true => count,
        false => quiet_count(&mut binder.typing, count, interval.unit),
    };
    let unit = literal::literal_text(binder.typing.context, interval.unit)?;
    let count = count_for_moment(&mut binder.typing, &date, count)?;
    let name = if minus { "DATE_SUB" } else { "DATE_ADD" };
    expression_builders::call(&mut binder.typing, name, vec![date, count, unit])
}

/// A number of units that a function has passed on as a text: it is a number at once, which warns
/// of nothing that follows it.
pub(super) fn quiet_count(typing: &mut Typing<'_>, count: Expression, unit: &str) -> Expression {
    let is_passed_on = match &count.kind {
        ExpressionKind::Coalesce(_) => true,
        ExpressionKind::Call { .. } => count.is_quiet_text(),
        _ => false,
    };
    if !is_passed_on || !count.ty.kind.is_string() {
        return count;
    }
    let ty = match unit.eq_ignore_ascii_case("SECOND") {
        true => SqlType::decimal(MAX_PRECISION, MAX_SCALE),
        false => SqlType::bigint(),
    };
    let nullable = count.ty.nullable;
    coerce::cast_to(typing, count, ty.with_nullable(nullable))
}

/// Whether `CASE` or `IF` chooses among texts and numbers: a number of units is the whole number of
/// the chosen value then.
fn chooses_number(count: &Expression) -> bool {
    let ExpressionKind::Case { branches, otherwise } = &count.kind else { return false };
    let is_number = |value: &Expression| match &value.kind {
        ExpressionKind::Cast(inner) => inner.ty.kind.is_numeric(),
        _ => false,
    };
    let values = branches.iter().map(|(_, value)| value).chain(otherwise.as_deref());
    count.ty.kind.is_string() && values.into_iter().any(is_number)
}

/// A number of units as an operand beside a moment: it is not worked out, and does not warn, where
/// there is no moment.
pub(super) fn count_for_moment(
    typing: &mut Typing<'_>,
    moment: &Expression,
    count: Expression,
) -> Result<Expression> {
    let is_at_hand = matches!(
        count.kind,
        ExpressionKind::Literal(_) | ExpressionKind::Parameter(_) | ExpressionKind::Row(_)
    );
    let is_plain = matches!(count.kind, ExpressionKind::Slot(_)) && count.ty.kind != TypeKind::Json;
    if is_at_hand || is_plain || volatility::is_row_dependent(moment) {
        return Ok(count);
    }
    let moment = match moment.ty.kind.has_date() || moment.ty.kind == TypeKind::Null {
        true => moment.clone(),
        false if moment.ty.kind.is_temporal() || moment.ty.kind == TypeKind::Json => {
            return Ok(count);
        }
        false => expression_builders::call(typing, "TO_SECONDS", vec![moment.clone()])?,
    };
    let is_missing = expression_builders::is(moment, IsTest::Null, false);
    let ty = count.ty.clone().with_nullable(true);
    let branches = vec![(is_missing, typed_null(ty.clone()))];
    let kind = ExpressionKind::Case { branches, otherwise: Some(Box::new(count)) };
    Ok(Expression { kind, ty })
}

fn is_char(function: &Function) -> bool {
    function.name.eq_ignore_ascii_case("CHAR")
}

fn decimal_kind(info: &Digits) -> Result<TypeKind> {
    let (precision, scale) = match info {
        Digits::Default => (10, 0),
        Digits::Precision(precision) => (*precision, 0),
        Digits::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if precision > 65 {
        let message = format!("Too-big precision {precision} specified for 'cast'. Maximum is 65.");
        return Err(SqlError::new(1426, message));
    }
    if scale > 30 {
        let message = format!("Too big scale {scale} specified for column 'cast'. Maximum is 30.");
        return Err(SqlError::new(1425, message));
    }
    Ok(SqlType::decimal(precision.max(1) as u8, scale as u8).kind)
}

/// As MySQL shows it: six bytes at most.
fn invalid_literal(bytes: &[u8], charset: Charset) -> SqlError {
    let shown = hexadecimal_digits(&bytes[..bytes.len().min(6)]);
    SqlError::new(1300, format!("Invalid {} character string: '{shown}'", charset.name()))
}

fn charset_named(name: &str) -> Result<Charset> {
    Charset::by_name(name)
        .ok_or_else(|| SqlError::new(1115, format!("Unknown character set: '{name}'")))
}

#[must_use]
pub(crate) fn typed_null(ty: SqlType) -> Expression {
    expression_builders::literal(Datum::Null, ty)
}
