//! Rows of tables: what SQL asks of a database node.
//!
//! ```text
//!   sql ──► DatabaseNode ──► Table        definitions, codecs of rows and keys
//!              │       └───► Definitions  one atomic change of definitions
//!              └──► Transaction ──► get, insert, update, delete
//!                        └────────► Scan   rows batch by batch
//! ```
//!
//! Rows and keys cross the seam as the node's own bytes, with [`Table::layout`] to read and write
//! them: values are decoded only where they are used. Calls block, and any thread may make them. An
//! index is named by its number in [`TableDefinition::indexes`].

mod batch;
mod cancellation;
mod described;
mod error;
pub mod expression;
mod filter;
mod freshness;
mod handover;
mod left_commit;
mod metadata;
mod summary;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_base::{Cts, LogStreamId, Lsn, PageId, TableId, TrxId};
use firn_format::definition::{ColumnDefinition, IndexPart, TableDefinition, TableLayout};
use firn_format::key::{CollationKeys, KeyRange};
use firn_format::row::{ColumnValue, OverflowReference};
use firn_format::value::{Value, ValueRef};

use crate::report::NodeReport;

pub use batch::{RowBatch, RowSpan};
pub use cancellation::{CancelListener, Cancellation};
pub use described::{DescribedSnapshot, DescribedTransaction, ReadSpan};
pub use error::RowsError;
pub use expression::ExpressionEvaluator;
pub use filter::{Filter, FilteredScan};
pub use freshness::{Awaited, Freshness, ReadConsistency, WriterLease};
pub use handover::{
    HandedLock, HandedOver, HandedSession, HandedSessions, HandedTarget, HandedTransaction,
    HandedWriter, TakenOver,
};
pub use left_commit::{CommitListener, Confirmation};
pub use metadata::{
    DetachedLocks, LockDuration, LockMark, LockPatience, MetadataContext, MetadataLock,
    MetadataLocks,
};
pub use summary::{
    GroupSummary, Grouping, NumberSummary, RowSummaries, Summand, Summaries, Summed,
};

/// A table in a schema with this prefix belongs to one session. No snapshot is too old for it,
/// because no other session writes it.
pub const SESSION_SCHEMA_PREFIX: &str = "#temporary-";

/// The result of a call to a database node.
pub type RowsResult<T> = Result<T, RowsError>;

/// What a transaction sees of others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum IsolationLevel {
    /// Each statement sees what was committed before it began.
    ReadCommitted,
    /// All statements see what was committed before the first read (snapshot isolation).
    #[default]
    RepeatableRead,
    /// As if transactions had run one after the other, in an order consistent with real time.
    Serializable,
}

/// What to do about a lock that another transaction holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum WaitPolicy {
    /// Wait, up to the transaction's timeout.
    #[default]
    Wait,
    /// Fail at once.
    NoWait,
    /// Leave the row out.
    SkipLocked,
}

/// Which version a read returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ReadMode {
    /// The version that the transaction's isolation level asks for; takes no row locks below
    /// SERIALIZABLE.
    #[default]
    Consistent,
    /// The current version, locked against writers (`FOR SHARE`).
    Share(WaitPolicy),
    /// The current version, locked against writers and other locking reads (`FOR UPDATE`).
    Update(WaitPolicy),
}

impl ReadMode {
    /// Whether this is a locking read in a transaction of `isolation`.
    #[must_use]
    pub fn locks(self, isolation: IsolationLevel) -> bool {
        self != ReadMode::Consistent || isolation == IsolationLevel::Serializable
    }
}

/// The direction of a scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Direction {
    /// Ascending keys.
    #[default]
    Forward,
    /// Descending keys.
    Backward,
}

/// One version of a table's definition. It never changes; DDL replaces it by another one.
pub trait Table: Any + Send + Sync {
    /// Columns, indexes, names.
    fn definition(&self) -> &TableDefinition;
    /// The codecs of rows, keys and entries.
    fn layout(&self) -> &TableLayout;
    /// How text is ordered.
    fn collations(&self) -> &dyn CollationKeys;
}

/// A reference that a statement holds to a table.
pub type TableRef = Arc<dyn Table>;

/// A point in a transaction to which it can be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Savepoint(pub u64);

/// How much a transaction has read from its snapshot; the default: nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReadMark(pub u32);

