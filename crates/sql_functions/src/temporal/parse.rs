//! `STR_TO_DATE`: text read in a format.

use firn_format::value::{Date, DateTime};
use firn_sql_types::calendar;
use firn_sql_types::error::Result;
use firn_sql_types::temporal::parse::DateRules;
use firn_sql_types::{Datum, SqlType, TypeKind};

use super::parts::{MONTHS, WEEKDAYS};
use super::value::{date_time_result, span_result};
use crate::arguments::{incorrect_value, text};
use crate::signature::Want;
use crate::{Call, Function, ResolveContext, Signature, strict};

pub(super) const FUNCTIONS: &[Function] =
    &[strict!("STR_TO_DATE", 2..=2, resolve, string_to_date).shaped_by(&[1])];

/// The format determines the type; an unknown one counts as date and time.
fn resolve(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let arguments = types.iter().map(|ty| Want::Text.of(ty, context)).collect();
    let kind = context
        .constant(1)
        .filter(|format| !format.is_null())
        .map_or(TypeKind::DateTime { fsp: 6 }, |format| type_of_format(&text(format)));
    Ok(Signature { arguments, result: SqlType::new(kind) })
}

fn type_of_format(format: &str) -> TypeKind {
    let mut has_date = false;
    let mut has_time = false;
    let mut has_fraction = false;
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character == '%' {
            match characters.next() {
                Some('f') => (has_time, has_fraction) = (true, true),
                Some('H' | 'I' | 'S' | 'T' | 'h' | 'i' | 'k' | 'l' | 'p' | 'r' | 's') => {
                    has_time = true
                }
                Some(specifier) if "MVUXYWDabcdejmvuxyw".contains(specifier) => has_date = true,
                _ => (),
            }
        }
    }
    let fsp = if has_fraction { 6 } else { 0 };
    match (has_date, has_time) {
        (true, true) => TypeKind::DateTime { fsp },
        (false, true) => TypeKind::Time { fsp },
        _ => TypeKind::Date,
    }
}

fn string_to_date(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let (source, format) = (text(&a[0]), text(&a[1]));
    let refuse = || Ok(incorrect_value("datetime", &source, "str_to_date", call));
    let mut reader = Reader { rest: &source, ..Reader::default() };
    let Some(value) = reader.read(&format).and_then(|()| reader.finish()) else { return refuse() };
    if !reader.rest.trim().is_empty() {
        call.context.warn(1292, || format!("Truncated incorrect datetime value: '{source}'"));
    }
    if matches!(call.result.kind, TypeKind::Time { .. }) {
        let day_us = i64::from(value.date.day) * calendar::MICROSECONDS_PER_DAY;
        return Ok(span_result(day_us + calendar::time_of_day_us(value), call));
    }
    if DateRules::from_mode(call.context.sql_mode).fault_of(value.date).is_some() {
        return refuse();
    }
    Ok(date_time_result(value, call))
}

/// The parts that have been read.
#[derive(Default)]
struct Reader<'a> {
    rest: &'a str,
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    microsecond: u32,
    half_days: bool,
    afternoon: bool,
    day_of_year: Option<u32>,
    weekday: Option<u32>,
    week: Option<Week>,
    year_of_week: Option<u32>,
}

/// The number of a week, and the way weeks are counted.
#[derive(Clone, Copy)]
struct Week {
    number: u32,
    sunday_first: bool,
    /// With its own year (`%X`, `%x`), not the year of the date.
    own_year: bool,
}

