//! Any value as a date or time, with MySQL's warnings for invalid ones.

use firn_format::value::{Date, DateTime, Time};
use firn_sql_types::decimal::Rounding;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::moment_text;
use firn_sql_types::temporal::delimiter;
use firn_sql_types::temporal::interval::{Interval, IntervalUnit};
use firn_sql_types::temporal::parse::{
    self, DateRules, Fault, Parsed, WrittenDateTime, date_time_from_number, is_time_behind_date,
    parse_date_time, parse_time, time_from_number, time_of_day,
};
use firn_sql_types::temporal::round;
use firn_sql_types::{Coercibility, Datum, Decimal, SqlMode, SqlType, TypeKind, calendar, cast};

use crate::arguments::{decimal, shown, text};
use crate::{Call, ResolveContext};

/// Zero dates and dates with zeros are accepted.
pub(super) fn fuzzy(call: &Call<'_>) -> DateRules {
    DateRules::lenient_in_mode(call.context.sql_mode)
}

/// Only dates that are on the calendar.
pub(super) fn complete(call: &Call<'_>) -> DateRules {
    DateRules { no_zero_date: true, no_zero_in_date: true, ..fuzzy(call) }
}

/// The dates that the session's modes accept.
pub(super) fn by_mode(call: &Call<'_>) -> DateRules {
    DateRules::from_mode(call.context.sql_mode)
}

fn incorrect(kind: &str, datum: &Datum, call: &Call<'_>) {
    call.context.warn(1292, || format!("Incorrect {kind} value: '{}'", plain(datum)));
}

pub(super) fn truncated(kind: &str, datum: &Datum, call: &Call<'_>) {
    call.context.warn(1292, || format!("Truncated incorrect {kind} value: '{}'", plain(datum)));
}

fn plain(datum: &Datum) -> String {
    match datum {
        Datum::Text(_) => text(datum).into_owned(),
        Datum::Date(packed) => firn_sql_types::temporal::format::date_text(Date::unpack(*packed)),
        Datum::DateTime(packed) => {
            firn_sql_types::temporal::format::date_time_text(DateTime::unpack(*packed), 0)
        }
        other => shown(other),
    }
}

/// A date and time, and whether it had a time of day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) value: DateTime,
    pub(super) has_time: bool,
}

/// An argument as a date and time; `None` for NULL and, with a warning, for an invalid one.
pub(super) fn moment(
    arguments: &[Datum],
    at: usize,
    call: &Call<'_>,
    rules: DateRules,
) -> Option<Moment> {
    let datum = arguments.get(at)?;
    let taken = |value: DateTime, has_time| match rules.fault_of(value.date) {
        None => Some(Moment { value, has_time }),
        Some(Fault::ZeroDate | Fault::ZeroInDate) => None,
        Some(_) => {
            incorrect("datetime", datum, call);
            None
        }
    };
    match datum {
        Datum::Date(packed) => taken(at_midnight(Date::unpack(*packed)), false),
        Datum::DateTime(packed) => taken(DateTime::unpack(*packed), true),
        Datum::Time(packed) => Some(Moment { value: today_at(*packed, call)?, has_time: true }),
        Datum::Null | Datum::Json(_) => None,
        Datum::UInt(year) if call.arguments.get(at).is_some_and(|ty| ty.kind == TypeKind::Year) => {
            taken(at_midnight(Date { year: *year as u16, month: 1, day: 1 }), true)
        }
        Datum::Text(octets) => {
            let is_made = call.arguments.get(at).is_some_and(|ty| ty.is_text_of_moment());
            if let Some(Datum::Time(packed)) =
                is_made.then(|| moment_text::time_of_text(octets)).flatten()
            {
                return Some(Moment { value: today_at(packed, call)?, has_time: true });
            }
            // A zero date in a column has its parts; for one that is written, the modes decide.
            let no_zero_date = rules.no_zero_date || by_mode(call).no_zero_date;
            let rules = DateRules { no_zero_date, ..rules };
            let moment = written(datum, parse_date_time(octets, rules), call)?;
            cast::warn_of_delimiter(octets, delimiter::in_date_time(octets), 1, call.context);
            // What a function has made of a date has a time of day from there on.
            Some(Moment { has_time: moment.has_time || is_made, ..moment })
        }
        number => written(datum, from_number(number, rules), call),
    }
}

