//! Converting dates and times from and to numbers, parts and zones.

use firn_format::value::{Date, DateTime};
use firn_sql_types::decimal::Rounding;
use firn_sql_types::error::Result;
use firn_sql_types::temporal::format::date_text;
use firn_sql_types::temporal::parse::MAX_TIME;
use firn_sql_types::{Datum, SqlType, TimeZone, TypeKind, calendar, cast};

use super::value::{
    by_mode, complete, date, date_of_long_months, date_time, date_time_of_long_months,
    date_time_result, fsp_of, fsp_of_read, fsp_of_seconds, fuzzy, is_like_date, moment,
    span_result, time, time_result,
};
use crate::arguments::{decimal, int, shown, text};
use crate::signature::{Want, bigint};
use crate::temporal::format::{format_date_time, in_format};
use crate::{Call, Function, ResolveContext, Signature, Volatility, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("DATE", 1..=1, [Temporal] => date_type, |a: &[Datum], call: &Call<'_>| {
        let value = date(a, 0, call, by_mode(call));
        Ok(value.map_or(Datum::Null, |value| value.date.into()))
    }),
    // A text compared with a date; the binder adds this call.
    strict!("DATE OF TEXT", 1..=1, [Text] => moment_of_first, |a: &[Datum], call: &Call<'_>| {
        let date = cast::cast(&a[0], call.arguments[0], call.result, call.context)?;
        Ok(if date.is_null() { DateTime::default().into() } else { date })
    }),
    // A year beside a date; it then has neither month nor day.
    strict!("DATE OF YEAR", 1..=1, [Any] => moment_of_first, |a: &[Datum], _: &Call<'_>| {
        let Datum::UInt(year) = &a[0] else { return Ok(Datum::Null) };
        let date = Date { year: *year as u16, month: 0, day: 0 };
        Ok(DateTime { date, ..DateTime::default() }.into())
    }),
    // The same for a text beside a column of dates, of which only the day counts.
    strict!("DAY OF TEXT", 1..=1, [Text] => day_of_first, |a: &[Datum], call: &Call<'_>| {
        let date = cast::cast(&a[0], call.arguments[0], call.result, call.context)?;
        Ok(if date.is_null() { Date::default().into() } else { date })
    }),
    // A text that is compared with a time: as far as it is one. One that is none at all is 0 in a
    // list of constants, which the second argument tells, and elsewhere a value that is equal to
    // another such text alone.
    strict!("TIME OF TEXT", 2..=2, [Text, Int] => time_of_first, |a: &[Datum], call: &Call<'_>| {
        let no_time = Datum::Time(if int(&a[1]) == 1 { 0 } else { NO_TIME });
        Ok(time(a, 0, call).map_or(no_time, |value| time_result(value, call)))
    }),
    strict!("TIME", 1..=1, resolve_time, |a: &[Datum], call: &Call<'_>| {
        Ok(time(a, 0, call).map_or(Datum::Null, |value| time_result(value, call)))
    })
    .shaped_by(&[0]),
    strict!("TO_DAYS", 1..=1, [Temporal] => bigint, |a: &[Datum], call: &Call<'_>| {
        let value = date_of_long_months(a, 0, call, complete(call));
        Ok(value.map_or(Datum::Null, |value| Datum::Int(calendar::day_number(value.date))))
    }),
    strict!("TO_SECONDS", 1..=1, [Temporal] => bigint, |a: &[Datum], call: &Call<'_>| {
        let value = date_time(a, 0, call, complete(call));
        Ok(value.map_or(Datum::Null, |value| Datum::Int(to_seconds(value))))
    }),
    strict!("FROM_DAYS", 1..=1, [Int] => date_type, |a: &[Datum], call: &Call<'_>| {
        Ok(from_days(int(&a[0])).unwrap_or_else(|| {
            let days = shown(&a[0]);
            call.context.warn(6527, || format!("DATE value is out of range in 'from_days({days})'"));
            Datum::Null
        }))
    }),
    strict!("LAST_DAY", 1..=1, [Temporal] => date_type, |a: &[Datum], call: &Call<'_>| {
        Ok(date_of_long_months(a, 0, call, fuzzy(call)).map_or(Datum::Null, |v| last_day(v, call)))
    }),
    strict!("MAKEDATE", 2..=2, [Int] => date_type, make_date).in_order(&[1, 0]),
    strict!("MAKETIME", 3..=3, resolve_make_time, make_time).shaped_by(&[2]),
    strict!("SEC_TO_TIME", 1..=1, resolve_seconds_to_time, |a: &[Datum], call: &Call<'_>| {
        Ok(span_result(microseconds(&a[0]), call))
    })
    .shaped_by(&[0]),
    strict!("TIME_TO_SEC", 1..=1, [Clock] => bigint, |a: &[Datum], call: &Call<'_>| {
        Ok(time(a, 0, call).map_or(Datum::Null, |value| Datum::Int(value.pack() / SECOND_US)))
    }),
    lenient!("UNIX_TIMESTAMP", 0..=1, resolve_unix_timestamp, unix_timestamp)
        .volatile(Volatility::Statement)
        .shaped_by(&[0]),
    strict!("FROM_UNIXTIME", 1..=2, resolve_from_unix_time, from_unix_time)
        .reading_before_null()
        .shaped_by(&[0]),
    strict!("CONVERT_TZ", 3..=3, resolve_convert_zone, convert_zone).shaped_by(&[0]),
];

