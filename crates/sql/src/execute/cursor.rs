//! Iteration over the rows of a scan's access path, as the node has them: no value is decoded here.
//!
//! ```text
//!   Access ──[`Steps`]──► Point key │ Range of keys, one after the other ──► ScanRow (key, bytes)
//! ```
//!
//! A full key of a unique index is looked up, everything else is scanned. Ranges come sorted and
//! merged, so a row comes once. The paths of a union may overlap, so the keys of their rows are
//! remembered.

use firn_api::rows::{
    Direction, Filter, FoundRow, GroupSummary, Grouping, ReadMode, RowBatch, RowContent, Scan,
    ScanOptions, ScanRow, Summed, TableRef, Transaction, expression,
};
use firn_format::key::KeyRange;

use crate::error::Result;
use crate::expression::Expression;
use crate::plan::{Access, ScanPlan};

use super::Execution;
use super::access::{self, NodeFilter, Step};
use super::counters::RowCounts;
use super::error::from_rows;
use super::seen::SeenKeys;

/// The rows of a table on a plan's access path.
pub(crate) struct Cursor<'p> {
    plan: &'p ScanPlan,
    table: Option<TableRef>,
    /// What is still to be visited, the next step last.
    steps: Vec<(Option<usize>, Step)>,
    source: Source,
    key: Vec<u8>,
    payload: Vec<u8>,
    /// Ordinals that an index covers.
    covered: Option<Box<[u16]>>,
    seen: Option<SeenKeys>,
    /// See [`ScanOptions::batch_rows`].
    batch_rows: usize,
    /// The most rows that are wanted, if the reader knows it.
    most_rows: Option<u64>,
    /// The filter for the node, in all ranges.
    filter: Option<Box<Filter>>,
    /// Rows for which the node knows that the filter is true satisfy the conditions.
    says_all: bool,
    /// Rows that were looked up together, the next one last.
    found: Vec<Option<FoundRow>>,
}

/// The most rows that are looked up together.
pub(crate) const MOST_LOOKED_UP: usize = 256;

/// A full key of a unique index, by the index's number; `None`: the clustered one.
pub(crate) type IndexKey = (Option<usize>, Vec<u8>);

