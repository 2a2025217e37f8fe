//! The common type of several expressions: of the branches of `CASE`, of `COALESCE`, of the columns
//! of a `UNION`.

use firn_format::value::{CollationId, IntWidth};
use firn_sql_collation::{self as collation, Charset};

use crate::error::Result;

use super::collate::merge_collations;
use super::decimal::{MAX_LITERAL_SCALE, MAX_PRECISION, MAX_SCALE};
use super::sql_type::{Coercibility, SqlType, TypeKind};

/// Longer texts are `TEXT`, in bytes.
const LONGEST_VARCHAR_BYTES: u64 = 65_535;

/// The common type. `connection` is the collation of text made from numbers; `operation` names the
/// operation that combines the types, such as `UNION`.
///
/// # Errors
/// 1267 if texts have no common collation.
pub fn unify(types: &[SqlType], connection: CollationId, operation: &str) -> Result<SqlType> {
    let nullable = types.iter().any(|ty| ty.nullable);
    let known: Vec<&SqlType> = types.iter().filter(|ty| ty.kind != TypeKind::Null).collect();
    let Some(first) = known.first() else { return Ok(SqlType::null()) };
    if known.iter().all(|ty| ty.kind == first.kind && !ty.kind.is_enum_or_set()) {
        let coercibility = known.iter().map(|ty| ty.coercibility).min();
        let coercibility = coercibility.unwrap_or(Coercibility::Coercible);
        let kind = match &first.kind {
            TypeKind::Decimal { .. } => unify_decimals(&known),
            kind => kind.clone(),
        };
        return Ok(SqlType::new(kind).with_nullable(nullable).with_coercibility(coercibility));
    }
    let kinds = || known.iter().map(|ty| &ty.kind);
    let common = if kinds().all(TypeKind::is_numeric) {
        SqlType::new(unify_numbers(&known))
    } else if kinds().all(TypeKind::is_temporal) {
        SqlType::new(unify_temporal(&known))
    } else {
        unify_texts(&known, connection, operation)?
    };
    Ok(common.with_nullable(nullable))
}

fn unify_numbers(types: &[&SqlType]) -> TypeKind {
    let any = |test: fn(&TypeKind) -> bool| types.iter().any(|ty| test(&ty.kind));
    if any(|kind| matches!(kind, TypeKind::Float | TypeKind::Double)) {
        // MySQL keeps FLOAT beside all integers but INT.
        let stays_float = |kind: &TypeKind| match kind {
            TypeKind::Integer { width, .. } => *width != IntWidth::Four,
            kind => matches!(kind, TypeKind::Float | TypeKind::Year),
        };
        // Nor does it stay one after a BIGINT, though it does before one.
        let is_bigint =
            |kind: &TypeKind| matches!(kind, TypeKind::Integer { width: IntWidth::Eight, .. });
        let mut before = types.iter().take_while(|ty| ty.kind != TypeKind::Float);
        let follows_bigint = before.any(|ty| is_bigint(&ty.kind));
        return match !follows_bigint && types.iter().all(|ty| stays_float(&ty.kind)) {
            true => TypeKind::Float,
            false => TypeKind::Double,
        };
    }
    if any(|kind| matches!(kind, TypeKind::Decimal { .. })) {
        return unify_decimals(types);
    }
    let unsigned = types.iter().all(|ty| ty.kind.is_unsigned());
    let wanted = |ty: &&SqlType| {
        let width = integer_width(&ty.kind);
        // All years fit into a SMALLINT.
        let grows = ty.kind.is_unsigned() && !unsigned && ty.kind != TypeKind::Year;
        if grows { wider(width) } else { Some(width) }
    };
    match types.iter().map(wanted).collect::<Option<Vec<_>>>() {
        Some(widths) => {
            let widest = widths.into_iter().max_by_key(|width| width.bytes());
            TypeKind::Integer { width: widest.unwrap_or(IntWidth::Eight), unsigned }
        }
        // BIGINT UNSIGNED beside negative numbers.
        None => TypeKind::Decimal { precision: 20, scale: 0, unsigned: false },
    }
}

