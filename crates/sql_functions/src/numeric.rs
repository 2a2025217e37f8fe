//! Mathematics: rounding, roots, logarithms, angles.

use firn_sql_types::decimal::{MAX_SCALE, Rounding};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::number_text::parse_double_prefix;
use firn_sql_types::{Datum, Decimal, SqlType, TypeKind};

use crate::arguments::{bytes, decimal, double, finite, int, out_of_range, shown, wide_int};
use crate::arithmetic::{Domain, domain, exact_result, integer};
use crate::signature::{self, Want, exact_digits, fixed};
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("ABS", 1..=1, resolve_absolute, absolute),
    strict!("SIGN", 1..=1, [Number] => signature::int, sign),
    strict!("CEILING", 1..=1, resolve_whole, |a: &[Datum], call: &Call<'_>| {
        to_whole(a, call, Rounding::Ceiling, f64::ceil)
    }),
    strict!("FLOOR", 1..=1, resolve_whole, |a: &[Datum], call: &Call<'_>| {
        to_whole(a, call, Rounding::Floor, f64::floor)
    }),
    strict!("ROUND", 1..=2, resolve_round, |a: &[Datum], call: &Call<'_>| {
        round(a, call, Rounding::HalfUp)
    })
    .shaped_by(&[1]),
    strict!("TRUNCATE", 2..=2, resolve_round, |a: &[Datum], call: &Call<'_>| {
        round(a, call, Rounding::Truncate)
    })
    .shaped_by(&[1]),
    // The number of a text as a column of doubles stores it; the binder puts this call around the
    // distinct texts that are summed.
    strict!("STORED NUMBER", 1..=1, [Text] => signature::double, number_as_stored),
    // A double that was worked out and becomes an integer; the binder puts this call around it.
    strict!("WHOLE", 1..=1, [Any] => signature::first, in_integers),
    strict!("SQRT", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        Ok(null_unless(double(&a[0]) >= 0.0, || double(&a[0]).sqrt()))
    }),
    strict!("EXP", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        finite(double(&a[0]).exp(), || format!("exp({})", shown(&a[0])))
    }),
    strict!("LN", 1..=1, [Double] => signature::double, |a: &[Datum], call: &Call<'_>| {
        logarithm(a, call, f64::ln)
    }),
    strict!("LOG2", 1..=1, [Double] => signature::double, |a: &[Datum], call: &Call<'_>| {
        logarithm(a, call, f64::log2)
    }),
    strict!("LOG10", 1..=1, [Double] => signature::double, |a: &[Datum], call: &Call<'_>| {
        logarithm(a, call, f64::log10)
    }),
    // A base that is none decides before the number is read.
    lenient!("LOG", 1..=2, [Double] => signature::double, logarithm_to_base)
        .reading_before_null()
        .needing(|before| before.first().is_none_or(|base| base.is_null() || double(base) > 0.0)),
    strict!("POW", 2..=2, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        let (base, exponent) = (double(&a[0]), double(&a[1]));
        finite(base.powf(exponent), || format!("pow({},{})", shown(&a[0]), shown(&a[1])))
    }),
    lenient!("PI", 0..=0, [] => pi_type, |_, _| Ok(Datum::Double(std::f64::consts::PI))),
    strict!("SIN", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::Double(double(&a[0]).sin()))
    }),
    strict!("COS", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::Double(double(&a[0]).cos()))
    }),
    strict!("TAN", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        finite(double(&a[0]).tan(), || format!("tan({})", shown(&a[0])))
    }),
    strict!("COT", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        finite(1.0 / double(&a[0]).tan(), || format!("cot({})", shown(&a[0])))
    }),
    strict!("ASIN", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        Ok(null_unless(double(&a[0]).abs() <= 1.0, || double(&a[0]).asin()))
    }),
    strict!("ACOS", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        Ok(null_unless(double(&a[0]).abs() <= 1.0, || double(&a[0]).acos()))
    }),
    strict!("ATAN", 1..=2, [Double] => signature::double, arc_tangent),
    strict!("ATAN2", 1..=2, [Double] => signature::double, arc_tangent),
    strict!("DEGREES", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        finite(double(&a[0]) * (180.0 / std::f64::consts::PI), || {
            format!("degrees({})", shown(&a[0]))
        })
    }),
    strict!("RADIANS", 1..=1, [Double] => signature::double, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::Double(double(&a[0]) * (std::f64::consts::PI / 180.0)))
    }),
];

