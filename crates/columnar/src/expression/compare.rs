//! Comparisons of numbers and dates, and the conversions between layouts that they need.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use firn_sql::expression::CompareOperator;
use firn_sql::types::ComparisonKind;

use super::Kernel;
use crate::stop_reason::{Result, declined};
use crate::value::{Physical, beyond, power_of_ten};

/// Bits of a packed datetime below its date.
pub(crate) const TIME_OF_DAY_BITS: u32 = 37;

/// A comparison of two columns of one layout.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) operator: CompareOperator,
    pub(crate) left: Kernel,
    pub(crate) right: Kernel,
}

/// The layout in which values of two layouts compare by `kind`; `None` if there is none.
pub(crate) fn common(kind: ComparisonKind, left: Physical, right: Physical) -> Option<Physical> {
    use Physical as P;
    let digits = |physical| match physical {
        P::Int | P::UInt => Some(0),
        P::Decimal(scale) => Some(scale),
        _ => None,
    };
    match kind {
        ComparisonKind::Integer | ComparisonKind::Decimal => match (left, right) {
            (P::Int, P::Int) | (P::UInt, P::UInt) => Some(left),
            _ => Some(P::Decimal(digits(left)?.max(digits(right)?))),
        },
        ComparisonKind::Double => {
            let is_number = |one| one == P::Double || digits(one).is_some();
            (is_number(left) && is_number(right)).then_some(P::Double)
        }
        ComparisonKind::DateTime => match (left, right) {
            (P::Date, P::Date) => Some(P::Date),
            (P::Date | P::DateTime, P::Date | P::DateTime) => Some(P::DateTime),
            _ => None,
        },
        ComparisonKind::Time => (left == P::Time && right == P::Time).then_some(P::Time),
        ComparisonKind::Text(_) | ComparisonKind::Json => None,
    }
}

/// Turns −0 into 0, because the two are equal.
pub(crate) fn negate_zero_away(array: &ArrayRef) -> ArrayRef {
    Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(|number| number + 0.0))
}

impl Comparison {
    pub(super) fn truth(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let (mut left, mut right) = (self.left.operand(batch)?, self.right.operand(batch)?);
        if left.is_scalar && right.is_scalar {
            left.array = self.left.evaluate(batch)?;
            left.is_scalar = false;
        }
        if self.left.physical() == Physical::Double {
            left.array = negate_zero_away(&left.array);
            right.array = negate_zero_away(&right.array);
        }
        Ok(match self.operator {
            CompareOperator::Equal => cmp::eq(&left, &right)?,
            CompareOperator::NullSafeEqual => cmp::not_distinct(&left, &right)?,
            CompareOperator::NotEqual => cmp::neq(&left, &right)?,
            CompareOperator::Less => cmp::lt(&left, &right)?,
            CompareOperator::LessOrEqual => cmp::lt_eq(&left, &right)?,
            CompareOperator::Greater => cmp::gt(&left, &right)?,
            CompareOperator::GreaterOrEqual => cmp::gt_eq(&left, &right)?,
        })
    }
}

/// A column in another layout.
pub(crate) fn convert(array: &ArrayRef, from: Physical, to: Physical) -> Result<ArrayRef> {
    use Physical as P;
    if from == to {
        return Ok(array.clone());
    }
    let as_type = |array: arrow::array::Decimal128Array| -> Result<ArrayRef> {
        Ok(Arc::new(array.with_data_type(to.data_type())))
    };
    match (from, to) {
        (P::Int, P::Decimal(scale)) => {
            let factor = power_of_ten(scale.into())?;
            let array = array.as_primitive::<Int64Type>();
            as_type(array.try_unary::<_, Decimal128Type, _>(|number| {
                i128::from(number).checked_mul(factor).ok_or_else(beyond)
            })?)
        }
        (P::UInt, P::Decimal(scale)) => {
            let factor = power_of_ten(scale.into())?;
            let array = array.as_primitive::<UInt64Type>();
            as_type(array.try_unary::<_, Decimal128Type, _>(|number| {
                i128::from(number).checked_mul(factor).ok_or_else(beyond)
            })?)
        }
        (P::Decimal(small), P::Decimal(large)) if small < large => {
            let factor = power_of_ten((large - small).into())?;
            let array = array.as_primitive::<Decimal128Type>();
            as_type(array.try_unary::<_, Decimal128Type, _>(|number| {
                number.checked_mul(factor).ok_or_else(beyond)
            })?)
        }
        (P::Int, P::Double) => {
            let array = array.as_primitive::<Int64Type>();
            Ok(Arc::new(array.unary::<_, Float64Type>(|number| number as f64)))
        }
        (P::UInt, P::Double) => {
            let array = array.as_primitive::<UInt64Type>();
            Ok(Arc::new(array.unary::<_, Float64Type>(|number| number as f64)))
        }
        (P::Decimal(scale), P::Double) => {
            let array = array.as_primitive::<Decimal128Type>();
            let double =
                |number| firn_sql::types::Decimal::from_unscaled(number, scale).to_double();
            Ok(Arc::new(array.unary::<_, Float64Type>(double)))
        }
        (P::Date, P::DateTime) => {
            let array = array.as_primitive::<Int64Type>();
            Ok(Arc::new(array.unary::<_, Int64Type>(|date| date << TIME_OF_DAY_BITS)))
        }
        _ => declined("a conversion has no kernel"),
    }
}

/// Whether [`convert`] can do this without loss.
pub(super) fn converts(from: Physical, to: Physical) -> bool {
    use Physical as P;
    match (from, to) {
        _ if from == to => true,
        (P::Int | P::UInt, P::Decimal(_) | P::Double) | (P::Decimal(_), P::Double) => true,
        (P::Decimal(small), P::Decimal(large)) => small < large,
        (P::Date, P::DateTime) => true,
        _ => false,
    }
}

/// True where a column has a value and `test` holds.
pub(super) fn test_rows(array: &ArrayRef, test: impl FnMut(usize) -> bool) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::collect_bool(array.len(), test), array.nulls().cloned())
}
