//! How long the texts returned by functions are.

use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::decimal::Rounding;
use firn_sql_types::{Datum, Decimal, Display, SqlType, TypeKind};

use super::super::Typing;
use super::call::longest_made;
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
    let bytes = |at: usize| operands.get(at).map(octets);
    let number = |at: usize| arguments.get(at).and_then(constant_integer);
    Some(match name {
        "TRIM" | "TRIM LEADING" | "TRIM TRAILING" | "LTRIM" | "RTRIM" | "UPPER" | "LOWER"
        | "REVERSE" | "SUBSTRING_INDEX" => chars(0)?,
        "REPLACE" => replaced(length_in(operands.first()?, ty), length_in(operands.get(2)?, ty)),
        "ELT" => operands.get(1..)?.iter().map(|operand| operand.1.length).max()?,
        "INSERT" => chars(0)?.saturating_add(chars(3)?),
        "UNCOMPRESS" => u32::MAX,
        "SUBSTRING" if is_null(arguments.get(1)?) => chars(0)?,
        "LEFT" | "RIGHT" => cut(chars(0)?, number(1)),
        "SUBSTRING" => {
            let rest = number(1).map_or(chars(0), |start| Some(behind(chars(0)?, start)))?;
            if arguments.len() > 2 { cut(rest, number(2)) } else { rest }
        }
        "QUOTE" => chars(0)?.saturating_mul(2).saturating_add(2).max(LEAST_CHARS),
        "SOUNDEX" => chars(0)?.max(LEAST_CHARS),
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
            let digits = arguments.first().map(|one| display::written(typing, one).1.length)?;
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
        "EXPORT_SET" => {
            let [on, off] = [operands.get(1)?, operands.get(2)?].map(|one| length_in(one, ty));
            let separator = operands.get(3).map_or(1, |one| length_in(one, ty));
            let shown = on.max(off).saturating_mul(EXPORTED_BITS);
            shown.saturating_add(separator.saturating_mul(EXPORTED_BITS - 1))
        }
        "MAKE_SET" => {
            let parts = operands.get(1..)?.iter().map(|operand| operand.1.length);
            parts.fold(operands.len() as u32 - 2, u32::saturating_add)
        }
        _ => return None,
    })
}

/// The characters of a text that is repeated or padded; `None` if the number is not constant. A
/// negative number counts as a large one.
pub(super) fn repeated(
    name: &str,
    chars: u32,
    arguments: &[Expression],
    ty: &SqlType,
) -> Option<u32> {
    let place = usize::from(name != "SPACE");
    let number = constant_integer(arguments.get(place)?)?.cast_unsigned();
    let times = if name == "REPEAT" { u64::from(chars) } else { 1 };
    let longest = longest_made(ty);
    Some(number.saturating_mul(times).min(longest.into()) as u32)
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
    let bytes = match ty.kind.is_binary() && of.kind.is_text() {
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
    if of.kind.is_temporal() && is_value {
        return LEAST;
    }
    let collation = match of.kind.is_text() || of.kind.is_enum_or_set() {
        true => of.collation(),
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
    octets(operand).saturating_mul(times).max(LEAST)
}

/// Whether an argument is NULL or a negative number in every row.
pub(super) fn is_null_or_negative(argument: &Expression) -> bool {
    is_null(argument) || constant_integer(argument).is_some_and(|number| number < 0)
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

/// The number that an argument is in every row.
pub(super) fn constant_integer(argument: &Expression) -> Option<i64> {
    match &argument.kind {
        ExpressionKind::Literal(Datum::Int(number)) => Some(*number),
        ExpressionKind::Literal(Datum::UInt(number)) => {
            Some(i64::try_from(*number).unwrap_or(i64::MAX))
        }
        ExpressionKind::Literal(Datum::Text(text)) => {
            Decimal::parse_prefix(text).number.round(0, Rounding::Truncate)?.to_i64()
        }
        // Not folded, so that each execution warns about it.
        ExpressionKind::Cast(operand) => match &operand.kind {
            ExpressionKind::Literal(Datum::Text(_)) => constant_integer(operand),
            _ => None,
        },
        _ => None,
    }
}

/// At most this many characters, if the number is known.
fn cut(chars: u32, most: Option<i64>) -> u32 {
    most.map_or(chars, |most| i64::from(chars).min(most.max(0)) as u32)
}

/// The part after a position, counted from 1, or from the end if it is negative.
fn behind(chars: u32, start: i64) -> u32 {
    match start {
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
