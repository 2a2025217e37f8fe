//! Storing a value into a column.

use std::borrow::Cow;

use firn_format::value::{DateTime, IntWidth, Time};
use firn_sql_collation as collation;

use crate::context::{EvaluationContext, StatementKind};
use crate::datum::Datum;
use crate::decimal::{Decimal, Rounding};
use crate::error::{Level, Result, SqlError};
use crate::json::JsonValue;
use crate::number_text::parse_double_prefix;
use crate::sql_mode::SqlMode;
use crate::sql_type::{Members, SqlType, TypeKind};
use crate::temporal::round::{round_date_time, round_time};

use super::number::{Number, double_text, number_of};
use super::{canonical_text, json, shown, store_json, store_temporal, store_text};

const CODE_NULL: u16 = 1048;
const CODE_OUT_OF_RANGE: u16 = 1264;
const CODE_TRUNCATED: u16 = 1265;
const CODE_INCORRECT: u16 = 1366;
const CODE_TOO_LONG: u16 = 1406;
/// The largest ordinal of an enum's member as a number.
const MAX_MEMBERS: u64 = 65_535;

/// The destination of a value, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The column's type.
    pub ty: &'a SqlType,
    /// The column's name.
    pub column: &'a str,
    /// The row's number in the statement, from 1.
    pub row: u64,
    pub ctx: &'a EvaluationContext,
    /// What the value is of.
    pub source: Source,
}

/// The origin of a stored value: MySQL copies a column differently from a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Any expression.
    #[default]
    Expression,
    /// One of several values that is chosen, as in `IFNULL` and `CASE`; dates and times are texts.
    Choice,
    /// A column as such.
    Column,
}

/// What a column of doubles has besides its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloatLimits {
    /// Nothing below 0.
    pub unsigned: bool,
    /// `(M, D)`: at most M digits, D of them after the point.
    pub digits: Option<(u16, u8)>,
}

/// The value to store for a value of another type. In a strict statement, a value that does not fit
/// is an error; otherwise, and with `IGNORE`, it is adjusted, with a warning.
///
/// # Errors
/// 1048, 1264, 1265, 1292, 1366, 1406, 3140 as in MySQL.
pub fn assign(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    if let Datum::Text(text) = datum
        && from.kind.is_text()
        && let Some(plain) = canonical_text::read(text, &target.ty.kind)
    {
        return Ok(plain);
    }
    assign_any(datum, from, target)
}

/// As [`assign`], into a column that may have limits besides its type.
///
/// # Errors
/// As [`assign`].
pub fn assign_within(
    datum: &Datum,
    from: &SqlType,
    target: Target<'_>,
    limits: FloatLimits,
) -> Result<Datum> {
    if !matches!(target.ty.kind, TypeKind::Float | TypeKind::Double)
        || limits == FloatLimits::default()
    {
        return assign(datum, from, target);
    }
    // Digits are rounded before a float loses some.
    let double = SqlType::double().with_nullable(target.ty.nullable);
    let ty = if limits.digits.is_some() { &double } else { target.ty };
    target.within(assign(datum, from, Target { ty, ..target })?, limits)
}

/// As [`assign`], for any value in any form.
pub(super) fn assign_any(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    if datum.is_null() {
        return target.null();
    }
    if let Datum::Json(json) = datum
        && let Some(wanted) = store_json::cast_name(&target.ty.kind)
    {
        return store_json::scalar(json, wanted, target);
    }
    let kind = &target.ty.kind;
    if target.source == Source::Choice
        && from.kind.is_temporal()
        && (kind.is_numeric() || *kind == TypeKind::Year)
    {
        let text = super::text::text_of(datum, from);
        let ty = SqlType::varchar(text.len() as u32, super::UTF8MB4);
        let source = Source::Expression;
        return assign_any(&Datum::Text(text), &ty, Target { source, ..target });
    }
    if from.kind == TypeKind::Year && kind.is_temporal() {
        // What is stored is the number, though a cast makes the year's first day of it.
        return assign_any(datum, &SqlType::bigint_unsigned(), target);
    }
    match kind {
        TypeKind::Null => Ok(Datum::Null),
        TypeKind::Integer { width, unsigned } => target.integer(datum, from, *width, *unsigned),
        TypeKind::Bit { bits } => target.bit(datum, from, *bits),
        TypeKind::Year => store_temporal::year(datum, from, target),
        TypeKind::Decimal { precision, scale, unsigned } => {
            target.decimal(datum, from, (*precision, *scale), *unsigned)
        }
        TypeKind::Float => target.double(datum, from, f32::MAX.into()),
        TypeKind::Double => target.double(datum, from, f64::MAX),
        kind if kind.is_text() => store_text::text(datum, from, target),
        kind if kind.is_binary() => store_text::binary(datum, from, target),
        TypeKind::Date => store_temporal::date(datum, from, target),
        TypeKind::Time { fsp } => store_temporal::time(datum, from, *fsp, target),
        TypeKind::DateTime { fsp } => store_temporal::date_time(datum, from, *fsp, target),
        TypeKind::Timestamp { fsp } => store_temporal::timestamp(datum, from, *fsp, target),
        TypeKind::Enum { members, .. } => target.enumeration(datum, from, members),
        TypeKind::Set { members, .. } => target.set(datum, from, members),
        TypeKind::Json => target.json(datum, from),
        _ => store_text::geometry(datum, from, target),
    }
}

