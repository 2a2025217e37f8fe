//! The messages between a compute node and a database node. See [`crate`] for the rules.
//!
//! The order of variants and fields is the format: new ones are added at the end, and the version
//! in [`crate::codec`] counts every other change.

use std::time::Duration;

use firn_api::report::NodeReport;
use firn_api::rows::{
    BuildProgress, DescribedTransaction, Estimate, Fetched, FoundRow, Grouping, IsolationLevel,
    LeafVersion, LockDuration, LockMark, MetadataLock, NewIndex, Prepared, ReadMark, ReadMode,
    RowSpan, RowWrite, RowsError, Savepoint, ScanOptions, Summed,
};
use firn_base::{Cts, TableId};
use firn_format::key::KeyRange;
use firn_format::row::OverflowReference;
use firn_format::value::{Value, ValueRef};
use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

/// A client's object at the node; the client chooses the numbers (M1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Handle(pub u64);

/// The number of a call, unique among the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallNumber(pub u64);

/// One version of a table's definition (M4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TableVersion {
    pub table: TableId,
    /// The definition's `schema_version`.
    pub version: u64,
}

/// From a client to a node.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message<'a> {
    /// Answered by a [`Reply`].
    Call {
        number: CallNumber,
        #[serde(borrow)]
        call: Call<'a>,
    },
    /// Cancels this call. Has no reply.
    Cancel(CallNumber),
    /// The client no longer uses this object; unfinished work of it is undone. Has no reply.
    Close(Handle),
    /// The client no longer uses this scan or summary. Has no reply.
    CloseScan { transaction: Handle, scan: Handle },
    /// News for a transaction that may stay without a call for a long time. Has no reply.
    Tell {
        transaction: Handle,
        /// What happened, in this order.
        settings: Vec<Setting>,
    },
    /// The client returns a table that it has received this often. Has no reply.
    GiveBack {
        table: TableVersion,
        /// The number of replies that had it.
        received: u64,
    },
}

/// A request, by the kind of object.
#[derive(Debug, Serialize, Deserialize)]
pub enum Call<'a> {
    /// Of the node itself.
    Node(#[serde(borrow)] NodeCall<'a>),
    Transaction {
        handle: Handle,
        /// What happened to it since the last call, in this order.
        before: Vec<Setting>,
        #[serde(borrow)]
        call: TransactionCall<'a>,
    },
    /// For a session's metadata locks; the first call opens them.
    Locks { handle: Handle, call: LocksCall },
    /// For a change of definitions.
    Change {
        handle: Handle,
        #[serde(borrow)]
        call: ChangeCall<'a>,
    },
    /// For an index that is being built.
    Build { handle: Handle, call: BuildCall },
}

/// The methods of [`firn_api::rows::DatabaseNode`].
#[derive(Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the methods' parameters")]
pub enum NodeCall<'a> {
    DefinitionsVersion,
    Schemas,
    SchemaOptions {
        schema: &'a str,
    },
    TablesOf {
        schema: &'a str,
    },
    /// `known`: the version of this table that the client has.
    TableNamed {
        schema: &'a str,
        name: &'a str,
        known: Option<TableVersion>,
    },
    Table {
        table: TableId,
        known: Option<u64>,
    },
    BeginChange {
        handle: Handle,
    },
    BeginIndex {
        handle: Handle,
        table: TableId,
        new: NewIndex,
        lock_wait_timeout: Duration,
    },
    TakeAutoIncrement {
        table: TableVersion,
        count: u64,
    },
    PassAutoIncrement {
        table: TableVersion,
        value: u64,
    },
    NextAutoIncrement {
        table: TableVersion,
    },
    Estimate {
        table: TableVersion,
        index: Option<usize>,
        range: KeyRange,
    },
    PreparedTransactions,
    CommitPrepared {
        #[serde(borrow)]
        xid: &'a Bytes,
        at: Option<Cts>,
    },
    RollbackPrepared {
        #[serde(borrow)]
        xid: &'a Bytes,
    },
    SetCommitting {
        #[serde(borrow)]
        xid: &'a Bytes,
    },
    Report,
    StatusText,
}

/// Changes of a transaction that need no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Setting {
    /// It begins, at a snapshot chosen elsewhere if one is given.
    Begin {
        isolation: IsolationLevel,
        snapshot: Option<Cts>,
    },
    /// Its longest wait for a lock.
    LockWaitTimeout(Duration),
    /// Whether it refuses to write rows that have changed since its snapshot.
    FirstUpdaterWins(bool),
    /// Its session's metadata locks.
    MetadataContext(Handle),
    EndStatement,
    /// From now on it records what it reads.
    KeepReads,
    /// It releases the lock on a row.
    Unlock {
        table: TableVersion,
        /// The row's primary key.
        key: ByteBuf,
    },
    /// It begins as one that goes on from another node.
    TakeUp(Box<DescribedTransaction>),
}

