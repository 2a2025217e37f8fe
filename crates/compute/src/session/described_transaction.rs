//! A transaction that begins at a node that follows, and goes on at the node that writes.
//!
//! ```text
//!   session over the follower      session over the writer
//!   BEGIN, SELECT …
//!   describe ── bytes ───────────► lock the definitions of its tables ─► unchanged? ─► begin there
//!   ROLLBACK                       UPDATE …, COMMIT
//! ```
//!
//! Locks on definitions are those of one node: a table may have changed since the follower's
//! transaction has read it. Then the transaction cannot go on (1412), because the node that writes
//! could not tell any more whether what was read has changed.
//!
//! `docs/formats/described-transactions.md` describes the bytes.

use firn_api::rows::{LockDuration, MetadataLock, RowsError};
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::error::from_rows;

use super::SqlSession;
use super::definition_locks::DefinitionLocks;
use super::runner::StatementRunner;
use super::transaction::{MovingTransaction, UsedTable};

const VERSION: u8 = 1;

impl SqlSession {
    /// See [`firn_wire::Session::describe_transaction`].
    pub(crate) fn describe_open_transaction(&mut self) -> Option<Vec<u8>> {
        // Only a follower's session notes which tables it uses.
        if self.runner.instance.freshness.is_none() || self.is_bound() {
            return None;
        }
        encode(&self.runner.transactions.describe()?)
    }

    /// See [`firn_wire::Session::take_up_transaction`].
    ///
    /// # Errors
    /// 1105 for bytes that are no description, or if a transaction is open; 1412 if the snapshot is
    /// too old or a table has changed since; 1205 if a definition could not be locked.
    pub(crate) fn take_up_described(&mut self, described: &[u8]) -> Result<()> {
        let runner = &mut self.runner;
        if runner.transactions.open.is_some() || runner.transactions.xa.is_some() {
            return Err(refusal("the session has another one, which must end first"));
        }
        let described = decode(described)?;
        let taken_up = lock_tables(runner, &described.tables).and_then(|()| {
            let StatementRunner { transactions, instance, settings, facts, .. } = &mut *runner;
            transactions.take_up(&*instance.node, described, settings, facts)
        });
        if taken_up.is_err() {
            runner.transactions.metadata.release_transaction();
        }
        taken_up
    }
}

/// Locks the definitions of tables, and checks that they are those that were used.
fn lock_tables(runner: &mut StatementRunner, tables: &[UsedTable]) -> Result<()> {
    let locks = DefinitionLocks::of(runner);
    for used in tables {
        locks.acquire(used.table, MetadataLock::Read, LockDuration::Transaction)?;
    }
    let node = &runner.instance.node;
    for UsedTable { table, version } in tables {
        let now = node.table(*table).map_err(from_rows)?;
        if now.is_none_or(|now| now.definition().schema_version != *version) {
            return Err(from_rows(RowsError::TableChanged(*table)));
        }
    }
    Ok(())
}

fn refusal(why: &str) -> SqlError {
    let message = format!("The transaction cannot go on at another server: {why}; begin it again");
    SqlError::new(1105, message)
}

/// `None` if memory does not hold it.
fn encode(described: &MovingTransaction) -> Option<Vec<u8>> {
    postcard::to_extend(described, vec![VERSION]).ok()
}

/// The description in `bytes`, which are untrusted.
fn decode(bytes: &[u8]) -> Result<MovingTransaction> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => match postcard::take_from_bytes(rest) {
            Ok((described, [])) => Ok(described),
            _ => Err(refusal("its description is damaged")),
        },
        Some((version, _)) => Err(refusal(&format!(
            "its description has version {version}, and this server reads version {VERSION}"
        ))),
        None => Err(refusal("its description is empty")),
    }
}

#[cfg(test)]
mod tests;