fn unify_decimals(types: &[&SqlType]) -> TypeKind {
    let scale = types.iter().map(|ty| ty.kind.scale()).max().unwrap_or(0).min(MAX_LITERAL_SCALE);
    let integer = types.iter().map(|ty| ty.kind.integer_digits()).max().unwrap_or(0);
    let most = if scale > MAX_SCALE { u8::MAX } else { MAX_PRECISION };
    let precision = integer.saturating_add(scale).clamp(1, most);
    // Clients see a sign even if none of the numbers has one.
    TypeKind::Decimal { precision, scale, unsigned: false }
}

fn integer_width(kind: &TypeKind) -> IntWidth {
    match kind {
        TypeKind::Integer { width, .. } => *width,
        TypeKind::Year => IntWidth::Two,
        _ => IntWidth::Eight,
    }
}

/// The signed type that holds all values of an unsigned one.
fn wider(width: IntWidth) -> Option<IntWidth> {
    match width {
        IntWidth::One => Some(IntWidth::Two),
        IntWidth::Two => Some(IntWidth::Three),
        IntWidth::Three => Some(IntWidth::Four),
        IntWidth::Four => Some(IntWidth::Eight),
        IntWidth::Eight => None,
    }
}

fn unify_temporal(types: &[&SqlType]) -> TypeKind {
    let fsp = types.iter().map(|ty| ty.kind.fsp()).max().unwrap_or(0);
    if types.iter().all(|ty| matches!(ty.kind, TypeKind::Time { .. })) {
        TypeKind::Time { fsp }
    } else if types.iter().all(|ty| matches!(ty.kind, TypeKind::Timestamp { .. })) {
        TypeKind::Timestamp { fsp }
    } else {
        TypeKind::DateTime { fsp }
    }
}

fn unify_texts(types: &[&SqlType], connection: CollationId, operation: &str) -> Result<SqlType> {
    // JSON text has the collation utf8mb4_bin.
    let texts: Vec<SqlType> = types
        .iter()
        .map(|ty| match ty.kind {
            TypeKind::Json => SqlType::varchar(0, CollationId(46)),
            _ => (*ty).clone(),
        })
        .collect();
    let texts = texts.iter().zip(types).map(|(text, ty)| match ty.kind {
        TypeKind::Json => text.clone().with_coercibility(Coercibility::Implicit),
        _ => text.clone(),
    });
    let merged = merge_collations(&texts.collect::<Vec<_>>(), operation)?;
    // What was made of NULL alone has no character set of its own beside numbers and times.
    let is_string = |ty: &&SqlType| ty.kind.is_string();
    let merged = merged.filter(|(_, coercibility)| {
        *coercibility != Coercibility::Ignorable || types.iter().all(is_string)
    });
    let (mut collation, coercibility) = merged.unwrap_or((connection, Coercibility::Numeric));
    if types.iter().any(|ty| matches!(ty.kind, TypeKind::Bit { .. })) {
        // Bits beside a value that is not a number are bytes.
        collation = CollationId::BINARY;
    }
    let charset = collation::get(collation).charset;
    let max_chars = types.iter().map(|ty| match charset {
        Charset::Binary if ty.kind.is_text() || ty.kind.is_enum_or_set() => ty.max_text_bytes(),
        _ => ty.max_text_chars(),
    });
    let max_chars = max_chars.max().unwrap_or(0);
    let character_bytes = u64::from(charset.max_character_bytes());
    let bytes = |ty: &&SqlType| match ty.kind {
        // Its length is told in bytes.
        TypeKind::Text { max_bytes, .. } => u64::from(max_bytes),
        _ => u64::from(ty.max_text_chars()) * character_bytes,
    };
    let max_bytes = types.iter().map(bytes).max().unwrap_or(0);
    let is_long = |ty: &&SqlType| {
        matches!(
            ty.kind,
            TypeKind::Text { .. } | TypeKind::Blob { .. } | TypeKind::Json | TypeKind::Geometry
        )
    };
    let long = types.iter().any(is_long) || max_bytes > LONGEST_VARCHAR_BYTES;
    let kind = match (charset, long) {
        (Charset::Binary, false) => TypeKind::Varbinary { max_bytes: max_chars },
        (Charset::Binary, true) => TypeKind::Blob { max_bytes: max_chars },
        (_, false) => TypeKind::Varchar { max_chars, collation },
        (_, true) => TypeKind::Text { max_bytes: max_bytes.min(u32::MAX.into()) as u32, collation },
    };
    Ok(SqlType::new(kind).with_coercibility(coercibility))
}
