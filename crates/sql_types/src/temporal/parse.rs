//! Text and numbers to dates and times, in every form that MySQL accepts.
//!
//! ```text
//!   '2026-11-21 15:04:05.5'  '26/1/2 3:4'  '20261121T150405'  '2026-11-21 15:04:05+02:00'  dates
//!   '15:04:05'  '-3 15:04'  '150405'  '15:04:05.5'                                          times
//!   20261121  261121  20261121150405                                                        numbers
//! ```
//!
//! A result may have both a value and a fault, such as garbage after the value; the caller turns
//! faults into warnings or errors.

use firn_format::value::{Date, DateTime, Time};

use super::round;
use crate::calendar::days_in_month;
use crate::sql_mode::SqlMode;
use crate::time_zone::parse_offset;

/// Smaller two-digit years are in the 21st century, the others in the 20th.
const FIRST_YEAR_OF_1900: u32 = 70;
/// The most parts of a datetime: year to second and the fraction.
const PARTS: usize = 7;
const SECOND: usize = 5;
const FRACTION: usize = 6;
pub const MAX_TIME: Time =
    Time { negative: false, hours: 838, minutes: 59, seconds: 59, microseconds: 0 };
/// [`MAX_TIME`] as `HHMMSS`.
const MAX_TIME_NUMBER: i64 = 8_385_959;
/// Texts of at least this length may be a datetime where a time is wanted.
const SHORTEST_FULL_TIMESTAMP: usize = 12;
/// The shortest date, `1-1-1`.
const SHORTEST_DATE: usize = 5;

/// Which dates are accepted, and how fractions are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateRules {
    /// '0000-00-00' is refused.
    pub no_zero_date: bool,
    /// Dates with month or day 0 are refused.
    pub no_zero_in_date: bool,
    /// Every month has 31 days.
    pub allow_invalid_dates: bool,
    /// Digits beyond the sixth of a fraction are cut, not rounded.
    pub truncate_fraction: bool,
}

impl DateRules {
    /// Takes zero dates.
    pub const LENIENT: DateRules = DateRules {
        no_zero_date: false,
        no_zero_in_date: false,
        allow_invalid_dates: false,
        truncate_fraction: false,
    };

    /// The rules of the session's modes.
    #[must_use]
    pub fn from_mode(mode: SqlMode) -> DateRules {
        DateRules {
            no_zero_date: mode.contains(SqlMode::NO_ZERO_DATE),
            no_zero_in_date: mode.contains(SqlMode::NO_ZERO_IN_DATE),
            ..DateRules::lenient_in_mode(mode)
        }
    }

    /// The rules of the session's modes, but zero dates are accepted.
    #[must_use]
    pub fn lenient_in_mode(mode: SqlMode) -> DateRules {
        DateRules {
            allow_invalid_dates: mode.contains(SqlMode::ALLOW_INVALID_DATES),
            truncate_fraction: mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL),
            ..DateRules::LENIENT
        }
    }

    /// Why a date is not accepted.
    #[must_use]
    pub fn fault_of(&self, date: Date) -> Option<Fault> {
        if date == Date::default() {
            return self.no_zero_date.then_some(Fault::ZeroDate);
        }
        if self.no_zero_in_date && (date.month == 0 || date.day == 0) {
            return Some(Fault::ZeroInDate);
        }
        let too_late = date.month > 0 && date.day > days_in_month(date.year, date.month);
        let impossible = date.month > 12 || date.day > 31 || date.year > 9999;
        (impossible || too_late && !self.allow_invalid_dates).then_some(Fault::OutOfRange)
    }
}

/// The fault of a text or number that is read as a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not one, or something follows it.
    Truncated,
    /// It is not on the calendar or clock, or out of the type's range.
    OutOfRange,
    /// '0000-00-00', and the mode refuses it.
    ZeroDate,
    /// Month or day is 0, and the mode refuses that.
    ZeroInDate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value, if there is one.
    pub value: Option<T>,
    /// What is wrong with the source.
    pub fault: Option<Fault>,
}

impl<T> Parsed<T> {
    fn good(value: T) -> Parsed<T> {
        Parsed { value: Some(value), fault: None }
    }

    fn bad(fault: Fault) -> Parsed<T> {
        Parsed { value: None, fault: Some(fault) }
    }

    /// The value converted, with the same fault.
    #[must_use]
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Parsed<U> {
        Parsed { value: self.value.map(convert), fault: self.fault }
    }
}

