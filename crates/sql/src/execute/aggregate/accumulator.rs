//! What an aggregate function keeps of the values it has seen.

use std::cmp::Ordering;

use rustc_hash::FxHashSet;

use crate::error::{Result, SqlError};
use crate::expression::AggregateCall;
use crate::functions::AggregateFunction;
use crate::types::compare::compare_values;
use crate::types::json::JsonObject;
use crate::types::{Datum, EvaluationContext, JsonValue, SqlType, TypeKind, cast, write_sort_key};

use super::super::Execution;
use super::super::background_free::Bulk;
use super::super::memory::{Reservation, size_of_values};
use super::concatenate::Concatenation;
use super::number::{Sum, Variance};

#[derive(Clone)]
pub struct Accumulator {
    kind: Kind,
    /// Keys of the values seen, for `DISTINCT`.
    seen: Option<Bulk<FxHashSet<Box<[u8]>>>>,
}

#[derive(Clone)]
enum Kind {
    Count(u64),
    Sum(Sum),
    /// The least or greatest value so far, and which direction is better.
    Extreme(Datum, Ordering),
    Bits(u64),
    /// Bit by bit over binary strings; `None` before the first.
    Bytes(Option<Vec<u8>>),
    Concatenation(Concatenation),
    Variance(Variance),
    Array(Option<Vec<JsonValue>>),
    Object(Option<JsonObject>),
    First(Option<Datum>),
}

impl Accumulator {
    /// An accumulator that has seen nothing.
    #[must_use]
    pub fn new(call: &AggregateCall) -> Accumulator {
        use AggregateFunction as F;
        let is_binary = call.ty.kind.is_binary();
        let kind = match call.function {
            F::CountRows | F::Count => Kind::Count(0),
            F::Sum | F::Average => Kind::Sum(Sum::default()),
            F::Min => Kind::Extreme(Datum::Null, Ordering::Less),
            F::Max => Kind::Extreme(Datum::Null, Ordering::Greater),
            F::BitAnd | F::BitOr | F::BitXor if is_binary => Kind::Bytes(None),
            F::BitAnd => Kind::Bits(u64::MAX),
            F::BitOr | F::BitXor => Kind::Bits(0),
            F::GroupConcat => Kind::Concatenation(Concatenation::default()),
            F::StandardDeviation | F::SampleStandardDeviation | F::Variance | F::SampleVariance => {
                Kind::Variance(Variance::default())
            }
            F::JsonArray => Kind::Array(None),
            F::JsonObject => Kind::Object(None),
            F::AnyValue => Kind::First(None),
        };
        // The extremes of distinct values are those of all values.
        let distinct = call.distinct && !matches!(call.function, F::Min | F::Max);
        Accumulator { kind, seen: distinct.then(Bulk::default) }
    }

    /// Adds a row's arguments, and the values by which `GROUP_CONCAT` orders.
    ///
    /// # Errors
    /// 1041 without memory, 1690 for a result that is out of range.
    pub fn add(
        &mut self,
        call: &AggregateCall,
        arguments: &[Datum],
        order: &[Datum],
        held: &mut Reservation,
        execution: &Execution<'_>,
    ) -> Result<()> {
        if let Kind::Count(count) = &mut self.kind
            && call.function == AggregateFunction::CountRows
        {
            *count += 1;
            return Ok(());
        }
        let keeps_null = matches!(
            call.function,
            AggregateFunction::JsonArray
                | AggregateFunction::JsonObject
                | AggregateFunction::AnyValue
        );
        if !keeps_null && arguments.iter().any(Datum::is_null) {
            return Ok(());
        }
        if !self.is_new(call, arguments, held)? {
            return Ok(());
        }
        self.take(call, arguments, order, held, execution)
    }

    /// Adds this many rows, for `COUNT(*)`.
    pub(crate) fn add_rows(&mut self, rows: u64) {
        if let Kind::Count(count) = &mut self.kind {
            *count += rows;
        }
    }

    /// Adds an integer, if it is only counted or summed here; false if it must be added like other
    /// arguments.
    #[inline]
    pub(crate) fn add_integer(&mut self, number: i64) -> bool {
        match (&mut self.kind, &self.seen) {
            (Kind::Sum(sum), None) => sum.add_integer(number),
            (Kind::Count(count), None) => *count += 1,
            _ => return false,
        }
        true
    }

