//! A statement's way to rows: its transaction, the node, and the definitions that it sees.

use firn_api::rows::{DatabaseNode, RowsResult, TableRef, Transaction};
use firn_base::TableId;
use smallvec::SmallVec;

use crate::catalog::SessionCatalog;
use crate::catalog::model::TableModel;
use crate::error::{Result, SqlError};

use super::error::from_rows;

/// The transaction of one execution, with the tables that it has opened.
pub struct DataAccess<'a> {
    /// The transaction in which the statement runs.
    pub transaction: &'a mut dyn Transaction,
    /// The node of the transaction.
    pub node: &'a dyn DatabaseNode,
    /// The definitions that the session sees.
    pub catalog: &'a SessionCatalog,
    /// See [`DatabaseNode::is_remote`].
    pub(crate) is_remote: bool,
    /// Whether locking scans take one row at a time, because changing a row may change the
    /// following ones.
    pub(crate) scans_row_by_row: bool,
    /// Tables that were opened, and whether for writing.
    opened: SmallVec<[(TableId, bool, TableRef); 2]>,
}

impl<'a> DataAccess<'a> {
    pub(crate) fn new(
        transaction: &'a mut dyn Transaction,
        node: &'a dyn DatabaseNode,
        catalog: &'a SessionCatalog,
    ) -> DataAccess<'a> {
        DataAccess {
            transaction,
            node,
            catalog,
            is_remote: node.is_remote(),
            scans_row_by_row: false,
            opened: SmallVec::new(),
        }
    }

    /// The table of a model, if the model, of definitions of `version`, is valid for consistent
    /// reads of this transaction.
    #[inline]
    pub(crate) fn planned_table<'t>(
        &mut self,
        model: &'t TableModel,
        version: u64,
    ) -> Option<&'t TableRef> {
        self.transaction.is_current(&model.table, version).then_some(&model.table)
    }

    /// The table of a model in this transaction, for consistent reads or for writes and locking
    /// reads.
    ///
    /// # Errors
    /// 1412 if the table is no longer the one that the plan was made for; locks that were not
    /// granted.
    pub(crate) fn table(
        &mut self,
        model: &TableModel,
        write: bool,
        version: u64,
    ) -> Result<TableRef> {
        let known =
            |(id, writes, _): &&(TableId, bool, TableRef)| *id == model.id && *writes == write;
        if let Some((_, _, table)) = self.opened.iter().find(known) {
            return Ok(table.clone());
        }
        if !write && let Some(table) = self.planned_table(model, version) {
            return Ok(table.clone());
        }
        let table = match write {
            true => self.table_for_write(model, version),
            false => self.transaction.table_for_read(model.id),
        };
        let table = table.map_err(from_rows)?;
        if table.definition().schema_version != model.table.definition().schema_version {
            let message = "Table definition has changed, please retry transaction";
            return Err(SqlError::new(1412, message));
        }
        self.opened.push((model.id, write, table.clone()));
        Ok(table)
    }

    fn table_for_write(&mut self, model: &TableModel, version: u64) -> RowsResult<TableRef> {
        match self.transaction.lock_current(&model.table, version)? {
            true => Ok(model.table.clone()),
            false => self.transaction.table_for_write(model.id),
        }
    }
}
