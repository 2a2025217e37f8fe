//! How long values are for clients, and how many digits they have after the point.
//!
//! For each expression, MySQL computes how long its text can get. It reports this length in column
//! metadata, and `CREATE TABLE … SELECT` uses it for its columns. The type alone does not determine
//! it: `1` and `a * b` are both `BIGINT`.

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset};

use super::metadata::{NOT_FIXED_DECIMALS, ResultMetadata, flag, type_code};
use super::sql_type::{IntWidth, SqlType, TypeKind};

/// The length of computed doubles.
pub const WORKED_OUT_DOUBLE_CHARS: u32 = 23;
const FLOAT_CHARS: u32 = 12;
const DOUBLE_CHARS: u32 = 22;
const LONGEST_VARCHAR_BYTES: u64 = 65_535;
const LONGEST_MEDIUM_BYTES: u64 = 16_777_215;
/// `utf8mb4_bin`
const DOCUMENT_COLLATION: CollationId = CollationId(46);
const LONGEST_JSON_BYTES: u32 = 4_294_967_292;

/// The length of a column's values, and their origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Display {
    /// The longest text in characters; for binary strings and `BLOB` in bytes.
    pub length: u32,
    /// Digits after the point of a number or time; [`NOT_FIXED_DECIMALS`] if they vary.
    pub decimals: u8,
    /// Never negative. The types `FLOAT` and `DOUBLE` do not tell.
    pub unsigned: bool,
    /// `ZEROFILL`
    pub zerofill: bool,
    /// Values of a stored column, including one of a temporary table: its flags are a column's.
    pub stored: bool,
    /// The nullability that clients see, if MySQL reports another one than the type's.
    pub nullable: Option<bool>,
    /// The type byte, if it differs from the type's; see [`type_code`].
    pub type_code: Option<u8>,
}

impl Display {
    /// The values of an expression of a type, if nothing more is known.
    #[must_use]
    pub fn of_expression(ty: &SqlType) -> Display {
        let length = match &ty.kind {
            TypeKind::Float | TypeKind::Double => WORKED_OUT_DOUBLE_CHARS,
            // One more than a column has.
            TypeKind::Integer { width: IntWidth::Eight, .. } => 21,
            _ => Display::of_column(ty).length,
        };
        Display { length, stored: false, ..Display::of_column(ty) }
    }

    /// The values of a column of a type, if nothing more is known.
    #[must_use]
    pub fn of_column(ty: &SqlType) -> Display {
        let length = match &ty.kind {
            TypeKind::Float => FLOAT_CHARS,
            TypeKind::Double => DOUBLE_CHARS,
            TypeKind::Bit { bits } => (*bits).into(),
            TypeKind::Decimal { precision, scale, unsigned } => {
                number_chars(*precision, *scale, *unsigned)
            }
            _ => ty.max_text_chars(),
        };
        Display {
            length,
            decimals: match &ty.kind {
                TypeKind::Float | TypeKind::Double => NOT_FIXED_DECIMALS,
                kind => kind.scale(),
            },
            unsigned: ty.kind.is_unsigned() && ty.kind.is_numeric(),
            zerofill: ty.kind == TypeKind::Year,
            stored: true,
            nullable: None,
            type_code: None,
        }
    }

    /// A whole number of at most `length` characters, including its sign.
    #[must_use]
    pub fn integer(ty: &SqlType, length: u32) -> Display {
        Display { length, decimals: 0, ..Display::of_expression(ty) }
    }

    /// An exact number of `precision` digits, `scale` of them after the point.
    #[must_use]
    pub fn exact(ty: &SqlType, precision: u8, scale: u8) -> Display {
        let unsigned = ty.kind.is_unsigned();
        let length = number_chars(precision, scale, unsigned);
        Display { length, decimals: scale, ..Display::of_expression(ty) }
    }

    /// The same values converted to text: doubles without fixed digits get the width of a column of
    /// doubles.
    #[must_use]
    pub fn as_text_of(self, ty: &SqlType) -> Display {
        let is_floating = matches!(ty.kind, TypeKind::Float | TypeKind::Double);
        match is_floating && self.decimals == NOT_FIXED_DECIMALS {
            true => Display { length: Display::of_column(ty).length, ..self },
            false => self,
        }
    }

    /// The same values as a column of a temporary table.
    #[must_use]
    pub fn as_stored(self) -> Display {
        Display { stored: true, ..self }
    }

    /// The same values as those of an expression.
    #[must_use]
    pub fn as_expression(self) -> Display {
        Display { stored: false, ..self }
    }

    /// All digits of a number of a type that is displayed like this.
    #[must_use]
    pub fn precision(&self, kind: &TypeKind) -> u8 {
        let fixed = match kind {
            TypeKind::Date => Some(8),
            TypeKind::Time { fsp } => Some(7 + fsp),
            TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => Some(14 + fsp),
            _ => None,
        };
        fixed.unwrap_or_else(|| {
            let others = u32::from(self.decimals > 0) + u32::from(!self.unsigned);
            self.length.saturating_sub(others).clamp(1, 65) as u8
        })
    }
}

