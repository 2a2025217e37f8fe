use firn_format::value::{Date, DateTime, Time};
use proptest::prelude::*;

use super::format::{date_time_text, time_text};
use super::interval::{Interval, IntervalUnit, add};
use super::parse::{
    DateRules, Fault, date_time_from_number, parse_date_time, parse_time, time_from_number,
};
use crate::calendar::{self, WeekMode};
use crate::sql_mode::SqlMode;

fn date_time(text: &str) -> String {
    let parsed = parse_date_time(text.as_bytes(), DateRules::LENIENT);
    let value = parsed.value.map(|written| date_time_text(written.date_time, 6));
    format!("{} {:?}", value.unwrap_or_default(), parsed.fault)
}

fn time(text: &str) -> String {
    let parsed = parse_time(text.as_bytes(), DateRules::LENIENT);
    let value = parsed.value.map(|value| time_text(value, 6));
    format!("{} {:?}", value.unwrap_or_default(), parsed.fault)
}

#[test]
fn every_form_of_a_date_is_read() {
    for (text, expected) in [
        ("2026-11-21", "2026-11-21 00:00:00.000000 None"),
        ("2026-11-21 15:04:05", "2026-11-21 15:04:05.000000 None"),
        ("2026-11-21T15:04:05.5", "2026-11-21 15:04:05.500000 None"),
        (" 2026/1/2 3:4", "2026-01-02 03:04:00.000000 None"),
        ("26-1-2", "2026-01-02 00:00:00.000000 None"),
        ("70-1-2", "1970-01-02 00:00:00.000000 None"),
        ("20261121", "2026-11-21 00:00:00.000000 None"),
        ("261121", "2026-11-21 00:00:00.000000 None"),
        ("20261121150405", "2026-11-21 15:04:05.000000 None"),
        ("261121150405", "2026-11-21 15:04:05.000000 None"),
        ("20261121150405.25", "2026-11-21 15:04:05.250000 None"),
        ("20261121T150405", "2026-11-21 15:04:05.000000 None"),
        ("2026-12-31 23:59:59.9999996", "2027-01-01 00:00:00.000000 None"),
        ("2026-11-21 ", "2026-11-21 00:00:00.000000 None"),
        ("2026-11-21 15:04:05.", "2026-11-21 15:04:05.000000 None"),
        ("2026-11-21x", "2026-11-21 00:00:00.000000 Some(Truncated)"),
        ("2026-11-21 15:04:05abc", "2026-11-21 15:04:05.000000 Some(Truncated)"),
        ("2026-02-30", " Some(OutOfRange)"),
        ("2026-13-01", " Some(Truncated)"),
        ("2026-11", " Some(Truncated)"),
        ("abc", " Some(Truncated)"),
        ("", " Some(Truncated)"),
        ("0000-00-00", "0000-00-00 00:00:00.000000 None"),
        ("2026-00-00", "2026-00-00 00:00:00.000000 None"),
        ("2026-11-21 25:00:00", " Some(Truncated)"),
        ("2026^11@21", "2026-11-21 00:00:00.000000 None"),
    ] {
        assert_eq!(date_time(text), expected, "{text:?}");
    }
}

#[test]
fn offsets_are_read_behind_a_datetime() {
    let read = |text: &str| parse_date_time(text.as_bytes(), DateRules::LENIENT);
    let written = read("2026-11-21 15:04:05.5+02:00").value.unwrap();
    assert_eq!(written.offset_seconds, Some(7200));
    assert_eq!(read("2026-11-21 15:04:05-00:30").value.unwrap().offset_seconds, Some(-1800));
    assert_eq!(read("2026-11-21 15:04:05+15:00").fault, Some(Fault::Truncated));
    assert_eq!(read("2026-11-21 15:04:05-00:00").fault, Some(Fault::Truncated));
}

