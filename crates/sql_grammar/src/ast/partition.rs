//! Partitions of a table.

use super::Expr;

/// `PARTITION BY`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partitioning {
    /// What decides in which partition a row is.
    pub method: PartitionMethod,
    /// `PARTITIONS n`.
    pub count: Option<u32>,
    /// `SUBPARTITION BY`.
    pub subpartitions: Option<(PartitionMethod, Option<u32>)>,
    /// Partitions by name; empty if only a number is given.
    pub partitions: Vec<PartitionDefinition>,
}

/// How a table is partitioned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionMethod {
    /// `HASH (expr)`.
    Hash { linear: bool, expression: Expr },
    /// `KEY (columns)`.
    Key {
        linear: bool,
        algorithm: Option<u8>,
        /// The columns; empty for the primary key.
        columns: Vec<String>,
    },
    /// `RANGE (expr)`.
    Range(Expr),
    /// `RANGE COLUMNS (…)`.
    RangeColumns(Vec<String>),
    /// `LIST (expr)`.
    List(Expr),
    /// `LIST COLUMNS (…)`.
    ListColumns(Vec<String>),
}

/// A partition by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionDefinition {
    pub name: String,
    pub values: PartitionValues,
    /// Options by their names in upper case: `ENGINE`, `COMMENT` and so on.
    pub options: Vec<(String, String)>,
    /// Subpartitions, with their options.
    pub subpartitions: Vec<(String, Vec<(String, String)>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionValues {
    /// None given: by hash or key.
    None,
    /// `LESS THAN (…)`, one bound per column; `LESS THAN MAXVALUE` is one `MaxValue`.
    LessThan(Vec<PartitionBound>),
    /// `IN (…)`; each with one value per column.
    In(Vec<Vec<Expr>>),
}

/// A bound of a range partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionBound {
    Value(Expr),
    MaxValue,
}

/// What `ALTER TABLE` does to partitions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionAction {
    /// `ADD PARTITION (…)`.
    Add(Vec<PartitionDefinition>),
    /// `ADD PARTITION PARTITIONS n`.
    AddCount(u32),
    /// `COALESCE PARTITION n`.
    Coalesce(u32),
    /// `DROP PARTITION`.
    Drop(Vec<String>),
    /// `REORGANIZE PARTITION … INTO`; both empty for all of them.
    Reorganize {
        /// The partitions that are replaced.
        from: Vec<String>,
        /// Those that come.
        into: Vec<PartitionDefinition>,
    },
    /// `EXCHANGE PARTITION … WITH TABLE`.
    Exchange {
        partition: String,
        table: super::TableName,
        /// Not `WITHOUT VALIDATION`.
        validate: bool,
    },
    /// `REMOVE PARTITIONING`.
    Remove,
    /// `TRUNCATE`, `ANALYZE`, `CHECK`, `OPTIMIZE`, `REBUILD`, `REPAIR`, `DISCARD` or `IMPORT`.
    Maintain {
        /// The word, in upper case.
        operation: String,
        /// Which; empty for all.
        partitions: Vec<String>,
    },
}
