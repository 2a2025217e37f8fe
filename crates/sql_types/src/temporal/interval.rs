//! `INTERVAL`: spans of time that are added to dates.

use firn_format::value::{Date, DateTime};

use crate::calendar;
use crate::decimal::{Decimal, Rounding};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are SQL's.
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

use IntervalUnit as Unit;

impl IntervalUnit {
    /// Every unit with its name.
    pub const NAMES: [(&'static str, Unit); 20] = [
        ("MICROSECOND", Unit::Microsecond),
        ("SECOND", Unit::Second),
        ("MINUTE", Unit::Minute),
        ("HOUR", Unit::Hour),
        ("DAY", Unit::Day),
        ("WEEK", Unit::Week),
        ("MONTH", Unit::Month),
        ("QUARTER", Unit::Quarter),
        ("YEAR", Unit::Year),
        ("SECOND_MICROSECOND", Unit::SecondMicrosecond),
        ("MINUTE_MICROSECOND", Unit::MinuteMicrosecond),
        ("MINUTE_SECOND", Unit::MinuteSecond),
        ("HOUR_MICROSECOND", Unit::HourMicrosecond),
        ("HOUR_SECOND", Unit::HourSecond),
        ("HOUR_MINUTE", Unit::HourMinute),
        ("DAY_MICROSECOND", Unit::DayMicrosecond),
        ("DAY_SECOND", Unit::DaySecond),
        ("DAY_MINUTE", Unit::DayMinute),
        ("DAY_HOUR", Unit::DayHour),
        ("YEAR_MONTH", Unit::YearMonth),
    ];

    /// A unit by its name, with or without the prefix `SQL_TSI_`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<IntervalUnit> {
        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix("SQL_TSI_").unwrap_or(&name);
        Unit::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, unit)| unit)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        Unit::NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Whether adding it leaves the time of day unchanged.
    #[must_use]
    pub fn is_whole_days(self) -> bool {
        matches!(
            self,
            Unit::Day | Unit::Week | Unit::Month | Unit::Quarter | Unit::Year | Unit::YearMonth
        )
    }

    #[must_use]
    pub fn has_microseconds(self) -> bool {
        matches!(
            self,
            Unit::Microsecond
                | Unit::SecondMicrosecond
                | Unit::MinuteMicrosecond
                | Unit::HourMicrosecond
                | Unit::DayMicrosecond
        )
    }

    /// Whether it has several parts, like `DAY_HOUR`.
    #[must_use]
    pub fn is_compound(self) -> bool {
        !self.parts().is_empty()
    }

    /// The parts of a compound unit's text; empty for a simple unit.
    fn parts(self) -> &'static [Part] {
        use Part::{Day, Hour, Microsecond, Minute, Month, Second, Year};
        match self {
            Unit::SecondMicrosecond => &[Second, Microsecond],
            Unit::MinuteMicrosecond => &[Minute, Second, Microsecond],
            Unit::MinuteSecond => &[Minute, Second],
            Unit::HourMicrosecond => &[Hour, Minute, Second, Microsecond],
            Unit::HourSecond => &[Hour, Minute, Second],
            Unit::HourMinute => &[Hour, Minute],
            Unit::DayMicrosecond => &[Day, Hour, Minute, Second, Microsecond],
            Unit::DaySecond => &[Day, Hour, Minute, Second],
            Unit::DayMinute => &[Day, Hour, Minute],
            Unit::DayHour => &[Day, Hour],
            Unit::YearMonth => &[Year, Month],
            _ => &[],
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Microsecond,
}

/// An interval: months, and microseconds of a fixed length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Years, quarters and months.
    pub months: i64,
    /// Weeks, days and below, in microseconds.
    pub microseconds: i128,
}

const SECOND_US: i128 = 1_000_000;
const DAY_US: i128 = calendar::MICROSECONDS_PER_DAY as i128;

impl Interval {
    /// A number of a simple unit; for a compound one, of its last part.
    #[must_use]
    pub fn from_number(unit: IntervalUnit, count: i64) -> Interval {
        let microseconds =
            |unit_us: i128| Interval { months: 0, microseconds: i128::from(count) * unit_us };
        let months = |unit: i64| Interval { months: count.saturating_mul(unit), microseconds: 0 };
        match unit {
            Unit::Microsecond => microseconds(1),
            Unit::Second | Unit::MinuteSecond | Unit::HourSecond | Unit::DaySecond => {
                microseconds(SECOND_US)
            }
            Unit::Minute | Unit::HourMinute | Unit::DayMinute => microseconds(60 * SECOND_US),
            Unit::Hour | Unit::DayHour => microseconds(3600 * SECOND_US),
            Unit::Day => microseconds(DAY_US),
            Unit::Week => microseconds(7 * DAY_US),
            Unit::Month | Unit::YearMonth => months(1),
            Unit::Quarter => months(3),
            Unit::Year => months(12),
            // '5' is five of the last part, written as a fraction of a second.
            _ => Interval::from_text(unit, count.to_string().as_bytes()).unwrap_or_default(),
        }
    }