/// Whether a value may be a date and time: those that are none for sure are a text or a number, and
/// what would be evaluated after them is not.
pub(super) fn may_be_moment(datum: &Datum) -> bool {
    let rules = DateRules {
        no_zero_date: true,
        no_zero_in_date: true,
        allow_invalid_dates: true,
        ..DateRules::LENIENT
    };
    match datum {
        Datum::Null => false,
        Datum::Text(octets) => parse_date_time(octets, rules).value.is_some(),
        Datum::Int(_) | Datum::UInt(_) | Datum::Double(_) | Datum::Decimal(_) => {
            from_number(datum, rules).value.is_some()
        }
        _ => true,
    }
}

/// As [`may_be_moment`], for a value that may also be a time.
pub(super) fn may_be_clock(datum: &Datum) -> bool {
    let rules = DateRules { allow_invalid_dates: true, ..DateRules::LENIENT };
    match datum {
        Datum::Text(octets) => {
            parse_time(octets, rules).value.is_some()
                || parse_date_time(octets, rules).value.is_some()
        }
        Datum::Null => false,
        _ => true,
    }
}

/// An argument as a date and time.
pub(super) fn date_time(
    arguments: &[Datum],
    at: usize,
    call: &Call<'_>,
    rules: DateRules,
) -> Option<DateTime> {
    moment(arguments, at, call, rules).map(|moment| moment.value)
}

/// An argument as a date, for functions that need no time of day. Of a number, the whole part
/// counts.
pub(super) fn date(
    arguments: &[Datum],
    at: usize,
    call: &Call<'_>,
    rules: DateRules,
) -> Option<DateTime> {
    let (datum, ty) = (arguments.get(at)?, call.arguments.get(at)?);
    if let Datum::Time(packed) = datum {
        return cast::date_of_time(*packed, call.context).map(at_midnight);
    }
    let Some(parsed) = cast::date_of_number(datum, ty, rules) else {
        return date_time(arguments, at, call, rules);
    };
    if parsed.value.is_none() {
        match datum {
            Datum::Int(_) | Datum::UInt(_) => incorrect("datetime", datum, call),
            _ => truncated("date", datum, call),
        }
    }
    parsed.value.map(at_midnight)
}

/// As [`date`], but in a number every month has 31 days.
pub(super) fn date_of_long_months(
    arguments: &[Datum],
    at: usize,
    call: &Call<'_>,
    rules: DateRules,
) -> Option<DateTime> {
    date(arguments, at, call, long_months(&arguments[at], rules))
}

/// An argument that is compared with dates, or with moments; `None` for one that is none. Only a
/// date may be written without its year and month, as in 29.
///
/// # Errors
/// 1292 for such an argument in a strict statement that stores.
pub(crate) fn date_beside(
    arguments: &[Datum],
    at: usize,
    has_moments: bool,
    call: &Call<'_>,
) -> Result<Option<DateTime>> {
    if let Datum::Json(_) = &arguments[at] {
        return cast::to_date_time(&arguments[at], call.arguments[at], 6, call.context);
    }
    let is_number = matches!(
        arguments[at],
        Datum::Int(_) | Datum::UInt(_) | Datum::Double(_) | Datum::Decimal(_)
    );
    let value = match is_number && !has_moments {
        true => date(arguments, at, call, fuzzy(call)),
        false => date_time(arguments, at, call, fuzzy(call)),
    };
    if value.is_none() && call.context.is_strict_write() {
        let shown = plain(&arguments[at]);
        call.context.bad_value(1292, || format!("Incorrect datetime value: '{shown}'"))?;
    }
    Ok(value)
}

