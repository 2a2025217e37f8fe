//! Parts of dates and times: `YEAR`, `WEEK`, `HOUR`, `EXTRACT`, `DAYNAME`, …

use firn_format::value::{Date, DateTime, Time};
use firn_sql_types::calendar::{self, WeekMode};
use firn_sql_types::error::Result;
use firn_sql_types::temporal::interval::IntervalUnit as Unit;
use firn_sql_types::temporal::parse::{DateRules, parse_date_time, time_of_day};
use firn_sql_types::{Datum, SqlType};

use super::value::{
    complete, constant_unit, date, date_of_long_months, date_time, date_time_of_long_months, fuzzy,
    may_be_moment, time, truncated, unit,
};
use crate::arguments::{int, shown, word};
use crate::signature::{self, Want, bigint, fixed};
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("YEAR", 1..=1, [Temporal] => signature::year, |a: &[Datum], call: &Call<'_>| {
        let year = fuzzy_part(a, call, |value| value.date.year.into());
        Ok(match year {
            Datum::Int(year) => Datum::UInt(year as u64),
            other => other,
        })
    }),
    strict!("QUARTER", 1..=1, [Temporal] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(fuzzy_part(a, call, quarter))
    }),
    strict!("MONTH", 1..=1, [Temporal] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(fuzzy_part(a, call, |value| value.date.month.into()))
    }),
    strict!("DAYOFMONTH", 1..=1, [Temporal] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(fuzzy_part(a, call, |value| value.date.day.into()))
    }),
    strict!("DAYOFYEAR", 1..=1, [Temporal] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(complete_part(a, call, |value| calendar::day_of_year(value.date)))
    }),
    strict!("DAYOFWEEK", 1..=1, [Temporal] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(complete_part(a, call, |value| i64::from(weekday(value) + 1) % 7 + 1))
    }),
    strict!("WEEKDAY", 1..=1, [Temporal] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(complete_part(a, call, |value| weekday(value).into()))
    }),
    lenient!("WEEK", 1..=2, [Temporal, Int] => signature::int, week)
        .needing(|before| before.first().is_none_or(may_be_moment)),
    strict!("WEEKOFYEAR", 1..=1, [Temporal] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(complete_part(a, call, |value| calendar::week(value.date, WeekMode::new(3)).1.into()))
    }),
    lenient!("YEARWEEK", 1..=2, [Temporal, Int] => signature::int, year_week)
        .needing(|before| before.first().is_none_or(may_be_moment)),
    strict!("HOUR", 1..=1, [Clock] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(time_part(a, call, |value| value.hours.into()))
    }),
    strict!("MINUTE", 1..=1, [Clock] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(time_part(a, call, |value| value.minutes.into()))
    }),
    strict!("SECOND", 1..=1, [Clock] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(time_part(a, call, |value| value.seconds.into()))
    }),
    strict!("MICROSECOND", 1..=1, [Clock] => signature::int, |a: &[Datum], call: &Call<'_>| {
        Ok(time_part(a, call, |value| value.microseconds.into()))
    }),
    strict!("DAYNAME", 1..=1, [Temporal] => signature::text::<9>, |a: &[Datum], call: &Call<'_>| {
        let value = date(a, 0, call, complete(call));
        Ok(value.map_or(Datum::Null, |value| Datum::text(WEEKDAYS[usize::from(weekday(value))])))
    }),
    strict!("MONTHNAME", 1..=1, [Temporal] => signature::text::<9>, |a: &[Datum], call: &Call<'_>| {
        let value = date_of_long_months(a, 0, call, fuzzy(call));
        let month = value.and_then(|value| usize::from(value.date.month).checked_sub(1));
        Ok(month.and_then(|month| MONTHS.get(month)).map_or(Datum::Null, |name| Datum::text(*name)))
    }),
    strict!("EXTRACT", 2..=2, resolve_extract, extract).shaped_by(&[0]),
];

