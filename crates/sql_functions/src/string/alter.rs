//! Functions that change a whole string: case, order, replacement, quotes, sound.

use firn_sql_collation as collation;
use firn_sql_types::error::Result;
use firn_sql_types::{ByteString, Datum, SqlType, TypeKind};
use memchr::memmem;

use crate::arguments::{bytes, fits_packet, text};
use crate::signature::{self, MAX_CHARS, text_chars, text_of, text_of_first};
use crate::string::Units;
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("LOWER", 1..=1, [Text] => text_of_first, |a: &[Datum], call: &Call<'_>| {
        change_case(&a[0], call, collation::lower)
    }),
    strict!("UPPER", 1..=1, [Text] => text_of_first, |a: &[Datum], call: &Call<'_>| {
        change_case(&a[0], call, collation::upper)
    }),
    strict!("REVERSE", 1..=1, [Text] => text_of_first, reverse),
    strict!("REPLACE", 3..=3, joined [Text] => replaced, replace),
    lenient!("QUOTE", 1..=1, resolve_quote, quote),
    strict!("SOUNDEX", 1..=1, [Text] => text_of_first, |a: &[Datum], call: &Call<'_>| {
        Ok(Datum::text(soundex_of(&a[0], call.arguments[0])))
    }),
    strict!("SOUNDS LIKE", 2..=2, [Text] => signature::int, |a: &[Datum], call: &Call<'_>| {
        let [one, other] = [0, 1].map(|at| soundex_of(&a[at], call.arguments[at]));
        Ok(Datum::from_bool(one == other))
    }),
    lenient!("LOAD_FILE", 1..=1, [Text] => signature::binary::<MAX_CHARS>, |_, _| Ok(Datum::Null)),
];

fn change_case(datum: &Datum, call: &Call<'_>, change: fn(&[u8]) -> Vec<u8>) -> Result<Datum> {
    Ok(if call.result.kind.is_binary() { datum.clone() } else { Datum::text(change(bytes(datum))) })
}

fn reverse(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let text = Units::new(&arguments[0], call.result);
    let mut out = Vec::with_capacity(text.bytes.len());
    text.rev().for_each(|unit| out.extend_from_slice(unit));
    Ok(Datum::text(out))
}

fn replaced(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    let [text, from, to] = types else { return SqlType::null() };
    let (text, from, to) = (text_chars(text), text_chars(from).max(1), text_chars(to));
    let chars = u64::from(text) * u64::from(to.div_ceil(from).max(1));
    text_of(&types[..1], chars, context)
}

fn replace(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let [text, from, to] = [bytes(&arguments[0]), bytes(&arguments[1]), bytes(&arguments[2])];
    if from.is_empty() {
        return Ok(arguments[0].clone());
    }
    let mut size_bytes = text.len();
    let mut rest = text;
    while let Some(at) = memmem::find(rest, from) {
        size_bytes = size_bytes + to.len() - from.len();
        rest = &rest[at + from.len()..];
    }
    let Some(_promise) = fits_packet(size_bytes as u128, "replace", call)? else {
        return Ok(Datum::Null);
    };
    let mut out = ByteString::with_capacity(size_bytes);
    let mut rest = text;
    while let Some(at) = memmem::find(rest, from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    Ok(Datum::Text(out.built()))
}

/// Bytes and NULL become text of the connection; numbers and times become text of `latin1`, as
/// MySQL has it.
fn resolve_quote(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let ty = &types[0];
    let argument = match signature::text_type(ty, signature::NUMBERS_COLLATION) {
        bytes if bytes.kind.is_binary() => signature::decoded(&bytes, context.connection_collation),
        text => text,
    };
    let chars = u64::from(text_chars(&argument)) * 2 + 2;
    // The text NULL is one of the connection.
    let of = if ty.kind == TypeKind::Null { &[] } else { std::slice::from_ref(&argument) };
    let result = text_of(of, chars, context);
    Ok(Signature { arguments: vec![argument], result })
}

fn quote(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::text("NULL"));
    }
    let text = bytes(&arguments[0]);
    let escaped = |byte: &&u8| matches!(byte, 0 | 0x1a | b'\'' | b'\\');
    let size_bytes = text.len() + text.iter().filter(escaped).count() + 2;
    let Some(_promise) = fits_packet(size_bytes as u128, "quote", call)? else {
        return Ok(Datum::Null);
    };
    let mut out = Vec::with_capacity(size_bytes);
    out.push(b'\'');
    for &byte in text {
        match byte {
            0 => out.extend_from_slice(b"\\0"),
            0x1a => out.extend_from_slice(b"\\Z"),
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
    Ok(Datum::text(out))
}

fn soundex_of(datum: &Datum, ty: &SqlType) -> String {
    soundex(&text(datum), ty.kind.is_binary())
}

/// The original rules: vowels are removed first, repetitions afterwards; at least four characters,
/// no upper limit. Of a text, every character beyond ASCII from À on is a letter, of bytes none is.
fn soundex(text: &str, is_binary: bool) -> String {
    const FIRST_LETTER: char = 'À';
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    let code = |c: char| match c.to_ascii_uppercase() {
        c @ 'A'..='Z' => char::from(CODES[c as usize - 'A' as usize]),
        _ => '0',
    };
    let is_letter = |c: &char| c.is_ascii_alphabetic() || !is_binary && *c >= FIRST_LETTER;
    let mut letters = text.chars().filter(is_letter);
    let Some(first) = letters.next() else { return String::new() };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for code in letters.map(code) {
        if code != '0' && code != last {
            out.push(code);
            last = code;
        }
    }
    while out.chars().count() < 4 {
        out.push('0');
    }
    out
}
