//! Sums, means and variances.

use crate::error::{Result, SqlError};
use crate::types::decimal::Rounding;
use crate::types::{Datum, Decimal, SqlType, TypeKind};

/// A sum: exact for whole and exact numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum {
    count: u64,
    whole: i128,
    exact: Decimal,
    double: f64,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum { count: 0, whole: 0, exact: Decimal::ZERO, double: 0.0 }
    }
}

impl Sum {
    /// Adds a number; NULL does not count.
    pub(crate) fn add(&mut self, value: &Datum) -> Result<()> {
        match value {
            Datum::Null => return Ok(()),
            Datum::Int(number) => self.whole += i128::from(*number),
            Datum::UInt(number) => self.whole += i128::from(*number),
            Datum::Decimal(number) => {
                self.exact = self.exact.add(number).ok_or_else(out_of_range)?;
            }
            other => self.double += super::accumulator::double_of(other),
        }
        self.count += 1;
        Ok(())
    }

    #[inline]
    pub(crate) fn add_integer(&mut self, number: i64) {
        self.whole += i128::from(number);
        self.count += 1;
    }

    /// Adds integers that were summed up elsewhere.
    pub(crate) fn add_integers(&mut self, sum: i128, count: u64) {
        self.whole += sum;
        self.count += count;
    }

    /// Adds exact numbers that were summed up elsewhere, in units of the last of `scale` digits.
    ///
    /// # Errors
    /// 1690 if the sum is out of range.
    pub(crate) fn add_exact(&mut self, sum: i128, scale: u8, count: u64) -> Result<()> {
        let sum = Decimal::from_unscaled(sum, scale);
        self.exact = self.exact.add(&sum).ok_or_else(out_of_range)?;
        self.count += count;
        Ok(())
    }

    fn as_double(&self) -> f64 {
        self.double + self.exact.to_double() + self.whole as f64
    }

    fn as_exact(&self) -> Result<Decimal> {
        let whole = Decimal::from_unscaled(self.whole, 0);
        self.exact.add(&whole).ok_or_else(out_of_range)
    }

    /// The sum as a value of a type; NULL for no numbers.
    pub(crate) fn sum(&self, ty: &SqlType) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        match &ty.kind {
            TypeKind::Decimal { scale, .. } => {
                let sum = self.as_exact()?;
                // Quotients are added with more digits than their sum shows.
                let rounded = match sum.scale() > *scale {
                    true => sum.round((*scale).into(), Rounding::HalfUp),
                    false => Some(sum),
                };
                rounded.map(Datum::Decimal).ok_or_else(out_of_range)
            }
            TypeKind::Integer { .. } => {
                i64::try_from(self.whole).map(Datum::Int).map_err(|_| out_of_range())
            }
            _ => finite(self.as_double()),
        }
    }

    /// The mean as a value of a type; NULL for no numbers.
    pub(crate) fn mean(&self, ty: &SqlType) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let TypeKind::Decimal { scale, .. } = ty.kind else {
            return finite(self.as_double() / self.count as f64);
        };
        let count = Decimal::from(self.count);
        let mean = self.as_exact()?.mean(&count, scale);
        mean.map(Datum::Decimal).ok_or_else(out_of_range)
    }
}

/// A variance, computed in one pass (Welford's method, as MySQL does).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variance {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Variance {
    pub(crate) fn add(&mut self, number: f64) {
        self.count += 1;
        let delta = number - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (number - self.mean);
    }

    /// The variance of a population, or of a sample; `None` for too few numbers.
    pub(crate) fn value(&self, sample: bool) -> Option<f64> {
        let divisor = self.count.checked_sub(u64::from(sample)).filter(|divisor| *divisor > 0)?;
        Some(self.squares / divisor as f64)
    }
}

fn finite(number: f64) -> Result<Datum> {
    if number.is_finite() { Ok(Datum::Double(number)) } else { Err(out_of_range()) }
}

fn out_of_range() -> SqlError {
    SqlError::new(1690, "DECIMAL value is out of range in 'sum'")
}
