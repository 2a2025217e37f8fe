//! `ORDER BY`: rows by the bytes of their keys, equal ones in arrival order.
//!
//! ```text
//!   few wanted    heap of the first n
//!   more          sorted in short runs as they come ─► merged
//!   does not fit  runs in memory ─► merged to a run on disk, and those with the last in memory
//! ```
//!
//! Runs are short enough that a cancelled statement does not wait for a sort.

use crate::execute::Evaluate;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::vec::IntoIter;

use crate::error::Result;
use crate::expression::{Expression, Slot, SortKey};
use crate::types::{Datum, write_sort_key};

use super::Execution;
use super::background_free::{Bulk, Collection};
use super::limit::row_count;
use super::memory::{Reservation, size_of_values};
use super::operator::{Input, Operator};
use super::spill::SpillReader;

/// If more rows are wanted, all are sorted.
const MOST_HEAP_ROWS: u64 = 10_000;
/// Rows of a run that is sorted in one go; that takes some milliseconds.
const RUN_ROWS: usize = 1 << 15;

/// A row that waits for its turn.
#[derive(Clone)]
pub(crate) struct Keyed<T> {
    pub(crate) key: Box<[u8]>,
    /// Counts the rows that came; equal rows stay in order.
    pub(crate) number: u64,
    pub(crate) kept: T,
}

type Entry = Keyed<Box<[Datum]>>;

impl<T> PartialEq for Keyed<T> {
    fn eq(&self, other: &Keyed<T>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Keyed<T> {}

impl<T> PartialOrd for Keyed<T> {
    fn partial_cmp(&self, other: &Keyed<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Keyed<T> {
    fn cmp(&self, other: &Keyed<T>) -> Ordering {
        self.key.cmp(&other.key).then(self.number.cmp(&other.number))
    }
}

/// Sorts entries of any size, within a statement's memory.
pub(crate) struct Sorter {
    heap: BinaryHeap<Entry>,
    wanted: Option<u64>,
    in_memory: Bulk<Runs>,
    /// Runs on disk.
    runs: Vec<SpillReader>,
    held: Reservation,
    number: u64,
}

impl Sorter {
    /// A sorter; `wanted`: only this many rows from the beginning.
    pub(crate) fn new(wanted: Option<u64>, execution: &Execution<'_>) -> Sorter {
        Sorter {
            heap: BinaryHeap::new(),
            wanted: wanted.filter(|wanted| *wanted <= MOST_HEAP_ROWS),
            in_memory: Bulk::default(),
            runs: Vec::new(),
            held: execution.memory().reservation(),
            number: 0,
        }
    }

    /// Adds a row; `values` is called if the row is kept.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        execution: &Execution<'_>,
        values: impl FnOnce() -> Box<[Datum]>,
    ) -> Result<()> {
        self.number += 1;
        if let Some(wanted) = self.wanted {
            return self.add_to_heap(key, wanted, values);
        }
        let entry = Entry { key: key.into(), number: self.number, kept: values() };
        let size_bytes = size_of_entry(&entry);
        if !self.held.grow(size_bytes) {
            self.write_run(execution)?;
            self.held.require(size_bytes)?;
        }
        self.in_memory.last.push(entry);
        if self.in_memory.last.len() == RUN_ROWS {
            self.in_memory.end_last();
        }
        Ok(())
    }

    fn add_to_heap(
        &mut self,
        key: &[u8],
        wanted: u64,
        values: impl FnOnce() -> Box<[Datum]>,
    ) -> Result<()> {
        if self.heap.len() as u64 == wanted {
            // A row equal to the last one came later, so it stays out.
            if self.heap.peek().is_none_or(|last| *key >= *last.key) {
                return Ok(());
            }
            if let Some(last) = self.heap.pop() {
                self.held.shrink(size_of_entry(&last));
            }
        }
        let entry = Entry { key: key.into(), number: self.number, kept: values() };
        self.held.require(size_of_entry(&entry))?;
        self.heap.push(entry);
        Ok(())
    }

    /// Puts what is in memory on disk, sorted.
    fn write_run(&mut self, execution: &Execution<'_>) -> Result<()> {
        self.in_memory.end_last();
        if self.in_memory.list.is_empty() {
            return Ok(());
        }
        let mut merge = Merge::new(std::mem::take(&mut self.in_memory))?;
        let mut file = execution.workspace.create_spill_file()?;
        let mut row = Vec::new();
        while let Some(entry) = merge.next()? {
            execution.check_cancelled()?;
            row.clear();
            row.extend([Datum::text(&*entry.key), Datum::UInt(entry.number)]);
            row.extend(entry.kept);
            file.append(&row)?;
        }
        self.held.clear();
        self.runs.push(file.into_reader()?);
        Ok(())
    }

    /// The rows in order.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        if self.wanted.is_some() {
            self.in_memory.last = std::mem::take(&mut self.heap).into_sorted_vec();
        }
        let mut runs = self.in_memory;
        runs.end_last();
        runs.list.extend(self.runs.into_iter().map(Run::Disk));
        Ok(Sorted { merge: Merge::new(runs)?, _held: self.held })
    }
}

pub(crate) struct Sorted {
    merge: Merge,
    _held: Reservation,
}

impl Sorted {
    /// The next row's values.
    pub(crate) fn next(&mut self) -> Result<Option<Box<[Datum]>>> {
        Ok(self.merge.next()?.map(|entry| entry.kept))
    }
}

/// Rows in order.
enum Run {
    Memory(IntoIter<Entry>),
    Disk(SpillReader),
}

/// They are freed together: a thread for each of many would keep the processors from everything
/// else.
#[derive(Default)]
struct Runs {
    list: Vec<Run>,
    /// The latest rows, not sorted yet.
    last: Vec<Entry>,
}

impl Runs {
    /// Sorts the latest rows.
    fn end_last(&mut self) {
        if !self.last.is_empty() {
            self.last.sort_unstable();
            self.list.push(Run::Memory(std::mem::take(&mut self.last).into_iter()));
        }
    }
}

impl Collection for Runs {
    fn count(&self) -> usize {
        let of_runs = self.list.iter().map(|run| match run {
            Run::Memory(entries) => entries.len(),
            Run::Disk(_) => 0,
        });
        of_runs.sum::<usize>() + self.last.len()
    }
}

impl Run {
    fn next(&mut self) -> Result<Option<Entry>> {
        match self {
            Run::Memory(entries) => Ok(entries.next()),
            Run::Disk(reader) => next_on_disk(reader),
        }
    }
}

/// Several runs as one: `heads` has the next row of each.
struct Merge {
    runs: Bulk<Runs>,
    heads: BinaryHeap<Reverse<(Entry, usize)>>,
}

impl Merge {
    fn new(mut runs: Bulk<Runs>) -> Result<Merge> {
        let mut heads = BinaryHeap::new();
        // A single run needs no comparisons.
        if runs.list.len() > 1 {
            for (number, run) in runs.list.iter_mut().enumerate() {
                heads.extend(run.next()?.map(|entry| Reverse((entry, number))));
            }
        }
        Ok(Merge { runs, heads })
    }

