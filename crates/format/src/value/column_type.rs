//! The column types of MySQL 8, reduced to what storing and ordering a value needs.

use std::fmt;

use super::{DecimalType, ValueError};

/// A collation by its MySQL number, such as 255 for `utf8mb4_0900_ai_ci`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollationId(pub u16);

impl CollationId {
    /// The collation `binary`: bytes compare as bytes.
    pub const BINARY: CollationId = CollationId(63);
}

impl fmt::Debug for CollationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CollationId({})", self.0)
    }
}

/// Bytes of a stored integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntWidth {
    /// `TINYINT`
    One,
    /// `SMALLINT`
    Two,
    /// `MEDIUMINT`
    Three,
    /// `INT`
    Four,
    /// `BIGINT`
    Eight,
}

impl IntWidth {
    /// The width of this many bytes; `None` if no integer type has as many.
    #[must_use]
    pub const fn of_bytes(bytes: usize) -> Option<IntWidth> {
        Some(match bytes {
            1 => IntWidth::One,
            2 => IntWidth::Two,
            3 => IntWidth::Three,
            4 => IntWidth::Four,
            8 => IntWidth::Eight,
            _ => return None,
        })
    }

    /// Bytes that an integer of this width takes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            IntWidth::One => 1,
            IntWidth::Two => 2,
            IntWidth::Three => 3,
            IntWidth::Four => 4,
            IntWidth::Eight => 8,
        }
    }

    /// Bits that an integer of this width takes.
    pub(crate) const fn bits(self) -> u32 {
        self.bytes() as u32 * 8
    }
}

/// A column's type, as far as storage needs it. Properties that only SQL needs (member names of an
/// enum, display widths, default expressions) are in the options of the table definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    Int(IntWidth),
    UInt(IntWidth),
    /// `DECIMAL(p, s)`
    Decimal(DecimalType),
    Float,
    Double,
    /// `BIT(bits)`, 1 to 64 bits.
    Bit {
        bits: u8,
    },
    /// `CHAR(max_chars)`. Stored as long as it is; the SQL layer strips the padding.
    Char {
        /// Longest value, in characters.
        max_chars: u32,
        collation: CollationId,
    },
    /// `VARCHAR(max_chars)`
    Varchar {
        /// Longest value, in characters.
        max_chars: u32,
        collation: CollationId,
    },
    /// `TINYTEXT` to `LONGTEXT`
    Text {
        /// Longest value, in bytes.
        max_bytes: u32,
        collation: CollationId,
    },
    /// `BINARY(max_bytes)`
    Binary {
        /// Longest value, in bytes.
        max_bytes: u32,
    },
    /// `VARBINARY(max_bytes)`
    Varbinary {
        /// Longest value, in bytes.
        max_bytes: u32,
    },
    /// `TINYBLOB` to `LONGBLOB`
    Blob {
        /// Longest value, in bytes.
        max_bytes: u32,
    },
    Date,
    /// `TIME(fsp)`
    Time {
        /// Digits of the fraction of a second, 0 to 6.
        fsp: u8,
    },
    /// `DATETIME(fsp)`
    DateTime {
        /// Digits of the fraction of a second, 0 to 6.
        fsp: u8,
    },
    /// `TIMESTAMP(fsp)`
    Timestamp {
        /// Digits of the fraction of a second, 0 to 6.
        fsp: u8,
    },
    /// `YEAR`: 0 or 1901 to 2155.
    Year,
    /// `ENUM`; the value is the member's ordinal from 1, or 0 for the error value.
    Enum {
        members: u16,
    },
    /// `SET` of at most 64 members; bit `i` of the value is member `i`.
    Set {
        members: u8,
    },
    /// `JSON`, in the SQL layer's encoding.
    Json,
    /// `GEOMETRY` and its kin, in the SQL layer's encoding.
    Geometry,
}

impl ColumnType {
    /// Checks the type's parameters.
    ///
    /// # Errors
    /// [`ValueError::InvalidType`].
    pub fn check(self) -> Result<(), ValueError> {
        let possible = match self {
            ColumnType::Bit { bits } => (1..=64).contains(&bits),
            ColumnType::Set { members } => (1..=64).contains(&members),
            ColumnType::Time { fsp }
            | ColumnType::DateTime { fsp }
            | ColumnType::Timestamp { fsp } => fsp <= 6,
            _ => true,
        };
        if possible { Ok(()) } else { Err(ValueError::InvalidType(self)) }
    }

    /// Bytes that a value takes in a row, or `None` when that depends on the value.
    #[must_use]
    pub const fn fixed_length(self) -> Option<usize> {
        match self {
            ColumnType::Int(width) | ColumnType::UInt(width) => Some(width.bytes()),
            ColumnType::Decimal(decimal_type) => Some(decimal_type.encoded_length()),
            ColumnType::Float => Some(4),
            ColumnType::Double => Some(8),
            ColumnType::Bit { bits } => Some((bits as usize).div_ceil(8)),
            ColumnType::Set { members } => Some((members as usize).div_ceil(8)),
            ColumnType::Date => Some(3),
            ColumnType::Time { fsp } => Some(3 + fraction_bytes(fsp)),
            ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => {
                Some(5 + fraction_bytes(fsp))
            }
            ColumnType::Year => Some(1),
            ColumnType::Enum { .. } => Some(2),
            _ => None,
        }
    }

    /// The collation of a text column.
    #[must_use]
    pub const fn collation(self) -> Option<CollationId> {
        match self {
            ColumnType::Char { collation, .. }
            | ColumnType::Varchar { collation, .. }
            | ColumnType::Text { collation, .. } => Some(collation),
            _ => None,
        }
    }
}

/// Bytes for `fsp` digits of a second: two digits in each.
pub(super) const fn fraction_bytes(fsp: u8) -> usize {
    (fsp as usize).div_ceil(2)
}
