//! Which collation applies when texts are combined.
//!
//! ```text
//!   column (Implicit) with literal (Coercible)          the column's
//!   two columns of one character set, one of them _bin  the _bin one
//!   two columns of one character set                    its _bin one, and error 1267 to compare them
//!   utf8mb4_bin with utf8mb4_0900_bin                   error 1267
//!   utf8mb4 with latin1                                 the Unicode one, if it binds as strongly
//!   binary with anything that binds no stronger         binary
//! ```

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset, Collation};

use crate::error::{ErrorKind, Result, SqlError};

use super::sql_type::{Coercibility, SqlType};

const CODE_ILLEGAL_MIX: u16 = 1267;

pub type Binding = (CollationId, Coercibility);

/// The common collation of several expressions; those that are not text do not count. `None` if
/// none is text. With [`Coercibility::None`] the texts can be concatenated but not compared.
///
/// # Errors
/// 1267 if two explicit collations contradict each other, or character sets are incompatible.
/// `operation` names the operation, such as `=`.
pub fn merge_collations<'a>(
    types: impl IntoIterator<Item = &'a SqlType>,
    operation: &str,
) -> Result<Option<Binding>> {
    let mut merged: Option<Binding> = None;
    for ty in types {
        let Some(collation) = ty.collation() else { continue };
        let next = (collation, ty.coercibility);
        merged = Some(match merged {
            None => next,
            Some(so_far) => {
                merge(so_far, next).ok_or_else(|| illegal_mix(so_far, next, operation))?
            }
        });
    }
    Ok(merged)
}

/// The collation by which two texts compare.
///
/// # Errors
/// 1267 when there is none.
pub fn comparison_collation(a: &SqlType, b: &SqlType, operation: &str) -> Result<CollationId> {
    match merge_collations([a, b], operation)? {
        Some((_, Coercibility::None)) => {
            let binding =
                |ty: &SqlType| (ty.collation().unwrap_or(CollationId::BINARY), ty.coercibility);
            Err(illegal_mix(binding(a), binding(b), operation))
        }
        Some((collation, _)) => Ok(collation),
        None => Ok(Charset::Utf8mb4.default_collation()),
    }
}

/// Refuses a text on the left of an operator whose columns did not agree on a collation, beside one
/// of the collation that they have together. On the right, or beside another collation, it is no
/// matter.
///
/// # Errors
/// 1267
pub fn refuse_unclear_collation(left: &SqlType, right: &SqlType, operation: &str) -> Result<()> {
    match (left.collation(), right.collation()) {
        (Some(one), Some(two)) if one == two && left.coercibility == Coercibility::None => {
            Err(illegal_mix((one, left.coercibility), (two, right.coercibility), operation))
        }
        _ => Ok(()),
    }
}

/// The collation by which several texts compare, joined in their order; `None` if none is text.
///
/// # Errors
/// As [`comparison_collation`].
pub fn common_collation<'a>(
    types: impl IntoIterator<Item = &'a SqlType>,
    operation: &str,
) -> Result<Option<CollationId>> {
    let mut merged: Option<Binding> = None;
    let mut is_open = false;
    for ty in types {
        let Some(collation) = ty.collation() else { continue };
        let next = (collation, ty.coercibility);
        merged = Some(match merged {
            None => next,
            // Of two columns that do not agree, no third one decides, but COLLATE does.
            Some(open) if is_open && next.1 != Coercibility::Explicit => open,
            Some(so_far) => {
                let both = merge(so_far, next);
                let both = both.ok_or_else(|| illegal_mix(so_far, next, operation))?;
                is_open = both.1 == Coercibility::None;
                both
            }
        });
    }
    match merged {
        Some(binding @ (_, Coercibility::None)) => Err(illegal_mix(binding, binding, operation)),
        merged => Ok(merged.map(|(collation, _)| collation)),
    }
}

