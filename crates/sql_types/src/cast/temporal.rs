//! Anything to dates, times and years.

use firn_format::value::{Date, DateTime, Time};

use crate::calendar;
use crate::context::EvaluationContext;
use crate::datum::Datum;
use crate::decimal::{Decimal, Rounding};
use crate::error::{Condition, Level, Result};
use crate::json::JsonValue;
use crate::moment_text;
use crate::sql_mode::SqlMode;
use crate::sql_type::{SqlType, TypeKind};
use crate::temporal::delimiter::{self, Delimiter};
use crate::temporal::parse::{
    self, DateRules, Fault, Parsed, WrittenDateTime, date_time_from_number, parse_date_time,
    parse_time, time_from_number,
};
use crate::temporal::round::{add_microseconds, round_date_time, round_time, time_from_us};

use super::number::{Number, invalid_json, number_of, plain_type, whole_number};
use super::{shown, truncated};

const CODE_INCORRECT: u16 = 1292;
const CODE_NO_VALUE: u16 = 1525;
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// A value as a date and time, with its fault, under rules for zero dates.
pub(super) fn read_date_time(
    datum: &Datum,
    from: &SqlType,
    rules: DateRules,
    ctx: &EvaluationContext,
) -> Parsed<DateTime> {
    let good = |value| Parsed { value: Some(value), fault: None };
    match (datum, number_of(datum, from)) {
        (Datum::Date(packed), _) => good(at_midnight(Date::unpack(*packed))),
        (Datum::DateTime(packed), _) => good(DateTime::unpack(*packed)),
        (Datum::Time(packed), _) => Parsed { value: on_current_date(*packed, ctx), fault: None },
        (Datum::UInt(year), _) if from.kind == TypeKind::Year => {
            good(at_midnight(Date { year: *year as u16, month: 1, day: 1 }))
        }
        (Datum::Text(text), _) => local(parse_date_time(text, rules), ctx),
        (Datum::Json(json), _) => match json_inner(json) {
            Some(inner) if !matches!(inner, Datum::Time(_)) => {
                read_date_time(&inner, &plain_type(&inner), rules, ctx)
            }
            _ => Parsed { value: None, fault: Some(Fault::Truncated) },
        },
        (_, Some(number)) => read_number(&number, rules),
        (_, None) => Parsed { value: None, fault: None },
    }
}

pub(super) fn at_midnight(date: Date) -> DateTime {
    DateTime { date, ..DateTime::default() }
}

fn json_inner(json: &JsonValue) -> Option<Datum> {
    match json {
        JsonValue::String(text) => Some(Datum::text(&**text)),
        JsonValue::Date(packed) => Some(Datum::Date(*packed)),
        JsonValue::Time(packed) => Some(Datum::Time(*packed)),
        JsonValue::DateTime(packed) => Some(Datum::DateTime(*packed)),
        _ => None,
    }
}

/// A time on the day of the statement.
fn on_current_date(time_us: i64, ctx: &EvaluationContext) -> Option<DateTime> {
    let now = ctx.time_zone.to_local(ctx.statement_time_us)?;
    add_microseconds(at_midnight(now.date), time_us)
}

/// The date of a time: the statement's own for a time of day. A negative time, or one of more than
/// a day, is added to the moment of the statement, not to its midnight, as in MySQL.
#[must_use]
pub fn date_of_time(time_us: i64, ctx: &EvaluationContext) -> Option<Date> {
    let now = ctx.time_zone.to_local(ctx.statement_time_us)?;
    if (0..calendar::MICROSECONDS_PER_DAY).contains(&time_us) {
        return Some(now.date);
    }
    add_microseconds(DateTime { microsecond: 0, ..now }, time_us).map(|moment| moment.date)
}