/// What a scan visits, and how.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct ScanOptions {
    /// The index; `None`: the clustered one.
    pub index: Option<usize>,
    /// The keys of the index, see [`firn_format::key::KeyLayout::range`].
    pub range: KeyRange,
    pub direction: Direction,
    /// Which versions are read, with which locks.
    pub mode: ReadMode,
    /// The ordinals that are wanted, if not all. If a secondary index has them all, the scan does
    /// not visit rows.
    pub columns: Option<Box<[u16]>>,
    /// The most rows of a batch; a locking scan locks up to this many in advance.
    pub batch_rows: usize,
    /// The wanted rows, if not all. Only for [`ReadMode::Consistent`]: rows that are left out would
    /// not get their locks.
    pub filter: Option<Box<Filter>>,
    /// The scan ends after this many rows for which the filter is known to be true; `None`: it does
    /// not end early. Only for [`ReadMode::Consistent`].
    pub limit: Option<u64>,
}

impl ScanOptions {
    /// All rows with all columns in primary key order, as the transaction sees them.
    #[must_use]
    pub fn all() -> ScanOptions {
        ScanOptions {
            index: None,
            range: KeyRange::all(),
            direction: Direction::Forward,
            mode: ReadMode::Consistent,
            columns: None,
            batch_rows: usize::MAX,
            filter: None,
            limit: None,
        }
    }
}

/// A row that was looked up.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FoundRow {
    /// The primary key's bytes.
    pub key: Vec<u8>,
    /// The row's bytes.
    pub payload: Vec<u8>,
}

/// A write of a row that was read with [`ReadMode::Update`].
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RowWrite<'a> {
    /// The primary key's bytes.
    pub key: &'a [u8],
    /// The row's bytes, as they were read.
    pub payload: &'a [u8],
    /// The new values of columns by ordinal; `None` deletes the row.
    #[serde(borrow)]
    pub changes: Option<Vec<(usize, ValueRef<'a>)>>,
}

/// A row found by a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanRow<'a> {
    /// The primary key's bytes.
    pub key: &'a [u8],
    /// The row, or its values from the index.
    pub content: RowContent<'a>,
}

/// What a scan knows of a row.
#[derive(Debug, Clone, Copy)]
pub enum RowContent<'a> {
    /// The row's bytes, for [`firn_format::row::RowView`].
    Payload(&'a [u8]),
    /// From the index alone: the wanted columns' values, in the order of [`ScanOptions::columns`].
    Columns(&'a [Value]),
}

/// A leaf of an index at some moment. Equal versions have equal entries. Nodes that write different
/// log streams may have leaves with the same page number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct LeafVersion {
    /// The log stream that changes the leaf.
    pub stream: LogStreamId,
    pub page: PageId,
    /// The page's last change.
    pub lsn: Lsn,
}

/// What a caller already has of the next rows; see [`Scan::fetch_unless_held`].
#[derive(Debug, Clone, Copy)]
pub enum HeldLeaves<'a> {
    /// The caller may have the next leaf. The node names it ([`Fetched::Next`]) and fetches
    /// nothing.
    Unknown,
    /// The caller does not have the next leaf. No leaf is named.
    No,
    /// The caller has these leaves, which followed each other when their rows were fetched. The
    /// first one is the leaf that the node named.
    Leaves(&'a [LeafVersion]),
}

/// The result of [`Scan::fetch_unless_held`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Fetched {
    /// A batch, as after [`Scan::fetch`]. If a leaf is named, the batch is everything that the
    /// snapshot sees of it, and every later snapshot would see the same: the rows of this version
    /// are worth keeping.
    Rows(Option<LeafVersion>),
    /// No batch: this leaf comes next as a whole. The next call says whether the caller has it.
    Next(LeafVersion),
    /// No batch: next in the scan's order come all rows of the first this many of the caller's
    /// leaves. The other leaves have changed, are not cached, or do not come next.
    Held(usize),
    End,
}

/// A scan of a table in the order of one of its indexes.
pub trait Scan: Send {
    /// Fetches the next batch; false at the end. A batch may be empty although more follow. Blocks
    /// for locks and I/O.
    ///
    /// # Errors
    /// Locks that were not granted, a cancelled transaction, damage, or a page that could not be
    /// read.
    fn fetch(&mut self, trx: &mut dyn Transaction) -> RowsResult<bool>;
    /// Like [`Scan::fetch`] for a consistent reader, but skips rows that the caller already has.
    /// Leaves are compared by version, as a web cache compares tags:
    ///
    /// ```text
    ///   Unknown ──► Next(leaf) ──┬─ the caller has it ──► Leaves([leaf, …]) ──► Held(n), or Rows
    ///      │                     │                                        if it has changed since
    ///      └──► Rows, End        └─ or not ─────────────► No ─────────────────► Rows
    /// ```
    ///
    /// # Errors
    /// As [`Scan::fetch`].
    fn fetch_unless_held(
        &mut self,
        trx: &mut dyn Transaction,
        held: HeldLeaves<'_>,
    ) -> RowsResult<Fetched> {
        let _ = held;
        Ok(if self.fetch(trx)? { Fetched::Rows(None) } else { Fetched::End })
    }
    /// Rows in the current batch.
    fn len(&self) -> usize;
    /// Whether the current batch is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A row of the current batch.
    ///
    /// # Panics
    /// If the batch has fewer rows.
    fn row(&self, number: usize) -> ScanRow<'_>;
    /// The current batch as it lies in memory; `None` if the rows come from the index alone.
    fn batch(&self) -> Option<RowBatch<'_>>;
    /// Whether rows come from the index alone.
    fn is_covered(&self) -> bool;
}

