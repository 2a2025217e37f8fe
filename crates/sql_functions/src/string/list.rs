//! Strings among strings: `ELT`, `FIELD`, `FIND_IN_SET`, `MAKE_SET`, `EXPORT_SET`.

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset, Collation};
use firn_sql_types::error::Result;
use firn_sql_types::{ByteString, Datum, Members, SqlType, TypeKind};

use crate::arguments::{bytes, decimal, double, fits_packet, int, room, word};
use crate::arithmetic::{Domain, domain};
use crate::signature::{
    self, Want, comparing_collation, fixed, in_character_set, number_type, text_chars, text_of,
};
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("ELT", 2..=usize::MAX, joined [Int, Text] => longest_of_rest, elt)
        .needing(|before| before.first().is_none_or(|at| chosen(at) == Some(before.len()))),
    lenient!("FIELD", 2..=usize::MAX, resolve_field, field).needing(is_field_sought),
    strict!("FIND_IN_SET", 2..=2, resolve_find_in_set, find_in_set),
    lenient!("MAKE_SET", 2..=usize::MAX, joined [Int, Text] => joined_rest, make_set)
        .needing(is_member_needed),
    strict!("EXPORT_SET", 3..=5, joined [Int, Text, Text, Text, Int] => exported, export_set)
        .in_order(&[0, 1, 2, 4, 3]),
];

fn longest_of_rest(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    let chars = types[1..].iter().map(text_chars).max().unwrap_or(0);
    text_of(&types[1..], chars.into(), context)
}

fn joined_rest(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    let chars = types[1..].iter().map(|ty| u64::from(text_chars(ty)) + 1).sum();
    text_of(&types[1..], chars, context)
}

fn exported(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    let item = text_chars(&types[1]).max(text_chars(&types[2]));
    let separator = types.get(3).map_or(1, text_chars);
    text_of(&types[1..types.len().min(4)], 64 * (u64::from(item) + u64::from(separator)), context)
}

fn elt(arguments: &[Datum], _: &Call<'_>) -> Result<Datum> {
    let value = chosen(&arguments[0]).and_then(|at| arguments.get(at));
    Ok(value.cloned().unwrap_or_default())
}

/// The argument that `ELT` returns.
fn chosen(at: &Datum) -> Option<usize> {
    let at = Some(at).filter(|at| !at.is_null()).map(int);
    at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at > 0)
}

/// Whether the next member of `MAKE_SET` is in the set.
fn is_member_needed(before: &[Datum]) -> bool {
    let Some((bits, members)) = before.split_first() else { return true };
    let shift = u32::try_from(members.len()).unwrap_or(u32::MAX);
    !bits.is_null() && word(bits).checked_shr(shift).unwrap_or(0) & 1 == 1
}

/// Whether `FIELD` goes on: it ends with a NULL that is sought, and with the first equal value.
/// Texts may be equal in other ways, but to evaluate one more does no harm.
fn is_field_sought(before: &[Datum]) -> bool {
    let Some((wanted, others)) = before.split_first() else { return true };
    !wanted.is_null() && !others.contains(wanted)
}

/// All arguments become texts, or exact numbers, or doubles, depending on their types.
fn resolve_field(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let known = || types.iter().filter(|ty| ty.kind != TypeKind::Null);
    let text = |ty: &SqlType| {
        let kind = &ty.kind;
        let is_text = kind.is_string() || kind.is_enum_or_set() || kind.is_temporal();
        is_text && *kind != TypeKind::Year || *kind == TypeKind::Json
    };
    if known().all(text) {
        let mut signature = fixed(types, context, &[Want::Text], signature::int)?;
        // The text that is sought says how texts are compared, and in which character set.
        let collation = signature.arguments[0].collation();
        if let Some(collation) = collation.filter(|id| *id != CollationId::BINARY) {
            in_character_set(&mut signature.arguments[1..], collation);
        }
        return Ok(signature);
    }
    let exact = known().all(|ty| domain(&number_type(ty).kind) != Domain::Double);
    fixed(types, context, &[if exact { Want::Number } else { Want::Double }], signature::int)
}

fn field(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let wanted = &arguments[0];
    let collation = call.arguments[0].collation().unwrap_or(CollationId::BINARY);
    let same = |other: &Datum| match (wanted, other) {
        (Datum::Null, _) | (_, Datum::Null) => false,
        (Datum::Text(a), Datum::Text(b)) => collation::get(collation).equal(a, b),
        (Datum::Double(_), _) | (_, Datum::Double(_)) => double(wanted) == double(other),
        _ => decimal(wanted) == decimal(other),
    };
    let found = arguments[1..].iter().position(same);
    Ok(Datum::Int(found.map_or(0, |at| at as i64 + 1)))
}

fn resolve_find_in_set(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let id = comparing_collation(types, "find_in_set")?;
    let mut signature = fixed(types, context, &[Want::Text], signature::int)?;
    if collation::get(id).charset != Charset::Binary && types.iter().all(|ty| ty.kind.is_text()) {
        in_character_set(&mut signature.arguments, id);
    }
    if matches!(types[1].kind, TypeKind::Set { .. }) {
        signature.arguments[1] = types[1].clone();
    }
    Ok(signature)
}

/// The place of a name among the members of a `SET`, if the value has it: MySQL's result is not the
/// place in the value's text.
fn place_of_member(wanted: &[u8], members: &Members, bits: u64, collation: &Collation) -> i64 {
    let is_it = |name: &str| collation.equal_unpadded(name.as_bytes(), wanted);
    let place = members.names().iter().take(64).position(|name| is_it(name));
    place.filter(|place| bits >> place & 1 == 1).map_or(0, |place| place as i64 + 1)
}

fn find_in_set(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let collation = collation::get(comparing_collation(call.arguments, "find_in_set")?);
    let wanted = bytes(&arguments[0]);
    if let TypeKind::Set { members, .. } = &call.arguments[1].kind {
        let place = place_of_member(wanted, members, word(&arguments[1]), collation);
        return Ok(Datum::Int(place));
    }
    let list = bytes(&arguments[1]);
    if list.is_empty() {
        return Ok(Datum::Int(0));
    }
    let found =
        list.split(|&byte| byte == b',').position(|item| collation.equal_unpadded(item, wanted));
    Ok(Datum::Int(found.map_or(0, |at| at as i64 + 1)))
}

fn make_set(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let bits = word(&arguments[0]);
    let items = arguments[1..].iter().take(64).enumerate();
    let chosen = items.filter(|(bit, item)| bits >> bit & 1 == 1 && !item.is_null());
    let items: Vec<&[u8]> = chosen.map(|(_, item)| bytes(item)).collect();
    let size_bytes = items.iter().map(|item| item.len() + 1).sum::<usize>().saturating_sub(1);
    let _promise = room(size_bytes, call)?;
    Ok(Datum::text(items.join(&b',')))
}

fn export_set(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let (bits, on, off) = (word(&arguments[0]), bytes(&arguments[1]), bytes(&arguments[2]));
    let separator = arguments.get(3).map_or(&b","[..], bytes);
    let count =
        arguments.get(4).map_or(64, |count| usize::try_from(int(count)).unwrap_or(64)).min(64);
    let longest = (on.len().max(off.len()) + separator.len()) as u128;
    let Some(_promise) = fits_packet(longest * count as u128, "export_set", call)? else {
        return Ok(Datum::Null);
    };
    let mut out = ByteString::new();
    for bit in 0..count {
        if bit > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(if bits >> bit & 1 == 1 { on } else { off });
    }
    Ok(Datum::Text(out.built()))
}