const SECOND_US: i64 = 1_000_000;
/// Beyond the range of `TIME`, in microseconds.
const NO_TIME: i64 = i64::MAX / 2;
/// The end of 3001-01-18 UTC: the last moment that MySQL converts between zones.
const MAX_UNIX_TIME_US: i64 = 32_536_771_199_999_999;

fn date_type(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::new(TypeKind::Date)
}

fn time_of_first(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::new(TypeKind::Time { fsp: 6 })
}

fn moment_of_first(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::new(TypeKind::DateTime { fsp: 6 }).with_nullable(types[0].nullable)
}

fn day_of_first(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::new(TypeKind::Date).with_nullable(types[0].nullable)
}

fn one(types: &[SqlType], want: Want, context: &ResolveContext<'_>, result: TypeKind) -> Signature {
    Signature { arguments: vec![want.of(&types[0], context)], result: SqlType::new(result) }
}

fn resolve_time(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let fsp = fsp_of_read(types, 0, false, context);
    Ok(one(types, Want::Clock, context, TypeKind::Time { fsp }))
}

fn resolve_seconds_to_time(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let fsp = fsp_of_seconds(types, 0, context);
    Ok(one(types, Want::Decimal, context, TypeKind::Time { fsp }))
}

/// Seconds with a fraction, in microseconds; cut to the range of an `i64`.
fn microseconds(seconds: &Datum) -> i64 {
    let product = decimal(seconds).multiply(&SECOND_US.into());
    let whole = product.and_then(|product| product.round(0, Rounding::HalfUp));
    let limit = if decimal(seconds).is_negative() { i64::MIN / 2 } else { i64::MAX / 2 };
    whole.and_then(|whole| whole.to_i64()).unwrap_or(limit).clamp(i64::MIN / 2, i64::MAX / 2)
}

/// As [`microseconds`], with a warning for more digits than MySQL converts.
fn counted_microseconds(seconds: &Datum, call: &Call<'_>) -> i64 {
    const TOO_MANY: u64 = 10_u64.pow(18);
    let whole = decimal(seconds).round(0, Rounding::Truncate).and_then(|whole| whole.to_i64());
    if whole.is_none_or(|whole| whole.unsigned_abs() >= TOO_MANY) {
        call.context
            .warn(1292, || format!("Truncated incorrect DECIMAL value: '{}'", shown(seconds)));
    }
    microseconds(seconds)
}

fn to_seconds(value: DateTime) -> i64 {
    let seconds = calendar::time_of_day_us(value) / SECOND_US;
    calendar::day_number(value.date) * 86_400 + seconds
}

/// Numbers up to 365 are in the year 0, which has no 29th of February here.
fn from_days(day_number: i64) -> Option<Datum> {
    if !(1..=365).contains(&day_number) {
        let date = calendar::date_of_day_number(day_number).filter(|_| day_number > 0);
        return date.map(Datum::from);
    }
    let mut day = day_number;
    let month = (1..=12).find(|month| {
        let days = i64::from(calendar::days_in_month(1, *month));
        let is_found = day <= days;
        day -= if is_found { 0 } else { days };
        is_found
    });
    month.map(|month| Date { year: 0, month, day: day as u8 }.into())
}

fn make_date(a: &[Datum], _: &Call<'_>) -> Result<Datum> {
    let (year, day) = (int(&a[0]), int(&a[1]));
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    };
    if !(0..=9999).contains(&year) || day <= 0 {
        return Ok(Datum::Null);
    }
    let first = calendar::day_number(Date { year: year as u16, month: 1, day: 1 });
    let date = first.checked_add(day - 1).and_then(calendar::date_of_day_number);
    Ok(date.map_or(Datum::Null, Datum::from))
}

fn resolve_make_time(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let arguments = vec![
        Want::Int.of(&types[0], context),
        Want::Int.of(&types[1], context),
        Want::Decimal.of(&types[2], context),
    ];
    let result = SqlType::new(TypeKind::Time { fsp: fsp_of_seconds(types, 2, context) });
    Ok(Signature { arguments, result })
}

fn make_time(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let (hours, minutes, second_us) = (int(&a[0]), int(&a[1]), counted_microseconds(&a[2], call));
    if !(0..60).contains(&minutes) || !(0..60 * SECOND_US).contains(&second_us) {
        return Ok(Datum::Null);
    }
    let most_hours = i64::from(MAX_TIME.hours) + 1;
    let magnitude = hours.unsigned_abs().min(most_hours as u64) as i64 * 3600 + minutes * 60;
    let span_us = magnitude * SECOND_US + second_us;
    Ok(span_result(if hours < 0 { -span_us } else { span_us }, call))
}