/// A value written with an offset, in the session's time zone.
fn local(parsed: Parsed<WrittenDateTime>, ctx: &EvaluationContext) -> Parsed<DateTime> {
    let Some(written) = parsed.value else { return Parsed { value: None, fault: parsed.fault } };
    let Some(offset_seconds) = written.offset_seconds else {
        return Parsed { value: Some(written.date_time), fault: parsed.fault };
    };
    let shift_us = i64::from(offset_seconds) * MICROSECONDS_PER_SECOND;
    let instant = calendar::unix_us(written.date_time).map(|local_us| local_us - shift_us);
    let value = instant.and_then(|instant| ctx.time_zone.to_local(instant));
    let fault = parsed.fault.or(value.is_none().then_some(Fault::OutOfRange));
    Parsed { value, fault }
}

fn read_number(number: &Number, rules: DateRules) -> Parsed<DateTime> {
    let (whole, microseconds) = split_fraction(number, rules);
    let parsed = date_time_from_number(whole, rules);
    let Some(written) = parsed.value else {
        // Nothing before zero is a date, however close to it.
        let fault = if microseconds < 0 { Some(Fault::OutOfRange) } else { parsed.fault };
        return Parsed { value: None, fault };
    };
    if microseconds < 0 {
        return Parsed { value: None, fault: Some(Fault::OutOfRange) };
    }
    // A number with only a day has no fraction of a second.
    match written.has_time {
        true => {
            Parsed { value: add_microseconds(written.date_time, microseconds), fault: parsed.fault }
        }
        false => Parsed {
            value: Some(written.date_time),
            fault: parsed.fault.or((microseconds > 0).then_some(Fault::Truncated)),
        },
    }
}

/// The whole part and the microseconds of a number, both with its sign.
fn split_fraction(number: &Number, rules: DateRules) -> (i64, i64) {
    let exact = match number {
        Number::Signed(number) => return (*number, 0),
        // Like MySQL, with its 64 bits as a signed number.
        Number::Unsigned(number) => return (*number as i64, 0),
        Number::Double(number) => Decimal::from_double(*number),
        Number::Exact(number) => Some(*number),
    };
    let rounding = if rules.truncate_fraction { Rounding::Truncate } else { Rounding::HalfUp };
    let micro = exact.and_then(|exact| exact.multiply(&Decimal::from(MICROSECONDS_PER_SECOND)));
    let micro = micro.and_then(|micro| micro.round(0, rounding)).and_then(|micro| micro.to_i128());
    let is_negative = match number {
        Number::Double(number) => *number < 0.0,
        Number::Exact(number) => number.is_negative(),
        _ => false,
    };
    let micro = micro.unwrap_or(if is_negative { i128::MIN } else { i128::MAX });
    let unit = i128::from(MICROSECONDS_PER_SECOND);
    let end = if micro < 0 { i64::MIN } else { i64::MAX };
    (i64::try_from(micro / unit).unwrap_or(end), (micro % unit) as i64)
}