    /// A number of a unit. Only seconds have a fraction, which is cut to microseconds; other units
    /// are rounded; a compound unit reads the number as text. `None` for more seconds than an
    /// `i64` holds, and as for [`Interval::from_text`].
    #[must_use]
    pub fn from_decimal(unit: IntervalUnit, count: &Decimal) -> Option<Interval> {
        if unit.is_compound() {
            return Interval::from_text(unit, count.to_string().as_bytes());
        }
        if unit == Unit::Second {
            count.round(0, Rounding::Truncate)?.to_i64()?;
            let fraction = count.round(6, Rounding::Truncate)?;
            let microseconds = fraction.multiply(&Decimal::from(1_000_000_i64))?.to_i128()?;
            return Some(Interval { months: 0, microseconds });
        }
        let limit = if count.is_negative() { i64::MIN } else { i64::MAX };
        Some(Interval::from_number(unit, count.to_i64().unwrap_or(limit)))
    }

    /// Reads a text. For a compound unit, the text has numbers separated by anything. If there are
    /// fewer numbers than parts, the first parts are missing; if there are more, or if one has
    /// nearly as many digits as an `i64` can hold, there is no interval.
    #[must_use]
    pub fn from_text(unit: IntervalUnit, text: &[u8]) -> Option<Interval> {
        let parts = unit.parts();
        if parts.is_empty() {
            return Interval::from_decimal(unit, &Decimal::parse_prefix(text).number);
        }
        let text = text.trim_ascii_start();
        let negative = text.first() == Some(&b'-');
        let mut numbers: Vec<(i128, u32)> = Vec::new();
        let runs = text.split(|byte| !byte.is_ascii_digit()).filter(|run| !run.is_empty());
        for run in runs {
            if numbers.len() == parts.len() {
                return None;
            }
            let add = |value: i128, byte: &u8| {
                let is_full = value >= i128::from(i64::MAX / 10);
                (!is_full).then(|| value * 10 + i128::from(byte - b'0'))
            };
            numbers.push((run.iter().try_fold(0_i128, add)?, run.len() as u32));
        }
        let given = &parts[parts.len() - numbers.len()..];
        let mut interval = Interval::default();
        for (part, (value, digits)) in given.iter().zip(numbers) {
            interval.add_part(*part, value, digits);
        }
        Some(if negative { interval.negate() } else { interval })
    }

    fn add_part(&mut self, part: Part, value: i128, digits: u32) {
        match part {
            Part::Year => {
                self.months = self.months.saturating_add((value as i64).saturating_mul(12))
            }
            Part::Month => self.months = self.months.saturating_add(value as i64),
            Part::Day => self.microseconds += value * DAY_US,
            Part::Hour => self.microseconds += value * 3600 * SECOND_US,
            Part::Minute => self.microseconds += value * 60 * SECOND_US,
            Part::Second => self.microseconds += value * SECOND_US,
            // Digits after a point: '5' is half a second.
            Part::Microsecond if digits <= 6 => {
                self.microseconds += value * 10_i128.pow(6 - digits);
            }
            Part::Microsecond => self.microseconds += value,
        }
    }

    /// The span back.
    #[must_use]
    pub fn negate(self) -> Interval {
        Interval {
            months: self.months.saturating_neg(),
            microseconds: self.microseconds.saturating_neg(),
        }
    }
}

/// Adds an interval to a date and time. `None` (MySQL's error 1441) outside the years 0 to 9999.
#[must_use]
pub fn add(value: DateTime, interval: Interval) -> Option<DateTime> {
    let moved = if interval.months == 0 { value } else { add_months(value, interval.months)? };
    if interval.microseconds == 0 {
        return Some(moved);
    }
    let day_us = DAY_US;
    let total = i128::from(calendar::time_of_day_us(moved)).checked_add(interval.microseconds)?;
    let days = i64::try_from(total.div_euclid(day_us)).ok()?;
    let day_number = calendar::day_number(moved.date).checked_add(days)?;
    calendar::date_time_of(day_number, total.rem_euclid(day_us) as i64)
}

fn add_months(value: DateTime, months: i64) -> Option<DateTime> {
    let date = value.date;
    let month = i64::from(date.month.max(1)) - 1;
    let total = (i64::from(date.year) * 12 + month).checked_add(months)?;
    if !(0..120_000).contains(&total) {
        return None;
    }
    let (year, month) = ((total / 12) as u16, (total % 12) as u8 + 1);
    let day = date.day.min(calendar::days_in_month(year, month));
    Some(DateTime { date: Date { year, month, day }, ..value })
}
