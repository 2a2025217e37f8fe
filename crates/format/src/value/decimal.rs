//! `DECIMAL(p, s)`: exact numbers of up to 65 digits in a fixed-width form whose bytes compare as
//! the numbers do.
//!
//! Digits are stored in groups of nine, four bytes each, big endian, counted from the decimal point
//! outwards. The remaining digits at either end take only the bytes that they need. The first bit
//! is the sign, set for zero and above; a negative number is its positive form with every bit
//! inverted.
//!
//! ```text
//!   DECIMAL(12, 4)      12345678.9012
//!   integer digits 8  ‖ fraction digits 4
//!   00 BC 61 4E (12345678, 4 bytes) ‖ 23 34 (9012, 2 bytes)
//!   sign bit set:  80 BC 61 4E 23 34          negated:  7F 43 9E B1 DC CB
//! ```

use std::fmt;

use super::{ColumnType, ValueError};

const DIGITS_PER_GROUP: usize = 9;
const BYTES_PER_GROUP: usize = 4;
/// Bytes of a group with this many digits.
const GROUP_BYTES: [usize; DIGITS_PER_GROUP + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
/// One more than the largest number with this many digits.
const POWERS_OF_TEN: [u32; DIGITS_PER_GROUP + 1] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// Digits that always fit an `i128`.
const I128_DIGITS: u8 = 38;
/// Digits that always fit a `u64`, which a single instruction multiplies.
const U64_DIGITS: u8 = 19;

/// Precision and scale of a decimal column: `1 <= precision <= 65`, `scale <= min(precision, 30)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecimalType {
    precision: u8,
    scale: u8,
}

impl DecimalType {
    /// The most digits that a decimal has.
    pub const MAX_PRECISION: u8 = 65;
    /// The most digits after the point.
    pub const MAX_SCALE: u8 = 30;
    /// The longest encoded form, in bytes.
    pub const MAX_ENCODED_LENGTH: usize = 32;

    /// `DECIMAL(precision, scale)`, or `None` when there is no such type.
    #[must_use]
    pub const fn new(precision: u8, scale: u8) -> Option<DecimalType> {
        let possible = precision >= 1
            && precision <= Self::MAX_PRECISION
            && scale <= precision
            && scale <= Self::MAX_SCALE;
        if possible { Some(DecimalType { precision, scale }) } else { None }
    }

    #[must_use]
    pub const fn precision(self) -> u8 {
        self.precision
    }

    /// Digits after the decimal point.
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// Bytes of the encoded form.
    #[must_use]
    pub const fn encoded_length(self) -> usize {
        digits_bytes((self.precision - self.scale) as usize) + digits_bytes(self.scale as usize)
    }

    /// The digit counts of the groups, from the first byte on.
    fn groups(self) -> impl Iterator<Item = usize> {
        let integer = usize::from(self.precision - self.scale);
        let fraction = usize::from(self.scale);
        let leading = Some(integer % DIGITS_PER_GROUP).filter(|&digits| digits > 0);
        let trailing = Some(fraction % DIGITS_PER_GROUP).filter(|&digits| digits > 0);
        let full = integer / DIGITS_PER_GROUP + fraction / DIGITS_PER_GROUP;
        leading.into_iter().chain(std::iter::repeat_n(DIGITS_PER_GROUP, full)).chain(trailing)
    }

    /// Writes `unscaled / 10^scale` in the encoded form; for precisions up to 38.
    ///
    /// # Errors
    /// [`ValueError::OutOfRange`] when it has more digits than the type, or the type more than 38.
    ///
    /// # Panics
    /// If `out` is not [`DecimalType::encoded_length`] long.
    pub fn pack_i128(self, unscaled: i128, out: &mut [u8]) -> Result<(), ValueError> {
        let magnitude = unscaled.unsigned_abs();
        if self.precision > I128_DIGITS || magnitude >= 10_u128.pow(u32::from(self.precision)) {
            return Err(ValueError::OutOfRange(ColumnType::Decimal(self)));
        }
        let mut rest = 10_u128.pow(u32::from(self.precision));
        let mut value = magnitude;
        self.write_groups(unscaled < 0, out, |digits| {
            rest /= u128::from(POWERS_OF_TEN[digits]);
            let group = value / rest;
            value %= rest;
            group as u32
        });
        Ok(())
    }

