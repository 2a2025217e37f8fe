//! What clients see of a result's column: MySQL's type byte, flags, length, decimals, character
//! set.

use firn_format::value::{CollationId, IntWidth};
use firn_sql_collation::{self as collation, Charset};

use super::display::Display;
pub use super::display::NOT_FIXED_DECIMALS;
use super::sql_type::{SqlType, TypeKind};

const LONGEST_VARCHAR_BYTES: u64 = 65_535;
const LONGEST_MEDIUM_BYTES: u64 = 16_777_215;
/// `utf8mb4_bin`
const DOCUMENT_COLLATION: CollationId = CollationId(46);
const LONGEST_JSON_BYTES: u32 = 4_294_967_292;
const LONGEST_TINY: u32 = 0xff;
const SHORT: u32 = LONGEST_TINY + 1;
const LONGEST_SHORT: u32 = 0xffff;
const MEDIUM: u32 = LONGEST_SHORT + 1;
const LONGEST_MEDIUM: u32 = 0xff_ffff;

/// Type bytes of the protocol.
#[allow(missing_docs)] // The names are the protocol's.
pub mod type_code {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const BIT: u8 = 16;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Flags of the protocol.
#[allow(missing_docs)] // The names are the protocol's.
pub mod flag {
    pub const NOT_NULL: u16 = 1;
    pub const PRIMARY_KEY: u16 = 2;
    pub const UNIQUE_KEY: u16 = 4;
    pub const MULTIPLE_KEY: u16 = 8;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const ZEROFILL: u16 = 64;
    pub const BINARY: u16 = 128;
    pub const ENUM: u16 = 256;
    pub const AUTO_INCREMENT: u16 = 512;
    pub const TIMESTAMP: u16 = 1024;
    pub const SET: u16 = 2048;
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    pub const ON_UPDATE_NOW: u16 = 8192;
    pub const PART_KEY: u16 = 16384;
    /// Flags that a column of a temporary table does not keep.
    pub const OF_KEYS: u16 = PRIMARY_KEY | UNIQUE_KEY | MULTIPLE_KEY | AUTO_INCREMENT | PART_KEY;
    pub const NUM: u16 = 32768;
}

/// The description of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultMetadata {
    /// See [`type_code`].
    pub type_code: u8,
    /// See [`flag`]; the caller adds those of keys and defaults.
    pub flags: u16,
    /// The longest text in bytes of the result's character set.
    pub length_bytes: u32,
    /// Digits after the point; [`NOT_FIXED_DECIMALS`] if they vary.
    pub decimals: u8,
    /// The collation's number; 63 for values that are not text.
    pub collation: CollationId,
}

impl TypeKind {
    /// The type byte of the protocol.
    #[must_use]
    pub fn type_code(&self) -> u8 {
        match self {
            TypeKind::Null => type_code::NULL,
            TypeKind::Integer { width, .. } => match width {
                IntWidth::One => type_code::TINY,
                IntWidth::Two => type_code::SHORT,
                IntWidth::Three => type_code::INT24,
                IntWidth::Four => type_code::LONG,
                IntWidth::Eight => type_code::LONGLONG,
            },
            TypeKind::Bit { .. } => type_code::BIT,
            TypeKind::Year => type_code::YEAR,
            TypeKind::Decimal { .. } => type_code::NEWDECIMAL,
            TypeKind::Float => type_code::FLOAT,
            TypeKind::Double => type_code::DOUBLE,
            TypeKind::Char { .. } | TypeKind::Binary { .. } => type_code::STRING,
            TypeKind::Varchar { .. } | TypeKind::Varbinary { .. } => type_code::VAR_STRING,
            TypeKind::Text { .. } | TypeKind::Blob { .. } => type_code::BLOB,
            TypeKind::Date => type_code::DATE,
            TypeKind::Time { .. } => type_code::TIME,
            TypeKind::DateTime { .. } => type_code::DATETIME,
            TypeKind::Timestamp { .. } => type_code::TIMESTAMP,
            TypeKind::Enum { .. } | TypeKind::Set { .. } => type_code::STRING,
            TypeKind::Json => type_code::JSON,
            TypeKind::Geometry => type_code::GEOMETRY,
        }
    }

