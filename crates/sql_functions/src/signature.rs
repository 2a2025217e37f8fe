//! Types of arguments and results: the building blocks of most functions' `resolve`.
//!
//! ```text
//!   [Text, Int] => text_of_first      LEFT(s, n): s becomes text if it is none, n a BIGINT
//! ```
//!
//! The last wish of a list is repeated for further arguments.

use std::borrow::Borrow;

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset};
use firn_sql_types::collate::{comparison_collation, merge_collations};
use firn_sql_types::error::Result;
use firn_sql_types::{Coercibility, IntWidth, SqlType, TypeKind};

use crate::{ResolveContext, Signature};

/// `latin1_swedish_ci`, which MySQL takes for the text of numbers and times alone.
pub(super) const NUMBERS_COLLATION: CollationId = CollationId(8);
/// The longest text that a result's type states; longer ones state this length.
pub(super) const MAX_CHARS: u32 = 1 << 30;

/// What a function wants of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Nothing: it accepts any value unchanged.
    Any,
    /// Text or bytes.
    Text,
    /// The bytes of a text in its own character set.
    Bytes,
    /// A `BIGINT`, unsigned if the argument is.
    Int,
    Double,
    /// A number: an integer, an exact number or a double, whichever is closest to the argument.
    Number,
    /// An exact number.
    Decimal,
    /// A date, time or number unchanged, a document as a moment; anything else as text.
    Temporal,
    /// As [`Want::Temporal`], but a document as a time.
    Clock,
}

impl Want {
    /// The type to which an argument of a type is cast.
    pub(super) fn of(self, ty: &SqlType, context: &ResolveContext<'_>) -> SqlType {
        match self {
            Want::Any => ty.clone(),
            Want::Text => text_type(ty, context.connection_collation),
            Want::Bytes => bytes_type(text_type(ty, context.connection_collation)),
            Want::Int => bigint_type(ty),
            Want::Double => SqlType::double().with_nullable(ty.nullable),
            Want::Number => number_type(ty),
            Want::Decimal => decimal_type(ty),
            Want::Clock if ty.kind == TypeKind::Json => SqlType::new(TypeKind::Time { fsp: 6 }),
            Want::Temporal | Want::Clock => match &ty.kind {
                TypeKind::Null | TypeKind::Year => ty.clone(),
                TypeKind::Bit { .. } => text_type(ty, context.connection_collation),
                TypeKind::Float => SqlType::double().with_nullable(ty.nullable),
                TypeKind::Json => SqlType::new(TypeKind::DateTime { fsp: 6 }),
                kind if kind.is_temporal() || kind.is_numeric() => ty.clone(),
                _ => text_type(ty, context.connection_collation),
            },
        }
    }
}