    /// Reads the form that [`DecimalType::pack_i128`] writes.
    ///
    /// # Errors
    /// [`ValueError::Corrupt`] for bytes that are not an encoded number, [`ValueError::OutOfRange`]
    /// if the type has more than 38 digits.
    pub fn unpack_i128(self, encoded: &[u8]) -> Result<i128, ValueError> {
        if self.precision > I128_DIGITS {
            return Err(ValueError::OutOfRange(ColumnType::Decimal(self)));
        }
        if self.precision <= U64_DIGITS {
            let mut magnitude = 0_u64;
            let negative = self.read_groups(encoded, |digits, group| {
                magnitude = magnitude * u64::from(POWERS_OF_TEN[digits]) + u64::from(group);
            })?;
            let magnitude = i128::from(magnitude);
            return Ok(if negative { -magnitude } else { magnitude });
        }
        let mut magnitude = 0_i128;
        let negative = self.read_groups(encoded, |digits, group| {
            magnitude = magnitude * i128::from(POWERS_OF_TEN[digits]) + i128::from(group);
        })?;
        Ok(if negative { -magnitude } else { magnitude })
    }

    /// Writes the sign and the groups. `next_group` is called with a group's digit count and
    /// returns its number.
    fn write_groups(
        self,
        negative: bool,
        out: &mut [u8],
        mut next_group: impl FnMut(usize) -> u32,
    ) {
        assert_eq!(out.len(), self.encoded_length(), "a decimal's form has its type's length");
        let mut at = 0;
        for digits in self.groups() {
            let length = GROUP_BYTES[digits];
            let group = next_group(digits).to_be_bytes();
            out[at..at + length].copy_from_slice(&group[BYTES_PER_GROUP - length..]);
            at += length;
        }
        out[0] ^= 0x80;
        if negative {
            out.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// Passes the digit count and number of every group to `take`. Returns whether the number is
    /// negative.
    fn read_groups(
        self,
        encoded: &[u8],
        mut take: impl FnMut(usize, u32),
    ) -> Result<bool, ValueError> {
        let corrupt = ValueError::Corrupt(ColumnType::Decimal(self));
        if encoded.len() != self.encoded_length() {
            return Err(corrupt);
        }
        let negative = encoded[0] & 0x80 == 0;
        let inversion = if negative { 0xff } else { 0 };
        let mut sign = 0x80;
        let mut rest = encoded;
        for digits in self.groups() {
            let (bytes, after) = rest.split_at(GROUP_BYTES[digits]);
            rest = after;
            let mut group = 0_u32;
            for byte in bytes {
                group = group << 8 | u32::from(byte ^ inversion ^ sign);
                sign = 0;
            }
            if group >= POWERS_OF_TEN[digits] {
                return Err(corrupt);
            }
            take(digits, group);
        }
        Ok(negative)
    }
}

/// A decimal type whose encoded form fits a word of eight bytes, prepared for reading many numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortDecimal {
    sign: u64,
    bits: u64,
    groups: [ShortGroup; SHORT_GROUPS],
}

/// Most groups in eight bytes: leftover digits, nine digits, leftover digits.
const SHORT_GROUPS: usize = 3;

/// The position of a group in the word. A group without digits is zero.
#[derive(Clone, Copy, Debug)]
struct ShortGroup {
    shift: u32,
    bits: u64,
    limit: u64,
}

impl ShortDecimal {
    /// `None` if the encoded form is longer.
    pub(crate) fn new(decimal_type: DecimalType) -> Option<ShortDecimal> {
        let bits = decimal_type.encoded_length() as u32 * u8::BITS;
        if bits > u64::BITS {
            return None;
        }
        let mut groups = [ShortGroup { shift: 0, bits: 0, limit: 1 }; SHORT_GROUPS];
        let mut shift = bits;
        for (group, digits) in groups.iter_mut().zip(decimal_type.groups()) {
            let width = GROUP_BYTES[digits] as u32 * u8::BITS;
            shift -= width;
            *group =
                ShortGroup { shift, bits: (1 << width) - 1, limit: POWERS_OF_TEN[digits].into() };
        }
        let all = u64::MAX >> (u64::BITS - bits);
        Some(ShortDecimal { sign: 1 << (bits - 1), bits: all, groups })
    }

    /// The unscaled number whose encoded form is `word`, big endian; `None` if `word` is not an
    /// encoded number.
    #[inline]
    pub(crate) fn read(&self, word: u64) -> Option<i64> {
        let is_negative = word & self.sign == 0;
        let digits = if is_negative { !word & self.bits } else { word } ^ self.sign;
        let mut magnitude = 0;
        for group in &self.groups {
            let number = digits >> group.shift & group.bits;
            if number >= group.limit {
                return None;
            }
            magnitude = magnitude * group.limit + number;
        }
        let magnitude = magnitude as i64;
        Some(if is_negative { -magnitude } else { magnitude })
    }
}

const fn digits_bytes(digits: usize) -> usize {
    digits / DIGITS_PER_GROUP * BYTES_PER_GROUP + GROUP_BYTES[digits % DIGITS_PER_GROUP]
}

/// The sign and digits of a decimal.
///
/// ```
/// use firn_format::value::{Decimal, DecimalType};
/// let price = DecimalType::new(6, 2).unwrap();
/// let decimal = Decimal::parse(price, "-12.5").unwrap();
/// assert_eq!(decimal.to_string(), "-12.50");
/// let mut encoded = [0; 3];
/// decimal.write(&mut encoded);
/// assert_eq!(Decimal::read(price, &encoded), Ok(decimal));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    decimal_type: DecimalType,
    negative: bool,
    /// The first `precision` are the number, most significant first, each 0 to 9; the others are 0.
    digits: [u8; DecimalType::MAX_PRECISION as usize],
}