/// How many entries and leaves a range of an index has.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// Entries, delete-marked ones included.
    pub entries: f64,
    pub leaves: f64,
    /// Whether the numbers are counted rather than estimated.
    pub is_exact: bool,
}

/// An open transaction. Dropping it rolls it back.
pub trait Transaction: Any + Send {
    fn isolation(&self) -> IsolationLevel;
    /// Its id, once it has written or locked.
    fn id(&self) -> Option<u64>;
    /// The snapshot's timestamp, if one is open.
    fn snapshot(&self) -> Option<Cts>;
    /// Sets the longest wait for a lock.
    fn set_lock_wait_timeout(&mut self, timeout: Duration);
    /// Sets whether REPEATABLE READ refuses a write to a row that has changed since the snapshot
    /// ([`RowsError::WriteConflict`]). On by default.
    fn set_first_updater_wins(&mut self, refuses: bool);
    /// With this, others end the transaction's waits and scans with [`RowsError::Cancelled`].
    fn set_cancelled(&mut self, cancellation: &Arc<Cancellation>);
    /// Sets the session's metadata locks. Tables that they cover need no other lock, and deadlocks
    /// through both metadata and row locks are found.
    fn set_metadata_context(&mut self, context: Arc<dyn MetadataContext>) {
        let _ = context;
    }
    /// Sets what the next snapshot must see, as [`Freshness::catch_up`] returned it. Without effect
    /// while a snapshot is open, and on nodes without [`DatabaseNode::freshness`].
    fn must_see(&mut self, awaited: Option<Awaited>);
    /// Opens the snapshot now instead of at the first read.
    fn open_snapshot(&mut self);
    /// Ends a statement: READ COMMITTED releases its snapshot.
    fn end_statement(&mut self);
    /// From now on, records what is read from the snapshot, so that the snapshot can be renewed
    /// later.
    fn keep_reads(&mut self) {}
    /// Closes the snapshot as if it had never been opened: after a statement that was taken back,
    /// and before which nothing was read from it.
    fn forget_snapshot(&mut self) {}
    /// Whether the transaction may have changed rows: one that has not has no id.
    fn has_written(&self) -> bool {
        self.id().is_some()
    }
    /// How much has been read from the snapshot so far.
    fn read_mark(&self) -> ReadMark {
        ReadMark::default()
    }
    /// Call this after a statement was refused with [`RowsError::WriteConflict`] and undone. Takes
    /// a newer snapshot that includes the change, and locks the conflicting row, so that the
    /// statement can run again. False if what was read up to `before`, when the statement began,
    /// differs in the newer snapshot. Blocks for locks and I/O.
    ///
    /// # Errors
    /// The lock was not granted, or a page could not be read.
    fn renew_snapshot(&mut self, before: ReadMark) -> RowsResult<bool> {
        let _ = before;
        Ok(false)
    }
    /// Describes the transaction, for another node to go on with it
    /// ([`DatabaseNode::take_up`]). It stays open here. `None` if it has written or locked, is
    /// SERIALIZABLE, whose reads are locks at the node that writes, or the node cannot describe it.
    ///
    /// # Errors
    /// The node cannot be reached.
    fn describe(&mut self) -> RowsResult<Option<DescribedTransaction>> {
        Ok(None)
    }
    /// Another reader of what this transaction sees at this moment, for use on another thread:
    /// consistent reads only. It must be dropped before the snapshot is released and before the
    /// transaction writes again. `None`: reads of this transaction lock, or the node has no such
    /// readers.
    fn reader(&mut self) -> Option<Box<dyn Transaction>> {
        None
    }

