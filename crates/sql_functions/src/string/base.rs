//! Numbers and bytes written in other bases: `HEX`, `UNHEX`, `BIN`, `OCT`, `CONV`, base 64.

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use firn_sql_collation as collation;
use firn_sql_types::error::Result;
use firn_sql_types::{ByteString, Datum, SqlType, TypeKind};

use crate::arguments::{bytes, fits_packet, int, room, text, word};
use crate::signature::{self, Want, fixed, text_chars, text_times};
use crate::{Call, Function, ResolveContext, Signature, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("HEX", 1..=1, resolve_hex, |a: &[Datum], call: &Call<'_>| hex(&a[0], call)),
    strict!("UNHEX", 1..=1, [Text] => bytes_of_first, unhex),
    strict!("BIN", 1..=1, resolve_conversion, |a: &[Datum], call: &Call<'_>| {
        Ok(converted(&a[0], 10, 2, call))
    }),
    strict!("OCT", 1..=1, resolve_conversion, |a: &[Datum], call: &Call<'_>| {
        Ok(converted(&a[0], 10, 8, call))
    }),
    strict!("CONV", 3..=3, resolve_conversion, |a: &[Datum], call: &Call<'_>| {
        Ok(converted(&a[0], int(&a[1]), int(&a[2]), call))
    }),
    strict!("TO_BASE64", 1..=1, [Bytes] => text_times::<2>, to_base64),
    strict!("FROM_BASE64", 1..=1, [Text] => bytes_of_first, from_base64),
];

const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn bytes_of_first(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::varbinary(types.first().map_or(0, text_chars))
}

fn resolve_hex(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let want = if types[0].kind.is_numeric() { Want::Int } else { Want::Text };
    fixed(types, context, &[want], text_times::<8>)
}

fn hex(datum: &Datum, call: &Call<'_>) -> Result<Datum> {
    let octets = match datum {
        Datum::Text(octets) => octets,
        _ => return Ok(Datum::text(format!("{:X}", word(datum)))),
    };
    let collation = call.arguments[0].collation();
    let encoded = match collation {
        Some(id) => collation::get(id).charset.encode(octets),
        None => octets[..].into(),
    };
    let _promise = room(encoded.len() * 2, call)?;
    Ok(Datum::Text(to_hex(&encoded, DIGITS)))
}

/// Two digits for each byte.
pub(crate) fn to_hex(bytes: &[u8], digits: &[u8; 36]) -> ByteString {
    let digit = |nibble: u8| digits[usize::from(nibble & 0xf)];
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Two lower-case digits for each byte.
pub(crate) fn to_small_hex(bytes: &[u8]) -> ByteString {
    to_hex(bytes, b"0123456789abcdefghijklmnopqrstuvwxyz")
}

/// The bytes of hexadecimal digits; an odd first digit is a byte. `None` if there is another
/// character.
pub(crate) fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let (head, pairs) = digits.split_at(digits.len() % 2);
    let mut out = Vec::with_capacity(digits.len().div_ceil(2));
    for digit in head {
        out.push(value(*digit)?);
    }
    for pair in pairs.chunks_exact(2) {
        out.push(value(pair[0])? << 4 | value(pair[1])?);
    }
    Some(out)
}

fn unhex(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let digits = bytes(&arguments[0]);
    if let Some(unhexed) = from_hex(digits) {
        return Ok(Datum::text(unhexed));
    }
    call.context.warn(1411, || {
        format!("Incorrect string value: '{}' for function unhex", text(&arguments[0]))
    });
    Ok(Datum::Null)
}

/// Numbers are read by their digits, except bits.
fn resolve_conversion(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let is_literal = types[0].kind.is_binary() && context.constant(0).is_some();
    let is_bits = is_literal || matches!(types[0].kind, TypeKind::Bit { .. });
    let number = if is_bits { Want::Int } else { Want::Text };
    fixed(types, context, &[number, Want::Int, Want::Int], signature::text::<64>)
}

fn converted(number: &Datum, from: i64, to: i64, call: &Call<'_>) -> Datum {
    let is_base = |base: i64| (2..=36).contains(&base.unsigned_abs());
    if !is_base(from) || !is_base(to) {
        return Datum::Null;
    }
    let bits = match number {
        Datum::Text(digits) if digits.is_empty() => return Datum::Null,
        Datum::Text(digits) => {
            let base = from.unsigned_abs();
            let parsed = parse_in_base(digits, base, from < 0);
            parsed.unwrap_or_else(|end| {
                call.context.warn(1292, || {
                    format!("Truncated incorrect DECIMAL value: '{}'", text(number))
                });
                end
            })
        }
        number => word(number),
    };
    Datum::text(print_in_base(bits, to.unsigned_abs(), to < 0))
}

/// The number at the start of a text, as 64 bits. Out of range is an error with the end of the
/// range; a text without digits is an error with 0.
fn parse_in_base(text: &[u8], base: u64, signed: bool) -> std::result::Result<u64, u64> {
    let text = text.trim_ascii_start();
    let negative = text.first() == Some(&b'-');
    let digits = &text[usize::from(matches!(text.first(), Some(b'-' | b'+')))..];
    let mut digits =
        digits.iter().map_while(|&byte| char::from(byte).to_digit(base as u32)).peekable();
    if digits.peek().is_none() {
        return Err(0);
    }
    let number =
        digits.try_fold(0_u64, |number, digit| number.checked_mul(base)?.checked_add(digit.into()));
    match (signed, number) {
        (true, number) => {
            let number = number.and_then(|number| i64::try_from(number).ok());
            let end = if negative { i64::MIN } else { i64::MAX };
            let number = number.ok_or(end as u64)?;
            Ok((if negative { -number } else { number }) as u64)
        }
        // Below 0, there is no end of the range.
        (false, None) => Err(if negative { 0 } else { u64::MAX }),
        (false, Some(number)) if negative => Ok(number.wrapping_neg()),
        (false, Some(number)) => Ok(number),
    }
}

fn print_in_base(bits: u64, base: u64, signed: bool) -> Vec<u8> {
    let negative = signed && (bits as i64) < 0;
    let mut rest = if negative { (bits as i64).unsigned_abs() } else { bits };
    let mut out = Vec::new();
    loop {
        out.push(DIGITS[(rest % base) as usize]);
        rest /= base;
        if rest == 0 {
            break;
        }
    }
    if negative {
        out.push(b'-');
    }
    out.reverse();
    out
}

/// Lines of 76 characters.
fn to_base64(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    const LINE_CHARS: usize = 76;
    const LINE_BYTES: usize = LINE_CHARS / 4 * 3;
    let bytes = bytes(&arguments[0]);
    let chars = bytes.len() as u128 * 4 / 3 + 4;
    let size_bytes = chars + chars / LINE_CHARS as u128;
    let Some(_promise) = fits_packet(size_bytes, "to_base64", call)? else {
        return Ok(Datum::Null);
    };
    let mut out = String::with_capacity(size_bytes as usize);
    for line in bytes.chunks(LINE_BYTES) {
        if !out.is_empty() {
            out.push('\n');
        }
        STANDARD.encode_string(line, &mut out);
    }
    Ok(Datum::text(out))
}

/// Spaces and ends of lines are skipped.
fn from_base64(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &ALPHABET,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let text = bytes(&arguments[0]);
    let _promise = room(text.len() / 4 * 7, call)?;
    let mut digits = Vec::with_capacity(text.len());
    digits.extend(text.iter().filter(|byte| !space(byte)));
    Ok(ENGINE.decode(digits).map_or(Datum::Null, Datum::text))
}
