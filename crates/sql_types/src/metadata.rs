//! What clients see of a result's column: MySQL's type byte, flags, length, decimals, character
//! set.

use firn_format::value::{CollationId, IntWidth};

use super::sql_type::TypeKind;

/// Decimals of a number whose digits after the point are not fixed.
pub const NOT_FIXED_DECIMALS: u8 = 31;
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