/// A date and time as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenDateTime {
    /// The date and time, in its own offset.
    pub date_time: DateTime,
    /// Whether a time of day was written.
    pub has_time: bool,
    /// Seconds east of UTC, if an offset was written.
    pub offset_seconds: Option<i32>,
    /// Fraction digits that were written, at most 6.
    pub fraction_digits: u8,
}

/// The parts of a datetime while they are read.
#[derive(Default)]
struct Reader<'a> {
    rest: &'a [u8],
    values: [u32; PARTS],
    lengths: [usize; PARTS],
    count: usize,
    saw_delimiter: bool,
    saw_space: bool,
    /// The first digit of the fraction that is not kept.
    seventh_digit: u8,
    offset_seconds: Option<i32>,
}

/// Reads a date, or a date and time.
#[must_use]
pub fn parse_date_time(text: &[u8], rules: DateRules) -> Parsed<WrittenDateTime> {
    let text = text.trim_ascii_start();
    if !text.first().is_some_and(u8::is_ascii_digit) {
        return Parsed::bad(Fault::Truncated);
    }
    let packed = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'T').count();
    let year_digits = (packed == text.len() || text[packed] == b'.').then_some(match packed {
        4 | 8 | 14.. => 4,
        _ => 2,
    });
    let mut reader = Reader { rest: text, ..Reader::default() };
    if let Err(fault) = reader.read_parts(year_digits) {
        return Parsed::bad(fault);
    }
    reader.finish(year_digits, rules)
}

impl Reader<'_> {
    /// Reads the parts. With `year_digits`, they follow each other without separators.
    fn read_parts(&mut self, year_digits: Option<usize>) -> Result<(), Fault> {
        let mut width = year_digits.unwrap_or(4);
        while self.count < PARTS && self.rest.first().is_some_and(u8::is_ascii_digit) {
            let part = self.count;
            self.read_number(if year_digits.is_some() || part == FRACTION { width } else { 20 })?;
            width = 2;
            if self.rest.is_empty() {
                return Ok(());
            }
            if part == 2 && self.rest[0] == b'T' {
                self.rest = &self.rest[1..];
                continue;
            }
            if part == FRACTION {
                self.skip_fraction();
            }
            if part == SECOND || part == FRACTION {
                if part == SECOND && self.rest[0] == b'.' {
                    self.rest = &self.rest[1..];
                    width = FRACTION;
                    continue;
                }
                return self.read_offset();
            }
            self.skip_delimiters(part)?;
        }
        Ok(())
    }

    fn read_number(&mut self, most_digits: usize) -> Result<(), Fault> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = digits.min(most_digits);
        let mut value = 0_u32;
        for byte in &self.rest[..digits] {
            value = value * 10 + u32::from(byte - b'0');
            if value > 999_999 {
                return Err(Fault::OutOfRange);
            }
        }
        self.values[self.count] = value;
        self.lengths[self.count] = digits;
        self.count += 1;
        self.rest = &self.rest[digits..];
        Ok(())
    }

    /// Skips excess digits of a fraction.
    fn skip_fraction(&mut self) {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.seventh_digit = self.rest.first().filter(|_| digits > 0).map_or(0, |byte| byte - b'0');
        self.rest = &self.rest[digits..];
    }

    fn read_offset(&mut self) -> Result<(), Fault> {
        if !matches!(self.rest.first(), Some(b'+' | b'-')) {
            return Ok(());
        }
        let text = std::str::from_utf8(self.rest).map_err(|_| Fault::Truncated)?;
        let hours_have_two_digits = text.len() == 6 && text != "-00:00";
        let offset = parse_offset(text).filter(|_| hours_have_two_digits);
        self.offset_seconds = Some(offset.ok_or(Fault::Truncated)?);
        self.rest = &[];
        Ok(())
    }

    /// Skips what separates two parts. A space may only follow the day.
    fn skip_delimiters(&mut self, part: usize) -> Result<(), Fault> {
        let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
        let is_delimiter = |byte: &u8| byte.is_ascii_punctuation() || is_space(byte);
        let length = self.rest.iter().take_while(|byte| is_delimiter(byte)).count();
        let (delimiters, rest) = self.rest.split_at(length);
        if part == 2 && rest.is_empty() && delimiters.iter().all(is_space) {
            // It ends here.
            return Ok(());
        }
        if delimiters.iter().any(is_space) {
            if part != 2 {
                return Err(Fault::Truncated);
            }
            self.saw_space = true;
        }
        self.saw_delimiter |= length > 0;
        self.rest = rest;
        Ok(())
    }

    fn finish(&self, year_digits: Option<usize>, rules: DateRules) -> Parsed<WrittenDateTime> {
        let [mut year, month, day, hour, minute, second, fraction] = self.values;
        let is_zero = self.values == [0; PARTS];
        if year_digits.unwrap_or(self.lengths[0]) == 2 && !is_zero {
            year += if year < FIRST_YEAR_OF_1900 { 2000 } else { 1900 };
        }
        if self.count < 3 && is_zero {
            return Parsed::bad(Fault::ZeroDate);
        }
        if self.count < 3 || year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 {
            return Parsed::bad(Fault::Truncated);
        }
        if second > 59 {
            return Parsed::bad(Fault::Truncated);
        }
        let date = Date { year: year as u16, month: month as u8, day: day as u8 };
        if let Some(fault) =
            rules.fault_of(date).filter(|fault| *fault != Fault::ZeroDate || is_zero)
        {
            return Parsed::bad(fault);
        }
        let scale = 10_u32.pow((FRACTION - self.lengths[FRACTION].min(FRACTION)) as u32);
        let date_time = DateTime {
            date,
            hour: hour as u8,
            minute: minute as u8,
            second: second as u8,
            microsecond: fraction * scale,
        };
        let up = self.seventh_digit >= 5 && !rules.truncate_fraction;
        let Some(date_time) = round::add_microseconds(date_time, up.into()) else {
            return Parsed::bad(Fault::OutOfRange);
        };
        let written = WrittenDateTime {
            date_time,
            has_time: self.count > 3,
            offset_seconds: self.offset_seconds,
            fraction_digits: self.lengths[FRACTION] as u8,
        };
        let garbage = !self.rest.trim_ascii().is_empty();
        Parsed { value: Some(written), fault: garbage.then_some(Fault::Truncated) }
    }
}

