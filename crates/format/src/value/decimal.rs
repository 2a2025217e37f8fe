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

    /// Writes a number that is given by its sign and all `precision` digits, most significant
    /// first, each 0 to 9. A negative zero is written as zero.
    ///
    /// # Errors
    /// [`ValueError::OutOfRange`] if the type has another number of digits, or one is above 9.
    ///
    /// # Panics
    /// If `out` is not [`DecimalType::encoded_length`] long.
    pub fn pack_digits(
        self,
        negative: bool,
        digits: &[u8],
        out: &mut [u8],
    ) -> Result<(), ValueError> {
        if digits.len() != usize::from(self.precision) || digits.iter().any(|&digit| digit > 9) {
            return Err(ValueError::OutOfRange(ColumnType::Decimal(self)));
        }
        let negative = negative && digits.iter().any(|&digit| digit != 0);
        let mut digits = digits.iter();
        self.write_groups(negative, out, |count| {
            digits.by_ref().take(count).fold(0, |group, &digit| group * 10 + u32::from(digit))
        });
        Ok(())
    }

    /// Reads a number into its `precision` digits, most significant first; returns whether it is
    /// below zero.
    ///
    /// # Errors
    /// [`ValueError::Corrupt`] for bytes that are not an encoded number.
    ///
    /// # Panics
    /// If `digits` is not `precision` long.
    pub fn unpack_digits(self, encoded: &[u8], digits: &mut [u8]) -> Result<bool, ValueError> {
        assert_eq!(digits.len(), usize::from(self.precision), "there is room for each digit");
        let mut at = 0;
        let negative = self.read_groups(encoded, |count, mut group| {
            for slot in digits[at..at + count].iter_mut().rev() {
                *slot = (group % 10) as u8;
                group /= 10;
            }
            at += count;
        })?;
        Ok(negative && digits.iter().any(|&digit| digit != 0))
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
