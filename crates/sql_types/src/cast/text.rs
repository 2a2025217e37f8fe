//! Anything to text and to bytes.

use std::fmt::Write as _;

use firn_base::memory;
use firn_format::value::{Date, DateTime, Time};
use firn_sql_collation::{self as collation, Charset, prefix_length};

use crate::byte_string::ByteString;
use crate::context::EvaluationContext;
use crate::datum::Datum;
use crate::error::Result;
use crate::number_text::{double_in_text, float_in_text};
use crate::sql_type::{SqlType, TypeKind};
use crate::temporal::format;

use super::truncated;

/// `Invalid %s character string: '%s'`
const CODE_INVALID_CHARACTERS: u16 = 1300;
/// Bytes that message 1300 shows.
const SHOWN_BYTES: usize = 6;

/// The text form of a value: UTF-8, except that binary strings and bit fields are their bytes.
#[must_use]
pub(crate) fn text_of(datum: &Datum, from: &SqlType) -> ByteString {
    let mut text = ByteString::new();
    let fsp = from.kind.fsp();
    // Writing to memory does not fail.
    let _ = match (datum, &from.kind) {
        (Datum::Null, _) => Ok(()),
        (Datum::Text(octets), _) => return octets.clone(),
        (Datum::UInt(ordinal), TypeKind::Enum { members, .. }) => {
            return members.name_of(*ordinal).into();
        }
        (Datum::UInt(bits), TypeKind::Set { members, .. }) => {
            return members.names_of(*bits).into();
        }
        (Datum::UInt(number), TypeKind::Bit { bits }) => return bit_bytes(*number, *bits),
        (Datum::UInt(year), TypeKind::Year) => write!(text, "{year:04}"),
        (Datum::Int(number), _) => write!(text, "{number}"),
        (Datum::UInt(number), _) => write!(text, "{number}"),
        (Datum::Double(number), TypeKind::Float) => return float_in_text(*number),
        (Datum::Double(number), _) => return double_in_text(*number),
        (Datum::Decimal(number), _) => write!(text, "{number}"),
        (Datum::Date(packed), _) => return format::date_text(Date::unpack(*packed)).into(),
        (Datum::Time(packed), _) => return format::time_text(Time::unpack(*packed), fsp).into(),
        (Datum::DateTime(packed), _) => {
            return format::date_time_text(DateTime::unpack(*packed), fsp).into();
        }
        (Datum::Json(json), _) => return json.to_text().into(),
    };
    text
}

/// A bit field's bytes, most significant first.
fn bit_bytes(number: u64, bits: u8) -> ByteString {
    let length = usize::from(bits).div_ceil(8).min(8);
    number.to_be_bytes()[8 - length..].into()
}

/// The character set of a value's text form; `None` if it is ASCII in any set.
fn charset_of(from: &SqlType) -> Option<Charset> {
    match &from.kind {
        TypeKind::Bit { .. } => Some(Charset::Binary),
        _ => from.charset(),
    }
}

/// To text (UTF-8) of a character set. Bytes are taken as text of that set: `None`, with warning
/// 1300, if they are invalid. Characters that the set does not have become `?`.
///
/// # Errors
/// 1300 in a strict statement that stores.
pub fn to_text(
    datum: &Datum,
    from: &SqlType,
    charset: Charset,
    ctx: &EvaluationContext,
) -> Result<Option<ByteString>> {
    let text = text_of(datum, from);
    if text.is_ascii() && charset.unit_bytes() == 1 || charset == Charset::Binary {
        return Ok(Some(text));
    }
    if charset_of(from) == Some(Charset::Binary) {
        let decoded = charset.decode(&text).map(|decoded| ByteString::from(&*decoded));
        if decoded.is_none() {
            ctx.bad_value(CODE_INVALID_CHARACTERS, || {
                let bytes = text.iter().skip_while(|byte| byte.is_ascii()).take(SHOWN_BYTES);
                let hex: String = bytes.map(|byte| format!("{byte:02X}")).collect();
                format!("Invalid {} character string: '{hex}'", charset.name())
            })?;
        }
        return Ok(decoded);
    }
    if charset == Charset::Utf8mb4 {
        return Ok(Some(text));
    }
    let has = |character| if charset.has(character) { character } else { '?' };
    Ok(Some(collation::characters(&text).map(has).collect::<String>().into()))
}

/// To bytes: those of the text in its own character set.
#[must_use]
pub fn to_binary(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> ByteString {
    let text = text_of(datum, from);
    let charset = charset_of(from);
    let charset = charset.unwrap_or_else(|| collation::get(ctx.connection_collation).charset);
    if charset.is_utf8() || charset.unit_bytes() == 1 && text.is_ascii() {
        return text;
    }
    ByteString::from(&*charset.encode(&text))
}

pub(super) fn to_text_type(
    datum: &Datum,
    from: &SqlType,
    to: &TypeKind,
    ctx: &EvaluationContext,
) -> Result<Datum> {
    let charset = to.charset().unwrap_or(Charset::Utf8mb4);
    let Some(mut text) = to_text(datum, from, charset, ctx)? else { return Ok(Datum::Null) };
    let (TypeKind::Char { max_chars, .. } | TypeKind::Varchar { max_chars, .. }) = to else {
        return Ok(Datum::Text(text));
    };
    let kept = prefix_length(&text, *max_chars as usize);
    if kept < text.len() {
        truncated(&format!("CHAR({max_chars})"), datum, from, ctx)?;
        text.truncate(kept);
    }
    Ok(Datum::Text(text))
}

pub(super) fn to_binary_type(
    datum: &Datum,
    from: &SqlType,
    to: &TypeKind,
    ctx: &EvaluationContext,
) -> Result<Datum> {
    if let TypeKind::Binary { max_bytes } = to
        && u64::from(*max_bytes) > ctx.max_allowed_packet_bytes
    {
        ctx.longer_than_packet("cast_as_binary")?;
        return Ok(Datum::Null);
    }
    let mut bytes = to_binary(datum, from, ctx);
    let (TypeKind::Binary { max_bytes } | TypeKind::Varbinary { max_bytes }) = to else {
        return Ok(Datum::Text(bytes));
    };
    let max_bytes = *max_bytes as usize;
    if bytes.len() > max_bytes {
        truncated(&format!("BINARY({max_bytes})"), datum, from, ctx)?;
        bytes.truncate(max_bytes);
    }
    if matches!(to, TypeKind::Binary { .. }) && bytes.len() < max_bytes {
        let _promise = memory::ask(max_bytes)?;
        let mut padded = Vec::with_capacity(max_bytes);
        padded.extend_from_slice(&bytes);
        padded.resize(max_bytes, 0);
        return Ok(Datum::text(padded));
    }
    Ok(Datum::Text(bytes))
}