/// As [`date_time`], but in a number every month has 31 days.
pub(super) fn date_time_of_long_months(
    arguments: &[Datum],
    at: usize,
    call: &Call<'_>,
    rules: DateRules,
) -> Option<DateTime> {
    date_time(arguments, at, call, long_months(&arguments[at], rules))
}

fn long_months(datum: &Datum, rules: DateRules) -> DateRules {
    let is_number =
        matches!(datum, Datum::Int(_) | Datum::UInt(_) | Datum::Double(_) | Datum::Decimal(_));
    DateRules { allow_invalid_dates: is_number || rules.allow_invalid_dates, ..rules }
}

fn at_midnight(date: Date) -> DateTime {
    DateTime { date, ..DateTime::default() }
}

fn written(datum: &Datum, parsed: Parsed<WrittenDateTime>, call: &Call<'_>) -> Option<Moment> {
    let Some(written) = parsed.value else {
        incorrect("datetime", datum, call);
        return None;
    };
    if parsed.fault.is_some() {
        truncated("datetime", datum, call);
    }
    let value = match written.offset_seconds {
        None => written.date_time,
        Some(offset_seconds) => {
            let utc_us =
                calendar::unix_us(written.date_time)? - i64::from(offset_seconds) * 1_000_000;
            call.context.time_zone.to_local(utc_us)?
        }
    };
    Some(Moment { value, has_time: written.has_time })
}

/// A number whose 64 bits MySQL reads as a signed one; `None` for a double that no exact number
/// holds.
fn signed(number: &Datum) -> Option<Decimal> {
    Some(match number {
        Datum::UInt(number) => Decimal::from(*number as i64),
        Datum::Double(number) => Decimal::from_double(*number)?,
        number => decimal(number),
    })
}

fn from_number(number: &Datum, rules: DateRules) -> Parsed<WrittenDateTime> {
    let none = Parsed { value: None, fault: Some(Fault::Truncated) };
    let Some(number) = signed(number) else { return none };
    let whole = number.round(0, Rounding::Truncate);
    let Some(whole_number) = whole.and_then(|whole| whole.to_i64()) else { return none };
    let mut parsed = date_time_from_number(whole_number, rules);
    let fraction = whole.and_then(|whole| number.subtract(&whole));
    let microseconds = fraction.and_then(|fraction| fraction.multiply(&1_000_000_i64.into()));
    let microseconds = microseconds.and_then(|microseconds| microseconds.to_i64()).unwrap_or(0);
    if number.is_negative() {
        // Nothing before zero is a date, however close to it.
        return none;
    }
    if microseconds > 0 && parsed.value.is_some_and(|written| !written.has_time) {
        // A day alone has no fraction of a second.
        parsed.fault = Some(Fault::Truncated);
    } else if let Some(written) = &mut parsed.value
        && microseconds > 0
    {
        written.date_time =
            round::add_microseconds(written.date_time, microseconds).unwrap_or(written.date_time);
        written.fraction_digits = 6;
    }
    parsed
}

/// A time of the statement's day.
fn today_at(packed_time: i64, call: &Call<'_>) -> Option<DateTime> {
    let today = call.context.time_zone.to_local(call.context.statement_time_us)?;
    round::add_microseconds(DateTime { date: today.date, ..DateTime::default() }, packed_time)
}

/// An argument as a time; `None` for NULL and, with a warning, for an invalid one. A year has no
/// time of day.
pub(super) fn time(arguments: &[Datum], at: usize, call: &Call<'_>) -> Option<Time> {
    let is_year = call.arguments.get(at).is_some_and(|ty| ty.kind == TypeKind::Year);
    match arguments.get(at)? {
        Datum::UInt(_) if is_year => Some(Time::default()),
        _ => clock(arguments, at, call),
    }
}

