//! The proleptic Gregorian calendar with MySQL's numbers: day numbers, months, weeks.
//!
//! ```text
//!   day number 1 is 0000-01-01 by TO_DAYS(); 1970-01-01 is 719528; 9999-12-31 is 3652424
//! ```
//!
//! MySQL treats year 0 as a common year, so its day numbers before March of year 0 differ from the
//! calendar.

use firn_format::value::{Date, DateTime};

/// `TO_DAYS('1970-01-01')`
pub const UNIX_EPOCH_DAY_NUMBER: i64 = 719_528;
/// `TO_DAYS('9999-12-31')`
pub const MAX_DAY_NUMBER: i64 = 3_652_424;
pub const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// Whether February has 29 days. Year 0 does not.
#[must_use]
pub const fn is_leap_year(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || (year.is_multiple_of(400) && year != 0))
}

#[must_use]
pub const fn days_in_year(year: u16) -> u16 {
    if is_leap_year(year) { 366 } else { 365 }
}

/// Days of a month (1 to 12); 0 for any other month.
#[must_use]
pub const fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 0,
    }
}

/// Whether a date is on the calendar: no part is 0 and the month has that day.
#[must_use]
pub const fn is_on_calendar(date: Date) -> bool {
    date.day >= 1 && date.day <= days_in_month(date.year, date.month) && date.year <= 9999
}

/// MySQL's day number, `TO_DAYS()`, of any date whose month is at most 12; partial dates count as
/// in MySQL, and 0000-00-00 is 0.
#[must_use]
pub const fn day_number(date: Date) -> i64 {
    let (year, month, day) = (date.year as i64, date.month as i64, date.day as i64);
    if year == 0 && month == 0 {
        return 0;
    }
    let mut days = 365 * year + 31 * (month - 1) + day;
    let mut leap_year = year;
    if month <= 2 {
        leap_year -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    let centuries = (leap_year / 100 + 1) * 3 / 4;
    days + leap_year / 4 - centuries
}

/// The date of a day number; `None` outside 0000-01-01 to 9999-12-31.
#[must_use]
pub fn date_of_day_number(day_number: i64) -> Option<Date> {
    if !(1..=MAX_DAY_NUMBER).contains(&day_number) {
        return None;
    }
    let mut year = (day_number * 100 / 36_525) as u16;
    let start_of = |year: u16| self::day_number(Date { year, month: 1, day: 1 });
    while year > 0 && start_of(year) > day_number {
        year -= 1;
    }
    while day_number - start_of(year) >= i64::from(days_in_year(year)) {
        year += 1;
    }
    let mut rest = (day_number - start_of(year)) as u16;
    let mut month = 1;
    while rest >= u16::from(days_in_month(year, month)) {
        rest -= u16::from(days_in_month(year, month));
        month += 1;
    }
    Some(Date { year, month, day: rest as u8 + 1 })
}

/// Day of the year from 1.
#[must_use]
pub const fn day_of_year(date: Date) -> i64 {
    day_number(date) - day_number(Date { year: date.year, month: 1, day: 1 }) + 1
}

/// Day of the week, 0 being Monday, as `WEEKDAY()` counts.
#[must_use]
pub const fn weekday(day_number: i64) -> u8 {
    (day_number + 5).rem_euclid(7) as u8
}

/// The last day of a date's month; `None` when the month is 0.
#[must_use]
pub const fn last_day(date: Date) -> Option<Date> {
    match days_in_month(date.year, date.month) {
        0 => None,
        day => Some(Date { day, ..date }),
    }
}

/// The rules of a week mode, as in `WEEK(date, mode)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeekMode {
    /// Weeks begin on Monday, not on Sunday.
    pub monday_first: bool,
    /// Days before week 1 belong to the last week of the previous year, not to week 0.
    pub range_from_one: bool,
    /// Week 1 is the first that begins in the year, not the first with four days in it.
    pub first_weekday: bool,
}

impl WeekMode {
    /// The rules of the modes 0 to 7; further bits are ignored.
    #[must_use]
    pub const fn new(mode: i64) -> WeekMode {
        let monday_first = mode & 1 != 0;
        // The third bit has the opposite meaning for weeks that begin on Sunday.
        let first_weekday = (mode & 4 != 0) == monday_first;
        WeekMode { monday_first, range_from_one: mode & 2 != 0, first_weekday }
    }
}

/// The week of a date and the year to which the week belongs.
#[must_use]
pub const fn week(date: Date, mode: WeekMode) -> (u16, u8) {
    let day = day_number(date);
    let mut first_day = day_number(Date { year: date.year, month: 1, day: 1 });
    let mut weekday = weekday_from(first_day, mode);
    let mut year = date.year;
    let mut range_from_one = mode.range_from_one;
    if date.month == 1 && (date.day as i64) <= 7 - weekday {
        let in_week_one = if mode.first_weekday { weekday == 0 } else { weekday < 4 };
        if !range_from_one && !in_week_one {
            return (year, 0);
        }
        if !in_week_one {
            range_from_one = true;
            year = year.wrapping_sub(1);
            let days = days_in_year(year) as i64;
            first_day -= days;
            weekday = (weekday + 53 * 7 - days).rem_euclid(7);
        }
    }
    let late = if mode.first_weekday { weekday != 0 } else { weekday >= 4 };
    let days = if late { day - (first_day + 7 - weekday) } else { day - (first_day - weekday) };
    if range_from_one && days >= 52 * 7 {
        let next = (weekday + days_in_year(year) as i64) % 7;
        if (!mode.first_weekday && next < 4) || (mode.first_weekday && next == 0) {
            return (year + 1, 1);
        }
    }
    (year, (days / 7 + 1) as u8)
}

const fn weekday_from(day_number: i64, mode: WeekMode) -> i64 {
    let shift = if mode.monday_first { 5 } else { 6 };
    (day_number + shift).rem_euclid(7)
}

/// Microseconds from 1970-01-01 00:00:00 to a date and time, ignoring time zones; `None` off the
/// calendar.
#[must_use]
pub fn unix_us(local: DateTime) -> Option<i64> {
    if !is_on_calendar(local.date) {
        return None;
    }
    let days = day_number(local.date) - UNIX_EPOCH_DAY_NUMBER;
    Some(days * MICROSECONDS_PER_DAY + time_of_day_us(local))
}

/// Microseconds since midnight.
#[must_use]
pub const fn time_of_day_us(local: DateTime) -> i64 {
    let seconds = local.hour as i64 * 3600 + local.minute as i64 * 60 + local.second as i64;
    seconds * MICROSECONDS_PER_SECOND + local.microsecond as i64
}

/// The inverse of [`unix_us`]; `None` outside the years 0 to 9999.
#[must_use]
pub fn date_time_from_unix_us(unix_us: i64) -> Option<DateTime> {
    let days = unix_us.div_euclid(MICROSECONDS_PER_DAY) + UNIX_EPOCH_DAY_NUMBER;
    date_time_of(days, unix_us.rem_euclid(MICROSECONDS_PER_DAY))
}

/// Combines a day number and a time of day in microseconds.
#[must_use]
pub fn date_time_of(day_number: i64, time_of_day_us: i64) -> Option<DateTime> {
    let date = date_of_day_number(day_number)?;
    let seconds = time_of_day_us / MICROSECONDS_PER_SECOND;
    Some(DateTime {
        date,
        hour: (seconds / 3600) as u8,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        microsecond: (time_of_day_us % MICROSECONDS_PER_SECOND) as u32,
    })
}
