//! Searching strings, and ordering them by their collation.

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset, Collation};
use firn_sql_types::collate::refuse_unclear_collation;
use firn_sql_types::error::Result;
use firn_sql_types::{Datum, SqlType};
use memchr::memmem;

use crate::arguments::{bytes, int};
use crate::signature::{self, Want, comparing_collation, decoded, fixed, in_character_set};
use crate::string::Units;
use crate::{Call, Function, ResolveContext, Signature, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("LOCATE", 2..=3, with_text_needle::<1, 0>, |a: &[Datum], call: &Call<'_>| {
        locate((&a[1], call.arguments[1]), &a[0], a.get(2).map_or(1, int), call)
    })
    .in_order(&[1, 0]),
    strict!("INSTR", 2..=2, with_text_needle::<0, 1>, |a: &[Datum], call: &Call<'_>| {
        locate((&a[0], call.arguments[0]), &a[1], 1, call)
    }),
    strict!("STRCMP", 2..=2, resolve_compare, |a: &[Datum], call: &Call<'_>| {
        let collation = collation::get(comparing_collation(call.arguments, "strcmp")?);
        Ok(Datum::Int(collation.compare(bytes(&a[0]), bytes(&a[1])) as i64))
    }),
];

/// The memory that MySQL wants for the weights of a text, in bytes.
pub(super) fn most_weights_bytes(text: &[u8], collation: &Collation) -> u128 {
    let charset = collation.charset;
    let longest = u128::from(charset.max_character_bytes());
    let bytes = match charset.is_utf8() {
        true => text.len(),
        false => charset.encode(text).len(),
    };
    let (bytes, name) = (bytes as u128, collation.name);
    // Weights of a level take 16 bytes for a character, and each byte may be one.
    let of_levels = |levels: u128| bytes * 16 * levels + (levels - 1) * 2;
    let is_unicode = matches!(charset, Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Utf32);
    match name.split_once("_0900_").map(|(_, kind)| kind) {
        Some("bin") => bytes * longest,
        Some("as_cs_ks") => of_levels(5),
        Some("as_cs") if name.contains("_ja_") || name.contains("_zh_") => of_levels(4),
        Some("as_cs") => of_levels(3),
        Some("as_ci") => of_levels(2),
        Some(_) => of_levels(1),
        None if is_unicode && name.ends_with("_general_ci") => bytes * 2,
        None if name == "utf8mb4_bin" => bytes * 3,
        None => bytes * longest * u128::from(collation.sort_length.max(1)),
    }
}

fn resolve_locate(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    fixed(types, context, &[Want::Text, Want::Text, Want::Int], signature::bigint)
}

/// Bytes that are searched for in a text are text, and what is searched for has its character set.
fn with_text_needle<const HAYSTACK: usize, const NEEDLE: usize>(
    types: &[SqlType],
    context: &ResolveContext<'_>,
) -> Result<Signature> {
    let mut signature = resolve_locate(types, context)?;
    let haystack = signature.arguments[HAYSTACK].collation();
    let needle = &mut signature.arguments[NEEDLE];
    if let Some(collation) = haystack.filter(|id| *id != CollationId::BINARY) {
        in_character_set(std::slice::from_mut(needle), collation);
    }
    Ok(signature)
}

fn resolve_compare(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    if types.iter().all(|ty| ty.kind.is_string() || ty.kind.is_enum_or_set()) {
        comparing_collation(types, "strcmp")?;
        refuse_unclear_collation(&types[0], &types[1], "strcmp")?;
    }
    let mut signature = fixed(types, context, &[Want::Text], signature::int)?;
    if types.iter().any(|ty| ty.kind.is_numeric() || ty.kind.is_temporal()) {
        // Beside a number or a time, characters are compared by their code points.
        for argument in signature.arguments.iter_mut().filter(|ty| ty.kind.is_text()) {
            *argument = decoded(argument, Charset::Utf8mb4.binary_collation());
        }
    }
    let id = comparing_collation(&signature.arguments, "strcmp")?;
    let charset = collation::get(id).charset;
    for argument in &mut signature.arguments {
        let has_more = argument.charset() != Some(charset) && !charset.is_all_of_unicode();
        if charset != Charset::Binary && (argument.kind.is_binary() || has_more) {
            *argument = decoded(argument, id);
        }
    }
    Ok(signature)
}

