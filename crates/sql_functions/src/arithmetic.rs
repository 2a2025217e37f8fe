//! `+ - * / DIV %` and the sign.
//!
//! ```text
//!   a \ b      integer    exact      double, text, JSON
//!   integer    integer    exact      double
//!   exact      exact      exact      double
//!   double …   double     double     double
//! ```
//!
//! `/` of integers is exact, with `div_precision_increment` more digits after the point than its
//! dividend.

use firn_sql_types::decimal::{MAX_PRECISION, MAX_SCALE, Rounding, quotient_digits};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, Decimal, SqlMode, SqlType, TypeKind};

use crate::arguments::{decimal, double, finite, out_of_range, shown, wide_int};
use crate::signature::{any_nullable, exact_digits, first, number_type};
use crate::{Call, Function, ResolveContext, Signature, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("+", 2..=2, resolve_sum, add).evaluating_all(),
    strict!("-", 2..=2, resolve_difference, subtract).evaluating_all(),
    strict!("*", 2..=2, resolve_product, multiply).evaluating_all(),
    strict!("/", 2..=2, resolve_quotient, divide).evaluating_all(),
    strict!("DIV", 2..=2, resolve_whole_quotient, divide_whole),
    strict!("%", 2..=2, resolve_remainder, remainder).evaluating_all(),
    strict!("NEG", 1..=1, resolve_negation, negate),
    // The displayed digits of an AVG; the binder puts this call around the aggregate.
    strict!("AVG SHOWN", 1..=1, [Decimal] => first, |a: &[Datum], call: &Call<'_>| {
        exact_result(Some(decimal(&a[0])), call, String::new)
    }),
    // An exact number that was worked out, as a document or a stored text has it: a 0 has no digits
    // after the point.
    strict!("PLAIN ZERO", 1..=1, [Any] => first, |a: &[Datum], _: &Call<'_>| {
        Ok(match &a[0] {
            Datum::Decimal(number) if number.is_zero() => Decimal::from(0_i64).into(),
            other => other.clone(),
        })
    }),
];

/// The domain in which an operation is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    Integer,
    Exact,
    Double,
}

pub(super) fn domain(kind: &TypeKind) -> Domain {
    match kind {
        TypeKind::Integer { .. } => Domain::Integer,
        TypeKind::Decimal { .. } => Domain::Exact,
        _ => Domain::Double,
    }
}

/// Whether an argument is a hexadecimal literal, which counts as an integer where numbers are
/// wanted.
fn is_hexadecimal(types: &[SqlType], context: &ResolveContext<'_>, at: usize) -> bool {
    types[at].kind.is_binary() && context.constant(at).is_some()
}

/// Each argument as a number.
fn numbers(types: &[SqlType], context: &ResolveContext<'_>) -> Vec<SqlType> {
    let number = |at| match is_hexadecimal(types, context, at) {
        true => SqlType::bigint_unsigned().not_null(),
        false => number_type(&types[at]),
    };
    (0..types.len()).map(number).collect()
}

/// The arguments as numbers, all doubles if one is.
fn operands(types: &[SqlType], context: &ResolveContext<'_>) -> (Vec<SqlType>, Domain) {
    let numbers = numbers(types, context);
    let has = |wanted| numbers.iter().any(|ty| domain(&ty.kind) == wanted);
    if has(Domain::Double) {
        let doubles = numbers.iter().map(|ty| SqlType::double().with_nullable(ty.nullable));
        return (doubles.collect(), Domain::Double);
    }
    let together = if has(Domain::Exact) { Domain::Exact } else { Domain::Integer };
    (numbers, together)
}

/// The signature over numbers; hexadecimal literals stay unchanged.
fn signature(
    types: &[SqlType],
    context: &ResolveContext<'_>,
    mut arguments: Vec<SqlType>,
    result: SqlType,
    may_fail: bool,
) -> Result<Signature> {
    let nullable = may_fail || any_nullable(&arguments);
    for (at, argument) in arguments.iter_mut().enumerate() {
        if is_hexadecimal(types, context, at) {
            *argument = types[at].clone();
        }
    }
    Ok(Signature { arguments, result: result.with_nullable(nullable) })
}

