//! Addition, subtraction, multiplication, division and rounding.

use super::wide::{self, Wide};
use super::{
    Decimal, GROUP, MAX_DIGITS, MAX_LITERAL_SCALE, MAX_SCALE, Rounding, kept_scale, power_of_ten,
};

/// The digit after which a quotient is cut, for operands with these scales and `more` digits beyond
/// the dividend's: where the last group is full.
#[must_use]
pub fn quotient_digits(dividend_scale: u8, divisor_scale: u8, more: u8) -> u8 {
    let groups = dividend_scale.next_multiple_of(GROUP) + divisor_scale.next_multiple_of(GROUP);
    let gained = groups - dividend_scale - divisor_scale;
    (groups + more.saturating_sub(gained)).next_multiple_of(GROUP).min(MAX_LITERAL_SCALE)
}

impl Decimal {
    /// The sum, with the larger scale, or as many digits after the point as those before it leave.
    /// `None` beyond [`MAX_DIGITS`].
    #[must_use]
    pub fn add(&self, other: &Decimal) -> Option<Decimal> {
        let sum = self.add_small(other).or_else(|| self.add_at(other, self.scale.max(other.scale)));
        if sum.is_some() {
            return sum;
        }
        let before = self.integer_digits().max(other.integer_digits());
        let scale = kept_scale(before.saturating_add(1), MAX_LITERAL_SCALE);
        let cut =
            |number: &Decimal| number.round(number.scale.min(scale).into(), Rounding::Truncate);
        let (one, other) = (cut(self)?, cut(other)?);
        one.add_at(&other, one.scale.max(other.scale))
    }

    fn add_at(&self, other: &Decimal, scale: u8) -> Option<Decimal> {
        let (a, b) = (self.magnitude_at(scale)?, other.magnitude_at(scale)?);
        if self.negative == other.negative {
            return Decimal::new(self.negative, wide::add(&a, &b)?, scale);
        }
        if wide::compare(&a, &b).is_ge() {
            Decimal::new(self.negative, wide::subtract(&a, &b), scale)
        } else {
            Decimal::new(other.negative, wide::subtract(&b, &a), scale)
        }
    }

    fn add_small(&self, other: &Decimal) -> Option<Decimal> {
        if self.scale != other.scale {
            return None;
        }
        let sum = self.signed_small()?.checked_add(other.signed_small()?)?;
        let magnitude = wide::from_u128(sum.unsigned_abs());
        Some(Decimal { magnitude, scale: self.scale, negative: sum < 0 })
    }

