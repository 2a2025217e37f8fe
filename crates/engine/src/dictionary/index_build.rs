//! Adding an index while the table is written.
//!
//! ```text
//!   exclusive lock  the index is in the definition, building: all writers maintain it from now on
//!   batches         rows are read with shared locks, in key order; their entries are added; commit
//!   exclusive lock  the index is ready
//! ```
//!
//! A batch sees the newest version of each row and keeps the row unchanged until it commits. So the
//! batch inserts an entry exactly if the row has it now. If a writer has inserted the entry
//! already, it is the same entry. A writer that removes an entry before any batch has inserted it
//! finds nothing, which is right (tables, rule 5).
//!
//! If two rows have the same values, the build of a unique index ends with an error. A build that
//! fails, or that a crash interrupts, is undone: the index leaves the definition, and its pages are
//! freed.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_api::rows::{BuildProgress, NewIndex};
use firn_base::{IndexId, PageNo, TableId};
use firn_format::definition::{IndexDefinition, IndexKind, IndexState};
use firn_format::key::IndexEntry;

use crate::dictionary::{Ddl, Dictionary, stored};
use crate::error::EngineError;
use crate::lock::LockError;
use crate::log::writer::Purpose;
use crate::table::Table;
use crate::transaction::{
    Cursor, Direction, IsolationLevel, KeyRange, ReadMode, RecordRun, Transaction, WaitPolicy,
};

/// About how many rows a batch has, and so how many row locks a build holds at once. A build begins
/// with the fewest and doubles the number after each batch, because entries of more rows share more
/// pages. After a deadlock with writers it halves the number.
const FEWEST_BATCH_ROWS: usize = 500;
const MOST_BATCH_ROWS: usize = 8_000;
/// How many times in succession a batch may be the victim of a deadlock.
const MAX_DEADLOCKS: usize = 100;

struct BatchEnd {
    rows: u64,
    /// The last row's key; `None`: there are no more rows.
    last: Option<Vec<u8>>,
}

/// How long a build waits, and how it is cancelled.
#[derive(Debug, Clone)]
pub struct BuildPatience {
    /// The longest wait for one lock.
    pub lock_wait_timeout: Duration,
    /// The flag that cancels the build.
    pub cancelled: Option<Arc<AtomicBool>>,
}

impl Default for BuildPatience {
    fn default() -> BuildPatience {
        BuildPatience { lock_wait_timeout: Duration::from_secs(50), cancelled: None }
    }
}

/// An index that is being built. Dropping it takes the index out of the definition; if the thread
/// panics, the next start does so.
pub struct IndexBuild {
    dictionary: Arc<Dictionary>,
    table: TableId,
    index: IndexId,
    patience: BuildPatience,
    entries_estimated: f64,
    /// The last row that has its entry.
    after: Option<Vec<u8>>,
    rows_done: u64,
    batch_rows: usize,
    is_filled: bool,
    is_ready: bool,
}

impl Dictionary {
    /// Adds an index to a table while other transactions read and write it. Calls `progress` after
    /// each batch; if it returns false, the build ends. Blocks until the index is ready.
    ///
    /// # Errors
    /// As [`Dictionary::begin_index`] and [`IndexBuild::step`]; [`LockError::Cancelled`] if
    /// `progress` ended the build. The index no longer exists after an error.
    pub fn add_index(
        self: &Arc<Dictionary>,
        table: TableId,
        new: &NewIndex,
        mut progress: impl FnMut(BuildProgress) -> bool,
    ) -> Result<IndexId, EngineError> {
        let mut build = self.begin_index(table, new, BuildPatience::default())?;
        while !build.is_filled() {
            if !progress(build.step()?) {
                return Err(LockError::Cancelled.into());
            }
        }
        build.finish()
    }

    /// Puts an index into a table's definition; writers maintain it from then on. Blocks until no
    /// transaction writes the table.
    ///
    /// # Errors
    /// [`EngineError::IndexExists`], [`EngineError::Definition`] if the index is invalid, locks
    /// that were not granted, or an error of the page store or the log.
    pub fn begin_index(
        self: &Arc<Dictionary>,
        table: TableId,
        new: &NewIndex,
        patience: BuildPatience,
    ) -> Result<IndexBuild, EngineError> {
        let index = self.start_build(table, new, &patience)?;
        let mut build = IndexBuild {
            dictionary: Arc::clone(self),
            table,
            index,
            patience,
            entries_estimated: 0.0,
            after: None,
            rows_done: 0,
            batch_rows: FEWEST_BATCH_ROWS,
            is_filled: false,
            is_ready: false,
        };
        let clustered = self.table(table).ok_or(EngineError::NoSuchTable(table))?.clustered();
        let estimate = self.system.forest().tree(clustered).estimate(&[], None)?;
        build.entries_estimated = estimate.entries;
        Ok(build)
    }

