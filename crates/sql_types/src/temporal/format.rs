//! Dates and times to text and to numbers.

use firn_format::value::{Date, DateTime, Time};

use crate::decimal::Decimal;

/// `YYYY-MM-DD`
#[must_use]
pub fn date_text(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

/// `[-]HH:MM:SS[.fraction]`
#[must_use]
pub fn time_text(time: Time, fsp: u8) -> String {
    let sign = if time.negative { "-" } else { "" };
    let (hours, minutes, seconds) = (time.hours, time.minutes, time.seconds);
    let fraction = fraction_text(time.microseconds, fsp);
    format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

/// `YYYY-MM-DD HH:MM:SS[.fraction]`
#[must_use]
pub fn date_time_text(value: DateTime, fsp: u8) -> String {
    let date = date_text(value.date);
    let fraction = fraction_text(value.microsecond, fsp);
    format!("{date} {:02}:{:02}:{:02}{fraction}", value.hour, value.minute, value.second)
}

/// A point and the first `fsp` digits of the microseconds; nothing if `fsp` is 0.
fn fraction_text(microseconds: u32, fsp: u8) -> String {
    if fsp == 0 {
        return String::new();
    }
    let digits = format!(".{microseconds:06}");
    digits[..=usize::from(fsp.min(6))].to_owned()
}

/// `YYYYMMDD`
#[must_use]
pub fn date_number(date: Date) -> i64 {
    i64::from(date.year) * 10_000 + i64::from(date.month) * 100 + i64::from(date.day)
}

/// `[-]HHMMSS`, without the fraction.
#[must_use]
pub fn time_number(time: Time) -> i64 {
    let clock = i64::from(time.hours) * 10_000 + i64::from(time.minutes) * 100;
    let number = clock + i64::from(time.seconds);
    if time.negative { -number } else { number }
}

/// `YYYYMMDDHHMMSS`, without the fraction.
#[must_use]
pub fn date_time_number(value: DateTime) -> i64 {
    let clock = i64::from(value.hour) * 10_000 + i64::from(value.minute) * 100;
    date_number(value.date) * 1_000_000 + clock + i64::from(value.second)
}

/// `[-]HHMMSS.ffffff` with `fsp` digits after the point.
#[must_use]
pub fn time_decimal(time: Time, fsp: u8) -> Decimal {
    let sign = if time.negative { -1 } else { 1 };
    with_fraction(time_number(time), sign * i128::from(time.microseconds), fsp)
}

/// `YYYYMMDDHHMMSS.ffffff` with `fsp` digits after the point.
#[must_use]
pub fn date_time_decimal(value: DateTime, fsp: u8) -> Decimal {
    with_fraction(date_time_number(value), value.microsecond.into(), fsp)
}

fn with_fraction(whole: i64, microseconds: i128, fsp: u8) -> Decimal {
    let unit = 10_i128.pow(6 - u32::from(fsp.min(6)));
    let unscaled = (i128::from(whole) * 1_000_000 + microseconds) / unit;
    Decimal::from_unscaled(unscaled, fsp.min(6))
}
