//! `DATE_FORMAT`, `TIME_FORMAT`, `GET_FORMAT`.

use std::fmt::Write as _;

use firn_format::value::{Date, DateTime, Time};
use firn_sql_types::calendar::{self, WeekMode};
use firn_sql_types::error::Result;
use firn_sql_types::temporal::parse::time_of_day;
use firn_sql_types::{Datum, SqlType};

use super::parts::{MONTHS, WEEKDAYS, weekday};
use super::value::{
    any_date, date_time_of_long_months, fuzzy, is_written_moment, moment, time_or_moment,
};
use crate::arguments::{room, text};
use crate::signature::{self, text_chars, text_of};
use crate::{Call, Function, ResolveContext, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("DATE_FORMAT", 2..=2, [Temporal, Text] => formatted, |a: &[Datum], call: &Call<'_>| {
        let value = date_time_of_long_months(a, 0, call, fuzzy(call));
        let value = value.filter(|_| !a[1].is_null());
        value.map_or(Ok(Datum::Null), |value| format_date_time(&text(&a[1]), value, call))
    })
    .reading_before_null(),
    lenient!("TIME_FORMAT", 2..=2, [Clock, Text] => formatted, |a: &[Datum], call: &Call<'_>| {
        let value = time_and_date(a, call).filter(|_| !a[1].is_null());
        value.map_or(Ok(Datum::Null), |(value, date)| format_time(&text(&a[1]), value, date, call))
    })
    .reading_before_null(),
    strict!("GET_FORMAT", 2..=2, [Text] => signature::text::<17>, |a: &[Datum], _: &Call<'_>| {
        Ok(get_format(&text(&a[0]), &text(&a[1])))
    }),
];

fn formatted(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    in_format(&types[1], context)
}

/// The text of a date or a time in a format: each of its characters may become ten.
pub(super) fn in_format(format: &SqlType, context: &ResolveContext<'_>) -> SqlType {
    text_of(&[], u64::from(text_chars(format)) * 10, context)
}

/// A date and time in a format; NULL for a name that does not exist.
pub(super) fn format_date_time(format: &str, value: DateTime, call: &Call<'_>) -> Result<Datum> {
    let parts = Parts { date: value.date, has_date: true, time: time_of_day(value) };
    write(&parts, format, call)
}

fn format_time(format: &str, value: Time, date: Date, call: &Call<'_>) -> Result<Datum> {
    write(&Parts { date, has_date: false, time: value }, format, call)
}

/// The time of a value for `TIME_FORMAT`, and its date, which is zero where it has none.
fn time_and_date(a: &[Datum], call: &Call<'_>) -> Option<(Time, Date)> {
    let moment = match &a[0] {
        Datum::Date(_) | Datum::DateTime(_) => moment(a, 0, call, fuzzy(call)),
        value if is_written_moment(value, any_date(call), call) => {
            moment(a, 0, call, any_date(call))
        }
        _ => None,
    };
    match moment {
        Some(moment) => Some((time_of_day(moment.value), moment.value.date)),
        None => Some((time_or_moment(a, 0, call)?, Date::default())),
    }
}

/// NULL for an empty format. `max_allowed_packet` does not apply here.
fn write(parts: &Parts, format: &str, call: &Call<'_>) -> Result<Datum> {
    /// `%r` makes eleven bytes of two.
    const GROWTH: usize = 6;
    let _promise = room(GROWTH * format.len(), call)?;
    let text = parts.format(format).filter(|_| !format.is_empty());
    Ok(text.map_or(Datum::Null, Datum::text))
}

/// The formatted value. `TIME_FORMAT` shows the day and the month of a moment, but neither its week
/// nor what else needs the calendar, and no day in English.
struct Parts {
    date: Date,
    has_date: bool,
    time: Time,
}

