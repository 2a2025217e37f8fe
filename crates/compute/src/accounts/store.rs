//! Accounts in one of the server's own tables.

use std::sync::Arc;

use firn_api::rows::DatabaseNode;
use firn_base::Cts;

use crate::system_table::SystemTable;

use super::account::AccountName;
use super::book::{AccountStore, StoreError};

const TABLE: &str = "firn_accounts";

pub struct RowsAccountStore {
    table: SystemTable,
}

impl RowsAccountStore {
    /// The accounts of a database node. Blocks.
    ///
    /// # Errors
    /// If the table cannot be looked up, or not be made where the node writes.
    pub fn open(node: Arc<dyn DatabaseNode>) -> Result<RowsAccountStore, StoreError> {
        Ok(RowsAccountStore { table: SystemTable::open(node, TABLE)? })
    }
}

impl AccountStore for RowsAccountStore {
    fn load(&self, since: Cts) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(self.table.load(since)?.into_iter().map(|(_, document)| document).collect())
    }

    fn store(&self, changes: &[(AccountName, Option<Vec<u8>>)]) -> Result<Cts, StoreError> {
        let key = |name: &AccountName| [name.user.as_bytes(), b"\0", name.host.as_bytes()].concat();
        let changes: Vec<_> =
            changes.iter().map(|(name, document)| (key(name), document.clone())).collect();
        Ok(self.table.store(&changes)?)
    }
}
