//! A summary at a remote node: its groups arrive in as many replies as the node needs.

use std::sync::Arc;

use firn_api::rows::{Grouping, RowsResult, Summaries, Summed, Transaction};

use crate::message::{Answer, Handle, Message, TransactionCall};

use super::connection::{Connection, unexpected};
use super::transaction::remote_transaction;

/// How many values and numbers each group has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    values: usize,
    numbers: usize,
}

impl Shape {
    pub(super) fn of(grouping: &Grouping) -> Shape {
        Shape { values: grouping.groups.len(), numbers: grouping.summands.len() }
    }

    /// The groups in an answer, which is untrusted.
    ///
    /// # Errors
    /// The answer has another kind, or groups of another shape.
    pub(super) fn summed_in(self, answer: Answer) -> RowsResult<Option<Summed>> {
        match answer {
            Answer::Summed(summed) if summed.as_ref().is_none_or(|summed| self.is_of(summed)) => {
                Ok(summed)
            }
            other => Err(unexpected(&other)),
        }
    }

    fn is_of(self, summed: &Summed) -> bool {
        match summed {
            Summed::Groups { groups, .. } => groups.iter().all(|group| {
                group.values.len() == self.values && group.numbers.len() == self.numbers
            }),
            Summed::Unknown => true,
        }
    }
}

/// A summary in a transaction. The node keeps it until the last groups have come, or this is
/// dropped.
pub(super) struct RemoteSummaries {
    connection: Arc<Connection>,
    transaction: Handle,
    handle: Handle,
    shape: Shape,
    /// What came with the reply to the first call.
    first: Option<Summed>,
    is_at_node: bool,
}

impl RemoteSummaries {
    pub(super) fn new(
        connection: &Arc<Connection>,
        transaction: Handle,
        handle: Handle,
        shape: Shape,
        first: Summed,
    ) -> RemoteSummaries {
        let is_at_node = goes_on(&first);
        let (connection, first) = (Arc::clone(connection), Some(first));
        RemoteSummaries { connection, transaction, handle, shape, first, is_at_node }
    }
}

fn goes_on(summed: &Summed) -> bool {
    matches!(summed, Summed::Groups { is_last: false, .. })
}

impl Summaries for RemoteSummaries {
    fn next(&mut self, trx: &mut dyn Transaction) -> RowsResult<Summed> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        let trx = remote_transaction(trx)?;
        assert!(trx.handle() == self.transaction, "a summary is made by its own transaction");
        let answer = trx.ask(TransactionCall::NextGroups { summaries: self.handle })?;
        let summed = self.shape.summed_in(answer)?.unwrap_or(Summed::Unknown);
        self.is_at_node = goes_on(&summed);
        Ok(summed)
    }
}

impl Drop for RemoteSummaries {
    fn drop(&mut self) {
        if self.is_at_node {
            let (transaction, scan) = (self.transaction, self.handle);
            self.connection.cast(&Message::CloseScan { transaction, scan });
        }
    }
}
