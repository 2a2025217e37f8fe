//! Table definitions as bytes. All numbers are little endian, every string and list follows its
//! length, and a decoded definition has passed [`TableDefinition::check`].

use firn_base::{IndexId, PageNo, SpaceId, TableId};

use crate::key::Direction;
use crate::row::RowVersion;
use crate::value::{CollationId, ColumnType, DecimalType, IntWidth, Value};

use super::{
    ColumnDefinition, DefinitionError, IndexDefinition, IndexKind, IndexPart, IndexState,
    TableDefinition,
};

/// The format that is written. All earlier formats are still read.
const FORMAT: u8 = 1;
const NULLABLE: u8 = 1;
const HIDDEN: u8 = 1 << 1;

type Decoded<T> = Result<T, DefinitionError>;

impl TableDefinition {
    /// The definition as bytes.
    ///
    /// # Errors
    /// [`DefinitionError::TooMany`], and what [`TableDefinition::check`] refuses.
    pub fn encode(&self) -> Result<Vec<u8>, DefinitionError> {
        self.check()?;
        self.encode_draft()
    }

    /// Reads what [`TableDefinition::encode`] wrote. The bytes may be anything.
    ///
    /// # Errors
    /// [`DefinitionError::Damaged`], [`DefinitionError::UnknownFormat`], and what
    /// [`TableDefinition::check`] refuses.
    pub fn decode(bytes: &[u8]) -> Result<TableDefinition, DefinitionError> {
        let definition = TableDefinition::decode_draft(bytes)?;
        definition.check()?;
        Ok(definition)
    }

    /// Like [`TableDefinition::encode`], for a definition that may be incomplete: a new table has
    /// no ids yet, and perhaps no clustered index.
    ///
    /// # Errors
    /// [`DefinitionError::TooMany`].
    pub fn encode_draft(&self) -> Result<Vec<u8>, DefinitionError> {
        let mut writer = Writer(vec![FORMAT]);
        writer.table(self)?;
        Ok(writer.0)
    }

    /// Reads what [`TableDefinition::encode_draft`] wrote. The bytes may be anything.
    ///
    /// # Errors
    /// [`DefinitionError::Damaged`] and [`DefinitionError::UnknownFormat`].
    pub fn decode_draft(bytes: &[u8]) -> Result<TableDefinition, DefinitionError> {
        Reader::whole(bytes, Reader::table)
    }
}

impl ColumnDefinition {
    /// The column as bytes.
    ///
    /// # Errors
    /// [`DefinitionError::TooMany`].
    pub fn encode(&self) -> Result<Vec<u8>, DefinitionError> {
        let mut writer = Writer(vec![FORMAT]);
        writer.column(self)?;
        Ok(writer.0)
    }

