//! The rows of a scan as a message carries them.

use firn_api::rows::{RowBatch, RowContent, RowSpan, RowsError, RowsResult, Scan};
use serde_bytes::ByteBuf;

use crate::message::Rows;

/// The current batch of a scan.
///
/// # Errors
/// If it is larger than a message can hold.
pub(super) fn rows_of(scan: &dyn Scan) -> RowsResult<Rows> {
    match scan.batch() {
        Some(batch) => packed(&batch),
        None => Ok(Rows::Covered((0..scan.len()).map(|number| covered(scan, number)).collect())),
    }
}

/// Keys and rows one behind the other: a batch's bytes may hold more than its rows.
fn packed(batch: &RowBatch<'_>) -> RowsResult<Rows> {
    let size =
        |span: &RowSpan| (span.key_end - span.key_start + span.row_end - span.row_start) as usize;
    let mut bytes = Vec::with_capacity(batch.spans.iter().map(size).sum());
    let mut spans = Vec::with_capacity(batch.spans.len());
    for span in batch.spans {
        let key_start = offset(&bytes)?;
        bytes.extend_from_slice(batch.key(*span));
        let row_start = offset(&bytes)?;
        bytes.extend_from_slice(batch.row(*span));
        let row_end = offset(&bytes)?;
        spans.push(RowSpan { key_start, key_end: row_start, row_start, row_end });
    }
    Ok(Rows::Stored { bytes: ByteBuf::from(bytes), spans })
}

fn offset(bytes: &[u8]) -> RowsResult<u32> {
    u32::try_from(bytes.len()).map_err(|_| RowsError::NoMemory {
        message: "Out of memory: a batch of rows is larger than 4 GiB".to_owned(),
    })
}

fn covered(scan: &dyn Scan, number: usize) -> (ByteBuf, Vec<firn_format::value::Value>) {
    let row = scan.row(number);
    let values = match row.content {
        RowContent::Columns(values) => values.to_vec(),
        RowContent::Payload(_) => Vec::new(),
    };
    (ByteBuf::from(row.key.to_vec()), values)
}
