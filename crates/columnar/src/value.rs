//! Values of SQL as columns of Arrow.
//!
//! ```text
//!   integers, YEAR, BIT, ENUM, SET   Int64, UInt64
//!   FLOAT, DOUBLE                    Float64
//!   DECIMAL(p, s)                    Decimal128(38, s); a number beyond 38 digits ends the attempt
//!   DATE, TIME, DATETIME, TIMESTAMP  Int64, packed as a datum is: their order is MySQL's
//!   text and bytes                   Binary
//! ```
//!
//! Types of literals and of products are often wider than any of their values. So decimals have 128
//! bits whatever their precision, and each step checks for overflow.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Decimal128Builder, Float64Builder, Int64Builder,
    UInt64Builder,
};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use firn_sql::expression::Slot;
use firn_sql::types::decimal::MAX_SCALE;
use firn_sql::types::{Datum, Decimal, SqlType, TypeKind};

use crate::stop_reason::{Result, Stop, declined};

/// Digits of the decimals that columns hold.
pub(crate) const DECIMAL_DIGITS: u8 = 38;

/// How the values of a type are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Physical {
    Int,
    UInt,
    Double,
    /// With this many digits after the point.
    Decimal(u8),
    Bytes,
    Date,
    Time,
    DateTime,
}

/// A column of a relation: the slot that it holds.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) slot: Slot,
    pub(crate) ty: SqlType,
    pub(crate) physical: Physical,
}

impl Field {
    pub(crate) fn new(slot: Slot, ty: &SqlType) -> Result<Field> {
        Ok(Field { slot, ty: ty.clone(), physical: Physical::of(ty)? })
    }
}

impl Physical {
    /// The layout of a type's values.
    pub(crate) fn of(ty: &SqlType) -> Result<Physical> {
        Ok(match &ty.kind {
            TypeKind::Integer { unsigned: false, .. } | TypeKind::Null => Physical::Int,
            TypeKind::Integer { unsigned: true, .. }
            | TypeKind::Bit { .. }
            | TypeKind::Year
            | TypeKind::Enum { .. }
            | TypeKind::Set { .. } => Physical::UInt,
            TypeKind::Decimal { scale, .. } if *scale > MAX_SCALE => {
                return declined("numbers with so many digits after the point are no columns");
            }
            TypeKind::Decimal { scale, .. } => Physical::Decimal(*scale),
            TypeKind::Float | TypeKind::Double => Physical::Double,
            TypeKind::Date => Physical::Date,
            TypeKind::Time { .. } => Physical::Time,
            TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => Physical::DateTime,
            TypeKind::Json => return declined("JSON values are no columns"),
            _ => Physical::Bytes,
        })
    }

    /// The type of the columns.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Physical::Int | Physical::Date | Physical::Time | Physical::DateTime => DataType::Int64,
            Physical::UInt => DataType::UInt64,
            Physical::Double => DataType::Float64,
            Physical::Decimal(scale) => DataType::Decimal128(DECIMAL_DIGITS, scale as i8),
            Physical::Bytes => DataType::Binary,
        }
    }

    /// The value in a row of a column.
    pub(crate) fn datum(self, array: &dyn Array, row: usize) -> Datum {
        if array.is_null(row) {
            return Datum::Null;
        }
        match self {
            Physical::Int => Datum::Int(array.as_primitive::<Int64Type>().value(row)),
            Physical::Date => Datum::Date(array.as_primitive::<Int64Type>().value(row)),
            Physical::Time => Datum::Time(array.as_primitive::<Int64Type>().value(row)),
            Physical::DateTime => Datum::DateTime(array.as_primitive::<Int64Type>().value(row)),
            Physical::UInt => Datum::UInt(array.as_primitive::<UInt64Type>().value(row)),
            Physical::Double => Datum::Double(array.as_primitive::<Float64Type>().value(row)),
            Physical::Decimal(scale) => {
                let unscaled = array.as_primitive::<Decimal128Type>().value(row);
                Datum::Decimal(Decimal::from_unscaled(unscaled, scale))
            }
            Physical::Bytes => Datum::text(array.as_binary::<i32>().value(row)),
        }
    }

    pub(crate) fn builder(self, rows: usize) -> Builder {
        match self {
            Physical::Int | Physical::Date | Physical::Time | Physical::DateTime => {
                Builder::Int(Int64Builder::with_capacity(rows), self)
            }
            Physical::UInt => Builder::UInt(UInt64Builder::with_capacity(rows)),
            Physical::Double => Builder::Double(Float64Builder::with_capacity(rows)),
            Physical::Decimal(scale) => Builder::Decimal(
                Decimal128Builder::with_capacity(rows).with_data_type(self.data_type()),
                scale,
            ),
            Physical::Bytes => Builder::Bytes(BinaryBuilder::with_capacity(rows, rows * 16)),
        }
    }

    /// A column of one value.
    pub(crate) fn single(self, datum: &Datum) -> Result<ArrayRef> {
        let mut builder = self.builder(1);
        builder.append(datum)?;
        Ok(builder.finish())
    }

    /// A column that repeats a value.
    pub(crate) fn repeated(self, datum: &Datum, rows: usize) -> Result<ArrayRef> {
        let mut builder = self.builder(rows);
        for _ in 0..rows {
            builder.append(datum)?;
        }
        Ok(builder.finish())
    }
}

