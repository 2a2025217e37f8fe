//! What columns and variables are to clients: flags and types.

use firn_format::value::CollationId;

use crate::catalog::model::TableModel;
use crate::types::TypeKind;

use super::scope::ColumnSource;

const NOT_NULL: u16 = 1;
const PRIMARY_KEY: u16 = 2;
const UNIQUE_KEY: u16 = 4;
const MULTIPLE_KEY: u16 = 8;
const BLOB: u16 = 16;
const UNSIGNED: u16 = 32;
const ZEROFILL: u16 = 64;
const BINARY: u16 = 128;
const ENUM: u16 = 256;
const AUTO_INCREMENT: u16 = 512;
const TIMESTAMP: u16 = 1024;
const SET: u16 = 2048;
const NO_DEFAULT: u16 = 4096;
const ON_UPDATE_NOW: u16 = 8192;
const PART_KEY: u16 = 16384;

/// The flags of a table's column, as the protocol has them.
#[must_use]
pub(crate) fn flags(model: &TableModel, source: &ColumnSource) -> u16 {
    let ColumnSource::Relation(_, ordinal) = source else { return 0 };
    let Some(column) = model.by_ordinal(*ordinal) else { return 0 };
    let kind = &column.ty.kind;
    let no_default = matches!(column.default, crate::catalog::model::DefaultValue::None);
    let is_binary = kind.collation().is_none_or(|collation| collation == CollationId::BINARY);
    let is_temporal = matches!(
        kind,
        TypeKind::Timestamp { .. }
            | TypeKind::Date
            | TypeKind::Time { .. }
            | TypeKind::DateTime { .. }
    );
    let simple = [
        (!column.ty.nullable, NOT_NULL),
        (matches!(kind, TypeKind::Text { .. } | TypeKind::Blob { .. } | TypeKind::Json), BLOB),
        (column.unsigned, UNSIGNED),
        (column.zerofill, ZEROFILL),
        (is_binary && (!kind.is_numeric() || is_temporal), BINARY),
        (matches!(kind, TypeKind::Enum { .. }), ENUM),
        (matches!(kind, TypeKind::Set { .. }), SET),
        (column.auto_increment, AUTO_INCREMENT),
        (matches!(kind, TypeKind::Timestamp { .. }), TIMESTAMP),
        (no_default && !column.auto_increment && !column.ty.nullable, NO_DEFAULT),
        (column.on_update_now.is_some(), ON_UPDATE_NOW),
    ];
    let of_column = simple.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum::<u16>();
    of_column | key_flags(model, *ordinal)
}

/// The width that a column's definition shows.
#[must_use]
pub(crate) fn display_width(model: &TableModel, source: &ColumnSource) -> Option<u16> {
    let ColumnSource::Relation(_, ordinal) = source else { return None };
    model.by_ordinal(*ordinal)?.display_width
}

fn key_flags(model: &TableModel, ordinal: u16) -> u16 {
    let mut flags = 0;
    for index in &model.indexes {
        let Some(place) = index.parts.iter().position(|part| part.ordinal == ordinal) else {
            continue;
        };
        flags |= PART_KEY;
        if index.primary {
            flags |= PRIMARY_KEY;
        } else if index.unique && index.parts.len() == 1 {
            flags |= UNIQUE_KEY;
        } else if place == 0 {
            flags |= MULTIPLE_KEY;
        }
    }
    flags
}
