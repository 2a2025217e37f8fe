//! Types of `CAST`, which are fewer than those of columns.

/// A type that an expression is cast to. Lengths and digits are `None` where none are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CastType {
    /// `SIGNED`
    Signed,
    /// `UNSIGNED`
    Unsigned,
    /// `BINARY(n)`, in bytes.
    Binary(Option<u64>),
    /// `CHAR(n)`, in characters.
    Char(Option<u64>),
    /// `NCHAR(n)`, in characters.
    NationalChar(Option<u64>),
    /// `DATE`
    Date,
    /// `DATETIME(n)`, digits of seconds.
    Datetime(Option<u64>),
    /// `TIME(n)`, digits of seconds.
    Time(Option<u64>),
    /// `YEAR`
    Year,
    /// `DECIMAL(p, s)`
    Decimal(Digits),
    /// `FLOAT(p)`
    Float(Digits),
    /// `DOUBLE`, `REAL`
    Double,
    /// `JSON`
    Json,
    /// `POINT` and its kin, in capitals.
    Geometry(String),
}

/// The digits of a number's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Digits {
    /// None written.
    Default,
    /// `(p)`
    Precision(u64),
    /// `(p, s)`
    PrecisionAndScale(u64, u64),
}
