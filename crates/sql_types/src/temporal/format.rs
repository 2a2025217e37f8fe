//! Dates and times to text and to numbers.

use firn_base::temporal_text::{ClockTime, put_date};
use firn_format::value::{Date, DateTime, Time};

use crate::decimal::Decimal;

/// `2026-02-03 04:05:06.000000`, or `-838:59:59.000000`.
const MAX_TEXT_BYTES: usize = 26;

/// `YYYY-MM-DD`
#[must_use]
pub fn date_text(date: Date) -> String {
    text(|out| put_date(out, date.year, date.month, date.day))
}

/// `[-]HH:MM:SS[.fraction]`
#[must_use]
pub fn time_text(time: Time, fsp: u8) -> String {
    text(|out| {
        if time.negative {
            out.push(b'-');
        }
        let clock = ClockTime {
            hours: time.hours.into(),
            minutes: time.minutes,
            seconds: time.seconds,
            microseconds: time.microseconds,
        };
        clock.put(out, fsp);
    })
}

/// `YYYY-MM-DD HH:MM:SS[.fraction]`
#[must_use]
pub fn date_time_text(value: DateTime, fsp: u8) -> String {
    text(|out| {
        put_date(out, value.date.year, value.date.month, value.date.day);
        out.push(b' ');
        let clock = ClockTime {
            hours: value.hour.into(),
            minutes: value.minute,
            seconds: value.second,
            microseconds: value.microsecond,
        };
        clock.put(out, fsp);
    })
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = Vec::with_capacity(MAX_TEXT_BYTES);
    write(&mut text);
    String::from_utf8(text).expect("digits and signs are ASCII")
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