/// As [`time`], but a year is a number.
pub(super) fn clock(arguments: &[Datum], at: usize, call: &Call<'_>) -> Option<Time> {
    let datum = arguments.get(at)?;
    let mut parsed = match datum {
        Datum::Time(packed) => return Some(Time::unpack(*packed)),
        Datum::Date(_) => return Some(Time::default()),
        Datum::DateTime(packed) => return Some(time_of_day(DateTime::unpack(*packed))),
        Datum::Null | Datum::Json(_) => return None,
        Datum::Text(octets)
            if call.arguments.get(at).is_some_and(|ty| ty.is_text_of_moment())
                && !octets.contains(&b':') =>
        {
            return Some(Time::default());
        }
        Datum::Text(octets) => {
            let parsed = parse_time(octets, fuzzy(call));
            let delimiter = delimiter::in_time(octets, parsed.value.is_some());
            cast::warn_of_delimiter(octets, delimiter, 1, call.context);
            parsed
        }
        number => time_of_number(number),
    };
    if datum.as_bytes().is_none() && parsed.fault.is_some() {
        // A number that is too large is not a time, whereas such a text is the largest time.
        parsed.value = None;
    }
    if parsed.fault.is_some() || parsed.value.is_none() {
        truncated("time", datum, call);
    }
    parsed.value
}

/// Whether a text or number that may be a time or a moment is a moment: a text that is no faultless
/// time with a colon, or a number that is no time, from which a date can be read under the rules.
pub(super) fn is_written_moment(datum: &Datum, rules: DateRules, call: &Call<'_>) -> bool {
    let text = match datum {
        Datum::Text(text) => text,
        Datum::Int(_) | Datum::UInt(_) | Datum::Double(_) | Datum::Decimal(_) => {
            let whole = signed(datum).and_then(|number| number.round(0, Rounding::Truncate));
            let has_date = whole.and_then(|whole| whole.to_i64());
            let has_date = has_date.is_some_and(|whole| whole >= parse::SMALLEST_DATE_TIME);
            return (has_date || time_of_number(datum).fault.is_some())
                && from_number(datum, rules).value.is_some();
        }
        _ => return false,
    };
    let is_time = text.contains(&b':')
        && !is_time_behind_date(text)
        && is_faultless_time(text, &parse_time(text, fuzzy(call)));
    !is_time && parse_date_time(text, rules).value.is_some()
}

/// A text or number that [`is_written_moment`] under rules that take any date: `None`, with a
/// warning, unless its date is on the calendar.
pub(super) fn written_moment(arguments: &[Datum], at: usize, call: &Call<'_>) -> Option<Moment> {
    let datum = arguments.get(at)?;
    let Datum::Text(octets) = datum else { return moment(arguments, at, call, complete(call)) };
    let taken = parse_date_time(octets, any_date(call)).value?;
    if complete(call).fault_of(taken.date_time.date).is_some() {
        truncated(if taken.has_time { "datetime" } else { "date" }, datum, call);
        return None;
    }
    moment(arguments, at, call, complete(call))
}

/// Months have 31 days, and zeros are accepted.
pub(super) fn any_date(call: &Call<'_>) -> DateRules {
    DateRules { allow_invalid_dates: true, ..fuzzy(call) }
}

fn is_faultless_time(text: &[u8], parsed: &Parsed<Time>) -> bool {
    parsed.value.is_some() && parsed.fault.is_none() && delimiter::in_time(text, true).is_none()
}

/// As [`clock`], for an argument that could have been a moment: a space that does not belong there
/// counts as something that follows the time.
pub(super) fn time_or_moment(arguments: &[Datum], at: usize, call: &Call<'_>) -> Option<Time> {
    let datum = arguments.get(at)?;
    let Datum::Text(octets) = datum else { return clock(arguments, at, call) };
    let parsed = parse_time(octets, fuzzy(call));
    if parsed.value.is_none() {
        incorrect("datetime", datum, call);
    } else if !is_faultless_time(octets, &parsed) {
        truncated("time", datum, call);
    }
    parsed.value
}

