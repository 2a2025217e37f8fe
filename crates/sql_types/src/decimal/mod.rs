//! Exact numbers, as in MySQL's `DECIMAL`: a whole number of up to 76 digits, divided by a power of
//! ten.
//!
//! ```text
//!   -12.50   negative, scale 2, magnitude 1250
//! ```
//!
//! Columns have at most [`MAX_PRECISION`] digits, [`MAX_SCALE`] of them after the point, and
//! products and quotients have no more digits after the point either. Literals, and what sums,
//! remainders and choices make of them, may have [`MAX_LITERAL_SCALE`], and any value up to
//! [`MAX_DIGITS`]. Beyond that an operation returns
//! `None` and the caller reports MySQL's error 1690. The scale is kept as written: `1.50` prints as
//! `1.50`, and equals `1.5`. There is no negative zero.
//!
//! Numbers below 2^128, which are nearly all, are computed in machine words.

mod arithmetic;
mod convert;
#[cfg(test)]
mod tests;
mod wide;

use std::cmp::Ordering;

pub use arithmetic::quotient_digits;

use wide::Wide;

/// The most digits of a column or a result.
pub const MAX_PRECISION: u8 = 65;
/// The most digits after the point of a column, a product, a quotient or a rounded number.
pub const MAX_SCALE: u8 = 30;
/// The most digits after the point of any value: MySQL keeps nine groups of nine digits, one of
/// them before the point.
pub const MAX_LITERAL_SCALE: u8 = 72;
/// Digits of a group.
const GROUP: u8 = 9;
/// The most digits of any value.
pub const MAX_DIGITS: u8 = 76;

/// An exact number.
#[derive(Clone, Copy)]
pub struct Decimal {
    magnitude: Wide,
    scale: u8,
    negative: bool,
}

/// The effect of dropped digits on the remaining ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, halves away from zero.
    HalfUp,
    /// Towards zero.
    Truncate,
    /// Towards positive infinity.
    Ceiling,
    /// Towards negative infinity.
    Floor,
}

impl Decimal {
    /// 0
    pub const ZERO: Decimal = Decimal { magnitude: [0; 4], scale: 0, negative: false };

    /// `magnitude / 10^scale` with a sign; `None` if it has too many digits.
    fn new(negative: bool, magnitude: Wide, scale: u8) -> Option<Decimal> {
        if scale > MAX_LITERAL_SCALE || wide::compare(&magnitude, &power_of_ten(MAX_DIGITS)).is_ge()
        {
            return None;
        }
        let negative = negative && !wide::is_zero(&magnitude);
        Some(Decimal { magnitude, scale, negative })
    }

    /// `unscaled / 10^scale`.
    ///
    /// # Panics
    /// If `scale` is above [`MAX_LITERAL_SCALE`].
    #[must_use]
    pub fn from_unscaled(unscaled: i128, scale: u8) -> Decimal {
        assert!(scale <= MAX_LITERAL_SCALE, "a decimal has at most 72 digits after the point");
        let magnitude = wide::from_u128(unscaled.unsigned_abs());
        Decimal { magnitude, scale, negative: unscaled < 0 }
    }

    /// The largest number with a precision and scale: all nines.
    #[must_use]
    pub fn max(precision: u8, scale: u8) -> Decimal {
        let limit = power_of_ten(precision.min(MAX_DIGITS));
        let magnitude = wide::subtract(&limit, &wide::from_u128(1));
        Decimal { magnitude, scale, negative: false }
    }

    /// Digits after the point.
    #[must_use]
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Digits before the point, without leading zeros: 0 for `0.5`.
    #[must_use]
    pub fn integer_digits(&self) -> u8 {
        self.digits().saturating_sub(self.scale)
    }

    /// Digits from the first nonzero one: 2 for `0.015`, 0 for 0.
    #[must_use]
    pub fn digits(&self) -> u8 {
        let mut low = 0;
        let mut high = MAX_DIGITS;
        while low < high {
            let middle = (low + high) / 2;
            if wide::compare(&self.magnitude, &power_of_ten(middle)).is_ge() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Whether the number is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        wide::is_zero(&self.magnitude)
    }

    /// Whether the number is below 0.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The number without its sign.
    #[must_use]
    pub fn abs(&self) -> Decimal {
        Decimal { negative: false, ..*self }
    }

    /// Whether the number has at most this many digits, with this many after the point.
    #[must_use]
    pub fn fits(&self, precision: u8, scale: u8) -> bool {
        self.scale <= scale && self.integer_digits() <= precision.saturating_sub(scale)
    }

    /// The number times `10^scale`, if it fits.
    #[must_use]
    pub fn unscaled(&self) -> Option<i128> {
        self.signed_small()
    }

    fn signed_small(&self) -> Option<i128> {
        let magnitude = i128::try_from(wide::to_u128(self.magnitude)?).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

/// How many of `scale` digits after the point a number keeps that has this many before it: MySQL's
/// groups of nine digits end there, and no number has more than [`MAX_DIGITS`].
fn kept_scale(integer_digits: u8, scale: u8) -> u8 {
    const GROUPS: u8 = 9;
    let before = integer_digits.div_ceil(GROUP).clamp(1, GROUPS);
    let by_groups = (GROUPS - before) * GROUP;
    scale.min(by_groups).min(MAX_DIGITS.saturating_sub(integer_digits))
}

/// `10^exponent`, for exponents up to [`MAX_DIGITS`].
fn power_of_ten(exponent: u8) -> Wide {
    static POWERS: [Wide; MAX_DIGITS as usize + 1] = powers_of_ten();
    POWERS[usize::from(exponent)]
}

const fn powers_of_ten() -> [Wide; MAX_DIGITS as usize + 1] {
    let mut powers = [[1, 0, 0, 0]; MAX_DIGITS as usize + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = match wide::multiply_small(&powers[at - 1], 10, 0) {
            Some(power) => power,
            None => panic!("10^76 is below 2^256"),
        };
        at += 1;
    }
    powers
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }
}

impl Decimal {
    fn compare_magnitude(&self, other: &Decimal) -> Ordering {
        if self.scale == other.scale {
            return wide::compare(&self.magnitude, &other.magnitude);
        }
        let scale = self.scale.max(other.scale);
        let raise = |number: &Decimal| {
            wide::multiply(&number.magnitude, &power_of_ten(scale - number.scale))
        };
        raise(self).iter().rev().cmp(raise(other).iter().rev())
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl std::fmt::Debug for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decimal({self})")
    }
}
