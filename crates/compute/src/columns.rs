//! Columns of results as the wire tells them to clients.

use firn_format::value::CollationId;
use firn_sql::collation::Charset;
use firn_sql::plan::OutputColumn;
use firn_sql::types::{SqlType, TypeKind};
use firn_wire::{ColumnDefinition, ColumnFlags, ColumnType, EncodedColumns};

/// The definitions of a result's columns, as packets.
#[must_use]
pub fn encode(columns: &[OutputColumn], results: Option<Charset>) -> EncodedColumns {
    let definitions: Vec<ColumnDefinition> =
        columns.iter().map(|column| definition(column, results)).collect();
    EncodedColumns::new(&definitions)
}

/// A result's column.
#[must_use]
pub fn definition(column: &OutputColumn, results: Option<Charset>) -> ColumnDefinition {
    let mut definition = of_type(&column.name, &column.value.ty, results);
    if let Some(origin) = &column.origin {
        definition.schema = origin.schema.to_string();
        definition.table = origin.table.to_string();
        definition.original_table = origin.original_table.to_string();
        definition.original_name = origin.original_name.to_string();
        definition.flags |= ColumnFlags::from_bits_truncate(origin.flags);
        definition.length_bytes = origin.display_width.map_or(definition.length_bytes, u32::from);
    }
    definition
}

/// A column of that name and type that belongs to no table.
#[must_use]
pub fn of_type(name: &str, ty: &SqlType, results: Option<Charset>) -> ColumnDefinition {
    let collation = match results {
        Some(charset) => charset.default_collation(),
        None => ty.collation().unwrap_or(CollationId::BINARY),
    };
    let metadata = ty.metadata(collation);
    let column_type = match &ty.kind {
        // Clients know members of these as strings; the flag says what they are.
        TypeKind::Enum { .. } | TypeKind::Set { .. } => ColumnType::String,
        _ => ColumnType::from_code(metadata.type_code).unwrap_or(ColumnType::VarString),
    };
    ColumnDefinition {
        collation: metadata.collation.0,
        length_bytes: metadata.length_bytes,
        flags: ColumnFlags::from_bits_truncate(metadata.flags),
        decimals: metadata.decimals,
        ..ColumnDefinition::new(name, column_type)
    }
}

/// The definition of a parameter, of which nothing is known before it is given.
#[must_use]
pub fn parameter() -> ColumnDefinition {
    ColumnDefinition { collation: 63, ..ColumnDefinition::new("?", ColumnType::VarString) }
}
