//! Where a value lies among the values that a column can hold.
//!
//! ```text
//!   DECIMAL(4,1):   2.5 ─► Exact 2.5     2.55 ─► Above 2.5     1e9 ─► AboveAll    -1e9 ─► BelowAll
//! ```

use std::cmp::Ordering;

use firn_format::value::{ColumnType, Date, DateTime, DecimalType, ValueRef};

use crate::collation;
use crate::error::Result;
use crate::types::decimal::Rounding;
use crate::types::{Datum, Decimal, EvaluationContext, SqlType, TypeKind, cast};

/// A value in the form that a column stores.
#[derive(Debug, Clone)]
pub(crate) enum Fitted<'a> {
    /// Unchanged.
    Value(ValueRef<'a>),
    Decimal(Box<[u8]>),
    /// Text created for it.
    Bytes(Vec<u8>),
}

impl Fitted<'_> {
    pub(crate) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Fitted::Value(value) => *value,
            Fitted::Decimal(encoded) => ValueRef::Decimal(encoded),
            Fitted::Bytes(bytes) => ValueRef::Bytes(bytes),
        }
    }
}

/// Where a value lies among those of a column.
#[derive(Debug, Clone)]
pub(crate) enum Fit<'a> {
    /// The column can hold it.
    Exact(Fitted<'a>),
    /// It lies between this value and the column's next one.
    Above(Fitted<'a>),
    /// It is less than all.
    BelowAll,
    /// It is greater than all.
    AboveAll,
    /// It cannot be compared with the column's values.
    Never,
}

/// Fits a value that is not NULL in a column.
#[inline]
pub(crate) fn fit<'a>(
    datum: &'a Datum,
    ty: &SqlType,
    column: &SqlType,
    column_type: ColumnType,
    context: &EvaluationContext,
) -> Result<Fit<'a>> {
    match (column_type, datum) {
        (ColumnType::Int(width), Datum::Int(number)) => {
            Ok(signed(i128::from(*number), true, width.bytes()))
        }
        (column_type, Datum::Text(octets)) if column_type.fixed_length().is_none() => {
            Ok(Fit::Exact(Fitted::Value(ValueRef::Bytes(octets))))
        }
        _ => fit_other(datum, ty, column, column_type, context),
    }
}

fn fit_other<'a>(
    datum: &Datum,
    ty: &SqlType,
    column: &SqlType,
    column_type: ColumnType,
    context: &EvaluationContext,
) -> Result<Fit<'a>> {
    let unsigned = |bits: u32| u64::MAX >> (64 - bits);
    let fitted = match column_type {
        ColumnType::Int(width) => {
            floor(datum).map(|(number, exact)| signed(number, exact, width.bytes()))
        }
        ColumnType::UInt(width) => {
            let greatest = unsigned(width.bytes() as u32 * 8);
            floor(datum).map(|(number, exact)| self::unsigned(number, exact, greatest))
        }
        ColumnType::Bit { bits } => floor(datum)
            .map(|(number, exact)| self::unsigned(number, exact, unsigned(u32::from(bits)))),
        ColumnType::Year => floor(datum).map(|(number, exact)| year(number, exact)),
        ColumnType::Enum { members } => member(datum, column, u64::from(members)),
        ColumnType::Set { members } => member(datum, column, unsigned(u32::from(members))),
        ColumnType::Decimal(decimal_type) => exact_number(datum).map(|n| decimal(&n, decimal_type)),
        ColumnType::Float => double(datum).map(single),
        ColumnType::Double => {
            double(datum).map(|number| Fit::Exact(Fitted::Value(ValueRef::Double(number))))
        }
        ColumnType::Date => moment(datum).map(date),
        ColumnType::DateTime { fsp } => moment(datum).map(|moment| date_time(moment, fsp)),
        ColumnType::Timestamp { fsp } => {
            moment(datum).map(|moment| timestamp(moment, fsp, context))
        }
        ColumnType::Time { fsp } => match datum {
            Datum::Time(packed) => Some(cut(*packed, fsp)),
            _ => None,
        },
        _ => None,
    };
    match fitted {
        Some(fitted) => Ok(fitted),
        None => cast_and_fit(datum, ty, column, column_type, context),
    }
}