    /// The difference, with the larger scale. `None` beyond [`MAX_DIGITS`].
    #[must_use]
    pub fn subtract(&self, other: &Decimal) -> Option<Decimal> {
        self.add(&other.negate())
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negate(&self) -> Decimal {
        Decimal { negative: !self.negative && !self.is_zero(), ..*self }
    }

    /// The product. Its scale is the sum of the scales, at most [`MAX_SCALE`]; further digits are
    /// rounded. `None` beyond [`MAX_DIGITS`].
    #[must_use]
    pub fn multiply(&self, other: &Decimal) -> Option<Decimal> {
        let negative = self.negative != other.negative;
        let scale = self.scale + other.scale;
        let product = wide::multiply(&self.magnitude, &other.magnitude);
        if scale <= MAX_SCALE {
            return Decimal::new(negative, wide::narrow(&product)?, scale);
        }
        let mut excess = scale - MAX_SCALE;
        let mut product = product;
        if excess > MAX_DIGITS {
            // Only the first dropped digit decides, and it is not among these.
            let few = excess - MAX_DIGITS;
            (product, excess) = (wide::divide(&product, &power_of_ten(few)).0, MAX_DIGITS);
        }
        let (quotient, remainder) = wide::divide(&product, &power_of_ten(excess));
        let half_up = is_half_or_more(&remainder, &power_of_ten(excess));
        let magnitude = increment(wide::narrow(&quotient)?, half_up)?;
        Decimal::new(negative, magnitude, MAX_SCALE)
    }

    /// The quotient with `scale` digits after the point; further digits are dropped or rounded.
    /// `None` for a divisor of 0 and beyond [`MAX_DIGITS`].
    #[must_use]
    pub fn divide(&self, divisor: &Decimal, scale: u8, rounding: Rounding) -> Option<Decimal> {
        if divisor.is_zero() {
            return None;
        }
        let negative = self.negative != divisor.negative;
        // quotient * 10^scale = self.magnitude * 10^(scale + divisor.scale - self.scale) /
        // divisor.magnitude
        let raise = i32::from(scale) + i32::from(divisor.scale) - i32::from(self.scale);
        let (dividend, divisor) = if raise >= 0 {
            let dividend = wide::multiply(&self.magnitude, &power(raise)?);
            (dividend, divisor.magnitude)
        } else {
            let raised = wide::multiply(&divisor.magnitude, &power(-raise)?);
            let Some(raised) = wide::narrow(&raised) else {
                // Such a large divisor is far above any dividend.
                return Some(Decimal { scale, ..Decimal::ZERO });
            };
            (wide::widen(&self.magnitude), raised)
        };
        let (quotient, remainder) = wide::divide(&dividend, &divisor);
        let up = rounds_up(negative, &remainder, &divisor, rounding);
        Decimal::new(negative, increment(wide::narrow(&quotient)?, up)?, scale)
    }

    /// The quotient as MySQL computes it: cut after `digits` digits ([`quotient_digits`]), of which
    /// `scale` are kept. `None` for a divisor of 0 and beyond [`MAX_DIGITS`].
    #[must_use]
    pub fn quotient(&self, divisor: &Decimal, digits: u8, scale: u8) -> Option<Decimal> {
        if digits <= scale {
            return self.divide(divisor, scale, Rounding::Truncate);
        }
        let all = self.divide(divisor, digits, Rounding::Truncate);
        let kept = all.and_then(|all| all.round(scale.into(), Rounding::HalfUp));
        kept.or_else(|| self.divide(divisor, scale, Rounding::HalfUp))
    }

    /// The mean of `count` numbers with this sum, as MySQL computes it. `None` as for
    /// [`Decimal::quotient`].
    #[must_use]
    pub fn mean(&self, count: &Decimal, scale: u8) -> Option<Decimal> {
        let digits = quotient_digits(self.scale, 0, scale.saturating_sub(self.scale));
        self.quotient(count, digits, scale)
    }

    /// The remainder of the division with a whole quotient; it has the sign of the dividend and the
    /// larger scale. `None` for a divisor of 0.
    #[must_use]
    pub fn remainder(&self, divisor: &Decimal) -> Option<Decimal> {
        if divisor.is_zero() {
            return None;
        }
        let scale = self.scale.max(divisor.scale);
        let dividend = wide::multiply(&self.magnitude, &power_of_ten(scale - self.scale));
        let raised = wide::multiply(&divisor.magnitude, &power_of_ten(scale - divisor.scale));
        let Some(raised) = wide::narrow(&raised) else {
            // Such a large divisor is above any dividend.
            return self.round(i32::from(scale), Rounding::Truncate);
        };
        let (_, remainder) = wide::divide(&dividend, &raised);
        Decimal::new(self.negative, remainder, scale)
    }

    /// The number with `digits` digits after the point; a negative number rounds before the point,
    /// and the result then has scale 0. `None` beyond [`MAX_DIGITS`].
    #[must_use]
    pub fn round(&self, digits: i32, rounding: Rounding) -> Option<Decimal> {
        let digits = digits.min(i32::from(MAX_LITERAL_SCALE));
        let drop = i32::from(self.scale) - digits;
        let scale = digits.max(0) as u8;
        if drop <= 0 {
            return Decimal::new(self.negative, self.magnitude_at(scale)?, scale);
        }
        let Some(unit) = power(drop) else {
            return Some(Decimal { scale, ..Decimal::ZERO });
        };
        let (quotient, remainder) = wide::divide(&wide::widen(&self.magnitude), &unit);
        let up = rounds_up(self.negative, &remainder, &unit, rounding);
        let quotient = increment(wide::narrow(&quotient)?, up)?;
        if digits >= 0 {
            return Decimal::new(self.negative, quotient, scale);
        }
        let raised = wide::multiply(&quotient, &power(-digits)?);
        Decimal::new(self.negative, wide::narrow(&raised)?, 0)
    }

    /// The magnitude at a scale at least as large as the number's own.
    fn magnitude_at(&self, scale: u8) -> Option<Wide> {
        if scale == self.scale {
            return Some(self.magnitude);
        }
        wide::narrow(&wide::multiply(&self.magnitude, &power_of_ten(scale - self.scale)))
    }
}

fn power(exponent: i32) -> Option<Wide> {
    u8::try_from(exponent).ok().filter(|&exponent| exponent <= MAX_DIGITS).map(power_of_ten)
}

fn rounds_up(negative: bool, remainder: &Wide, divisor: &Wide, rounding: Rounding) -> bool {
    match rounding {
        Rounding::HalfUp => is_half_or_more(remainder, divisor),
        Rounding::Truncate => false,
        Rounding::Ceiling => !negative && !wide::is_zero(remainder),
        Rounding::Floor => negative && !wide::is_zero(remainder),
    }
}

/// Whether `remainder / divisor >= 1/2`, for `remainder < divisor`.
fn is_half_or_more(remainder: &Wide, divisor: &Wide) -> bool {
    wide::compare(remainder, &wide::subtract(divisor, remainder)).is_ge()
}

fn increment(magnitude: Wide, up: bool) -> Option<Wide> {
    if up { wide::add(&magnitude, &wide::from_u128(1)) } else { Some(magnitude) }
}
