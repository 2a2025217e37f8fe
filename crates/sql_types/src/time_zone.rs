//! Time zones of sessions: offsets such as `+02:00`, names such as `Europe/Zurich`, and `SYSTEM`.
//!
//! Named zones come from the compiled-in tz database, so all nodes of a cluster agree.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use firn_format::value::DateTime;
use jiff::civil;
use jiff::tz::{self, AmbiguousOffset, Offset};
use jiff::{SignedDuration, Timestamp};

/// The latest `TIMESTAMP`: 2038-01-19 03:14:07.999999 UTC, in microseconds since 1970.
pub const MAX_TIMESTAMP_US: i64 = 2_147_483_647_999_999;
const MAX_OFFSET_MINUTES: i32 = 14 * 60;
const MIN_OFFSET_MINUTES: i32 = -(13 * 60 + 59);

/// A time zone, with the name by which it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone {
    name: Box<str>,
    /// Seconds east of UTC, if that never changes.
    fixed_offset_seconds: Option<i32>,
    zone: tz::TimeZone,
}

impl Hash for TimeZone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl TimeZone {
    /// `+00:00`
    #[must_use]
    pub fn utc() -> TimeZone {
        TimeZone::fixed("+00:00", 0).unwrap_or_else(|| unreachable!("UTC is a zone"))
    }

    /// The host's zone, or UTC if it has none. Looked up once per process.
    #[must_use]
    pub fn system() -> TimeZone {
        static SYSTEM: OnceLock<tz::TimeZone> = OnceLock::new();
        let zone = SYSTEM.get_or_init(|| tz::TimeZone::try_system().unwrap_or(tz::TimeZone::UTC));
        TimeZone::from_zone("SYSTEM", zone.clone())
    }

    /// A zone by the name that `SET time_zone` accepts; `None` if there is no such zone.
    #[must_use]
    pub fn parse(name: &str) -> Option<TimeZone> {
        if name.eq_ignore_ascii_case("SYSTEM") {
            return Some(TimeZone::system());
        }
        if let Some(offset_seconds) = parse_offset(name) {
            return TimeZone::fixed(name, offset_seconds);
        }
        let zone = tz::TimeZoneDatabase::bundled().get(name).ok()?;
        let name = zone.iana_name().unwrap_or(name).to_owned();
        Some(TimeZone::from_zone(&name, zone))
    }

    fn fixed(name: &str, offset_seconds: i32) -> Option<TimeZone> {
        let offset = Offset::from_seconds(offset_seconds).ok()?;
        Some(TimeZone::from_zone(name, tz::TimeZone::fixed(offset)))
    }

    fn from_zone(name: &str, zone: tz::TimeZone) -> TimeZone {
        let fixed_offset_seconds = zone.to_fixed_offset().ok().map(Offset::seconds);
        TimeZone { name: name.into(), fixed_offset_seconds, zone }
    }

    /// The name that `@@time_zone` shows.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Local time of an instant, given in microseconds since 1970 UTC. `None` outside the years 0
    /// to 9999.
    #[must_use]
    pub fn to_local(&self, timestamp_us: i64) -> Option<DateTime> {
        let seconds = timestamp_us.div_euclid(1_000_000);
        let offset_seconds = match self.fixed_offset_seconds {
            Some(offset_seconds) => offset_seconds,
            None => self.zone.to_offset(Timestamp::from_second(seconds).ok()?).seconds(),
        };
        let local_us = timestamp_us.checked_add(i64::from(offset_seconds) * 1_000_000)?;
        super::calendar::date_time_from_unix_us(local_us)
    }

    /// The instant of a local time, in microseconds since 1970 UTC. As in MySQL, a time that the
    /// clocks skipped is the moment of the change, and of a time that they showed twice it is the
    /// earlier one. `None` for dates that are not on the calendar.
    #[must_use]
    pub fn to_timestamp_us(&self, local: DateTime) -> Option<i64> {
        let local_us = super::calendar::unix_us(local)?;
        if let Some(offset_seconds) = self.fixed_offset_seconds {
            return local_us.checked_sub(i64::from(offset_seconds) * 1_000_000);
        }
        match self.zone.to_ambiguous_timestamp(civil_time(local)?).offset() {
            AmbiguousOffset::Unambiguous { offset } => {
                Some(local_us - i64::from(offset.seconds()) * 1_000_000)
            }
            AmbiguousOffset::Fold { before, .. } => {
                Some(local_us - i64::from(before.seconds()) * 1_000_000)
            }
            AmbiguousOffset::Gap { after, .. } => {
                self.end_of_gap(local_us - i64::from(after.seconds()) * 1_000_000)
            }
        }
    }

    /// The next clock change after an instant shortly before it.
    fn end_of_gap(&self, timestamp_us: i64) -> Option<i64> {
        let before = Timestamp::from_microsecond(timestamp_us).ok()?;
        let before = before.checked_sub(SignedDuration::from_micros(1)).ok()?;
        self.zone.following(before).next().map(|change| change.timestamp().as_microsecond())
    }
}

impl Default for TimeZone {
    fn default() -> TimeZone {
        TimeZone::utc()
    }
}

/// Seconds of an offset such as `+05:30` or `-3:00`; `None` if it is invalid or outside `-13:59` to
/// `+14:00`.
#[must_use]
pub fn parse_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=2).contains(&hours.len()) || minutes.len() != 2 || !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes) = (hours.parse::<i32>().ok()?, minutes.parse::<i32>().ok()?);
    let offset_minutes = sign * (hours * 60 + minutes);
    let possible =
        minutes < 60 && (MIN_OFFSET_MINUTES..=MAX_OFFSET_MINUTES).contains(&offset_minutes);
    possible.then_some(offset_minutes * 60)
}

fn civil_time(local: DateTime) -> Option<civil::DateTime> {
    civil::DateTime::new(
        local.date.year.try_into().ok()?,
        local.date.month.try_into().ok()?,
        local.date.day.try_into().ok()?,
        local.hour.try_into().ok()?,
        local.minute.try_into().ok()?,
        local.second.try_into().ok()?,
        (local.microsecond * 1000).try_into().ok()?,
    )
    .ok()
}
