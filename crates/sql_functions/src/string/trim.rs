//! `TRIM`, `LTRIM`, `RTRIM`: removing text from the ends.
//!
//! `TRIM([side] [remove] FROM text)` is `TRIM(text[, remove])`, `TRIM LEADING(…)` or `TRIM
//! TRAILING(…)`.

use firn_sql_types::Datum;
use firn_sql_types::error::Result;

use crate::arguments::bytes;
use crate::signature::text_of_first;
use crate::{Call, Function, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("TRIM", 1..=2, joined [Text] => text_of_first, |a: &[Datum], _: &Call<'_>| trim(a, true, true)),
    strict!("TRIM LEADING", 1..=2, joined [Text] => text_of_first, |a: &[Datum], _: &Call<'_>| {
        trim(a, true, false)
    }),
    strict!("TRIM TRAILING", 1..=2, joined [Text] => text_of_first, |a: &[Datum], _: &Call<'_>| {
        trim(a, false, true)
    }),
    strict!("LTRIM", 1..=1, [Text] => text_of_first, |a: &[Datum], _: &Call<'_>| {
        trim(a, true, false)
    }),
    strict!("RTRIM", 1..=1, [Text] => text_of_first, |a: &[Datum], _: &Call<'_>| {
        trim(a, false, true)
    }),
];

fn trim(arguments: &[Datum], leading: bool, trailing: bool) -> Result<Datum> {
    let mut text = bytes(&arguments[0]);
    let remove = arguments.get(1).map_or(&b" "[..], bytes);
    if remove.is_empty() {
        return Ok(arguments[0].clone());
    }
    while let Some(rest) = text.strip_prefix(remove).filter(|_| leading) {
        text = rest;
    }
    while let Some(rest) = text.strip_suffix(remove).filter(|_| trailing) {
        text = rest;
    }
    Ok(Datum::text(text))
}
