//! Adding an index while the table is written.
//!
//! ```text
//!   exclusive lock    the index is in the definition, building: every writer from here on keeps it up
//!   batches           rows are read with shared locks, in key order; their entries are put in; commit
//!   exclusive lock    the index is ready
//! ```
//!
//! A batch sees the newest version of each row and keeps it from changing until it commits. So an entry is
//! put in exactly if the row has it now; if a writer has put it in already, it is the same. Writers that
//! take out an entry that no batch has put in yet find nothing, which is right (tables, rule 5).
//!
//! A unique index that finds two rows with the same values ends the build. A build that fails, or that a
//! crash ends, is taken back: the index leaves the definition, and its pages are freed.

use firn_api::rows::{BuildObserver, BuildProgress, NewIndex, RowsError};
use firn_base::{IndexId, PageNo, TableId};
use firn_format::definition::{IndexDefinition, IndexKind, IndexState};
use firn_format::key::IndexEntry;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::dictionary::{Ddl, Dictionary, stored};
use crate::error::EngineError;
use crate::lock::LockError;
use crate::log::writer::Purpose;
use crate::table::Table;
use crate::transaction::{
    Cursor, Direction, IsolationLevel, KeyRange, ReadMode, RecordRun, Transaction, WaitPolicy,
};

/// Rows in a batch, about: how many row locks a build holds at once. It begins with few and doubles them, since of
/// more rows more entries share pages, and has half of them again where it meets writers.
const FEWEST_BATCH_ROWS: usize = 500;
const MOST_BATCH_ROWS: usize = 8_000;
/// How often in a row a batch may be the victim of a deadlock.
const MAX_DEADLOCKS: usize = 100;

/// What a batch came to.
struct BatchEnd {
    rows: u64,
    /// The last row's key; `None`: there are no more rows.
    last: Option<Vec<u8>>,
}

impl Dictionary {
    /// Adds an index to a table, while others read and write it. `progress` is called after each batch,
    /// and ends the build by returning false. Blocks for as long as it takes.
    ///
    /// # Errors
    /// [`EngineError::DuplicateKey`] if the index is to be unique and the rows do not allow it,
    /// [`EngineError::IndexExists`], [`EngineError::Definition`] if there cannot be such an index,
    /// [`LockError::Cancelled`] if `progress` ended it, locks that were not granted, or why a page or the
    /// log could not be had. The index is then gone.
    pub fn add_index(
        &self,
        table: TableId,
        new: &NewIndex,
        mut progress: impl FnMut(BuildProgress) -> bool,
    ) -> Result<IndexId, EngineError> {
        self.add_index_watched(table, new, &mut progress)
    }

    /// As [`Dictionary::add_index`]; `observer` is told of more.
    ///
    /// # Errors
    /// As [`Dictionary::add_index`], and what `observer` answers.
    pub fn add_index_watched(
        &self,
        table: TableId,
        new: &NewIndex,
        observer: &mut dyn BuildObserver,
    ) -> Result<IndexId, EngineError> {
        observer.definition_changes().map_err(refused)?;
        let index = self.start_build(table, new, &*observer)?;
        observer.definition_changed();
        let built = self.fill(table, index, observer);
        let built = built.and_then(|()| {
            observer.definition_changes().map_err(refused)?;
            self.finish_build(table, index, &*observer)
        });
        if let Err(error) = built {
            self.take_back_build(table, index)?;
            return Err(error);
        }
        Ok(index)
    }

    fn start_build(
        &self,
        table: TableId,
        new: &NewIndex,
        observer: &dyn BuildObserver,
    ) -> Result<IndexId, EngineError> {
        let mut ddl = self.ddl_watched(observer)?;
        let mut root = IndexId(0);
        ddl.alter_table(table, |definition| {
            if definition.indexes.iter().any(|index| index.name == new.name) {
                return Err(EngineError::IndexExists(new.name.as_str().into()));
            }
            definition.indexes.push(IndexDefinition {
                index_id: IndexId(0),
                name: new.name.clone(),
                kind: if new.unique { IndexKind::Unique } else { IndexKind::Secondary },
                state: IndexState::Building,
                root_page: PageNo::NONE,
                parts: new.parts.clone(),
                options: new.options.clone(),
            });
            // Whatever can be wrong with the index shows before it has a page.
            definition.layout()?;
            root = stored::create_tree(&self.system, definition.space, Purpose::Forward)?;
            if let Some(index) = definition.indexes.last_mut() {
                (index.index_id, index.root_page) = (root, root.root().page_no);
            }
            Ok(())
        })?;
        ddl.commit()?;
        Ok(root)
    }

