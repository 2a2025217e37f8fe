//! Functions that make strings longer: `CONCAT`, `CONCAT_WS`, `LPAD`, `RPAD`, `REPEAT`, `SPACE`.

use firn_base::number_text::{NumberText, put_fixed};
use firn_sql_collation::Charset;
use firn_sql_types::collate::has_all;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{ByteString, Datum, SqlType};

use crate::arguments::{bytes, double, fits_packet, int};
use crate::signature::{
    MAX_CHARS, Want, fixed, joined, merge_text, text_chars, text_of, text_of_all,
};
use crate::string::Units;
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("CONCAT", 1..=usize::MAX, resolve_concat, concat),
    strict!("||", 2..=2, resolve_concat, concat),
    lenient!("CONCAT_WS", 2..=usize::MAX, resolve_concat_ws, concat_ws)
        .needing(|before| before.first().is_none_or(|separator| !separator.is_null())),
    strict!("LPAD", 3..=3, resolve_pad, |a: &[Datum], call: &Call<'_>| {
        pad(a, call, "lpad", true)
    })
    .in_order(&[0, 2, 1])
    .shaped_by(&[1]),
    strict!("RPAD", 3..=3, resolve_pad, |a: &[Datum], call: &Call<'_>| {
        pad(a, call, "rpad", false)
    })
    .in_order(&[0, 2, 1])
    .shaped_by(&[1]),
    // The text of a ZEROFILL column; the binder puts this call around the column.
    strict!("ZEROFILL", 2..=2, [Text, Int] => padded_type, |a: &[Datum], _: &Call<'_>| {
        Ok(zero_filled(bytes(&a[0]), int(&a[1])))
    }),
    // The text of a double that is stored in at most this many characters; the binder puts this
    // call around the double.
    strict!("STORED DOUBLE", 2..=2, [Any, Int] => padded_type, |a: &[Datum], _: &Call<'_>| {
        let most = usize::try_from(int(&a[1])).unwrap_or(0);
        Ok(Datum::text(&*NumberText::of_double_within(double(&a[0]), most).0))
    }),
    // The text of a double with this many digits after the point; the binder puts this call around
    // the double.
    strict!("FIXED DOUBLE", 2..=2, [Any, Int] => padded_type, |a: &[Datum], _: &Call<'_>| {
        let mut text = Vec::new();
        put_fixed(&mut text, double(&a[0]), u8::try_from(int(&a[1])).unwrap_or(0));
        Ok(Datum::text(text))
    }),
    // Bytes as text for an operation; the binder puts this call around them.
    strict!("DECODED", 1..=1, [Any] => decoded_type, |a: &[Datum], call: &Call<'_>| {
        decode(bytes(&a[0]), call)
    }),
    // A cast to an explicit length; the binder puts this call around it if the length is long.
    lenient!("CAST AS CHAR", 2..=2, [Any, Int] => cast_type, cast_as_char),
    strict!("REPEAT", 2..=2, resolve_repeat, repeat).shaped_by(&[1]),
    strict!("SPACE", 1..=1, resolve_space, space).shaped_by(&[0]),
];

/// Up to as many characters as there are bytes; the binder names the character set.
fn decoded_type(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    SqlType::varchar(types[0].max_text_bytes(), context.connection_collation)
}

/// The binder names the type, which is the cast's.
fn cast_type(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    types[0].clone()
}

/// The value, unless the cast's length in characters exceeds a packet.
fn cast_as_char(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    if u64::try_from(int(&a[1])).is_ok_and(|chars| chars <= call.context.max_allowed_packet_bytes) {
        return Ok(a[0].clone());
    }
    let is_binary = call.result.kind.is_binary();
    call.context.longer_than_packet(if is_binary { "cast_as_binary" } else { "cast_as_char" })?;
    Ok(Datum::Null)
}

/// Error 3854 for bytes that are invalid in the character set, and for a text of another set with
/// characters that this one has not.
fn decode(bytes: &[u8], call: &Call<'_>) -> Result<Datum> {
    let charset = call.result.charset().unwrap_or(Charset::Utf8mb4);
    let text = match call.arguments[0].kind.is_text() {
        true => has_all(charset, bytes).then_some(bytes.into()),
        false => charset.decode(bytes),
    };
    if let Some(text) = text {
        return Ok(Datum::text(&*text));
    }
    Err(SqlError::cannot_convert(bytes, charset.name()))
}

fn resolve_concat(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    merge_text(types, "concat")?;
    let mut signature = joined(types, context, &[Want::Text], text_of_all)?;
    let nullable = signature.arguments.iter().any(|ty| ty.nullable);
    signature.result = signature.result.with_nullable(nullable);
    Ok(signature)
}

