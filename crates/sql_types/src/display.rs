//! How long values are for clients, and how many digits they have after the point.
//!
//! For each expression, MySQL computes how long its text can get. It reports this length in column
//! metadata, and `CREATE TABLE … SELECT` uses it for its columns. The type alone does not determine
//! it: `1` and `a * b` are both `BIGINT`. What a type says of it, if nothing more is known, is in
//! [`type_display`](super::type_display).

/// Decimals of a number whose digits after the point are not fixed.
pub const NOT_FIXED_DECIMALS: u8 = 31;

/// The length of a column's values, and their origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Display {
    /// The longest text in characters; for binary strings and `BLOB` in bytes.
    pub length: u32,
    /// The length as an operand, if it is another one: a column of a temporary table has the width
    /// of its type.
    pub operand_length: Option<u32>,
    /// Digits after the point of a number or time; [`NOT_FIXED_DECIMALS`] if they vary.
    pub decimals: u8,
    /// Never negative. The types `FLOAT` and `DOUBLE` do not tell.
    pub unsigned: bool,
    pub zerofill: bool,
    /// Values of a stored column, including one of a temporary table: its flags are a column's.
    pub stored: bool,
    /// The nullability that clients see, if MySQL reports another one than the type's.
    pub nullable: Option<bool>,
    /// The type byte, if it differs from the type's; see [`type_code`](super::metadata::type_code).
    pub type_code: Option<u8>,
    /// A column that `CREATE TABLE … SELECT` makes of it has its type and length, however short
    /// its values are.
    pub keeps_type: bool,
}

impl Display {
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

    /// The same values as those of an operand.
    #[must_use]
    pub fn as_operand(self) -> Display {
        let length = self.operand_length.unwrap_or(self.length);
        Display { length, operand_length: None, ..self.as_expression() }
    }
}
