//! Columns of results as the wire tells them to clients.

use firn_format::value::CollationId;
use firn_sql::plan::OutputColumn;
use firn_sql::types::{Display, SqlType, TypeKind};
use firn_wire::{ColumnDefinition, ColumnFlags, ColumnType, EncodedColumns};

/// The definitions of a result's columns, as packets. `results` is the collation that clients are
/// told of texts, if they are sent in another character set than they are stored in.
#[must_use]
pub fn encode(columns: &[OutputColumn], results: Option<CollationId>) -> EncodedColumns {
    let definitions: Vec<ColumnDefinition> =
        columns.iter().map(|column| definition(column, results)).collect();
    EncodedColumns::new(&definitions)
}

/// A result's column.
#[must_use]
pub fn definition(column: &OutputColumn, results: Option<CollationId>) -> ColumnDefinition {
    let ty = &column.value.ty;
    let display = column.display.unwrap_or_else(|| Display::of_expression(ty));
    let mut definition = of_type(&column.name, ty, &display, results);
    if let Some(origin) = &column.origin {
        definition.schema = origin.schema.to_string();
        definition.table = origin.table.to_string();
        definition.original_table = origin.original_table.to_string();
        definition.original_name = origin.original_name.to_string();
        definition.flags |= ColumnFlags::from_bits_truncate(origin.flags);
    }
    definition
}

/// A column of that name and type that belongs to no table.
fn of_type(
    name: &str,
    ty: &SqlType,
    display: &Display,
    results: Option<CollationId>,
) -> ColumnDefinition {
    let metadata = ty.shown_as(display, results);
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

/// The columns of a statement that is prepared: what will come from a temporary table is an
/// expression yet.
#[must_use]
pub fn encode_prepared(columns: &[OutputColumn], results: Option<CollationId>) -> EncodedColumns {
    let definitions: Vec<ColumnDefinition> = columns
        .iter()
        .map(|column| match (&column.origin, column.display) {
            (None, Some(display)) => {
                let display = Some(display.as_expression());
                definition(&OutputColumn { display, ..column.clone() }, results)
            }
            _ => definition(column, results),
        })
        .collect();
    EncodedColumns::new(&definitions)
}

/// The definition of a parameter.
#[must_use]
pub fn parameter(ty: &SqlType, results: Option<CollationId>) -> ColumnDefinition {
    of_type("?", ty, &Display::of_expression(ty), results)
}
