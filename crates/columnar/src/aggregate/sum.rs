//! `SUM` and `AVG`: exact for integers and decimals, in the order of the rows for doubles.
//!
//! An exact sum has 128 bits. When these overflow, they are added to a wide sum of the group, whose
//! decimals hold any sum of a column.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Builder};
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use firn_sql::expression::AggregateCall;
use firn_sql::functions::AggregateFunction;
use firn_sql::types::{Datum, Decimal};
use rustc_hash::FxHashMap;

use super::{Accumulator, same};
use crate::stop_reason::{Result, declined};
use crate::value::{Physical, beyond};

/// Sums and counts of all groups.
pub(super) struct Sum {
    is_mean: bool,
    argument: Physical,
    physical: Physical,
    exact: Vec<i128>,
    /// The parts of exact sums that have left their 128 bits, by group.
    wide: FxHashMap<usize, Decimal>,
    doubles: Vec<f64>,
    counts: Vec<u64>,
}

impl Sum {
    /// Whether this sums columns of this layout with such a result.
    pub(super) fn takes(argument: Physical, result: Physical) -> bool {
        match argument {
            Physical::Int | Physical::UInt => matches!(result, Physical::Decimal(_)),
            Physical::Decimal(_) => matches!(result, Physical::Decimal(_)),
            Physical::Double => result == Physical::Double,
            _ => false,
        }
    }

