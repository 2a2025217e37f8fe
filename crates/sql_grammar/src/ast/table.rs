//! Tables: columns, indexes, constraints, options, and what `ALTER TABLE` does to them.

use super::{Expr, Query};
use super::{PartitionAction, Partitioning, TableName};

/// `CREATE TABLE` with columns, or from a query, or both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateTable {
    /// Only this session sees it.
    pub temporary: bool,
    /// Nothing is wrong if it is already there.
    pub if_not_exists: bool,
    /// Its name.
    pub table: TableName,
    /// Columns, indexes and constraints, in order.
    pub elements: Vec<TableElement>,
    /// Options, in order.
    pub options: Vec<TableOption>,
    /// `PARTITION BY`.
    pub partitioning: Option<Partitioning>,
    /// `AS SELECT`.
    pub source: Option<TableSource>,
}

/// `CREATE TABLE … AS SELECT`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableSource {
    /// What happens to rows whose keys are there already.
    pub on_conflict: super::OnConflict,
    /// The query.
    pub query: Query,
}

/// What a table's definition lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableElement {
    /// A column.
    Column(ColumnDefinition),
    /// An index, primary key or unique constraint.
    Index(IndexDefinition),
    /// A foreign key.
    ForeignKey(ForeignKey),
    /// A check constraint.
    Check(Check),
}

/// A column's definition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// `NULL` or `NOT NULL`; none if not said.
    pub nullable: Option<bool>,
    /// `DEFAULT`.
    pub default: Option<ColumnDefault>,
    /// `ON UPDATE CURRENT_TIMESTAMP`, with its digits after the second.
    pub on_update_now: Option<u8>,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// `PRIMARY KEY`.
    pub primary_key: bool,
    /// `UNIQUE`.
    pub unique: bool,
    /// `GENERATED ALWAYS AS`.
    pub generated: Option<Generated>,
    /// `VISIBLE` or `INVISIBLE`.
    pub visible: Option<bool>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `CHECK`s.
    pub checks: Vec<Check>,
    /// `REFERENCES`, which InnoDB takes and ignores here.
    pub references: Option<References>,
    /// `SRID`.
    pub srid: Option<u32>,
    /// Other attributes, taken and ignored: `COLUMN_FORMAT`, `STORAGE`, engine attributes.
    pub ignored: Vec<(String, String)>,
}

/// A column's default.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnDefault {
    /// A literal, perhaps with a sign.
    Literal(Expr),
    /// `CURRENT_TIMESTAMP` or one of its names, with its digits after the second.
    Now(u8),
    /// An expression in parentheses.
    Expression(Expr),
}

/// A generated column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Generated {
    /// What it is.
    pub expression: Expr,
    /// `STORED`; `VIRTUAL` is the default.
    pub stored: bool,
}

/// How wide an integer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntegerSize {
    /// One byte; also `BOOL`.
    Tiny,
    /// Two bytes.
    Small,
    /// Three bytes.
    Medium,
    /// Four bytes.
    Int,
    /// Eight bytes.
    Big,
}

/// How long a text or blob may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LobSize {
    /// 255 bytes.
    Tiny,
    /// 65,535 bytes.
    Normal,
    /// 16 MiB.
    Medium,
    /// 4 GiB.
    Long,
}

/// Attributes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NumberAttributes {
    /// `UNSIGNED`; `ZEROFILL` sets it too.
    pub unsigned: bool,
    /// `ZEROFILL`.
    pub zerofill: bool,
}

/// Attributes of a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TextAttributes {
    /// `CHARACTER SET`; also from `NATIONAL`, `ASCII`, `UNICODE` and `BYTE`.
    pub charset: Option<String>,
    /// `COLLATE`, wherever in the column's definition it stands.
    pub collation: Option<String>,
    /// `BINARY`: the binary collation of the character set.
    pub binary: bool,
}

