//! What a client has set up in its session, written down, and taken up by a session of another
//! server.
//!
//! ```text
//!   old session   written ─► document          kept by who has the client
//!   new session   take_up(document)            prepares its statements again
//! ```
//!
//! Session variables with character sets and SQL mode, user variables, prepared statements, the
//! current schema, roles, and the results of `LAST_INSERT_ID()` and the like. What ends with a
//! server goes another way, see [`super::leaving`]. A connection keeps its id only if the wire
//! keeps it: `CONNECTION_ID()` is that of the new connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::rows::IsolationLevel;
use firn_sql::error::SqlError;

use super::document::{DocumentError, WrittenSession, WrittenStatement};
use super::prepared::{PreparedStatement, PreparedStatements};
use super::runner::StatementRunner;
use super::transaction::NextTransaction;
use crate::accounts::AccountName;
use crate::variables::Setting;

/// Why a session cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// The document is damaged or from another version.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The document belongs to another account than the client's.
    #[error("the session is of {0}, and another account cannot take it up")]
    OtherAccount(AccountName),
    /// Something that the session needs does not exist any more, or is refused now.
    #[error("{0}")]
    Refused(SqlError),
}

impl From<SqlError> for HandoverError {
    fn from(error: SqlError) -> HandoverError {
        HandoverError::Refused(error)
    }
}

pub(super) type Moved<T> = Result<T, HandoverError>;

pub(super) fn written(runner: &StatementRunner, prepared: &PreparedStatements) -> WrittenSession {
    let StatementRunner { state, facts, rights, transactions, .. } = runner;
    let connection = &state.connection;
    let numbered = prepared.numbered.iter().map(|(number, one)| (*number, one.written()));
    let named = prepared.named.iter().map(|(name, one)| (name.clone(), one.written()));
    let user_variables = connection.user_variables.iter();
    let next = transactions.next;
    WrittenSession {
        account: rights.account.name.clone(),
        roles: facts.roles.lock().clone(),
        schema: connection.schema.as_deref().map(str::to_owned),
        variables: connection.variables.different_from_built_in(),
        results_collation: connection.variables.own_results_collation(),
        user_variables: user_variables.map(|(name, one)| (name.to_string(), one.clone())).collect(),
        numbered: numbered.collect(),
        named: named.collect(),
        next_isolation: next.isolation.map(|level| isolation_name(level).to_owned()),
        next_read_only: next.read_only,
        last_insert_id: facts.last_insert_id.load(Ordering::Relaxed),
        insert_id: facts.insert_id.load(Ordering::Relaxed),
        row_count: facts.row_count.load(Ordering::Relaxed),
        found_rows: facts.found_rows.load(Ordering::Relaxed),
    }
}

pub(super) fn take_up(
    runner: &mut StatementRunner,
    prepared: &mut PreparedStatements,
    written: WrittenSession,
) -> Moved<()> {
    let variables = &mut runner.state.connection.variables;
    for (name, value) in &written.variables {
        variables.take_over(name, value.clone())?;
    }
    if let Some(collation) = written.results_collation {
        variables.install_results_collation(collation);
    }
    let own = i64::try_from(runner.facts.id).unwrap_or(i64::MAX);
    variables.install("pseudo_thread_id", Setting::Number(own));
    runner.settings_changed()?;
    *runner.facts.roles.lock() = written.roles;
    runner.rights.forget();
    runner.rights.refresh()?;
    if let Some(schema) = &written.schema {
        runner.enter_schema(Arc::from(schema.as_str()));
    }
    for (name, (value, ty)) in written.user_variables {
        runner.state.connection.user_variables.insert(name.into(), (value, ty));
    }
    runner.transactions.next = NextTransaction {
        isolation: written.next_isolation.as_deref().map(isolation_of).transpose()?,
        read_only: written.next_read_only,
    };
    runner.facts.last_insert_id.store(written.last_insert_id, Ordering::Relaxed);
    runner.facts.insert_id.store(written.insert_id, Ordering::Relaxed);
    runner.facts.row_count.store(written.row_count, Ordering::Relaxed);
    runner.facts.found_rows.store(written.found_rows, Ordering::Relaxed);
    let again = |one: &WrittenStatement| PreparedStatement::new(runner, &one.text, one.mode);
    for (number, statement) in &written.numbered {
        prepared.numbered.insert(*number, Box::new(again(statement)?));
    }
    for (name, statement) in &written.named {
        prepared.named.insert(name.clone(), again(statement)?);
    }
    Ok(())
}

/// The isolation levels by their names in `@@transaction_isolation`.
const LEVELS: [(IsolationLevel, &str); 3] = [
    (IsolationLevel::ReadCommitted, "READ-COMMITTED"),
    (IsolationLevel::RepeatableRead, "REPEATABLE-READ"),
    (IsolationLevel::Serializable, "SERIALIZABLE"),
];

fn isolation_name(level: IsolationLevel) -> &'static str {
    LEVELS.iter().find(|(known, _)| *known == level).map_or("REPEATABLE-READ", |(_, name)| name)
}

fn isolation_of(name: &str) -> Moved<IsolationLevel> {
    let level = LEVELS.iter().find(|(_, known)| *known == name).map(|(level, _)| *level);
    level.ok_or_else(|| {
        HandoverError::Refused(SqlError::new(1231, format!("'{name}' is no isolation level")))
    })
}
