//! `WEIGHT_STRING`: the bytes by which MySQL orders a value.
//!
//! ```text
//!   integer          8 bytes, highest first, the sign turned round: 80 00 00 00 00 00 00 01
//!   ENUM and SET     the same of the number; dates of the packed day, datetimes of the moment
//!   TIME             the packed time, above the middle of its six bytes
//!   DECIMAL, DOUBLE  NULL
//!   text             its weights under its collation
//! ```
//!
//! The weights of Unicode collations are Firn's own sort keys: MySQL's come from another version of
//! the algorithm's table.

use firn_format::value::{DateTime, Time};

use super::search::most_weights_bytes;
use crate::arguments::{bytes, fits_packet};
use crate::signature::{Want, text_chars};
use crate::{Call, Function, ResolveContext, Signature, strict};
use firn_sql_collation as collation;
use firn_sql_types::error::Result;
use firn_sql_types::{Coercibility, Datum, SqlType, TypeKind};

pub(super) const FUNCTIONS: &[Function] =
    &[strict!("WEIGHT_STRING", 1..=1, resolve_weights, |a: &[Datum], call: &Call<'_>| {
        Ok(match &a[0] {
            Datum::Int(number) => of_signed(*number),
            Datum::UInt(number) if call.arguments[0].kind.is_enum_or_set() => {
                of_signed(*number as i64)
            }
            Datum::UInt(number) => Datum::text(&number.to_be_bytes()[..]),
            Datum::Date(packed) => of_signed(*packed),
            Datum::DateTime(packed) => of_signed(packed_moment(DateTime::unpack(*packed))),
            Datum::Time(packed) => of_signed(TIME_MIDDLE + packed_time(Time::unpack(*packed))),
            Datum::Text(_) => return of_text(&a[0], call),
            Datum::Null | Datum::Double(_) | Datum::Decimal(_) | Datum::Json(_) => Datum::Null,
        })
    })];

/// MySQL's offset for a packed time, so that none is negative.
const TIME_MIDDLE: i64 = 0x8000_0000_0000;
/// Bits of the microseconds in a packed time.
const MICROSECOND_BITS: u32 = 24;

fn resolve_weights(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let ty = &types[0];
    let argument = match ty.kind {
        TypeKind::Json | TypeKind::Geometry => Want::Text.of(ty, context),
        _ => ty.clone(),
    };
    let result = SqlType::varbinary(text_chars(ty).saturating_mul(8))
        .with_nullable(true)
        .with_coercibility(weights_coercibility(ty));
    Ok(Signature { arguments: vec![argument], result })
}

/// The weights bind as the text does.
fn weights_coercibility(text: &SqlType) -> Coercibility {
    match text.kind.is_enum_or_set() {
        true => Coercibility::Implicit,
        false => text.coercibility,
    }
}

fn of_signed(number: i64) -> Datum {
    Datum::text(&(number ^ i64::MIN).to_be_bytes()[..])
}

fn of_text(text: &Datum, call: &Call<'_>) -> Result<Datum> {
    let Some(collation) = call.arguments[0].collation() else { return Ok(Datum::Null) };
    let collation = collation::get(collation);
    let text = bytes(text);
    let Some(_promise) = fits_packet(most_weights_bytes(text, collation), "weight_string", call)?
    else {
        return Ok(Datum::Null);
    };
    let mut weights = Vec::new();
    collation.write_weights(text, &mut weights);
    Ok(Datum::text(weights))
}

/// A moment in MySQL's form: 17 bits of months and day, 17 of the time of day, the microseconds.
fn packed_moment(moment: DateTime) -> i64 {
    let months = i64::from(moment.date.year) * 13 + i64::from(moment.date.month);
    let day = months << 5 | i64::from(moment.date.day);
    let time = i64::from(moment.hour) << 12 | i64::from(moment.minute) << 6;
    (day << 17 | time | i64::from(moment.second)) << MICROSECOND_BITS
        | i64::from(moment.microsecond)
}

/// A time in MySQL's form. Negative ones have all bits inverted.
fn packed_time(time: Time) -> i64 {
    let seconds =
        i64::from(time.hours) << 12 | i64::from(time.minutes) << 6 | i64::from(time.seconds);
    let packed = seconds << MICROSECOND_BITS | i64::from(time.microseconds);
    if time.negative { !packed } else { packed }
}
