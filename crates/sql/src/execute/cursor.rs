//! Walks over the rows that a scan's way leads to, as the node has them: no value is taken out here.
//!
//! ```text
//!   Access ──[`Steps`]──► Point key │ Range of keys, one after the other ──► ScanRow (key, bytes)
//! ```
//!
//! A full key of a unique index is looked up, everything else is scanned. Ranges come sorted and merged, so
//! a row comes once; ways of a union may cross, so their rows' keys are remembered.

use firn_api::rows::{
    Direction, ReadMode, RowBatch, RowContent, Scan, ScanOptions, ScanRow, TableRef, Transaction,
};

use crate::error::Result;
use crate::plan::{Access, ScanPlan};

use super::Execution;
use super::access::{self, Step};
use super::counters::RowCounts;
use super::error::from_rows;
use super::seen::SeenKeys;

/// The rows of a table that a plan's way leads to.
pub(crate) struct Cursor<'p> {
    plan: &'p ScanPlan,
    table: Option<TableRef>,
    /// What is still to be visited, the next one last.
    steps: Vec<(Option<usize>, Step)>,
    source: Source,
    key: Vec<u8>,
    payload: Vec<u8>,
    /// Ordinals that an index gives by itself.
    covered: Option<Box<[u16]>>,
    seen: Option<SeenKeys>,
    /// See [`ScanOptions::batch_rows`].
    batch_rows: usize,
}

/// Where the present row is.
enum Source {
    /// There is none.
    Nowhere,
    /// In the cursor's own buffers.
    Buffers,
    /// In a batch of a scan.
    Scan { scan: Box<dyn Scan>, position: usize, started: bool },
}

impl<'p> Cursor<'p> {
    pub(crate) fn new(plan: &'p ScanPlan) -> Cursor<'p> {
        let ordinals = || plan.slots.iter().map(|(ordinal, _)| *ordinal).collect();
        let covered = (plan.covered && plan.row_payload.is_none()).then(ordinals);
        Cursor {
            plan,
            table: None,
            steps: Vec::new(),
            source: Source::Nowhere,
            key: Vec::new(),
            payload: Vec::new(),
            covered,
            seen: None,
            batch_rows: usize::MAX,
        }
    }

    /// The cursor of somebody who may want no more than so many rows: no others are locked ahead.
    pub(crate) fn wanting(mut self, rows: u64) -> Cursor<'p> {
        if self.plan.mode != ReadMode::Consistent {
            self.batch_rows = usize::try_from(rows).unwrap_or(usize::MAX);
        }
        self
    }

    /// The table, once the cursor has been opened.
    pub(crate) fn table(&self) -> Option<&TableRef> {
        self.table.as_ref()
    }

