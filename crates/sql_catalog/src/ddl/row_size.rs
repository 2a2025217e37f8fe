//! The maximal length of a table's rows: what MySQL and InnoDB refuse when a table is defined.
//!
//! Firn's rows have room for everything that InnoDB's rows can hold (`docs/formats/row.md`).
//! InnoDB's limits apply all the same, so that a definition that is accepted here is accepted
//! there.

use firn_sql_types::TypeKind;
use firn_sql_types::error::{Result, SqlError};

use super::super::model::ColumnModel;
use super::super::type_text;
use super::DdlContext;
use super::column;
use super::table_builder::TableDraft;

/// The longest row, without its `TEXT`s and `BLOB`s.
const MAX_ROW_BYTES: u64 = 65_535;
/// Transaction, undo pointer.
const SYSTEM_COLUMN_BYTES: u64 = 6 + 7;
/// The row number in a table without a primary key.
const ROW_ID_BYTES: u64 = 6;

/// How much of a page a row may take, and how much of a long column stays in it.
struct PageBounds {
    /// A row of this length is refused.
    max_bytes: u64,
    /// Bytes before the row's columns.
    header_bytes: u64,
    /// The part of a value that stays if the value is stored elsewhere.
    kept_bytes: u64,
    /// The length of such a value.
    kept_length_bytes: u64,
    /// The size of the kept part in the message.
    prefix_bytes: u64,
}

/// Checks a table's rows against MySQL's limit for all engines.
///
/// # Errors
/// 1118.
pub(super) fn check_declared(draft: &TableDraft) -> Result<()> {
    let nulls = draft.columns.iter().filter(|column| column.ty.nullable).count() as u64;
    let bytes: u64 = draft.columns.iter().map(column::row_bytes).sum();
    if bytes + nulls.div_ceil(8) > MAX_ROW_BYTES {
        return Err(too_large(MAX_ROW_BYTES));
    }
    Ok(())
}

/// Checks that a new table's rows fit a page of InnoDB's. Without `innodb_strict_mode` this is a
/// warning.
///
/// # Errors
/// 1118.
pub(super) fn check_new(context: &DdlContext<'_>, draft: &TableDraft) -> Result<()> {
    let bounds = bounds(draft);
    if stored_bytes(draft, &bounds) < bounds.max_bytes {
        return Ok(());
    }
    let error = SqlError::row_too_large(bounds.max_bytes, bounds.prefix_bytes);
    if context.innodb_strict_mode {
        return Err(error);
    }
    context.evaluation.warn(139, || error.message);
    Ok(())
}

/// Checks that an altered table's rows fit a page of InnoDB's, unless they did not fit before.
///
/// # Errors
/// 1118.
pub(super) fn check_altered(
    context: &DdlContext<'_>,
    before: &TableDraft,
    after: &TableDraft,
) -> Result<()> {
    let bounds = bounds(after);
    let bytes = stored_bytes(after, &bounds);
    let has_grown = || bytes > stored_bytes(before, &bounds);
    if context.innodb_strict_mode && bytes >= bounds.max_bytes && has_grown() {
        return Err(too_large(bounds.max_bytes));
    }
    Ok(())
}

fn too_large(max_bytes: u64) -> SqlError {
    let message = format!(
        "Row size too large. The maximum row size for the used table type, not counting BLOBs, is \
         {max_bytes}. This includes storage overhead, check the manual. You have to change some columns \
         to TEXT or BLOBs"
    );
    SqlError::new(1118, message)
}

fn bounds(draft: &TableDraft) -> PageBounds {
    let columns = draft.columns.iter().filter(|column| is_stored(column));
    let nulls = columns.clone().filter(|column| column.ty.nullable).count() as u64;
    let header_bytes = 5 + nulls.div_ceil(8);
    match &*draft.row_format {
        "COMPACT" => PageBounds {
            max_bytes: 8126,
            header_bytes,
            kept_bytes: 788,
            kept_length_bytes: 2,
            prefix_bytes: 768,
        },
        "REDUNDANT" => PageBounds {
            max_bytes: 8123,
            header_bytes: 6 + 2 * columns.count() as u64,
            kept_bytes: 788,
            kept_length_bytes: 0,
            prefix_bytes: 768,
        },
        _ => PageBounds {
            max_bytes: 8126,
            header_bytes,
            kept_bytes: 40,
            kept_length_bytes: 1,
            prefix_bytes: 0,
        },
    }
}

/// The longest row of the table in InnoDB.
fn stored_bytes(draft: &TableDraft, bounds: &PageBounds) -> u64 {
    let row_id = if draft.primary_key().is_none() { ROW_ID_BYTES } else { 0 };
    let columns = draft.columns.iter().filter(|column| is_stored(column));
    let bytes = columns.map(|column| column_bytes(column, bounds));
    bounds.header_bytes + SYSTEM_COLUMN_BYTES + row_id + bytes.sum::<u64>()
}

/// InnoDB does not store virtual columns' values in its rows.
fn is_stored(column: &ColumnModel) -> bool {
    column.generated.as_ref().is_none_or(|generated| generated.stored)
}

fn column_bytes(column: &ColumnModel, bounds: &PageBounds) -> u64 {
    let max_bytes = match &column.ty.kind {
        TypeKind::Char { max_chars, collation } => {
            let charset = type_text::charset(*collation);
            let bytes = u64::from(*max_chars) * u64::from(charset.max_character_bytes());
            let has_one_length = charset.max_character_bytes() as usize == charset.unit_bytes();
            if has_one_length {
                return bytes;
            }
            bytes
        }
        TypeKind::Varchar { max_chars, collation } => {
            u64::from(*max_chars) * u64::from(type_text::charset(*collation).max_character_bytes())
        }
        TypeKind::Varbinary { max_bytes } => (*max_bytes).into(),
        TypeKind::Text { .. } | TypeKind::Blob { .. } | TypeKind::Json | TypeKind::Geometry => {
            u64::MAX
        }
        _ => return column::row_bytes(column),
    };
    match max_bytes {
        bytes if bytes >= bounds.kept_bytes => bounds.kept_bytes + bounds.kept_length_bytes,
        bytes if bounds.kept_length_bytes == 0 => bytes,
        bytes => bytes + if bytes < 256 { 1 } else { 2 },
    }
}
