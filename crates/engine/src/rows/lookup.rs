//! What every node answers of its definitions, whether it writes them or follows the log.

use std::sync::Arc;

use firn_api::rows::{Estimate, RowsError, RowsResult, TableRef};
use firn_base::TableId;
use firn_format::key::KeyRange;

use crate::dictionary::DictionaryReader;
use crate::table::{SecondaryIndex, Table};

use super::engine_table;

/// The tables of a schema, sorted by name; `None` if there is no such schema.
pub(super) fn tables_of(dictionary: &DictionaryReader, schema: &str) -> Option<Vec<TableRef>> {
    let tables = dictionary.tables_of(schema)?;
    Some(tables.into_iter().map(|table| table as TableRef).collect())
}

/// A table by its name. Waits while a change of it commits.
pub(super) fn table_named(
    dictionary: &DictionaryReader,
    schema: &str,
    name: &str,
) -> Option<TableRef> {
    dictionary.table_named(schema, name).map(|table| table as TableRef)
}

/// A table by its id. Waits while a change of it commits.
pub(super) fn table(dictionary: &DictionaryReader, table: TableId) -> Option<TableRef> {
    dictionary.table(table).map(|table| table as TableRef)
}

/// The secondary index with this number in the definition.
pub(super) fn secondary(table: &Table, number: usize) -> RowsResult<&SecondaryIndex> {
    let found = table.secondary().iter().find(|index| index.number == number);
    found.ok_or_else(|| {
        let name = table.definition().indexes.get(number).map_or("?", |index| index.name.as_str());
        RowsError::NoSuchIndex(name.into())
    })
}

/// How many entries a range of an index has; `None` as index is the clustered one. Blocks for I/O.
pub(super) fn estimate(
    dictionary: &DictionaryReader,
    table: &TableRef,
    index: Option<usize>,
    range: &KeyRange,
) -> RowsResult<Estimate> {
    let table = engine_table(table)?;
    let tree = match index {
        None => table.clustered(),
        Some(number) => secondary(table, number)?.id,
    };
    let forest = dictionary.versions().forest();
    Ok(forest.tree(tree).estimate(&range.start, range.end.as_deref())?)
}

/// The `AUTO_INCREMENT` value that would be taken next, as far as this node knows. Blocks for I/O.
pub(super) fn next_auto_increment(table: &TableRef) -> RowsResult<u64> {
    Ok(engine_table(table)?.sequences().auto_increment.peek()?)
}

/// The engine's own of a shared reference.
pub(super) fn shared_engine_table(table: &TableRef) -> RowsResult<Arc<Table>> {
    let any: Arc<dyn std::any::Any + Send + Sync> = Arc::clone(table) as _;
    any.downcast::<Table>().map_err(|_| super::foreign_table())
}