/// How a result's type follows from the types of the cast arguments.
pub(super) type ResultRule = fn(&[SqlType], &ResolveContext<'_>) -> SqlType;

/// A signature with one wish for each argument. Text results get their collation from the
/// arguments.
pub(super) fn fixed(
    types: &[SqlType],
    context: &ResolveContext<'_>,
    wants: &[Want],
    result: ResultRule,
) -> Result<Signature> {
    let want = |at: usize| wants.get(at).or(wants.last()).copied().unwrap_or(Want::Any);
    let cast = |(at, ty)| want(at).of(ty, context);
    let arguments: Vec<SqlType> = types.iter().enumerate().map(cast).collect();
    let result = result(&arguments, context);
    Ok(Signature { arguments, result })
}

/// As [`fixed`], for a result that is made from the arguments' texts, or cut from them: bytes
/// and texts of other character sets become text of the result's if that is text, and texts their
/// own bytes if it is bytes.
pub(super) fn joined(
    types: &[SqlType],
    context: &ResolveContext<'_>,
    wants: &[Want],
    result: ResultRule,
) -> Result<Signature> {
    let mut signature = fixed(types, context, wants, result)?;
    match signature.result.collation() {
        Some(CollationId::BINARY) => {
            for argument in signature.arguments.iter_mut().filter(|ty| ty.kind.is_text()) {
                *argument = bytes_type(argument.clone());
            }
        }
        Some(collation) => in_character_set(&mut signature.arguments, collation),
        None => {}
    }
    Ok(signature)
}

/// Converts bytes to texts of a collation's character set, and texts whose characters this set may
/// not have. A text that was made of a number or a time has none of these.
pub(super) fn in_character_set(arguments: &mut [SqlType], id: CollationId) {
    let charset = collation::get(id).charset;
    let has_more = |ty: &SqlType| {
        ty.kind.is_text()
            && ty.coercibility != Coercibility::Numeric
            && ty.charset() != Some(charset)
            && !charset.is_all_of_unicode()
    };
    for argument in arguments.iter_mut().filter(|ty| ty.kind.is_binary() || has_more(ty)) {
        *argument = decoded(argument, id);
    }
}

/// The text that bytes are.
pub(super) fn decoded(ty: &SqlType, collation: CollationId) -> SqlType {
    let text = SqlType::varchar(text_chars(ty), collation);
    text.with_nullable(ty.nullable).with_coercibility(ty.coercibility)
}

/// Characters of a value's text form, at most.
pub(super) fn text_chars(ty: &SqlType) -> u32 {
    ty.max_text_chars().min(MAX_CHARS)
}

/// Text for an argument: text and bytes stay unchanged.
pub(super) fn text_type(ty: &SqlType, connection: CollationId) -> SqlType {
    if ty.kind.is_string() {
        return ty.clone();
    }
    let text = match &ty.kind {
        TypeKind::Bit { .. } => {
            let bytes = SqlType::varbinary(text_chars(ty)).with_nullable(ty.nullable);
            return bytes.with_coercibility(Coercibility::Implicit);
        }
        TypeKind::Geometry => SqlType::varbinary(text_chars(ty)),
        // JSON is text of a Unicode character set with a binary collation.
        TypeKind::Json => SqlType::varchar(text_chars(ty), CollationId(46)),
        _ => SqlType::varchar(text_chars(ty), ty.collation().unwrap_or(connection)),
    };
    text.with_nullable(ty.nullable).with_coercibility(ty.coercibility)
}

/// Bytes for a text in a character set whose bytes differ from Firn's own; others stay unchanged.
fn bytes_type(text: SqlType) -> SqlType {
    let charset = text.charset().unwrap_or(Charset::Binary);
    if charset.holds_own_bytes() {
        return text;
    }
    SqlType::varbinary(text.max_text_bytes()).with_nullable(text.nullable)
}

fn bigint_type(ty: &SqlType) -> SqlType {
    let unsigned = ty.kind.is_integer() && ty.kind.is_unsigned();
    let bigint = if unsigned { SqlType::bigint_unsigned() } else { SqlType::bigint() };
    bigint.with_nullable(ty.nullable)
}

/// A number for an argument, as in arithmetic.
pub(super) fn number_type(ty: &SqlType) -> SqlType {
    let number = match &ty.kind {
        TypeKind::Integer { .. } | TypeKind::Decimal { .. } => return ty.clone(),
        TypeKind::Null => SqlType::double(),
        TypeKind::Bit { .. } => SqlType::bigint_unsigned(),
        TypeKind::Year => SqlType::new(TypeKind::Integer { width: IntWidth::Two, unsigned: true }),
        kind if kind.is_temporal() => match (kind, kind.fsp()) {
            (_, 0) => SqlType::bigint(),
            (TypeKind::Time { .. }, fsp) => SqlType::decimal(7 + fsp, fsp),
            (_, fsp) => SqlType::decimal(14 + fsp, fsp),
        },
        _ => SqlType::double(),
    };
    number.with_nullable(ty.nullable)
}

fn decimal_type(ty: &SqlType) -> SqlType {
    let number = number_type(ty);
    match &number.kind {
        TypeKind::Integer { .. } => SqlType::decimal(number.kind.integer_digits(), 0),
        TypeKind::Decimal { .. } => return number,
        _ => SqlType::decimal(65, 30),
    }
    .with_nullable(ty.nullable)
}

/// Precision and scale of a number that is not a double.
pub(super) fn exact_digits(kind: &TypeKind) -> (u8, u8) {
    match kind {
        TypeKind::Decimal { precision, scale, .. } => (*precision, *scale),
        other => (other.integer_digits(), 0),
    }
}

/// Whether any type can be NULL.
pub(super) fn any_nullable(types: &[SqlType]) -> bool {
    types.iter().any(|ty| ty.nullable)
}

/// The common collation of texts. Error 1267 if there is none.
pub(super) fn merge_text(
    types: &[impl Borrow<SqlType>],
    operation: &str,
) -> Result<(CollationId, Coercibility)> {
    let default = Charset::Utf8mb4.default_collation();
    let merged = merge_collations(types.iter().map(Borrow::borrow), operation)?;
    Ok(merged.unwrap_or((default, Coercibility::Coercible)))
}

/// The collation with which a function compares its arguments. Error 1267 if there is none.
pub(super) fn comparing_collation(
    types: &[impl Borrow<SqlType>],
    operation: &str,
) -> Result<CollationId> {
    let (collation, coercibility) = merge_text(types, operation)?;
    if coercibility == Coercibility::None
        && let [a, b, ..] = types
    {
        return comparison_collation(a.borrow(), b.borrow(), operation);
    }
    Ok(collation)
}

/// Text of this many characters, in the arguments' collation.
pub(super) fn text_of(types: &[SqlType], max_chars: u64, context: &ResolveContext<'_>) -> SqlType {
    let max_chars = max_chars.min(MAX_CHARS.into()) as u32;
    let strings: Vec<SqlType> = types.iter().filter(|ty| ty.kind.is_string()).cloned().collect();
    if strings.is_empty() {
        return SqlType::varchar(max_chars, context.connection_collation);
    }
    if strings.iter().all(|ty| ty.coercibility == Coercibility::Ignorable) {
        // NULL alone is bytes.
        return SqlType::varbinary(max_chars).with_coercibility(Coercibility::Ignorable);
    }
    let (collation, coercibility) =
        merge_text(&strings, "").unwrap_or((context.connection_collation, Coercibility::None));
    let text = if collation == CollationId::BINARY {
        SqlType::varbinary(max_chars)
    } else {
        SqlType::varchar(max_chars, collation)
    };
    text.with_coercibility(coercibility)
}

pub(super) fn bigint(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::bigint()
}

/// `INT`, for small numbers and truth values.
pub(super) fn int(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::boolean()
}

pub(super) fn year(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::new(TypeKind::Year)
}

/// `BIGINT UNSIGNED`
pub(super) fn unsigned(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::bigint_unsigned()
}

pub(super) fn double(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::double()
}

/// The type of the first argument.
pub(super) fn first(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    types.first().map_or_else(SqlType::null, |ty| ty.clone().with_nullable(true))
}

/// Text as long as the first argument, in its collation.
pub(super) fn text_of_first(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    let Some(first) = types.first() else { return text::<0>(types, context) };
    text_of(&types[..1], text_chars(first).into(), context)
}

/// Text of up to `N` characters in the connection's collation.
pub(super) fn text<const N: u32>(_: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    SqlType::varchar(N, context.connection_collation)
}

/// Text of up to `N` characters in the collation of names: `utf8mb3_general_ci`.
pub(super) fn system_text<const N: u32>(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::varchar(N, CollationId(33))
}

/// Text of up to `N` times the characters of the first argument, in the connection's collation.
pub(super) fn text_times<const N: u64>(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    let chars = types.first().map_or(0, text_chars);
    text_of(&[], u64::from(chars) * N, context)
}

/// Text of any length, in the common collation of the text arguments.
pub(super) fn long_text(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    text_of(types, MAX_CHARS.into(), context)
}

/// Up to `N` bytes.
pub(super) fn binary<const N: u32>(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::varbinary(N)
}

/// Text as long as all arguments together, in their collation.
pub(super) fn text_of_all(types: &[SqlType], context: &ResolveContext<'_>) -> SqlType {
    let chars = types.iter().map(|ty| u64::from(text_chars(ty))).sum();
    text_of(types, chars, context)
}
