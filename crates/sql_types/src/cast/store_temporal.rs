//! Storing into columns of dates, times and years.

use std::borrow::Cow;

use firn_format::value::{DateTime, Time};

use crate::datum::Datum;
use crate::decimal::{Decimal, Rounding};
use crate::error::Result;
use crate::sql_mode::SqlMode;
use crate::sql_type::SqlType;
use crate::temporal::delimiter;
use crate::temporal::parse::{DateRules, Fault, Parsed, is_time_behind_date, year_from_number};
use crate::temporal::round::{round_date_time, round_time};
use crate::time_zone::MAX_TIMESTAMP_US;

use super::assign::{Source, Target, number_text};
use super::number::to_double;
use super::temporal::{has_date_digits, read_date_time, read_time, warn_of_delimiter};
use super::text::text_of;

const CODE_INCORRECT: u16 = 1292;
/// The first `TIMESTAMP`; 0 stands for the zero date.
const MIN_TIMESTAMP_US: i64 = 1_000_000;

/// Reports a value that is not of the column's type: an error when strict, otherwise a warning.
fn incorrect(
    kind: &str,
    fault: Fault,
    datum: &Datum,
    from: &SqlType,
    target: Target<'_>,
) -> Result<()> {
    if target.ctx.is_strict_write() {
        let value = number_text(datum, from);
        return target.bad(CODE_INCORRECT, &format!("Incorrect {kind} value: '{value}'"));
    }
    match fault {
        Fault::Truncated => target.truncated(),
        Fault::OutOfRange | Fault::ZeroDate | Fault::ZeroInDate => target.out_of_range(),
    }
}

/// The date and time of a value, after faults have been reported; zero if there is none.
fn read(kind: &str, datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<DateTime> {
    let rules = DateRules::from_mode(target.ctx.sql_mode);
    let mut parsed = read_date_time(&as_text_of_member(datum, from), from, rules, target.ctx);
    if let (Some(value), None) = (parsed.value, parsed.fault) {
        // Values that are not text have not been checked.
        let fault = rules.fault_of(value.date);
        parsed = Parsed { value: parsed.value.filter(|_| fault.is_none()), fault };
    }
    if let (Datum::Text(text), Some(_)) = (datum, parsed.value) {
        warn_of_delimiter(text, delimiter::in_date_time(text), target.row, target.ctx);
    }
    if let Some(fault) = parsed.fault.or(parsed.value.is_none().then_some(Fault::Truncated)) {
        let fault = if has_digits_of_date(datum, target) { Fault::Truncated } else { fault };
        incorrect(kind, fault, datum, from, target)?;
    }
    Ok(parsed.value.unwrap_or_default())
}

/// Whether a value is a number whose digits are read as those of a date. One that is none is not
/// out of range.
fn has_digits_of_date(datum: &Datum, target: Target<'_>) -> bool {
    let is_number =
        matches!(datum, Datum::Int(_) | Datum::UInt(_) | Datum::Double(_) | Datum::Decimal(_));
    let largest = i64::MAX as f64;
    is_number
        && to_double(datum, &SqlType::double(), target.ctx)
            .is_ok_and(|number| number >= 1.0 && number < largest)
}

/// Notes that a part of the value does not go into the column.
fn note_cut(kind: &str, datum: &Datum, from: &SqlType, target: Target<'_>) {
    if !target.ctx.is_strict_write() {
        return target.truncated_note();
    }
    target.ctx.note(CODE_INCORRECT, || {
        let value = number_text(datum, from);
        format!("Incorrect {kind} value: '{value}' {}", target.place())
    });
}

pub(super) fn date(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    let value = read("date", datum, from, target)?;
    let value = round_date_time(value, 0, truncates(target)).unwrap_or(value);
    if value != super::temporal::at_midnight(value.date) {
        note_cut("date", datum, from, target);
    }
    Ok(Datum::from(value.date))
}

pub(super) fn date_time(
    datum: &Datum,
    from: &SqlType,
    fsp: u8,
    target: Target<'_>,
) -> Result<Datum> {
    let value = read("datetime", datum, from, target)?;
    match round_date_time(value, fsp, truncates(target)) {
        Some(rounded) => Ok(Datum::from(rounded)),
        None => {
            incorrect("datetime", Fault::OutOfRange, datum, from, target)?;
            Ok(Datum::DateTime(0))
        }
    }
}

pub(super) fn timestamp(
    datum: &Datum,
    from: &SqlType,
    fsp: u8,
    target: Target<'_>,
) -> Result<Datum> {
    let stored = date_time(datum, from, fsp, target)?;
    let Datum::DateTime(packed) = stored else { return Ok(stored) };
    if packed == 0 {
        return Ok(stored);
    }
    let zone = &target.ctx.time_zone;
    let instant = zone.to_timestamp_us(DateTime::unpack(packed));
    let in_range = |instant: &i64| (MIN_TIMESTAMP_US..=MAX_TIMESTAMP_US).contains(instant);
    let Some(instant) = instant.filter(in_range) else {
        let value = DateTime::unpack(packed);
        let is_incomplete = value.date.month == 0 || value.date.day == 0;
        let fault = match is_incomplete && from.kind.is_numeric() {
            true => Fault::Truncated,
            false => Fault::OutOfRange,
        };
        incorrect("datetime", fault, datum, from, target)?;
        return Ok(Datum::DateTime(0));
    };
    // A time that the clocks skipped is stored as the moment of the change.
    match zone.to_local(instant) {
        Some(local) if local.pack() != packed && is_skipped(local, packed) => {
            incorrect("datetime", Fault::OutOfRange, datum, from, target)?;
            Ok(Datum::from(local))
        }
        _ => Ok(stored),
    }
}

/// Whether a local time is converted to another one because it does not exist.
fn is_skipped(local: DateTime, packed: i64) -> bool {
    local.date == DateTime::unpack(packed).date
}

pub(super) fn time(datum: &Datum, from: &SqlType, fsp: u8, target: Target<'_>) -> Result<Datum> {
    let read = as_text_of_member(datum, from);
    if is_blank(&read) {
        return Ok(Datum::Time(0));
    }
    // A cast reads the 64 bits of such a number as a signed one; a column does not.
    let read = match &*read {
        Datum::UInt(number) => Cow::Owned(Datum::UInt((*number).min(i64::MAX as u64))),
        _ => read,
    };
    let parsed = read_time(&read, from, target.ctx);
    if let (Datum::Text(text), Some(_)) = (datum, parsed.value) {
        warn_of_delimiter(text, delimiter::in_time(text, true), target.row, target.ctx);
    }
    if let Some(fault) = parsed.fault.or(parsed.value.is_none().then_some(Fault::Truncated)) {
        incorrect("time", fault, datum, from, target)?;
    }
    let value: Time = parsed.value.unwrap_or_default();
    if parsed.fault.is_none() && says_date(datum, from, target) {
        note_cut("time", datum, from, target);
    }
    Ok(Datum::from(round_time(value, fsp, truncates(target))))
}

/// A text of only spaces is midnight to a column of times.
fn is_blank(datum: &Datum) -> bool {
    matches!(datum, Datum::Text(text) if text.trim_ascii().is_empty())
}

/// Names of members are read as texts, not as their numbers.
fn as_text_of_member<'d>(datum: &'d Datum, from: &SqlType) -> Cow<'d, Datum> {
    match from.kind.is_enum_or_set() {
        true => Cow::Owned(Datum::Text(text_of(datum, from))),
        false => Cow::Borrowed(datum),
    }
}

