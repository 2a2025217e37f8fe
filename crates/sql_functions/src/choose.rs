//! One of several values: `GREATEST`, `LEAST`, `INTERVAL`; two truth values.
//!
//! ```text
//!   GREATEST(DATE'2024-02-29', 20240301)     2024-03-01: all are compared as dates
//!   GREATEST(DATE'2024-02-29', 'abc')        2024-02-29, with a warning: what is no date is left out
//! ```

use std::cmp::Ordering;

use firn_format::value::DateTime;
use firn_sql_types::compare::compare_values;
use firn_sql_types::error::Result;
use firn_sql_types::temporal::format::{date_text, date_time_text};
use firn_sql_types::unify::unify;
use firn_sql_types::{Coercibility, Datum, SqlType, TypeKind};

use crate::arguments::{decimal, double};
use crate::arithmetic::{Domain, domain};
use crate::signature::{self, Want, any_nullable, fixed, number_type};
use crate::temporal::{date_beside, is_like_date};
use crate::{Call, Function, ResolveContext, Signature, lenient};

const MAX_FRACTION_DIGITS: u8 = 6;

pub(super) const FUNCTIONS: &[Function] = &[
    // What stands before a NULL is read as a date beside dates, and may warn.
    lenient!("GREATEST", 2..=usize::MAX, resolve_greatest, |a: &[Datum], call: &Call<'_>| {
        chosen(a, call, Ordering::Greater)
    })
    .reading_before_null(),
    lenient!("LEAST", 2..=usize::MAX, resolve_least, |a: &[Datum], call: &Call<'_>| {
        chosen(a, call, Ordering::Less)
    })
    .reading_before_null(),
    // AND that evaluates both sides; the binder makes it of a BETWEEN.
    lenient!("BOTH", 2..=2, resolve_both, |a: &[Datum], _| Ok(both(a))),
    lenient!("INTERVAL", 2..=usize::MAX, resolve_interval, |a: &[Datum], _| Ok(interval(a)))
        .needing(|before| {
            before.is_empty() || interval(before) == Datum::Int(before.len() as i64 - 1)
        }),
];

fn resolve(types: &[SqlType], context: &ResolveContext<'_>, name: &str) -> Result<Signature> {
    let named: Vec<SqlType> = types
        .iter()
        .map(|ty| if ty.kind.is_enum_or_set() { Want::Text.of(ty, context) } else { ty.clone() })
        .collect();
    let mut common = unify(&named, context.connection_collation, name)?;
    let arguments = match date_beside_others(types.iter(), &common) {
        Some(date) => {
            if let TypeKind::Varchar { max_chars, .. } = &mut common.kind {
                // The date may be longer than all of the other values.
                *max_chars = (*max_chars).max(date.max_text_chars());
            }
            types.iter().map(|ty| beside_date(ty, context)).collect()
        }
        None => types.iter().map(|ty| cast_type(ty, &common)).collect(),
    };
    Ok(Signature { arguments, result: common.with_nullable(any_nullable(types)) })
}

/// The common type for one of the values. Numbers and times keep their coercibility, as in any cast
/// that nobody wrote.
fn cast_type(ty: &SqlType, common: &SqlType) -> SqlType {
    let is_text = ty.kind.is_string() || ty.kind.is_enum_or_set();
    let coercibility = if is_text { common.coercibility } else { Coercibility::Numeric };
    common.clone().with_nullable(ty.nullable).with_coercibility(coercibility)
}

/// The type to which a value is cast beside a date: bits and names are texts.
fn beside_date(ty: &SqlType, context: &ResolveContext<'_>) -> SqlType {
    match &ty.kind {
        TypeKind::Bit { .. } => Want::Text.of(ty, context),
        kind if kind.is_enum_or_set() => Want::Text.of(ty, context),
        _ => ty.clone(),
    }
}

fn resolve_greatest(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve(types, context, "greatest")
}

fn resolve_least(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve(types, context, "least")
}

/// The type of the date that `GREATEST` or `LEAST` gives as a text where a date stands beside
/// values of other types; `None` if there is no date, or nothing but dates and times.
#[must_use]
pub fn date_beside_others<'t>(
    types: impl Iterator<Item = &'t SqlType> + Clone,
    common: &SqlType,
) -> Option<SqlType> {
    let mut dates = types.clone().filter(|ty| ty.kind.has_date()).peekable();
    if !common.kind.is_string() || dates.peek().is_none() {
        return None;
    }
    let kind = match dates.all(|ty| ty.kind == TypeKind::Date) {
        true => TypeKind::Date,
        false => TypeKind::DateTime { fsp: types.map(fraction_digits).max().unwrap_or(0) },
    };
    Some(SqlType::new(kind))
}