/// A column's type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// An integer, with its display width.
    Integer(IntegerSize, Option<u32>, NumberAttributes),
    /// `DECIMAL`, with digits in all and after the point.
    Decimal(Option<u32>, Option<u32>, NumberAttributes),
    /// `FLOAT`; `FLOAT(p)` with p over 24 is a `Double`.
    Float(Option<(u32, u32)>, NumberAttributes),
    /// `DOUBLE`, `REAL`.
    Double(Option<(u32, u32)>, NumberAttributes),
    /// `BIT`, with its bits.
    Bit(Option<u32>),
    /// `CHAR`, with its characters.
    Char(Option<u32>, TextAttributes),
    /// `VARCHAR`, with its characters.
    Varchar(u32, TextAttributes),
    /// `TEXT`s; `TEXT(n)` with its characters, from which the size follows.
    Text(LobSize, Option<u64>, TextAttributes),
    /// `BINARY`, with its bytes.
    Binary(Option<u32>),
    /// `VARBINARY`, with its bytes.
    Varbinary(u32),
    /// `BLOB`s; `BLOB(n)` with its bytes, from which the size follows.
    Blob(LobSize, Option<u64>),
    /// `ENUM`.
    Enum(Vec<String>, TextAttributes),
    /// `SET`.
    Set(Vec<String>, TextAttributes),
    /// `DATE`.
    Date,
    /// `TIME`, with its digits after the second.
    Time(u8),
    /// `DATETIME`, with its digits after the second.
    Datetime(u8),
    /// `TIMESTAMP`, with its digits after the second.
    Timestamp(u8),
    /// `YEAR`.
    Year,
    /// `JSON`.
    Json,
    /// A spatial type, by its name in capitals.
    Geometry(String),
    /// `VECTOR`, with its entries.
    Vector(Option<u32>),
}

/// What kind of index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// `PRIMARY KEY`.
    Primary,
    /// `UNIQUE`.
    Unique,
    /// An index like any other.
    Plain,
    /// `FULLTEXT`.
    Fulltext,
    /// `SPATIAL`.
    Spatial,
}

/// An index, primary key or unique constraint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexDefinition {
    /// What kind.
    pub kind: IndexKind,
    /// Its name: the index's, or else the constraint's.
    pub name: Option<String>,
    /// Nothing is wrong if it is already there (an extension that migrations use).
    pub if_not_exists: bool,
    /// `USING BTREE` or `HASH`, in capitals.
    pub algorithm: Option<String>,
    /// Its parts, in order.
    pub parts: Vec<KeyPart>,
    /// `VISIBLE` or `INVISIBLE`.
    pub visible: Option<bool>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `WITH PARSER`.
    pub parser: Option<String>,
    /// Other options, taken and ignored: `KEY_BLOCK_SIZE`, engine attributes.
    pub ignored: Vec<(String, String)>,
}

/// A part of an index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyPart {
    /// What is indexed.
    pub source: KeySource,
    /// `DESC`.
    pub descending: bool,
}

/// What a part of an index indexes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeySource {
    /// A column.
    Column {
        /// Its name.
        name: String,
        /// How many characters or bytes of it; none for all.
        prefix_length: Option<u32>,
    },
    /// An expression in parentheses.
    Expression(Expr),
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForeignKey {
    /// Its name: the constraint's, or else the index's.
    pub name: Option<String>,
    /// The columns.
    pub columns: Vec<String>,
    /// What they refer to.
    pub references: References,
}

/// What a foreign key refers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct References {
    /// The table.
    pub table: TableName,
    /// Its columns; empty if not said.
    pub columns: Vec<String>,
    /// `ON DELETE`; none if not said, which means `NO ACTION`.
    pub on_delete: Option<ReferenceAction>,
    /// `ON UPDATE`; none if not said, which means `NO ACTION`.
    pub on_update: Option<ReferenceAction>,
}

/// What happens to rows that refer to one that goes or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceAction {
    /// It is refused.
    Restrict,
    /// They go or change too.
    Cascade,
    /// Their columns become null.
    SetNull,
    /// It is refused.
    NoAction,
    /// Their columns get their default, which InnoDB refuses.
    SetDefault,
}

/// A check constraint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Check {
    /// Its name.
    pub name: Option<String>,
    /// What must not be false.
    pub expression: Expr,
    /// Not `NOT ENFORCED`.
    pub enforced: bool,
}

