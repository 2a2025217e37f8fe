//! Partitions of a table.

use super::Expr;

/// `PARTITION BY`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partitioning {
    /// By what.
    pub method: PartitionMethod,
    /// `PARTITIONS n`.
    pub count: Option<u32>,
    /// `SUBPARTITION BY`.
    pub subpartitions: Option<(PartitionMethod, Option<u32>)>,
    /// Partitions by name; empty if only counted.
    pub partitions: Vec<PartitionDefinition>,
}

/// By what a table is partitioned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionMethod {
    /// `HASH (expr)`.
    Hash {
        /// `LINEAR`.
        linear: bool,
        /// Over what.
        expression: Expr,
    },
    /// `KEY (columns)`.
    Key {
        /// `LINEAR`.
        linear: bool,
        /// `ALGORITHM`.
        algorithm: Option<u8>,
        /// Over which columns; empty for the primary key.
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
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: PartitionValues,
    /// Options by their names in capitals: `ENGINE`, `COMMENT` and so on.
    pub options: Vec<(String, String)>,
    /// Subpartitions, with their options.
    pub subpartitions: Vec<(String, Vec<(String, String)>)>,
}

/// What a partition takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionValues {
    /// Not said: by hash or key.
    None,
    /// `LESS THAN (…)`, one bound a column; `LESS THAN MAXVALUE` is one `MaxValue`.
    LessThan(Vec<PartitionBound>),
    /// `IN (…)`; each with one value a column.
    In(Vec<Vec<Expr>>),
}

/// A bound of a range partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionBound {
    /// A value.
    Value(Expr),
    /// `MAXVALUE`.
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
        /// The partitions that go.
        from: Vec<String>,
        /// Those that come.
        into: Vec<PartitionDefinition>,
    },
    /// `EXCHANGE PARTITION … WITH TABLE`.
    Exchange {
        /// The partition.
        partition: String,
        /// The table.
        table: super::TableName,
        /// Not `WITHOUT VALIDATION`.
        validate: bool,
    },
    /// `REMOVE PARTITIONING`.
    Remove,
    /// `TRUNCATE`, `ANALYZE`, `CHECK`, `OPTIMIZE`, `REBUILD`, `REPAIR`, `DISCARD` or `IMPORT`.
    Maintain {
        /// The word, in capitals.
        operation: String,
        /// Which; empty for all.
        partitions: Vec<String>,
    },
}
