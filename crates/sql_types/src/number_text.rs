//! Floating-point numbers to text and back, as MySQL prints and reads them.

use firn_base::number_text::NumberText;

use super::byte_string::ByteString;

#[must_use]
pub fn double_to_text(number: f64) -> ByteString {
    ByteString::from(&*NumberText::of_double(number))
}

#[must_use]
pub fn float_to_text(number: f64) -> ByteString {
    ByteString::from(&*NumberText::of_float(number))
}

/// A `DOUBLE` that an expression has worked out, as a part of a text.
#[must_use]
pub fn double_in_text(number: f64) -> ByteString {
    ByteString::from(&*NumberText::of_double_in_text(number))
}

/// A `DOUBLE` column as a part of a text.
#[must_use]
pub fn double_column_in_text(number: f64) -> ByteString {
    ByteString::from(&*NumberText::of_double_column_in_text(number))
}

/// A `FLOAT` as a part of a text.
#[must_use]
pub fn float_in_text(number: f64) -> ByteString {
    ByteString::from(&*NumberText::of_float_in_text(number))
}

/// The number at the start of a text, and its length in bytes including the spaces before it; 0
/// bytes if there is none. A number beyond the range of doubles becomes the largest one, with
/// `overflow` set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParsedDouble {
    /// The number; 0 if there is none.
    pub number: f64,
    /// Bytes that it takes.
    pub length_bytes: usize,
    /// Whether it was beyond the range of doubles.
    pub overflow: bool,
}

/// Reads the number at the start of a text, as far as it goes.
#[must_use]
pub fn parse_double_prefix(text: &[u8]) -> ParsedDouble {
    let space = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let number = &text[space..];
    let length = number_length(number);
    if length == 0 {
        return ParsedDouble { number: 0.0, length_bytes: 0, overflow: false };
    }
    let parsed = std::str::from_utf8(&number[..length]).ok().and_then(|text| text.parse().ok());
    let parsed: f64 = parsed.unwrap_or(0.0);
    ParsedDouble {
        number: parsed.clamp(f64::MIN, f64::MAX),
        length_bytes: space + length,
        overflow: parsed.is_infinite(),
    }
}

/// Bytes of `[+-] digits [. digits] [e [+-] digits]` at the start of a text.
fn number_length(text: &[u8]) -> usize {
    let digits = |at: usize| {
        text.get(at..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_digit()).count())
    };
    let sign = |at: usize| usize::from(matches!(text.get(at), Some(b'+' | b'-')));
    let start = sign(0);
    let integer = digits(start);
    let mut length = start + integer;
    let mut fraction = 0;
    if text.get(length) == Some(&b'.') {
        fraction = digits(length + 1);
        length += 1 + fraction;
    }
    if integer + fraction == 0 {
        return 0;
    }
    if matches!(text.get(length), Some(b'e' | b'E')) {
        let exponent = length + 1 + sign(length + 1);
        if digits(exponent) > 0 {
            length = exponent + digits(exponent);
        }
    }
    length
}
