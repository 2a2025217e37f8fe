//! A scan at a remote node: its batches arrive as the node packs them.

use std::sync::Arc;

use firn_api::rows::{
    Fetched, HeldLeaves, RowBatch, RowContent, RowSpan, RowsError, RowsResult, Scan, ScanRow,
    Transaction,
};
use firn_format::value::Value;
use serde_bytes::ByteBuf;

use crate::message::{Answer, Handle, Held, Message, Rows, TransactionCall};

use super::connection::{Connection, unexpected};
use super::transaction::remote_transaction;

/// A scan of a transaction. It uses the transaction's handle until it is dropped.
pub(super) struct RemoteScan {
    connection: Arc<Connection>,
    transaction: Handle,
    handle: Handle,
    is_covered: bool,
    rows: Rows,
}

impl RemoteScan {
    pub(super) fn new(
        connection: &Arc<Connection>,
        transaction: Handle,
        handle: Handle,
        is_covered: bool,
    ) -> RemoteScan {
        let rows = Rows::Covered(Vec::new());
        let connection = Arc::clone(connection);
        RemoteScan { connection, transaction, handle, is_covered, rows }
    }

    /// Takes a batch. Its spans are untrusted.
    fn take(&mut self, rows: Rows) -> RowsResult<()> {
        if let Rows::Stored { bytes, spans } = &rows
            && !spans.iter().all(|span| is_within(span, bytes.len()))
        {
            let reason = "a row lies outside its batch".into();
            return Err(RowsError::Unavailable { reason });
        }
        self.rows = rows;
        Ok(())
    }

    fn clear(&mut self) {
        self.rows = Rows::Covered(Vec::new());
    }

    fn ask(&self, trx: &mut dyn Transaction, call: TransactionCall<'_>) -> RowsResult<Answer> {
        let trx = remote_transaction(trx)?;
        assert!(trx.handle() == self.transaction, "a scan is fetched by its own transaction");
        trx.ask(call)
    }
}

fn is_within(span: &RowSpan, length: usize) -> bool {
    span.key_start <= span.key_end
        && span.row_start <= span.row_end
        && span.key_end.max(span.row_end) as usize <= length
}

impl Scan for RemoteScan {
    fn fetch(&mut self, trx: &mut dyn Transaction) -> RowsResult<bool> {
        self.clear();
        match self.ask(trx, TransactionCall::Fetch { scan: self.handle })? {
            Answer::Batch(Some(rows)) => self.take(rows).map(|()| true),
            Answer::Batch(None) => Ok(false),
            other => Err(unexpected(&other)),
        }
    }

    fn fetch_unless_held(
        &mut self,
        trx: &mut dyn Transaction,
        held: HeldLeaves<'_>,
    ) -> RowsResult<Fetched> {
        self.clear();
        let held = match held {
            HeldLeaves::Unknown => Held::Unknown,
            HeldLeaves::No => Held::No,
            HeldLeaves::Leaves(leaves) => Held::Leaves(leaves.to_vec()),
        };
        match self.ask(trx, TransactionCall::FetchUnlessHeld { scan: self.handle, held })? {
            Answer::Fetched(fetched, rows) => {
                rows.map_or(Ok(()), |rows| self.take(rows))?;
                Ok(fetched)
            }
            other => Err(unexpected(&other)),
        }
    }

    fn len(&self) -> usize {
        match &self.rows {
            Rows::Stored { spans, .. } => spans.len(),
            Rows::Covered(rows) => rows.len(),
        }
    }

    fn row(&self, number: usize) -> ScanRow<'_> {
        match &self.rows {
            Rows::Stored { bytes, spans } => {
                let batch = RowBatch { bytes, spans };
                let content = RowContent::Payload(batch.row(spans[number]));
                ScanRow { key: batch.key(spans[number]), content }
            }
            Rows::Covered(rows) => {
                let (key, values): &(ByteBuf, Vec<Value>) = &rows[number];
                ScanRow { key, content: RowContent::Columns(values) }
            }
        }
    }

    fn batch(&self) -> Option<RowBatch<'_>> {
        match &self.rows {
            Rows::Stored { bytes, spans } => Some(RowBatch { bytes, spans }),
            Rows::Covered(_) if self.is_covered => None,
            Rows::Covered(_) => Some(RowBatch { bytes: &[], spans: &[] }),
        }
    }

    fn is_covered(&self) -> bool {
        self.is_covered
    }
}

impl Drop for RemoteScan {
    fn drop(&mut self) {
        let (transaction, scan) = (self.transaction, self.handle);
        self.connection.cast(&Message::CloseScan { transaction, scan });
    }
}
