//! How clients see table columns: the flags that do not follow from their types.

use firn_sql_catalog::model::TableModel;
use firn_sql_types::TypeKind;
use firn_sql_types::metadata::flag;

use super::scope::ColumnSource;

/// The flags of a table's column as in the protocol, without those that follow from its type.
#[must_use]
pub(crate) fn flags(model: &TableModel, source: &ColumnSource) -> u16 {
    let ColumnSource::Relation(_, ordinal) = source else { return 0 };
    let Some(column) = model.by_ordinal(*ordinal) else { return 0 };
    let no_default = matches!(column.default, firn_sql_catalog::model::DefaultValue::None);
    let is_set_by_itself = column.on_update_now.is_some();
    let is_timestamp = matches!(column.ty.kind, TypeKind::Timestamp { .. });
    let simple = [
        (column.auto_increment, flag::AUTO_INCREMENT),
        (is_timestamp && is_set_by_itself, flag::TIMESTAMP),
        (no_default && !column.auto_increment && !column.ty.nullable, flag::NO_DEFAULT_VALUE),
        (is_set_by_itself, flag::ON_UPDATE_NOW),
    ];
    let of_column = simple.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum::<u16>();
    of_column | key_flags(model, *ordinal)
}

fn key_flags(model: &TableModel, ordinal: u16) -> u16 {
    let mut flags = 0;
    for index in &model.indexes {
        let Some(place) = index.parts.iter().position(|part| part.ordinal == ordinal) else {
            continue;
        };
        flags |= flag::PART_KEY;
        if index.primary {
            flags |= flag::PRIMARY_KEY;
        } else if index.unique && index.parts.len() == 1 {
            flags |= flag::UNIQUE_KEY;
        } else if place == 0 {
            flags |= flag::MULTIPLE_KEY;
        }
    }
    flags
}
