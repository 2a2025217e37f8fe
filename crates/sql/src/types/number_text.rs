//! Floating-point numbers to text and back, as MySQL prints and reads them.
//!
//! ```text
//!   DOUBLE  the fewest digits that read back as the same number:  0.1   1e15   1.2345678901234568e17
//!   FLOAT   at most six digits:                                   3.14159   16777200
//! ```
//!
//! A plain form is used from 10^-15 up to 10^15, and above as long as there is something after the point.

use std::fmt::Write as _;

use super::octets::Octets;

/// Digits that every double keeps.
const DOUBLE_DIGITS: i32 = 15;
/// Digits that are shown of a float.
const FLOAT_DIGITS: usize = 6;

/// The text of a `DOUBLE`.
#[must_use]
pub fn double_to_text(number: f64) -> Octets {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let mut scientific = Octets::new();
    // Writing to memory does not fail.
    let _ = write!(scientific, "{number:e}");
    plain_or_scientific(&scientific)
}

/// The text of a `FLOAT`.
#[must_use]
pub fn float_to_text(number: f64) -> Octets {
    if number == 0.0 {
        return double_to_text(number);
    }
    let mut scientific = Octets::new();
    let _ = write!(scientific, "{number:.digits$e}", digits = FLOAT_DIGITS - 1);
    plain_or_scientific(&scientific)
}

/// The text of a number with so many digits after the point.
#[must_use]
pub fn double_to_fixed_text(number: f64, decimals: u8) -> Octets {
    let mut text = Octets::new();
    let decimals = usize::from(decimals);
    let _ = write!(text, "{number:.decimals$}");
    text
}

/// Chooses the form of a number given as `-1.25e17`.
fn plain_or_scientific(scientific: &[u8]) -> Octets {
    let negative = scientific.first() == Some(&b'-');
    let scientific = &scientific[usize::from(negative)..];
    let e = scientific.iter().position(|&byte| byte == b'e').unwrap_or(scientific.len());
    let exponent = std::str::from_utf8(&scientific[(e + 1).min(scientific.len())..]).unwrap_or("0");
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let mut digits: Octets = scientific[..e].iter().copied().filter(|&byte| byte != b'.').collect();
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    digits.truncate(significant);
    let mut text = Octets::new();
    if negative {
        text.push(b'-');
    }
    let has_fraction = digits.len() as i32 > point;
    if point > -DOUBLE_DIGITS && (point <= DOUBLE_DIGITS || has_fraction) {
        write_plain(&digits, point, &mut text);
    } else {
        write_scientific(&digits, point - 1, &mut text);
    }
    text
}

fn write_plain(digits: &[u8], point: i32, text: &mut Octets) {
    if point <= 0 {
        text.extend_from_slice(b"0.");
        (point..0).for_each(|_| text.push(b'0'));
        return text.extend_from_slice(digits);
    }
    let (integer, fraction) = digits.split_at(digits.len().min(point as usize));
    text.extend_from_slice(integer);
    (integer.len()..point as usize).for_each(|_| text.push(b'0'));
    if !fraction.is_empty() {
        text.push(b'.');
        text.extend_from_slice(fraction);
    }
}

fn write_scientific(digits: &[u8], exponent: i32, text: &mut Octets) {
    text.push(digits[0]);
    if digits.len() > 1 {
        text.push(b'.');
        text.extend_from_slice(&digits[1..]);
    }
    let _ = write!(text, "e{exponent}");
}

/// The number at the head of a text, and how many bytes it takes with the spaces before it; 0 bytes when
/// there is none. A number beyond the range of doubles is the largest one, and `overflow` is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParsedDouble {
    /// The number; 0 when there is none.
    pub number: f64,
    /// Bytes that it takes.
    pub length_bytes: usize,
    /// Whether it was beyond the range of doubles.
    pub overflow: bool,
}

/// Reads the number at the head of a text, as far as it goes.
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

/// Bytes of `[+-] digits [. digits] [e [+-] digits]` at the head of a text.
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
