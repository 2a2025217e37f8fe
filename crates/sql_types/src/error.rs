//! Errors for clients: MySQL's error number, SQLSTATE and message; and warnings.

use firn_api::rows::RowsError;

/// An error as a MySQL client sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    /// MySQL's error number.
    pub code: u16,
    /// The five characters of SQLSTATE.
    pub state: [u8; 5],
    /// What happened, in MySQL's words if clients depend on them.
    pub message: String,
    /// What the error means for the rest of the transaction. The number does not say that: several
    /// kinds share one, and clients can signal any.
    pub kind: ErrorKind,
}

/// What an error means for the rest of the transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorKind {
    /// The statement has failed, and its transaction continues without it.
    #[default]
    Statement,
    /// A row has changed since the transaction's snapshot: with a newer snapshot the statement may
    /// succeed.
    Conflict,
    /// The transaction is rolled back, and can be run again from its beginning.
    TransactionGone,
    /// The transaction has ended; it is unknown whether it was committed.
    OutcomeUnknown,
    /// The statement was cancelled, or its time is over.
    Interrupted,
    /// The statement needs more memory than it may have.
    OutOfMemory,
    /// A row has the same values in a unique index.
    DuplicateKey,
    /// A lock was not granted in time.
    LockWaitTimeout,
    /// The statement nests deeper than the stack allows, or uses more views than one statement may.
    TooComplex,
    /// A text has no statement.
    EmptyQuery,
    /// A value cannot be stored in its column, or converted as the statement wants.
    BadValue,
    /// A row lacks a value or violates a constraint.
    RowRefused,
    /// Texts have no common collation.
    IllegalMix,
    /// A text is not a JSON document.
    InvalidJson,
    /// No table in reach has a column with this name.
    UnknownColumn,
    /// There is no schema, table or function with this name.
    UnknownName,
    /// The names for a query's columns do not fit: two are alike, or their number is another one.
    ColumnNamesMisfit,
    /// An aggregate function stands where there are no groups.
    MisplacedAggregate,
}

/// The result of any SQL operation.
pub type Result<T> = std::result::Result<T, SqlError>;

