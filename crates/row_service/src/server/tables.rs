//! Table versions that the client has (M4 of the crate).

use firn_api::rows::{RowsError, RowsResult, TableRef};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_bytes::ByteBuf;

use crate::codec::damaged_definition;
use crate::message::{HandedTable, TableVersion};

/// The tables that a client has received and not returned.
#[derive(Default)]
pub(super) struct HandedTables(Mutex<FxHashMap<TableVersion, Handed>>);

struct Handed {
    table: TableRef,
    /// The number of replies that had it.
    replies: u64,
}

impl HandedTables {
    /// A table for a reply. `known` is a version of it that the client has.
    ///
    /// # Errors
    /// If the definition has no bytes.
    pub(super) fn hand_out(
        &self,
        table: TableRef,
        known: Option<TableVersion>,
    ) -> RowsResult<HandedTable> {
        let definition = table.definition();
        let version =
            TableVersion { table: definition.table_id, version: definition.schema_version };
        let bytes = match known == Some(version) {
            true => None,
            false => Some(ByteBuf::from(definition.encode().map_err(damaged_definition)?)),
        };
        let mut handed = self.0.lock();
        let entry = handed.entry(version).or_insert(Handed { table: table.clone(), replies: 0 });
        entry.table = table;
        entry.replies += 1;
        Ok(HandedTable { table: version, definition: bytes })
    }

    /// A table named by the client.
    ///
    /// # Errors
    /// [`RowsError::TableChanged`] if the client has returned it, or never had it.
    pub(super) fn table(&self, version: TableVersion) -> RowsResult<TableRef> {
        let handed = self.0.lock();
        let handed = handed.get(&version).ok_or(RowsError::TableChanged(version.table))?;
        Ok(handed.table.clone())
    }

    /// The client returns a table that it has received this often.
    pub(super) fn give_back(&self, version: TableVersion, received: u64) {
        let mut handed = self.0.lock();
        let Some(entry) = handed.get_mut(&version) else { return };
        entry.replies = entry.replies.saturating_sub(received);
        if entry.replies == 0 {
            let gone = handed.remove(&version);
            drop(handed);
            drop(gone);
        }
    }
}
