//! Maintenance of tables and of the server.

use super::Expr;
use super::TableName;

/// `ANALYZE`, `CHECK`, `CHECKSUM`, `OPTIMIZE` or `REPAIR` of tables.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableMaintenance {
    pub operation: MaintenanceOperation,
    /// `LOCAL` or `NO_WRITE_TO_BINLOG`.
    pub local: bool,
    pub tables: Vec<TableName>,
    /// Words after them, in upper case: `FAST`, `QUICK`, `EXTENDED`, `FOR UPGRADE` and so on.
    pub options: Vec<String>,
    /// `UPDATE` or `DROP HISTOGRAM ON`.
    pub histogram: Option<Histogram>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaintenanceOperation {
    Analyze,
    Check,
    Checksum,
    Optimize,
    Repair,
}

/// `ANALYZE TABLE … HISTOGRAM`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Histogram {
    /// `DROP` instead of `UPDATE`.
    pub drop: bool,
    pub columns: Vec<String>,
    /// `WITH n BUCKETS`.
    pub buckets: Option<u64>,
}

/// A thing that `FLUSH` flushes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Flush {
    Tables {
        /// Which; empty for all.
        tables: Vec<TableName>,
        with_read_lock: bool,
        for_export: bool,
    },
    /// Anything else, in upper case: `PRIVILEGES`, `STATUS`, `BINARY LOGS` and so on.
    Other(String),
}

/// `PURGE BINARY LOGS`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PurgeLogs {
    /// `TO` a log, which stays.
    To(String),
    /// `BEFORE` a time.
    Before(Expr),
}
