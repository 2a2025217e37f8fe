//! Adding intervals and times to dates and times.

use firn_sql_types::decimal::Rounding;
use firn_sql_types::error::Result;
use firn_sql_types::temporal::format::date_text;
use firn_sql_types::temporal::interval::{self, IntervalUnit};
use firn_sql_types::temporal::parse::DateRules;
use firn_sql_types::temporal::round;
use firn_sql_types::{Datum, Decimal, SqlType, TypeKind};

use super::value::{
    Moment, any_date, by_mode, complete, constant_unit, date_time_result, date_time_text, fsp_of,
    fsp_of_read, fuzzy, integer_prefix, interval, is_written_moment, may_be_clock, may_be_moment,
    moment, moved_span, overflow, time, time_or_moment, unit, whole_double, written_moment,
};
use crate::arguments::shown;
use crate::signature::Want;
use crate::{Call, Function, ResolveContext, Signature, lenient};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("DATE_ADD", 2..=3, resolve_date_add, |a: &[Datum], call: &Call<'_>| {
        let unit = a.get(2).map_or(Ok(IntervalUnit::Day), unit)?;
        Ok(moved(a, 0, false, unit, call))
    })
    .needing(|before| before.first().is_none_or(may_be_moment))
    .shaped_by(&[2]),
    lenient!("DATE_SUB", 2..=3, resolve_date_add, |a: &[Datum], call: &Call<'_>| {
        let unit = a.get(2).map_or(Ok(IntervalUnit::Day), unit)?;
        Ok(moved(a, 0, true, unit, call))
    })
    .needing(|before| before.first().is_none_or(may_be_moment))
    .shaped_by(&[2]),
    lenient!("TIMESTAMPADD", 3..=3, resolve_timestamp_add, |a: &[Datum], call: &Call<'_>| {
        let unit = unit(&a[0])?;
        Ok(moved(a, 2, false, unit, call))
    })
    .in_order(&[0, 2, 1])
    .needing(|before| before.get(1).is_none_or(may_be_moment))
    .shaped_by(&[0]),
    lenient!("ADDTIME", 2..=2, resolve_add_time, |a: &[Datum], call: &Call<'_>| {
        Ok(add_time(a, call, 1))
    })
    .needing(|before| before.first().is_none_or(may_be_clock))
    .reading_before_null(),
    lenient!("SUBTIME", 2..=2, resolve_add_time, |a: &[Datum], call: &Call<'_>| {
        Ok(add_time(a, call, -1))
    })
    .needing(|before| before.first().is_none_or(may_be_clock))
    .reading_before_null(),
    lenient!("TIMESTAMP", 1..=2, resolve_timestamp, timestamp)
        .needing(|before| before.first().is_none_or(may_be_moment))
        .reading_before_null()
        .shaped_by(&[0, 1]),
];

/// A date out of range.
const CODE_OUT_OF_RANGE: u16 = 6527;

/// Text of a date, a time or both.
const TEXT_CHARS: u32 = 29;

fn text_result(context: &ResolveContext<'_>) -> SqlType {
    let collation = context.connection_collation;
    SqlType::new(TypeKind::Char { max_chars: TEXT_CHARS, collation })
}

/// Amounts are whole or exact numbers, or text. A compound unit reads the text of anything that is
/// not a number.
fn amount_type(ty: &SqlType, unit: Option<IntervalUnit>, context: &ResolveContext<'_>) -> SqlType {
    let is_simple = unit.is_some_and(|unit| !unit.is_compound());
    match &ty.kind {
        TypeKind::Bit { .. } if !is_simple => Want::Text.of(ty, context),
        // Beyond the integers, a column becomes the end of their range, and what was worked out is
        // refused.
        TypeKind::Float | TypeKind::Double if is_simple && unit != Some(IntervalUnit::Second) => {
            Want::Int.of(ty, context)
        }
        kind if (*kind == TypeKind::Json || kind.is_temporal() && kind.fsp() > 0)
            && unit == Some(IntervalUnit::Second) =>
        {
            Want::Decimal.of(ty, context)
        }
        kind if is_simple
            && (kind.is_temporal() || kind.is_enum_or_set() || *kind == TypeKind::Json) =>
        {
            Want::Int.of(ty, context)
        }
        TypeKind::Integer { .. } | TypeKind::Decimal { .. } | TypeKind::Float | TypeKind::Null => {
            ty.clone()
        }
        TypeKind::Bit { .. } | TypeKind::Year => Want::Int.of(ty, context),
        kind if kind.is_numeric() => Want::Double.of(ty, context),
        _ => Want::Text.of(ty, context),
    }
}