#[test]
fn modes_refuse_zero_dates() {
    let rules = DateRules::from_mode(SqlMode::DEFAULT);
    let fault = |text: &str| parse_date_time(text.as_bytes(), rules).fault;
    assert_eq!(fault("0000-00-00"), Some(Fault::ZeroDate));
    assert_eq!(fault("2026-00-01"), Some(Fault::ZeroInDate));
    let invalid = DateRules::from_mode(SqlMode::ALLOW_INVALID_DATES);
    assert_eq!(parse_date_time(b"2026-02-31", invalid).fault, None);
}

#[test]
fn every_form_of_a_time_is_read() {
    for (text, expected) in [
        ("15:04:05", "15:04:05.000000 None"),
        ("-15:04:05.25", "-15:04:05.250000 None"),
        ("150405", "15:04:05.000000 None"),
        ("405", "00:04:05.000000 None"),
        ("15:04", "15:04:00.000000 None"),
        ("3 15:04", "87:04:00.000000 None"),
        ("1 2", "00:00:01.000000 Some(Truncated)"),
        ("1 02", "26:00:00.000000 None"),
        ("900:00:00", "838:59:59.000000 Some(OutOfRange)"),
        ("10:61:00", " Some(OutOfRange)"),
        ("10:11:12abc", "10:11:12.000000 Some(Truncated)"),
        ("abc", " Some(Truncated)"),
        ("2026-11-21 15:04:05", "15:04:05.000000 None"),
        ("00:00:00.9999999", "00:00:01.000000 None"),
        ("12.5", "00:00:12.500000 None"),
    ] {
        assert_eq!(time(text), expected, "{text:?}");
    }
}

#[test]
fn numbers_are_dates_and_times() {
    let date = |number| {
        let parsed = date_time_from_number(number, DateRules::LENIENT);
        parsed.value.map(|written| date_time_text(written.date_time, 0))
    };
    assert_eq!(date(20_261_121).as_deref(), Some("2026-11-21 00:00:00"));
    assert_eq!(date(261_121).as_deref(), Some("2026-11-21 00:00:00"));
    assert_eq!(date(700_101).as_deref(), Some("1970-01-01 00:00:00"));
    assert_eq!(date(20_261_121_150_405).as_deref(), Some("2026-11-21 15:04:05"));
    assert_eq!(date(691_232), None);
    assert_eq!(date(100), None);
    assert_eq!(date(20_261_332), None);
    assert_eq!(
        time_from_number(-1_0203).value.map(|t| time_text(t, 0)).as_deref(),
        Some("-01:02:03")
    );
    assert_eq!(time_from_number(9_000_000).fault, Some(Fault::OutOfRange));
    assert_eq!(time_from_number(6_100).value, None);
}

#[test]
fn day_numbers_and_weeks_are_those_of_mysql() {
    let date = |year, month, day| Date { year, month, day };
    assert_eq!(calendar::day_number(date(1970, 1, 1)), 719_528);
    assert_eq!(calendar::day_number(date(9999, 12, 31)), 3_652_424);
    assert_eq!(calendar::day_number(date(2007, 10, 7)), 733_321);
    assert_eq!(calendar::weekday(calendar::day_number(date(2026, 11, 21))), 5);
    let week = |date, mode| calendar::week(date, WeekMode::new(mode));
    assert_eq!(week(date(2008, 2, 20), 0), (2008, 7));
    assert_eq!(week(date(2008, 2, 20), 1), (2008, 8));
    assert_eq!(week(date(2008, 12, 31), 1), (2008, 53));
    assert_eq!(week(date(2000, 1, 1), 0), (2000, 0));
    assert_eq!(week(date(2000, 1, 1), 2), (1999, 52));
    assert_eq!(week(date(1987, 1, 1), 2), (1986, 52));
    assert_eq!(week(date(2026, 1, 1), 3), (2026, 1));
}

fn interval(unit: &str, text: &str) -> Interval {
    Interval::from_text(IntervalUnit::by_name(unit).unwrap(), text.as_bytes()).unwrap()
}

