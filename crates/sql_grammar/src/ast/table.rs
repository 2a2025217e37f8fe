//! Tables: columns, indexes, constraints, options, and the actions of `ALTER TABLE`.

use super::{Expr, Query};
use super::{PartitionAction, Partitioning, TableName};

/// `CREATE TABLE` with columns, or from a query, or both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateTable {
    /// Only this session sees it.
    pub temporary: bool,
    /// No error if it already exists.
    pub if_not_exists: bool,
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
    /// The action for rows whose keys already exist.
    pub on_conflict: super::OnConflict,
    pub query: Query,
}

/// An element of a table's definition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableElement {
    Column(ColumnDefinition),
    /// An index, primary key or unique constraint.
    Index(IndexDefinition),
    ForeignKey(ForeignKey),
    Check(Check),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnDefinition {
    pub name: String,
    pub column_type: ColumnType,
    /// `NULL` or `NOT NULL`; `None` if not given.
    pub nullable: Option<bool>,
    pub default: Option<ColumnDefault>,
    /// `ON UPDATE CURRENT_TIMESTAMP`, with its fractional second digits.
    pub on_update_now: Option<u8>,
    pub auto_increment: bool,
    pub primary_key: bool,
    pub unique: bool,
    /// `GENERATED ALWAYS AS`.
    pub generated: Option<Generated>,
    /// `VISIBLE` or `INVISIBLE`.
    pub visible: Option<bool>,
    pub comment: Option<String>,
    /// `CHECK`s.
    pub checks: Vec<Check>,
    /// `REFERENCES`, which InnoDB accepts and ignores here.
    pub references: Option<References>,
    pub srid: Option<u32>,
    /// Other attributes, accepted and ignored: `COLUMN_FORMAT`, `STORAGE`, engine attributes.
    pub ignored: Vec<(String, String)>,
    /// What of its type MySQL warns of.
    pub deprecated: Vec<Deprecated>,
}