fn bigint(unsigned: bool) -> SqlType {
    if unsigned { SqlType::bigint_unsigned() } else { SqlType::bigint() }
}

/// The type of products and quotients.
fn exact(precision: u32, scale: u32) -> SqlType {
    let scale = scale.min(MAX_SCALE.into()) as u8;
    SqlType::decimal(precision.min(MAX_PRECISION.into()) as u8, scale)
}

/// The type of results that keep all digits after the point.
fn exact_to_the_end(precision: u32, scale: u32) -> SqlType {
    match scale > MAX_SCALE.into() {
        true => SqlType::decimal(precision.min(u8::MAX.into()) as u8, scale as u8),
        false => exact(precision, scale),
    }
}

fn digits(ty: &SqlType) -> (u32, u32) {
    let (precision, scale) = exact_digits(&ty.kind);
    (precision.into(), scale.into())
}

fn resolve_sum(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let (arguments, domain) = operands(types, context);
    let result = match domain {
        Domain::Double => SqlType::double(),
        Domain::Integer => bigint(arguments.iter().any(|ty| ty.kind.is_unsigned())),
        Domain::Exact => never_negative(sum_type(&arguments), &arguments),
    };
    signature(types, context, arguments, result, false)
}

/// The type of a sum, difference or product of exact numbers: unsigned if both are. A literal of
/// bytes is taken for a signed one.
fn never_negative(result: SqlType, operands: &[SqlType]) -> SqlType {
    let kind = match result.kind {
        TypeKind::Decimal { precision, scale, .. } => {
            let unsigned = operands.iter().all(|ty| ty.kind.is_unsigned());
            TypeKind::Decimal { precision, scale, unsigned }
        }
        kind => kind,
    };
    SqlType { kind, ..result }
}

fn sum_type(arguments: &[SqlType]) -> SqlType {
    let [(p1, s1), (p2, s2)] = [digits(&arguments[0]), digits(&arguments[1])];
    let scale = s1.max(s2);
    exact_to_the_end((p1 - s1).max(p2 - s2) + scale + 1, scale)
}

fn resolve_difference(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let mut signature = resolve_sum(types, context)?;
    if !context.sql_mode.contains(SqlMode::NO_UNSIGNED_SUBTRACTION) {
        return Ok(signature);
    }
    match &mut signature.result.kind {
        TypeKind::Integer { unsigned, .. } | TypeKind::Decimal { unsigned, .. } => {
            *unsigned = false;
        }
        _ => {}
    }
    Ok(signature)
}

fn resolve_product(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let (arguments, domain) = operands(types, context);
    let result = match domain {
        Domain::Double => SqlType::double(),
        Domain::Integer => bigint(arguments.iter().any(|ty| ty.kind.is_unsigned())),
        Domain::Exact => {
            let [(p1, s1), (p2, s2)] = [digits(&arguments[0]), digits(&arguments[1])];
            never_negative(exact(p1 + p2, s1 + s2), &arguments)
        }
    };
    signature(types, context, arguments, result, false)
}

fn resolve_quotient(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let (arguments, domain) = operands(types, context);
    let result = if domain == Domain::Double {
        SqlType::double()
    } else {
        let [(p1, s1), (_, s2)] = [digits(&arguments[0]), digits(&arguments[1])];
        let more = u32::from(context.div_precision_increment);
        exact(p1 + s2 + more, s1 + more)
    };
    signature(types, context, arguments, result, true)
}

fn resolve_whole_quotient(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    // Even doubles are divided exactly, and texts are exact numbers.
    let exact = |(at, number): (usize, SqlType)| {
        let is_text = types[at].kind.is_string() && !is_hexadecimal(types, context, at);
        match is_text {
            true => SqlType::decimal(MAX_PRECISION, MAX_SCALE).with_nullable(number.nullable),
            false => number,
        }
    };
    let arguments: Vec<SqlType> =
        numbers(types, context).into_iter().enumerate().map(exact).collect();
    let result = bigint(arguments.iter().any(|ty| ty.kind.is_unsigned()));
    signature(types, context, arguments, result, true)
}

