//! Storing into columns of text, bytes and geometry.

use firn_base::number_text::NumberText;
use firn_sql_collation::{self as collation, Charset, prefix_length};

use crate::byte_string::ByteString;
use crate::datum::Datum;
use crate::error::{Result, SqlError};
use crate::number_text::double_column_in_text;
use crate::sql_type::{SqlType, TypeKind};

use super::assign::{Source, Target};
use super::geometry::is_geometry;
use super::text::{text_of, to_binary};

const CODE_INCORRECT_STRING: u16 = 1366;
const CODE_NO_GEOMETRY: u16 = 1416;
/// Bytes that message 1366 shows of a text.
const SHOWN_BYTES: usize = 6;

pub(super) fn without_trailing_spaces(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

pub(super) fn text(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    let most = match &target.ty.kind {
        TypeKind::Char { max_chars, .. } | TypeKind::Varchar { max_chars, .. } => Some(*max_chars),
        _ => None,
    };
    let number = stored_number(datum, from, most, target)?;
    let text = number.unwrap_or_else(|| text_of(datum, from));
    let mut text = in_charset(decoded(text, from, target), from, target)?;
    match &target.ty.kind {
        TypeKind::Char { max_chars, .. } => {
            let kept = without_trailing_spaces(&text).len();
            text.truncate(kept);
            let most = prefix_length(&text, *max_chars as usize);
            if most < text.len() {
                target.too_long()?;
                let kept = without_trailing_spaces(&text[..most]).len();
                text.truncate(kept);
            }
        }
        TypeKind::Varchar { max_chars, .. } => {
            let most = prefix_length(&text, *max_chars as usize);
            cut(&mut text, most, from, target)?;
        }
        TypeKind::Text { max_bytes, .. } => {
            let most = charset_of(target).longest_prefix(&text, *max_bytes as usize);
            cut(&mut text, most, from, target)?;
        }
        _ => {}
    }
    Ok(Datum::Text(text))
}

/// The text of a number whose stored form differs from its displayed form, for a column of `most`
/// characters; a column without a limit is a long text, which takes the form of a part of a text.
fn stored_number(
    datum: &Datum,
    from: &SqlType,
    most: Option<u32>,
    target: Target<'_>,
) -> Result<Option<ByteString>> {
    let Some(most) = most else {
        return Ok(match (datum, &from.kind, target.source) {
            (Datum::Double(number), TypeKind::Double, Source::Column) => {
                Some(double_column_in_text(*number))
            }
            _ => None,
        });
    };
    Ok(match (datum, &from.kind) {
        (Datum::Double(number), _) => {
            let (text, fits) = NumberText::of_double_within(*number, most as usize);
            let mut text = ByteString::from(&*text);
            if !fits {
                target.too_long()?;
                text.truncate(most as usize);
            }
            Some(text)
        }
        (Datum::UInt(number), TypeKind::Bit { .. } | TypeKind::Year) => {
            Some(number.to_string().into())
        }
        _ => None,
    })
}

/// Too long: a column that is copied into a shorter one of its kind is truncated.
fn too_long(from: &SqlType, target: Target<'_>) -> Result<()> {
    let is_same_kind = match (&from.kind, &target.ty.kind) {
        (TypeKind::Varchar { .. }, TypeKind::Varchar { .. }) => {
            from.charset() == target.ty.charset()
        }
        (TypeKind::Varbinary { .. }, TypeKind::Varbinary { .. }) => true,
        _ => false,
    };
    match is_same_kind && target.source == Source::Column {
        true => target.truncated(),
        false => target.too_long(),
    }
}

/// Cuts a text to this many bytes; cutting only spaces causes just a note.
fn cut(text: &mut ByteString, most: usize, from: &SqlType, target: Target<'_>) -> Result<()> {
    if most >= text.len() {
        return Ok(());
    }
    if without_trailing_spaces(&text[most..]).is_empty() {
        target.truncated_note();
    } else {
        too_long(from, target)?;
    }
    text.truncate(most);
    Ok(())
}

/// Bytes as text of the column's character set; invalid bytes stay, so that [`in_charset`] reports
/// them.
fn decoded(text: ByteString, from: &SqlType, target: Target<'_>) -> ByteString {
    let charset = charset_of(target);
    match from.kind.is_binary() && !charset.holds_own_bytes() {
        true => charset.decode(&text).map(|decoded| ByteString::from(&*decoded)).unwrap_or(text),
        false => text,
    }
}

fn charset_of(target: Target<'_>) -> Charset {
    target.ty.charset().unwrap_or(Charset::Utf8mb4)
}

/// The text in the column's character set.
fn in_charset(mut text: ByteString, from: &SqlType, target: Target<'_>) -> Result<ByteString> {
    if text.is_ascii() {
        return Ok(text);
    }
    let charset = charset_of(target);
    let valid = text.as_str().map_or_else(
        || String::from_utf8_lossy(&text).find('\u{fffd}'),
        |text| text.find(|character| !charset.has(character)),
    );
    let Some(at) = valid else { return Ok(text) };
    let bytes = text.iter().skip(at).take(SHOWN_BYTES);
    let shown: String = bytes.map(shown_byte).collect();
    let more = if text.len() > at + SHOWN_BYTES { "..." } else { "" };
    target.bad(CODE_INCORRECT_STRING, &format!("Incorrect string value: '{shown}{more}'"))?;
    if from.kind.is_binary() {
        text.truncate(at);
        return Ok(text);
    }
    let has = |character| match character {
        char::REPLACEMENT_CHARACTER => '?',
        character if charset.has(character) => character,
        _ => '?',
    };
    Ok(collation::characters(&text).map(has).collect::<String>().into())
}

fn shown_byte(byte: &u8) -> String {
    match byte {
        b' '..=b'~' if *byte != b'\\' => char::from(*byte).into(),
        byte => format!("\\x{byte:02X}"),
    }
}

pub(super) fn binary(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    let most = match &target.ty.kind {
        TypeKind::Binary { max_bytes } | TypeKind::Varbinary { max_bytes } => Some(*max_bytes),
        _ => None,
    };
    let number = stored_number(datum, from, most, target)?;
    let mut bytes = number.unwrap_or_else(|| to_binary(datum, from, target.ctx));
    let (TypeKind::Binary { max_bytes }
    | TypeKind::Varbinary { max_bytes }
    | TypeKind::Blob { max_bytes }) = &target.ty.kind
    else {
        return Ok(Datum::Text(bytes));
    };
    let max_bytes = *max_bytes as usize;
    if bytes.len() > max_bytes {
        too_long(from, target)?;
        bytes.truncate(max_bytes);
    }
    if matches!(target.ty.kind, TypeKind::Binary { .. }) {
        (bytes.len()..max_bytes).for_each(|_| bytes.push(0));
    }
    Ok(Datum::Text(bytes))
}

pub(super) fn geometry(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    let bytes = to_binary(datum, from, target.ctx);
    if !is_geometry(&bytes) {
        return Err(SqlError::new(
            CODE_NO_GEOMETRY,
            "Cannot get geometry object from data you send to the GEOMETRY field",
        ));
    }
    Ok(Datum::Text(bytes))
}
