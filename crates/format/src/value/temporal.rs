//! Dates and times as packed numbers that compare as the values do.
//!
//! ```text
//!   Date       year ‖ month:4 ‖ day:5                                        non-negative
//!   DateTime   year ‖ month:4 ‖ day:5 ‖ hour:5 ‖ minute:6 ‖ second:6 ‖ µs:20  non-negative
//!   Time       microseconds since midnight, signed: -838:59:59 … 838:59:59
//!   Timestamp  microseconds since 1970-01-01 00:00:00 UTC, non-negative; 0 is '0000-00-00 00:00:00'
//! ```
//!
//! Dates are bit fields rather than day counts, because MySQL stores dates that no calendar has:
//! `0000-00-00`, `2026-02-00`. This module does not check dates against a calendar; the SQL layer
//! does.

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// A date, or one of MySQL's partial dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12; 0 is "unknown".
    pub month: u8,
    /// 0 to 31; 0 is "unknown".
    pub day: u8,
}

impl Date {
    #[must_use]
    pub const fn pack(self) -> i64 {
        (self.year as i64) << 9 | (self.month as i64) << 5 | self.day as i64
    }

    /// The inverse of [`Date::pack`]. Bits beyond the fields are ignored.
    #[must_use]
    pub const fn unpack(packed: i64) -> Date {
        Date {
            year: (packed >> 9) as u16,
            month: (packed >> 5 & 0xf) as u8,
            day: (packed & 0x1f) as u8,
        }
    }
}

/// A date with a time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    pub date: Date,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999.
    pub microsecond: u32,
}

impl DateTime {
    #[must_use]
    pub const fn pack(self) -> i64 {
        let time = (self.hour as i64) << 12 | (self.minute as i64) << 6 | self.second as i64;
        (self.date.pack() << 17 | time) << 20 | self.microsecond as i64
    }

    /// The inverse of [`DateTime::pack`]. Bits beyond the fields are ignored.
    #[must_use]
    pub const fn unpack(packed: i64) -> DateTime {
        let seconds = packed >> 20;
        DateTime {
            date: Date::unpack(seconds >> 17),
            hour: (seconds >> 12 & 0x1f) as u8,
            minute: (seconds >> 6 & 0x3f) as u8,
            second: (seconds & 0x3f) as u8,
            microsecond: (packed & 0xf_ffff) as u32,
        }
    }
}

/// A time of day or a span of hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Time {
    /// Whether the span is negative.
    pub negative: bool,
    /// 0 to 838.
    pub hours: u16,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// 0 to 999,999.
    pub microseconds: u32,
}

impl Time {
    #[must_use]
    pub const fn pack(self) -> i64 {
        let seconds = self.hours as i64 * 3600 + self.minutes as i64 * 60 + self.seconds as i64;
        let span = seconds * MICROSECONDS_PER_SECOND + self.microseconds as i64;
        if self.negative { -span } else { span }
    }

    /// The inverse of [`Time::pack`], for spans below 65,536 hours.
    #[must_use]
    pub const fn unpack(packed: i64) -> Time {
        let span = packed.unsigned_abs();
        let seconds = span / MICROSECONDS_PER_SECOND as u64;
        Time {
            negative: packed < 0,
            hours: (seconds / 3600) as u16,
            minutes: (seconds / 60 % 60) as u8,
            seconds: (seconds % 60) as u8,
            microseconds: (span % MICROSECONDS_PER_SECOND as u64) as u32,
        }
    }
}
