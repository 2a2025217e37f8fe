//! What the replica's sessions must do so that they stay like the writer's session, and which
//! queries they cannot answer like it.
//!
//! ```text
//!   USE, SET, PREPARE, HANDLER … OPEN          they run it too
//!   BEGIN … queries … COMMIT                   they too; the snapshot is of the same commit
//!   BEGIN … queries, UPDATE … queries, COMMIT  they roll back at the UPDATE, and wait for the end
//! ```

use std::collections::BTreeSet;

use super::statement::{Kind, Statement};

/// A session of the writer, described by the statements that it ran.
#[derive(Debug, Default)]
pub(super) struct Session {
    transaction: Open,
    has_no_autocommit: bool,
    has_locked_tables: bool,
    /// Whether `IS NULL` finds the session's last insert id.
    is_null_its_last_id: bool,
    temporary_tables: BTreeSet<String>,
    /// Names of prepared statements that write.
    prepared_writes: BTreeSet<String>,
    /// User variables that statements have set which only the writer ran.
    unknown_variables: BTreeSet<String>,
    /// Whether only the writer ran the last statement whose outcome can be asked for.
    was_alone: bool,
}

/// The transaction of the writer's session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Open {
    #[default]
    No,
    /// It has only read, so the replica's sessions are in the same transaction.
    Reading,
    /// It has written or locked.
    Written,
}

/// What the replica's sessions do about a statement that the writer has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    Nothing,
    /// They roll back.
    RollBack,
    /// They run it, and must succeed or fail like the writer.
    Repeat,
    /// They run it if they can.
    Try,
    /// A query: their answers must be the writer's.
    Compare,
    /// A query that they do not run, and why.
    LeaveOut(&'static str),
}

/// Functions whose result is of the session, of the moment, or of the server's locks.
const OF_THE_SESSION: &[&str] = &[
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LAST_INSERT_ID",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
];
/// Functions, variables and tables that describe a node.
const OF_A_NODE: &[&str] = &["CONNECTION_ID", "PROCESSLIST", "SERVER_UUID"];
/// Two words in turn that do.
const OF_A_NODE_BY_TWO: &[(&str, &str)] =
    &[("ENGINE", "INNODB"), ("PERFORMANCE_SCHEMA", "THREADS"), ("SYS", "SESSION")];

impl Session {
    /// What the replica's sessions do about a statement; `is_done`: it succeeded, `has_rows`: and
    /// returned rows.
    pub(super) fn duty(
        &mut self,
        statement: &Statement<'_>,
        is_done: bool,
        has_rows: bool,
    ) -> Duty {
        let duty = match statement.kind() {
            // A replica refuses it in another way.
            Kind::Query if !is_done && self.executes_a_write(statement) => {
                Duty::LeaveOut("locks or writes")
            }
            Kind::Query => self.duty_of_query(statement, !is_done || has_rows),
            Kind::Setting => self.duty_of_setting(statement),
            Kind::Begin => {
                self.transaction = if is_done { Open::Reading } else { self.transaction };
                Duty::Repeat
            }
            Kind::End | Kind::Savepoint if self.transaction == Open::Written => Duty::Nothing,
            Kind::End | Kind::Savepoint => Duty::Repeat,
            Kind::Commits => Duty::RollBack,
            Kind::Other => self.duty_of_other(statement),
        };
        if matches!(statement.kind(), Kind::End | Kind::Commits) {
            self.transaction = Open::No;
        }
        self.note(statement, is_done);
        let is_alone = matches!(duty, Duty::Nothing | Duty::RollBack | Duty::LeaveOut(_));
        if is_alone && statement.assigns() {
            self.unknown_variables.extend(statement.variables());
        }
        if !statement.asks_of_the_one_before() {
            self.was_alone = is_alone;
        }
        duty
    }

