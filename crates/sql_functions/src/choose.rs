//! One of several values: `GREATEST`, `LEAST`, `INTERVAL`; two truth values.

use std::cmp::Ordering;

use firn_sql_types::compare::compare_values;
use firn_sql_types::error::Result;
use firn_sql_types::unify::unify;
use firn_sql_types::{Datum, SqlType};

use crate::arguments::{decimal, double};
use crate::arithmetic::{Domain, domain};
use crate::signature::{self, Want, any_nullable, fixed, number_type};
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("GREATEST", 2..=usize::MAX, resolve_greatest, |a: &[Datum], call: &Call<'_>| {
        Ok(chosen(a, call, Ordering::Greater))
    }),
    strict!("LEAST", 2..=usize::MAX, resolve_least, |a: &[Datum], call: &Call<'_>| {
        Ok(chosen(a, call, Ordering::Less))
    }),
    // AND that evaluates both sides; the binder makes it of a BETWEEN.
    lenient!("BOTH", 2..=2, resolve_both, |a: &[Datum], _| Ok(both(a))),
    lenient!("INTERVAL", 2..=usize::MAX, resolve_interval, |a: &[Datum], _| Ok(interval(a))),
];

fn resolve(types: &[SqlType], context: &ResolveContext<'_>, name: &str) -> Result<Signature> {
    let named: Vec<SqlType> = types
        .iter()
        .map(|ty| if ty.kind.is_enum_or_set() { Want::Text.of(ty, context) } else { ty.clone() })
        .collect();
    let common = unify(&named, context.connection_collation, name)?;
    let arguments = types.iter().map(|ty| common.clone().with_nullable(ty.nullable)).collect();
    Ok(Signature { arguments, result: common.with_nullable(any_nullable(types)) })
}

fn resolve_greatest(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve(types, context, "greatest")
}

fn resolve_least(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve(types, context, "least")
}

/// The first value that no other one beats.
fn chosen(a: &[Datum], call: &Call<'_>, wanted: Ordering) -> Datum {
    let better = |best, next| {
        if compare_values(call.result, next, best) == wanted { next } else { best }
    };
    a.iter().reduce(better).cloned().unwrap_or_default()
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