impl Parts {
    fn format(&self, format: &str) -> Option<String> {
        let mut out = String::new();
        if !self.has_date && self.time.negative {
            out.push('-');
        }
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            match character {
                '%' => match characters.next() {
                    Some(specifier) => self.write(specifier, &mut out)?,
                    None => out.push('%'),
                },
                other => out.push(other),
            }
        }
        Some(out)
    }

    /// `None` if there is no such part.
    fn write(&self, specifier: char, out: &mut String) -> Option<()> {
        let Time { hours, minutes, seconds, microseconds, .. } = self.time;
        let half_day = (hours % 24 + 11) % 12 + 1;
        let half = if hours % 24 < 12 { "AM" } else { "PM" };
        // Writing to a string does not fail.
        let _ = match specifier {
            'f' => write!(out, "{microseconds:06}"),
            'H' => write!(out, "{hours:02}"),
            'k' => write!(out, "{hours}"),
            'h' | 'I' => write!(out, "{half_day:02}"),
            'l' => write!(out, "{half_day}"),
            'i' => write!(out, "{minutes:02}"),
            'p' => write!(out, "{half}"),
            'r' => write!(out, "{half_day:02}:{minutes:02}:{seconds:02} {half}"),
            'S' | 's' => write!(out, "{seconds:02}"),
            'T' => write!(out, "{hours:02}:{minutes:02}:{seconds:02}"),
            _ => return self.write_date(specifier, out),
        };
        Some(())
    }

    fn write_date(&self, specifier: char, out: &mut String) -> Option<()> {
        let Date { year, month, day } = self.date;
        let month_name = || MONTHS.get(usize::from(month).checked_sub(1)?);
        let _ = match specifier {
            'M' => write!(out, "{}", month_name()?),
            'b' => write!(out, "{}", &month_name()?[..3]),
            'm' => write!(out, "{month:02}"),
            'c' => write!(out, "{month}"),
            'D' if !self.has_date => return None,
            'D' => write!(out, "{day}{}", ordinal_suffix(day)),
            'd' => write!(out, "{day:02}"),
            'e' => write!(out, "{day}"),
            'Y' => write!(out, "{year:04}"),
            'y' => write!(out, "{:02}", year % 100),
            'W' | 'a' | 'w' | 'j' | 'U' | 'u' | 'V' | 'v' | 'X' | 'x' => {
                return write_calendar(specifier, self.has_date.then_some(self.date)?, out);
            }
            other => write!(out, "{other}"),
        };
        Some(())
    }
}

/// Specifiers that need the calendar: days of weeks and of years, and weeks.
fn write_calendar(specifier: char, date: Date, out: &mut String) -> Option<()> {
    let week = |mode| calendar::week(date, WeekMode::new(mode));
    let is_date = date.month > 0 || date.day > 0;
    let weekday = || weekday(DateTime { date, ..DateTime::default() });
    let _ = match specifier {
        'W' => write!(out, "{}", WEEKDAYS[usize::from(is_date.then(weekday)?)]),
        'a' => write!(out, "{}", &WEEKDAYS[usize::from(is_date.then(weekday)?)][..3]),
        'w' => write!(out, "{}", (is_date.then(weekday)? + 1) % 7),
        'j' => write!(out, "{:03}", calendar::day_of_year(date).max(0)),
        'U' => write!(out, "{:02}", week(0).1),
        'u' => write!(out, "{:02}", week(1).1),
        'V' => write!(out, "{:02}", week(2).1),
        'v' => write!(out, "{:02}", week(3).1),
        'X' => write!(out, "{:04}", week(2).0),
        _ => write!(out, "{:04}", week(3).0),
    };
    Some(())
}

fn ordinal_suffix(day: u8) -> &'static str {
    match (day / 10, day % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

fn get_format(kind: &str, country: &str) -> Datum {
    let formats = match kind.to_ascii_uppercase().as_str() {
        "DATE" => ["%m.%d.%Y", "%Y-%m-%d", "%Y-%m-%d", "%d.%m.%Y", "%Y%m%d"],
        "TIME" => ["%h:%i:%s %p", "%H:%i:%s", "%H:%i:%s", "%H.%i.%s", "%H%i%s"],
        _ => [
            "%Y-%m-%d %H.%i.%s",
            "%Y-%m-%d %H:%i:%s",
            "%Y-%m-%d %H:%i:%s",
            "%Y-%m-%d %H.%i.%s",
            "%Y%m%d%H%i%s",
        ],
    };
    let countries = ["USA", "JIS", "ISO", "EUR", "INTERNAL"];
    let at = countries.iter().position(|known| known.eq_ignore_ascii_case(country));
    at.map_or(Datum::Null, |at| Datum::text(formats[at]))
}