fn time_of_number(number: &Datum) -> Parsed<Time> {
    let none = Parsed { value: None, fault: Some(Fault::OutOfRange) };
    let Some(number) = signed(number) else { return none };
    let whole = number.round(0, Rounding::Truncate);
    let Some(whole_number) = whole.and_then(|whole| whole.to_i64()) else { return none };
    let parsed = time_from_number(whole_number);
    let fraction = whole.and_then(|whole| number.subtract(&whole));
    let microseconds = fraction.and_then(|fraction| fraction.multiply(&1_000_000_i64.into()));
    let microseconds = microseconds.and_then(|microseconds| microseconds.to_i64()).unwrap_or(0);
    match parsed.value.filter(|_| microseconds != 0) {
        Some(time) => round::time_from_us(time.pack() + microseconds),
        None => parsed,
    }
}

/// An amount as an interval of a unit.
pub(super) fn interval(amount: &Datum, unit: IntervalUnit, call: &Call<'_>) -> Option<Interval> {
    match amount {
        Datum::Int(_) | Datum::UInt(_) | Datum::Double(_) if unit.is_compound() => {
            Interval::from_text(unit, shown(amount).as_bytes())
        }
        Datum::Int(count) => Some(Interval::from_number(unit, *count)),
        // Beyond the range of a BIGINT the sign changes, as in MySQL.
        Datum::UInt(count) => Some(Interval::from_number(unit, *count as i64)),
        Datum::Text(octets) if unit.is_compound() => Interval::from_text(unit, octets),
        Datum::Text(octets) if call.arguments[1].is_text_of_moment() => {
            let (moment, ty) = moment_text::moment_of_text(octets)?;
            let count = cast::to_decimal(&moment, &ty, call.context).ok()?;
            Interval::from_decimal(unit, &count)
        }
        Datum::Text(octets) => {
            // Only seconds have a fraction.
            let (text, kind) = match unit {
                IntervalUnit::Second => (&octets[..], "DECIMAL"),
                _ => (integer_prefix(octets), "INTEGER"),
            };
            let count = Decimal::parse_prefix(text);
            // Long texts of columns become numbers without a warning.
            let is_long =
                matches!(call.arguments[1].kind, TypeKind::Text { .. } | TypeKind::Blob { .. });
            let is_empty = octets.trim_ascii().is_empty();
            // Of seconds, what follows the number of a text that was worked out has no warning.
            let is_quiet =
                is_long || unit == IntervalUnit::Second && call.arguments[1].before.get().is_some();
            if !is_quiet && (is_empty || count.length_bytes < octets.trim_ascii_end().len()) {
                truncated(kind, amount, call);
            }
            let whole = count.number.round(0, Rounding::Truncate);
            if is_long
                && unit == IntervalUnit::Second
                && whole.and_then(|whole| whole.to_i64()).is_none()
            {
                truncated(kind, amount, call);
            }
            // A literal has the first warning alone.
            let is_written = call.arguments[1].coercibility == Coercibility::Coercible;
            if unit == IntervalUnit::Second && count.length_bytes == 0 && !is_written {
                call.context.warn(1366, || {
                    "Incorrect DECIMAL value: '0' for column '' at row -1".to_owned()
                });
            }
            let is_beyond = whole.is_some_and(|whole| !whole.is_negative());
            let end = if is_beyond { Some(i128::MAX) } else { None };
            match whole.and_then(|whole| whole.to_i128()).or(end) {
                _ if is_long || unit == IntervalUnit::Second => {
                    Interval::from_decimal(unit, &count.number)
                }
                // Beyond the range of a BIGINT the sign changes, as that of a number does.
                Some(whole) if whole > i64::MAX.into() => {
                    if !is_quiet && whole > u64::MAX.into() {
                        truncated(kind, amount, call);
                    }
                    let whole = u64::try_from(whole).unwrap_or(u64::MAX);
                    Some(Interval::from_number(unit, whole.cast_signed()))
                }
                _ => Interval::from_decimal(unit, &count.number),
            }
        }
        Datum::Double(count) if !unit.is_compound() && unit != IntervalUnit::Second => {
            Some(Interval::from_number(unit, whole_double(*count, call.arguments[1])))
        }
        Datum::Double(count) if Decimal::from_double(*count).is_none() => {
            truncated("DECIMAL", amount, call);
            None
        }
        other => {
            let count = decimal(other);
            let whole = count.round(0, Rounding::Truncate).and_then(|whole| whole.to_i64());
            if !unit.is_compound() && whole.is_none() {
                truncated("DECIMAL", amount, call);
            }
            Interval::from_decimal(unit, &count)
        }
    }
}