    fn next(&mut self) -> Result<Option<Entry>> {
        if let [only] = &mut self.runs.list[..] {
            return only.next();
        }
        let Some(mut least) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((entry, number)) = &mut *least;
        match self.runs.list[*number].next()? {
            Some(next) => Ok(Some(std::mem::replace(entry, next))),
            None => Ok(Some(PeekMut::pop(least).0.0)),
        }
    }
}

/// The next row of a run on disk.
fn next_on_disk(run: &mut SpillReader) -> Result<Option<Entry>> {
    let mut row = Vec::new();
    if !run.next(&mut row)? {
        return Ok(None);
    }
    let mut row = row.into_iter();
    let (Some(Datum::Text(key)), Some(Datum::UInt(number))) = (row.next(), row.next()) else {
        return Err(run.damaged());
    };
    Ok(Some(Entry { key: (*key).into(), number, kept: row.collect() }))
}

fn size_of_entry(entry: &Entry) -> usize {
    entry.key.len() + size_of_values(&entry.kept) + size_of::<Entry>()
}

/// Appends the key of the current row.
pub(crate) fn write_keys(
    keys: &[SortKey],
    execution: &mut Execution<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    for key in keys {
        let operand = key.expression.operand(execution)?;
        let value = key.expression.of(&operand, execution)?;
        write_sort_key(value, &key.expression.ty, key.descending, out);
    }
    Ok(())
}

pub(crate) struct Sort<'p> {
    input: Input<'p>,
    keys: &'p [SortKey],
    keep: &'p [Slot],
    limit: Option<&'p Expression>,
    sorted: Option<Sorted>,
}

impl<'p> Sort<'p> {
    pub(crate) fn new(
        input: Input<'p>,
        keys: &'p [SortKey],
        keep: &'p [Slot],
        limit: Option<&'p Expression>,
    ) -> Sort<'p> {
        Sort { input, keys, keep, limit, sorted: None }
    }
}

impl Operator for Sort<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.sorted = None;
        let wanted = self.limit.map(|limit| row_count(limit, execution)).transpose()?;
        let mut sorter = Sorter::new(wanted, execution);
        self.input.open(execution)?;
        let mut key = Vec::new();
        while wanted != Some(0) && self.input.next(execution)? {
            execution.check_cancelled()?;
            key.clear();
            write_keys(self.keys, execution, &mut key)?;
            sorter.add(&key, execution, || execution.frame.save(self.keep))?;
        }
        execution.measures.rows.sorted += sorter.number;
        execution.measures.rows.sort_runs += sorter.runs.len() as u64;
        self.sorted = Some(sorter.finish()?);
        Ok(())
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let Some(sorted) = &mut self.sorted else { return Ok(false) };
        let Some(values) = sorted.next()? else { return Ok(false) };
        execution.frame.restore(self.keep, values);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_base::disk::{SpillDirectory, SystemDisk};

    use super::*;
    use crate::execute::spill::SpillFile;

    /// It would have another place among the others, and nobody would notice.
    #[test]
    fn a_row_on_disk_whose_key_is_none_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let directory = SpillDirectory::open(Arc::new(SystemDisk), folder.path(), 1 << 20).unwrap();
        for row in [
            vec![Datum::Int(1), Datum::UInt(1)],
            vec![Datum::text("key"), Datum::Int(1)],
            vec![Datum::text("key")],
            vec![],
        ] {
            let mut file = SpillFile::create(&directory.of_statement()).unwrap();
            file.append(&[Datum::text("key"), Datum::UInt(1), Datum::Null]).unwrap();
            file.append(&row).unwrap();
            let mut run = file.into_reader().unwrap();
            assert!(next_on_disk(&mut run).unwrap().is_some());
            let error = next_on_disk(&mut run).map(|_| ()).unwrap_err();
            assert_eq!(error.code, 2, "{row:?}: {error}");
        }
    }
}