impl Reader<'_> {
    /// `None` if the text does not follow the format. A text may end before the format does.
    fn read(&mut self, format: &str) -> Option<()> {
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if self.rest.is_empty() {
                return Some(());
            }
            match character {
                '%' => {
                    self.rest = self.rest.trim_start();
                    self.read_part(characters.next()?)?;
                }
                space if space.is_ascii_whitespace() => self.rest = self.rest.trim_start(),
                other => self.rest = self.rest.trim_start_matches(' ').strip_prefix(other)?,
            }
        }
        Some(())
    }

    /// At most this many digits; at least one.
    fn number(&mut self, most_digits: usize) -> Option<(u32, usize)> {
        let digits = self.rest.bytes().take(most_digits).take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        Some((number.parse().ok()?, digits))
    }

    /// Which of some names is here: its first `letters` letters, or all of them.
    fn name(&mut self, names: &[&str], letters: usize) -> Option<u32> {
        let length = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (word, rest) = self.rest.split_at(length);
        let begins = |name: &&str| {
            let name = &name[..letters.min(name.len())];
            name.get(..length).is_some_and(|head| head.eq_ignore_ascii_case(word))
        };
        let mut found = (0_u32..).zip(names).filter(|(_, name)| begins(name));
        let (at, name) = found.next().filter(|_| length > 0)?;
        if found.next().is_some() && name.len().min(letters) > length {
            return None;
        }
        self.rest = rest;
        Some(at)
    }

    fn read_part(&mut self, specifier: char) -> Option<()> {
        match specifier {
            'Y' => {
                let (year, digits) = self.number(4)?;
                self.year = if digits <= 2 { two_digit_year(year) } else { year };
            }
            'y' => self.year = two_digit_year(self.number(2)?.0),
            'm' | 'c' => self.month = self.number(2)?.0,
            'M' => self.month = self.name(&MONTHS, usize::MAX)? + 1,
            'b' => self.month = self.name(&MONTHS, 3)? + 1,
            'd' | 'e' => self.day = self.number(2)?.0,
            'D' => {
                self.day = self.number(2)?.0;
                let suffix = self.rest.char_indices().nth(2).map_or(self.rest.len(), |(at, _)| at);
                self.rest = &self.rest[suffix..];
            }
            'j' => self.day_of_year = Some(self.number(3)?.0),
            'W' => self.weekday = Some(self.name(&WEEKDAYS, usize::MAX)? + 1),
            'a' => self.weekday = Some(self.name(&WEEKDAYS, 3)? + 1),
            'w' => {
                self.weekday = Some(match self.number(1)?.0 {
                    0 => 7,
                    weekday @ 1..=6 => weekday,
                    _ => return None,
                })
            }
            'U' | 'u' | 'V' | 'v' => {
                let number = self.number(2)?.0;
                let own_year = matches!(specifier, 'V' | 'v');
                if number > 53 || (own_year && number == 0) {
                    return None;
                }
                let sunday_first = matches!(specifier, 'U' | 'V');
                self.week = Some(Week { number, sunday_first, own_year });
            }
            'X' | 'x' => self.year_of_week = Some(self.number(4)?.0),
            _ => return self.read_clock(specifier),
        }
        Some(())
    }

    fn read_clock(&mut self, specifier: char) -> Option<()> {
        match specifier {
            'h' | 'I' | 'l' => {
                self.half_days = true;
                self.hour = self.number(2)?.0;
            }
            'H' | 'k' => self.hour = self.number(2)?.0,
            'i' => self.minute = self.number(2)?.0,
            'S' | 's' => self.second = self.number(2)?.0,
            'f' => {
                let (fraction, digits) = self.number(6)?;
                self.microsecond = fraction * 10_u32.pow(6 - digits as u32);
            }
            'p' => {
                self.half_days = true;
                self.afternoon = self.name(&["AM", "PM"], 2)? == 1;
            }
            'r' => self.read("%I:%i:%S %p")?,
            'T' => self.read("%H:%i:%S")?,
            '%' => self.rest = self.rest.strip_prefix('%')?,
            '.' => self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_punctuation()),
            '@' => self.rest = self.rest.trim_start_matches(char::is_alphabetic),
            '#' => self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit()),
            _ => return None,
        }
        Some(())
    }

    fn finish(&self) -> Option<DateTime> {
        let hour = match self.half_days {
            true if !(1..=12).contains(&self.hour) => return None,
            true => self.hour % 12 + if self.afternoon { 12 } else { 0 },
            false => self.hour,
        };
        let date = self.date()?;
        if hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        Some(DateTime {
            date,
            hour: hour as u8,
            minute: self.minute as u8,
            second: self.second as u8,
            microsecond: self.microsecond,
        })
    }

    fn date(&self) -> Option<Date> {
        if let Some(day) = self.day_of_year.filter(|&day| day > 0) {
            let first = Date { year: self.year as u16, month: 1, day: 1 };
            return calendar::date_of_day_number(calendar::day_number(first) + i64::from(day) - 1);
        }
        if let Some((week, weekday)) = self.week.zip(self.weekday) {
            return self.date_of_week(week, weekday);
        }
        if self.month > 12 || self.day > 31 {
            return None;
        }
        Some(Date { year: self.year as u16, month: self.month as u8, day: self.day as u8 })
    }

    /// The day of a week; the year is the week's year for `%V` and `%v`, otherwise the date's.
    fn date_of_week(&self, week: Week, weekday: u32) -> Option<Date> {
        if week.own_year != self.year_of_week.is_some() {
            return None;
        }
        let year = self.year_of_week.unwrap_or(self.year);
        let first = calendar::day_number(Date { year: year as u16, month: 1, day: 1 });
        let monday_of_first = i64::from(calendar::weekday(first));
        let days = if week.sunday_first {
            let from_sunday = (monday_of_first + 1) % 7;
            let start = if from_sunday == 0 { 0 } else { 7 };
            start - from_sunday + (i64::from(week.number) - 1) * 7 + i64::from(weekday % 7)
        } else {
            let start = if monday_of_first <= 3 { 0 } else { 7 };
            start - monday_of_first + (i64::from(week.number) - 1) * 7 + i64::from(weekday - 1)
        };
        calendar::date_of_day_number(first + days)
    }
}

fn two_digit_year(year: u32) -> u32 {
    if year < 70 { year + 2000 } else { year + 1900 }
}