/// Digits of a second's fraction that a value has beside a moment. A literal has those that are
/// written, which its type does not tell.
fn fraction_digits(ty: &SqlType) -> u8 {
    match &ty.kind {
        kind if kind.is_temporal() => kind.fsp(),
        TypeKind::Decimal { scale, .. } => (*scale).min(MAX_FRACTION_DIGITS),
        TypeKind::Float | TypeKind::Double | TypeKind::Json => MAX_FRACTION_DIGITS,
        kind if kind.is_string() && ty.coercibility < Coercibility::Coercible => {
            MAX_FRACTION_DIGITS
        }
        _ => 0,
    }
}

/// A value that no other one beats; NULL if one is NULL.
fn chosen(a: &[Datum], call: &Call<'_>, wanted: Ordering) -> Result<Datum> {
    let types = || call.arguments.iter().copied();
    let null = a.iter().position(Datum::is_null);
    let Some(date) = date_beside_others(types(), call.result) else {
        return Ok(if null.is_some() { Datum::Null } else { best(a, call.result, wanted) });
    };
    let has_moments = date.kind != TypeKind::Date;
    let known = 0..null.unwrap_or(a.len());
    let moments = known.filter_map(|at| date_beside(a, at, has_moments, call).transpose());
    let moments: Vec<Datum> =
        moments.map(|moment| moment.map(Datum::from)).collect::<Result<_>>()?;
    if null.is_some() {
        return Ok(Datum::Null);
    }
    let moment = SqlType::new(TypeKind::DateTime { fsp: MAX_FRACTION_DIGITS });
    let Datum::DateTime(chosen) = best(&moments, &moment, wanted) else { return Ok(Datum::Null) };
    let chosen = DateTime::unpack(chosen);
    Ok(Datum::text(match date.kind {
        TypeKind::DateTime { fsp } => {
            let written = a.iter().filter_map(Datum::as_bytes).map(|text| match wanted {
                // Those of a text that is no moment are unknown.
                Ordering::Greater if !is_like_date(text) => MAX_FRACTION_DIGITS,
                _ => written_digits(text),
            });
            let written = written.max();
            date_time_text(chosen, fsp.max(written.unwrap_or(0)))
        }
        _ => date_text(chosen.date),
    }))
}

/// The least value, the first one of several; or the greatest, the last one of several.
fn best(values: &[Datum], ty: &SqlType, wanted: Ordering) -> Datum {
    let is_better = |ordering: Ordering| {
        ordering == wanted || ordering == Ordering::Equal && wanted == Ordering::Greater
    };
    let better = |best, next| if is_better(compare_values(ty, next, best)) { next } else { best };
    values.iter().reduce(better).cloned().unwrap_or_default()
}

/// The digits of the fraction of a second in a text.
fn written_digits(text: &[u8]) -> u8 {
    let fraction = text.iter().skip_while(|byte| **byte != b'.').skip(1);
    let digits = fraction.take_while(|byte| byte.is_ascii_digit()).count();
    digits.min(MAX_FRACTION_DIGITS.into()) as u8
}

fn resolve_both(types: &[SqlType], _: &ResolveContext<'_>) -> Result<Signature> {
    let result = SqlType::boolean().with_nullable(any_nullable(types));
    Ok(Signature { arguments: types.to_vec(), result })
}

fn both(truths: &[Datum]) -> Datum {
    let is_false = |truth: &Datum| matches!(truth, Datum::Int(0));
    match truths.iter().any(is_false) {
        true => Datum::Int(0),
        false if truths.iter().any(Datum::is_null) => Datum::Null,
        false => Datum::Int(1),
    }
}

fn resolve_interval(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let exact = types.iter().all(|ty| domain(&number_type(ty).kind) != Domain::Double);
    fixed(types, context, &[if exact { Want::Number } else { Want::Double }], signature::bigint)
}

/// How many of the ascending bounds are not above the first argument; -1 for NULL.
fn interval(a: &[Datum]) -> Datum {
    let Some((number, bounds)) = a.split_first().filter(|(number, _)| !number.is_null()) else {
        return Datum::Int(-1);
    };
    let reached = |bound: &&Datum| match (number, bound) {
        (_, Datum::Null) => true,
        (Datum::Double(number), bound) => double(bound) <= *number,
        (number, bound) => decimal(bound) <= decimal(number),
    };
    Datum::Int(bounds.iter().take_while(reached).count() as i64)
}