/// A table option.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableOption {
    /// `ENGINE`.
    Engine(String),
    /// `AUTO_INCREMENT`.
    AutoIncrement(u64),
    /// `CHARACTER SET`.
    Charset(String),
    /// `COLLATE`.
    Collation(String),
    /// `COMMENT`.
    Comment(String),
    /// `ROW_FORMAT`, in capitals.
    RowFormat(String),
    /// Any other that MySQL knows, by its name in capitals; taken and ignored.
    Other(String, String),
}

/// `ALTER TABLE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AlterTable {
    /// The table.
    pub table: TableName,
    /// What is done, in order.
    pub actions: Vec<AlterAction>,
    /// `ALGORITHM`, in capitals.
    pub algorithm: Option<String>,
    /// `LOCK`, in capitals.
    pub lock: Option<String>,
}

/// Where a column goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnPosition {
    /// `FIRST`.
    First,
    /// `AFTER` another.
    After(String),
}

/// An action of `ALTER TABLE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AlterAction {
    /// `ADD COLUMN`.
    AddColumn {
        /// The column.
        column: ColumnDefinition,
        /// Where; at the end unless said.
        position: Option<ColumnPosition>,
    },
    /// `ADD` of an index, primary key or unique constraint.
    AddIndex(IndexDefinition),
    /// `ADD FOREIGN KEY`.
    AddForeignKey(ForeignKey),
    /// `ADD CHECK`.
    AddCheck(Check),
    /// `DROP COLUMN`.
    DropColumn(String),
    /// `DROP INDEX`.
    DropIndex(String),
    /// `DROP PRIMARY KEY`.
    DropPrimaryKey,
    /// `DROP FOREIGN KEY`.
    DropForeignKey(String),
    /// `DROP CHECK`.
    DropCheck(String),
    /// `DROP CONSTRAINT`, of whichever kind has the name.
    DropConstraint(String),
    /// `MODIFY COLUMN`.
    ModifyColumn {
        /// The column's new definition.
        column: ColumnDefinition,
        /// Where; where it was unless said.
        position: Option<ColumnPosition>,
    },
    /// `CHANGE COLUMN`.
    ChangeColumn {
        /// The column.
        name: String,
        /// Its new definition and name.
        column: ColumnDefinition,
        /// Where; where it was unless said.
        position: Option<ColumnPosition>,
    },
    /// `RENAME COLUMN`.
    RenameColumn {
        /// From.
        from: String,
        /// To.
        to: String,
    },
    /// `ALTER COLUMN … SET DEFAULT`.
    SetDefault {
        /// The column.
        column: String,
        /// Its default.
        default: ColumnDefault,
    },
    /// `ALTER COLUMN … DROP DEFAULT`.
    DropDefault(String),
    /// `ALTER COLUMN … SET VISIBLE`.
    SetColumnVisible {
        /// The column.
        column: String,
        /// Whether.
        visible: bool,
    },
    /// `ALTER INDEX … VISIBLE`.
    SetIndexVisible {
        /// The index.
        index: String,
        /// Whether.
        visible: bool,
    },
    /// `ALTER CHECK … [NOT] ENFORCED`; also of `CONSTRAINT`.
    SetCheckEnforced {
        /// The constraint.
        name: String,
        /// Whether.
        enforced: bool,
    },
    /// `RENAME INDEX`.
    RenameIndex {
        /// From.
        from: String,
        /// To.
        to: String,
    },
    /// `RENAME TO`.
    RenameTable(TableName),
    /// Table options.
    Options(Vec<TableOption>),
    /// `CONVERT TO CHARACTER SET`; none for `DEFAULT`.
    ConvertCharset {
        /// The character set.
        charset: Option<String>,
        /// The collation.
        collation: Option<String>,
    },
    /// `ORDER BY`: columns and whether descending.
    OrderBy(Vec<(String, bool)>),
    /// `FORCE`.
    Force,
    /// `DISABLE KEYS` or `ENABLE KEYS`.
    EnableKeys(bool),
    /// `DISCARD TABLESPACE` or `IMPORT TABLESPACE`.
    Tablespace {
        /// `IMPORT`.
        import: bool,
    },
    /// `WITH VALIDATION` or `WITHOUT`.
    Validation(bool),
    /// `PARTITION BY`.
    Partition(Partitioning),
    /// Anything done to partitions.
    Partitions(PartitionAction),
}