    /// Takes the summary of all numbers, which were read elsewhere, as values of the argument's
    /// type: their count, their sum in units of the last of `scale` digits, the least and the
    /// greatest.
    ///
    /// # Errors
    /// 1690 for a sum that is out of range.
    pub(crate) fn take_summary(
        &mut self,
        count: u64,
        (sum, scale): (i128, u8),
        extremes: Option<(Datum, Datum)>,
    ) -> Result<()> {
        match (&mut self.kind, extremes) {
            (Kind::Count(counted), _) => *counted += count,
            (Kind::Sum(summed), _) if scale == 0 => summed.add_integers(sum, count),
            (Kind::Sum(summed), _) => summed.add_exact(sum, scale, count)?,
            (Kind::Extreme(best, Ordering::Less), Some((least, _))) => *best = least,
            (Kind::Extreme(best, _), Some((_, greatest))) => *best = greatest,
            _ => {}
        }
        Ok(())
    }

    /// Whether the arguments count under `DISTINCT`.
    fn is_new(
        &mut self,
        call: &AggregateCall,
        arguments: &[Datum],
        held: &mut Reservation,
    ) -> Result<bool> {
        let Some(seen) = &mut self.seen else { return Ok(true) };
        let mut key = Vec::new();
        for (value, argument) in arguments.iter().zip(&call.arguments) {
            write_sort_key(value, &argument.ty, false, &mut key);
        }
        if seen.contains(&key[..]) {
            return Ok(false);
        }
        held.require(key.len() + 32)?;
        seen.insert(key.into());
        Ok(true)
    }

    fn take(
        &mut self,
        call: &AggregateCall,
        arguments: &[Datum],
        order: &[Datum],
        held: &mut Reservation,
        execution: &Execution<'_>,
    ) -> Result<()> {
        let Some(value) = arguments.first() else { return Ok(()) };
        match &mut self.kind {
            Kind::Count(count) => *count += 1,
            Kind::Sum(sum) => sum.add(value)?,
            Kind::Extreme(best, better) => {
                let ty = &call.arguments[0].ty;
                if best.is_null() || compare_values(ty, value, best) == *better {
                    *best = value.clone();
                }
            }
            Kind::Bits(bits) => *bits = combined(call.function, *bits, word_of(value)),
            Kind::Bytes(bytes) => combine_bytes(call.function, bytes, value)?,
            Kind::Concatenation(parts) => {
                parts.add(call, arguments, order, held, execution.context)?
            }
            Kind::Variance(variance) => variance.add(double_of(value)),
            Kind::Array(items) => {
                held.require(size_of_values(arguments) + 64)?;
                let item = json_of(value, &call.arguments[0].ty)?;
                items.get_or_insert_default().push(item);
            }
            Kind::Object(object) => {
                held.require(size_of_values(arguments) + 64)?;
                if value.is_null() {
                    let message = "JSON documents may not contain NULL member names.";
                    return Err(SqlError::new(3158, message));
                }
                let item = arguments.get(1).zip(call.arguments.get(1));
                let item = item.map_or(Ok(JsonValue::Null), |(item, of)| json_of(item, &of.ty))?;
                object.get_or_insert_default().insert(text_of(value), item);
            }
            Kind::First(first) => {
                first.get_or_insert_with(|| value.clone());
            }
        }
        Ok(())
    }

