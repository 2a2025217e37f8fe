//! Column definitions, and their encoded form.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::flags::ColumnFlags;
use crate::packet::{HEADER_LENGTH, MAX_PAYLOAD_LENGTH, Malformed, PayloadReader, PayloadWriter};
use crate::value::ColumnType;

/// A column's description for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// The schema of the table; empty for an expression.
    pub schema: String,
    /// The table's name or alias in the statement.
    pub table: String,
    /// The table's own name.
    pub original_table: String,
    /// The column's name or alias in the statement.
    pub name: String,
    /// The column's own name.
    pub original_name: String,
    /// The collation's number; 63 for types other than text.
    pub collation: u16,
    /// The longest value, in bytes as text.
    pub length_bytes: u32,
    pub column_type: ColumnType,
    pub flags: ColumnFlags,
    /// Digits after the point; for times the fractional digits; 31 for a floating-point number
    /// without a fixed number of them.
    pub decimals: u8,
}

impl ColumnDefinition {
    /// A column of that name and type that belongs to no table.
    #[must_use]
    pub fn new(name: &str, column_type: ColumnType) -> ColumnDefinition {
        ColumnDefinition {
            schema: String::new(),
            table: String::new(),
            original_table: String::new(),
            name: name.to_owned(),
            original_name: String::new(),
            collation: 63,
            length_bytes: 0,
            column_type,
            flags: ColumnFlags::empty(),
            decimals: 0,
        }
    }
}

/// The properties of a column that encoding a row needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnKind {
    pub(super) column_type: ColumnType,
    /// The least number of characters with which a `ZEROFILL` number is shown.
    pub(super) zerofill_width: u8,
    /// Digits after the point of a floating-point number; 31 when they vary.
    pub(super) decimals: u8,
}

pub(crate) fn put_definition(buffer: &mut Vec<u8>, column: &ColumnDefinition) {
    buffer.put_length_encoded_bytes(b"def");
    for name in
        [&column.schema, &column.table, &column.original_table, &column.name, &column.original_name]
    {
        buffer.put_length_encoded_bytes(name.as_bytes());
    }
    buffer.put_u8(0x0c);
    buffer.put_u16(column.collation);
    buffer.put_u32(column.length_bytes);
    buffer.put_u8(column.column_type as u8);
    buffer.put_u16(column.flags.bits());
    buffer.put_u8(column.decimals);
    buffer.put_u16(0);
}

/// A result set's column definitions as packets, encoded once and copied for each reply. A cached
/// plan keeps one of these; clones share it.
///
/// ```text
///   packets:  number of columns | definition | definition | …     numbered from 1
///                               ^ definitions
/// ```
#[derive(Debug, Clone)]
pub struct EncodedColumns {
    inner: Arc<Inner>,
}

/// The properties of each column that encoding a row needs.
pub(super) type ColumnKinds = SmallVec<[ColumnKind; 8]>;

#[derive(Debug)]
struct Inner {
    packets: Vec<u8>,
    definitions: usize,
    kinds: ColumnKinds,
}

impl EncodedColumns {
    /// Encodes `columns`.
    ///
    /// # Panics
    /// If a definition does not fit into one packet of 16 MiB; names are far shorter.
    #[must_use]
    pub fn new(columns: &[ColumnDefinition]) -> EncodedColumns {
        let mut packets = Vec::with_capacity(8 + 64 * columns.len());
        let mut number = 1;
        put_packet(&mut packets, &mut number, |buffer| {
            buffer.put_length_encoded_integer(columns.len() as u64);
        });
        let definitions = packets.len();
        for column in columns {
            put_packet(&mut packets, &mut number, |buffer| put_definition(buffer, column));
        }
        let kinds = columns.iter().map(kind).collect();
        EncodedColumns { inner: Arc::new(Inner { packets, definitions, kinds }) }
    }

    /// The columns whose [`EncodedColumns::packets`] these are.
    ///
    /// # Errors
    /// If they are not packets of columns.
    pub fn from_packets(packets: Vec<u8>) -> Result<EncodedColumns, NotColumns> {
        let (kinds, definitions) = decode_packets(&packets)?;
        Ok(EncodedColumns { inner: Arc::new(Inner { packets, definitions, kinds }) })
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.kinds.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.kinds.is_empty()
    }

    /// The number of columns and their definitions, as packets that are numbered from 1.
    #[must_use]
    pub fn packets(&self) -> &[u8] {
        &self.inner.packets
    }

    /// The definitions alone, as packets that are numbered from 2.
    pub(crate) fn definitions(&self) -> &[u8] {
        &self.inner.packets[self.inner.definitions..]
    }

    pub(super) fn kinds(&self) -> &ColumnKinds {
        &self.inner.kinds
    }
}

/// The bytes are not packets of column definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not the packets of column definitions")]
pub struct NotColumns;

impl From<Malformed> for NotColumns {
    fn from(_: Malformed) -> NotColumns {
        NotColumns
    }
}

/// The kinds of the columns, and where their definitions begin.
fn decode_packets(packets: &[u8]) -> Result<(ColumnKinds, usize), NotColumns> {
    let mut rest = packets;
    let count = PayloadReader::new(take_packet(&mut rest)?).length_encoded_integer()?;
    let definitions = packets.len() - rest.len();
    let mut kinds = ColumnKinds::new();
    while !rest.is_empty() {
        kinds.push(decode_kind(take_packet(&mut rest)?)?);
    }
    match kinds.len() as u64 == count {
        true => Ok((kinds, definitions)),
        false => Err(NotColumns),
    }
}

fn take_packet<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], NotColumns> {
    let ([a, b, c, _], after) = rest.split_first_chunk::<HEADER_LENGTH>().ok_or(NotColumns)?;
    let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
    let (payload, after) = after.split_at_checked(length).ok_or(NotColumns)?;
    *rest = after;
    Ok(payload)
}

/// Reads what [`put_definition`] has put.
fn decode_kind(payload: &[u8]) -> Result<ColumnKind, NotColumns> {
    let mut reader = PayloadReader::new(payload);
    for _ in 0..6 {
        reader.length_encoded_bytes()?;
    }
    reader.take(3)?;
    let length_bytes = reader.u32()?;
    let column_type = ColumnType::from_code(reader.u8()?).ok_or(NotColumns)?;
    let flags = ColumnFlags::from_bits_truncate(reader.u16()?);
    let decimals = reader.u8()?;
    reader.take(2)?;
    Ok(kind_of(column_type, flags, length_bytes, decimals))
}

fn kind(column: &ColumnDefinition) -> ColumnKind {
    kind_of(column.column_type, column.flags, column.length_bytes, column.decimals)
}

fn kind_of(
    column_type: ColumnType,
    flags: ColumnFlags,
    length_bytes: u32,
    decimals: u8,
) -> ColumnKind {
    let zerofill = flags.contains(ColumnFlags::ZEROFILL);
    let zerofill_width = if zerofill { length_bytes.min(255) as u8 } else { 0 };
    ColumnKind { column_type, zerofill_width, decimals }
}

fn put_packet(packets: &mut Vec<u8>, number: &mut u8, put: impl FnOnce(&mut Vec<u8>)) {
    let at = packets.len();
    packets.extend_from_slice(&[0; HEADER_LENGTH]);
    put(packets);
    let length = packets.len() - at - HEADER_LENGTH;
    assert!(length < MAX_PAYLOAD_LENGTH, "a column definition fits into one packet");
    let [a, b, c, ..] = (length as u32).to_le_bytes();
    packets[at..at + HEADER_LENGTH].copy_from_slice(&[a, b, c, *number]);
    *number = number.wrapping_add(1);
}
