//! Lengths and codes of characters: `LENGTH`, `CHAR_LENGTH`, `ASCII`, `ORD`, `CHAR`.

use std::borrow::Cow;

use firn_sql_collation as collation;
use firn_sql_types::error::Result;
use firn_sql_types::{ByteString, Datum, SqlType};

use crate::arguments::{bytes, word};
use crate::signature::{Want, bigint, fixed, int as int_type};
use crate::string::Units;
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("LENGTH", 1..=1, [Text] => bigint, |a: &[Datum], call: &Call<'_>| {
        Ok(Datum::Int(stored_length(&a[0], call) as i64))
    }),
    strict!("BIT_LENGTH", 1..=1, [Text] => bigint, |a: &[Datum], call: &Call<'_>| {
        Ok(Datum::Int(stored_length(&a[0], call) as i64 * 8))
    }),
    strict!("CHAR_LENGTH", 1..=1, [Text] => bigint, |a: &[Datum], call: &Call<'_>| {
        Ok(Datum::Int(Units::new(&a[0], call.arguments[0]).len() as i64))
    }),
    strict!("ASCII", 1..=1, [Text] => int_type, |a: &[Datum], call: &Call<'_>| {
        Ok(Datum::Int(first_character(&a[0], call).first().copied().unwrap_or(0).into()))
    }),
    strict!("ORD", 1..=1, [Text] => bigint, ord),
    lenient!("CHAR", 1..=usize::MAX, resolve_char, char),
];

/// Bytes of a text in its own character set.
fn stored_length(text: &Datum, call: &Call<'_>) -> usize {
    let collation = call.arguments[0].collation();
    collation.map_or(0, |id| collation::get(id).charset.encoded_length(bytes(text)))
}

/// The first character's bytes in the text's own character set.
fn first_character<'t>(text: &'t Datum, call: &Call<'_>) -> Cow<'t, [u8]> {
    let ty = call.arguments[0];
    let first = Units::new(text, ty).iter().next().unwrap_or_default();
    ty.collation().map_or(first.into(), |id| collation::get(id).charset.encode(first))
}

/// The first character's bytes as a number.
fn ord(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let first = first_character(&arguments[0], call);
    let code = first.iter().take(4).fold(0, |code, byte| code << 8 | i64::from(*byte));
    Ok(Datum::Int(code))
}

fn resolve_char(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    fixed(types, context, &[Want::Int], |types, _| {
        SqlType::varbinary(types.len().saturating_mul(4).min(1 << 20) as u32)
    })
}

fn char(arguments: &[Datum], _: &Call<'_>) -> Result<Datum> {
    let mut out = ByteString::new();
    for code in arguments.iter().filter(|code| !code.is_null()) {
        let code = (word(code) as u32).to_be_bytes();
        let leading_zeros = code.iter().take(3).take_while(|&&byte| byte == 0).count();
        out.extend_from_slice(&code[leading_zeros..]);
    }
    Ok(Datum::Text(out))
}
