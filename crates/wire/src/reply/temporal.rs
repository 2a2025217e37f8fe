//! Dates and times, as text and in the binary protocol.

use firn_base::temporal_text::{self, ClockTime};

use crate::packet::PayloadWriter;
use crate::value::{Date, DateTime, Time};

/// `2026-11-21`
pub(super) fn put_date(buffer: &mut Vec<u8>, date: Date) {
    temporal_text::put_date(buffer, date.year, date.month, date.day);
}

/// `2026-11-21 15:08:00.123`
pub(super) fn put_date_time(buffer: &mut Vec<u8>, value: &DateTime, fsp: u8) {
    put_date(buffer, value.date);
    buffer.push(b' ');
    let clock = ClockTime {
        hours: value.hour.into(),
        minutes: value.minute,
        seconds: value.second,
        microseconds: value.microsecond,
    };
    clock.put(buffer, fsp);
}

/// `-838:59:59.000000`
pub(super) fn put_time(buffer: &mut Vec<u8>, value: &Time, fsp: u8) {
    if value.negative {
        buffer.push(b'-');
    }
    let clock = ClockTime {
        hours: value.hours,
        minutes: value.minute,
        seconds: value.second,
        microseconds: value.microsecond,
    };
    clock.put(buffer, fsp);
}

/// A length of 0, 4, 7 or 11, then that many bytes of the value; the parts left out are zero.
pub(super) fn put_binary_date_time(buffer: &mut Vec<u8>, value: &DateTime) {
    let date = value.date;
    let length = match *value {
        DateTime { microsecond: 1.., .. } => 11,
        DateTime { hour: 0, minute: 0, second: 0, .. } if date == Date::default() => 0,
        DateTime { hour: 0, minute: 0, second: 0, .. } => 4,
        _ => 7,
    };
    buffer.put_u8(length);
    if length >= 4 {
        buffer.put_u16(date.year);
        buffer.put(&[date.month, date.day]);
    }
    if length >= 7 {
        buffer.put(&[value.hour, value.minute, value.second]);
    }
    if length == 11 {
        buffer.put_u32(value.microsecond);
    }
}

/// A length of 0, 8 or 12, then that many bytes of the value; the parts left out are zero.
pub(super) fn put_binary_time(buffer: &mut Vec<u8>, value: &Time) {
    let length = match *value {
        Time { microsecond: 1.., .. } => 12,
        Time { hours: 0, minute: 0, second: 0, .. } => 0,
        _ => 8,
    };
    buffer.put_u8(length);
    if length == 0 {
        return;
    }
    buffer.put_u8(u8::from(value.negative));
    buffer.put_u32(value.hours / 24);
    buffer.put(&[(value.hours % 24) as u8, value.minute, value.second]);
    if length == 12 {
        buffer.put_u32(value.microsecond);
    }
}
