//! `Duplicate entry '1-x' for key 't.PRIMARY'`

use firn_api::rows::RowsError;
use firn_base::IndexId;
use firn_format::definition::IndexKind;

use crate::catalog::model::TableModel;
use crate::error::{ErrorKind, SqlError};
use crate::types::{Datum, EvaluationContext};

use super::super::error::from_rows;
use super::super::values;

/// Why the node refused to write a row.
pub(super) enum Refusal {
    /// A unique index already has the row's values.
    Duplicate {
        /// The index's number in the definition; `None` for the clustered one.
        index: Option<usize>,
        /// The key, as the index has it.
        key: Box<[u8]>,
        /// The error for the client.
        error: SqlError,
    },
    Other(SqlError),
}

impl From<Refusal> for SqlError {
    fn from(refusal: Refusal) -> SqlError {
        match refusal {
            Refusal::Duplicate { error, .. } | Refusal::Other(error) => error,
        }
    }
}

/// The client's error for a refused write. `value` returns the row's values by ordinal.
pub(super) fn refusal(
    error: RowsError,
    model: &TableModel,
    value: &mut dyn FnMut(u16) -> Datum,
    context: &EvaluationContext,
) -> Refusal {
    let RowsError::DuplicateKey { index, key } = error else {
        return Refusal::Other(from_rows(error));
    };
    let (number, name, entry) = describe(index, model, value, context);
    let message = format!("Duplicate entry '{entry}' for key '{}.{name}'", model.name);
    Refusal::Duplicate {
        index: number,
        key,
        error: SqlError::of_kind(ErrorKind::DuplicateKey, 1062, message),
    }
}

/// Number, name and values of an index.
fn describe(
    id: IndexId,
    model: &TableModel,
    value: &mut dyn FnMut(u16) -> Datum,
    context: &EvaluationContext,
) -> (Option<usize>, String, String) {
    let definition = model.table.definition();
    let number = definition.indexes.iter().position(|index| index.index_id == id);
    let Some(index) = number.map(|number| &definition.indexes[number]) else {
        return (None, String::new(), String::new());
    };
    let parts = index.parts.iter().map(|part| {
        let text = part_text(part.column, model, value, context);
        match part.prefix_length {
            Some(characters) => text.chars().take(characters as usize).collect(),
            None => text,
        }
    });
    let entry = parts.collect::<Vec<String>>().join("-");
    let number = number.filter(|_| index.kind != IndexKind::Clustered);
    (number, index.name.clone(), entry)
}

fn part_text(
    ordinal: u16,
    model: &TableModel,
    value: &mut dyn FnMut(u16) -> Datum,
    context: &EvaluationContext,
) -> String {
    let Some(column) = model.by_ordinal(ordinal) else { return String::new() };
    match value(ordinal) {
        Datum::Null => "NULL".to_owned(),
        datum => {
            let text = values::text(&datum, &column.ty, context).unwrap_or_default();
            text.to_str_lossy().into_owned()
        }
    }
}
