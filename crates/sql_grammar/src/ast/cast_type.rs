//! Types of `CAST`; there are fewer than for columns.

/// The target type of a cast. Lengths and digits are `None` if they are not written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CastType {
    Signed,
    Unsigned,
    /// `BINARY(n)`, in bytes.
    Binary(Option<u64>),
    /// `CHAR(n)`, in characters.
    Char(Option<u64>),
    /// `NCHAR(n)`, in characters.
    NationalChar(Option<u64>),
    Date,
    /// `DATETIME(n)`, with fractional second digits.
    Datetime(Option<u64>),
    /// `TIME(n)`, with fractional second digits.
    Time(Option<u64>),
    Year,
    /// `DECIMAL(p, s)`
    Decimal(Digits),
    /// `FLOAT(p)`
    Float(Digits),
    /// `DOUBLE`, `REAL`
    Double,
    Json,
    /// `POINT` and the like, in upper case.
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