    /// A change whose waits end when the observer says so.
    fn ddl_watched(&self, observer: &dyn BuildObserver) -> Result<Ddl<'_>, EngineError> {
        let mut ddl = self.ddl()?;
        let (cancelled, timeout) = observer.patience();
        ddl.set_lock_wait_timeout(timeout);
        if let Some(flag) = cancelled {
            ddl.set_cancelled(flag);
        }
        Ok(ddl)
    }

    fn finish_build(
        &self,
        table: TableId,
        index: IndexId,
        observer: &dyn BuildObserver,
    ) -> Result<(), EngineError> {
        let mut ddl = self.ddl_watched(observer)?;
        ddl.alter_table(table, |definition| {
            let found = definition.indexes.iter_mut().find(|other| other.index_id == index);
            found.ok_or(EngineError::NoSuchTree(index))?.state = IndexState::Ready;
            Ok(())
        })?;
        ddl.commit()
    }

    /// Takes an index out that was not finished. Changes nothing if it is gone already.
    pub(super) fn take_back_build(
        &self,
        table: TableId,
        index: IndexId,
    ) -> Result<(), EngineError> {
        let mut ddl = self.ddl()?;
        let mut is_there = false;
        let altered = ddl.alter_table(table, |definition| {
            let before = definition.indexes.len();
            definition.indexes.retain(|other| other.index_id != index);
            is_there = definition.indexes.len() < before;
            Ok(())
        });
        match altered {
            Err(EngineError::NoSuchTable(_)) => return Ok(()),
            Ok(()) if !is_there => return ddl.rollback(),
            other => other?,
        }
        ddl.drop_tree(index)?;
        ddl.commit()
    }

    fn fill(
        &self,
        table: TableId,
        index: IndexId,
        observer: &mut dyn BuildObserver,
    ) -> Result<(), EngineError> {
        let clustered = self.table(table).ok_or(EngineError::NoSuchTable(table))?.clustered();
        let estimate = self.system.forest().tree(clustered).estimate(&[], None)?;
        let (mut after, mut rows_done, mut deadlocks) = (None, 0, 0);
        let mut batch_rows = FEWEST_BATCH_ROWS;
        loop {
            let patience = observer.patience();
            let end = match self.fill_batch(table, index, after.as_deref(), batch_rows, patience) {
                Err(EngineError::Lock(LockError::Deadlock { .. })) if deadlocks < MAX_DEADLOCKS => {
                    deadlocks += 1;
                    batch_rows = (batch_rows / 2).max(FEWEST_BATCH_ROWS);
                    continue;
                }
                other => other?,
            };
            deadlocks = 0;
            batch_rows = (batch_rows * 2).min(MOST_BATCH_ROWS);
            rows_done += end.rows;
            let rows_estimated = estimate.entries.max(rows_done as f64);
            if !observer.progress(BuildProgress { rows_done, rows_estimated }) {
                return Err(LockError::Cancelled.into());
            }
            match end.last {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Puts the entries of the rows behind `after` in, as many as a batch takes.
    fn fill_batch(
        &self,
        table: TableId,
        index: IndexId,
        after: Option<&[u8]>,
        batch_rows: usize,
        (cancelled, timeout): (Option<Arc<AtomicBool>>, Duration),
    ) -> Result<BatchEnd, EngineError> {
        let mut trx = Transaction::begin(&self.system, IsolationLevel::ReadCommitted)?;
        trx.set_lock_wait_timeout(timeout);
        if let Some(flag) = cancelled {
            trx.set_cancelled(flag);
        }
        let table = self.table_for_write(&mut trx, table)?;
        let low = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
        let range = KeyRange { low, high: Bound::Unbounded };
        let mode = ReadMode::Share(WaitPolicy::Wait);
        let mut cursor = Cursor::new(table.clustered(), range, Direction::Forward, mode);
        let (mut entries, mut last) = (RecordRun::default(), None);
        while entries.len() < batch_rows && cursor.fetch(&mut trx)? {
            for (key, payload) in cursor.rows() {
                let entry = entry_of(&table, &trx, index, key, payload)?;
                entries.push(&entry.key, &entry.value);
            }
            last = cursor.rows().last().map(|(key, _)| key.to_vec());
        }
        // In key order, neighbours share pages.
        entries.sort();
        put_entries(&mut trx, index, &mut entries)?;
        let is_end = entries.len() < batch_rows;
        trx.commit_without_waiting()?;
        Ok(BatchEnd { rows: entries.len() as u64, last: last.filter(|_| !is_end) })
    }
}

/// What an observer answered, in the engine's words.
fn refused(error: RowsError) -> EngineError {
    match error {
        RowsError::Deadlock => LockError::Deadlock { cycle: Vec::new() }.into(),
        RowsError::LockWaitTimeout => LockError::Timeout.into(),
        _ => LockError::Cancelled.into(),
    }
}

fn entry_of(
    table: &Arc<Table>,
    trx: &Transaction,
    index: IndexId,
    key: &[u8],
    payload: &[u8],
) -> Result<IndexEntry, EngineError> {
    let (_, layout) = table.find_secondary(index)?;
    table.entry(trx, layout, key, payload)
}

/// Puts entries in that are in key order, unless a writer has done so.
fn put_entries(
    trx: &mut Transaction,
    index: IndexId,
    entries: &mut RecordRun,
) -> Result<(), EngineError> {
    let savepoint = trx.savepoint();
    match trx.insert_run(index, entries) {
        Err(EngineError::DuplicateKey { .. }) => {
            trx.rollback_to(savepoint)?;
            (0..entries.len()).try_for_each(|number| {
                put_entry(trx, index, entries.key(number), entries.payload(number))
            })
        }
        other => other,
    }
}

/// Puts an entry in, unless a writer has done so.
fn put_entry(
    trx: &mut Transaction,
    index: IndexId,
    key: &[u8],
    value: &[u8],
) -> Result<(), EngineError> {
    let mut found = Vec::new();
    loop {
        let duplicate = match trx.insert(index, key, value) {
            Err(error @ EngineError::DuplicateKey { .. }) => error,
            other => return other,
        };
        let mode = ReadMode::Share(WaitPolicy::Wait);
        if trx.get(index, key, mode, &mut found)? {
            return if found == value { Ok(()) } else { Err(duplicate) };
        }
    }
}
