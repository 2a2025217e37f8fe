//! How long the texts returned by functions are.

use firn_sql_collation::Charset;
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot, fold};
use firn_sql_types::decimal::Rounding;
use firn_sql_types::metadata::NOT_FIXED_DECIMALS;
use firn_sql_types::{Coercibility, Datum, Decimal, Display, SqlType, TypeKind};

use super::super::Typing;
use super::call::longest_made;
use crate::binder::coerce::is_written_cast;
use crate::binder::display;

/// The length of the text `NULL`, and the least length of a `SOUNDEX`.
const LEAST_CHARS: u32 = 4;
/// Bits that `EXPORT_SET` shows.
const EXPORTED_BITS: u32 = 64;
/// The most digits after the point for `FORMAT`.
const FORMATTED_DECIMALS: u32 = 30;
/// Characters of a line of `TO_BASE64`.
const BASE64_LINE_CHARS: u32 = 76;
/// Room for the name of a day or a month in any language.
const NAME_CHARS: u32 = 64;
const SHORT_NAME_CHARS: u32 = 32;

/// An operand's type and display.
type Operand<'e> = (&'e SqlType, Display);

/// The most characters of a function's text, where they do not follow from its type.
pub(super) fn length(
    typing: &Typing<'_>,
    name: &str,
    arguments: &[Expression],
    operands: &[Operand<'_>],
    ty: &SqlType,
) -> Option<u32> {
    let chars = |at: usize| operands.get(at).map(|operand| operand.1.length);
    let bytes = |at: usize| match arguments.get(at) {
        Some(argument) if is_choice_of_numbers(typing, argument) => chars(at),
        _ => operands.get(at).map(octets),
    };
    let number = |at: usize| arguments.get(at).and_then(|one| constant_integer(typing, one));
    Some(match name {
        "TRIM" | "TRIM LEADING" | "TRIM TRAILING" | "LTRIM" | "RTRIM" | "UPPER" | "LOWER"
        | "REVERSE" | "SUBSTRING_INDEX" => chars(0)?,
        // As bytes, as long as it is in characters.
        "REGEXP_SUBSTR" if ty.kind.is_binary() => chars_of_long(operands.first()?),
        "REGEXP_SUBSTR" => length_in(operands.first()?, ty),
        "REPLACE" => {
            let to = constant_chars(typing, arguments.get(2)?).filter(|_| !ty.kind.is_binary());
            let to = to.unwrap_or(length_in(operands.get(2)?, ty));
            replaced(length_in(operands.first()?, ty), to)
        }
        "ELT" if ty.kind.is_binary() => operands.get(1..)?.iter().map(chars_of_long).max()?,
        "ELT" => operands.get(1..)?.iter().map(|operand| operand.1.length).max()?,
        "INSERT" => {
            let inserted = constant_chars(typing, arguments.get(3)?);
            let inserted = inserted.unwrap_or(length_in(operands.get(3)?, ty));
            chars(0)?.saturating_add(inserted)
        }
        "UNCOMPRESS" => u32::MAX,
        "SUBSTRING" if is_null(arguments.get(1)?) => chars(0)?,
        "LEFT" | "RIGHT" => cut(chars(0)?, number(1)),
        "SUBSTRING" => {
            let rest = number(1).map_or(chars(0), |start| Some(behind(chars(0)?, start)))?;
            if arguments.len() > 2 { cut(rest, number(2)) } else { rest }
        }
        "QUOTE" => chars(0)?.saturating_mul(2).saturating_add(2).max(LEAST_CHARS),
        // A text that a cast made bytes has the bytes of its characters.
        "SOUNDEX" if ty.kind.is_binary() => {
            display::display(typing, arguments.first()?).length.max(LEAST_CHARS)
        }
        "SOUNDEX" => chars(0)?.max(LEAST_CHARS),
        "JSON_UNQUOTE" if matches!(operands.first()?.0.kind, TypeKind::Varchar { .. }) => chars(0)?,
        "JSON_QUOTE" => chars(0)?.saturating_mul(6).saturating_add(2),
        "WEIGHT_STRING" => weights(arguments.first()?, operands.first()?),
        "HEX" => match operands.first()?.0.kind.is_numeric() {
            true => 16,
            false => bytes(0)?.saturating_mul(2),
        },
        "UNHEX" => bytes(0)?.div_ceil(2),
        "TO_BASE64" => base64(bytes(0)?),
        "FROM_BASE64" => (u64::from(bytes(0)?) * 3 / 4).min(u32::MAX.into()) as u32,
        "BIN" | "OCT" | "CONV" => 65,
        "INET_NTOA" => 31,
        "FORMAT" => {
            let digits = digits_of_formatted(typing, arguments.first()?);
            digits.saturating_add(digits / 3 + 2 + FORMATTED_DECIMALS)
        }
        "SHA2" => match number(1) {
            Some(224) => 56,
            Some(0 | 256) => 64,
            Some(384) => 96,
            Some(512) => 128,
            Some(_) => 64,
            None if is_null(arguments.get(1)?) => 64,
            None => return None,
        },
        "DATE_FORMAT" | "TIME_FORMAT" => formatted(arguments.get(1)?)?,
        "FROM_UNIXTIME" if ty.kind.is_string() => formatted(arguments.get(1)?)?,
        "COMPRESS" => compressed(octets(operands.first()?)),
        "EXPORT_SET" => {
            let [on, off] = [operands.get(1)?, operands.get(2)?].map(|one| length_in(one, ty));
            let separator = operands.get(3).map_or(1, |one| length_in(one, ty));
            let shown = on.max(off).saturating_mul(EXPORTED_BITS);
            shown.saturating_add(separator.saturating_mul(EXPORTED_BITS - 1))
        }
        "MAKE_SET" => {
            // MySQL counts the bytes of the result with 32 bits, which may not be enough.
            let parts = operands.get(1..)?.iter().zip(arguments.get(1..)?);
            let parts = parts.map(|(operand, argument)| match argument.kind {
                // A literal becomes bytes at once.
                ExpressionKind::Literal(_) if operand.0.kind != TypeKind::Json => {
                    u64::from(length_in(operand, ty))
                }
                _ => u64::from(chars_of_long(operand)),
            });
            let chars = parts.sum::<u64>() + operands.len() as u64 - 2;
            let bytes = ty.charset().map_or(1, |charset| charset.max_character_bytes());
            let counted = (chars * u64::from(bytes)) as u32;
            match counted > u32::MAX - bytes {
                true => u32::MAX,
                false => counted / bytes,
            }
        }
        _ => return None,
    })
}

/// The characters of a number or a time that becomes text, if it is the same in every row.
fn constant_chars(typing: &Typing<'_>, argument: &Expression) -> Option<u32> {
    let of = display::written(typing, argument).0;
    let is_text = of.kind.is_string() || of.kind.is_enum_or_set() || of.kind == TypeKind::Json;
    let value = fold::constant_value(argument, typing.context.evaluation)?;
    let chars = match &value {
        Datum::Null => 0,
        Datum::Text(text) => text.to_str_lossy().chars().count() as u32,
        _ => return None,
    };
    (!is_text).then_some(chars)
}

/// Characters of an operand; those of a document or a `LONGTEXT` are as many as have room if each
/// takes all the bytes that it may.
fn chars_of_long((of, shown): &Operand<'_>) -> u32 {
    let is_text = matches!(of.kind, TypeKind::Json | TypeKind::Text { .. });
    let bytes = of.charset().map_or(4, |charset| charset.max_character_bytes());
    match is_text && shown.length >= u32::MAX / bytes {
        true => u32::MAX / bytes,
        false => shown.length,
    }
}

/// The digits that `FORMAT` counts of its number: of one that was worked out as many as its type
/// has, of a text as many as it has characters.
fn digits_of_formatted(typing: &Typing<'_>, number: &Expression) -> u32 {
    const DOUBLE_DIGITS: u32 = 22;
    let (of, written) = display::written(typing, number);
    let is_double = matches!(of.kind, TypeKind::Float | TypeKind::Double);
    let is_written = match number.kind {
        ExpressionKind::Literal(_) => number.ty.coercibility == Coercibility::Implicit,
        _ => is_written_cast(number),
    };
    let is_exact = matches!(number.ty.kind, TypeKind::Decimal { .. }) && is_written;
    if !is_written
        && written.decimals == NOT_FIXED_DECIMALS
        && let Some(slot) = column_of(number)
        && let Some(kind @ TypeKind::Float) = display::column_kind(&typing.frame, slot)
    {
        return Display::of_column(&SqlType::new(kind.clone())).length;
    }
    if !is_exact
        && is_double
        && (written.decimals == NOT_FIXED_DECIMALS || !is_column_of_floats(typing, number))
    {
        return DOUBLE_DIGITS;
    }
    match &number.kind {
        ExpressionKind::Cast(_) if is_written_cast(number) => {
            display::display(typing, number).length
        }
        // A date or a time has the length of its text, unless a cast to a number is written.
        ExpressionKind::Literal(_)
            if of.kind.is_numeric() || number.ty.coercibility == Coercibility::Implicit =>
        {
            display::display(typing, number).length
        }
        _ => written.length,
    }
}

/// Whether a number is read from a column of `FLOAT`.
fn is_column_of_floats(typing: &Typing<'_>, number: &Expression) -> bool {
    let kind = column_of(number).and_then(|slot| display::column_kind(&typing.frame, slot));
    matches!(kind, Some(TypeKind::Float))
}

/// The slot that a number is read from.
fn column_of(number: &Expression) -> Option<Slot> {
    match &number.kind {
        ExpressionKind::Slot(slot) => Some(*slot),
        ExpressionKind::Cast(inner) => column_of(inner),
        _ => None,
    }
}

/// The characters of a text that is repeated or padded; `None` if the number is not constant. A
/// negative number counts as a large one.
pub(super) fn repeated(
    typing: &Typing<'_>,
    name: &str,
    chars: u32,
    arguments: &[Expression],
    ty: &SqlType,
) -> Option<u32> {
    let place = usize::from(name != "SPACE");
    let number = constant_integer(typing, arguments.get(place)?)?.cast_unsigned();
    let times = if name == "REPEAT" { u64::from(chars) } else { 1 };
    let longest = longest_made(ty);
    Some(number.saturating_mul(times).min(longest.into()) as u32)
}

/// The most bytes that compressed bytes need, with their length in front.
fn compressed(bytes: u32) -> u32 {
    let more = (bytes >> 12) + (bytes >> 14) + (bytes >> 25) + 13;
    bytes.saturating_add(more).saturating_add(5)
}

fn is_null(argument: &Expression) -> bool {
    matches!(argument.kind, ExpressionKind::Literal(Datum::Null))
}

/// MySQL counts one character of the text for each replacement, whatever is replaced.
fn replaced(chars: u32, to: u32) -> u32 {
    chars.saturating_mul(to.saturating_sub(1).max(1))
}

/// The length of an operand in a result of a type: if that is bytes, each character counts as many
/// as it may have.
pub(super) fn length_in((of, shown): &Operand<'_>, ty: &SqlType) -> u32 {
    let is_text = of.kind.is_text() || of.kind.is_enum_or_set();
    let bytes = match ty.kind.is_binary() && is_text {
        true => of.charset().map_or(1, |charset| charset.max_character_bytes()),
        false => 1,
    };
    shown.length.saturating_mul(bytes)
}

/// Bytes of `WEIGHT_STRING`, by the collation: what MySQL reserves for a character, which need not
/// be what its weights take.
fn weights(argument: &Expression, operand: &Operand<'_>) -> u32 {
    const LEAST: u32 = 8;
    let (of, shown) = operand;
    let is_value = matches!(argument.kind, ExpressionKind::Slot(_)) && !of.kind.is_string();
    if argument.ty.kind.is_binary() {
        return octets(operand).max(LEAST);
    }
    if of.kind.is_temporal() && is_value {
        return LEAST;
    }
    let collation = match of.kind.is_text() || of.kind.is_enum_or_set() {
        true => of.collation(),
        false if of.kind == TypeKind::Json => Some(Charset::Utf8mb4.binary_collation()),
        false => None,
    };
    let Some(collation) = collation.map(firn_sql_collation::get) else {
        return shown.length.max(LEAST);
    };
    let times = match collation.charset.max_character_bytes() {
        1 => 1,
        _ if collation.is_binary() => 3,
        _ if collation.name.ends_with("general_ci") => 2,
        _ => 16,
    };
    let chars = chars_of_long(operand);
    let octets = if chars < shown.length { chars } else { octets(operand) };
    octets.saturating_mul(times).max(LEAST)
}

/// Whether an argument is NULL or a negative number in every row.
pub(super) fn is_null_or_negative(typing: &Typing<'_>, argument: &Expression) -> bool {
    is_constant_null(typing, argument)
        || constant_integer(typing, argument).is_some_and(|number| number < 0)
}

/// Bytes of a text in its own character set; for numbers and times, the characters.
fn octets((ty, display): &Operand<'_>) -> u32 {
    let bytes = match ty.kind.is_text() || ty.kind.is_enum_or_set() {
        true => ty.charset().map_or(1, |charset| charset.max_character_bytes()),
        false => 1,
    };
    match ty.kind {
        TypeKind::Text { .. } if display.stored => display.length,
        _ => display.length.saturating_mul(bytes),
    }
}

/// Whether a text is that of a chosen number or time: each of its characters is a byte.
fn is_choice_of_numbers(typing: &Typing<'_>, argument: &Expression) -> bool {
    let is_number = |value: &Expression| {
        let kind = &display::shown_operand(typing, value).0.kind;
        kind.is_numeric() || kind.is_temporal() || is_null(value)
    };
    match &argument.kind {
        ExpressionKind::Case { branches, otherwise } => {
            branches.iter().map(|(_, value)| value).chain(otherwise.as_deref()).all(is_number)
        }
        ExpressionKind::Coalesce(list) => list.iter().all(is_number),
        _ => false,
    }
}

/// Whether an argument that was worked out is NULL in every row.
pub(super) fn is_constant_null(typing: &Typing<'_>, argument: &Expression) -> bool {
    let value = fold::constant_value(argument, typing.context.evaluation);
    value.is_some_and(|value| value.is_null())
}

/// The number that an argument is in every row.
pub(super) fn constant_integer(typing: &Typing<'_>, argument: &Expression) -> Option<i64> {
    match fold::constant_value(argument, typing.context.evaluation)? {
        Datum::Int(number) => Some(number),
        Datum::UInt(number) => Some(i64::try_from(number).unwrap_or(i64::MAX)),
        Datum::Text(text) => {
            Decimal::parse_prefix(&text).number.round(0, Rounding::Truncate)?.to_i64()
        }
        _ => None,
    }
}

/// At most this many characters, if the number is known.
fn cut(chars: u32, most: Option<i64>) -> u32 {
    most.map_or(chars, |most| i64::from(chars).min(most.max(0)) as u32)
}

/// The part after a position, counted from 1, or from the end if it is negative. MySQL does not
/// look at a position that is no `INT`.
fn behind(chars: u32, start: i64) -> u32 {
    match start {
        _ if i32::try_from(start).is_err() => chars,
        0 => 0,
        1.. => i64::from(chars).saturating_sub(start - 1).max(0) as u32,
        _ if start.saturating_neg() > i64::from(chars) => 0,
        _ => start.saturating_neg() as u32,
    }
}

fn base64(bytes: u32) -> u32 {
    let chars = bytes.div_ceil(3).saturating_mul(4);
    chars.saturating_add(chars.saturating_sub(1) / BASE64_LINE_CHARS)
}

/// The length of a date in a constant format.
fn formatted(format: &Expression) -> Option<u32> {
    let ExpressionKind::Literal(Datum::Text(format)) = &format.kind else { return None };
    let format = String::from_utf8_lossy(format);
    let mut letters = format.chars();
    let mut length = 0;
    while let Some(letter) = letters.next() {
        length += match letter {
            '%' => letters.next().map_or(1, specified),
            _ => 1,
        };
    }
    Some(length)
}

fn specified(letter: char) -> u32 {
    match letter {
        'M' | 'W' => NAME_CHARS,
        'a' | 'b' => SHORT_NAME_CHARS,
        'D' | 'Y' | 'x' | 'X' => 4,
        'j' => 3,
        'u' | 'U' | 'v' | 'V' | 'y' | 'm' | 'd' | 'h' | 'i' | 'I' | 'l' | 'p' | 'S' | 's' | 'c'
        | 'e' => 2,
        'k' | 'H' => 7,
        'r' => 11,
        'T' => 8,
        'f' => 6,
        _ => 1,
    }
}