/// The implicit default of a column that has no default, is not set, and cannot be NULL.
#[must_use]
pub fn implicit_default(ty: &SqlType) -> Datum {
    match &ty.kind {
        TypeKind::Null => Datum::Null,
        TypeKind::Integer { unsigned: false, .. } => Datum::Int(0),
        TypeKind::Integer { .. } | TypeKind::Bit { .. } | TypeKind::Year | TypeKind::Set { .. } => {
            Datum::UInt(0)
        }
        TypeKind::Enum { .. } => Datum::UInt(1),
        TypeKind::Decimal { scale, .. } => Datum::Decimal(Decimal::from_unscaled(0, *scale)),
        TypeKind::Float | TypeKind::Double => Datum::Double(0.0),
        TypeKind::Binary { max_bytes } => Datum::text(vec![0; *max_bytes as usize]),
        TypeKind::Date => Datum::Date(0),
        TypeKind::Time { .. } => Datum::Time(0),
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => Datum::DateTime(0),
        TypeKind::Json => Datum::from(JsonValue::Null),
        _ => Datum::text(""),
    }
}

impl Target<'_> {
    /// `… for column 'a' at row 1`
    pub(super) fn place(&self) -> String {
        format!("for column '{}' at row {}", self.column, self.row)
    }

    /// A value that does not fit: an error when strict, otherwise a warning.
    pub(super) fn bad(&self, code: u16, message: &str) -> Result<()> {
        self.ctx.bad_value(code, || format!("{message} {}", self.place()))
    }

    pub(super) fn out_of_range(&self) -> Result<()> {
        self.bad(CODE_OUT_OF_RANGE, "Out of range value")
    }

    pub(super) fn truncated(&self) -> Result<()> {
        self.bad(CODE_TRUNCATED, "Data truncated")
    }

    /// A note that digits or spaces were cut; never an error.
    pub(super) fn truncated_note(&self) {
        self.ctx.push(Level::Note, CODE_TRUNCATED, || format!("Data truncated {}", self.place()));
    }

    /// Too long: an error when strict, otherwise a warning about the truncation.
    pub(super) fn too_long(&self) -> Result<()> {
        let code = if self.ctx.is_strict_write() { CODE_TOO_LONG } else { CODE_TRUNCATED };
        let message = if code == CODE_TOO_LONG { "Data too long" } else { "Data truncated" };
        self.bad(code, message)
    }

    pub(super) fn incorrect(&self, kind: &str, datum: &Datum, from: &SqlType) -> Result<()> {
        self.bad(CODE_INCORRECT, &format!("Incorrect {kind} value: '{}'", shown(datum, from)))
    }

    fn null(&self) -> Result<Datum> {
        if self.ty.nullable {
            return Ok(Datum::Null);
        }
        let message = || format!("Column '{}' cannot be null", self.column);
        let strict =
            self.ctx.sql_mode.is_strict() || self.ctx.statement_kind == StatementKind::Read;
        if strict && self.ctx.statement_kind != StatementKind::WriteIgnore {
            return Err(SqlError::row_refused(CODE_NULL, message()));
        }
        self.ctx.warn(CODE_NULL, message);
        Ok(implicit_default(self.ty))
    }

    fn integer(
        &self,
        datum: &Datum,
        from: &SqlType,
        width: IntWidth,
        unsigned: bool,
    ) -> Result<Datum> {
        let (number, is_truncated) = self.leading_whole_number(datum, from)?;
        let bits = width.bytes() as u32 * 8;
        let (low, high) = match unsigned {
            true => (0, (1_i128 << bits) - 1),
            false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        };
        if !(low..=high).contains(&number) {
            self.out_of_range()?;
        } else if is_truncated {
            self.truncated()?;
        }
        let number = number.clamp(low, high);
        Ok(if unsigned { Datum::UInt(number as u64) } else { Datum::Int(number as i64) })
    }

    /// A number without its fraction, as ordinals of members are computed; `None` for a text.
    fn cut_number(&self, datum: &Datum, from: &SqlType) -> Option<i128> {
        Some(match number_of(datum, from)? {
            Number::Signed(number) => number.into(),
            Number::Unsigned(number) => number.into(),
            Number::Double(number) => (number as i64).into(),
            Number::Exact(number) => {
                nearest_whole(&number.round(0, Rounding::Truncate).unwrap_or(number))
            }
        })
    }

    /// The nearest whole number.
    pub(super) fn whole_number(&self, datum: &Datum, from: &SqlType) -> Result<i128> {
        let (number, is_truncated) = self.leading_whole_number(datum, from)?;
        if is_truncated {
            self.truncated()?;
        }
        Ok(number)
    }

    /// The nearest whole number, and whether a text continues after it.
    fn leading_whole_number(&self, datum: &Datum, from: &SqlType) -> Result<(i128, bool)> {
        let number = match number_of(&without_fraction(datum, self.ctx), from) {
            Some(Number::Signed(number)) => number.into(),
            Some(Number::Unsigned(number)) => number.into(),
            Some(Number::Double(number)) => number.round_ties_even() as i128,
            Some(Number::Exact(number)) => nearest_whole(&number),
            None => {
                let text = datum.as_bytes().unwrap_or_default();
                let parsed = Decimal::parse_prefix(text);
                if parsed.length_bytes == 0 {
                    self.incorrect("integer", datum, from)?;
                    return Ok((nearest_whole(&parsed.number), false));
                }
                let is_truncated = !text[parsed.length_bytes..].trim_ascii().is_empty();
                return Ok((nearest_whole(&parsed.number), is_truncated));
            }
        };
        Ok((number, false))
    }

    fn decimal(
        &self,
        datum: &Datum,
        from: &SqlType,
        digits: (u8, u8),
        unsigned: bool,
    ) -> Result<Datum> {
        let (precision, scale) = digits;
        let (number, fits) = self.exact_number(datum, from)?;
        let largest = Decimal::max(precision, scale);
        let rounded = number.round(scale.into(), Rounding::HalfUp);
        let rounded = rounded.filter(|number| fits && number.fits(precision, scale));
        let stored = match rounded {
            _ if unsigned
                && number.is_negative()
                && rounded.is_none_or(|number| !number.is_zero()) =>
            {
                self.out_of_range()?;
                Decimal::from_unscaled(0, scale)
            }
            Some(rounded) => {
                if rounded != number {
                    self.truncated_note();
                }
                rounded
            }
            None => {
                self.out_of_range()?;
                if number.is_negative() { largest.negate() } else { largest }
            }
        };
        Ok(Datum::Decimal(stored))
    }

    /// The exact number, and whether there is one that is not too large.
    fn exact_number(&self, datum: &Datum, from: &SqlType) -> Result<(Decimal, bool)> {
        Ok(match number_of(datum, from) {
            Some(Number::Signed(number)) => (Decimal::from(number), true),
            Some(Number::Unsigned(number)) => (Decimal::from(number), true),
            Some(Number::Exact(number)) => (number, true),
            Some(Number::Double(number)) => match Decimal::from_double(number) {
                Some(exact) => (exact, true),
                None if number < 0.0 => (Decimal::from(-1_i64), false),
                None => (Decimal::from(1_i64), false),
            },
            None => {
                let text = datum.as_bytes().unwrap_or_default();
                let parsed = Decimal::parse_prefix(text);
                if parsed.length_bytes == 0 {
                    self.incorrect("decimal", datum, from)?;
                } else if !text[parsed.length_bytes..].trim_ascii().is_empty() {
                    match self.ctx.is_strict_write() {
                        true => self.incorrect("decimal", datum, from)?,
                        false => self.truncated_note(),
                    }
                }
                (parsed.number, !parsed.overflow)
            }
        })
    }

    fn double(&self, datum: &Datum, from: &SqlType, largest: f64) -> Result<Datum> {
        let number = match number_of(datum, from) {
            Some(Number::Signed(number)) => number as f64,
            Some(Number::Unsigned(number)) => number as f64,
            Some(Number::Exact(number)) => number.to_double(),
            Some(Number::Double(number)) => number,
            None => {
                let text = datum.as_bytes().unwrap_or_default();
                let parsed = parse_double_prefix(text);
                let rest = text[parsed.length_bytes..].trim_ascii();
                if parsed.overflow {
                    self.out_of_range()?;
                } else if parsed.length_bytes == 0 || !rest.is_empty() {
                    let is_float = self.ty.kind == TypeKind::Float;
                    self.incorrect(if is_float { "FLOAT" } else { "DOUBLE" }, datum, from)?;
                }
                parsed.number
            }
        };
        if number.abs() > largest {
            self.out_of_range()?;
        }
        let number = number.clamp(-largest, largest);
        let is_float = self.ty.kind == TypeKind::Float;
        Ok(Datum::Double(if is_float { f64::from(number as f32) } else { number }))
    }

    /// A double as a column with limits stores it.
    fn within(&self, assigned: Datum, limits: FloatLimits) -> Result<Datum> {
        let Datum::Double(mut number) = assigned else { return Ok(assigned) };
        if limits.unsigned && number < 0.0 {
            self.out_of_range()?;
            number = 0.0;
        }
        let Some((precision, scale)) = limits.digits else { return Ok(Datum::Double(number)) };
        let unit = 10_f64.powi(scale.into());
        let largest = (10_f64.powi(precision.into()) - 1.0) / unit;
        // Halves go to the even neighbour, counted from the whole number below.
        let below = number.floor();
        let rounded = below + ((number - below) * unit).round_ties_even() / unit;
        number = if rounded.is_finite() { rounded } else { number };
        if number.abs() > largest {
            self.out_of_range()?;
            number = largest.copysign(number);
        }
        let is_float = self.ty.kind == TypeKind::Float;
        Ok(Datum::Double(if is_float { f64::from(number as f32) } else { number }))
    }

    fn bit(&self, datum: &Datum, from: &SqlType, bits: u8) -> Result<Datum> {
        let mask = u128::from(u64::MAX >> 64_u32.saturating_sub(bits.into()).min(63));
        let number = match datum {
            Datum::Text(bytes) => number_of_bytes(bytes),
            // As texts, where all bytes count.
            Datum::Date(_) | Datum::Json(_) => number_of_bytes(&super::text::text_of(datum, from)),
            Datum::Double(number) => *number as i64 as u64 as u128,
            _ => {
                let number = self.whole_number(datum, from)?;
                if number < 0 && matches!(datum, Datum::Decimal(_)) {
                    self.out_of_range()?;
                    return Ok(Datum::UInt(0));
                }
                number as i64 as u64 as u128
            }
        };
        if number > mask && self.ctx.sql_mode.is_strict() {
            self.bad(CODE_TOO_LONG, "Data too long")?;
        } else if number > mask {
            self.out_of_range()?;
        }
        Ok(Datum::UInt(number.min(mask) as u64))
    }

    fn enumeration(&self, datum: &Datum, from: &SqlType, members: &Members) -> Result<Datum> {
        let count = (members.names().len() as u64).min(MAX_MEMBERS);
        let by_number =
            |number: i128| u64::try_from(number).ok().filter(|ordinal| *ordinal <= count);
        let ordinal = match self.name_form(datum, from) {
            // The value that stands for no member is the same in each list of members.
            Some(_) if matches!((datum, &from.kind), (Datum::UInt(0), TypeKind::Enum { .. })) => {
                Some(0)
            }
            Some(name) => self.member(&name, members).map(|at| at as u64 + 1).or_else(|| {
                let number = name.to_str_lossy().trim().parse::<i128>().ok();
                number.and_then(by_number)
            }),
            None => self.cut_number(datum, from).and_then(by_number).filter(|ordinal| *ordinal > 0),
        };
        if ordinal.is_none() {
            self.truncated()?;
        }
        Ok(Datum::UInt(ordinal.unwrap_or(0)))
    }

    fn set(&self, datum: &Datum, from: &SqlType, members: &Members) -> Result<Datum> {
        let count = members.names().len().min(64) as u32;
        let mask = u64::MAX.checked_shr(64 - count).unwrap_or(0);
        let Some(names) = self.name_form(datum, from) else {
            let number = self.cut_number(datum, from).unwrap_or_default();
            let bits = number as u64;
            if number < 0 || u128::from(mask) < number as u128 {
                self.truncated()?;
            }
            return Ok(Datum::UInt(bits & mask));
        };
        let (mut bits, mut unknown) = (0, false);
        for name in names.split(|&byte| byte == b',').filter(|_| !names.is_empty()) {
            match self.member(name, members) {
                Some(at) => bits |= 1_u64 << (at & 63),
                None => unknown = true,
            }
        }
        if unknown {
            match names.to_str_lossy().parse::<u64>() {
                Ok(number) if number & !mask == 0 => bits = number,
                _ => self.truncated()?,
            }
        }
        Ok(Datum::UInt(bits))
    }

    /// The text by which a member is looked up; `None` for numbers.
    fn name_form(&self, datum: &Datum, from: &SqlType) -> Option<crate::ByteString> {
        let named = from.kind.is_enum_or_set() || from.kind.is_temporal();
        let is_text = matches!(datum, Datum::Text(_) | Datum::Json(_));
        (named || is_text).then(|| super::text::text_of(datum, from))
    }

    fn member(&self, name: &[u8], members: &Members) -> Option<usize> {
        let collation = self.ty.collation().map(collation::get)?;
        let name = store_text::without_trailing_spaces(name);
        members.names().iter().position(|member| {
            let member = store_text::without_trailing_spaces(member.as_bytes());
            collation.equal(member, name)
        })
    }

    fn json(&self, datum: &Datum, from: &SqlType) -> Result<Datum> {
        match datum {
            Datum::Json(_) => Ok(datum.clone()),
            Datum::Text(_) if from.kind.is_binary() => Err(json::invalid_charset(from)),
            Datum::Text(text) if from.kind.is_text() => {
                Ok(Datum::from(json::parse_for_column(text, self.column)?))
            }
            _ if from.kind.is_enum_or_set() => {
                let name = super::text::text_of(datum, from);
                Ok(Datum::from(json::parse_for_column(&name, self.column)?))
            }
            _ => Err(json::not_a_text(self.column)),
        }
    }
}

