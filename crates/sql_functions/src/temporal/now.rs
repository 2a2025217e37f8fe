//! The current time: at the statement's beginning, or now.

use firn_format::value::DateTime;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::temporal::parse::time_of_day;
use firn_sql_types::temporal::round::{round_date_time, round_time};
use firn_sql_types::{Datum, SqlType, TypeKind, calendar};

use crate::arguments::int;
use crate::{Call, Function, ResolveContext, Signature, Volatility, lenient};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("NOW", 0..=1, resolve_now, |_, call: &Call<'_>| {
        Ok(moment(local(call.context.statement_time_us, call), call))
    })
    .volatile(Volatility::Statement)
    .shaped_by(&[0]),
    lenient!("SYSDATE", 0..=1, resolve_now, |_, call: &Call<'_>| {
        Ok(moment(local(call.context.session.wall_time_us(), call), call))
    })
    .volatile(Volatility::Row)
    .shaped_by(&[0]),
    lenient!("UTC_TIMESTAMP", 0..=1, resolve_now, |_, call: &Call<'_>| Ok(moment(utc(call), call)))
        .volatile(Volatility::Statement)
        .shaped_by(&[0]),
    lenient!("CURDATE", 0..=0, resolve_date, |_, call: &Call<'_>| {
        Ok(date(local(call.context.statement_time_us, call)))
    })
    .volatile(Volatility::Statement),
    lenient!("UTC_DATE", 0..=0, resolve_date, |_, call: &Call<'_>| Ok(date(utc(call))))
        .volatile(Volatility::Statement),
    lenient!("CURTIME", 0..=1, resolve_time, |_, call: &Call<'_>| {
        Ok(clock(local(call.context.statement_time_us, call), call))
    })
    .volatile(Volatility::Statement)
    .shaped_by(&[0]),
    lenient!("UTC_TIME", 0..=1, resolve_time, |_, call: &Call<'_>| Ok(clock(utc(call), call)))
        .volatile(Volatility::Statement)
        .shaped_by(&[0]),
];

fn local(timestamp_us: i64, call: &Call<'_>) -> Option<DateTime> {
    call.context.time_zone.to_local(timestamp_us)
}

fn utc(call: &Call<'_>) -> Option<DateTime> {
    calendar::date_time_from_unix_us(call.context.statement_time_us)
}

fn moment(value: Option<DateTime>, call: &Call<'_>) -> Datum {
    let cut = value.and_then(|value| round_date_time(value, call.result.kind.fsp(), true));
    cut.map_or(Datum::Null, Datum::from)
}

fn date(value: Option<DateTime>) -> Datum {
    value.map_or(Datum::Null, |value| value.date.into())
}

fn clock(value: Option<DateTime>, call: &Call<'_>) -> Datum {
    let fsp = call.result.kind.fsp();
    value.map_or(Datum::Null, |value| round_time(time_of_day(value), fsp, true).into())
}

/// The digits that the argument asks for.
fn precision(context: &ResolveContext<'_>, name: &str) -> Result<u8> {
    let digits = context.constant(0).map_or(0, int);
    if (0..=6).contains(&digits) {
        return Ok(digits as u8);
    }
    let message = format!("Too-big precision {digits} specified for '{name}'. Maximum is 6.");
    Err(SqlError::new(1426, message))
}

fn signature(types: &[SqlType], result: TypeKind) -> Signature {
    Signature { arguments: types.to_vec(), result: SqlType::new(result).not_null() }
}

fn resolve_now(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    Ok(signature(types, TypeKind::DateTime { fsp: precision(context, "now")? }))
}

fn resolve_time(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    Ok(signature(types, TypeKind::Time { fsp: precision(context, "curtime")? }))
}

fn resolve_date(types: &[SqlType], _: &ResolveContext<'_>) -> Result<Signature> {
    Ok(signature(types, TypeKind::Date))
}
