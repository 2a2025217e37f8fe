//! Dates and times of day as text, as MySQL writes them to clients and into strings.
//!
//! ```text
//!   2026-02-03    04:05:06    04:05:06.120    838:59:59
//! ```

use std::io::Write as _;

const MAX_FRACTION_DIGITS: u8 = 6;

/// Appends `YYYY-MM-DD`. Only the last four digits of `year` are written.
pub fn put_date(text: &mut Vec<u8>, year: u16, month: u8, day: u8) {
    put_two(text, (year / 100 % 100) as u8);
    put_two(text, (year % 100) as u8);
    text.push(b'-');
    put_two(text, month);
    text.push(b'-');
    put_two(text, day);
}

/// A time of day or an unsigned span of time.
#[derive(Clone, Copy, Debug)]
pub struct ClockTime {
    pub hours: u32,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// 0 to 999,999.
    pub microseconds: u32,
}

impl ClockTime {
    /// Appends `HH:MM:SS` and, unless `fsp` is 0, a point and the first `fsp` digits of the
    /// microseconds, at most six. Hours from 100 on have as many digits as they need.
    pub fn put(self, text: &mut Vec<u8>, fsp: u8) {
        if self.hours < 100 {
            put_two(text, self.hours as u8);
        } else {
            // Writing to a vector never fails.
            let _ = write!(text, "{}", self.hours);
        }
        text.push(b':');
        put_two(text, self.minutes);
        text.push(b':');
        put_two(text, self.seconds);
        if fsp == 0 {
            return;
        }
        text.push(b'.');
        let mut unit = 100_000;
        for _ in 0..fsp.min(MAX_FRACTION_DIGITS) {
            text.push(b'0' + (self.microseconds / unit % 10) as u8);
            unit /= 10;
        }
    }
}

fn put_two(text: &mut Vec<u8>, number: u8) {
    text.extend_from_slice(&[b'0' + number / 10 % 10, b'0' + number % 10]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(hours: u32, microseconds: u32, fsp: u8) -> String {
        let mut text = Vec::new();
        ClockTime { hours, minutes: 5, seconds: 59, microseconds }.put(&mut text, fsp);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn parts_have_leading_zeros() {
        let mut text = Vec::new();
        put_date(&mut text, 26, 2, 3);
        assert_eq!(text, b"0026-02-03");
        assert_eq!(clock(4, 0, 0), "04:05:59");
        assert_eq!(clock(838, 0, 0), "838:05:59");
    }

    #[test]
    fn a_fraction_has_the_digits_that_are_asked_for() {
        assert_eq!(clock(0, 120_034, 1), "00:05:59.1");
        assert_eq!(clock(0, 34, 6), "00:05:59.000034");
        assert_eq!(clock(0, 34, 9), "00:05:59.000034");
    }
}