    /// The name of the type without its arguments, as in `DATA_TYPE` of
    /// `information_schema.columns`.
    #[must_use]
    pub fn data_type_name(&self) -> &'static str {
        match self {
            TypeKind::Null => "null",
            TypeKind::Integer { width, .. } => match width {
                IntWidth::One => "tinyint",
                IntWidth::Two => "smallint",
                IntWidth::Three => "mediumint",
                IntWidth::Four => "int",
                IntWidth::Eight => "bigint",
            },
            TypeKind::Bit { .. } => "bit",
            TypeKind::Year => "year",
            TypeKind::Decimal { .. } => "decimal",
            TypeKind::Float => "float",
            TypeKind::Double => "double",
            TypeKind::Char { .. } => "char",
            TypeKind::Varchar { .. } => "varchar",
            TypeKind::Text { max_bytes, .. } => match *max_bytes {
                0..=LONGEST_TINY => "tinytext",
                SHORT..=LONGEST_SHORT => "text",
                MEDIUM..=LONGEST_MEDIUM => "mediumtext",
                _ => "longtext",
            },
            TypeKind::Binary { .. } => "binary",
            TypeKind::Varbinary { .. } => "varbinary",
            TypeKind::Blob { max_bytes } => match *max_bytes {
                0..=LONGEST_TINY => "tinyblob",
                SHORT..=LONGEST_SHORT => "blob",
                MEDIUM..=LONGEST_MEDIUM => "mediumblob",
                _ => "longblob",
            },
            TypeKind::Date => "date",
            TypeKind::Time { .. } => "time",
            TypeKind::DateTime { .. } => "datetime",
            TypeKind::Timestamp { .. } => "timestamp",
            TypeKind::Enum { .. } => "enum",
            TypeKind::Set { .. } => "set",
            TypeKind::Json => "json",
            TypeKind::Geometry => "geometry",
        }
    }

    /// The type as in `SHOW CREATE TABLE` and `COLUMN_TYPE`, without character set and collation.
    #[must_use]
    pub fn definition(&self) -> String {
        let name = self.data_type_name();
        let unsigned = |unsigned: bool| if unsigned { " unsigned" } else { "" };
        let fraction = |fsp: u8| if fsp == 0 { String::new() } else { format!("({fsp})") };
        let named = |members: &super::Members| {
            let quoted =
                members.names().iter().map(|name| format!("'{}'", name.replace('\'', "''")));
            format!("{name}({})", quoted.collect::<Vec<_>>().join(","))
        };
        match self {
            TypeKind::Integer { unsigned: is, .. } => format!("{name}{}", unsigned(*is)),
            TypeKind::Bit { bits } => format!("{name}({bits})"),
            TypeKind::Decimal { precision, scale, unsigned: is } => {
                format!("{name}({precision},{scale}){}", unsigned(*is))
            }
            TypeKind::Char { max_chars, .. } | TypeKind::Varchar { max_chars, .. } => {
                format!("{name}({max_chars})")
            }
            TypeKind::Binary { max_bytes } | TypeKind::Varbinary { max_bytes } => {
                format!("{name}({max_bytes})")
            }
            TypeKind::Time { fsp } | TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
                format!("{name}{}", fraction(*fsp))
            }
            TypeKind::Enum { members, .. } | TypeKind::Set { members, .. } => named(members),
            _ => name.to_owned(),
        }
    }
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
        let bytes = self.bytes_of(display.length);
        ResultMetadata {
            type_code: self.code_of(display),
            flags: self.shown_flags(display),
            length_bytes: self.shown_length(display, bytes, results),
            decimals: self.shown_decimals(display),
            collation,
        }
    }

    /// The type byte of values with this display.
    #[must_use]
    pub fn code_of(&self, display: &Display) -> u8 {
        let bytes = self.bytes_of(display.length);
        display.type_code.unwrap_or_else(|| self.shown_type(display, bytes))
    }

    /// The type byte of a text of this type that was made, by its length in characters.
    #[must_use]
    pub fn code_of_made_text(&self, length: u32) -> u8 {
        code_by_length(self.bytes_of(length))
    }

    /// The type byte of bytes of this type within a document.
    #[must_use]
    pub fn code_in_document(&self) -> u8 {
        const VARBINARY: u8 = 15;
        const TINY_BLOB: u8 = 249;
        match self.kind {
            TypeKind::Varbinary { max_bytes } => match self.code_of_made_text(max_bytes) {
                type_code::VAR_STRING => VARBINARY,
                longer => longer,
            },
            TypeKind::Blob { max_bytes: 0..=0xff } => TINY_BLOB,
            TypeKind::Blob { max_bytes: 0x100..=0xffff } => type_code::BLOB,
            TypeKind::Blob { max_bytes: 0x1_0000..=0xff_ffff } => type_code::MEDIUM_BLOB,
            TypeKind::Blob { .. } => type_code::LONG_BLOB,
            _ => self.kind.type_code(),
        }
    }

    /// The most bytes of a text of `length` characters.
    fn bytes_of(&self, length: u32) -> u64 {
        let own_bytes = self.charset().map_or(1, Charset::max_character_bytes);
        u64::from(length) * u64::from(own_bytes)
    }

    fn shown_type(&self, display: &Display, bytes: u64) -> u8 {
        match &self.kind {
            TypeKind::Null if display.stored => type_code::VAR_STRING,
            TypeKind::Varchar { .. } | TypeKind::Varbinary { .. } if !display.stored => {
                code_by_length(bytes)
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
            TypeKind::Text { .. } if display.type_code == Some(type_code::VAR_STRING) => {
                times(display.length.into())
            }
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

fn code_by_length(bytes: u64) -> u8 {
    if bytes <= LONGEST_VARCHAR_BYTES {
        type_code::VAR_STRING
    } else if bytes <= LONGEST_MEDIUM_BYTES {
        type_code::MEDIUM_BLOB
    } else {
        type_code::LONG_BLOB
    }
}