/// The methods of [`firn_api::rows::Transaction`] and [`firn_api::rows::Scan`].
#[derive(Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the methods' parameters")]
pub enum TransactionCall<'a> {
    /// Only the settings before it.
    Settings,
    OpenSnapshot,
    RenewSnapshot {
        before: ReadMark,
    },
    OpenReader {
        handle: Handle,
    },
    TableForRead {
        table: TableId,
        known: Option<u64>,
    },
    TableForWrite {
        table: TableId,
        known: Option<u64>,
    },
    CheckTable {
        table: TableVersion,
    },
    Get {
        table: TableVersion,
        #[serde(borrow)]
        key: &'a Bytes,
        mode: ReadMode,
    },
    GetByEntry {
        table: TableVersion,
        index: usize,
        #[serde(borrow)]
        entry: &'a Bytes,
        mode: ReadMode,
    },
    GetRows {
        table: TableVersion,
        index: Option<usize>,
        keys: Vec<ByteBuf>,
        mode: ReadMode,
    },
    Scan {
        handle: Handle,
        table: TableVersion,
        options: ScanOptions,
    },
    /// The first groups are in the reply; `handle` is for those that follow.
    Summarise {
        handle: Handle,
        table: TableVersion,
        options: Box<ScanOptions>,
        grouping: Box<Grouping>,
    },
    Fetch {
        scan: Handle,
    },
    FetchUnlessHeld {
        scan: Handle,
        held: Held,
    },
    ReadOverflow {
        table: TableVersion,
        reference: OverflowReference,
        start: u64,
        end: u64,
    },
    Insert {
        table: TableVersion,
        #[serde(borrow)]
        row: Vec<ValueRef<'a>>,
    },
    InsertRows {
        table: TableVersion,
        #[serde(borrow)]
        values: Vec<ValueRef<'a>>,
    },
    Update {
        table: TableVersion,
        #[serde(borrow)]
        key: &'a Bytes,
        #[serde(borrow)]
        payload: &'a Bytes,
        #[serde(borrow)]
        changes: Vec<(usize, ValueRef<'a>)>,
    },
    Delete {
        table: TableVersion,
        #[serde(borrow)]
        key: &'a Bytes,
        #[serde(borrow)]
        payload: &'a Bytes,
    },
    /// `None`: to the beginning of the transaction.
    RollbackTo {
        savepoint: Option<Savepoint>,
    },
    Commit,
    Rollback,
    /// `locks`: what [`LocksCall::Detach`] has removed from the session's locks.
    Prepare {
        #[serde(borrow)]
        xid: &'a Bytes,
        locks: Option<Handle>,
    },
    WriteRows {
        table: TableVersion,
        #[serde(borrow)]
        rows: Vec<RowWrite<'a>>,
    },
    /// The following groups of a summary.
    NextGroups {
        summaries: Handle,
    },
    /// For another node to go on with it.
    Describe,
}

/// As [`firn_api::rows::HeldLeaves`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Held {
    /// The caller may have the next leaf.
    Unknown,
    /// The caller does not have it.
    No,
    /// The caller has these.
    Leaves(Vec<LeafVersion>),
}

/// The methods of [`firn_api::rows::MetadataContext`].
#[derive(Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the methods' parameters")]
pub enum LocksCall {
    Acquire {
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
        timeout: Duration,
        transaction: Option<u64>,
    },
    Holds {
        table: TableId,
        lock: MetadataLock,
    },
    Mark,
    ReleaseTo {
        mark: LockMark,
    },
    ReleaseTransaction,
    ReleaseExplicit {
        table: Option<TableId>,
    },
    Downgrade {
        table: TableId,
        to: MetadataLock,
    },
    IsWanted {
        table: TableId,
    },
    /// The locks become an object with this handle; false if there are none.
    Detach {
        handle: Handle,
    },
}

