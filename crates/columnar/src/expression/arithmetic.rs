//! `+`, `−` and `×` if both sides have the layout of the result.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{Decimal128Type, Float64Type};

use super::Kernel;
use crate::stop_reason::{Result, declined};
use crate::value::Physical;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
    Times,
}

/// The factors of a decimal product may have other scales than the
/// product.
#[derive(Debug)]
pub(crate) struct Arithmetic {
    pub(crate) sign: Sign,
    pub(crate) left: Kernel,
    pub(crate) right: Kernel,
    pub(crate) physical: Physical,
}

impl Arithmetic {
    pub(super) fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let (mut left, right) = (self.left.operand(batch)?, self.right.operand(batch)?);
        if left.is_scalar && right.is_scalar {
            left.array = self.left.evaluate(batch)?;
            left.is_scalar = false;
        }
        // Integers and decimals are checked; an overflow ends the attempt.
        let result = match self.sign {
            Sign::Plus => numeric::add(&left, &right)?,
            Sign::Minus => numeric::sub(&left, &right)?,
            Sign::Times => numeric::mul(&left, &right)?,
        };
        match self.physical {
            Physical::Double => finite(result),
            Physical::Decimal(_) => {
                let result = result.as_primitive::<Decimal128Type>().clone();
                Ok(Arc::new(result.with_data_type(self.physical.data_type())))
            }
            _ => Ok(result),
        }
    }
}

fn finite(array: ArrayRef) -> Result<ArrayRef> {
    let numbers = array.as_primitive::<Float64Type>();
    let is_finite =
        (0..numbers.len()).all(|row| numbers.is_null(row) || numbers.value(row).is_finite());
    if is_finite { Ok(array) } else { declined("a double is out of range") }
}
