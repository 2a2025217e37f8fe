//! `| & ^ ~ << >>` and `BIT_COUNT`, over 64 bits or over binary strings.

use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, SqlType, TypeKind};

use crate::arguments::{bytes, word};
use crate::signature::{Want, fixed, int, text_chars, unsigned};
use crate::{Call, Function, ResolveContext, Signature, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("|", 2..=2, resolve_pair, |a: &[Datum], call: &Call<'_>| pairwise(a, call, |a, b| a
        | b)),
    strict!("&", 2..=2, resolve_pair, |a: &[Datum], call: &Call<'_>| pairwise(a, call, |a, b| a
        & b)),
    strict!("^", 2..=2, resolve_pair, |a: &[Datum], call: &Call<'_>| pairwise(a, call, |a, b| a
        ^ b)),
    strict!("~", 1..=1, resolve_one, invert),
    strict!("<<", 2..=2, resolve_one, shift_left),
    strict!(">>", 2..=2, resolve_one, shift_right),
    strict!("BIT_COUNT", 1..=1, resolve_count, count),
];

/// Whether an argument is a binary string, or a NULL without a type, that is not a literal; only
/// then it counts as a string.
fn is_bit_string(types: &[SqlType], context: &ResolveContext<'_>, at: usize) -> bool {
    let kind = &types[at].kind;
    (kind.is_binary() || *kind == TypeKind::Null) && context.constant(at).is_none()
}

/// Binary literals stay unchanged, and count as the number that their bytes form.
fn over_words(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let mut signature = fixed(types, context, &[Want::Int], unsigned)?;
    for (at, argument) in signature.arguments.iter_mut().enumerate() {
        if types[at].kind.is_binary() && context.constant(at).is_some() {
            *argument = types[at].clone();
        }
    }
    let nullable = types.iter().any(|ty| ty.nullable);
    signature.result = signature.result.with_nullable(nullable);
    Ok(signature)
}

/// The type of a binary string, or of a NULL as one.
fn string(ty: &SqlType) -> SqlType {
    match ty.kind {
        TypeKind::Null => SqlType::varbinary(0),
        _ => ty.clone(),
    }
}

fn resolve_pair(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let binary = types.iter().all(|ty| ty.kind.is_binary() || ty.kind == TypeKind::Null);
    if !binary || !(0..2).any(|at| is_bit_string(types, context, at)) {
        return over_words(types, context);
    }
    let length = types.iter().map(text_chars).max().unwrap_or(0);
    let arguments = types.iter().map(string).collect();
    Ok(Signature { arguments, result: SqlType::varbinary(length) })
}

fn resolve_one(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    if !is_bit_string(types, context, 0) {
        return over_words(types, context);
    }
    let mut arguments = vec![string(&types[0])];
    arguments.extend(types[1..].iter().map(|ty| Want::Int.of(ty, context)));
    Ok(Signature { arguments, result: SqlType::varbinary(text_chars(&types[0])) })
}

fn resolve_count(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let want = if is_bit_string(types, context, 0) { Want::Any } else { Want::Int };
    fixed(types, context, &[want], int)
}

fn pairwise(arguments: &[Datum], call: &Call<'_>, operation: fn(u64, u64) -> u64) -> Result<Datum> {
    let [a, b] = arguments else { return Ok(Datum::Null) };
    if !call.result.kind.is_binary() {
        return Ok(Datum::UInt(operation(word(a), word(b))));
    }
    let (a, b) = (bytes(a), bytes(b));
    if a.len() != b.len() {
        let message = "Binary operands of bitwise operators must be of equal length";
        return Err(SqlError::new(3513, message));
    }
    let combined = a.iter().zip(b).map(|(a, b)| operation((*a).into(), (*b).into()) as u8);
    Ok(Datum::Text(combined.collect()))
}

fn invert(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    match &arguments[0] {
        Datum::Text(octets) if call.result.kind.is_binary() => {
            Ok(Datum::Text(octets.iter().map(|byte| !byte).collect()))
        }
        number => Ok(Datum::UInt(!word(number))),
    }
}

fn shift_left(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let distance = word(&arguments[1]);
    match &arguments[0] {
        Datum::Text(octets) if call.result.kind.is_binary() => {
            let source = |at: usize| octets.get(at).copied().unwrap_or(0);
            Ok(shift(octets.len(), distance, |at, bytes, bits| {
                let pair = u16::from_be_bytes([source(at + bytes), source(at + bytes + 1)]);
                (pair << bits >> 8) as u8
            }))
        }
        number => Ok(Datum::UInt(shift_word(distance, |by| word(number) << by))),
    }
}

fn shift_right(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let distance = word(&arguments[1]);
    match &arguments[0] {
        Datum::Text(octets) if call.result.kind.is_binary() => {
            let source = |at: Option<usize>| at.and_then(|at| octets.get(at)).copied().unwrap_or(0);
            Ok(shift(octets.len(), distance, |at, bytes, bits| {
                let low = at.checked_sub(bytes);
                let high = low.and_then(|low| low.checked_sub(1));
                (u16::from_be_bytes([source(high), source(low)]) >> bits) as u8
            }))
        }
        number => Ok(Datum::UInt(shift_word(distance, |by| word(number) >> by))),
    }
}

fn shift_word(distance: u64, shift: impl FnOnce(u32) -> u64) -> u64 {
    if distance < 64 { shift(distance as u32) } else { 0 }
}

/// A byte string made from the bytes that `source(position, bytes, bits)` finds at this distance.
fn shift(length: usize, distance: u64, source: impl Fn(usize, usize, u32) -> u8) -> Datum {
    let (bytes, bits) = (distance / 8, (distance % 8) as u32);
    match usize::try_from(bytes).ok().filter(|&bytes| bytes < length) {
        Some(bytes) => Datum::Text((0..length).map(|at| source(at, bytes, bits)).collect()),
        None => Datum::Text(std::iter::repeat_n(0, length).collect()),
    }
}

fn count(arguments: &[Datum], _: &Call<'_>) -> Result<Datum> {
    let ones = match &arguments[0] {
        Datum::Text(octets) => octets.iter().map(|byte| u64::from(byte.count_ones())).sum(),
        number => u64::from(word(number).count_ones()),
    };
    Ok(Datum::Int(ones as i64))
}
