//! Column definitions, and their encoded form.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::flags::ColumnFlags;
use crate::packet::{HEADER_LENGTH, MAX_PAYLOAD_LENGTH, PayloadWriter};
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
    /// Further properties.
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

/// Appends a definition's payload.
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

    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.kinds.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.kinds.is_empty()
    }

    /// The number of columns and their definitions, as packets that are numbered from 1.
    pub(crate) fn packets(&self) -> &[u8] {
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

fn kind(column: &ColumnDefinition) -> ColumnKind {
    let zerofill = column.flags.contains(ColumnFlags::ZEROFILL);
    ColumnKind {
        column_type: column.column_type,
        zerofill_width: if zerofill { column.length_bytes.min(255) as u8 } else { 0 },
        decimals: column.decimals,
    }
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
