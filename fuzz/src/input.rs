//! Bytes as a source of choices. An input that ends early yields zeros, so every input is valid and
//! a shorter one means something simpler.

use firn_format::value::{CollationId, ColumnType, DecimalType, IntWidth};

/// The bytes that have not been used yet.
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Up to `length` bytes.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Everything that is left.
    pub fn take_all(&mut self) -> &'a [u8] {
        self.take(usize::MAX)
    }

    /// The next number.
    pub fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// The next number.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    /// The next choice between two things.
    pub fn flag(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    fn int_width(&mut self) -> IntWidth {
        match self.u8() % 5 {
            0 => IntWidth::One,
            1 => IntWidth::Two,
            2 => IntWidth::Three,
            3 => IntWidth::Four,
            _ => IntWidth::Eight,
        }
    }

    pub fn decimal_type(&mut self) -> DecimalType {
        let precision = 1 + self.u8() % DecimalType::MAX_PRECISION;
        let scale = self.u8() % (precision.min(DecimalType::MAX_SCALE) + 1);
        DecimalType::new(precision, scale).expect("the bounds were kept")
    }

    /// A column type, possible or not.
    pub fn column_type(&mut self) -> ColumnType {
        let collation = CollationId::BINARY;
        match self.u8() % 18 {
            0 => ColumnType::Int(self.int_width()),
            1 => ColumnType::UInt(self.int_width()),
            2 => ColumnType::Decimal(self.decimal_type()),
            3 => ColumnType::Float,
            4 => ColumnType::Double,
            5 => ColumnType::Bit { bits: self.u8() },
            6 => ColumnType::Char { max_chars: u32::from(self.u8()), collation },
            7 => ColumnType::Varchar { max_chars: u32::from(self.u16()), collation },
            8 => ColumnType::Text { max_bytes: u32::from(self.u16()), collation },
            9 => ColumnType::Binary { max_bytes: u32::from(self.u8()) },
            10 => ColumnType::Varbinary { max_bytes: u32::from(self.u16()) },
            11 => ColumnType::Date,
            12 => ColumnType::Time { fsp: self.u8() },
            13 => ColumnType::DateTime { fsp: self.u8() },
            14 => ColumnType::Timestamp { fsp: self.u8() },
            15 => ColumnType::Year,
            16 => ColumnType::Enum { members: self.u16() },
            _ => ColumnType::Set { members: self.u8() },
        }
    }
}
