//! Differences of dates and times.

use firn_format::value::{DateTime, Time};
use firn_sql_types::error::Result;
use firn_sql_types::temporal::interval::IntervalUnit as Unit;
use firn_sql_types::{Datum, SqlType, TypeKind, calendar};

use super::value::{
    any_date, complete, date_of_long_months, date_time, fsp_of_read, is_written_moment,
    may_be_clock, may_be_moment, span_result, time_or_moment, unit,
};
use crate::signature::{Want, bigint};
use crate::{Call, Function, ResolveContext, Signature, lenient};

pub(super) const FUNCTIONS: &[Function] = &[
    // Both dates are read, whether the other one is NULL or not.
    lenient!("DATEDIFF", 2..=2, [Temporal] => bigint, date_difference)
        .evaluating_all()
        .reading_before_null(),
    lenient!("TIMEDIFF", 2..=2, resolve_time_difference, time_difference)
        .needing(|before| before.first().is_none_or(may_be_clock))
        .reading_before_null()
        .shaped_by(&[0, 1]),
    lenient!("TIMESTAMPDIFF", 3..=3, [Text, Temporal] => bigint, timestamp_difference)
        .reading_before_null()
        .needing(|before| before.get(1).is_none_or(may_be_moment))
        .shaped_by(&[0]),
];

fn date_difference(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let day = |at| {
        let value = date_of_long_months(a, at, call, complete(call));
        value.map(|value| calendar::day_number(value.date))
    };
    let (one, other) = (day(0), day(1));
    let difference = one.zip(other).map(|(a, b)| a - b);
    Ok(difference.map_or(Datum::Null, Datum::Int))
}

fn resolve_time_difference(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let arguments = types.iter().map(|ty| Want::Temporal.of(ty, context)).collect();
    let fsp = |at| fsp_of_read(types, at, false, context);
    let fsp = fsp(0).max(fsp(1));
    Ok(Signature { arguments, result: SqlType::new(TypeKind::Time { fsp }) })
}

/// Whether a value is a date with a time, and not a time alone.
fn is_moment(a: &[Datum], at: usize, call: &Call<'_>) -> bool {
    match &a[at] {
        Datum::Date(_) | Datum::DateTime(_) => true,
        datum => is_written_moment(datum, any_date(call), call),
    }
}

/// NULL for a time and a date.
fn time_difference(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let span_us = match (is_moment(a, 0, call), is_moment(a, 1, call)) {
        (true, true) => {
            let moment = |at| date_time(a, at, call, any_date(call)).map(position_us);
            moment(0).zip(moment(1)).map(|(a, b)| a - b)
        }
        (false, false) => {
            let span = |at| time_or_moment(a, at, call).map(Time::pack);
            span(0).zip(span(1)).map(|(a, b)| a - b)
        }
        // The one that is no moment is read all the same, and may warn.
        (has_moment_first, _) => {
            time_or_moment(a, usize::from(has_moment_first), call);
            None
        }
    };
    Ok(span_us.map_or(Datum::Null, |span_us| span_result(span_us, call)))
}

fn position_us(value: DateTime) -> i64 {
    let days = calendar::day_number(value.date) * calendar::MICROSECONDS_PER_DAY;
    days + calendar::time_of_day_us(value)
}

fn timestamp_difference(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let unit = unit(&a[0])?;
    let from = date_time(a, 1, call, complete(call));
    // What follows a value that is no moment is not read.
    let to = from.and_then(|_| date_time(a, 2, call, complete(call)));
    let Some((from, to)) = from.zip(to) else { return Ok(Datum::Null) };
    let span_us = position_us(to) - position_us(from);
    let months = || if span_us < 0 { -whole_months(to, from) } else { whole_months(from, to) };
    Ok(Datum::Int(match unit {
        Unit::Year => months() / 12,
        Unit::Quarter => months() / 3,
        Unit::Month => months(),
        Unit::Week => span_us / (7 * calendar::MICROSECONDS_PER_DAY),
        Unit::Day => span_us / calendar::MICROSECONDS_PER_DAY,
        Unit::Hour => span_us / 3_600_000_000,
        Unit::Minute => span_us / 60_000_000,
        Unit::Second => span_us / 1_000_000,
        _ => span_us,
    }))
}

/// Months that have completely passed between two moments, the earlier one first.
fn whole_months(from: DateTime, to: DateTime) -> i64 {
    let month = |value: DateTime| i64::from(value.date.year) * 12 + i64::from(value.date.month);
    let within = |value: DateTime| (value.date.day, calendar::time_of_day_us(value));
    month(to) - month(from) - i64::from(within(to) < within(from))
}