/// Characters of a number: its digits, a point and a sign.
fn number_chars(precision: u8, scale: u8, unsigned: bool) -> u32 {
    u32::from(precision) + u32::from(scale > 0) + u32::from(!unsigned)
}

impl SqlType {
    /// What clients see of values of this type with this display. Texts are sent in the character
    /// set of `results`, or unchanged.
    #[must_use]
    pub fn shown_as(&self, display: &Display, results: Option<CollationId>) -> ResultMetadata {
        let is_text = self.kind.is_text() || self.kind.is_enum_or_set();
        let is_document = self.kind == TypeKind::Json && !display.stored;
        let own = if is_document {
            DOCUMENT_COLLATION
        } else {
            self.collation().unwrap_or(CollationId::BINARY)
        };
        let collation = match is_text || is_document {
            true => results.unwrap_or(own),
            false => CollationId::BINARY,
        };
        let results = results.map(|id| collation::get(id).charset);
        let own_bytes = self.charset().map_or(1, Charset::max_character_bytes);
        let bytes = u64::from(display.length) * u64::from(own_bytes);
        ResultMetadata {
            type_code: display.type_code.unwrap_or_else(|| self.shown_type(display, bytes)),
            flags: self.shown_flags(display),
            length_bytes: self.shown_length(display, bytes, results),
            decimals: self.shown_decimals(display),
            collation,
        }
    }

    fn shown_type(&self, display: &Display, bytes: u64) -> u8 {
        match &self.kind {
            TypeKind::Null if display.stored => type_code::VAR_STRING,
            TypeKind::Varchar { .. } | TypeKind::Varbinary { .. } if !display.stored => {
                if bytes <= LONGEST_VARCHAR_BYTES {
                    type_code::VAR_STRING
                } else if bytes <= LONGEST_MEDIUM_BYTES {
                    type_code::MEDIUM_BLOB
                } else {
                    type_code::LONG_BLOB
                }
            }
            TypeKind::Text { max_bytes: u32::MAX, .. } | TypeKind::Blob { max_bytes: u32::MAX }
                if !display.stored =>
            {
                type_code::LONG_BLOB
            }
            kind => kind.type_code(),
        }
    }

    fn shown_flags(&self, display: &Display) -> u16 {
        let nullable = display.nullable.unwrap_or(self.nullable);
        let not_null = if nullable { 0 } else { flag::NOT_NULL };
        let unsigned = if display.unsigned { flag::UNSIGNED } else { 0 };
        let is_binary_text = self.collation().is_some_and(|id| collation::get(id).is_binary());
        let is_number = self.kind.is_numeric();
        let is_binary = match self.collation() {
            Some(_) => is_binary_text,
            None => !is_number || !display.stored && !matches!(self.kind, TypeKind::Bit { .. }),
        };
        let binary = if is_binary { flag::BINARY } else { 0 };
        let of_column = match &self.kind {
            _ if !display.stored => 0,
            TypeKind::Enum { .. } => flag::ENUM,
            TypeKind::Set { .. } => flag::SET,
            TypeKind::Text { .. } | TypeKind::Blob { .. } | TypeKind::Json | TypeKind::Geometry => {
                flag::BLOB
            }
            _ if display.zerofill => flag::ZEROFILL,
            _ => 0,
        };
        not_null | unsigned | binary | of_column
    }

    fn shown_length(&self, display: &Display, bytes: u64, results: Option<Charset>) -> u32 {
        // MySQL counts each byte of a long text as a character.
        let times = |count: u64| {
            count * u64::from(results.map_or(1, |charset| charset.max_character_bytes()))
        };
        let length = match &self.kind {
            TypeKind::Json if !display.stored => LONGEST_JSON_BYTES.into(),
            TypeKind::Text { .. } if display.stored => times(display.length.into()),
            TypeKind::Text { .. } => times(bytes),
            TypeKind::Varchar { .. } if !display.stored && bytes > LONGEST_VARCHAR_BYTES => {
                times(bytes)
            }
            kind if kind.is_text() || kind.is_enum_or_set() => match results {
                Some(_) => times(display.length.into()),
                None => bytes,
            },
            _ => display.length.into(),
        };
        length.min(u32::MAX.into()) as u32
    }

    fn shown_decimals(&self, display: &Display) -> u8 {
        match &self.kind {
            TypeKind::Json | TypeKind::Enum { .. } | TypeKind::Set { .. } if !display.stored => {
                NOT_FIXED_DECIMALS
            }
            kind if kind.is_string() && !display.stored => NOT_FIXED_DECIMALS,
            TypeKind::Json => 0,
            kind if kind.is_string() || kind.is_enum_or_set() => 0,
            _ => display.decimals,
        }
    }
}