    pub(super) fn new(call: &AggregateCall, argument: Physical, physical: Physical) -> Sum {
        Sum {
            is_mean: call.function == AggregateFunction::Average,
            argument,
            physical,
            exact: Vec::new(),
            wide: FxHashMap::default(),
            doubles: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn resize(&mut self, total: usize) {
        self.counts.resize(total, 0);
        if self.argument == Physical::Double {
            self.doubles.resize(total, 0.0);
        } else {
            self.exact.resize(total, 0);
        }
    }

    /// Adds the numbers of a column, except NULL.
    fn add_exact(
        &mut self,
        column: &ArrayRef,
        groups: &[usize],
        number: impl Fn(usize) -> i128,
    ) -> Result<()> {
        let has_nulls = column.null_count() > 0;
        for (row, &group) in groups.iter().enumerate() {
            if has_nulls && column.is_null(row) {
                continue;
            }
            self.add_number(group, number(row))?;
            self.counts[group] += 1;
        }
        Ok(())
    }

    #[inline]
    fn add_number(&mut self, group: usize, number: i128) -> Result<()> {
        let sum = &mut self.exact[group];
        match sum.checked_add(number) {
            Some(total) => *sum = total,
            None => {
                let full = std::mem::replace(sum, number);
                self.widen(group, &Decimal::from_unscaled(full, self.scale()))?;
            }
        }
        Ok(())
    }

    /// Adds to the wide sum of a group.
    #[cold]
    fn widen(&mut self, group: usize, part: &Decimal) -> Result<()> {
        let wide = self.wide.entry(group).or_insert(Decimal::ZERO);
        *wide = wide.add(part).ok_or_else(beyond)?;
        Ok(())
    }

    /// The digits after the point of what is summed.
    fn scale(&self) -> u8 {
        match self.argument {
            Physical::Decimal(scale) => scale,
            _ => 0,
        }
    }

    fn value(&self, group: usize) -> Result<Datum> {
        let count = self.counts[group];
        if count == 0 {
            return Ok(Datum::Null);
        }
        let mut sum = Decimal::from_unscaled(self.exact[group], self.scale());
        if let Some(wide) = self.wide.get(&group) {
            sum = sum.add(wide).ok_or_else(beyond)?;
        }
        let Physical::Decimal(scale) = self.physical else { return declined("a sum has no scale") };
        if !self.is_mean {
            return Ok(Datum::Decimal(sum));
        }
        let mean = sum.mean(&Decimal::from(count), scale);
        mean.map(Datum::Decimal).ok_or_else(beyond)
    }

    fn finish_doubles(&mut self) -> Result<ArrayRef> {
        let mut out = Float64Builder::with_capacity(self.counts.len());
        for (sum, &count) in self.doubles.iter().zip(&self.counts) {
            let value = if self.is_mean { sum / count as f64 } else { *sum };
            if count > 0 && !value.is_finite() {
                return declined("a sum of doubles is out of range");
            }
            out.append_option((count > 0).then_some(value));
        }
        Ok(Arc::new(out.finish()))
    }
}

impl Accumulator for Sum {
    fn add(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        let column = &values[0];
        match self.argument {
            Physical::Int => {
                let numbers = column.as_primitive::<Int64Type>().values().clone();
                self.add_exact(column, groups, |row| numbers[row].into())
            }
            Physical::UInt => {
                let numbers = column.as_primitive::<UInt64Type>().values().clone();
                self.add_exact(column, groups, |row| numbers[row].into())
            }
            Physical::Decimal(_) => {
                let numbers = column.as_primitive::<Decimal128Type>().values().clone();
                self.add_exact(column, groups, |row| numbers[row])
            }
            _ => {
                let numbers = column.as_primitive::<Float64Type>();
                for (row, &group) in groups.iter().enumerate() {
                    if numbers.is_valid(row) {
                        self.doubles[group] += numbers.value(row);
                        self.counts[group] += 1;
                    }
                }
                Ok(())
            }
        }
    }

    fn merge(&mut self, other: Box<dyn Any>, groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        let other = same::<Sum>(other)?;
        for (at, &group) in groups.iter().enumerate() {
            if let Some(more) = other.exact.get(at) {
                self.add_number(group, *more)?;
                self.counts[group] += other.counts[at];
            }
            if let Some(more) = other.wide.get(&at) {
                self.widen(group, more)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, total: usize) -> Result<ArrayRef> {
        self.resize(total);
        if self.argument == Physical::Double {
            return self.finish_doubles();
        }
        let mut builder = self.physical.builder(total);
        for group in 0..total {
            builder.append(&self.value(group)?)?;
        }
        Ok(builder.finish())
    }

    fn size_bytes(&self) -> usize {
        let wide_bytes = self.wide.capacity() * size_of::<(usize, Decimal)>();
        let each_bytes = self.exact.capacity() * 16 + self.counts.capacity() * 8;
        wide_bytes + each_bytes + self.doubles.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of_decimals() -> Sum {
        Sum {
            is_mean: true,
            argument: Physical::Decimal(0),
            physical: Physical::Decimal(0),
            exact: Vec::new(),
            wide: FxHashMap::default(),
            doubles: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn column(numbers: &[i128]) -> ArrayRef {
        let mut builder = Physical::Decimal(0).builder(numbers.len());
        let decimals = numbers.iter().map(|number| Decimal::from_unscaled(*number, 0));
        decimals.for_each(|number| builder.append(&Datum::Decimal(number)).unwrap());
        builder.finish()
    }

    /// Numbers of 38 digits, whose sums leave 128 bits in both directions, in one task and in two.
    #[test]
    fn a_sum_beyond_128_bits_is_exact() {
        let large = 10_i128.pow(38) - 1;
        let (mut one, mut other) = (mean_of_decimals(), mean_of_decimals());
        let numbers = column(&[large, -large, large, -large, large - 5, -large]);
        one.add(&[numbers], &[0, 1, 0, 1, 0, 1], 2).unwrap();
        let numbers = column(&[large, large]);
        other.add(&[numbers], &[0, 0], 1).unwrap();
        assert!(one.wide.contains_key(&0) && one.wide.contains_key(&1));
        assert_eq!(one.value(1).unwrap(), Datum::Decimal(Decimal::from_unscaled(-large, 0)));
        one.merge(Box::new(other), &[0], 2).unwrap();
        // Five numbers, one of which is less by five.
        let mean = Datum::Decimal(Decimal::from_unscaled(large - 1, 0));
        assert_eq!(one.value(0).unwrap(), mean);
    }
}
