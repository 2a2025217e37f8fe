//! Universally unique identifiers: generated, checked, and converted to and from sixteen bytes.

use firn_sql_types::Datum;
use firn_sql_types::error::{Result, SqlError};

use crate::arguments::{bytes, text, truth};
use crate::signature::{self, unsigned};
use crate::string::{from_hex, to_small_hex};
use crate::{Call, Function, Volatility, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("UUID", 0..=0, [] => signature::text::<36>, |_, call: &Call<'_>| Ok(uuid(call)))
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
    let time = (microseconds.wrapping_mul(10).wrapping_add(GREGORIAN_EPOCH) + sequence % 10)
        & ((1 << 60) - 1);
    let clock_sequence = (sequence / 10) & 0x3fff | 0x8000;
    let node = session.node_id() & 0xffff_ffff_ffff;
    let (low, middle, high) = (time & 0xffff_ffff, time >> 32 & 0xffff, time >> 48 | 0x1000);
    Datum::text(format!("{low:08x}-{middle:04x}-{high:04x}-{clock_sequence:04x}-{node:012x}"))
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

/// The bytes of a text with or without hyphens, with or without braces.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let inner = match text.len() {
        38 => text.strip_prefix(b"{")?.strip_suffix(b"}")?,
        36 | 32 => text,
        _ => return None,
    };
    let digits: Vec<u8> = match inner.len() {
        36 if HYPHENS.iter().all(|&at| inner[at] == b'-') => {
            let digit = |at: &usize| !HYPHENS.contains(at);
            (0..36).filter(digit).map(|at| inner[at]).collect()
        }
        32 => inner.to_vec(),
        _ => return None,
    };
    from_hex(&digits)?.try_into().ok()
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
    let plain = match is_swapped(arguments) {
        true => [&stored[4..8], &stored[2..4], &stored[0..2], &stored[8..]].concat(),
        false => stored.to_vec(),
    };
    let digits = to_small_hex(&plain);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Ok(Datum::text(parts.join(&b'-')))
}