/// A value of another kind, cast to one of the column's values.
fn cast_and_fit<'a>(
    datum: &Datum,
    ty: &SqlType,
    column: &SqlType,
    column_type: ColumnType,
    context: &EvaluationContext,
) -> Result<Fit<'a>> {
    let cast = cast::cast(datum, ty, column, context)?;
    match cast {
        Datum::Null => Ok(Fit::Never),
        Datum::Text(octets) if column_type.fixed_length().is_none() => {
            Ok(Fit::Exact(Fitted::Bytes(octets.to_vec())))
        }
        cast if std::mem::discriminant(&cast) != std::mem::discriminant(datum) => {
            fit_other(&cast, column, column, column_type, context)
        }
        _ => Ok(Fit::Never),
    }
}

fn exact_or_above<'a>(value: ValueRef<'a>, exact: bool) -> Fit<'a> {
    let fitted = Fitted::Value(value);
    if exact { Fit::Exact(fitted) } else { Fit::Above(fitted) }
}

#[inline]
fn signed<'a>(number: i128, exact: bool, width_bytes: usize) -> Fit<'a> {
    let greatest = i64::MAX >> (64 - width_bytes * 8);
    let least = -greatest - 1;
    match i64::try_from(number) {
        _ if number > i128::from(greatest) => Fit::AboveAll,
        Ok(number) if number >= least => exact_or_above(ValueRef::Int(number), exact),
        _ => Fit::BelowAll,
    }
}

fn unsigned<'a>(number: i128, exact: bool, greatest: u64) -> Fit<'a> {
    match u64::try_from(number) {
        Ok(number) if number <= greatest => exact_or_above(ValueRef::UInt(number), exact),
        _ if number < 0 => Fit::BelowAll,
        _ => Fit::AboveAll,
    }
}

fn year<'a>(number: i128, exact: bool) -> Fit<'a> {
    match number {
        ..0 => Fit::BelowAll,
        0 => exact_or_above(ValueRef::UInt(0), exact),
        1..=1900 => Fit::Above(Fitted::Value(ValueRef::UInt(0))),
        1901..=2155 => exact_or_above(ValueRef::UInt(number as u64), exact),
        _ => Fit::AboveAll,
    }
}

/// The ordinal of an enum's name, or the bits of a set's names. A name, or a number of at most
/// `greatest`.
fn member<'a>(datum: &Datum, column: &SqlType, greatest: u64) -> Option<Fit<'a>> {
    let Datum::Text(text) = datum else {
        return floor(datum).map(|(number, exact)| unsigned(number, exact, greatest));
    };
    let (members, collation, is_set) = match &column.kind {
        TypeKind::Enum { members, collation } => (members, *collation, false),
        TypeKind::Set { members, collation } => (members, *collation, true),
        _ => return None,
    };
    let collation = collation::get(collation);
    let place = |name: &[u8]| {
        members.names().iter().position(|member| collation.equal(member.as_bytes(), name))
    };
    let number = if is_set {
        let names = text.split(|&byte| byte == b',').filter(|name| !name.is_empty());
        names.map(place).try_fold(0, |bits, place| Some(bits | 1_u64.checked_shl(place? as u32)?))
    } else {
        place(text).map(|place| place as u64 + 1)
    };
    Some(number.map_or(Fit::Never, |number| exact_or_above(ValueRef::UInt(number), true)))
}

/// The greatest whole number that is not above, and whether it equals the value.
fn floor(datum: &Datum) -> Option<(i128, bool)> {
    match datum {
        Datum::Int(number) => Some((i128::from(*number), true)),
        Datum::UInt(number) => Some((i128::from(*number), true)),
        // Outside the range of all integer columns, the cast's saturation does no harm.
        Datum::Double(number) => Some((number.floor() as i128, number.floor() == *number)),
        Datum::Decimal(number) => {
            let whole = number.round(0, Rounding::Floor)?;
            let beyond = if number.is_negative() { i128::MIN } else { i128::MAX };
            Some((whole.to_i128().unwrap_or(beyond), whole == *number))
        }
        _ => None,
    }
}