/// `HHMMSS` of the largest time.
const LARGEST_TIME_NUMBER: i64 = 8_385_959;
/// The days of a week, from Monday.
pub(super) const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Days from Monday.
pub(super) fn weekday(value: DateTime) -> u8 {
    calendar::weekday(calendar::day_number(value.date))
}

fn quarter(value: DateTime) -> i64 {
    (i64::from(value.date.month) + 2) / 3
}

fn fuzzy_part(a: &[Datum], call: &Call<'_>, part: impl FnOnce(DateTime) -> i64) -> Datum {
    let value = date_of_long_months(a, 0, call, fuzzy(call));
    value.map_or(Datum::Null, |value| Datum::Int(part(value)))
}

fn complete_part(a: &[Datum], call: &Call<'_>, part: impl FnOnce(DateTime) -> i64) -> Datum {
    date(a, 0, call, complete(call)).map_or(Datum::Null, |value| Datum::Int(part(value)))
}

fn time_part(a: &[Datum], call: &Call<'_>, part: impl FnOnce(Time) -> i64) -> Datum {
    time(a, 0, call).map_or(Datum::Null, |value| Datum::Int(part(value)))
}

fn week(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let default = i64::from(call.context.default_week_format);
    let mode = a.get(1).map_or(default, int);
    Ok(complete_part(a, call, |value| match a.get(1) {
        // MySQL makes nothing of a week without a mode.
        Some(Datum::Null) => 0,
        // A negative mode is none.
        _ => {
            calendar::week(value.date, WeekMode::new(if mode < 0 { 0 } else { mode & 7 })).1.into()
        }
    }))
}

/// Year and week, each week belonging to one year.
fn year_week(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let mode = a.get(1).map_or(0, int);
    Ok(complete_part(a, call, |value| {
        if a.get(1).is_some_and(Datum::is_null) {
            return 0;
        }
        let mode = if mode < 0 { 0 } else { mode & 7 | 2 };
        let (year, week) = calendar::week(value.date, WeekMode::new(mode));
        i64::from(year) * 100 + i64::from(week)
    }))
}

fn is_date_unit(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::Year | Unit::YearMonth | Unit::Quarter | Unit::Month | Unit::Week | Unit::Day
    )
}

fn resolve_extract(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let of = match constant_unit(context, 0) {
        Some(unit) if !is_date_unit(unit) => Want::Clock,
        _ => Want::Temporal,
    };
    fixed(types, context, &[Want::Text, of], bigint)
}

fn extract(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let unit = unit(&a[0])?;
    if is_date_unit(unit) {
        let value = date_time_of_long_months(a, 1, call, fuzzy(call));
        return Ok(value.map_or(Datum::Null, |value| Datum::Int(date_part(unit, value, call))));
    }
    let of_date = match &a[1] {
        Datum::Text(octets) if is_surely_date(octets) => {
            let Some(value) = date_time(a, 1, call, fuzzy(call)) else { return Ok(Datum::Null) };
            Some(value)
        }
        Datum::Text(octets) if are_digits_of_date(octets) => {
            let Some(value) = date_time(a, 1, call, fuzzy(call)) else { return Ok(Datum::Null) };
            Some(value)
        }
        // The 64 bits of an unsigned number are read as a signed one.
        Datum::Int(_) | Datum::UInt(_) if word(&a[1]).cast_signed() > LARGEST_TIME_NUMBER => {
            let value = date_time_of_long_months(a, 1, call, fuzzy(call));
            let Some(value) = value else { return Ok(Datum::Null) };
            Some(value)
        }
        Datum::Int(_) | Datum::UInt(_) | Datum::Decimal(_) | Datum::Double(_)
            if is_number_of_date(&a[1]) =>
        {
            let Some(value) = date_of_long_months(a, 1, call, fuzzy(call)) else {
                return Ok(Datum::Null);
            };
            warn_of_fraction(&a[1], call);
            Some(value)
        }
        Datum::Text(octets) => {
            let parsed = parse_date_time(octets, fuzzy(call)).value;
            parsed
                .filter(|written| written.has_time && parsed_like_date(octets))
                .map(|w| w.date_time)
        }
        Datum::DateTime(packed) => Some(DateTime::unpack(*packed)),
        Datum::Date(packed) => {
            Some(DateTime { date: Date::unpack(*packed), ..DateTime::default() })
        }
        _ => None,
    };
    let (days, value) = match of_date {
        Some(value) => (i64::from(value.date.day), Some(time_of_day(value))),
        None => (0, time(a, 1, call)),
    };
    Ok(value.map_or(Datum::Null, |value| Datum::Int(clock_part(unit, days, value))))
}