/// Error 1690 for a double beyond the integers.
fn in_integers(a: &[Datum], _: &Call<'_>) -> Result<Datum> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    match (-END..END).contains(&double(&a[0]).round_ties_even()) {
        true => Ok(a[0].clone()),
        false => Err(out_of_range("BIGINT", &shown(&a[0]))),
    }
}

fn pi_type(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::double().not_null()
}

fn null_unless(defined: bool, number: impl FnOnce() -> f64) -> Datum {
    if defined { Datum::Double(number()) } else { Datum::Null }
}

/// A number of the first argument's kind; integers become `BIGINT`.
fn same_number(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    let number = &types[0];
    match &number.kind {
        TypeKind::Integer { unsigned: true, .. } => SqlType::bigint_unsigned(),
        TypeKind::Integer { .. } => SqlType::bigint(),
        _ => number.clone(),
    }
    .with_nullable(number.nullable)
}

/// Whole results of exact numbers are `BIGINT` as long as they fit.
fn number_as_stored(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let octets = bytes(&a[0]);
    let parsed = parse_double_prefix(octets);
    let rest = &octets[parsed.length_bytes..];
    if parsed.overflow || parsed.length_bytes == 0 || !rest.trim_ascii().is_empty() {
        call.context.bad_value(1366, || {
            format!("Incorrect DOUBLE value: '{}' for column '' at row 1", shown(&a[0]))
        })?;
    }
    Ok(Datum::Double(parsed.number))
}

fn whole(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    match types[0].kind {
        TypeKind::Decimal { precision, scale, .. } => match precision - scale {
            ..=18 => SqlType::bigint(),
            digits => SqlType::decimal(digits.saturating_add(1), 0),
        }
        .with_nullable(types[0].nullable),
        _ => same_number(types, context),
    }
}

/// The argument type of functions of one number: dates and times become doubles.
fn of_number(
    types: &[SqlType],
    context: &ResolveContext<'_>,
    result: signature::ResultRule,
) -> Result<Signature> {
    let number = if types[0].kind.is_temporal() { Want::Double } else { Want::Number };
    fixed(types, context, &[number, Want::Int], result)
}

fn resolve_absolute(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    of_number(types, context, same_number)
}

fn resolve_whole(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    of_number(types, context, whole)
}

fn resolve_round(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let mut signature = of_number(types, context, same_number)?;
    if let TypeKind::Decimal { precision, scale, .. } = signature.arguments[0].kind {
        let digits = match (types.len(), context.constant(1)) {
            (1, _) => 0,
            (_, Some(constant)) => {
                let digits = match constant {
                    Datum::Text(text) if types[1].kind.is_text() => {
                        let number = Decimal::parse_prefix(text).number;
                        number.round(0, Rounding::Truncate).and_then(|whole| whole.to_i64())
                    }
                    _ => Some(int(constant)),
                };
                digits.unwrap_or(i64::MAX).clamp(0, scale.min(MAX_SCALE).into()) as u8
            }
            (_, None) => scale.min(MAX_SCALE),
        };
        let precision = (precision - scale).saturating_add(digits).saturating_add(1);
        signature.result = SqlType::decimal(precision, digits);
    }
    signature.result = signature.result.with_nullable(signature::any_nullable(types));
    Ok(signature)
}

fn absolute(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let number = &arguments[0];
    match domain(&call.result.kind) {
        Domain::Integer => {
            integer(wide_int(number).abs(), call, || format!("abs({})", shown(number)))
        }
        Domain::Exact => {
            exact_result(Some(decimal(number).abs()), call, || format!("abs({})", shown(number)))
        }
        Domain::Double => Ok(Datum::Double(double(number).abs())),
    }
}

fn sign(arguments: &[Datum], _: &Call<'_>) -> Result<Datum> {
    let sign = match &arguments[0] {
        Datum::Decimal(number) if number.is_zero() => 0,
        Datum::Decimal(number) if number.is_negative() => -1,
        Datum::Decimal(_) => 1,
        Datum::Double(number) if *number == 0.0 => 0,
        Datum::Double(number) => number.signum() as i64,
        other => wide_int(other).signum() as i64,
    };
    Ok(Datum::Int(sign))
}

