//! Columns of results as clients see them in the protocol.

use firn_format::value::CollationId;
use firn_sql::catalog::virtual_table_metadata::{ReportedColumn, ReportedType};
use firn_sql::collation;
use firn_sql::expression::ExpressionKind;
use firn_sql::plan::OutputColumn;
use firn_sql::types::{Display, SqlType, TypeKind};
use firn_wire::{ColumnDefinition, ColumnFlags, ColumnType, EncodedColumns};

/// `utf8mb3_general_ci`, the collation of the dictionary's texts.
const DICTIONARY_COLLATION: CollationId = CollationId(33);

/// The definitions of a result's columns, as packets. `results` is the collation that clients see
/// for texts, if texts are sent in another character set than they are stored in.
#[must_use]
pub fn encode(columns: &[OutputColumn], results: Option<CollationId>) -> EncodedColumns {
    let definitions: Vec<ColumnDefinition> =
        columns.iter().map(|column| definition(column, results)).collect();
    EncodedColumns::new(&definitions)
}

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
        if let Some(reported) = &origin.reported {
            tell(reported, results, &mut definition);
        }
    }
    definition
}

/// Replaces the type's metadata of a column by MySQL's own.
fn tell(reported: &ReportedType, results: Option<CollationId>, definition: &mut ColumnDefinition) {
    let Some(column_type) = ColumnType::from_code(reported.type_code) else { return };
    definition.column_type = column_type;
    definition.flags = ColumnFlags::from_bits_truncate(reported.flags);
    definition.decimals = reported.decimals;
    let collation = match reported.is_text {
        true => results.unwrap_or(DICTIONARY_COLLATION),
        false => CollationId::BINARY,
    };
    let bytes = collation::get(collation).charset.max_character_bytes();
    let length_bytes = u64::from(reported.length) * u64::from(bytes);
    definition.collation = collation.0;
    definition.length_bytes = length_bytes.min(u32::MAX.into()) as u32;
}

/// The columns of a `SHOW` statement, described as in MySQL.
#[must_use]
pub fn encode_reported(
    columns: &[OutputColumn],
    reported: &[ReportedColumn],
    results: Option<CollationId>,
) -> EncodedColumns {
    if columns.len() > reported.len() {
        return encode(columns, results);
    }
    let definitions: Vec<ColumnDefinition> = columns
        .iter()
        .zip(reported)
        .map(|(column, reported)| {
            let mut definition = definition(column, results);
            definition.schema = reported.schema.to_owned();
            definition.table = reported.table.to_owned();
            definition.original_table = reported.original_table.to_owned();
            definition.original_name = reported.original_name.unwrap_or(&column.name).to_owned();
            tell(&reported.ty, results, &mut definition);
            definition
        })
        .collect();
    EncodedColumns::new(&definitions)
}

/// A column with that name and type that belongs to no table.
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

fn is_whole(ty: &SqlType) -> bool {
    matches!(ty.kind, TypeKind::Integer { .. } | TypeKind::Year)
}

/// Whether bytes are told of like a column's, whatever keeps them: those that are written, and
/// results of operations on bits.
fn is_of_bytes(column: &OutputColumn, display: &Display) -> bool {
    let is_written = matches!(column.value.kind, ExpressionKind::Literal(_));
    column.value.ty.kind.is_binary() && (is_written || display.unsigned)
}

/// The columns of a prepared statement: a column that will come from a temporary table is still an
/// expression.
#[must_use]
pub fn encode_prepared(columns: &[OutputColumn], results: Option<CollationId>) -> EncodedColumns {
    let definitions: Vec<ColumnDefinition> = columns
        .iter()
        .map(|column| match (&column.origin, column.display) {
            // Only expressions that a temporary table will keep have such types.
            (None, Some(display)) if is_whole(&column.value.ty) => {
                let display = Display { type_code: None, ..display.as_expression() };
                let display = Some(display);
                definition(&OutputColumn { display, ..column.clone() }, results)
            }
            (None, Some(display)) if !is_of_bytes(column, &display) => {
                let display = Some(display.as_expression());
                definition(&OutputColumn { display, ..column.clone() }, results)
            }
            _ => definition(column, results),
        })
        .collect();
    EncodedColumns::new(&definitions)
}

/// The longest value of a table's column, in bytes, as clients are told.
#[must_use]
pub(crate) fn length_bytes(ty: &SqlType) -> u32 {
    of_type("", ty, &Display::of_column(ty), None).length_bytes
}

#[must_use]
pub fn parameter(ty: &SqlType, results: Option<CollationId>) -> ColumnDefinition {
    of_type("?", ty, &Display::of_expression(ty), results)
}