/// Whether a text cannot be a time.
fn is_surely_date(text: &[u8]) -> bool {
    text.iter().filter(|byte| matches!(byte, b'-' | b'/')).count() >= 2
}

/// Whether a number is a date by its digits. One of fewer digits is a time.
fn is_number_of_date(number: &Datum) -> bool {
    const MOST: usize = 8;
    let text = shown(number);
    text.bytes().take_while(u8::is_ascii_digit).count() <= MOST
        && are_digits_of_date(text.as_bytes())
}

/// Warns of the fraction of a number that is read as a date.
fn warn_of_fraction(number: &Datum, call: &Call<'_>) {
    let text = shown(number);
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    if fraction.bytes().any(|digit| digit != b'0') {
        truncated("date", number, call);
    }
}

/// Whether a text consists of the digits of a date, with a fraction or without.
fn are_digits_of_date(text: &[u8]) -> bool {
    const FEWEST: usize = 5;
    let whole = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let fraction = text[whole..].strip_prefix(b".").unwrap_or(&text[whole..]);
    let rules = DateRules { allow_invalid_dates: true, ..DateRules::LENIENT };
    whole >= FEWEST
        && fraction.iter().all(u8::is_ascii_digit)
        && parse_date_time(text, rules).value.is_some()
}

/// Whether a text that may be a date and time looks like one: the date has its delimiters.
fn parsed_like_date(text: &[u8]) -> bool {
    text.iter().filter(|byte| matches!(byte, b'-' | b'/' | b'.')).count() >= 2 || text.len() >= 12
}

fn date_part(unit: Unit, value: DateTime, call: &Call<'_>) -> i64 {
    let date = value.date;
    match unit {
        Unit::Year => date.year.into(),
        Unit::YearMonth => i64::from(date.year) * 100 + i64::from(date.month),
        Unit::Quarter => quarter(value),
        Unit::Month => date.month.into(),
        Unit::Day => date.day.into(),
        _ => {
            let mode = WeekMode::new(call.context.default_week_format.into());
            calendar::week(date, mode).1.into()
        }
    }
}

fn clock_part(unit: Unit, days: i64, value: Time) -> i64 {
    let (hours, minutes) = (i64::from(value.hours), i64::from(value.minutes));
    let (seconds, microseconds) = (i64::from(value.seconds), i64::from(value.microseconds));
    let hour_minute = hours * 100 + minutes;
    let hour_second = hour_minute * 100 + seconds;
    let magnitude = match unit {
        Unit::Hour => hours,
        Unit::Minute => minutes,
        Unit::Second => seconds,
        Unit::Microsecond => microseconds,
        Unit::DayHour => days * 100 + hours,
        Unit::DayMinute => days * 10_000 + hour_minute,
        Unit::DaySecond => days * 1_000_000 + hour_second,
        Unit::DayMicrosecond => (days * 1_000_000 + hour_second) * 1_000_000 + microseconds,
        Unit::HourMinute => hour_minute,
        Unit::HourSecond => hour_second,
        Unit::HourMicrosecond => hour_second * 1_000_000 + microseconds,
        Unit::MinuteSecond => minutes * 100 + seconds,
        Unit::MinuteMicrosecond => (minutes * 100 + seconds) * 1_000_000 + microseconds,
        Unit::SecondMicrosecond => seconds * 1_000_000 + microseconds,
        _ => 0,
    };
    if value.negative { -magnitude } else { magnitude }
}
