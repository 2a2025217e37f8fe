//! Decimals from and to integers, floats, text and the stored form.

use std::fmt;

use firn_format::value::{DecimalType, ValueError};

use super::wide::{self, Wide};
use super::{
    Decimal, MAX_DIGITS, MAX_LITERAL_SCALE, MAX_SCALE, Rounding, kept_scale, power_of_ten,
};

/// Digits of a `u64` that always fit.
const DIGITS_PER_WORD: u32 = 19;
const TEN_TO_WORD: u64 = 10_u64.pow(DIGITS_PER_WORD);
/// Digits that always fit an `i128`.
const I128_DIGITS: u8 = 38;

impl From<i64> for Decimal {
    fn from(number: i64) -> Decimal {
        Decimal::from_unscaled(number.into(), 0)
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Decimal {
        Decimal::from_unscaled(number.into(), 0)
    }
}

/// The result of [`Decimal::parse_prefix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedDecimal {
    /// The number; all nines when it was too large.
    pub number: Decimal,
    /// Bytes of the text that were read, including leading spaces; 0 if there is no number.
    pub length_bytes: usize,
    /// Whether it was too large.
    pub overflow: bool,
}

impl Decimal {
    /// Reads the number at the start of a text, as far as it goes: spaces, sign, digits, point,
    /// digits, exponent. Digits after the point that no number keeps are cut off.
    #[must_use]
    pub fn parse_prefix(text: &[u8]) -> ParsedDecimal {
        let none = ParsedDecimal { number: Decimal::ZERO, length_bytes: 0, overflow: false };
        let mut at = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let negative = text.get(at) == Some(&b'-');
        at += usize::from(matches!(text.get(at), Some(b'-' | b'+')));
        let integer = digits_at(text, at);
        at += integer.len();
        let mut fraction: &[u8] = &[];
        if text.get(at) == Some(&b'.') {
            fraction = digits_at(text, at + 1);
            if integer.len() + fraction.len() > 0 {
                at += 1 + fraction.len();
            }
        }
        if integer.len() + fraction.len() == 0 {
            return none;
        }
        let (exponent, exponent_length) = exponent_at(&text[at..]);
        let number = Decimal::from_parts(negative, integer, fraction, exponent);
        ParsedDecimal {
            number: number
                .unwrap_or_else(|| Decimal::max(super::MAX_PRECISION, 0).signed(negative)),
            length_bytes: at + exponent_length,
            overflow: number.is_none(),
        }
    }

    /// The number of a text that consists of it, apart from spaces around it; `None` if there is
    /// none or it is too large.
    #[must_use]
    pub fn parse(text: &str) -> Option<Decimal> {
        let parsed = Decimal::parse_prefix(text.as_bytes());
        let whole = parsed.length_bytes > 0 && text[parsed.length_bytes..].trim().is_empty();
        (whole && !parsed.overflow).then_some(parsed.number)
    }

    fn signed(self, negative: bool) -> Decimal {
        Decimal { negative: negative && !self.is_zero(), ..self }
    }

    fn from_parts(
        negative: bool,
        integer: &[u8],
        fraction: &[u8],
        exponent: i64,
    ) -> Option<Decimal> {
        let digits = || integer.iter().chain(fraction).map(|byte| byte - b'0');
        let leading_zeros = digits().take_while(|&digit| digit == 0).count() as i64;
        let count = (integer.len() + fraction.len()) as i64;
        // The point comes after this many of the digits.
        let point = (integer.len() as i64).saturating_add(exponent);
        if leading_zeros == count {
            let scale = (count - point).clamp(0, i64::from(MAX_LITERAL_SCALE)) as u8;
            return Some(Decimal { scale, ..Decimal::ZERO });
        }
        if point - leading_zeros > i64::from(MAX_DIGITS) {
            return None;
        }
        let integer_digits = (point - leading_zeros).max(0);
        let most_scale = kept_scale(integer_digits as u8, MAX_LITERAL_SCALE);
        let scale = (count - point).clamp(0, most_scale.into());
        let end = point + scale;
        let taken = digits().take(end.clamp(0, count) as usize);
        let mut magnitude: Wide = [0; 4];
        for digit in taken {
            magnitude = wide::multiply_small(&magnitude, 10, digit.into())?;
        }
        if end > count {
            let zeros = u8::try_from(end - count).ok()?;
            magnitude =
                wide::narrow(&wide::multiply(&magnitude, &power_of_ten(zeros.min(MAX_DIGITS))))?;
        }
        Decimal::new(negative, magnitude, scale as u8)
    }

    /// The nearest decimal to the double's shortest text, with at most [`MAX_SCALE`] digits after
    /// the point; `None` if it is too large.
    #[must_use]
    pub fn from_double(number: f64) -> Option<Decimal> {
        if !number.is_finite() {
            return None;
        }
        let text = format!("{number:e}");
        let parsed = Decimal::parse_prefix(text.as_bytes());
        let number = parsed.number;
        match number.scale > MAX_SCALE {
            true => number.round(MAX_SCALE.into(), Rounding::HalfUp),
            false => (!parsed.overflow).then_some(number),
        }
    }

    /// The nearest double.
    #[must_use]
    pub fn to_double(&self) -> f64 {
        // Both are exact up to 2^53 and 10^22, so the quotient is rounded once.
        if let Some(small) = wide::to_u128(self.magnitude).filter(|&small| small < 1 << 53)
            && self.scale <= 22
        {
            let quotient = small as f64 / 10_f64.powi(self.scale.into());
            return if self.negative { -quotient } else { quotient };
        }
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// The nearest integer, halves away from zero; `None` outside the range of `i128`.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        self.round(0, Rounding::HalfUp)?.signed_small()
    }