#[test]
fn intervals_are_added() {
    let later = |from: &str, unit: &str, span: &str| {
        let from = parse_date_time(from.as_bytes(), DateRules::LENIENT).value.unwrap();
        add(from.date_time, interval(unit, span)).map(|value| date_time_text(value, 6))
    };
    for (from, unit, span, expected) in [
        ("2018-12-31 23:59:59", "SECOND", "1", "2019-01-01 00:00:00.000000"),
        ("2100-12-31 23:59:59", "MINUTE_SECOND", "1:1", "2101-01-01 00:01:00.000000"),
        ("2025-01-01 00:00:00", "DAY_SECOND", "-1 1:1:1", "2024-12-30 22:58:59.000000"),
        ("1900-01-01 00:00:00", "DAY_HOUR", "-1 10", "1899-12-30 14:00:00.000000"),
        (
            "1992-12-31 23:59:59.000002",
            "SECOND_MICROSECOND",
            "1.999999",
            "1993-01-01 00:00:01.000001",
        ),
        ("2024-03-30", "MONTH", "1", "2024-04-30 00:00:00.000000"),
        ("2024-02-29", "YEAR", "1", "2025-02-28 00:00:00.000000"),
        ("2024-01-31", "YEAR_MONTH", "1-1", "2025-02-28 00:00:00.000000"),
        ("2024-01-31", "QUARTER", "-1", "2023-10-31 00:00:00.000000"),
        ("2024-01-31", "SECOND", "1.5", "2024-01-31 00:00:01.500000"),
        ("2024-01-31", "DAY", "1.5", "2024-02-02 00:00:00.000000"),
    ] {
        assert_eq!(later(from, unit, span).as_deref(), Some(expected), "{from} + {span} {unit}");
    }
    assert_eq!(later("9999-12-31", "DAY", "1"), None);
    assert_eq!(later("0001-01-01", "YEAR", "-2"), None);
}

proptest! {
    #[test]
    fn day_numbers_come_back(day in 1..=calendar::MAX_DAY_NUMBER) {
        let date = calendar::date_of_day_number(day);
        // Year 0 begins a day late in MySQL's count.
        prop_assert_eq!(date.map(calendar::day_number), Some(day));
    }

    #[test]
    fn printed_values_are_read_back(us in -62_135_596_800_000_000_i64..253_402_300_799_999_999) {
        let value = calendar::date_time_from_unix_us(us).unwrap();
        let parsed = parse_date_time(date_time_text(value, 6).as_bytes(), DateRules::LENIENT);
        prop_assert_eq!(parsed.value.map(|written| written.date_time), Some(value));
        prop_assert_eq!(calendar::unix_us(value), Some(us));
    }

    #[test]
    fn printed_times_are_read_back(us in -3_020_399_000_000_i64..=3_020_399_000_000) {
        let value = Time::unpack(us);
        let parsed = parse_time(time_text(value, 6).as_bytes(), DateRules::LENIENT);
        prop_assert_eq!((parsed.value, parsed.fault), (Some(value), None));
    }

    #[test]
    fn no_text_makes_it_panic(text in proptest::collection::vec(any::<u8>(), 0..30), digits in "[0-9:. T+-]{0,30}") {
        for text in [&text[..], digits.as_bytes()] {
            let _ = parse_date_time(text, DateRules::LENIENT);
            let _ = parse_time(text, DateRules::LENIENT);
            let _ = Interval::from_text(IntervalUnit::DayMicrosecond, text);
        }
    }

    #[test]
    fn adding_a_span_and_taking_it_away_is_nothing(
        us in -62_000_000_000_000_000_i64..250_000_000_000_000_000,
        span in -1_000_000_000_000_i64..1_000_000_000_000,
    ) {
        let value: DateTime = calendar::date_time_from_unix_us(us).unwrap();
        let span = Interval { months: 0, microseconds: span.into() };
        let there = add(value, span).unwrap();
        prop_assert_eq!(add(there, span.negate()), Some(value));
    }
}