    /// The function's value.
    ///
    /// # Errors
    /// 1690 for a result that is out of range.
    pub fn finish(self, call: &AggregateCall, context: &EvaluationContext) -> Result<Datum> {
        use AggregateFunction as F;
        Ok(match self.kind {
            Kind::Count(count) => Datum::Int(count as i64),
            Kind::Sum(sum) if call.function == F::Average => sum.mean(&call.ty)?,
            Kind::Sum(sum) => sum.sum(&call.ty)?,
            Kind::Extreme(best, _) => best,
            Kind::Bits(bits) => Datum::UInt(bits),
            Kind::Bytes(bytes) => bytes.map_or_else(|| no_bytes(call), Datum::text),
            Kind::Concatenation(parts) => parts.finish(call, context),
            Kind::Variance(variance) => {
                let sample =
                    matches!(call.function, F::SampleVariance | F::SampleStandardDeviation);
                let value = variance.value(sample);
                let is_root =
                    matches!(call.function, F::StandardDeviation | F::SampleStandardDeviation);
                match value.map(|value| if is_root { value.sqrt() } else { value }) {
                    Some(value) if value.is_finite() => Datum::Double(value),
                    Some(_) => return Err(no_variance(call.function)),
                    None => Datum::Null,
                }
            }
            Kind::Array(items) => document(items.map(JsonValue::Array), "json_arrayagg", context)?,
            Kind::Object(object) => {
                document(object.map(JsonValue::Object), "json_objectagg", context)?
            }
            Kind::First(first) => first.unwrap_or_default(),
        })
    }
}

/// Error 1690 for a variance that no double holds.
fn no_variance(function: AggregateFunction) -> SqlError {
    let name = match function {
        AggregateFunction::StandardDeviation => "std",
        AggregateFunction::SampleStandardDeviation => "stddev_samp",
        AggregateFunction::SampleVariance => "var_samp",
        _ => "variance",
    };
    SqlError::new(1690, format!("DOUBLE value is out of range in '{name}'"))
}

/// A document, or NULL if its text would be too long.
fn document(
    value: Option<JsonValue>,
    function: &str,
    context: &EvaluationContext,
) -> Result<Datum> {
    Ok(match value {
        Some(value) if context.fits_packet(&value, function)? => Datum::from(value),
        _ => Datum::Null,
    })
}

fn combined(function: AggregateFunction, one: u64, other: u64) -> u64 {
    match function {
        AggregateFunction::BitAnd => one & other,
        AggregateFunction::BitOr => one | other,
        _ => one ^ other,
    }
}

fn combine_bytes(
    function: AggregateFunction,
    bytes: &mut Option<Vec<u8>>,
    value: &Datum,
) -> Result<()> {
    let Some(other) = value.as_bytes() else { return Ok(()) };
    match bytes {
        None => *bytes = Some(other.to_vec()),
        Some(bytes) if bytes.len() != other.len() => {
            let message = "Binary operands of bitwise operators must be of equal length";
            return Err(SqlError::new(3513, message));
        }
        Some(bytes) => {
            for (one, other) in bytes.iter_mut().zip(other) {
                *one = combined(function, (*one).into(), (*other).into()) as u8;
            }
        }
    }
    Ok(())
}

/// The result of the bit functions over no binary strings.
fn no_bytes(call: &AggregateCall) -> Datum {
    let length = match call.ty.kind {
        TypeKind::Binary { max_bytes } | TypeKind::Varbinary { max_bytes } => max_bytes.min(511),
        _ => 0,
    };
    let fill = if call.function == AggregateFunction::BitAnd { 0xff } else { 0 };
    Datum::text(vec![fill; length as usize])
}

fn word_of(value: &Datum) -> u64 {
    match value {
        Datum::UInt(number) => *number,
        Datum::Int(number) => *number as u64,
        Datum::Decimal(number) => {
            let rounded = number.round(0, crate::types::decimal::Rounding::HalfUp);
            rounded.and_then(|number| number.to_i128()).map_or(u64::MAX, |number| number as u64)
        }
        other => double_of(other) as i64 as u64,
    }
}

/// A number as a double; anything else counts as 0.
pub(super) fn double_of(value: &Datum) -> f64 {
    match value {
        Datum::Int(number) => *number as f64,
        Datum::UInt(number) => *number as f64,
        Datum::Double(number) => *number,
        Datum::Decimal(number) => number.to_double(),
        _ => 0.0,
    }
}

fn text_of(value: &Datum) -> String {
    match value {
        Datum::Text(octets) => octets.to_str_lossy().into_owned(),
        Datum::Int(number) => number.to_string(),
        Datum::UInt(number) => number.to_string(),
        Datum::Decimal(number) => number.to_string(),
        Datum::Json(document) => document.unquoted(),
        _ => String::new(),
    }
}

/// A value as a document or a part of one.
fn json_of(value: &Datum, ty: &SqlType) -> Result<JsonValue> {
    cast::json_scalar(value, ty)
}