fn resolve_unix_timestamp(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    if types.is_empty() {
        return Ok(Signature { arguments: Vec::new(), result: SqlType::bigint().not_null() });
    }
    // The digits of a text that does not even look like a date are unknown.
    let is_unreadable = types[0].kind.is_text()
        && context.constant(0).and_then(Datum::as_bytes).is_some_and(|text| !is_like_date(text));
    let result = match if is_unreadable { 6 } else { fsp_of(types, 0, context) } {
        0 => SqlType::bigint(),
        fsp => SqlType::decimal(12 + fsp, fsp),
    };
    // A document that is no date is the second 0, and not NULL.
    let argument = match types[0].kind {
        TypeKind::Json => types[0].clone(),
        _ => Want::Temporal.of(&types[0], context),
    };
    Ok(Signature { arguments: vec![argument], result })
}

/// The last day of a moment's month; the day itself may be 0.
fn last_day(value: DateTime, call: &Call<'_>) -> Datum {
    let last = calendar::last_day(value.date).filter(|_| value.date.month > 0);
    if last.is_none() {
        let shown = date_text(value.date);
        call.context.warn(1292, || format!("Truncated incorrect date value: '{shown}'"));
    }
    last.map_or(Datum::Null, Datum::from)
}

fn unix_timestamp(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    if a.is_empty() {
        return Ok(Datum::Int((call.context.statement_time_us / SECOND_US).max(0)));
    }
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let value = match &a[0] {
        Datum::Json(_) => cast::to_date_time(&a[0], call.arguments[0], 6, call.context)?,
        _ => date_time_of_long_months(a, 0, call, fuzzy(call)),
    };
    let Some(value) = value else {
        return Ok(zero_timestamp(call));
    };
    // The 30th of February is a day of March.
    let is_incomplete = value.date.month == 0 || value.date.day == 0;
    let value = match calendar::is_on_calendar(value.date) || is_incomplete {
        true => value,
        false => {
            let date = calendar::date_of_day_number(calendar::day_number(value.date));
            DateTime { date: date.unwrap_or(value.date), ..value }
        }
    };
    let instant_us = call.context.time_zone.to_timestamp_us(value).unwrap_or(0);
    // The first second is none, whatever its fraction.
    let in_range = (SECOND_US..=MAX_UNIX_TIME_US).contains(&instant_us);
    Ok(timestamp_number(if in_range { instant_us } else { 0 }, call))
}

fn zero_timestamp(call: &Call<'_>) -> Datum {
    timestamp_number(0, call)
}

fn timestamp_number(instant_us: i64, call: &Call<'_>) -> Datum {
    match call.result.kind {
        TypeKind::Decimal { scale, .. } => {
            let seconds = firn_sql_types::Decimal::from_unscaled(instant_us.into(), 6);
            let cut = seconds.round(scale.into(), Rounding::Truncate);
            cut.map_or(Datum::Null, Datum::Decimal)
        }
        _ => Datum::Int(instant_us / SECOND_US),
    }
}

fn resolve_from_unix_time(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let mut arguments = vec![Want::Decimal.of(&types[0], context)];
    let result = match types.get(1) {
        None => SqlType::new(TypeKind::DateTime { fsp: fsp_of_seconds(types, 0, context) }),
        Some(format) => {
            arguments.push(Want::Text.of(format, context));
            in_format(&arguments[1], context)
        }
    };
    Ok(Signature { arguments, result })
}

fn from_unix_time(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let instant_us = match call.arguments[0].kind.scale() {
        0 => microseconds(&a[0]),
        _ => counted_microseconds(&a[0], call),
    };
    if !(0..=MAX_UNIX_TIME_US).contains(&instant_us) {
        return Ok(Datum::Null);
    }
    let Some(local) = call.context.time_zone.to_local(instant_us) else { return Ok(Datum::Null) };
    Ok(match a.get(1) {
        None => date_time_result(local, call),
        Some(Datum::Null) => Datum::Null,
        Some(format) => format_date_time(&text(format), local, call)?,
    })
}

fn resolve_convert_zone(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let arguments = vec![
        Want::Temporal.of(&types[0], context),
        Want::Text.of(&types[1], context),
        Want::Text.of(&types[2], context),
    ];
    let result = SqlType::new(TypeKind::DateTime { fsp: fsp_of_read(types, 0, true, context) });
    Ok(Signature { arguments, result })
}

/// A moment outside the convertible range stays unchanged.
fn convert_zone(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let (from, to) = (TimeZone::parse(&text(&a[1])), TimeZone::parse(&text(&a[2])));
    let (Some(from), Some(to)) = (from, to) else { return Ok(Datum::Null) };
    let Some(moment) = moment(a, 0, call, complete(call)) else { return Ok(Datum::Null) };
    let instant_us = from.to_timestamp_us(moment.value);
    let instant_us =
        instant_us.filter(|instant_us| (SECOND_US..=MAX_UNIX_TIME_US).contains(instant_us));
    let converted = instant_us.and_then(|instant_us| to.to_local(instant_us));
    Ok(date_time_result(converted.unwrap_or(moment.value), call))
}