    fn start_build(
        self: &Arc<Dictionary>,
        table: TableId,
        new: &NewIndex,
        patience: &BuildPatience,
    ) -> Result<IndexId, EngineError> {
        let mut ddl = self.patient_ddl(patience)?;
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
            // Any fault of the index shows before it has a page.
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

    fn patient_ddl(self: &Arc<Dictionary>, patience: &BuildPatience) -> Result<Ddl, EngineError> {
        let mut ddl = self.ddl()?;
        ddl.set_lock_wait_timeout(patience.lock_wait_timeout);
        if let Some(flag) = &patience.cancelled {
            ddl.set_cancelled(Arc::clone(flag));
        }
        Ok(ddl)
    }

    /// Removes an unfinished index. Changes nothing if it does not exist any more.
    pub(super) fn take_back_build(
        self: &Arc<Dictionary>,
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
}

impl IndexBuild {
    /// Whether every row has its entry.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.is_filled
    }

    /// Inserts the entries of one batch of rows. Blocks for I/O and row locks.
    ///
    /// # Errors
    /// [`EngineError::DuplicateKey`] if two rows have the same values in a unique index; a
    /// cancelled build; locks that were not granted; errors of the page store and the log.
    pub fn step(&mut self) -> Result<BuildProgress, EngineError> {
        let mut deadlocks = 0;
        let end = loop {
            match self.fill_batch() {
                Err(EngineError::Lock(LockError::Deadlock { .. })) if deadlocks < MAX_DEADLOCKS => {
                    deadlocks += 1;
                    self.batch_rows = (self.batch_rows / 2).max(FEWEST_BATCH_ROWS);
                }
                other => break other?,
            }
        };
        self.batch_rows = (self.batch_rows * 2).min(MOST_BATCH_ROWS);
        self.rows_done += end.rows;
        self.is_filled = end.last.is_none();
        self.after = end.last;
        let rows_estimated = self.entries_estimated.max(self.rows_done as f64);
        Ok(BuildProgress { rows_done: self.rows_done, rows_estimated })
    }

    /// Inserts the entries of the rows after `after`, up to one batch.
    fn fill_batch(&self) -> Result<BatchEnd, EngineError> {
        let system = &self.dictionary.system;
        let mut trx = Transaction::begin(system, IsolationLevel::ReadCommitted)?;
        trx.set_lock_wait_timeout(self.patience.lock_wait_timeout);
        if let Some(flag) = &self.patience.cancelled {
            trx.set_cancelled(Arc::clone(flag));
        }
        let table = self.dictionary.table_for_write(&mut trx, self.table)?;
        let after = self.after.as_deref();
        let low = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
        let range = KeyRange { low, high: Bound::Unbounded };
        let mode = ReadMode::Share(WaitPolicy::Wait);
        let mut cursor = Cursor::new(table.clustered(), range, Direction::Forward, mode);
        let (mut entries, mut last) = (RecordRun::default(), None);
        while entries.len() < self.batch_rows && cursor.fetch(&mut trx)? {
            for (key, payload) in cursor.rows() {
                let entry = entry_of(&table, &trx, self.index, key, payload)?;
                entries.push(&entry.key, &entry.value);
            }
            last = cursor.rows().last().map(|(key, _)| key.to_vec());
        }
        // Neighbours in key order share pages.
        entries.sort();
        put_entries(&mut trx, self.index, &mut entries)?;
        let is_end = entries.len() < self.batch_rows;
        trx.commit_without_waiting()?;
        Ok(BatchEnd { rows: entries.len() as u64, last: last.filter(|_| !is_end) })
    }

    /// Lets statements use the index. Blocks until no transaction writes the table.
    ///
    /// # Errors
    /// Locks that were not granted, or a failed log. The index no longer exists after an error.
    pub fn finish(mut self) -> Result<IndexId, EngineError> {
        let index = self.index;
        let mut ddl = self.dictionary.patient_ddl(&self.patience)?;
        ddl.alter_table(self.table, |definition| {
            let found = definition.indexes.iter_mut().find(|other| other.index_id == index);
            found.ok_or(EngineError::NoSuchTree(index))?.state = IndexState::Ready;
            Ok(())
        })?;
        ddl.commit()?;
        self.is_ready = true;
        Ok(index)
    }
}

impl Drop for IndexBuild {
    fn drop(&mut self) {
        if self.is_ready || std::thread::panicking() {
            return;
        }
        if let Err(error) = self.dictionary.take_back_build(self.table, self.index) {
            let (table, index) = (self.table.0, self.index);
            tracing::warn!(%error, table, %index, "a half-built index stays until the next start");
        }
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

/// Inserts entries in key order, except those that a writer has inserted already.
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

/// Inserts an entry, unless a writer has inserted it already.
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