impl Decimal {
    /// A number from sign and `precision` digits, most significant first. A negative zero becomes
    /// zero. `None` if the number of digits differs or a digit is above 9.
    #[must_use]
    pub fn from_digits(decimal_type: DecimalType, negative: bool, given: &[u8]) -> Option<Decimal> {
        let mut digits = [0; DecimalType::MAX_PRECISION as usize];
        if given.len() != usize::from(decimal_type.precision) || given.iter().any(|&d| d > 9) {
            return None;
        }
        digits[..given.len()].copy_from_slice(given);
        let negative = negative && given.iter().any(|&digit| digit != 0);
        Some(Decimal { decimal_type, negative, digits })
    }

    /// A number from text such as `-12.50`: an optional sign, digits, and a point with digits.
    /// `None` if the text has another form or does not fit the type exactly.
    #[must_use]
    pub fn parse(decimal_type: DecimalType, text: &str) -> Option<Decimal> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (integer, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        if integer.is_empty() && fraction.is_empty() {
            return None;
        }
        let integer = integer.trim_start_matches('0').as_bytes();
        let fraction = fraction.trim_end_matches('0').as_bytes();
        let point = usize::from(decimal_type.precision - decimal_type.scale);
        let mut digits = [0; DecimalType::MAX_PRECISION as usize];
        let start = point.checked_sub(integer.len())?;
        if fraction.len() > usize::from(decimal_type.scale) {
            return None;
        }
        for (slot, byte) in digits[start..].iter_mut().zip(integer.iter().chain(fraction)) {
            *slot = Some(byte.wrapping_sub(b'0')).filter(|&digit| digit <= 9)?;
        }
        let used = &digits[..usize::from(decimal_type.precision)];
        Decimal::from_digits(decimal_type, text.starts_with('-'), used)
    }

    /// Reads the encoded form.
    ///
    /// # Errors
    /// [`ValueError::Corrupt`].
    pub fn read(decimal_type: DecimalType, encoded: &[u8]) -> Result<Decimal, ValueError> {
        let mut digits = [0; DecimalType::MAX_PRECISION as usize];
        let mut at = 0;
        let negative = decimal_type.read_groups(encoded, |count, mut group| {
            for slot in digits[at..at + count].iter_mut().rev() {
                *slot = (group % 10) as u8;
                group /= 10;
            }
            at += count;
        })?;
        Ok(Decimal { decimal_type, negative, digits })
    }

    /// Writes the encoded form.
    ///
    /// # Panics
    /// If `out` is not [`DecimalType::encoded_length`] long.
    pub fn write(&self, out: &mut [u8]) {
        let mut digits = self.digits.iter();
        self.decimal_type.write_groups(self.negative, out, |count| {
            digits.by_ref().take(count).fold(0, |group, &digit| group * 10 + u32::from(digit))
        });
    }

    #[must_use]
    pub fn encoded(&self) -> Box<[u8]> {
        let mut encoded = vec![0; self.decimal_type.encoded_length()];
        self.write(&mut encoded);
        encoded.into()
    }

    #[must_use]
    pub fn decimal_type(&self) -> DecimalType {
        self.decimal_type
    }

    /// Whether the number is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// All `precision` digits, most significant first.
    #[must_use]
    pub fn digits(&self) -> &[u8] {
        &self.digits[..usize::from(self.decimal_type.precision)]
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = usize::from(self.decimal_type.precision - self.decimal_type.scale);
        let (integer, fraction) = self.digits().split_at(point);
        let mut text = String::with_capacity(self.digits().len() + 3);
        text.extend(integer.iter().skip_while(|&&d| d == 0).map(|&d| char::from(b'0' + d)));
        if text.is_empty() {
            text.push('0');
        }
        if !fraction.is_empty() {
            text.push('.');
            text.extend(fraction.iter().map(|&digit| char::from(b'0' + digit)));
        }
        f.pad_integral(!self.negative, "", &text)
    }
}