fn exact_number(datum: &Datum) -> Option<Decimal> {
    match datum {
        Datum::Int(number) => Some(Decimal::from(*number)),
        Datum::UInt(number) => Some(Decimal::from(*number)),
        Datum::Decimal(number) => Some(*number),
        Datum::Double(number) => Decimal::from_double(*number),
        _ => None,
    }
}

fn decimal<'a>(number: &Decimal, decimal_type: DecimalType) -> Fit<'a> {
    let beyond = if number.is_negative() { Fit::BelowAll } else { Fit::AboveAll };
    let Some(floor) = number.round(i32::from(decimal_type.scale()), Rounding::Floor) else {
        return beyond;
    };
    let exact = floor == *number;
    match floor.to_stored(decimal_type) {
        Some(encoded) if exact => Fit::Exact(Fitted::Decimal(encoded)),
        Some(encoded) => Fit::Above(Fitted::Decimal(encoded)),
        None => beyond,
    }
}

fn double(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Int(number) => Some(*number as f64),
        Datum::UInt(number) => Some(*number as f64),
        Datum::Double(number) => Some(*number),
        Datum::Decimal(number) => Some(number.to_double()),
        _ => None,
    }
}

fn single<'a>(number: f64) -> Fit<'a> {
    let near = number as f32;
    match f64::from(near).partial_cmp(&number) {
        _ if near.is_infinite() && number > 0.0 => Fit::AboveAll,
        _ if near.is_infinite() => Fit::BelowAll,
        Some(Ordering::Equal) => exact_or_above(ValueRef::Float(near), true),
        Some(Ordering::Less) => exact_or_above(ValueRef::Float(near), false),
        Some(Ordering::Greater) => exact_or_above(ValueRef::Float(near.next_down()), false),
        None => Fit::Never,
    }
}

/// A date or datetime as a datetime.
fn moment(datum: &Datum) -> Option<DateTime> {
    match datum {
        Datum::Date(packed) => {
            let date = Date::unpack(*packed);
            Some(DateTime { date, hour: 0, minute: 0, second: 0, microsecond: 0 })
        }
        Datum::DateTime(packed) => Some(DateTime::unpack(*packed)),
        _ => None,
    }
}

fn date<'a>(moment: DateTime) -> Fit<'a> {
    let midnight = DateTime { hour: 0, minute: 0, second: 0, microsecond: 0, ..moment };
    exact_or_above(ValueRef::Temporal(moment.date.pack()), midnight == moment)
}

/// Microseconds of the last digit of a fraction.
fn step(fsp: u8) -> i64 {
    10_i64.pow(6 - u32::from(fsp.min(6)))
}

fn date_time<'a>(moment: DateTime, fsp: u8) -> Fit<'a> {
    let microsecond = moment.microsecond - moment.microsecond % step(fsp) as u32;
    let cut = DateTime { microsecond, ..moment };
    exact_or_above(ValueRef::Temporal(cut.pack()), cut == moment)
}

/// A number of microseconds, cut to a fraction's digits.
fn cut<'a>(microseconds: i64, fsp: u8) -> Fit<'a> {
    let cut = microseconds - microseconds.rem_euclid(step(fsp));
    exact_or_above(ValueRef::Temporal(cut), cut == microseconds)
}

fn timestamp<'a>(moment: DateTime, fsp: u8, context: &EvaluationContext) -> Fit<'a> {
    const GREATEST_US: i64 = crate::types::time_zone::MAX_TIMESTAMP_US;
    if moment == DateTime::default() {
        return exact_or_above(ValueRef::Temporal(0), true);
    }
    match context.time_zone.to_timestamp_us(moment) {
        Some(..1) => Fit::Above(Fitted::Value(ValueRef::Temporal(0))),
        Some(instant) if instant > GREATEST_US => Fit::AboveAll,
        Some(instant) => cut(instant, fsp),
        None => Fit::Never,
    }
}
