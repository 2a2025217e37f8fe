//! Types of columns as MySQL shows them.
//!
//! ```text
//!   ColumnModel ──full──► `decimal(10,2) unsigned`     ──base──► `decimal`
//! ```

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset};
use firn_sql_types::{IntWidth, TypeKind};

use super::model::ColumnModel;
use super::notation::quoted;

/// `DATA_TYPE`: the type's name alone.
#[must_use]
pub fn base(column: &ColumnModel) -> &str {
    match &column.ty.kind {
        TypeKind::Geometry if !column.geometry.is_empty() => &column.geometry,
        kind => kind.data_type_name(),
    }
}

/// `COLUMN_TYPE`: the type as in `SHOW COLUMNS` and `SHOW CREATE TABLE`.
#[must_use]
pub fn full(column: &ColumnModel) -> String {
    let mut text = base(column).to_owned();
    match &column.ty.kind {
        TypeKind::Integer { .. } => {
            if let Some(width) = column.display_width {
                text.push_str(&format!("({width})"));
            }
        }
        TypeKind::Bit { bits } => text.push_str(&format!("({bits})")),
        TypeKind::Decimal { precision, scale, .. } => {
            text.push_str(&format!("({precision},{scale})"));
        }
        TypeKind::Float | TypeKind::Double => {
            if let (Some(width), Some(decimals)) = (column.display_width, column.display_decimals) {
                text.push_str(&format!("({width},{decimals})"));
            }
        }
        TypeKind::Char { max_chars, .. } | TypeKind::Varchar { max_chars, .. } => {
            text.push_str(&format!("({max_chars})"));
        }
        TypeKind::Binary { max_bytes } | TypeKind::Varbinary { max_bytes } => {
            text.push_str(&format!("({max_bytes})"));
        }
        TypeKind::Enum { members, .. } | TypeKind::Set { members, .. } => {
            let names: Vec<String> = members.names().iter().map(|name| quoted(name)).collect();
            text.push_str(&format!("({})", names.join(",")));
        }
        TypeKind::Time { fsp } | TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp }
            if *fsp > 0 =>
        {
            text.push_str(&format!("({fsp})"));
        }
        _ => {}
    }
    if column.unsigned && column.ty.kind.is_numeric() && !is_bit_or_year(&column.ty.kind) {
        text.push_str(" unsigned");
    }
    if column.zerofill {
        text.push_str(" zerofill");
    }
    text
}

fn is_bit_or_year(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::Bit { .. } | TypeKind::Year)
}

/// `CHARACTER_MAXIMUM_LENGTH` and `CHARACTER_OCTET_LENGTH`.
#[must_use]
pub fn character_lengths(kind: &TypeKind) -> Option<(u64, u64)> {
    let bytes_of = |collation: CollationId, characters: u64| {
        characters * u64::from(charset(collation).max_character_bytes())
    };
    match kind {
        TypeKind::Char { max_chars, collation } | TypeKind::Varchar { max_chars, collation } => {
            Some(((*max_chars).into(), bytes_of(*collation, (*max_chars).into())))
        }
        TypeKind::Text { max_bytes, collation } => {
            let unit_bytes = charset(*collation).unit_bytes() as u64;
            Some((u64::from(*max_bytes) / unit_bytes, (*max_bytes).into()))
        }
        TypeKind::Binary { max_bytes }
        | TypeKind::Varbinary { max_bytes }
        | TypeKind::Blob { max_bytes } => Some(((*max_bytes).into(), (*max_bytes).into())),
        TypeKind::Enum { members, collation } => {
            let longest = members.names().iter().map(|name| name.chars().count()).max();
            let longest = longest.unwrap_or(0) as u64;
            Some((longest, bytes_of(*collation, longest)))
        }
        TypeKind::Set { members, collation } => {
            let names = members.names();
            let all: usize = names.iter().map(|name| name.chars().count()).sum();
            let all = (all + names.len().saturating_sub(1)) as u64;
            Some((all, bytes_of(*collation, all)))
        }
        _ => None,
    }
}

/// `NUMERIC_PRECISION` and `NUMERIC_SCALE`.
#[must_use]
pub fn numeric_precision(column: &ColumnModel) -> Option<(u64, Option<u64>)> {
    match column.ty.kind {
        TypeKind::Integer { width, unsigned } => {
            let digits = match (width, unsigned) {
                (IntWidth::One, _) => 3,
                (IntWidth::Two, _) => 5,
                (IntWidth::Three, _) => 7,
                (IntWidth::Four, _) => 10,
                (IntWidth::Eight, false) => 19,
                (IntWidth::Eight, true) => 20,
            };
            Some((digits, Some(0)))
        }
        TypeKind::Bit { bits } => Some((bits.into(), None)),
        TypeKind::Decimal { precision, scale, .. } => Some((precision.into(), Some(scale.into()))),
        TypeKind::Float | TypeKind::Double => {
            let digits = if column.ty.kind == TypeKind::Float { 12 } else { 22 };
            Some((
                column.display_width.map_or(digits, u64::from),
                column.display_decimals.map(u64::from),
            ))
        }
        _ => None,
    }
}

/// The character set of a collation.
#[must_use]
pub fn charset(collation: CollationId) -> Charset {
    collation::get(collation).charset
}

/// The character set and the collation of a column that has characters, by name.
#[must_use]
pub fn charset_and_collation(kind: &TypeKind) -> Option<(&'static str, &'static str)> {
    if !(kind.is_text() || kind.is_enum_or_set()) {
        return None;
    }
    let collation = collation::get(kind.collation()?);
    Some((collation.charset.name(), collation.name))
}