/// Where the current row is.
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
            most_rows: None,
            filter: None,
            says_all: false,
            found: Vec::new(),
        }
    }

    /// The cursor of a reader that may want at most this many rows: no others are locked in
    /// advance.
    pub(crate) fn wanting(mut self, rows: u64) -> Cursor<'p> {
        if self.plan.mode != ReadMode::Consistent {
            self.batch_rows = usize::try_from(rows).unwrap_or(usize::MAX);
        }
        self
    }

    /// The cursor of a reader that wants no more than this many rows that meet the conditions.
    pub(crate) fn ending_after(self, rows: Option<u64>) -> Cursor<'p> {
        Cursor { most_rows: rows.filter(|rows| *rows < u64::MAX), ..self }
    }

    /// The table, once the cursor has been opened.
    pub(crate) fn table(&self) -> Option<&TableRef> {
        self.table.as_ref()
    }

    /// Begins before the first row.
    pub(crate) fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let table = self.open_table(execution)?;
        self.source = Source::Nowhere;
        self.steps.clear();
        self.found.clear();
        access::steps(self.plan, &table, execution, &mut self.steps)?;
        if execution.data.is_remote && self.steps.iter().any(|(_, step)| !step.is_point()) {
            let NodeFilter { filter, says_all } =
                access::node_filter(self.plan, &table, execution)?;
            (self.filter, self.says_all) = (filter, says_all);
        }
        self.seen = match self.plan.access {
            Access::Union(_) => Some(SeenKeys::new(execution)),
            _ => None,
        };
        self.table = Some(table);
        Ok(())
    }

    fn open_table(&mut self, execution: &mut Execution<'_>) -> Result<TableRef> {
        let write = self.plan.mode != ReadMode::Consistent || self.plan.row_payload.is_some();
        match self.table.take() {
            Some(table) => Ok(table),
            None => execution.table(&self.plan.table, write),
        }
    }

    /// The key of the row to which the access path leads with the present slots; `None` if no row
    /// can have it. Only for a path that is a point.
    pub(crate) fn point_key(&mut self, execution: &mut Execution<'_>) -> Result<Option<IndexKey>> {
        let table = self.open_table(execution)?;
        self.steps.clear();
        access::steps(self.plan, &table, execution, &mut self.steps)?;
        self.table = Some(table);
        Ok(self.steps.pop().and_then(|(index, step)| match step {
            Step::Point(key) => Some((index, key)),
            Step::Range(_) => None,
        }))
    }

    /// Looks up rows by keys of [`Cursor::point_key`]; `found` gets the result for each.
    pub(crate) fn look_up_all(
        &mut self,
        index: Option<usize>,
        keys: &[Vec<u8>],
        found: &mut Vec<Option<FoundRow>>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        execution.check_cancelled()?;
        let table = self.open_table(execution)?;
        let mode = self.plan.mode;
        let looked_up = execution.data.transaction.get_rows(&table, index, keys, mode, found);
        self.table = Some(table);
        looked_up.map_err(from_rows)?;
        execution.measures.rows.points += keys.len() as u64;
        Ok(())
    }

    /// Goes to a row that was looked up.
    pub(crate) fn go_to(&mut self, row: FoundRow, execution: &mut Execution<'_>) {
        (self.key, self.payload) = (row.key, row.payload);
        execution.measures.rows.found += 1;
        self.source = Source::Buffers;
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

    /// The cursor's row and the rows that directly follow it, with their table; the cursor is then
    /// at the last of them. `None` if there is only the row of [`Cursor::row`].
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
                count_rows(self.plan, 1, &mut execution.measures.rows);
                return Ok(true);
            }
            self.source = Source::Nowhere;
            if let Some(found) = self.found.pop() {
                if let Some(row) = found {
                    self.go_to(row, execution);
                    return Ok(true);
                }
                continue;
            }
            let Some((index, step)) = self.steps.pop() else { return Ok(false) };
            if self.begin(index, step, execution)? {
                return Ok(true);
            }
        }
    }

    /// Begins a step; true if the cursor is then already at a row.
    fn begin(
        &mut self,
        index: Option<usize>,
        step: Step,
        execution: &mut Execution<'_>,
    ) -> Result<bool> {
        let Some(table) = &self.table else { return Ok(false) };
        match step {
            Step::Point(entry) if self.asks_for_several(index, execution) => {
                self.look_up_together(index, entry, execution)?;
                Ok(false)
            }
            Step::Point(entry) => {
                execution.check_cancelled()?;
                let (key, payload) = (&mut self.key, &mut self.payload);
                let transaction = &mut *execution.data.transaction;
                let mode = self.plan.mode;
                let found = look_up(transaction, table, index, entry, mode, key, payload)?;
                execution.measures.rows.points += 1;
                if found {
                    execution.measures.rows.found += 1;
                    self.source = Source::Buffers;
                }
                Ok(found)
            }
            Step::Range(range) => {
                let batch_rows = match execution.data.scans_row_by_row {
                    true => 1,
                    false => self.batch_rows,
                };
                let options = ScanOptions { batch_rows, ..self.scan_options(index, range) };
                let scan = execution.data.transaction.scan(table, &options).map_err(from_rows)?;
                execution.measures.rows.scans += 1;
                self.source = Source::Scan { scan, position: 0, started: false };
                Ok(false)
            }
        }
    }

    fn scan_options(&self, index: Option<usize>, range: KeyRange) -> ScanOptions {
        ScanOptions {
            index,
            range,
            direction: self.plan.direction,
            mode: self.plan.mode,
            columns: self.covered.clone(),
            batch_rows: usize::MAX,
            filter: self.filter.clone(),
            limit: self.most_rows.filter(|_| self.may_end_early()),
        }
    }

    /// Whether the node knows which rows the reader wants, and none of them comes twice.
    fn may_end_early(&self) -> bool {
        let is_union = matches!(self.plan.access, Access::Union(_));
        self.says_all && !is_union && self.plan.mode == ReadMode::Consistent
    }

    /// Whether all rows of an opened cursor can be summed up by the node.
    pub(crate) fn may_summarise(&self) -> bool {
        let is_range = |step: &(Option<usize>, Step)| !step.1.is_point();
        self.says_all
            && self.plan.mode == ReadMode::Consistent
            && self.seen.is_none()
            && self.steps.iter().all(is_range)
    }

    /// Passes the groups of all rows of an opened cursor to `take`, summed up by the node without
    /// sending the rows; false as soon as the rows have to be read here instead, or if `take` says
    /// so. The caller then opens the cursor again.
    pub(crate) fn summarise(
        &mut self,
        grouping: &Grouping,
        execution: &mut Execution<'_>,
        mut take: impl FnMut(GroupSummary) -> Result<bool>,
    ) -> Result<bool> {
        let Some(table) = self.table.clone().filter(|_| self.may_summarise()) else {
            return Ok(false);
        };
        while let Some((index, Step::Range(range))) = self.steps.pop() {
            execution.check_cancelled()?;
            let options = self.scan_options(index, range);
            let summaries = execution.data.transaction.summarise(&table, &options, grouping);
            let Some(mut summaries) = summaries.map_err(from_rows)? else { return Ok(false) };
            execution.measures.rows.scans += 1;
            loop {
                let summed = summaries.next(execution.data.transaction).map_err(from_rows)?;
                let Summed::Groups { groups, is_last } = summed else { return Ok(false) };
                for group in groups {
                    count_rows(self.plan, group.rows, &mut execution.measures.rows);
                    if !take(group)? {
                        return Ok(false);
                    }
                }
                if is_last {
                    break;
                }
                execution.check_cancelled()?;
            }
        }
        Ok(true)
    }

    /// An expression over the cursor's rows as the node evaluates it; `None` if it cannot.
    pub(crate) fn sent(
        &self,
        expression: &Expression,
        execution: &mut Execution<'_>,
    ) -> Option<expression::Expression> {
        access::sent(self.plan, expression, execution)
    }

    /// Whether the next step is another row of the same index, and requesting both at once saves a
    /// message. Locks are taken one by one: no row is locked that may not be reached.
    fn asks_for_several(&self, index: Option<usize>, execution: &Execution<'_>) -> bool {
        let is_alike = |step: &(Option<usize>, Step)| step.0 == index && step.1.is_point();
        self.plan.mode == ReadMode::Consistent
            && execution.data.is_remote
            && self.steps.last().is_some_and(is_alike)
    }

    /// Looks up the row with this key and those of the following steps.
    fn look_up_together(
        &mut self,
        index: Option<usize>,
        first: Vec<u8>,
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let mut keys = vec![first];
        while keys.len() < MOST_LOOKED_UP
            && let Some((_, Step::Point(key))) =
                self.steps.pop_if(|step| step.0 == index && step.1.is_point())
        {
            keys.push(key);
        }
        let mut found = std::mem::take(&mut self.found);
        self.look_up_all(index, &keys, &mut found, execution)?;
        found.reverse();
        self.found = found;
        Ok(())
    }

    /// The row at the cursor.
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

/// Counts rows from a scan.
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
        if !scan.fetch(execution.data.transaction).map_err(from_rows)? {
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

/// Whether the direction is backwards.
pub(crate) fn is_backward(direction: Direction) -> bool {
    direction == Direction::Backward
}