/// Ways to write a column's type that later versions of MySQL may refuse.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Deprecated {
    Zerofill,
    /// `INT(5)`
    DisplayWidth,
    /// `FLOAT(7,3)`
    FloatingDigits,
    /// `UNSIGNED` of a number with digits after the point.
    UnsignedFraction,
    UnsignedYear,
    /// `YEAR(4)`
    YearWidth,
    /// `CHAR(5) BINARY`
    BinaryAttribute,
    /// `CHAR(5) ASCII` or `UNICODE`
    CharsetAttribute(&'static str),
    /// `NCHAR` and its relatives.
    National,
    /// `CHARACTER SET utf8`
    Utf8,
    /// `CHARACTER SET utf8mb3`
    Utf8mb3,
    /// A collation of `utf8mb3`, by its full name.
    Utf8mb3Collation(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnDefault {
    /// A literal, optionally with a sign.
    Literal(Expr),
    /// `CURRENT_TIMESTAMP` or a synonym, with its fractional second digits.
    Now(u8),
    /// An expression in parentheses.
    Expression(Expr),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Generated {
    pub expression: Expr,
    /// `STORED`; `VIRTUAL` is the default.
    pub stored: bool,
}

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

/// The maximal length of a text or blob.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NumberAttributes {
    /// `UNSIGNED`; `ZEROFILL` sets it too.
    pub unsigned: bool,
    pub zerofill: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TextAttributes {
    /// `CHARACTER SET`; also from `NATIONAL`, `ASCII`, `UNICODE` and `BYTE`.
    pub charset: Option<String>,
    /// `COLLATE`, anywhere in the column's definition.
    pub collation: Option<String>,
    /// `BINARY`: the binary collation of the character set.
    pub binary: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// An integer, with its display width.
    Integer(IntegerSize, Option<u32>, NumberAttributes),
    /// `DECIMAL`, with total digits and digits after the point.
    Decimal(Option<u32>, Option<u32>, NumberAttributes),
    /// `FLOAT`; `FLOAT(p)` with p over 24 is a `Double`.
    Float(Option<(u32, u32)>, NumberAttributes),
    /// `DOUBLE`, `REAL`.
    Double(Option<(u32, u32)>, NumberAttributes),
    /// `BIT`, with its bits.
    Bit(Option<u32>),
    /// `CHAR`, with its length in characters.
    Char(Option<u32>, TextAttributes),
    /// `VARCHAR`, with its length in characters.
    Varchar(u32, TextAttributes),
    /// `TEXT`s; `TEXT(n)` with its length in characters, which determines the size.
    Text(LobSize, Option<u64>, TextAttributes),
    /// `BINARY`, with its length in bytes.
    Binary(Option<u32>),
    /// `VARBINARY`, with its length in bytes.
    Varbinary(u32),
    /// `BLOB`s; `BLOB(n)` with its length in bytes, which determines the size.
    Blob(LobSize, Option<u64>),
    Enum(Vec<String>, TextAttributes),
    Set(Vec<String>, TextAttributes),
    Date,
    /// `TIME`, with its fractional second digits.
    Time(u8),
    /// `DATETIME`, with its fractional second digits.
    Datetime(u8),
    /// `TIMESTAMP`, with its fractional second digits.
    Timestamp(u8),
    Year,
    Json,
    /// A spatial type, by its name in capitals.
    Geometry(String),
    /// `VECTOR`, with its number of entries.
    Vector(Option<u32>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// `PRIMARY KEY`.
    Primary,
    Unique,
    /// An ordinary index.
    Plain,
    Fulltext,
    Spatial,
}

/// An index, primary key or unique constraint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexDefinition {
    pub kind: IndexKind,
    /// Its name: the index's, or else the constraint's.
    pub name: Option<String>,
    /// No error if it already exists (an extension that migrations use).
    pub if_not_exists: bool,
    /// `USING BTREE` or `HASH`, in upper case.
    pub algorithm: Option<String>,
    /// Its parts, in order.
    pub parts: Vec<KeyPart>,
    /// `VISIBLE` or `INVISIBLE`.
    pub visible: Option<bool>,
    pub comment: Option<String>,
    /// `WITH PARSER`.
    pub parser: Option<String>,
    /// Other options, accepted and ignored: `KEY_BLOCK_SIZE`, engine attributes.
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
    Column {
        name: String,
        /// How many characters or bytes of it; `None` for all.
        prefix_length: Option<u32>,
    },
    /// An expression in parentheses.
    Expression(Expr),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForeignKey {
    /// Its name: the constraint's, or else the index's.
    pub name: Option<String>,
    pub columns: Vec<String>,
    pub references: References,
}

/// The target of a foreign key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct References {
    pub table: TableName,
    /// Its columns; empty if not given.
    pub columns: Vec<String>,
    /// `ON DELETE`; `None` if not given, which means `NO ACTION`.
    pub on_delete: Option<ReferenceAction>,
    /// `ON UPDATE`; `None` if not given, which means `NO ACTION`.
    pub on_update: Option<ReferenceAction>,
}

/// What happens to referring rows when a row is deleted or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceAction {
    /// It is refused.
    Restrict,
    /// They are deleted or changed too.
    Cascade,
    SetNull,
    /// It is refused.
    NoAction,
    /// Their columns get their default, which InnoDB refuses.
    SetDefault,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Check {
    pub name: Option<String>,
    /// The condition, which must not be false.
    pub expression: Expr,
    /// Not `NOT ENFORCED`.
    pub enforced: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableOption {
    Engine(String),
    AutoIncrement(u64),
    /// `CHARACTER SET`.
    Charset(String),
    /// `COLLATE`.
    Collation(String),
    Comment(String),
    /// `ROW_FORMAT`, in upper case.
    RowFormat(String),
    /// Any other option that MySQL knows, by its name in upper case; accepted and ignored.
    Other(String, String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AlterTable {
    pub table: TableName,
    /// The actions, in order.
    pub actions: Vec<AlterAction>,
    /// `ALGORITHM`, in upper case.
    pub algorithm: Option<String>,
    /// `LOCK`, in capitals.
    pub lock: Option<String>,
}

/// Where a column goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnPosition {
    First,
    /// `AFTER` another.
    After(String),
}

/// An action of `ALTER TABLE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AlterAction {
    AddColumn {
        column: ColumnDefinition,
        /// The position; at the end unless given.
        position: Option<ColumnPosition>,
    },
    /// `ADD` of an index, primary key or unique constraint.
    AddIndex(IndexDefinition),
    AddForeignKey(ForeignKey),
    AddCheck(Check),
    DropColumn(String),
    DropIndex(String),
    DropPrimaryKey,
    DropForeignKey(String),
    DropCheck(String),
    /// `DROP CONSTRAINT`, of whatever kind has the name.
    DropConstraint(String),
    ModifyColumn {
        column: ColumnDefinition,
        /// The position; unchanged unless given.
        position: Option<ColumnPosition>,
    },
    ChangeColumn {
        /// The column.
        name: String,
        /// Its new definition and name.
        column: ColumnDefinition,
        /// The position; unchanged unless given.
        position: Option<ColumnPosition>,
    },
    RenameColumn {
        from: String,
        to: String,
    },
    /// `ALTER COLUMN … SET DEFAULT`.
    SetDefault {
        column: String,
        default: ColumnDefault,
    },
    /// `ALTER COLUMN … DROP DEFAULT`.
    DropDefault(String),
    /// `ALTER COLUMN … SET VISIBLE`.
    SetColumnVisible {
        column: String,
        visible: bool,
    },
    /// `ALTER INDEX … VISIBLE`.
    SetIndexVisible {
        index: String,
        visible: bool,
    },
    /// `ALTER CHECK … [NOT] ENFORCED`; also of `CONSTRAINT`.
    SetCheckEnforced {
        /// The constraint.
        name: String,
        enforced: bool,
    },
    RenameIndex {
        from: String,
        to: String,
    },
    /// `RENAME TO`.
    RenameTable(TableName),
    Options(Vec<TableOption>),
    /// `CONVERT TO CHARACTER SET`; `None` for `DEFAULT`.
    ConvertCharset {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// `ORDER BY`: columns and whether descending.
    OrderBy(Vec<(String, bool)>),
    Force,
    /// `DISABLE KEYS` or `ENABLE KEYS`.
    EnableKeys(bool),
    /// `DISCARD TABLESPACE` or `IMPORT TABLESPACE`.
    Tablespace {
        import: bool,
    },
    /// `WITH VALIDATION` or `WITHOUT`.
    Validation(bool),
    /// `PARTITION BY`.
    Partition(Partitioning),
    Partitions(PartitionAction),
}