/// The place of the needle in the haystack, whose collation says what is equal.
fn locate(
    (haystack, ty): (&Datum, &SqlType),
    needle: &Datum,
    position: i64,
    call: &Call<'_>,
) -> Result<Datum> {
    let collation = collation::get(ty.collation().unwrap_or(CollationId::BINARY));
    let (haystack, needle) = (Units::new(haystack, ty), bytes(needle));
    let start = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
    let Some(start) = start.filter(|&start| start <= haystack.len()) else {
        return Ok(Datum::Int(0));
    };
    let from = haystack.offset(start);
    let found = find(&haystack.bytes[from..], needle, collation, call)?;
    Ok(Datum::Int(found.map_or(0, |at| haystack.count_before(from + at) as i64 + 1)))
}

/// The position of a text that the collation considers equal to `needle`, character by character.
/// Takes time linear in both.
fn find(
    haystack: &[u8],
    needle: &[u8],
    collation: &Collation,
    call: &Call<'_>,
) -> Result<Option<usize>> {
    if collation.is_binary() || needle.is_empty() {
        return Ok(memmem::find(haystack, needle));
    }
    let needle: Vec<char> = collation.characters(needle).collect();
    let is_same = |found, wanted: usize| collation.is_same_character(found, needle[wanted]);
    // The algorithm of Knuth, Morris and Pratt.
    let mut borders = vec![0; needle.len()];
    let mut matched = 0;
    for at in 1..needle.len() {
        matched = follow(matched, &borders, |wanted| is_same(needle[at], wanted));
        borders[at] = matched;
    }
    let mut begins = collation.characters(haystack);
    matched = 0;
    for found in begins.clone() {
        call.context.count_steps(1)?;
        let before = matched;
        matched = follow(matched, &borders, |wanted| is_same(found, wanted));
        // The first character of what is matched is further on.
        begins.by_ref().take(before + 1 - matched).for_each(drop);
        if matched == needle.len() {
            return Ok(Some(haystack.len() - begins.rest().len()));
        }
    }
    Ok(None)
}

/// How many characters of the needle match with the next one, if `matched` did without it.
/// `borders[n]`: how many of its first characters its first `n + 1` end with, not counting all.
fn follow(mut matched: usize, borders: &[usize], is_next: impl Fn(usize) -> bool) -> usize {
    while !is_next(matched) {
        let Some(last) = matched.checked_sub(1) else { return 0 };
        matched = borders[last];
    }
    matched + 1
}

#[cfg(test)]
mod tests {
    use firn_sql_types::EvaluationContext;
    use proptest::prelude::*;

    use super::*;

    /// Tries every place.
    fn find_slowly(haystack: &[u8], needle: &[u8], collation: &Collation) -> Option<usize> {
        let needle: Vec<char> = collation.characters(needle).collect();
        let mut rest = collation.characters(haystack);
        loop {
            let mut here = rest.clone();
            let is_same = |wanted: &char| {
                here.next().is_some_and(|found| collation.is_same_character(found, *wanted))
            };
            if needle.iter().all(is_same) {
                return Some(haystack.len() - rest.rest().len());
            }
            rest.next()?;
        }
    }

    proptest! {
        #[test]
        fn the_first_place_is_found(
            haystack in "[aAäb]{0,40}",
            needle in "[aAäb]{1,6}",
            id in prop_oneof![Just(255), Just(45), Just(224), Just(305)],
        ) {
            let collation = collation::get(CollationId(id));
            let (haystack, needle) = (haystack.as_bytes(), needle.as_bytes());
            let context = EvaluationContext::default();
            let call = Call { context: &context, arguments: &[], result: &SqlType::bigint() };
            let found = find(haystack, needle, collation, &call).unwrap();
            prop_assert_eq!(found, find_slowly(haystack, needle, collation));
        }
    }
}