/// `10^exponent`, if it fits.
pub(crate) fn power_of_ten(exponent: u32) -> Result<i128> {
    10_i128.checked_pow(exponent).ok_or_else(beyond)
}

/// A decimal as a whole number of `10^-scale`.
pub(crate) fn unscaled(number: &Decimal, scale: u8) -> Result<i128> {
    let digits = number.unscaled().ok_or_else(beyond)?;
    let Some(raise) = scale.checked_sub(number.scale()) else {
        return declined("a number has more digits after the point than its type");
    };
    let raised = digits.checked_mul(power_of_ten(raise.into())?).ok_or_else(beyond)?;
    if raised.unsigned_abs() >= 10_u128.pow(DECIMAL_DIGITS.into()) {
        Err(beyond())
    } else {
        Ok(raised)
    }
}

/// A number has more digits than a column holds.
pub(crate) fn beyond() -> Stop {
    Stop::Declined("a number has more than 38 digits".to_owned())
}

pub(crate) enum Builder {
    Int(Int64Builder, Physical),
    UInt(UInt64Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, u8),
    Bytes(BinaryBuilder),
}

impl Builder {
    /// Appends a value of the builder's type.
    pub(crate) fn append(&mut self, datum: &Datum) -> Result<()> {
        match (self, datum) {
            (Builder::Int(builder, _), Datum::Null) => builder.append_null(),
            (Builder::UInt(builder), Datum::Null) => builder.append_null(),
            (Builder::Double(builder), Datum::Null) => builder.append_null(),
            (Builder::Decimal(builder, _), Datum::Null) => builder.append_null(),
            (Builder::Bytes(builder), Datum::Null) => builder.append_null(),
            (Builder::Int(builder, Physical::Int), Datum::Int(number))
            | (Builder::Int(builder, Physical::Date), Datum::Date(number))
            | (Builder::Int(builder, Physical::Time), Datum::Time(number))
            | (Builder::Int(builder, Physical::DateTime), Datum::DateTime(number)) => {
                builder.append_value(*number);
            }
            (Builder::Int(builder, Physical::Int), Datum::UInt(number)) => {
                builder.append_value(i64::try_from(*number).map_err(|_| mismatch())?);
            }
            (Builder::UInt(builder), Datum::UInt(number)) => builder.append_value(*number),
            (Builder::UInt(builder), Datum::Int(number)) => {
                builder.append_value(u64::try_from(*number).map_err(|_| mismatch())?);
            }
            (Builder::Double(builder), Datum::Double(number)) => builder.append_value(*number),
            (Builder::Decimal(builder, scale), Datum::Decimal(number)) => {
                builder.append_value(unscaled(number, *scale)?);
            }
            (Builder::Decimal(builder, scale), Datum::Int(number)) => {
                builder.append_value(unscaled(&Decimal::from(*number), *scale)?);
            }
            (Builder::Decimal(builder, scale), Datum::UInt(number)) => {
                builder.append_value(unscaled(&Decimal::from(*number), *scale)?);
            }
            (Builder::Bytes(builder), Datum::Text(bytes)) => builder.append_value(&**bytes),
            _ => return Err(mismatch()),
        }
        Ok(())
    }

    /// Ends the column and returns it.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Int(builder, _) => Arc::new(builder.finish()),
            Builder::UInt(builder) => Arc::new(builder.finish()),
            Builder::Double(builder) => Arc::new(builder.finish()),
            Builder::Decimal(builder, _) => Arc::new(builder.finish()),
            Builder::Bytes(builder) => Arc::new(builder.finish()),
        }
    }
}

fn mismatch() -> Stop {
    Stop::Declined("a value is not of the type of its column".to_owned())
}