    /// Begins before the first row.
    pub(crate) fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let write = self.plan.mode != ReadMode::Consistent || self.plan.row_payload.is_some();
        let table = match self.table.take() {
            Some(table) => table,
            None => execution.table(&self.plan.table, write)?,
        };
        self.source = Source::Nowhere;
        self.steps.clear();
        access::steps(self.plan, &table, execution, &mut self.steps)?;
        self.seen = match self.plan.access {
            Access::Union(_) => Some(SeenKeys::new(execution)),
            _ => None,
        };
        self.table = Some(table);
        Ok(())
    }

    /// Goes to the next row; false if there is none.
    pub(crate) fn advance(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        loop {
            if !self.advance_any(execution)? {
                return Ok(false);
            }
            let key = match &self.source {
                Source::Scan { scan, position, .. } => scan.row(*position).key,
                _ => &self.key,
            };
            let Some(seen) = &mut self.seen else { return Ok(true) };
            if seen.add(key)? {
                return Ok(true);
            }
        }
    }

    /// The row that the cursor is at and those that come at once behind it, with their table; the cursor is
    /// at the last of them then. `None` if there is but the one that [`Cursor::row`] gives.
    pub(crate) fn take_batch(
        &mut self,
        counts: &mut RowCounts,
    ) -> Option<(RowBatch<'_>, &TableRef)> {
        if self.seen.is_some() {
            return None;
        }
        let Source::Scan { scan, position, .. } = &mut self.source else { return None };
        let batch = scan.batch()?;
        let rest = batch.spans.get(*position..)?;
        *position = batch.spans.len().saturating_sub(1);
        // The first was counted when the cursor went to it.
        count_rows(self.plan, rest.len().saturating_sub(1) as u64, counts);
        Some((RowBatch { bytes: batch.bytes, spans: rest }, self.table.as_ref()?))
    }

    fn advance_any(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        loop {
            if let Source::Scan { scan, position, started } = &mut self.source
                && advance_scan(&mut **scan, position, started, execution)?
            {
                count_rows(self.plan, 1, &mut execution.rows);
                return Ok(true);
            }
            self.source = Source::Nowhere;
            let Some((index, step)) = self.steps.pop() else { return Ok(false) };
            if self.begin(index, step, execution)? {
                return Ok(true);
            }
        }
    }

    /// Begins a step; true if that already is at a row.
    fn begin(
        &mut self,
        index: Option<usize>,
        step: Step,
        execution: &mut Execution<'_>,
    ) -> Result<bool> {
        let Some(table) = &self.table else { return Ok(false) };
        match step {
            Step::Point(entry) => {
                execution.check_cancelled()?;
                let (key, payload) = (&mut self.key, &mut self.payload);
                let transaction = &mut *execution.transaction;
                let mode = self.plan.mode;
                let found = look_up(transaction, table, index, entry, mode, key, payload)?;
                execution.rows.points += 1;
                if found {
                    execution.rows.found += 1;
                    self.source = Source::Buffers;
                }
                Ok(found)
            }
            Step::Range(range) => {
                let batch_rows = match execution.scans_row_by_row {
                    true => 1,
                    false => self.batch_rows,
                };
                let options = ScanOptions {
                    index,
                    range,
                    direction: self.plan.direction,
                    mode: self.plan.mode,
                    columns: self.covered.clone(),
                    batch_rows,
                };
                let scan = execution.transaction.scan(table, &options).map_err(from_rows)?;
                execution.rows.scans += 1;
                self.source = Source::Scan { scan, position: 0, started: false };
                Ok(false)
            }
        }
    }

    /// The row that the cursor is at.
    ///
    /// # Panics
    /// If it is at none.
    pub(crate) fn row(&self) -> ScanRow<'_> {
        match &self.source {
            Source::Nowhere => panic!("a cursor is asked for a row when it is at one"),
            Source::Buffers => {
                ScanRow { key: &self.key, content: RowContent::Payload(&self.payload) }
            }
            Source::Scan { scan, position, .. } => scan.row(*position),
        }
    }
}

/// Counts rows that a scan gave.
fn count_rows(plan: &ScanPlan, rows: u64, counts: &mut RowCounts) {
    match plan.access {
        Access::Full { index: None } => counts.by_full_scan += rows,
        _ => counts.by_index += rows,
    }
}

fn advance_scan(
    scan: &mut dyn Scan,
    position: &mut usize,
    started: &mut bool,
    execution: &mut Execution<'_>,
) -> Result<bool> {
    if *started && *position + 1 < scan.len() {
        *position += 1;
        return Ok(true);
    }
    loop {
        execution.check_cancelled()?;
        if !scan.fetch(execution.transaction).map_err(from_rows)? {
            return Ok(false);
        }
        if !scan.is_empty() {
            *started = true;
            *position = 0;
            return Ok(true);
        }
    }
}

/// Reads the row with a full key of a unique index; `key` gets its primary key.
fn look_up(
    transaction: &mut dyn Transaction,
    table: &TableRef,
    index: Option<usize>,
    entry: Vec<u8>,
    mode: ReadMode,
    key: &mut Vec<u8>,
    payload: &mut Vec<u8>,
) -> Result<bool> {
    payload.clear();
    let found = match index {
        None => {
            *key = entry;
            transaction.get(table, key, mode, payload)
        }
        Some(index) => {
            key.clear();
            transaction.get_by_entry(table, index, &entry, mode, key, payload)
        }
    };
    found.map_err(from_rows)
}

/// The other way round.
pub(crate) fn is_backward(direction: Direction) -> bool {
    direction == Direction::Backward
}