/// Whether a number has digits of a date before those of a time.
pub(super) fn has_date_digits(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> bool {
    let rules = DateRules::lenient_in_mode(ctx.sql_mode);
    let whole = number_of(datum, from).map(|number| split_fraction(&number, rules).0);
    whole.is_some_and(|whole| whole >= parse::SMALLEST_DATE_TIME)
}

/// A value as a time, with its fault.
pub(super) fn read_time(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Parsed<Time> {
    let rules = DateRules::lenient_in_mode(ctx.sql_mode);
    let good = |value| Parsed { value: Some(value), fault: None };
    match (datum, number_of(datum, from)) {
        (Datum::Date(_), _) => good(Time::default()),
        (Datum::DateTime(packed), _) => good(parse::time_of_day(DateTime::unpack(*packed))),
        (Datum::Time(packed), _) => good(Time::unpack(*packed)),
        (Datum::UInt(_), _) if from.kind == TypeKind::Year => good(Time::default()),
        (Datum::Text(text), _) => parse_time(text, rules),
        (Datum::Json(json), _) => match json_inner(json) {
            Some(inner) if !matches!(inner, Datum::Date(_) | Datum::DateTime(_)) => {
                read_time(&inner, &plain_type(&inner), ctx)
            }
            _ => Parsed { value: None, fault: Some(Fault::Truncated) },
        },
        (_, Some(number)) => {
            let (whole, microseconds) = split_fraction(&number, rules);
            let parsed = time_from_number(whole);
            let exact = parsed.value.map(|time| time_from_us(time.pack() + microseconds));
            let fault = parsed.fault.or(exact.and_then(|exact| exact.fault));
            Parsed { value: exact.and_then(|exact| exact.value), fault }
        }
        (_, None) => Parsed { value: None, fault: None },
    }
}

/// To a `DATE`; `None`, with a warning, for an invalid one.
///
/// # Errors
/// 1292 in a strict statement that stores.
pub fn to_date(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Result<Option<Date>> {
    if let Some((moment, ty)) = moment_text::made_moment(datum, from) {
        return to_date(&moment, &ty, ctx);
    }
    if let Datum::Time(time_us) = datum {
        return Ok(date_of_time(*time_us, ctx));
    }
    let rules = DateRules::from_mode(ctx.sql_mode);
    let parsed = match date_of_number(datum, from, rules) {
        Some(parsed) => parsed.map(at_midnight),
        None => read_date_time(datum, from, rules, ctx),
    };
    Ok(reported(parsed, "date", datum, from, ctx)?.map(|value| value.date))
}

/// The date that the whole part of a number names, with its fault; `None` for what is no number.
#[must_use]
pub fn date_of_number(datum: &Datum, from: &SqlType, rules: DateRules) -> Option<Parsed<Date>> {
    let is_number = match datum {
        Datum::Int(_) | Datum::UInt(_) => from.kind != TypeKind::Year,
        datum => matches!(datum, Datum::Double(_) | Datum::Decimal(_)),
    };
    let number = number_of(datum, from).filter(|_| is_number)?;
    let whole = split_fraction(&number, DateRules { truncate_fraction: true, ..rules }).0;
    Some(parse::date_from_number(whole, rules))
}

/// To a `DATETIME(fsp)`; `None`, with a warning, for an invalid one.
///
/// # Errors
/// 1292 in a strict statement that stores.
pub fn to_date_time(
    datum: &Datum,
    from: &SqlType,
    fsp: u8,
    ctx: &EvaluationContext,
) -> Result<Option<DateTime>> {
    if let Some((moment, ty)) = moment_text::made_moment(datum, from) {
        return to_date_time(&moment, &ty, fsp, ctx);
    }
    let parsed = read_date_time(datum, from, DateRules::from_mode(ctx.sql_mode), ctx);
    let value = reported(parsed, "datetime", datum, from, ctx)?;
    let truncate = ctx.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL);
    Ok(value.and_then(|value| {
        let rounded = round_date_time(value, fsp, truncate)?;
        // No second is added to a date without a month or a day.
        let is_complete = value.date.month > 0 && value.date.day > 0;
        let second = |of: DateTime| DateTime { microsecond: 0, ..of };
        (is_complete || second(rounded) == second(value)).then_some(rounded)
    }))
}

fn reported(
    parsed: Parsed<DateTime>,
    kind: &str,
    datum: &Datum,
    from: &SqlType,
    ctx: &EvaluationContext,
) -> Result<Option<DateTime>> {
    if parsed.value.is_some()
        && let Some(text) = written_text(datum)
    {
        warn_of_delimiter(text, delimiter::in_date_time(text), 1, ctx);
    }
    let is_bad = parsed.fault.is_some() || parsed.value.is_none();
    if is_bad && matches!(datum, Datum::Json(_)) {
        invalid_json(&kind.to_ascii_uppercase(), ctx)?;
        return Ok(parsed.value);
    }
    match (parsed.value, parsed.fault) {
        (Some(_), Some(_)) => truncated(kind, datum, from, ctx)?,
        (None, _) => {
            let prefix = match kind {
                "date" if !matches!(datum, Datum::Int(_) | Datum::UInt(_)) => {
                    "Truncated incorrect date"
                }
                _ => "Incorrect datetime",
            };
            ctx.bad_value(CODE_INCORRECT, || format!("{prefix} value: '{}'", shown(datum, from)))?;
        }
        (Some(_), None) => {}
    }
    Ok(parsed.value)
}

/// To a `TIME(fsp)`; `None`, with a warning, for an invalid one.
///
/// # Errors
/// 1292 in a strict statement that stores.
pub fn to_time(
    datum: &Datum,
    from: &SqlType,
    fsp: u8,
    ctx: &EvaluationContext,
) -> Result<Option<Time>> {
    if let Some((moment, ty)) = moment_text::made_moment(datum, from) {
        return to_time(&moment, &ty, fsp, ctx);
    }
    let parsed = read_time(datum, from, ctx);
    if let Some(text) = written_text(datum) {
        warn_of_delimiter(text, delimiter::in_time(text, parsed.value.is_some()), 1, ctx);
    }
    if parsed.fault.is_some() || parsed.value.is_none() {
        match datum {
            Datum::Json(_) => invalid_json("TIME", ctx)?,
            _ => truncated("time", datum, from, ctx)?,
        }
    }
    let truncate = ctx.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL);
    // A number that is too large is not a time, whereas such a text is the largest time.
    let is_number = number_of(datum, from).is_some();
    let value = parsed.value.filter(|_| !is_number || parsed.fault.is_none());
    Ok(value.map(|value| round_time(value, fsp, truncate)))
}

/// Warns of a delimiter in the text of a date or time of a row, once for a text that is read again
/// and again.
pub fn warn_of_delimiter(
    text: &[u8],
    delimiter: Option<Delimiter>,
    row: u64,
    ctx: &EvaluationContext,
) {
    let Some(delimiter) = delimiter else { return };
    let (code, message) = (delimiter.code(), || delimiter.message(text, row));
    let is_told = |last: &Condition| {
        last.code == code && last.message.contains(&*String::from_utf8_lossy(text))
    };
    if row > 1 || !ctx.was_last(is_told) {
        ctx.push(Level::Warning, code, message);
    }
}

/// The text of a value that is read as a date or time: its own, or that of a document's string.
fn written_text(datum: &Datum) -> Option<&[u8]> {
    match datum {
        Datum::Json(json) => match &**json {
            JsonValue::String(text) => Some(text.as_bytes()),
            _ => None,
        },
        datum => datum.as_bytes(),
    }
}

/// To a `YEAR`; `None`, with a warning, for an invalid one.
///
/// # Errors
/// 1292 in a strict statement that stores.
pub fn to_year(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Result<Option<u64>> {
    let year = match datum {
        Datum::Date(packed) => Some(u64::from(Date::unpack(*packed).year)),
        Datum::DateTime(packed) => Some(u64::from(DateTime::unpack(*packed).date.year)),
        Datum::Time(_) => {
            ctx.time_zone.to_local(ctx.statement_time_us).map(|now| now.date.year.into())
        }
        _ => {
            let text = datum.as_bytes().filter(|_| from.kind.is_string());
            if text.is_some_and(|text| !has_number(text) || is_beyond_years(text)) {
                ctx.bad_value(CODE_NO_VALUE, || {
                    format!("Incorrect YEAR value: '{}'", shown(datum, from))
                })?;
                return Ok(None);
            }
            let number = match text.map(whole_number) {
                None => super::to_signed(datum, from, ctx)?,
                Some((number, is_all)) => {
                    if !is_all {
                        truncated("YEAR", datum, from, ctx)?;
                    }
                    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
                }
            };
            let is_four_digits = datum.as_bytes().is_some_and(|text| {
                let text = text.trim_ascii();
                text.len() == 4 && text.iter().all(u8::is_ascii_digit)
            });
            parse::year_from_number(number, from.kind.is_string() && !is_four_digits)
        }
    };
    let year = year.filter(|year| *year == 0 || (1901..=2155).contains(year));
    if year.is_none() {
        truncated("YEAR", datum, from, ctx)?;
    }
    Ok(year)
}

/// Whether the number at the start of a text is none of an unsigned year.
fn is_beyond_years(text: &[u8]) -> bool {
    let number = whole_number(text).0;
    number < 0 || number > i128::from(u64::MAX) || text.trim_ascii_start().starts_with(b"-")
}

/// Whether a text begins with a number.
fn has_number(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    text.get(sign).is_some_and(u8::is_ascii_digit)
}