/// The whole number nearest to a double. Out of range, it is the lowest one for a `FLOAT`, and the
/// end of the range for a `DOUBLE`.
pub(super) fn whole_double(number: f64, ty: &SqlType) -> i64 {
    let whole = number.round_ties_even();
    match ty.kind == TypeKind::Float && !(i64::MIN as f64..i64::MAX as f64).contains(&whole) {
        true => i64::MIN,
        false => whole as i64,
    }
}

/// The whole number at the start of a text.
pub(super) fn integer_prefix(text: &[u8]) -> &[u8] {
    let start = text.len() - text.trim_ascii_start().len();
    let sign = usize::from(matches!(text.get(start), Some(b'-' | b'+')));
    let digits = text[start + sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    &text[..start + sign + digits]
}

/// The unit named by an argument; error 1064 if there is none.
pub(super) fn unit(datum: &Datum) -> Result<IntervalUnit> {
    let name = text(datum);
    IntervalUnit::by_name(&name).ok_or_else(|| SqlError::syntax(&name, 1))
}

/// The unit named by a literal argument.
pub(super) fn constant_unit(context: &ResolveContext<'_>, at: usize) -> Option<IntervalUnit> {
    IntervalUnit::by_name(&text(context.constant(at)?))
}

/// As [`fsp_of`], for an argument that is a number of seconds; the digits of a text are unknown.
pub(super) fn fsp_of_seconds(types: &[SqlType], at: usize, context: &ResolveContext<'_>) -> u8 {
    match types.get(at) {
        Some(ty) if ty.kind.is_string() || ty.kind == TypeKind::Json => 6,
        _ => fsp_of(types, at, context),
    }
}

/// Fractional second digits of an argument, as far as its type or its literal shows.
pub(super) fn fsp_of(types: &[SqlType], at: usize, context: &ResolveContext<'_>) -> u8 {
    let Some(ty) = types.get(at) else { return 0 };
    match &ty.kind {
        kind if kind.is_temporal() => kind.fsp(),
        kind if kind.is_integer() => 0,
        TypeKind::Null => 0,
        TypeKind::Float | TypeKind::Double => 6,
        TypeKind::Decimal { scale, .. } => (*scale).min(6),
        TypeKind::Json => 6,
        // A text that is NULL might have been any.
        _ => match context.constant(at) {
            None | Some(Datum::Null) => 6,
            Some(literal) => digits_of_fraction(&text(literal)),
        },
    }
}

/// As [`fsp_of`], for an argument that is read as a time or, if `with_date`, as a date: the digits
/// of a text that is none are unknown.
pub(super) fn fsp_of_read(
    types: &[SqlType],
    at: usize,
    with_date: bool,
    context: &ResolveContext<'_>,
) -> u8 {
    if let Some(Datum::Json(document)) = context.constant(at)
        && !with_date
    {
        let text = document.to_text();
        let is_time = parse_time(text.as_bytes(), DateRules::LENIENT).value.is_some();
        return if is_time { digits_of_fraction(&text) } else { 6 };
    }
    let is_text = types.get(at).is_some_and(|ty| ty.kind.is_text());
    let literal = context.constant(at).filter(|_| is_text).and_then(Datum::as_bytes);
    let is_read = literal.is_none_or(|text| match with_date {
        true => is_like_date(text),
        false => parse_time(text, DateRules::LENIENT).value.is_some(),
    });
    if is_read { fsp_of(types, at, context) } else { 6 }
}

/// Whether a text is a date, if only in a month of 31 days: the digits of its second are known
/// then.
pub(crate) fn is_like_date(text: &[u8]) -> bool {
    let rules = DateRules { allow_invalid_dates: true, ..DateRules::LENIENT };
    parse_date_time(text, rules).value.is_some()
}

fn digits_of_fraction(literal: &str) -> u8 {
    let fraction = literal.split_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().take_while(u8::is_ascii_digit).count().min(6) as u8
}

/// A date and time as text: a fraction only if there is one.
pub(super) fn date_time_text(value: DateTime) -> String {
    let fsp = if value.microsecond == 0 { 0 } else { 6 };
    firn_sql_types::temporal::format::date_time_text(value, fsp)
}

/// A time as text: a fraction only if there is one.
pub(super) fn time_text(value: Time) -> String {
    let fsp = if value.microseconds == 0 { 0 } else { 6 };
    firn_sql_types::temporal::format::time_text(value, fsp)
}

/// A value of the call's type, rounded to its digits.
pub(super) fn date_time_result(value: DateTime, call: &Call<'_>) -> Datum {
    let truncate = call.context.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL);
    match &call.result.kind {
        TypeKind::Date => value.date.into(),
        TypeKind::Time { .. } => time_result(time_of_day(value), call),
        kind if kind.has_date() => {
            round::round_date_time(value, kind.fsp(), truncate).map_or(Datum::Null, Datum::from)
        }
        _ => Datum::text(date_time_text(value)),
    }
}