fn moved_type(
    date: &SqlType,
    amount: &SqlType,
    unit: Option<IntervalUnit>,
    context: &ResolveContext<'_>,
) -> SqlType {
    let Some(unit) = unit else { return text_result(context) };
    let unit_fsp = match (&amount.kind, unit) {
        (_, unit) if unit.has_microseconds() => 6,
        (TypeKind::Decimal { scale, .. }, IntervalUnit::Second) => (*scale).min(6),
        (kind, IntervalUnit::Second) if kind.is_temporal() => kind.fsp(),
        (kind, IntervalUnit::Second) if !kind.is_integer() && *kind != TypeKind::Null => 6,
        _ => 0,
    };
    let fsp = date.kind.fsp().max(unit_fsp);
    let has_date_unit = |unit: IntervalUnit| {
        use IntervalUnit::{DayHour, DayMicrosecond, DayMinute, DaySecond};
        unit.is_whole_days() || matches!(unit, DayHour | DayMicrosecond | DayMinute | DaySecond)
    };
    let kind = match &date.kind {
        TypeKind::Date if unit.is_whole_days() => TypeKind::Date,
        TypeKind::Time { .. } if !has_date_unit(unit) => TypeKind::Time { fsp },
        kind if kind.is_temporal() => TypeKind::DateTime { fsp },
        _ => return text_result(context),
    };
    SqlType::new(kind)
}

fn resolve_date_add(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let unit = match types.get(2) {
        None => Some(IntervalUnit::Day),
        Some(_) => constant_unit(context, 2),
    };
    let mut arguments =
        vec![Want::Temporal.of(&types[0], context), amount_type(&types[1], unit, context)];
    arguments.extend(types.get(2).map(|ty| Want::Text.of(ty, context)));
    let result = moved_type(&types[0], &types[1], unit, context);
    Ok(Signature { arguments, result })
}

fn resolve_timestamp_add(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let unit = constant_unit(context, 0);
    let arguments = vec![
        Want::Text.of(&types[0], context),
        amount_type(&types[1], unit, context),
        Want::Temporal.of(&types[2], context),
    ];
    let result = moved_type(&types[2], &types[1], unit, context);
    Ok(Signature { arguments, result })
}

/// The date at `at` and the amount behind the unit or the date. The date is read first, so that it
/// is warned of even if the amount is NULL.
fn moved(a: &[Datum], at: usize, minus: bool, unit: IntervalUnit, call: &Call<'_>) -> Datum {
    let is_time =
        matches!(a[at], Datum::Time(_)) && matches!(call.result.kind, TypeKind::Time { .. });
    let start = if is_time { None } else { moment(a, at, call, complete(call)) };
    if a[1].is_null() || start.is_none() && !is_time {
        return Datum::Null;
    }
    let Some(by) = interval(&a[1], unit, call) else {
        return no_interval(a, at, minus, unit, call);
    };
    let by = if minus { by.negate() } else { by };
    if let Datum::Time(packed) = &a[at]
        && is_time
    {
        if is_too_long(&a[1], unit, call.arguments[1]) {
            return Datum::Null;
        }
        let span_us = i128::from(*packed).saturating_add(by.microseconds);
        // Far out of range, and precise enough for its uses.
        let limit = i128::from(i64::MAX / 2);
        return moved_span(span_us.clamp(-limit, limit) as i64, "date_add", call);
    }
    let Some(Moment { value, has_time }) = start else { return Datum::Null };
    let Some(sum) = interval::add(value, by) else { return beyond(a, at, minus, unit, call) };
    match &call.result.kind {
        kind if kind.is_temporal() => date_time_result(sum, call),
        _ if !has_time && unit.is_whole_days() => Datum::text(date_text(sum.date)),
        _ => Datum::text(date_time_text(sum)),
    }
}

/// NULL, and a warning, for dates out of range.
fn beyond(a: &[Datum], at: usize, minus: bool, unit: IntervalUnit, call: &Call<'_>) -> Datum {
    let is_too_long = is_too_long(&a[1], unit, call.arguments[1]);
    match (call.result.kind == TypeKind::Date, is_too_long) {
        (false, false) => overflow("datetime", call),
        (true, false) => out_of_range(a, at, minus, unit, call),
        (_, true) => no_interval(a, at, minus, unit, call),
    }
}

/// NULL for an amount that is no interval, whatever the date: MySQL warns of it only where the
/// result has both a date and a time.
fn no_interval(a: &[Datum], at: usize, minus: bool, unit: IntervalUnit, call: &Call<'_>) -> Datum {
    match call.result.kind {
        TypeKind::Date | TypeKind::Time { .. } => Datum::Null,
        _ => out_of_range(a, at, minus, unit, call),
    }
}