    /// Reads what [`ColumnDefinition::encode`] wrote. The bytes may be anything.
    ///
    /// # Errors
    /// [`DefinitionError::Damaged`] and [`DefinitionError::UnknownFormat`].
    pub fn decode(bytes: &[u8]) -> Result<ColumnDefinition, DefinitionError> {
        Reader::whole(bytes, Reader::column)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    fn u16(&mut self, number: u16) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn count(&mut self, count: usize, what: &'static str) -> Result<(), DefinitionError> {
        self.u16(u16::try_from(count).map_err(|_| DefinitionError::TooMany(what))?);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8], what: &'static str) -> Result<(), DefinitionError> {
        self.u32(u32::try_from(bytes.len()).map_err(|_| DefinitionError::TooMany(what))?);
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn table(&mut self, table: &TableDefinition) -> Result<(), DefinitionError> {
        self.u64(table.table_id.0);
        self.u32(table.space.0);
        self.u64(table.schema_version);
        self.u16(table.row_version.0);
        self.bytes(table.schema_name.as_bytes(), "schema name")?;
        self.bytes(table.name.as_bytes(), "table name")?;
        self.bytes(&table.options, "table options")?;
        self.count(table.columns.len(), "columns")?;
        table.columns.iter().try_for_each(|column| self.column(column))?;
        self.count(table.indexes.len(), "indexes")?;
        table.indexes.iter().try_for_each(|index| self.index(index))
    }

    fn column(&mut self, column: &ColumnDefinition) -> Result<(), DefinitionError> {
        self.bytes(column.name.as_bytes(), "column name")?;
        self.column_type(column.column_type);
        let flag = |set, bit| if set { bit } else { 0 };
        self.u8(flag(column.nullable, NULLABLE) | flag(column.hidden, HIDDEN));
        self.u16(column.added_in.0);
        self.optional(column.dropped_in, |writer, version| {
            writer.u16(version.0);
            Ok(())
        })?;
        self.value(&column.instant_default)?;
        self.optional(column.default.as_ref(), |writer, default| writer.bytes(default, "default"))?;
        self.bytes(&column.options, "column options")
    }

    fn index(&mut self, index: &IndexDefinition) -> Result<(), DefinitionError> {
        self.u64(index.index_id.0);
        self.bytes(index.name.as_bytes(), "index name")?;
        self.u8(match index.kind {
            IndexKind::Clustered => 0,
            IndexKind::Unique => 1,
            IndexKind::Secondary => 2,
        });
        self.u8(match index.state {
            IndexState::Building => 0,
            IndexState::Ready => 1,
        });
        self.u32(index.root_page.0);
        self.bytes(&index.options, "index options")?;
        self.count(index.parts.len(), "index parts")?;
        index.parts.iter().try_for_each(|part| self.part(part))
    }

    fn part(&mut self, part: &IndexPart) -> Result<(), DefinitionError> {
        self.u16(part.column);
        self.u8(match part.direction {
            Direction::Ascending => 0,
            Direction::Descending => 1,
        });
        self.optional(part.prefix_length, |writer, length| {
            writer.u32(length);
            Ok(())
        })
    }

    fn optional<T>(
        &mut self,
        value: Option<T>,
        write: impl FnOnce(&mut Writer, T) -> Result<(), DefinitionError>,
    ) -> Result<(), DefinitionError> {
        self.u8(value.is_some().into());
        value.map_or(Ok(()), |value| write(self, value))
    }

    fn value(&mut self, value: &Value) -> Result<(), DefinitionError> {
        match value {
            Value::Null => self.u8(0),
            Value::Int(number) => self.tagged(1, *number as u64),
            Value::UInt(number) => self.tagged(2, *number),
            Value::Float(number) => self.tagged(3, number.to_bits().into()),
            Value::Double(number) => self.tagged(4, number.to_bits()),
            Value::Temporal(packed) => self.tagged(5, *packed as u64),
            Value::Decimal(bytes) => {
                self.u8(6);
                self.bytes(bytes, "instant default")?;
            }
            Value::Bytes(bytes) => {
                self.u8(7);
                self.bytes(bytes, "instant default")?;
            }
        }
        Ok(())
    }

    fn tagged(&mut self, tag: u8, number: u64) {
        self.u8(tag);
        self.u64(number);
    }

    fn column_type(&mut self, column_type: ColumnType) {
        let (tag, first, second) = type_fields(column_type);
        self.u8(tag);
        self.u32(first);
        self.u16(second);
    }
}

/// A type's tag and its two parameters, 0 where it has none.
fn type_fields(column_type: ColumnType) -> (u8, u32, u16) {
    match column_type {
        ColumnType::Int(width) => (1, width.bytes() as u32, 0),
        ColumnType::UInt(width) => (2, width.bytes() as u32, 0),
        ColumnType::Decimal(decimal) => (3, decimal.precision().into(), decimal.scale().into()),
        ColumnType::Float => (4, 0, 0),
        ColumnType::Double => (5, 0, 0),
        ColumnType::Bit { bits } => (6, bits.into(), 0),
        ColumnType::Char { max_chars, collation } => (7, max_chars, collation.0),
        ColumnType::Varchar { max_chars, collation } => (8, max_chars, collation.0),
        ColumnType::Text { max_bytes, collation } => (9, max_bytes, collation.0),
        ColumnType::Binary { max_bytes } => (10, max_bytes, 0),
        ColumnType::Varbinary { max_bytes } => (11, max_bytes, 0),
        ColumnType::Blob { max_bytes } => (12, max_bytes, 0),
        ColumnType::Date => (13, 0, 0),
        ColumnType::Time { fsp } => (14, fsp.into(), 0),
        ColumnType::DateTime { fsp } => (15, fsp.into(), 0),
        ColumnType::Timestamp { fsp } => (16, fsp.into(), 0),
        ColumnType::Year => (17, 0, 0),
        ColumnType::Enum { members } => (18, members.into(), 0),
        ColumnType::Set { members } => (19, members.into(), 0),
        ColumnType::Json => (20, 0, 0),
        ColumnType::Geometry => (21, 0, 0),
    }
}

/// The inverse of [`type_fields`].
fn type_from_fields(tag: u8, first: u32, second: u16) -> Option<ColumnType> {
    let collation = CollationId(second);
    let small = u8::try_from(first);
    Some(match tag {
        1 => ColumnType::Int(int_width(first)?),
        2 => ColumnType::UInt(int_width(first)?),
        3 => ColumnType::Decimal(DecimalType::new(small.ok()?, u8::try_from(second).ok()?)?),
        4 => ColumnType::Float,
        5 => ColumnType::Double,
        6 => ColumnType::Bit { bits: small.ok()? },
        7 => ColumnType::Char { max_chars: first, collation },
        8 => ColumnType::Varchar { max_chars: first, collation },
        9 => ColumnType::Text { max_bytes: first, collation },
        10 => ColumnType::Binary { max_bytes: first },
        11 => ColumnType::Varbinary { max_bytes: first },
        12 => ColumnType::Blob { max_bytes: first },
        13 => ColumnType::Date,
        14 => ColumnType::Time { fsp: small.ok()? },
        15 => ColumnType::DateTime { fsp: small.ok()? },
        16 => ColumnType::Timestamp { fsp: small.ok()? },
        17 => ColumnType::Year,
        18 => ColumnType::Enum { members: u16::try_from(first).ok()? },
        19 => ColumnType::Set { members: small.ok()? },
        20 => ColumnType::Json,
        21 => ColumnType::Geometry,
        _ => return None,
    })
}

fn int_width(bytes: u32) -> Option<IntWidth> {
    IntWidth::of_bytes(usize::try_from(bytes).ok()?)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads all of `bytes`, which begin with the format.
    fn whole<T>(bytes: &'a [u8], read: impl FnOnce(&mut Self) -> Decoded<T>) -> Decoded<T> {
        let mut reader = Reader { bytes, at: 0 };
        match reader.u8("format")? {
            FORMAT => {}
            format => return Err(DefinitionError::UnknownFormat(format)),
        }
        let read = read(&mut reader)?;
        if reader.at != bytes.len() {
            return Err(reader.damaged("end"));
        }
        Ok(read)
    }

    fn damaged(&self, what: &'static str) -> DefinitionError {
        DefinitionError::Damaged { at: self.at, what }
    }

    fn take(&mut self, length: usize, what: &'static str) -> Decoded<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let taken = rest.get(..length).ok_or(self.damaged(what))?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Decoded<[u8; N]> {
        let bytes = self.take(N, what)?;
        bytes.try_into().map_err(|_| self.damaged(what))
    }

    fn u8(&mut self, what: &'static str) -> Decoded<u8> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    fn u16(&mut self, what: &'static str) -> Decoded<u16> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    fn u32(&mut self, what: &'static str) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    fn u64(&mut self, what: &'static str) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    fn bytes(&mut self, what: &'static str) -> Decoded<Vec<u8>> {
        let length = self.u32(what)? as usize;
        Ok(self.take(length, what)?.to_vec())
    }

    fn text(&mut self, what: &'static str) -> Decoded<String> {
        String::from_utf8(self.bytes(what)?).map_err(|_| self.damaged(what))
    }

    fn bool(&mut self, what: &'static str) -> Decoded<bool> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.damaged(what)),
        }
    }