fn resolve_concat_ws(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    merge_text(types, "concat_ws")?;
    joined(types, context, &[Want::Text], |types, context| {
        let separators = types.len().saturating_sub(2) as u64 * u64::from(text_chars(&types[0]));
        let chars: u64 = types[1..].iter().map(|ty| u64::from(text_chars(ty))).sum();
        text_of(types, chars + separators, context)
    })
}

fn concat(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let size_bytes: usize = arguments.iter().map(|part| bytes(part).len()).sum();
    let Some(_promise) = fits_packet(size_bytes as u128, "concat", call)? else {
        return Ok(Datum::Null);
    };
    let mut out = ByteString::with_capacity(size_bytes);
    arguments.iter().for_each(|part| out.extend_from_slice(bytes(part)));
    Ok(Datum::Text(out.built()))
}

fn concat_ws(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let separator = bytes(&arguments[0]);
    let parts = || arguments[1..].iter().filter(|part| !part.is_null()).map(bytes);
    let text: usize = parts().map(<[u8]>::len).sum();
    let size_bytes = text + parts().count().saturating_sub(1) * separator.len();
    let Some(_promise) = fits_packet(size_bytes as u128, "concat_ws", call)? else {
        return Ok(Datum::Null);
    };
    let mut out = ByteString::with_capacity(size_bytes);
    for (at, part) in parts().enumerate() {
        if at > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(part);
    }
    Ok(Datum::Text(out.built()))
}

fn resolve_pad(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    joined(types, context, &[Want::Text, Want::Int, Want::Text], |types, context| {
        let chars =
            context.constant(1).map_or(MAX_CHARS.into(), |length| int(length).max(0) as u64);
        text_of(&types[..1], chars, context)
    })
}

fn pad(arguments: &[Datum], call: &Call<'_>, name: &str, is_left: bool) -> Result<Datum> {
    let Ok(length) = usize::try_from(int(&arguments[1])) else { return Ok(Datum::Null) };
    let text = Units::new(&arguments[0], call.result);
    let padding = Units::new(&arguments[2], call.result);
    let missing = match length.checked_sub(text.len()) {
        None | Some(0) => return Ok(Datum::text(text.slice(0, length))),
        Some(missing) => missing,
    };
    let padding_length = padding.len();
    if padding_length == 0 {
        return Ok(Datum::text(text.bytes));
    }
    let (times, rest) = (missing / padding_length, padding.slice(0, missing % padding_length));
    let fill_bytes = times as u128 * padding.bytes.len() as u128 + rest.len() as u128;
    // Each character counts as the longest of its character set here.
    let longest = call.result.charset().map_or(1, Charset::max_character_bytes);
    let Some(_promise) = fits_packet(length as u128 * u128::from(longest), name, call)? else {
        return Ok(Datum::Null);
    };
    let mut out = ByteString::with_capacity(text.bytes.len() + fill_bytes as usize);
    let fill = |out: &mut ByteString| {
        (0..times).for_each(|_| out.extend_from_slice(padding.bytes));
        out.extend_from_slice(rest);
    };
    if is_left {
        fill(&mut out);
    }
    out.extend_from_slice(text.bytes);
    if !is_left {
        fill(&mut out);
    }
    Ok(Datum::Text(out.built()))
}

fn padded_type(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    text_of(&types[..1], text_chars(&types[0]).into(), context).with_nullable(types[0].nullable)
}

fn zero_filled(number: &[u8], width: i64) -> Datum {
    let width = usize::try_from(width).unwrap_or(0).min(usize::from(u8::MAX));
    let mut filled = vec![b'0'; width.saturating_sub(number.len())];
    filled.extend_from_slice(number);
    Datum::text(filled)
}

fn resolve_repeat(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    fixed(types, context, &[Want::Text, Want::Int], |types, context| {
        let times = context.constant(1).map_or(u64::MAX, |times| int(times).max(0) as u64);
        text_of(&types[..1], times.saturating_mul(text_chars(&types[0]).into()), context)
    })
}

fn repeat(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let text = bytes(&arguments[0]);
    let times = u64::try_from(int(&arguments[1])).unwrap_or(0);
    if text.is_empty() || times == 0 {
        return Ok(Datum::text(""));
    }
    let Some(_promise) = fits_packet(u128::from(times) * text.len() as u128, "repeat", call)?
    else {
        return Ok(Datum::Null);
    };
    Ok(Datum::text(text.repeat(times as usize)))
}

fn resolve_space(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    fixed(types, context, &[Want::Int], |_, context| {
        let chars = context.constant(0).map_or(u64::MAX, |count| int(count).max(0) as u64);
        text_of(&[], chars, context)
    })
}

fn space(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let count = u64::try_from(int(&arguments[0])).unwrap_or(0);
    let Some(_promise) = fits_packet(count.into(), "space", call)? else {
        return Ok(Datum::Null);
    };
    Ok(Datum::text(" ".repeat(count as usize)))
}
