//! Universally unique identifiers: generated, checked, and converted to and from sixteen bytes.

use firn_sql_types::Datum;
use firn_sql_types::error::{Result, SqlError};
use uuid::{Builder, Uuid};

use crate::arguments::{bytes, text, truth};
use crate::signature::{self, unsigned};
use crate::{Call, Function, Volatility, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("UUID", 0..=0, [] => signature::system_text::<36>, |_, call: &Call<'_>| Ok(uuid(call)))
        .volatile(Volatility::Row),
    lenient!("UUID_SHORT", 0..=0, [] => unsigned, |_, call: &Call<'_>| Ok(uuid_short(call)))
        .volatile(Volatility::Row),
    strict!("IS_UUID", 1..=1, [Text] => signature::int, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::from_bool(parse(bytes(&a[0])).is_some()))
    }),
    lenient!("UUID_TO_BIN", 1..=2, [Text, Int] => signature::binary::<16>, to_binary),
    lenient!("BIN_TO_UUID", 1..=2, [Text, Int] => signature::text::<36>, from_binary),
];

/// Between 1582-10-15 and 1970-01-01, in units of 100 ns.
const GREGORIAN_EPOCH: u64 = 122_192_928_000_000_000;

/// Version 1: time, a sequence in case the clock stands still, and the server's number.
fn uuid(call: &Call<'_>) -> Datum {
    let session = &call.context.session;
    let sequence = session.next_sequence();
    let microseconds = session.wall_time_us().max(0) as u64;
    // The sequence counts the steps of 100 ns that the clock does not distinguish.
    let ticks = microseconds.wrapping_mul(10).wrapping_add(GREGORIAN_EPOCH) + sequence % 10;
    let [_, _, node @ ..] = session.node_id().to_be_bytes();
    let uuid = Builder::from_gregorian_timestamp(ticks, (sequence / 10) as u16, &node).into_uuid();
    hyphenated(uuid)
}

fn hyphenated(uuid: Uuid) -> Datum {
    let mut text = Uuid::encode_buffer();
    Datum::text(uuid.hyphenated().encode_lower(&mut text).as_bytes())
}

/// The server's number, the time, and a sequence: increases from call to call.
fn uuid_short(call: &Call<'_>) -> Datum {
    let session = &call.context.session;
    let seconds = session.wall_time_us().max(0) as u64 / 1_000_000;
    let high = (session.node_id() & 0xff) << 56;
    Datum::UInt(
        high.wrapping_add(seconds << 24 & 0x00ff_ffff_ffff_ffff)
            .wrapping_add(session.next_sequence()),
    )
}

/// A text with or without hyphens, or with hyphens in braces.
fn parse(text: &[u8]) -> Option<Uuid> {
    let is_known_form = matches!(text.len(), 32 | 36 | 38);
    Uuid::try_parse_ascii(text).ok().filter(|_| is_known_form)
}

fn is_swapped(arguments: &[Datum]) -> bool {
    arguments.get(1).is_some_and(truth)
}

fn incorrect(value: &str, function: &str) -> SqlError {
    SqlError::new(1411, format!("Incorrect string value: '{value}' for function {function}"))
}

/// Swapped, the most significant parts of the time come first, so that identifiers increase with
/// time.
fn to_binary(arguments: &[Datum], _: &Call<'_>) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let Some(plain) = parse(bytes(&arguments[0])) else {
        return Err(incorrect(&text(&arguments[0]), "uuid_to_bin"));
    };
    let plain = plain.as_bytes();
    if !is_swapped(arguments) {
        return Ok(Datum::text(&plain[..]));
    }
    let parts = [&plain[6..8], &plain[4..6], &plain[0..4], &plain[8..]];
    Ok(Datum::text(parts.concat()))
}

fn from_binary(arguments: &[Datum], _: &Call<'_>) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let Ok(stored) = <[u8; 16]>::try_from(bytes(&arguments[0])) else {
        return Err(incorrect(&text(&arguments[0]), "bin_to_uuid"));
    };
    if !is_swapped(arguments) {
        return Ok(hyphenated(Uuid::from_bytes(stored)));
    }
    let mut plain = stored;
    plain[0..4].copy_from_slice(&stored[4..8]);
    plain[4..6].copy_from_slice(&stored[2..4]);
    plain[6..8].copy_from_slice(&stored[0..2]);
    Ok(hyphenated(Uuid::from_bytes(plain)))
}