    /// Notes what is in force from now on.
    fn note(&mut self, statement: &Statement<'_>, is_done: bool) {
        if is_done && let Some(value) = statement.value_of("AUTOCOMMIT") {
            self.has_no_autocommit = matches!(value, "0" | "OFF");
            self.transaction = Open::No;
        }
        if is_done && let Some(value) = statement.value_of("SQL_AUTO_IS_NULL") {
            self.is_null_its_last_id = matches!(value, "1" | "ON");
        }
        if statement.begins_with(&["LOCK"]) && is_done {
            self.has_locked_tables = statement.has(&["WRITE"]);
        } else if statement.begins_with(&["UNLOCK"]) {
            self.has_locked_tables = false;
        }
        self.temporary_tables.extend(statement.temporary_table().map(str::to_owned));
        if let ["PREPARE", name, ..] = statement.first()[..] {
            self.prepared_writes.remove(name);
            if statement.text.contains("INSERT") {
                self.prepared_writes.insert(name.to_owned());
            }
        }
    }

    fn executes_a_write(&self, statement: &Statement<'_>) -> bool {
        match statement.first()[..] {
            ["EXECUTE", name, ..] => self.prepared_writes.contains(name),
            _ => false,
        }
    }

    fn duty_of_setting(&mut self, statement: &Statement<'_>) -> Duty {
        let names = statement.variables();
        let is_unknown = |name: &String| self.unknown_variables.contains(name);
        if names.len() > 1 && names.iter().any(is_unknown) || statement.has(OF_THE_SESSION) {
            self.unknown_variables.extend(names);
            return Duty::Nothing;
        }
        if statement.begins_with(&["SET"]) {
            self.unknown_variables.retain(|name| !names.contains(name));
        }
        Duty::Repeat
    }

    fn duty_of_other(&mut self, statement: &Statement<'_>) -> Duty {
        if statement.begins_with(&["XA", "START"]) || statement.begins_with(&["XA", "BEGIN"]) {
            self.transaction = Open::Written;
        } else if statement.begins_with(&["XA"]) && !statement.begins_with(&["XA", "END"]) {
            self.transaction = Open::No;
        }
        self.write()
    }

    /// The open transaction writes or locks.
    fn write(&mut self) -> Duty {
        if self.transaction == Open::No && !self.has_no_autocommit {
            return Duty::Nothing;
        }
        self.transaction = Open::Written;
        Duty::RollBack
    }

    fn duty_of_query(&mut self, statement: &Statement<'_>, is_compared: bool) -> Duty {
        match self.is_left_out(statement) {
            None if is_compared => Duty::Compare,
            None => Duty::Try,
            Some(reason) => {
                if statement.locks_or_writes() {
                    let _ = self.write();
                }
                Duty::LeaveOut(reason)
            }
        }
    }

    /// Why a query does not run on the replica; `None` if it does.
    fn is_left_out(&self, statement: &Statement<'_>) -> Option<&'static str> {
        let mut variables = statement.variables().into_iter();
        let reasons = [
            (statement.locks_or_writes(), "locks or writes"),
            (self.transaction == Open::Written, "in a transaction that has written"),
            (self.has_locked_tables, "under LOCK TABLES … WRITE"),
            (self.is_null_its_last_id, "under sql_auto_is_null"),
            (
                self.temporary_tables.iter().any(|table| statement.has(&[table])),
                "a temporary table",
            ),
            (
                variables.any(|name| self.unknown_variables.contains(&name)),
                "a variable that a write has set",
            ),
            (self.was_alone && statement.asks_of_the_one_before(), "the outcome of a write"),
            (statement.has(OF_THE_SESSION), "the session's locks and ids"),
            (is_about_a_node(statement), "about the node"),
            (statement.has_pair("DATA_LENGTH", "INDEX_LENGTH"), "sizes of all tables"),
        ];
        reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
    }
}

fn is_about_a_node(statement: &Statement<'_>) -> bool {
    let by_two = |(one, other): &(&str, &str)| statement.has_pair(one, other);
    statement.has(OF_A_NODE) || statement.lists_all() || OF_A_NODE_BY_TWO.iter().any(by_two)
}