/// Whether a number or text from which a time was read also has a date.
fn says_date(datum: &Datum, from: &SqlType, target: Target<'_>) -> bool {
    match datum {
        Datum::Text(text) => is_time_behind_date(text),
        Datum::DateTime(_) => false,
        _ => has_date_digits(datum, from, target.ctx),
    }
}

pub(super) fn year(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    let number = match datum {
        Datum::DateTime(_) | Datum::Time(_) if target.source == Source::Column => {
            target.whole_number(datum, from)?
        }
        Datum::Date(_) | Datum::DateTime(_) | Datum::Time(_) => {
            i128::from(read("year", datum, from, target)?.date.year)
        }
        Datum::Double(number) => (*number as i64).into(),
        Datum::Text(text) => return year_of_text(text, datum, from, target),
        _ => target.whole_number(datum, from)?,
    };
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let year = year_from_number(number, false);
    if year.is_none() {
        target.out_of_range()?;
    }
    Ok(Datum::UInt(year.unwrap_or(0)))
}

/// The year of a text: 0 means 2000, unless it is written with four digits.
fn year_of_text(text: &[u8], datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    let parsed = Decimal::parse_prefix(text);
    let number = parsed.number.round(0, Rounding::HalfUp).and_then(|number| number.to_i64());
    let is_none = parsed.length_bytes == 0;
    let is_four_digits = text.trim_ascii().len() == 4;
    let year = year_from_number(number.unwrap_or(i64::MAX), !is_none && !is_four_digits);
    let Some(year) = year else {
        target.out_of_range()?;
        return Ok(Datum::UInt(0));
    };
    if is_none {
        target.incorrect("integer", datum, from)?;
    } else if !text[parsed.length_bytes..].trim_ascii().is_empty() {
        target.truncated()?;
    }
    Ok(Datum::UInt(year))
}

fn truncates(target: Target<'_>) -> bool {
    target.ctx.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL)
}