impl SqlError {
    /// Bytes that are invalid in the character set in which an operation reads them.
    #[must_use]
    pub fn cannot_convert(bytes: &[u8], charset: &str) -> SqlError {
        const SHOWN_BYTES: usize = 6;
        let shown = bytes.iter().take(SHOWN_BYTES).map(|byte| match byte {
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02X}"),
        });
        let more = if bytes.len() > SHOWN_BYTES { "..." } else { "" };
        let shown: String = shown.collect();
        let message = format!("Cannot convert string '{shown}{more}' from binary to {charset}");
        SqlError::new(3854, message)
    }

    /// An error with a number, from which its SQLSTATE follows.
    #[must_use]
    pub fn new(code: u16, message: impl Into<String>) -> SqlError {
        SqlError::of_kind(ErrorKind::Statement, code, message)
    }

    /// As [`SqlError::new`], with the meaning for the rest of the transaction.
    #[must_use]
    pub fn of_kind(kind: ErrorKind, code: u16, message: impl Into<String>) -> SqlError {
        SqlError { code, state: *sql_state(code), message: message.into(), kind }
    }

    /// Whether the statement's transaction was rolled back.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        matches!(self.kind, ErrorKind::TransactionGone | ErrorKind::OutcomeUnknown)
    }

    /// A feature that Firn does not have yet; `what` names it.
    #[must_use]
    pub fn not_supported(what: &str) -> SqlError {
        SqlError::new(1235, format!("This version of Firn doesn't yet support '{what}'"))
    }

    /// The statement was cancelled.
    #[cold]
    #[must_use]
    pub fn interrupted() -> SqlError {
        let message = "Query execution was interrupted";
        SqlError::of_kind(ErrorKind::Interrupted, 1317, message)
    }

    /// A lock that was not granted in time.
    #[cold]
    #[must_use]
    pub fn lock_wait_timeout() -> SqlError {
        from_rows(RowsError::LockWaitTimeout)
    }

    /// A query that has reached its time limit.
    #[cold]
    #[must_use]
    pub fn out_of_time() -> SqlError {
        let message = "Query execution was interrupted, maximum statement execution time exceeded";
        SqlError::of_kind(ErrorKind::Interrupted, 3024, message)
    }

    /// A statement that needs more memory than it may have.
    #[cold]
    #[must_use]
    pub fn out_of_memory(limit_bytes: u64) -> SqlError {
        let message = format!(
            "Out of memory; the statement needs more than its limit of {limit_bytes} bytes"
        );
        SqlError::of_kind(ErrorKind::OutOfMemory, 1041, message)
    }

    /// A value that is longer than `max_allowed_packet`.
    #[cold]
    #[must_use]
    pub fn larger_than_packet(function: &str, limit_bytes: u64) -> SqlError {
        let message = format!(
            "Result of {function}() was larger than max_allowed_packet ({limit_bytes}) - truncated"
        );
        SqlError::new(1301, message)
    }

    /// A row that does not fit in a page.
    #[cold]
    #[must_use]
    pub fn row_too_large(max_bytes: u64, prefix_bytes: u64) -> SqlError {
        let other_formats = match prefix_bytes {
            0 => "",
            _ => " or using ROW_FORMAT=DYNAMIC or ROW_FORMAT=COMPRESSED",
        };
        let message = format!(
            "Row size too large (> {max_bytes}). Changing some columns to TEXT or BLOB{other_formats} \
             may help. In current row format, BLOB prefix of {prefix_bytes} bytes is stored inline."
        );
        SqlError::new(1118, message)
    }

    /// A statement that nests deeper than the stack allows.
    #[cold]
    #[must_use]
    pub fn stack_overrun(used_bytes: usize, size_bytes: usize, needed_bytes: usize) -> SqlError {
        let message = format!(
            "Thread stack overrun:  {used_bytes} bytes used of a {size_bytes} byte stack, and \
             {needed_bytes} bytes needed.  Nest expressions and queries less deeply."
        );
        SqlError::too_complex(message)
    }

    /// A statement that nests deeper than a traversal of its tree may go.
    #[cold]
    #[must_use]
    pub fn too_complex(message: String) -> SqlError {
        SqlError::of_kind(ErrorKind::TooComplex, 1436, message)
    }

    /// A row that lacks a value or violates a constraint: `IGNORE` leaves it out.
    #[must_use]
    pub fn row_refused(code: u16, message: impl Into<String>) -> SqlError {
        SqlError::of_kind(ErrorKind::RowRefused, code, message)
    }

    /// A column's name that means nothing in a clause of the statement.
    #[must_use]
    pub fn unknown_column(name: &str, clause: &str) -> SqlError {
        let message = format!("Unknown column '{name}' in '{clause}'");
        SqlError::of_kind(ErrorKind::UnknownColumn, 1054, message)
    }

    /// A column's name that means nothing in a check constraint.
    #[must_use]
    pub fn unknown_column_of_check(name: &str, check: &str) -> SqlError {
        let message = format!("Check constraint '{check}' refers to non-existing column '{name}'.");
        SqlError::of_kind(ErrorKind::UnknownColumn, 3820, message)
    }

    /// Two columns of one query or table with the same name.
    #[must_use]
    pub fn duplicate_column(name: &str) -> SqlError {
        let message = format!("Duplicate column name '{name}'");
        SqlError::of_kind(ErrorKind::ColumnNamesMisfit, 1060, message)
    }

    /// A text without a statement.
    #[must_use]
    pub fn empty_query() -> SqlError {
        SqlError::of_kind(ErrorKind::EmptyQuery, 1065, "Query was empty")
    }

    /// A statement that the grammar refuses; `near` is the rest of its text.
    #[must_use]
    pub fn syntax(near: &str, line: u64) -> SqlError {
        let near: String = near.chars().take(80).collect();
        SqlError::new(
            1064,
            format!(
                "You have an error in your SQL syntax; check the manual that corresponds to your \
                 Firn server version for the right syntax to use near '{near}' at line {line}"
            ),
        )
    }
}

impl From<firn_base::memory::NoRoom> for SqlError {
    fn from(no_room: firn_base::memory::NoRoom) -> SqlError {
        SqlError::of_kind(ErrorKind::OutOfMemory, 1041, no_room.to_string())
    }
}