/// A time of the call's type, rounded to its digits.
pub(super) fn time_result(value: Time, call: &Call<'_>) -> Datum {
    let truncate = call.context.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL);
    match &call.result.kind {
        TypeKind::Time { fsp } => round::round_time(value, *fsp, truncate).into(),
        _ => Datum::text(time_text(value)),
    }
}

/// Microseconds as a time of the call's type; out of range, the nearest one, with a warning.
pub(super) fn moved_span(span_us: i64, function: &str, call: &Call<'_>) -> Datum {
    let moved = round::time_from_us(span_us);
    if moved.fault.is_some() {
        call.context.warn(6527, || format!("TIME value is out of range in '{function}'"));
        return Datum::Null;
    }
    time_result(moved.value.unwrap_or_default(), call)
}

/// A difference of times; outside the range of TIME, the nearest one with a warning.
pub(super) fn span_result(span_us: i64, call: &Call<'_>) -> Datum {
    let parsed = round::time_from_us(span_us);
    if parsed.fault.is_some() {
        let shown = span_us / 1_000_000;
        call.context.warn(1292, || {
            let sign = if shown < 0 { "-" } else { "" };
            let (minutes, seconds) = (shown.abs() / 60, shown.abs() % 60);
            let (hours, minutes) = (minutes / 60, minutes % 60);
            format!("Truncated incorrect time value: '{sign}{hours:02}:{minutes:02}:{seconds:02}'")
        });
    }
    time_result(parsed.value.unwrap_or(parse::MAX_TIME), call)
}

/// Warning 1441, and NULL.
pub(super) fn overflow(function: &str, call: &Call<'_>) -> Datum {
    call.context.warn(1441, || format!("Datetime function: {function} field overflow"));
    Datum::Null
}