    /// A table for consistent reads; opens the snapshot.
    ///
    /// # Errors
    /// [`RowsError::NoSuchTable`]; [`RowsError::TableChanged`] if the snapshot is too old for it.
    fn table_for_read(&mut self, table: TableId) -> RowsResult<TableRef>;
    /// Whether `table`, looked up while [`DatabaseNode::definitions_version`] was `version`, is
    /// what [`Transaction::table_for_read`] would return now; opens the snapshot. Cheaper than that
    /// call, and writes nothing that sessions share. False means unknown.
    fn is_current(&mut self, table: &TableRef, version: u64) -> bool {
        let _ = (table, version);
        false
    }
    /// A table for writes and locking reads; takes a shared lock on it until the transaction ends.
    ///
    /// # Errors
    /// [`RowsError::NoSuchTable`], or the lock was not granted.
    fn table_for_write(&mut self, table: TableId) -> RowsResult<TableRef>;
    /// Locks `table` as [`Transaction::table_for_write`] does. Returns whether that call would
    /// return this same table, which was looked up while [`DatabaseNode::definitions_version`] was
    /// `version`. Cheaper than that call. False means unknown.
    ///
    /// # Errors
    /// If the lock is not granted.
    fn lock_current(&mut self, table: &TableRef, version: u64) -> RowsResult<bool> {
        let _ = (table, version);
        Ok(false)
    }
    /// Compares the table's rows with the entries of its indexes, as the snapshot sees both.
    /// Returns the differences as text. Blocks for I/O.
    ///
    /// # Errors
    /// A cancelled transaction, or a page that could not be read.
    fn check_table(&mut self, table: &TableRef) -> RowsResult<Vec<String>>;