fn to_whole(
    arguments: &[Datum],
    call: &Call<'_>,
    rounding: Rounding,
    round_double: fn(f64) -> f64,
) -> Result<Datum> {
    let number = &arguments[0];
    match number {
        Datum::Decimal(exact) => {
            let whole = exact.round(0, rounding);
            match domain(&call.result.kind) {
                Domain::Integer => {
                    let whole = whole.and_then(|whole| whole.to_i128()).unwrap_or(i128::MAX);
                    integer(whole, call, || shown(number))
                }
                _ => exact_result(whole, call, || shown(number)),
            }
        }
        Datum::Int(_) | Datum::UInt(_) => Ok(number.clone()),
        other => Ok(Datum::Double(round_double(double(other)))),
    }
}

fn round(arguments: &[Datum], call: &Call<'_>, rounding: Rounding) -> Result<Datum> {
    let number = &arguments[0];
    let digits = arguments.get(1).map_or(0, int);
    let shown = || format!("round({})", shown(number));
    match domain(&call.result.kind) {
        Domain::Integer => integer(round_integer(wide_int(number), digits, rounding), call, shown),
        Domain::Exact => {
            let scale = exact_digits(&call.result.kind).1;
            let digits = digits.clamp(-100, scale.into()) as i32;
            // Without a constant number of digits, all digits of the scale stay.
            let rounded = decimal(number).round(digits, rounding);
            let rounded = rounded.and_then(|number| number.round(scale.into(), rounding));
            exact_result(rounded, call, shown)
        }
        Domain::Double => finite(round_double(double(number), digits, rounding), shown),
    }
}

fn round_integer(number: i128, digits: i64, rounding: Rounding) -> i128 {
    let unit = match digits {
        0.. => return number,
        -20..0 => 10_i128.pow(digits.unsigned_abs() as u32),
        _ => return 0,
    };
    let half = if rounding == Rounding::HalfUp { unit / 2 } else { 0 };
    (number.abs() + half) / unit * unit * number.signum()
}

/// A double rounded to this many digits after the point; halves go to the even neighbour.
pub(super) fn round_double(number: f64, digits: i64, rounding: Rounding) -> f64 {
    let round = |number: f64| match rounding {
        Rounding::HalfUp => number.round_ties_even(),
        _ => number.trunc(),
    };
    let power = 10_f64.powi(digits.unsigned_abs().min(400) as i32);
    if digits < 0 {
        if power.is_infinite() { 0.0 } else { round(number / power) * power }
    } else if (number * power).is_infinite() || power.is_infinite() {
        number
    } else {
        round(number * power) / power
    }
}

fn invalid_logarithm(call: &Call<'_>) -> Result<Datum> {
    if call.context.is_strict_write() {
        return Err(SqlError::new(3020, "Invalid argument for logarithm"));
    }
    call.context.warn(3020, || "Invalid argument for logarithm".to_owned());
    Ok(Datum::Null)
}

fn logarithm(arguments: &[Datum], call: &Call<'_>, function: fn(f64) -> f64) -> Result<Datum> {
    match double(&arguments[0]) {
        number if number > 0.0 => Ok(Datum::Double(function(number))),
        _ => invalid_logarithm(call),
    }
}

fn logarithm_to_base(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let [base, number] = arguments else { return logarithm(arguments, call, f64::ln) };
    let base = double(base);
    if base <= 0.0 {
        return invalid_logarithm(call);
    }
    if number.is_null() {
        return Ok(Datum::Null);
    }
    let number = double(number);
    if base == 1.0 || number <= 0.0 {
        return invalid_logarithm(call);
    }
    let logarithm = number.ln() / base.ln();
    if logarithm.is_finite() {
        Ok(Datum::Double(logarithm))
    } else {
        Err(out_of_range("DOUBLE", &format!("log({base},{number})")))
    }
}

fn arc_tangent(arguments: &[Datum], _: &Call<'_>) -> Result<Datum> {
    Ok(Datum::Double(match arguments {
        [y, x] => double(y).atan2(double(x)),
        _ => double(&arguments[0]).atan(),
    }))
}