fn resolve_remainder(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let (arguments, domain) = operands(types, context);
    let result = match domain {
        Domain::Double => SqlType::double(),
        Domain::Integer => bigint(arguments[0].kind.is_unsigned()),
        Domain::Exact => {
            let [(p1, s1), (p2, s2)] = [digits(&arguments[0]), digits(&arguments[1])];
            let scale = s1.max(s2);
            exact_to_the_end((p1 - s1).max(p2 - s2) + scale, scale)
        }
    };
    signature(types, context, arguments, result, true)
}

fn resolve_negation(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let mut arguments = numbers(types, context);
    if types[0].kind.is_temporal() {
        arguments[0] = SqlType::double().with_nullable(types[0].nullable);
    }
    let result = match &arguments[0].kind {
        TypeKind::Integer { .. } => SqlType::bigint(),
        TypeKind::Decimal { precision, scale, .. } => SqlType::decimal(*precision, *scale),
        _ => SqlType::double(),
    };
    signature(types, context, arguments, result, false)
}

/// An integer as a value of the call's type; error 1690 if it does not fit.
pub(super) fn integer(
    number: i128,
    call: &Call<'_>,
    expression: impl FnOnce() -> String,
) -> Result<Datum> {
    if call.result.kind.is_unsigned() {
        let fitting = u64::try_from(number).map(Datum::UInt);
        return fitting.map_err(|_| out_of_range("BIGINT UNSIGNED", &expression()));
    }
    i64::try_from(number).map(Datum::Int).map_err(|_| out_of_range("BIGINT", &expression()))
}

/// An exact number with the scale of the call's type; error 1690 if it is too large.
pub(super) fn exact_result(
    number: Option<Decimal>,
    call: &Call<'_>,
    expression: impl FnOnce() -> String,
) -> Result<Datum> {
    let scale = exact_digits(&call.result.kind).1;
    let rounded = number.and_then(|number| {
        if number.scale() > scale {
            number.round(scale.into(), Rounding::HalfUp)
        } else {
            Some(number)
        }
    });
    // A result may have more digits than a column, up to the limit for calculations.
    match rounded {
        Some(number) => Ok(Datum::Decimal(number)),
        None => Err(out_of_range("DECIMAL", &expression())),
    }
}

fn infix(arguments: &[Datum], sign: &str) -> String {
    let shown: Vec<String> = arguments.iter().map(shown).collect();
    format!("({})", shown.join(&format!(" {sign} ")))
}

fn add(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let [a, b] = arguments else { return Ok(Datum::Null) };
    if let (Datum::Int(a), Datum::Int(b)) = (a, b)
        && let Some(sum) = a.checked_add(*b)
        && !call.result.kind.is_unsigned()
    {
        return Ok(Datum::Int(sum));
    }
    let shown = || infix(arguments, "+");
    match domain(&call.result.kind) {
        Domain::Integer => integer(wide_int(a) + wide_int(b), call, shown),
        Domain::Exact => exact_result(decimal(a).add(&decimal(b)), call, shown),
        Domain::Double => finite(double(a) + double(b), shown),
    }
}

fn subtract(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let [a, b] = arguments else { return Ok(Datum::Null) };
    let shown = || infix(arguments, "-");
    match domain(&call.result.kind) {
        Domain::Integer => integer(wide_int(a) - wide_int(b), call, shown),
        Domain::Exact => {
            let difference = decimal(a).subtract(&decimal(b));
            let is_below = difference.is_some_and(|difference| difference.is_negative());
            if is_below && call.result.kind.is_unsigned() {
                return Err(out_of_range("DECIMAL UNSIGNED", &shown()));
            }
            exact_result(difference, call, shown)
        }
        Domain::Double => finite(double(a) - double(b), shown),
    }
}

