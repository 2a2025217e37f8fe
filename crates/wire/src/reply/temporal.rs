//! Dates and times, as text and in the binary protocol.

use crate::packet::PayloadWriter;
use crate::value::{Date, DateTime, Time};

fn put_two(buffer: &mut Vec<u8>, value: u8) {
    buffer.put(&[b'0' + value / 10 % 10, b'0' + value % 10]);
}

/// `2026-11-21`
pub(super) fn put_date(buffer: &mut Vec<u8>, date: Date) {
    put_two(buffer, (date.year / 100 % 100) as u8);
    put_two(buffer, (date.year % 100) as u8);
    buffer.push(b'-');
    put_two(buffer, date.month);
    buffer.push(b'-');
    put_two(buffer, date.day);
}

/// `2026-11-21 15:08:00.123`
pub(super) fn put_date_time(buffer: &mut Vec<u8>, value: &DateTime, fsp: u8) {
    put_date(buffer, value.date);
    buffer.push(b' ');
    put_two(buffer, value.hour);
    put_minutes(buffer, value.minute, value.second, value.microsecond, fsp);
}

/// `-838:59:59.000000`
pub(super) fn put_time(buffer: &mut Vec<u8>, value: &Time, fsp: u8) {
    if value.negative {
        buffer.push(b'-');
    }
    if value.hours < 100 {
        put_two(buffer, value.hours as u8);
    } else {
        buffer.put(itoa::Buffer::new().format(value.hours).as_bytes());
    }
    put_minutes(buffer, value.minute, value.second, value.microsecond, fsp);
}

fn put_minutes(buffer: &mut Vec<u8>, minute: u8, second: u8, microsecond: u32, fsp: u8) {
    buffer.push(b':');
    put_two(buffer, minute);
    buffer.push(b':');
    put_two(buffer, second);
    if fsp == 0 {
        return;
    }
    buffer.push(b'.');
    let mut unit = 100_000;
    for _ in 0..fsp.min(6) {
        buffer.push(b'0' + (microsecond / unit % 10) as u8);
        unit /= 10;
    }
}

/// Length 0, 4, 7 or 11, and as much of the value as is not zero.
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

/// Length 0, 8 or 12, and as much of the value as is not zero.
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
