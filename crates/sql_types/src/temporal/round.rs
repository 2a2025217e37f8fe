//! Truncating and rounding fractional seconds.

use firn_format::value::{DateTime, Time};

use super::parse::{Fault, MAX_TIME, Parsed};
use crate::calendar;

/// Microseconds of the last of `fsp` digits.
#[must_use]
pub const fn fraction_unit_us(fsp: u8) -> i64 {
    10_i64.pow(6_u32.saturating_sub(fsp as u32))
}

/// `amount`, with the sign of a time.
pub(super) const fn away_from_zero(negative: bool, amount: i64) -> i64 {
    if negative { -amount } else { amount }
}

/// Adds microseconds to a date and time; `None` beyond the calendar. A value that is not on the
/// calendar keeps its date as long as the day lasts.
#[must_use]
pub fn add_microseconds(value: DateTime, microseconds: i64) -> Option<DateTime> {
    let total = calendar::time_of_day_us(value) + microseconds;
    if (0..calendar::MICROSECONDS_PER_DAY).contains(&total) {
        let clock = calendar::date_time_of(1, total)?;
        return Some(DateTime { date: value.date, ..clock });
    }
    let days = total.div_euclid(calendar::MICROSECONDS_PER_DAY);
    let day_number = calendar::day_number(value.date) + days;
    calendar::date_time_of(day_number, total.rem_euclid(calendar::MICROSECONDS_PER_DAY))
}

/// A date and time with `fsp` digits of a fraction, rounded or cut. `None` beyond the calendar.
#[must_use]
pub fn round_date_time(value: DateTime, fsp: u8, truncate: bool) -> Option<DateTime> {
    let unit_us = fraction_unit_us(fsp);
    let rest = i64::from(value.microsecond) % unit_us;
    if rest == 0 {
        return Some(value);
    }
    let cut = DateTime { microsecond: value.microsecond - rest as u32, ..value };
    if truncate || rest * 2 < unit_us { Some(cut) } else { add_microseconds(cut, unit_us) }
}

/// A time with `fsp` digits of a fraction, rounded or cut.
#[must_use]
pub fn round_time(value: Time, fsp: u8, truncate: bool) -> Time {
    let packed = value.pack();
    let unit_us = fraction_unit_us(fsp);
    let rest = packed % unit_us;
    let up = !truncate && rest.abs() * 2 >= unit_us;
    let rounded = packed - rest + if up { away_from_zero(value.negative, unit_us) } else { 0 };
    clip_time(rounded).value.unwrap_or(MAX_TIME)
}

/// A number of microseconds as a time; out of range, the nearest one, with a fault.
#[must_use]
pub fn time_from_us(packed_us: i64) -> Parsed<Time> {
    let clipped = clip_time(packed_us);
    Parsed { value: clipped.value, fault: clipped.fault }
}

pub(super) fn clip_time(packed_us: i64) -> Parsed<Time> {
    let limit = MAX_TIME.pack();
    let fault = (packed_us.abs() > limit).then_some(Fault::OutOfRange);
    Parsed { value: Some(Time::unpack(packed_us.clamp(-limit, limit))), fault }
}