/// A date and time, or a time, to the second.
fn without_fraction<'d>(datum: &'d Datum, ctx: &EvaluationContext) -> Cow<'d, Datum> {
    let truncate = ctx.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL);
    match datum {
        Datum::DateTime(packed) => {
            let rounded = round_date_time(DateTime::unpack(*packed), 0, truncate);
            rounded.map_or(Cow::Borrowed(datum), |value| Cow::Owned(Datum::from(value)))
        }
        Datum::Time(packed) => {
            Cow::Owned(Datum::from(round_time(Time::unpack(*packed), 0, truncate)))
        }
        _ => Cow::Borrowed(datum),
    }
}

/// Bytes as one number, most significant first; the largest number if there are too many.
fn number_of_bytes(bytes: &[u8]) -> u128 {
    let significant = bytes.iter().skip_while(|&&byte| byte == 0);
    significant.fold(0, |value: u128, &byte| {
        value.checked_mul(256).map_or(u128::MAX, |value| value | u128::from(byte))
    })
}

/// The nearest whole number; far out of range if it does not fit 128 bits.
fn nearest_whole(number: &Decimal) -> i128 {
    let far = if number.is_negative() { i128::MIN } else { i128::MAX };
    number.to_i128().unwrap_or(far)
}

/// The text of a number in a message about a text column.
pub(super) fn number_text(datum: &Datum, from: &SqlType) -> String {
    match datum {
        Datum::Double(number) => double_text(*number),
        _ => shown(datum, from),
    }
}
