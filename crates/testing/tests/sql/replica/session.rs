//! State of a writer's session that a session of the replica lacks.

use std::collections::BTreeSet;

/// A session of the writer, described by the statements that it ran.
#[derive(Debug, Default)]
pub(super) struct Session {
    is_in_transaction: bool,
    has_no_autocommit: bool,
    has_locked_tables: bool,
    /// Whether `IS NULL` finds the session's last insert id.
    is_null_its_last_id: bool,
    temporary_tables: BTreeSet<String>,
}

/// Whether the text sets something in the session that the replica's sessions must also set.
pub(super) fn is_setting(text: &str) -> bool {
    let words = words(text);
    let is_of_others = |word: &&str| {
        ["GLOBAL", "PERSIST", "PERSIST_ONLY", "PASSWORD", "AUTOCOMMIT", "FIRN_EXECUTOR"]
            .contains(word)
    };
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["USE", ..] => true,
        ["SET", "TRANSACTION" | "DEFAULT", ..] => false,
        ["SET", ref rest @ ..] => !rest.iter().any(is_of_others),
        _ => false,
    }
}

/// Whether the text is a query.
pub(super) fn is_query(text: &str) -> bool {
    const FIRST: &[&str] = &[
        "CHECK", "DESC", "DESCRIBE", "EXECUTE", "EXPLAIN", "HANDLER", "SELECT", "SHOW", "TABLE",
        "VALUES", "WITH",
    ];
    words(text).first().is_some_and(|first| FIRST.contains(&first.as_str()))
}

/// Whether the text may ask for definitions of all schemas.
pub(super) fn is_about_definitions(text: &str) -> bool {
    words(text).iter().any(|word| word == "SHOW" || word == "INFORMATION_SCHEMA")
}

/// Whether the text orders its rows.
pub(super) fn is_ordered(text: &str) -> bool {
    words(text).iter().any(|word| word == "ORDER")
}

/// Words that request locks.
const LOCKING: &[&str] = &["UPDATE", "SHARE"];
/// Functions whose result depends on the session, the time or chance.
const OF_THE_MOMENT: &[&str] = &[
    "BENCHMARK",
    "CONNECTION_ID",
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURTIME",
    "FOUND_ROWS",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LAST_INSERT_ID",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "NOW",
    "RAND",
    "RANDOM_BYTES",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROW_COUNT",
    "SLEEP",
    "SYSDATE",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "UUID",
    "UUID_SHORT",
];
/// Tables and columns that describe a node or its counters.
const OF_A_NODE: &[&str] = &[
    "AUTO_INCREMENT",
    "CARDINALITY",
    "DATA_LENGTH",
    "INNODB_METRICS",
    "INNODB_TRX",
    "PERFORMANCE_SCHEMA",
    "PROCESSLIST",
    "SYS",
    "TABLE_ROWS",
];

impl Session {
    /// Notes a statement that has run.
    pub(super) fn ran(&mut self, text: &str, is_done: bool) {
        let words = words(text);
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["BEGIN" | "START", ..] | ["XA", "START" | "BEGIN", ..] => {
                self.is_in_transaction |= is_done;
            }
            ["ROLLBACK", "TO", ..] | ["ROLLBACK", "WORK", "TO", ..] => {}
            ["COMMIT" | "ROLLBACK" | "ALTER" | "CREATE" | "DROP" | "TRUNCATE" | "RENAME", ..]
            | ["XA", "PREPARE" | "COMMIT" | "ROLLBACK", ..] => {
                self.is_in_transaction = false;
            }
            ["SET", "AUTOCOMMIT", ref value @ ..] if is_done => {
                self.has_no_autocommit = matches!(value, ["0" | "OFF"]);
            }
            ["SET", "SQL_AUTO_IS_NULL", ref value @ ..] if is_done => {
                self.is_null_its_last_id = matches!(value, ["1" | "ON"]);
            }
            ["LOCK", ..] if is_done => self.has_locked_tables = true,
            ["UNLOCK", ..] => self.has_locked_tables = false,
            _ => {}
        }
        if let Some(at) = words.iter().position(|word| word == "TEMPORARY") {
            let name = words[at..].iter().find(|word| {
                !["TEMPORARY", "TABLE", "IF", "NOT", "EXISTS"].contains(&word.as_str())
            });
            self.temporary_tables.extend(name.cloned());
        }
    }

    /// Why a query does not run on the replica; `None` if it does.
    pub(super) fn is_left_out(&self, text: &str) -> Option<&'static str> {
        let words = words(text);
        let has = |some: &[&str]| words.iter().any(|word| some.contains(&word.as_str()));
        let first = words.first().map(String::as_str);
        match first {
            Some("SELECT" | "WITH" | "TABLE" | "VALUES" | "DESCRIBE" | "DESC") => {}
            Some("SHOW") if has(&["COLUMNS", "FIELDS", "CREATE", "INDEX", "TABLES"]) => {}
            _ => return Some("another kind of query"),
        }
        if self.is_in_transaction || self.has_no_autocommit {
            return Some("in a transaction");
        }
        if self.has_locked_tables {
            return Some("under LOCK TABLES");
        }
        if self.is_null_its_last_id {
            return Some("under sql_auto_is_null");
        }
        if words.iter().any(|word| self.temporary_tables.contains(word)) {
            return Some("a temporary table");
        }
        if text.contains('@') {
            return Some("a variable");
        }
        let is_locking = words.windows(2).any(|pair| {
            pair[0] == "FOR" && LOCKING.contains(&pair[1].as_str()) || pair == ["SHARE", "MODE"]
        });
        if is_locking || has(&["INTO"]) {
            return Some("locks or writes");
        }
        if has(OF_THE_MOMENT) {
            return Some("a function of the session, the moment or chance");
        }
        has(OF_A_NODE).then_some("about the node")
    }
}

/// The words of a statement in capitals, without quoted parts.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for letter in text.chars().chain([' ']) {
        if quote.is_some() {
            quote = quote.filter(|open| *open != letter);
        } else if letter.is_alphanumeric() || letter == '_' {
            word.extend(letter.to_uppercase());
        } else {
            quote = Some(letter).filter(|letter| ['\'', '"'].contains(letter));
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        }
    }
    words
}