/// Reads a time, or the time of day of a whole datetime.
#[must_use]
pub fn parse_time(text: &[u8], rules: DateRules) -> Parsed<Time> {
    let text = text.trim_ascii_start();
    let negative = text.first() == Some(&b'-');
    let unsigned = &text[usize::from(negative)..];
    if let Some((written, fault)) = parse_behind_date(text, rules) {
        return Parsed { value: Some(time_of_day(written.date_time)), fault };
    }
    if !negative && is_broken_date(text) {
        return Parsed::bad(Fault::Truncated);
    }
    if !unsigned.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.') {
        return Parsed::bad(Fault::Truncated);
    }
    let mut reader = TimeReader { rest: unsigned };
    let Some([days, hours, minutes, seconds]) = reader.read_parts() else {
        return Parsed::bad(Fault::OutOfRange);
    };
    let (microseconds, seventh_digit) = reader.read_fraction();
    if has_exponent(reader.rest) {
        return Parsed::bad(Fault::Truncated);
    }
    let hours = days.saturating_mul(24).saturating_add(hours);
    if minutes > 59 || seconds > 59 {
        return Parsed::bad(Fault::OutOfRange);
    }
    let garbage = (!reader.rest.trim_ascii().is_empty()).then_some(Fault::Truncated);
    if hours > u64::from(MAX_TIME.hours) {
        return Parsed {
            value: Some(Time { negative, ..MAX_TIME }),
            fault: Some(Fault::OutOfRange),
        };
    }
    let (hours, minutes, seconds) = (hours as u16, minutes as u8, seconds as u8);
    let time = Time { negative, hours, minutes, seconds, microseconds };
    let up = seventh_digit >= 5 && !rules.truncate_fraction;
    let clipped = round::clip_time(time.pack() + round::away_from_zero(time.negative, up.into()));
    Parsed { fault: clipped.fault.or(garbage), ..clipped }
}

