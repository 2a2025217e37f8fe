//! Storing into columns of dates, times and years.

use firn_format::value::{DateTime, Time};

use crate::error::Result;
use crate::types::datum::Datum;
use crate::types::sql_mode::SqlMode;
use crate::types::sql_type::SqlType;
use crate::types::temporal::parse::{DateRules, Fault, Parsed, year_from_number};
use crate::types::temporal::round::{round_date_time, round_time};
use crate::types::time_zone::MAX_TIMESTAMP_US;

use super::assign::{Target, number_text};
use super::temporal::{is_short_text, read_date_time, read_time};

const CODE_INCORRECT: u16 = 1292;
/// The first `TIMESTAMP`; 0 stands for the zero date.
const MIN_TIMESTAMP_US: i64 = 1_000_000;

/// Reports a value that is none of the column's type: an error when strict, otherwise a warning.
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

/// The date and time of a value, after faults have been reported; zero when there is none.
fn read(kind: &str, datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<DateTime> {
    let rules = DateRules::from_mode(target.ctx.sql_mode);
    let mut parsed = read_date_time(datum, from, rules, target.ctx);
    if let (Some(value), None) = (parsed.value, parsed.fault) {
        // Values that are no text come unchecked.
        let fault = rules.fault_of(value.date);
        parsed = Parsed { value: parsed.value.filter(|_| fault.is_none()), fault };
    }
    if let Some(fault) = parsed.fault.or(parsed.value.is_none().then_some(Fault::Truncated)) {
        incorrect(kind, fault, datum, from, target)?;
    }
    Ok(parsed.value.unwrap_or_default())
}

pub(super) fn date(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    let value = read("date", datum, from, target)?;
    if value != super::temporal::at_midnight(value.date) {
        target.truncated_note();
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
        incorrect("datetime", Fault::OutOfRange, datum, from, target)?;
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

/// Whether a local time comes back as another one because it does not exist.
fn is_skipped(local: DateTime, packed: i64) -> bool {
    local.date == DateTime::unpack(packed).date
}

pub(super) fn time(datum: &Datum, from: &SqlType, fsp: u8, target: Target<'_>) -> Result<Datum> {
    let parsed = read_time(datum, from, target.ctx);
    if let Some(fault) = parsed.fault.or(parsed.value.is_none().then_some(Fault::Truncated)) {
        incorrect("time", fault, datum, from, target)?;
    }
    let value: Time = parsed.value.unwrap_or_default();
    Ok(Datum::from(round_time(value, fsp, truncates(target))))
}

pub(super) fn year(datum: &Datum, from: &SqlType, target: Target<'_>) -> Result<Datum> {
    let year = match datum {
        Datum::Date(_) | Datum::DateTime(_) => {
            i128::from(read("year", datum, from, target)?.date.year)
        }
        _ => target.whole_number(datum, from)?,
    };
    let number = i64::try_from(year).unwrap_or(i64::MAX);
    let year = year_from_number(number, is_short_text(datum, from));
    if year.is_none() {
        target.out_of_range()?;
    }
    Ok(Datum::UInt(year.unwrap_or(0)))
}

fn truncates(target: Target<'_>) -> bool {
    target.ctx.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL)
}
