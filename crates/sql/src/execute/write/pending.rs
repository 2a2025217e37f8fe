//! Rows that an `INSERT` has assembled and not written yet. They go to the node in batches, which
//! costs far less than one by one.
//!
//! ```text
//!   built ─► pending ──full, or at the end──► insert_rows ─┬─► all are there
//!                                                          └─► one was refused: none is written,
//!                                                              then each one alone
//! ```

use crate::types::Datum;

/// A row's values by ordinal.
pub(super) type Row = Vec<Datum>;

/// The most rows of a batch.
pub(super) const MOST_ROWS: usize = 256;
/// Rows with about this total size make a batch, however few they are.
pub(super) const MOST_BYTES: usize = 256 << 10;
/// The size assumed for a document.
const DOCUMENT_BYTES: usize = MOST_BYTES / 8;

/// Rows in the order in which they were assembled, each with the number that was generated for it.
#[derive(Default)]
pub(super) struct Pending {
    rows: Vec<(Row, Option<u64>)>,
    size_bytes: usize,
    /// Memory for the following rows.
    spare: Vec<Row>,
}

impl Pending {
    /// Adds a row and leaves memory for another in its place.
    pub(super) fn push(&mut self, row: &mut Row, generated: Option<u64>) {
        self.size_bytes += size_bytes(row);
        let next = self.spare.pop().unwrap_or_default();
        self.rows.push((std::mem::replace(row, next), generated));
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MOST_ROWS || self.size_bytes >= MOST_BYTES
    }

    /// Removes and returns all rows.
    pub(super) fn take(&mut self) -> Vec<(Row, Option<u64>)> {
        self.size_bytes = 0;
        std::mem::take(&mut self.rows)
    }

    /// Takes back the memory of rows that were removed.
    pub(super) fn give_back(&mut self, mut rows: Vec<(Row, Option<u64>)>) {
        self.spare.extend(rows.drain(..).map(|(mut row, _)| {
            row.clear();
            row
        }));
        self.rows = rows;
    }
}

fn size_bytes(row: &Row) -> usize {
    let values = row.iter().map(|value| match value {
        Datum::Json(_) => DOCUMENT_BYTES,
        other => other.as_bytes().map_or(0, <[u8]>::len),
    });
    size_of_val(row.as_slice()) + values.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_held_back_until_there_are_many_or_large_ones() {
        let mut pending = Pending::default();
        let mut pushed = |row: &Row| {
            let count = (1..).find(|_| {
                pending.push(&mut row.clone(), None);
                pending.is_full()
            });
            let taken = pending.take();
            assert!(taken.iter().all(|(taken, _)| taken == row) && !pending.is_full());
            pending.give_back(taken);
            count
        };
        assert_eq!(pushed(&vec![Datum::Int(1), Datum::Null]), Some(256));
        assert_eq!(pushed(&vec![Datum::Text(vec![b'x'; 100_000].into())]), Some(3));
    }
}
