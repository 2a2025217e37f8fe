//! Transactions, distributed transactions and table locks.

use super::TableName;

/// `BEGIN` and `START TRANSACTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Begin {
    /// `WITH CONSISTENT SNAPSHOT`.
    pub consistent_snapshot: bool,
    /// `READ ONLY` or `READ WRITE`.
    pub access: Option<AccessMode>,
}

/// Whether a transaction may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessMode {
    ReadOnly,
    ReadWrite,
}

/// What follows `COMMIT` or `ROLLBACK`. If it is not given, `completion_type` decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Completion {
    /// `AND [NO] CHAIN`.
    pub chain: Option<bool>,
    /// `[NO] RELEASE`.
    pub release: Option<bool>,
}

/// The isolation level of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetTransaction {
    pub scope: TransactionScope,
    /// `ISOLATION LEVEL`.
    pub isolation: Option<IsolationLevel>,
    /// `READ ONLY` or `READ WRITE`.
    pub access: Option<AccessMode>,
}

/// The scope of `SET TRANSACTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionScope {
    /// No word: only the next transaction of this session.
    Next,
    /// `SESSION`: all following transactions of this session.
    Session,
    /// `GLOBAL`: sessions that begin later.
    Global,
}

/// The name of a distributed transaction. Its parts are arbitrary bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Xid {
    /// Global part.
    pub global: Vec<u8>,
    /// Branch; empty unless given.
    pub branch: Vec<u8>,
    /// Format; 1 unless given.
    pub format: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Xa {
    /// `XA START` or `BEGIN`.
    Start { xid: Xid, join: bool, resume: bool },
    /// `XA END`.
    End { xid: Xid, suspend: bool, for_migrate: bool },
    /// `XA PREPARE`.
    Prepare(Xid),
    /// `XA COMMIT`.
    Commit { xid: Xid, one_phase: bool },
    /// `XA ROLLBACK`.
    Rollback(Xid),
    /// `XA RECOVER`.
    Recover {
        /// `CONVERT XID`: names in hexadecimal.
        convert_xid: bool,
    },
}

/// A table of `LOCK TABLES`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableLock {
    pub table: TableName,
    /// The name by which statements will refer to it.
    pub alias: Option<String>,
    pub kind: TableLockKind,
}

/// How `LOCK TABLES` locks a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableLockKind {
    Read,
    ReadLocal,
    /// `WRITE`, with or without `LOW_PRIORITY`.
    Write,
}
