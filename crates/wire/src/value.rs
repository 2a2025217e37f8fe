//! Values on the wire: codes of the types, and decoded dates and times.

/// A column's or parameter's type, by the protocol's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ColumnType {
    /// `DECIMAL` of old; like [`ColumnType::NewDecimal`].
    Decimal = 0,
    /// `TINYINT`.
    Tiny = 1,
    /// `SMALLINT`.
    Short = 2,
    /// `INT`.
    Long = 3,
    Float = 4,
    Double = 5,
    Null = 6,
    Timestamp = 7,
    /// `BIGINT`.
    LongLong = 8,
    /// `MEDIUMINT`.
    Int24 = 9,
    Date = 10,
    Time = 11,
    DateTime = 12,
    Year = 13,
    /// `VARCHAR` as a server stores it; on the wire like [`ColumnType::VarString`].
    VarChar = 15,
    Bit = 16,
    Json = 245,
    /// `DECIMAL`.
    NewDecimal = 246,
    Enum = 247,
    Set = 248,
    /// `TINYBLOB`, `TINYTEXT`.
    TinyBlob = 249,
    /// `MEDIUMBLOB`, `MEDIUMTEXT`.
    MediumBlob = 250,
    /// `LONGBLOB`, `LONGTEXT`.
    LongBlob = 251,
    /// `BLOB`, `TEXT`.
    Blob = 252,
    /// `VARCHAR`, `VARBINARY`.
    VarString = 253,
    /// `CHAR`, `BINARY`; also the usual type of a literal.
    String = 254,
    Geometry = 255,
}

impl ColumnType {
    /// The type of that code, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<ColumnType> {
        use ColumnType::*;
        Some(match code {
            0 => Decimal,
            1 => Tiny,
            2 => Short,
            3 => Long,
            4 => Float,
            5 => Double,
            6 => Null,
            7 => Timestamp,
            8 => LongLong,
            9 => Int24,
            10 => Date,
            11 => Time,
            12 => DateTime,
            13 => Year,
            15 => VarChar,
            16 => Bit,
            245 => Json,
            246 => NewDecimal,
            247 => Enum,
            248 => Set,
            249 => TinyBlob,
            250 => MediumBlob,
            251 => LongBlob,
            252 => Blob,
            253 => VarString,
            254 => String,
            255 => Geometry,
            _ => return None,
        })
    }
}

/// A calendar date. All zero is MySQL's `0000-00-00`; nothing is checked here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
}

/// A date and a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateTime {
    pub date: Date,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999.
    pub microsecond: u32,
}

/// A signed length of time, as of MySQL's `TIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time {
    /// Below zero.
    pub negative: bool,
    /// Whole hours, days included: MySQL has up to 838.
    pub hours: u32,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999.
    pub microsecond: u32,
}

/// A parameter of a prepared statement or a query attribute's value, as the client sent it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    Null,
    /// An integer with sign.
    Int(i64),
    /// An integer without sign.
    UInt(u64),
    Float(f32),
    Double(f64),
    /// A decimal number as text.
    Decimal(&'a [u8]),
    /// Text in the connection's character set (`character_set_client`).
    Text(&'a [u8]),
    /// Bytes: a `BLOB`, a `BIT`, a spatial value, or a value of such a type that was sent with
    /// `COM_STMT_SEND_LONG_DATA`.
    Bytes(&'a [u8]),
    Date(Date),
    /// A `DATETIME` or `TIMESTAMP`.
    DateTime(DateTime),
    Time(Time),
}

/// A query attribute: a named value that a client sends with a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attribute<'a> {
    /// The attribute's name; may be empty.
    pub name: &'a [u8],
    pub value: Parameter<'a>,
}