    fn optional<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(&mut Self) -> Decoded<T>,
    ) -> Decoded<Option<T>> {
        if self.bool(what)? { read(self).map(Some) } else { Ok(None) }
    }

    /// Reads a list. Memory grows only with the elements that the bytes contain.
    fn list<T>(
        &mut self,
        what: &'static str,
        mut read: impl FnMut(&mut Self) -> Decoded<T>,
    ) -> Decoded<Vec<T>> {
        let count = self.u16(what)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn table(&mut self) -> Decoded<TableDefinition> {
        Ok(TableDefinition {
            table_id: TableId(self.u64("table id")?),
            space: SpaceId(self.u32("space")?),
            schema_version: self.u64("schema version")?,
            row_version: RowVersion(self.u16("row version")?),
            schema_name: self.text("schema name")?,
            name: self.text("table name")?,
            options: self.bytes("table options")?,
            columns: self.list("columns", Reader::column)?,
            indexes: self.list("indexes", Reader::index)?,
        })
    }

    fn column(&mut self) -> Decoded<ColumnDefinition> {
        let name = self.text("column name")?;
        let column_type = self.column_type()?;
        let flags = self.u8("column flags")?;
        if flags & !(NULLABLE | HIDDEN) != 0 {
            return Err(self.damaged("column flags"));
        }
        Ok(ColumnDefinition {
            name,
            column_type,
            nullable: flags & NULLABLE != 0,
            hidden: flags & HIDDEN != 0,
            added_in: RowVersion(self.u16("added in")?),
            dropped_in: self
                .optional("dropped in", |reader| reader.u16("dropped in").map(RowVersion))?,
            instant_default: self.value()?,
            default: self.optional("default", |reader| reader.bytes("default"))?,
            options: self.bytes("column options")?,
        })
    }

    fn column_type(&mut self) -> Decoded<ColumnType> {
        let what = "column type";
        let (tag, first, second) = (self.u8(what)?, self.u32(what)?, self.u16(what)?);
        let column_type = type_from_fields(tag, first, second).ok_or(self.damaged(what))?;
        if type_fields(column_type) != (tag, first, second) {
            return Err(self.damaged(what));
        }
        column_type.check()?;
        Ok(column_type)
    }

    fn value(&mut self) -> Decoded<Value> {
        let what = "instant default";
        Ok(match self.u8(what)? {
            0 => Value::Null,
            1 => Value::Int(self.u64(what)? as i64),
            2 => Value::UInt(self.u64(what)?),
            3 => {
                let bits = u32::try_from(self.u64(what)?).map_err(|_| self.damaged(what))?;
                Value::Float(f32::from_bits(bits))
            }
            4 => Value::Double(f64::from_bits(self.u64(what)?)),
            5 => Value::Temporal(self.u64(what)? as i64),
            6 => Value::Decimal(self.bytes(what)?.into()),
            7 => Value::Bytes(self.bytes(what)?.into()),
            _ => return Err(self.damaged(what)),
        })
    }

    fn index(&mut self) -> Decoded<IndexDefinition> {
        Ok(IndexDefinition {
            index_id: IndexId(self.u64("index id")?),
            name: self.text("index name")?,
            kind: match self.u8("index kind")? {
                0 => IndexKind::Clustered,
                1 => IndexKind::Unique,
                2 => IndexKind::Secondary,
                _ => return Err(self.damaged("index kind")),
            },
            state: match self.u8("index state")? {
                0 => IndexState::Building,
                1 => IndexState::Ready,
                _ => return Err(self.damaged("index state")),
            },
            root_page: PageNo(self.u32("root page")?),
            options: self.bytes("index options")?,
            parts: self.list("index parts", Reader::part)?,
        })
    }

    fn part(&mut self) -> Decoded<IndexPart> {
        Ok(IndexPart {
            column: self.u16("index part")?,
            direction: match self.u8("direction")? {
                0 => Direction::Ascending,
                1 => Direction::Descending,
                _ => return Err(self.damaged("direction")),
            },
            prefix_length: self.optional("prefix length", |reader| reader.u32("prefix length"))?,
        })
    }
}
