//! Parts of strings: `LEFT`, `RIGHT`, `SUBSTRING`, `SUBSTRING_INDEX`, and `INSERT`, which puts a
//! part in.

use firn_sql_types::error::Result;
use firn_sql_types::{ByteString, Datum, SqlType};
use memchr::memmem;

use crate::arguments::{bytes, fits_packet, int};
use crate::signature::{Want, joined, text_chars, text_of, text_of_first};
use crate::string::Units;
use crate::{Call, Function, ResolveContext, Signature, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("LEFT", 2..=2, [Text, Int] => text_of_first, left),
    strict!("RIGHT", 2..=2, [Text, Int] => text_of_first, right),
    strict!("SUBSTRING", 2..=3, [Text, Int, Int] => text_of_first, substring),
    strict!("SUBSTRING_INDEX", 3..=3, joined [Text, Text, Int] => text_of_first, substring_index)
        .in_order(&[0, 2, 1]),
    strict!("INSERT", 4..=4, resolve_insert, insert).in_order(&[0, 3, 1, 2]),
];

fn left(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let text = Units::new(&arguments[0], call.arguments[0]);
    let count = usize::try_from(int(&arguments[1])).unwrap_or(0);
    Ok(Datum::text(text.slice(0, count)))
}

fn right(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let text = Units::new(&arguments[0], call.arguments[0]);
    let count = usize::try_from(int(&arguments[1])).unwrap_or(0);
    let start = text.len().saturating_sub(count);
    Ok(Datum::text(text.slice(start, count)))
}

fn substring(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let text = Units::new(&arguments[0], call.arguments[0]);
    let count =
        arguments.get(2).map_or(usize::MAX, |count| usize::try_from(int(count)).unwrap_or(0));
    let start = match int(&arguments[1]) {
        0 => None,
        position @ 1.. => usize::try_from(position - 1).ok(),
        back => text.len().checked_sub(usize::try_from(back.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    Ok(Datum::text(start.map_or(&[][..], |start| text.slice(start, count))))
}

fn substring_index(arguments: &[Datum], _: &Call<'_>) -> Result<Datum> {
    let (text, delimiter, count) = (bytes(&arguments[0]), bytes(&arguments[1]), int(&arguments[2]));
    if count == 0 || delimiter.is_empty() || text.is_empty() {
        return Ok(Datum::text(""));
    }
    let places = positions(text, delimiter);
    let nth = usize::try_from(count.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let part = if count > 0 {
        places.get(nth).map_or(text, |&end| &text[..end])
    } else {
        let from_end = places.len().checked_sub(1).and_then(|last| last.checked_sub(nth));
        from_end.map_or(text, |nth| &text[places[nth] + delimiter.len()..])
    };
    Ok(Datum::text(part))
}

/// The positions of the delimiter, without overlaps.
fn positions(text: &[u8], delimiter: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(next) = memmem::find(&text[at..], delimiter) {
        places.push(at + next);
        at += next + delimiter.len();
    }
    places
}

fn resolve_insert(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let wants = [Want::Text, Want::Int, Want::Int, Want::Text];
    joined(types, context, &wants, |types, context| {
        let chars = u64::from(text_chars(&types[0])) + u64::from(text_chars(&types[3]));
        text_of(&types[..1], chars, context)
    })
}

fn insert(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let binary = if call.result.kind.is_binary() { call.result } else { call.arguments[0] };
    let text = Units::new(&arguments[0], binary);
    let (position, count, new) = (int(&arguments[1]), int(&arguments[2]), bytes(&arguments[3]));
    let length = text.len();
    let start = usize::try_from(position).ok().filter(|start| (1..=length).contains(start));
    let Some(start) = start else { return Ok(arguments[0].clone()) };
    let count = usize::try_from(count).unwrap_or(length).min(length - (start - 1));
    let (head, tail) = (text.slice(0, start - 1), text.slice(start - 1 + count, length));
    let size_bytes = head.len() + new.len() + tail.len();
    let Some(_promise) = fits_packet(size_bytes as u128, "insert", call)? else {
        return Ok(Datum::Null);
    };
    let mut out = ByteString::with_capacity(size_bytes);
    [head, new, tail].iter().for_each(|part| out.extend_from_slice(part));
    Ok(Datum::Text(out.built()))
}
