//! A run: adjacent leaves, and columns of all their rows.
//!
//! ```text
//!   leaves   7 @300   8 @310   9 @290
//!   rows     0        120      251      370      before each leaf, and in all
//! ```

use std::ops::Range;
use std::sync::Arc;

use firn_api::rows::LeafVersion;
use firn_base::Cts;
use parking_lot::Mutex;

use super::packed::Packed;
use super::register::ColumnNumber;

/// Approximate size of a run without its columns: itself, and for each leaf its name and its place
/// in the table.
const RUN_BYTES: usize = 160;
const LEAF_BYTES: usize = 72;

#[derive(Debug)]
pub(crate) struct Run {
    leaves: Arc<[LeafVersion]>,
    rows_before: Box<[u32]>,
    seen_from: Cts,
    content: Mutex<Content>,
}

#[derive(Debug)]
struct Content {
    columns: Vec<(ColumnNumber, Packed)>,
    /// Pages that are in this run.
    live: usize,
}

impl Run {
    pub(super) fn new(
        leaves: &[(LeafVersion, usize)],
        seen_from: Cts,
        columns: impl Iterator<Item = (ColumnNumber, Packed)>,
    ) -> Run {
        let mut rows_before = vec![0];
        let mut total = 0;
        rows_before.extend(leaves.iter().map(|(_, rows)| {
            total += *rows as u32;
            total
        }));
        Run {
            leaves: leaves.iter().map(|(leaf, _)| *leaf).collect(),
            rows_before: rows_before.into(),
            seen_from,
            content: Mutex::new(Content { columns: columns.collect(), live: leaves.len() }),
        }
    }

    pub(super) fn leaves(&self) -> &[LeafVersion] {
        &self.leaves
    }

    pub(super) fn seen_from(&self) -> Cts {
        self.seen_from
    }

    /// Whether most of its leaves have changed since.
    pub(super) fn is_worn(&self) -> bool {
        self.content.lock().live * 2 < self.leaves.len()
    }

    pub(super) fn size_bytes(&self) -> u64 {
        bytes_of(&self.content.lock().columns) + self.own_bytes()
    }

    fn own_bytes(&self) -> u64 {
        (RUN_BYTES + LEAF_BYTES * self.leaves.len()) as u64
    }

    /// The columns with these numbers, in order, if the run has all of them.
    pub(super) fn columns(&self, numbers: &[ColumnNumber]) -> Option<Vec<Packed>> {
        let content = self.content.lock();
        let find = |number: &ColumnNumber| {
            let found = content.columns.iter().find(|(known, _)| known == number);
            found.map(|(_, packed)| packed.clone())
        };
        numbers.iter().map(find).collect()
    }

    /// Adds columns; returns their size. `None` if no page belongs to the run any more.
    pub(super) fn add(&self, columns: impl Iterator<Item = (ColumnNumber, Packed)>) -> Option<u64> {
        let mut content = self.content.lock();
        if content.live == 0 {
            return None;
        }
        let before = content.columns.len();
        for (number, packed) in columns {
            if !content.columns.iter().any(|(known, _)| *known == number) {
                content.columns.push((number, packed));
            }
        }
        Some(bytes_of(&content.columns[before..]))
    }

    /// Drops a column; returns its size, and whether no column is left.
    pub(super) fn forget(&self, victim: ColumnNumber) -> (u64, bool) {
        let mut content = self.content.lock();
        let before = bytes_of(&content.columns);
        content.columns.retain(|(number, _)| *number != victim);
        (before - bytes_of(&content.columns), content.columns.is_empty())
    }

    /// Removes a page from the run; returns the run's size if that was its last page.
    pub(super) fn leave(&self) -> u64 {
        let mut content = self.content.lock();
        content.live -= 1;
        match content.live {
            0 => bytes_of(&std::mem::take(&mut content.columns)) + self.own_bytes(),
            _ => 0,
        }
    }
}

fn bytes_of(columns: &[(ColumnNumber, Packed)]) -> u64 {
    let of_column =
        |(_, packed): &(ColumnNumber, Packed)| size_of::<ColumnNumber>() + packed.size_bytes();
    columns.iter().map(of_column).sum::<usize>() as u64
}

/// Some leaves of a run, with the columns that a scan wants.
#[derive(Debug, Clone)]
pub(crate) struct RunPart {
    run: Arc<Run>,
    from: usize,
    columns: Vec<Packed>,
}

impl RunPart {
    /// The columns of the leaves from `from` on.
    pub(super) fn new(run: Arc<Run>, from: usize, columns: Vec<Packed>) -> RunPart {
        RunPart { run, from, columns }
    }

    /// The leaves, in their order.
    pub(crate) fn leaves(&self) -> &[LeafVersion] {
        &self.run.leaves[self.from..]
    }

    /// The rows of the first `leaves` leaves of the part; `None` if it has fewer.
    pub(crate) fn rows_of(self, leaves: usize) -> Option<PackedRows> {
        let start = *self.run.rows_before.get(self.from)? as usize;
        let end = *self.run.rows_before.get(self.from + leaves)? as usize;
        let total = *self.run.rows_before.last()? as usize;
        Some(PackedRows { total, rows: start..end, columns: self.columns })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct PackedRows {
    /// How many rows the columns have.
    pub(crate) total: usize,
    /// Which of them are meant.
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Vec<Packed>,
}
