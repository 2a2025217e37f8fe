//! The maximal length of a value's text.

use firn_sql_collation::{self as collation, Charset};

use super::sql_type::{IntWidth, SqlType, TypeKind};

/// The longest text, in characters, as for `LONGTEXT`.
pub const LONGEST_TEXT: u32 = u32::MAX;

/// Digits that distinguish a float from its neighbours, at most.
const FLOAT_DIGITS: u32 = 9;
/// The same of a double.
const DOUBLE_DIGITS: u32 = 17;

impl TypeKind {
    /// The most decimal digits of an integer or exact number of the type.
    #[must_use]
    pub fn integer_digits(&self) -> u8 {
        match self {
            TypeKind::Integer { width, unsigned } => match width {
                IntWidth::One => 3,
                IntWidth::Two => 5,
                IntWidth::Three => 8 - u8::from(!unsigned),
                IntWidth::Four => 10,
                IntWidth::Eight => 19 + u8::from(*unsigned),
            },
            TypeKind::Decimal { precision, scale, .. } => precision - scale,
            TypeKind::Year => 4,
            TypeKind::Date => 8,
            TypeKind::Time { .. } => 7,
            TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => 14,
            TypeKind::Enum { .. } => 5,
            TypeKind::Null => 0,
            _ => 20,
        }
    }

    /// Digits after the point of the type's numbers, including fractional seconds.
    #[must_use]
    pub fn scale(&self) -> u8 {
        match self {
            TypeKind::Decimal { scale, .. } => *scale,
            kind => kind.fsp(),
        }
    }
}

impl SqlType {
    /// The most characters of a value's text; for binary strings the bytes.
    #[must_use]
    pub fn max_text_chars(&self) -> u32 {
        let fraction = |fsp: u8| u32::from(fsp) + u32::from(fsp > 0);
        match &self.kind {
            TypeKind::Null => 0,
            TypeKind::Integer { width, unsigned } => match width {
                IntWidth::One => 4 - u32::from(*unsigned),
                IntWidth::Two => 6 - u32::from(*unsigned),
                IntWidth::Three => 9 - u32::from(*unsigned),
                IntWidth::Four => 11 - u32::from(*unsigned),
                IntWidth::Eight => 20,
            },
            TypeKind::Bit { bits } => u32::from(*bits).div_ceil(8),
            TypeKind::Year => 4,
            TypeKind::Decimal { precision, scale, unsigned } => {
                let leading_zero = u32::from(precision == scale);
                let (sign, point) = (u32::from(!unsigned), u32::from(*scale > 0));
                u32::from(*precision) + leading_zero + sign + point
            }
            // Sign, point, and up to 15 zeros before the digits that distinguish it from its
            // neighbours.
            TypeKind::Float => 17 + FLOAT_DIGITS,
            TypeKind::Double => 17 + DOUBLE_DIGITS,
            TypeKind::Char { max_chars, .. } | TypeKind::Varchar { max_chars, .. } => *max_chars,
            TypeKind::Text { max_bytes, .. }
            | TypeKind::Binary { max_bytes }
            | TypeKind::Varbinary { max_bytes }
            | TypeKind::Blob { max_bytes } => *max_bytes,
            TypeKind::Date => 10,
            TypeKind::Time { fsp } => 10 + fraction(*fsp),
            TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => 19 + fraction(*fsp),
            TypeKind::Enum { members, .. } => {
                let lengths = members.names().iter().map(|name| name.chars().count());
                lengths.max().unwrap_or(0) as u32
            }
            TypeKind::Set { members, .. } => {
                let lengths = members.names().iter().map(|name| name.chars().count() + 1);
                lengths.sum::<usize>().saturating_sub(1) as u32
            }
            TypeKind::Json | TypeKind::Geometry => LONGEST_TEXT,
        }
    }

    /// The most bytes of a value's text, in its own character set.
    #[must_use]
    pub fn max_text_bytes(&self) -> u32 {
        let character_bytes = match &self.kind {
            TypeKind::Char { collation, .. }
            | TypeKind::Varchar { collation, .. }
            | TypeKind::Enum { collation, .. }
            | TypeKind::Set { collation, .. } => {
                collation::get(*collation).charset.max_character_bytes()
            }
            TypeKind::Json => Charset::Utf8mb4.max_character_bytes(),
            _ => 1,
        };
        self.max_text_chars().saturating_mul(character_bytes)
    }
}