fn merge(a: Binding, b: Binding) -> Option<Binding> {
    let (of_a, of_b) = (collation::get(a.0), collation::get(b.0));
    if a.0 == b.0 {
        return Some((a.0, a.1.min(b.1)));
    }
    if of_a.charset == of_b.charset {
        return merge_same_charset(a, of_a, b, of_b);
    }
    let wins = |winner: Binding, loser: Binding| winner.1 <= loser.1;
    match (of_a.charset, of_b.charset) {
        (Charset::Binary, _) => Some(if wins(a, b) { a } else { b }),
        (_, Charset::Binary) => Some(if wins(b, a) { b } else { a }),
        (left, _) if left.is_unicode() && a.1 < b.1 => Some(a),
        (_, right) if right.is_unicode() && b.1 < a.1 => Some(b),
        (left, right) if is_superset(left, right) && wins(a, b) => Some(a),
        (left, right) if is_superset(right, left) && wins(b, a) => Some(b),
        // A constant is converted to the character set of the side with the stronger coercibility.
        _ if a.1 < b.1 && b.1 >= Coercibility::SystemConstant => Some(a),
        _ if b.1 < a.1 && a.1 >= Coercibility::SystemConstant => Some(b),
        _ => None,
    }
}

fn merge_same_charset(
    a: Binding,
    of_a: &Collation,
    b: Binding,
    of_b: &Collation,
) -> Option<Binding> {
    if a.1 != b.1 {
        return Some(if a.1 < b.1 { a } else { b });
    }
    match (of_a.is_binary(), of_b.is_binary()) {
        _ if a.1 == Coercibility::Explicit => None,
        (true, false) => Some(a),
        (false, true) => Some(b),
        (true, true) => None,
        _ => Some((of_a.charset.binary_collation(), Coercibility::None)),
    }
}

/// Whether every character of `right` is in `left`; among the Unicode sets, only for those with
/// units of the same size.
fn is_superset(left: Charset, right: Charset) -> bool {
    match right {
        Charset::Ascii => true,
        _ if right.is_unicode() => {
            let has_more = left.is_all_of_unicode() && right.is_basic_plane();
            has_more && left.unit_bytes() == right.unit_bytes()
        }
        _ => left.is_unicode(),
    }
}

/// Whether a character set has all characters of a text (UTF-8).
#[must_use]
pub fn has_all(charset: Charset, text: &[u8]) -> bool {
    charset.is_all_of_unicode()
        || collation::characters(text).all(|character| charset.has(character))
}

fn illegal_mix(a: Binding, b: Binding, operation: &str) -> SqlError {
    let (a, b) = (binding_name(a), binding_name(b));
    SqlError::of_kind(
        ErrorKind::IllegalMix,
        CODE_ILLEGAL_MIX,
        format!("Illegal mix of collations {a} and {b} for operation '{operation}'"),
    )
}

/// The error of two incompatible texts, reported for the operation with `count` operands: 1270 for
/// three, whose types are `three`, 1271 for more.
#[must_use]
pub fn among_several(
    error: SqlError,
    three: &[SqlType],
    count: usize,
    operation: &str,
) -> SqlError {
    if error.kind != ErrorKind::IllegalMix || count < 3 {
        return error;
    }
    if count > 3 {
        let message = format!("Illegal mix of collations for operation '{operation}'");
        return SqlError::new(1271, message);
    }
    let name = |ty: &SqlType| {
        binding_name((ty.collation().unwrap_or(CollationId::BINARY), ty.coercibility))
    };
    let names: Vec<String> = three.iter().map(name).collect();
    let message =
        format!("Illegal mix of collations {} for operation '{operation}'", names.join(", "));
    SqlError::new(1270, message)
}

fn binding_name((collation, coercibility): Binding) -> String {
    format!("({},{})", collation::get(collation).name, coercibility_name(coercibility))
}

fn coercibility_name(coercibility: Coercibility) -> &'static str {
    match coercibility {
        Coercibility::Explicit => "EXPLICIT",
        Coercibility::None => "NONE",
        Coercibility::Implicit => "IMPLICIT",
        Coercibility::SystemConstant => "SYSCONST",
        Coercibility::Coercible => "COERCIBLE",
        Coercibility::Numeric => "NUMERIC",
        Coercibility::Ignorable => "IGNORABLE",
    }
}