    /// Reads the row with this primary key into `payload`; false if there is none.
    ///
    /// # Errors
    /// Locks that were not granted, a conflict with the snapshot, or a page that could not be read.
    fn get(
        &mut self,
        table: &TableRef,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> RowsResult<bool>;
    /// Reads the row that the entry with this key in a unique index points to; its key goes to
    /// `primary_key`.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    fn get_by_entry(
        &mut self,
        table: &TableRef,
        index: usize,
        entry: &[u8],
        mode: ReadMode,
        primary_key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> RowsResult<bool>;
    /// Reads the rows with these keys in the clustered index, or those that the entries with these
    /// keys in a unique index point to; `found` gets the result for each, in their order.
    ///
    /// # Errors
    /// As [`Transaction::get`], for any of them.
    fn get_rows(
        &mut self,
        table: &TableRef,
        index: Option<usize>,
        keys: &[Vec<u8>],
        mode: ReadMode,
        found: &mut Vec<Option<FoundRow>>,
    ) -> RowsResult<()> {
        for key in keys {
            let mut row = FoundRow { key: Vec::new(), payload: Vec::new() };
            let is_there = match index {
                None => {
                    row.key.clone_from(key);
                    self.get(table, key, mode, &mut row.payload)?
                }
                Some(index) => {
                    self.get_by_entry(table, index, key, mode, &mut row.key, &mut row.payload)?
                }
            };
            found.push(is_there.then_some(row));
        }
        Ok(())
    }
    /// A scan; reads nothing yet.
    ///
    /// # Errors
    /// [`RowsError::NoSuchIndex`]; [`RowsError::TableChanged`] if the index is younger than the
    /// snapshot.
    fn scan(&mut self, table: &TableRef, options: &ScanOptions) -> RowsResult<Box<dyn Scan>>;
    /// The summary of a consistent scan's rows by groups, without a limit; may read some of them
    /// already. `None`: the node can do no better than a scan.
    ///
    /// # Errors
    /// As a scan.
    fn summarise(
        &mut self,
        table: &TableRef,
        options: &ScanOptions,
        grouping: &Grouping,
    ) -> RowsResult<Option<Box<dyn Summaries>>> {
        let _ = (table, options, grouping);
        Ok(None)
    }
    /// Releases the lock on a row that was read with a lock and turned out not to match; does
    /// nothing where the isolation level keeps such locks.
    fn unlock(&mut self, table: &TableRef, key: &[u8]);
    /// Appends a part of an out-of-line value to `into`.
    ///
    /// # Errors
    /// If the value is damaged or cannot be read.
    fn read_overflow(
        &self,
        table: &TableRef,
        reference: OverflowReference,
        range: Range<u64>,
        into: &mut Vec<u8>,
    ) -> RowsResult<()>;

    /// Inserts a row: one value for each ordinal; values of dropped columns are ignored. A NULL
    /// hidden row id takes the next one; a copy of another row keeps that row's id.
    ///
    /// # Errors
    /// [`RowsError::DuplicateKey`], values that do not fit, or locks that were not granted. Nothing
    /// of the row remains then.
    fn insert(&mut self, table: &TableRef, row: &[ValueRef<'_>]) -> RowsResult<()>;

    /// Inserts rows: one value for each ordinal, row after row. Costs far less than one call per
    /// row if rows come in primary key order.
    ///
    /// # Errors
    /// As [`Transaction::insert`], for any of the rows. Nothing of any row remains then.
    fn insert_rows(&mut self, table: &TableRef, values: &[ValueRef<'_>]) -> RowsResult<()>;

    /// Changes columns of a row that was read with [`ReadMode::Update`]; `payload` is what was
    /// read.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    fn update(
        &mut self,
        table: &TableRef,
        key: &[u8],
        payload: &[u8],
        changes: &[(usize, ValueRef<'_>)],
    ) -> RowsResult<()>;
    /// Deletes a row that was read with [`ReadMode::Update`]; `payload` is what was read.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    fn delete(&mut self, table: &TableRef, key: &[u8], payload: &[u8]) -> RowsResult<()>;
    /// Changes and deletes rows, one after the other.
    ///
    /// # Errors
    /// As [`Transaction::update`] and [`Transaction::delete`], for any of the rows. All of them
    /// are as before then, unless the error ends the transaction.
    fn write_rows(&mut self, table: &TableRef, rows: &[RowWrite<'_>]) -> RowsResult<()> {
        let before = self.savepoint();
        for row in rows {
            let written = match &row.changes {
                Some(changes) => self.update(table, row.key, row.payload, changes),
                None => self.delete(table, row.key, row.payload),
            };
            if let Err(error) = written {
                if !error.ends_transaction() {
                    self.rollback_to(before)?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// The current point.
    fn savepoint(&self) -> Savepoint;
    /// Undoes everything since `savepoint`; locks are kept.
    ///
    /// # Errors
    /// A page or the log could not be read. The caller must then roll the transaction back.
    fn rollback_to(&mut self, savepoint: Savepoint) -> RowsResult<()>;
    /// Commits, and blocks until the commit is durable.
    ///
    /// # Errors
    /// [`RowsError::OutcomeUnknown`]: the commit may or may not survive a restart. With any other
    /// error the transaction is not committed.
    fn commit(self: Box<Self>) -> RowsResult<()>;
    /// As [`Transaction::commit`], but may return before the commit is durable, and leave the
    /// outcome to `listener`. Every later snapshot sees the transaction. A node that never leaves a
    /// commit waits for all of them.
    ///
    /// # Errors
    /// As [`Transaction::commit`]; the listener is not called then.
    fn commit_or_leave(
        self: Box<Self>,
        _listener: &Arc<dyn CommitListener>,
    ) -> RowsResult<Confirmation> {
        self.commit().map(|()| Confirmation::Durable)
    }
    /// Undoes everything.
    ///
    /// # Errors
    /// A page or the log could not be read; the rest is undone at the next start.
    fn rollback(self: Box<Self>) -> RowsResult<()>;
    /// Makes the transaction survive the session and a crash under `xid` (XA). `locks` are its
    /// metadata locks, see [`MetadataContext::detach`]: they are dropped when the transaction has
    /// ended.
    ///
    /// # Errors
    /// If the identifier is too long or taken; [`RowsError::OutcomeUnknown`]: the transaction may
    /// or may not be prepared.
    fn prepare(self: Box<Self>, xid: &[u8], locks: DetachedLocks) -> RowsResult<Prepared>;
    /// Writes down what another node needs to go on with the transaction, for `session` and in the
    /// handover with this number, and marks its undo log. The transaction itself is unchanged; it
    /// goes on here if the handover fails. `locks`: those that its session has detached. `None` if
    /// the node cannot hand this transaction over. See [`DatabaseNode::hand_over`].
    ///
    /// # Errors
    /// If the log has failed or a page cannot be read.
    fn hand_over(
        &mut self,
        handover: u64,
        session: u64,
        locks: &DetachedLocks,
    ) -> RowsResult<Option<HandedTransaction>> {
        let _ = (handover, session, locks);
        Ok(None)
    }
}

/// What a participant reports to its coordinator once it is prepared (paper 000 §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prepared {
    /// Where the prepare record ends in the log; durable up to there.
    pub position: Lsn,
    /// No commit timestamp of the transaction may be below this. COMMITTING raises it
    /// ([`DatabaseNode::set_committing`]).
    pub lowest: Cts,
    /// The transaction's id, for coordinators that reach the node's transaction table.
    pub trx: TrxId,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct NewIndex {
    pub name: String,
    /// Whether equal values are refused.
    pub unique: bool,
    pub parts: Vec<IndexPart>,
    /// Options of the SQL layer.
    pub options: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BuildProgress {
    /// Rows whose entries are in the index.
    pub rows_done: u64,
    pub rows_estimated: f64,
}

/// An index that is being built while others read and write the table. Its caller drives it step by
/// step. Dropping it removes the index from the definition and blocks for that.
pub trait IndexBuild: Send {
    /// Adds the entries of some more rows. Blocks for I/O and for the locks on these rows.
    ///
    /// # Errors
    /// [`RowsError::DuplicateKey`] if rows have equal values in a unique index; cancelled waits and
    /// locks that were not granted. The build cannot continue after an error.
    fn step(&mut self) -> RowsResult<BuildProgress>;
    /// Whether all rows have their entries.
    fn is_filled(&self) -> bool;
    /// Lets statements use the index. No other session may use the table: the caller holds a lock
    /// that ensures this, or waits here until writers have ended. Blocks.
    ///
    /// # Errors
    /// The lock was not granted, or the log has failed. The index is then gone.
    fn finish(self: Box<Self>) -> RowsResult<()>;
}

/// One atomic change of definitions (a DDL statement). Dropping it rolls it back.
pub trait Definitions: Send {
    /// Sets the longest wait for the locks on the tables.
    fn set_lock_wait_timeout(&mut self, timeout: Duration);
    /// With this, others end the waits of this change with [`RowsError::Cancelled`].
    fn set_cancelled(&mut self, cancellation: &Arc<Cancellation>);
    /// As [`Transaction::set_metadata_context`].
    fn set_metadata_context(&mut self, context: Arc<dyn MetadataContext>);
    /// Creates a schema.
    ///
    /// # Errors
    /// [`RowsError::SchemaExists`].
    fn create_schema(&mut self, name: &str, options: &[u8]) -> RowsResult<()>;
    /// Replaces a schema's options.
    ///
    /// # Errors
    /// [`RowsError::NoSuchSchema`].
    fn alter_schema(&mut self, name: &str, options: &[u8]) -> RowsResult<()>;
    /// Drops a schema with all its tables.
    ///
    /// # Errors
    /// [`RowsError::NoSuchSchema`], or a table's lock was not granted.
    fn drop_schema(&mut self, name: &str) -> RowsResult<()>;
    /// Creates a table; fills in ids, row versions and, without a primary key, the hidden row id.
    ///
    /// # Errors
    /// [`RowsError::TableExists`], [`RowsError::NoSuchSchema`], or an invalid definition.
    fn create_table(&mut self, definition: TableDefinition) -> RowsResult<TableId>;
    /// Drops a table.
    ///
    /// # Errors
    /// [`RowsError::NoSuchTable`], or its lock was not granted.
    fn drop_table(&mut self, table: TableId) -> RowsResult<()>;
    /// Empties a table and resets its counters.
    ///
    /// # Errors
    /// As [`Definitions::drop_table`].
    fn truncate_table(&mut self, table: TableId) -> RowsResult<()>;
    /// Renames a table, in the same schema or into another one.
    ///
    /// # Errors
    /// [`RowsError::TableExists`], [`RowsError::NoSuchSchema`], and as [`Definitions::drop_table`].
    fn rename_table(&mut self, table: TableId, schema: &str, name: &str) -> RowsResult<()>;
    /// Gives a table that was filled earlier the name of one that this change drops. Transactions
    /// with an older snapshot than the change get [`RowsError::TableChanged`] for it.
    ///
    /// # Errors
    /// As [`Definitions::rename_table`].
    fn replace_table(&mut self, table: TableId, schema: &str, name: &str) -> RowsResult<()>;
    /// Adds a column at the end and returns its ordinal; existing rows get its instant default.
    ///
    /// # Errors
    /// As [`Definitions::drop_table`], or an invalid column.
    fn add_column(&mut self, table: TableId, column: ColumnDefinition) -> RowsResult<u16>;
    /// Drops a column that no index has; rows keep its bytes until they are written again.
    ///
    /// # Errors
    /// As [`Definitions::drop_table`], or there is no such column.
    fn drop_column(&mut self, table: TableId, ordinal: u16) -> RowsResult<()>;
    /// The definition of a table as this change has left it so far, ready to be altered. Locks the
    /// table.
    ///
    /// # Errors
    /// As [`Definitions::drop_table`].
    fn lock_definition(&mut self, table: TableId) -> RowsResult<TableDefinition>;
    /// Replaces a definition by an altered copy. They differ only in what does not affect stored
    /// bytes: names of columns and indexes, defaults, options, longer strings. `definition` names
    /// the table, and its `schema_version` names the definition that it replaces.
    ///
    /// # Errors
    /// [`RowsError::TableChanged`] if the table has another version by now; errors of
    /// [`Definitions::drop_table`]; or a change that stored rows would not survive.
    fn alter_options(&mut self, definition: TableDefinition) -> RowsResult<()>;
    /// Drops a secondary index.
    ///
    /// # Errors
    /// [`RowsError::NoSuchIndex`], and as [`Definitions::drop_table`].
    fn drop_index(&mut self, table: TableId, name: &str) -> RowsResult<()>;
    /// Makes the whole change durable and visible to all, or none of it.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    fn commit(self: Box<Self>) -> RowsResult<()>;
}

/// A database node as SQL sees it.
pub trait DatabaseNode: Send + Sync {
    /// Begins a transaction. Does not block.
    ///
    /// # Errors
    /// If the node has as many open transactions as it was set up for.
    fn begin(&self, isolation: IsolationLevel) -> RowsResult<Box<dyn Transaction>>;

    /// Begins a transaction at a snapshot chosen elsewhere, which is never renewed. Blocks for a
    /// round trip to the source of commit timestamps.
    ///
    /// # Errors
    /// As [`DatabaseNode::begin`]; if the snapshot is too old; or if the node numbers commits
    /// itself and has not reached it yet.
    fn begin_at(
        &self,
        isolation: IsolationLevel,
        snapshot: Cts,
    ) -> RowsResult<Box<dyn Transaction>>;

    /// Begins a transaction that goes on as one of another node, which describes it
    /// ([`Transaction::describe`]) and keeps it open until then. Blocks as
    /// [`DatabaseNode::begin_at`]. A node without this does not know what was read, so that the
    /// snapshot is never renewed.
    ///
    /// # Errors
    /// As [`DatabaseNode::begin_at`].
    fn take_up(&self, described: &DescribedTransaction) -> RowsResult<Box<dyn Transaction>> {
        match &described.snapshot {
            None => self.begin(described.isolation),
            Some(snapshot) => self.begin_at(described.isolation, snapshot.at),
        }
    }

    /// Whether each call is a message. In that case the node should leave out rows that a statement
    /// does not want ([`ScanOptions::filter`]), and wanted rows should be requested together
    /// ([`Transaction::get_rows`]).
    fn is_remote(&self) -> bool {
        false
    }
    /// What the node reports about itself; zeros if nothing counts for it. Too slow for every
    /// statement.
    ///
    /// # Errors
    /// As [`DatabaseNode::schemas`].
    fn report(&self) -> RowsResult<NodeReport> {
        Ok(NodeReport::default())
    }
    /// The node's state as text for people (`SHOW ENGINE INNODB STATUS`); empty if it has none. Too
    /// slow for every statement.
    ///
    /// # Errors
    /// As [`DatabaseNode::schemas`].
    fn status_text(&self) -> RowsResult<String> {
        Ok(String::new())
    }
    /// Changes whenever a definition changes or is about to. A look-up made after reading this
    /// value is valid until the value changes.
    fn definitions_version(&self) -> u64;
    /// The schemas' names, sorted.
    ///
    /// # Errors
    /// If the node cannot be reached, as for all look-ups.
    fn schemas(&self) -> RowsResult<Vec<Box<str>>>;
    /// The options that the SQL layer stores with a schema; `None` if there is no such schema.
    ///
    /// # Errors
    /// As [`DatabaseNode::schemas`].
    fn schema_options(&self, schema: &str) -> RowsResult<Option<Arc<[u8]>>>;
    /// The tables of a schema, sorted by name; `None` if there is no such schema.
    ///
    /// # Errors
    /// As [`DatabaseNode::schemas`].
    fn tables_of(&self, schema: &str) -> RowsResult<Option<Vec<TableRef>>>;
    /// A table by its name. Waits while a change of the table commits.
    ///
    /// # Errors
    /// As [`DatabaseNode::schemas`].
    fn table_named(&self, schema: &str, name: &str) -> RowsResult<Option<TableRef>>;
    /// A table by its id. Waits while a change of the table commits.
    ///
    /// # Errors
    /// As [`DatabaseNode::schemas`].
    fn table(&self, table: TableId) -> RowsResult<Option<TableRef>>;
    /// Begins a change of definitions.
    ///
    /// # Errors
    /// If the node has as many open transactions as it was set up for.
    fn change_definitions(&self) -> RowsResult<Box<dyn Definitions>>;
    /// Adds an index to a table's definition and begins to build it. No other session may use the
    /// table during this call; see [`IndexBuild::finish`]. `cancelled` ends the build's waits and
    /// steps, and `lock_wait_timeout` limits each wait. Blocks.
    ///
    /// # Errors
    /// [`RowsError::IndexExists`], an invalid index, or a lock that was not granted.
    fn begin_index(
        &self,
        table: TableId,
        new: &NewIndex,
        lock_wait_timeout: Duration,
        cancelled: Option<&Arc<Cancellation>>,
    ) -> RowsResult<Box<dyn IndexBuild>>;

    /// Ends a handover of open transactions: from now on no transaction commits here, until
    /// [`DatabaseNode::keep_writing`]. Transactions that cannot go on elsewhere are left out.
    /// Blocks until everything is durable.
    ///
    /// # Errors
    /// If the log has failed.
    fn hand_over(
        &self,
        handover: u64,
        transactions: Vec<HandedTransaction>,
    ) -> RowsResult<HandedOver> {
        let _ = transactions;
        Ok(HandedOver { number: handover, ..HandedOver::default() })
    }

    /// No other node writes after all: transactions commit here again.
    fn keep_writing(&self) {}

    /// How reads of this node wait for what is newest elsewhere; `None`: this node has it.
    fn freshness(&self) -> Option<Arc<dyn Freshness>> {
        None
    }

    /// Grants metadata locks on tables.
    fn metadata_locks(&self) -> Arc<dyn MetadataLocks>;

    /// Takes `count` consecutive `AUTO_INCREMENT` values and returns the first one.
    ///
    /// # Errors
    /// If the counter is exhausted.
    fn take_auto_increment(&self, table: &TableRef, count: u64) -> RowsResult<u64>;
    /// Tells the counter that `value` is in use.
    ///
    /// # Errors
    /// If the counter cannot be stored.
    fn pass_auto_increment(&self, table: &TableRef, value: u64) -> RowsResult<()>;
    /// The value that comes next.
    ///
    /// # Errors
    /// If the counter cannot be read.
    fn next_auto_increment(&self, table: &TableRef) -> RowsResult<u64>;

    /// Estimates how many entries a range of an index has, from a few pages of its tree; index
    /// `None` is the clustered one.
    ///
    /// # Errors
    /// If a page cannot be read.
    fn estimate(
        &self,
        table: &TableRef,
        index: Option<usize>,
        range: &KeyRange,
    ) -> RowsResult<Estimate>;

    /// The identifiers of prepared transactions.
    ///
    /// # Errors
    /// As [`DatabaseNode::schemas`].
    fn prepared_transactions(&self) -> RowsResult<Vec<Box<[u8]>>>;
    /// Sets a prepared transaction to COMMITTING, before its coordinator chooses the commit
    /// timestamp: readers of its rows wait for its end from now on. Returns the lowest timestamp
    /// that the coordinator may choose. May be repeated; a later call returns a later one.
    ///
    /// # Errors
    /// [`RowsError::NoSuchPrepared`].
    fn set_committing(&self, xid: &[u8]) -> RowsResult<Cts>;
    /// Commits a prepared transaction, at the timestamp chosen by its coordinator if there is one.
    /// For such a timestamp the transaction must be COMMITTING.
    ///
    /// # Errors
    /// [`RowsError::NoSuchPrepared`]; [`RowsError::OutcomeUnknown`]; or the timestamp is too low,
    /// or the source of timestamps does not answer, and the transaction stays prepared.
    fn commit_prepared(&self, xid: &[u8], at: Option<Cts>) -> RowsResult<()>;
    /// Rolls a prepared transaction back.
    ///
    /// # Errors
    /// [`RowsError::NoSuchPrepared`], or the log has failed.
    fn rollback_prepared(&self, xid: &[u8]) -> RowsResult<()>;
}

/// A cell's value; an out-of-line value is read into `buffer`, which blocks for I/O.
///
/// # Errors
/// If the value is damaged or cannot be read.
#[inline]
pub fn cell_value<'a>(
    trx: &dyn Transaction,
    table: &TableRef,
    cell: ColumnValue<'a>,
    buffer: &'a mut Vec<u8>,
) -> RowsResult<ValueRef<'a>> {
    match cell {
        ColumnValue::Inline(value) => Ok(value),
        ColumnValue::Overflow(reference) => {
            buffer.clear();
            trx.read_overflow(table, reference, 0..u64::MAX, buffer)?;
            Ok(ValueRef::Bytes(buffer))
        }
    }
}