/// A node's error that needs no knowledge of the table. A duplicate key carries the bytes from the
/// index: a caller that knows the table words it like MySQL.
#[must_use]
pub fn from_rows(error: RowsError) -> SqlError {
    let kind = match &error {
        RowsError::WriteConflict => ErrorKind::Conflict,
        RowsError::OutcomeUnknown { .. } => ErrorKind::OutcomeUnknown,
        RowsError::Cancelled => ErrorKind::Interrupted,
        RowsError::NoMemory { .. } => ErrorKind::OutOfMemory,
        RowsError::DuplicateKey { .. } => ErrorKind::DuplicateKey,
        RowsError::LockWaitTimeout => ErrorKind::LockWaitTimeout,
        RowsError::NoSuchTable(_) | RowsError::NoSuchSchema(_) => ErrorKind::UnknownName,
        error if error.ends_transaction() => ErrorKind::TransactionGone,
        _ => ErrorKind::Statement,
    };
    match error {
        RowsError::RowTooLarge { .. } => SqlError::row_too_large(8126, 0),
        error => SqlError::of_kind(kind, error.mysql_code(), error.to_string()),
    }
}

/// The error for a stored value that does not match its type, or for which there is no memory.
#[must_use]
pub fn damaged(error: firn_format::value::ValueError) -> SqlError {
    match error {
        firn_format::value::ValueError::NoMemory(no_room) => no_room.into(),
        _ => SqlError::new(1034, format!("Damaged row: {error}")),
    }
}

/// The SQLSTATE that MySQL pairs with an error number.
#[must_use]
pub fn sql_state(code: u16) -> &'static [u8; 5] {
    match code {
        1022 | 1048 | 1052 | 1062 | 1169 | 1216 | 1217 | 1451 | 1452 | 1557 | 1586 | 1761
        | 1762 => b"23000",
        1044 | 1049 | 1051 | 1064 | 1109 | 1146 | 1176 => match code {
            1044 => b"42000",
            1051 | 1146 | 1109 => b"42S02",
            _ => b"42000",
        },
        1045 | 1698 => b"28000",
        1046 => b"3D000",
        1047 | 1053 | 1129 | 1130 => b"08S01",
        1050 => b"42S01",
        1054 | 1247 => b"42S22",
        1060 => b"42S21",
        1205 => b"HY000",
        1213 | 1614 => b"40001",
        1222 | 1241 => b"21000",
        1242 => b"21000",
        1136 => b"21S01",
        1264 | 1416 | 1690 => b"22003",
        1845 | 1846 => b"0A000",
        1265 | 1366 => match code {
            1265 => b"01000",
            _ => b"HY000",
        },
        1292 | 1411 => b"22007",
        1317 => b"70100",
        1365 => b"22012",
        1406 => b"22001",
        1235 | 1065 | 1055 | 1056 | 1061 | 1063 | 1066 | 1067 | 1068 | 1069 | 1070 | 1071
        | 1072 | 1073 | 1074 | 1075 | 1089 | 1091 | 1101 | 1102 | 1103 | 1104 | 1106 | 1107
        | 1110 | 1112 | 1113 | 1115 | 1118 | 1120 | 1121 | 1131 | 1132 | 1133 | 1138 | 1139
        | 1140 | 1141 | 1142 | 1143 | 1144 | 1145 | 1147 | 1148 | 1149 | 1162 | 1163 | 1164
        | 1166 | 1167 | 1170 | 1171 | 1172 | 1173 | 1177 | 1178 | 1203 | 1211 | 1226 | 1227
        | 1230 | 1231 | 1232 | 1234 | 1239 | 1248 | 1250 | 1252 | 1253 | 1280 | 1281 | 1286
        | 1304 | 1305 | 1318 | 1370 | 1403 | 1410 | 1425 | 1426 | 1427 | 1437 | 1439 | 1458
        | 1582 | 1583 | 1701 => b"42000",
        1193 => b"HY000",
        1179 => b"25000",
        1568 => b"25001",
        1758 => b"35000",
        3665 => b"22035",
        3666 => b"2203F",
        3057 => b"42000",
        1792 => b"25006",
        1397 => b"XAE04",
        1398 => b"XAE05",
        1399 => b"XAE07",
        1400 => b"XAE09",
        1440 => b"XAE08",
        1613 => b"XA106",
        1244 => b"42000",
        3140 | 3141 => b"22032",
        3143 => b"42000",
        3144 => b"22032",
        _ => b"HY000",
    }
}

/// The severity of a condition of `SHOW WARNINGS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Note,
    Warning,
    Error,
}

/// A condition of `SHOW WARNINGS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub level: Level,
    /// MySQL's number.
    pub code: u16,
    pub message: String,
}