/// Whether a text is long enough for a date and time, and begins with the digits of a date that a
/// letter breaks off.
fn is_broken_date(text: &[u8]) -> bool {
    const YEAR: usize = 4;
    const DATE: usize = 8;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_broken =
        text.get(digits).is_some_and(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    if text.len() < SHORTEST_FULL_TIMESTAMP || digits == 0 || !is_broken {
        return false;
    }
    let month = text.get(YEAR..YEAR + 2).filter(|_| digits > YEAR + 1);
    digits < DATE - 1 || month.is_some_and(|month| month > b"12".as_slice())
}

/// Whether a text for a time also has a date.
#[must_use]
pub fn is_time_behind_date(text: &[u8]) -> bool {
    parse_behind_date(text.trim_ascii_start(), DateRules::LENIENT).is_some()
}

/// A date and time where a time is wanted, and its fault.
pub(super) fn parse_behind_date(
    text: &[u8],
    rules: DateRules,
) -> Option<(WrittenDateTime, Option<Fault>)> {
    let is_negative = text.first() == Some(&b'-');
    if text.len() < SHORTEST_FULL_TIMESTAMP || is_negative || !may_be_date_time(text) {
        return None;
    }
    let truncate_fraction = rules.truncate_fraction;
    // Beside the time, the date need not be on the calendar.
    let rules = DateRules { truncate_fraction, allow_invalid_dates: true, ..DateRules::LENIENT };
    let full = parse_date_time(text, rules);
    Some((full.value.filter(|written| written.has_time)?, full.fault))
}

/// Whether an exponent follows: such a number is not a time.
fn has_exponent(rest: &[u8]) -> bool {
    match rest {
        [b'e' | b'E', b'+' | b'-', digit, ..] | [b'e' | b'E', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    }
}

/// Whether a text for a time may be a date with a time: digits in a row, or a date before a space.
/// `01:02:03.000004` is a time, however long it is.
fn may_be_date_time(text: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let whole = text.split(|byte| *byte == b'.').next().unwrap_or_default();
    if whole.iter().all(is_digit) {
        return true;
    }
    let mut parts = text.splitn(2, |byte| matches!(byte, b' ' | b'T' | b't'));
    let (date, time) = (parts.next().unwrap_or_default(), parts.next());
    let is_date = date.len() >= SHORTEST_DATE && !date.contains(&b':');
    time.is_some_and(|time| time.first().is_some_and(is_digit)) && is_date
}

/// The time of day of a date and time.
#[must_use]
pub fn time_of_day(value: DateTime) -> Time {
    Time {
        negative: false,
        hours: value.hour.into(),
        minutes: value.minute,
        seconds: value.second,
        microseconds: value.microsecond,
    }
}

struct TimeReader<'a> {
    rest: &'a [u8],
}

impl TimeReader<'_> {
    fn number(&mut self) -> Option<u64> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let add = |value: u64, byte: &u8| {
            value
                .checked_mul(10)?
                .checked_add(u64::from(byte - b'0'))
                .filter(|v| *v <= u32::MAX.into())
        };
        number.iter().try_fold(0, add)
    }

    fn colon_and_digit(&self) -> bool {
        self.rest.first() == Some(&b':') && self.rest.get(1).is_some_and(u8::is_ascii_digit)
    }

    /// Days, hours, minutes and seconds; `None` if a number is out of any range.
    fn read_parts(&mut self) -> Option<[u64; 4]> {
        let had_digits = self.rest.first().is_some_and(u8::is_ascii_digit);
        let first = self.number()?;
        let spaces = self.rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let mut parts = [0; 4];
        let mut at;
        // A single digit after spaces is not an hour, but garbage.
        let behind = &self.rest[spaces..];
        let has_hours = behind.len() > 1 && behind[0].is_ascii_digit();
        if had_digits && spaces > 0 && has_hours {
            self.rest = &self.rest[spaces..];
            parts[0] = first;
            at = 1;
        } else if self.colon_and_digit() {
            self.rest = &self.rest[1..];
            parts[1] = first;
            at = 2;
        } else {
            return Some([0, first / 10_000, first / 100 % 100, first % 100]);
        }
        loop {
            parts[at] = self.number()?;
            at += 1;
            if at == parts.len() || !self.colon_and_digit() {
                return Some(parts);
            }
            self.rest = &self.rest[1..];
        }
    }

    /// Microseconds, and the first digit that is not kept.
    fn read_fraction(&mut self) -> (u32, u8) {
        if self.rest.first() != Some(&b'.') {
            return (0, 0);
        }
        self.rest = &self.rest[1..];
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let digit = |at: usize| fraction.get(at).map_or(0, |byte| byte - b'0');
        ((0..FRACTION).fold(0, |value, at| value * 10 + u32::from(digit(at))), digit(FRACTION))
    }
}