fn multiply(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let [a, b] = arguments else { return Ok(Datum::Null) };
    let shown = || infix(arguments, "*");
    match domain(&call.result.kind) {
        Domain::Integer => integer(wide_int(a).saturating_mul(wide_int(b)), call, shown),
        Domain::Exact => exact_result(decimal(a).multiply(&decimal(b)), call, shown),
        Domain::Double => finite(double(a) * double(b), shown),
    }
}

/// NULL with a warning, or an error if the statement stores rows and the modes require it.
pub(super) fn division_by_zero(call: &Call<'_>) -> Result<Datum> {
    let context = call.context;
    if !context.sql_mode.contains(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        return Ok(Datum::Null);
    }
    if context.is_strict_write() {
        return Err(SqlError::new(1365, "Division by 0"));
    }
    context.warn(1365, || "Division by 0".to_owned());
    Ok(Datum::Null)
}

fn divide(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let [a, b] = arguments else { return Ok(Datum::Null) };
    let shown = || infix(arguments, "/");
    if domain(&call.result.kind) == Domain::Double {
        let divisor = double(b);
        return match divisor == 0.0 {
            true => division_by_zero(call),
            false => finite(double(a) / divisor, shown),
        };
    }
    let divisor = decimal(b);
    if divisor.is_zero() {
        return division_by_zero(call);
    }
    let scale = exact_digits(&call.result.kind).1;
    let [from, by] = [call.arguments[0], call.arguments[1]].map(|ty| exact_digits(&ty.kind).1);
    let digits = quotient_digits(from, by, call.context.div_precision_increment);
    exact_result(decimal(a).quotient(&divisor, digits, scale), call, shown)
}

fn divide_whole(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let [a, b] = arguments else { return Ok(Datum::Null) };
    let shown = || infix(arguments, "DIV");
    let is_integer =
        |datum: &Datum| matches!(datum, Datum::Int(_) | Datum::UInt(_) | Datum::Text(_));
    if is_integer(a) && is_integer(b) {
        return match wide_int(b) {
            0 => division_by_zero(call),
            divisor => integer(wide_int(a) / divisor, call, shown),
        };
    }
    let (number, divisor) = (nearest_decimal(a, call), nearest_decimal(b, call));
    if divisor.is_zero() {
        return division_by_zero(call);
    }
    let quotient = number.divide(&divisor, 0, Rounding::Truncate);
    integer(quotient.and_then(|quotient| quotient.to_i128()).unwrap_or(i128::MAX), call, shown)
}

/// An exact number; the largest one, with a warning, for a double beyond it.
fn nearest_decimal(datum: &Datum, call: &Call<'_>) -> Decimal {
    let Datum::Double(number) = datum else { return decimal(datum) };
    Decimal::from_double(*number).unwrap_or_else(|| {
        call.context
            .warn(1292, || format!("Truncated incorrect DECIMAL value: '{}'", datum.plain_text()));
        let largest = Decimal::max(MAX_PRECISION, 0);
        if *number < 0.0 { largest.negate() } else { largest }
    })
}

fn remainder(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let [a, b] = arguments else { return Ok(Datum::Null) };
    let shown = || infix(arguments, "%");
    match domain(&call.result.kind) {
        Domain::Integer => match wide_int(b) {
            0 => division_by_zero(call),
            divisor => integer(wide_int(a) % divisor, call, shown),
        },
        Domain::Exact => match decimal(b) {
            divisor if divisor.is_zero() => division_by_zero(call),
            divisor => exact_result(decimal(a).remainder(&divisor), call, shown),
        },
        Domain::Double => match double(b) {
            0.0 => division_by_zero(call),
            divisor => finite(double(a) % divisor, shown),
        },
    }
}

fn negate(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let number = &arguments[0];
    match domain(&call.result.kind) {
        Domain::Integer => integer(-wide_int(number), call, || format!("-({})", shown(number))),
        Domain::Exact => {
            exact_result(Some(decimal(number).negate()), call, || format!("-({})", shown(number)))
        }
        Domain::Double => Ok(Datum::Double(-double(number))),
    }
}