    /// The nearest integer, halves away from zero; `None` when out of range.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128()?.try_into().ok()
    }

    /// The nearest integer, halves away from zero; `None` when out of range.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        self.to_i128()?.try_into().ok()
    }

    /// Reads the stored form of a column.
    ///
    /// # Errors
    /// [`ValueError::Corrupt`]
    pub fn from_stored(decimal_type: DecimalType, encoded: &[u8]) -> Result<Decimal, ValueError> {
        if decimal_type.precision() <= I128_DIGITS {
            let unscaled = decimal_type.unpack_i128(encoded)?;
            return Ok(Decimal::from_unscaled(unscaled, decimal_type.scale()));
        }
        let mut digits = [0; super::MAX_PRECISION as usize];
        let digits = &mut digits[..usize::from(decimal_type.precision())];
        let negative = decimal_type.unpack_digits(encoded, digits)?;
        let mut magnitude: Wide = [0; 4];
        for digit in digits {
            let raised = wide::multiply_small(&magnitude, 10, u64::from(*digit));
            magnitude = raised.unwrap_or_else(|| unreachable!("65 digits are below 2^256"));
        }
        let scale = decimal_type.scale();
        Ok(Decimal { magnitude, scale, negative })
    }

    /// The stored form of a column. `None` if the number does not fit the type unchanged; round it
    /// first.
    #[must_use]
    pub fn to_stored(&self, decimal_type: DecimalType) -> Option<Box<[u8]>> {
        if !self.fits(decimal_type.precision(), decimal_type.scale()) {
            return None;
        }
        let raised = self.round(decimal_type.scale().into(), Rounding::Truncate)?;
        let mut encoded = vec![0; decimal_type.encoded_length()];
        if decimal_type.precision() <= I128_DIGITS {
            decimal_type.pack_i128(raised.signed_small()?, &mut encoded).ok()?;
            return Some(encoded.into());
        }
        let mut digits = [0; MAX_DIGITS as usize];
        raised.write_digits(&mut digits);
        let used = &digits[usize::from(MAX_DIGITS - decimal_type.precision())..];
        decimal_type.pack_digits(raised.negative, used, &mut encoded).ok()?;
        Some(encoded.into())
    }

    /// Writes the digits of the magnitude, each 0 to 9, at the end of `digits`, which must be
    /// zeros.
    fn write_digits(&self, digits: &mut [u8; MAX_DIGITS as usize]) {
        let mut rest = self.magnitude;
        for group in digits.rchunks_mut(DIGITS_PER_WORD as usize) {
            if wide::is_zero(&rest) {
                break;
            }
            let mut word = wide::divide_small(&mut rest, TEN_TO_WORD);
            for digit in group.iter_mut().rev() {
                *digit = (word % 10) as u8;
                word /= 10;
            }
        }
    }

    /// Appends bytes that compare as the numbers do, whatever their scales; no key is a prefix of
    /// another:
    ///
    /// ```text
    ///   0     80
    ///   > 0   A0 + digits before the point (negative: zeros after it) ‖ pairs of digits + 1 ‖ 00
    ///         81 ‖ 80 − zeros after the point ‖ …, if these are more than 30
    ///   < 0   the same with every bit inverted
    /// ```
    pub fn write_sort_key(&self, out: &mut Vec<u8>) {
        if self.is_zero() {
            return out.push(0x80);
        }
        let start = out.len();
        let mut digits = [0; MAX_DIGITS as usize];
        self.write_digits(&mut digits);
        let first = digits.iter().position(|&digit| digit != 0).unwrap_or(0);
        let exponent = i16::from(MAX_DIGITS) - first as i16 - i16::from(self.scale);
        if exponent < -30 {
            out.extend([0x81, (0x80 + exponent) as u8]);
        } else {
            out.push((0xa0 + exponent) as u8);
        }
        let last = digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
        for pair in digits[first..last].chunks(2) {
            out.push(pair[0] * 10 + pair.get(1).copied().unwrap_or(0) + 1);
        }
        out.push(0);
        if self.negative {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

fn digits_at(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or(&[]);
    &rest[..rest.iter().take_while(|byte| byte.is_ascii_digit()).count()]
}

/// The exponent at the start of `text` and its length; 0 if there is none.
fn exponent_at(text: &[u8]) -> (i64, usize) {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return (0, 0);
    }
    let negative = text.get(1) == Some(&b'-');
    let sign = usize::from(matches!(text.get(1), Some(b'-' | b'+')));
    let digits = digits_at(text, 1 + sign);
    if digits.is_empty() {
        return (0, 0);
    }
    let add = |value: i64, byte: &u8| (value * 10 + i64::from(byte - b'0')).min(1_000_000);
    let value = digits.iter().fold(0, add);
    (if negative { -value } else { value }, 1 + sign + digits.len())
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; MAX_DIGITS as usize];
        self.write_digits(&mut digits);
        let point = usize::from(MAX_DIGITS - self.scale);
        let first = digits[..point].iter().position(|&digit| digit != 0);
        let first = first.unwrap_or(point.saturating_sub(1));
        let mut text = [0; MAX_DIGITS as usize + 2];
        let mut length = 0;
        let mut push = |byte| {
            text[length] = byte;
            length += 1;
        };
        if point == 0 {
            push(b'0');
        }
        digits[first..point].iter().for_each(|digit| push(b'0' + digit));
        if self.scale > 0 {
            push(b'.');
            digits[point..].iter().for_each(|digit| push(b'0' + digit));
        }
        let text = std::str::from_utf8(&text[..length]).map_err(|_| fmt::Error)?;
        f.pad_integral(!self.negative, "", text)
    }
}