fn out_of_range(a: &[Datum], at: usize, minus: bool, unit: IntervalUnit, call: &Call<'_>) -> Datum {
    call.context.warn(CODE_OUT_OF_RANGE, || {
        let (date, amount) = (shown(&a[at]), shown(&a[1]));
        let (sign, unit) = (if minus { '-' } else { '+' }, unit.name().to_ascii_lowercase());
        let (kind, date) = match call.result.kind {
            TypeKind::Date => ("DATE", format!("DATE'{date}'")),
            _ => ("DATETIME", date),
        };
        format!("{kind} value is out of range in '({date} {sign} interval {amount} {unit})'")
    });
    Datum::Null
}

/// Whether MySQL has no interval for an amount, whatever the date.
fn is_too_long(amount: &Datum, unit: IntervalUnit, ty: &SqlType) -> bool {
    let number = match amount {
        Datum::Int(number) => *number,
        Datum::UInt(number) => *number as i64,
        Datum::Double(number) => whole_double(*number, ty),
        Datum::Decimal(number) => {
            let whole = number.round(0, Rounding::HalfUp).and_then(|whole| whole.to_i64());
            whole.unwrap_or(if number.is_negative() { i64::MIN } else { i64::MAX })
        }
        Datum::Text(text) if !unit.is_compound() => {
            let number = Decimal::parse_prefix(integer_prefix(text)).number;
            number.to_i64().unwrap_or(if number.is_negative() { i64::MIN } else { i64::MAX })
        }
        _ => return false,
    };
    let parts = match unit {
        IntervalUnit::Quarter => 3,
        IntervalUnit::Week => 7,
        _ => return !unit.is_compound() && number == i64::MIN,
    };
    number.unsigned_abs() > u64::from(u32::MAX) / parts
}

fn resolve_add_time(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let mut arguments: Vec<SqlType> =
        types.iter().map(|ty| Want::Temporal.of(ty, context)).collect();
    if types[0].kind == TypeKind::Json {
        // A document's text, with the quotation marks of its strings.
        arguments[0] = Want::Text.of(&types[0], context);
    }
    arguments[1] = Want::Clock.of(&types[1], context);
    let fsp = fsp_of(types, 0, context).max(fsp_of_read(types, 1, false, context));
    let result = match &types[0].kind {
        TypeKind::Time { .. } => SqlType::new(TypeKind::Time { fsp }),
        kind if kind.has_date() => SqlType::new(TypeKind::DateTime { fsp }),
        _ => text_result(context),
    };
    Ok(Signature { arguments, result })
}

fn add_time(a: &[Datum], call: &Call<'_>, sign: i64) -> Datum {
    // The first argument is read even if the second is NULL, the second only if the first is one.
    let by_us = || time(a, 1, call).map(|by| by.pack() * sign);
    let is_typed = matches!(a[0], Datum::Date(_) | Datum::DateTime(_));
    if is_typed || is_written_moment(&a[0], any_date(call), call) {
        let value = match is_typed {
            true => moment(a, 0, call, fuzzy(call)),
            false => written_moment(a, 0, call),
        };
        let Some((value, by_us)) = value.and_then(|value| Some((value, by_us()?))) else {
            return Datum::Null;
        };
        return match round::add_microseconds(value.value, by_us) {
            Some(sum) => date_time_result(sum, call),
            None => moment_out_of_range(by_us, if sign < 0 { "subtime" } else { "addtime" }, call),
        };
    }
    let value = time_or_moment(a, 0, call);
    let Some((value, by_us)) = value.and_then(|value| Some((value, by_us()?))) else {
        return Datum::Null;
    };
    moved_span(value.pack() + by_us, if sign < 0 { "subtime" } else { "addtime" }, call)
}

fn resolve_timestamp(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let arguments = types.iter().map(|ty| Want::Temporal.of(ty, context)).collect();
    let by = fsp_of_read(types, 1, false, context);
    let fsp = fsp_of_read(types, 0, true, context).max(by);
    Ok(Signature { arguments, result: SqlType::new(TypeKind::DateTime { fsp }) })
}

fn timestamp(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let mode = by_mode(call);
    // A time is not added to a zero date, nor to one without a month or a day.
    let rules = match a.len() > 1 {
        true => DateRules { no_zero_date: true, no_zero_in_date: true, ..mode },
        false => mode,
    };
    let Some(value) = moment(a, 0, call, rules) else { return Ok(Datum::Null) };
    if a.len() == 1 {
        return Ok(date_time_result(value.value, call));
    }
    let Some(by) = time(a, 1, call) else { return Ok(Datum::Null) };
    Ok(match round::add_microseconds(value.value, by.pack()) {
        Some(sum) => date_time_result(sum, call),
        None => moment_out_of_range(by.pack(), "timestamp", call),
    })
}

/// NULL for a moment beyond the year 9999, with a warning, and for one before the year 0, without.
fn moment_out_of_range(by_us: i64, function: &str, call: &Call<'_>) -> Datum {
    if by_us > 0 {
        call.context
            .warn(CODE_OUT_OF_RANGE, || format!("DATETIME value is out of range in '{function}'"));
    }
    Datum::Null
}