/// Reads a number such as 20261121 or 261121150405 as a date and time.
#[must_use]
pub fn date_time_from_number(number: i64, rules: DateRules) -> Parsed<WrittenDateTime> {
    const CENTURY_20: i64 = 19_000_000;
    const CENTURY_21: i64 = 20_000_000;
    const DATE: i64 = 1_000_000;
    let (number, has_time) = match number {
        0 => (0, true),
        101..=691_231 => ((number + CENTURY_21) * DATE, false),
        700_101..=991_231 => ((number + CENTURY_20) * DATE, false),
        991_232..=99_991_231 => (number * DATE, false),
        101_000_000..=691_231_235_959 => (number + CENTURY_21 * DATE, true),
        700_101_000_000..=991_231_235_959 => (number + CENTURY_20 * DATE, true),
        991_231_235_960..=99_999_999_999_999 => (number, true),
        ..0 | 100_000_000_000_000.. => return Parsed::bad(Fault::OutOfRange),
        _ => return Parsed::bad(Fault::Truncated),
    };
    let (day, clock) = (number / DATE, number % DATE);
    let date = Date {
        year: (day / 10_000) as u16,
        month: (day / 100 % 100) as u8,
        day: (day % 100) as u8,
    };
    let [hour, minute, second] = [clock / 10_000, clock / 100 % 100, clock % 100];
    if date.month > 12 || date.day > 31 || hour > 23 || minute > 59 || second > 59 {
        return Parsed::bad(Fault::Truncated);
    }
    if let Some(fault) = rules.fault_of(date) {
        return Parsed::bad(fault);
    }
    let (hour, minute, second) = (hour as u8, minute as u8, second as u8);
    let date_time = DateTime { date, hour, minute, second, microsecond: 0 };
    Parsed::good(WrittenDateTime { date_time, has_time, offset_seconds: None, fraction_digits: 0 })
}

/// Reads the date of a number such as 20261121 or 261121150405. The clock behind it may be wrong,
/// and month and day may be 0, also of a number of few digits: 0 is 2000-00-00.
#[must_use]
pub fn date_from_number(number: i64, rules: DateRules) -> Parsed<Date> {
    const CENTURY_20: i64 = 19_000_000;
    const CENTURY_21: i64 = 20_000_000;
    const CLOCK: i64 = 1_000_000;
    let day = match number {
        0..=699_999 => number + CENTURY_21,
        700_000..=991_231 => number + CENTURY_20,
        991_232..=99_999_999 => number,
        100_000_000..=699_999_999_999 => number / CLOCK + CENTURY_21,
        700_000_000_000..=991_231_999_999 => number / CLOCK + CENTURY_20,
        991_232_000_000..=99_999_999_999_999 => number / CLOCK,
        _ => return Parsed::bad(Fault::OutOfRange),
    };
    let date = Date {
        year: (day / 10_000) as u16,
        month: (day / 100 % 100) as u8,
        day: (day % 100) as u8,
    };
    rules.fault_of(date).map_or(Parsed::good(date), Parsed::bad)
}

/// The smallest number that has a date before its time.
pub const SMALLEST_DATE_TIME: i64 = 10_000_000_000;

/// Reads a number such as 150405 as a time. `value` is the nearest time if it is out of range.
#[must_use]
pub fn time_from_number(number: i64) -> Parsed<Time> {
    let negative = number < 0;
    if number >= SMALLEST_DATE_TIME {
        let full = date_time_from_number(number, DateRules::LENIENT);
        if full.value.is_some() {
            return full.map(|written| time_of_day(written.date_time));
        }
    }
    let magnitude = number.unsigned_abs();
    if magnitude > MAX_TIME_NUMBER as u64 {
        return Parsed {
            value: Some(Time { negative, ..MAX_TIME }),
            fault: Some(Fault::OutOfRange),
        };
    }
    let (minutes, seconds) = ((magnitude / 100 % 100) as u8, (magnitude % 100) as u8);
    if minutes > 59 || seconds > 59 {
        return Parsed::bad(Fault::OutOfRange);
    }
    let hours = (magnitude / 10_000) as u16;
    Parsed::good(Time { negative, hours, minutes, seconds, microseconds: 0 })
}

/// Reads a number as a year: one or two digits are in 1970 to 2069 (but `'0'` and `'00'` are 2000),
/// others are the year itself. `None` outside 0 and 1901 to 2155.
#[must_use]
pub fn year_from_number(number: i64, is_text_of_two_digits: bool) -> Option<u64> {
    let year = match number {
        0 if is_text_of_two_digits => 2000,
        0 => 0,
        1..=69 => number + 2000,
        70..=99 => number + 1900,
        1901..=2155 => number,
        _ => return None,
    };
    u64::try_from(year).ok()
}