/// The methods of [`firn_api::rows::Definitions`].
#[derive(Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the methods' parameters")]
pub enum ChangeCall<'a> {
    LockWaitTimeout(Duration),
    MetadataContext(Handle),
    CreateSchema {
        name: &'a str,
        #[serde(borrow)]
        options: &'a Bytes,
    },
    AlterSchema {
        name: &'a str,
        #[serde(borrow)]
        options: &'a Bytes,
    },
    DropSchema {
        name: &'a str,
    },
    /// The definition as [`firn_format::definition::TableDefinition::encode_draft`] writes it.
    CreateTable {
        #[serde(borrow)]
        definition: &'a Bytes,
    },
    DropTable {
        table: TableId,
    },
    TruncateTable {
        table: TableId,
    },
    RenameTable {
        table: TableId,
        schema: &'a str,
        name: &'a str,
    },
    ReplaceTable {
        table: TableId,
        schema: &'a str,
        name: &'a str,
    },
    /// The column as [`firn_format::definition::ColumnDefinition::encode`] writes it.
    AddColumn {
        table: TableId,
        #[serde(borrow)]
        column: &'a Bytes,
    },
    DropColumn {
        table: TableId,
        ordinal: u16,
    },
    LockDefinition {
        table: TableId,
    },
    AlterOptions {
        #[serde(borrow)]
        definition: &'a Bytes,
    },
    DropIndex {
        table: TableId,
        name: &'a str,
    },
    Commit,
}

/// The methods of [`firn_api::rows::IndexBuild`].
#[derive(Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the methods'")]
pub enum BuildCall {
    Step,
    Finish,
}

/// The node's reply to a call.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The version of the node's definitions when the call ended (M3).
    pub definitions_version: u64,
    /// The state of the call's transaction, if it exists.
    pub transaction: Option<TransactionState>,
    pub outcome: Result<Answer, RowsError>,
}

/// What a client knows of its transaction without asking (M3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionState {
    /// Its id, once it has written or locked.
    pub id: Option<u64>,
    /// Its snapshot, if one is open.
    pub snapshot: Option<Cts>,
    /// The current point.
    pub savepoint: Option<Savepoint>,
    /// How much it has read.
    pub read_mark: ReadMark,
}

/// A table in a reply. The definition is left out if the client has said that it has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandedTable {
    pub table: TableVersion,
    pub definition: Option<ByteBuf>,
}

/// Rows of a scan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Rows {
    /// Keys and rows in one piece; see [`firn_api::rows::RowBatch`].
    Stored {
        /// Keys and rows.
        bytes: ByteBuf,
        /// One for each row.
        spans: Vec<RowSpan>,
    },
    /// From an index alone: primary keys, and the values of the wanted columns.
    Covered(Vec<(ByteBuf, Vec<Value>)>),
}

/// The result of a call.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Done,
    Flag(bool),
    Number(u64),
    TableId(TableId),
    /// A column's ordinal.
    Ordinal(u16),
    /// Names or words.
    Texts(Vec<String>),
    Identifiers(Vec<ByteBuf>),
    /// Bytes, or nothing if there is no such name.
    Bytes(Option<ByteBuf>),
    /// A table, or none if there is no such name.
    Table(Option<HandedTable>),
    /// A schema's tables; `None` if there is no such schema.
    Tables(Option<Vec<HandedTable>>),
    /// A row with its primary key, or none.
    Row(Option<(ByteBuf, ByteBuf)>),
    /// The result for each key.
    Found(Vec<Option<FoundRow>>),
    /// Groups of a summary; `None` if the node can do no better than a scan.
    Summed(Option<Summed>),
    /// A batch of a scan; `None` at the end.
    Batch(Option<Rows>),
    /// The result of [`TransactionCall::FetchUnlessHeld`].
    Fetched(Fetched, Option<Rows>),
    /// How many entries a range has.
    Estimate(Estimate),
    Prepared(Prepared),
    /// A point in the sequence of locks.
    Mark(LockMark),
    /// The progress of a build, and whether all rows have their entries.
    Progress(BuildProgress, bool),
    /// The lowest timestamp that a prepared transaction may commit at.
    Lowest(Cts),
    /// What the node reports about itself.
    Report(Box<NodeReport>),
    /// The node's state for people.
    StatusText(String),
    /// A transaction that can go on at another node.
    Described(Option<Box<DescribedTransaction>>),
}

/// Reads arbitrary bytes as a message and as a reply, and checks that writing and reading the
/// result again gives the same. For the fuzz target.
///
/// # Panics
/// If it is not.
pub fn check_any_bytes(bytes: &[u8]) {
    use crate::codec::{decode, encode};
    if let Ok(message) = decode::<Message<'_>>(bytes) {
        let again = encode(&message).expect("what was read can be written");
        let reread = decode::<Message<'_>>(&again).expect("what was written can be read");
        assert_eq!(format!("{reread:?}"), format!("{message:?}"));
    }
    if let Ok(reply) = decode::<Reply>(bytes) {
        let again = encode(&reply).expect("what was read can be written");
        let reread = decode::<Reply>(&again).expect("what was written can be read");
        assert_eq!(format!("{reread:?}"), format!("{reply:?}"));
    }
}
