//! A session that moves: written down here, and resumed by a session of the same server on any
//! compute node.
//!
//! ```text
//!   old session   suspend ─► document          holds nothing but its user locks from here on
//!   new session   resume(document)             takes over user locks and temporary tables
//! ```
//!
//! What moves: session variables with character sets and SQL mode, user variables, prepared
//! statements, the current schema, roles, the results of `LAST_INSERT_ID()` and the like, user
//! locks, temporary tables. State that cannot move yet is refused before anything has happened, see
//! [`HandoverError`]. A connection keeps its id only if the wire keeps it: `CONNECTION_ID()` is
//! that of the new connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::rows::IsolationLevel;
use firn_api::server::ServerStateError;
use firn_sql::error::SqlError;

use super::document::{self, DocumentError, WrittenSession, WrittenStatement, WrittenTable};
use super::prepared::{PreparedStatement, PreparedStatements};
use super::runner::StatementRunner;
use super::transaction::NextTransaction;
use super::{Beginning, SqlSession};
use crate::accounts::AccountName;
use crate::instance::Instance;
use crate::variables::Setting;

/// Why a session cannot move.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// A transaction is open and must end first. A later try may succeed.
    #[error("the session has an open transaction; it can be moved once that has ended")]
    TransactionOpen,
    /// The session holds locks of this node: `LOCK TABLES`, `FLUSH TABLES WITH READ LOCK`.
    #[error("the session has locked tables; it can be moved after UNLOCK TABLES")]
    TablesLocked,
    /// A table is open by `HANDLER`.
    #[error("the session has opened tables with HANDLER; it can be moved once they are closed")]
    HandlerOpen,
    /// The document is damaged or from another version.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The document belongs to another account than the resuming client.
    #[error("the session is of {0}, and another account cannot take it up")]
    OtherAccount(AccountName),
    /// A user lock is no longer held.
    #[error("the user lock '{0}' of the session was given back meanwhile")]
    LockLost(String),
    /// Something that the session needs does not exist any more, or is refused now.
    #[error("{0}")]
    Refused(SqlError),
    /// The server's state cannot be reached.
    #[error(transparent)]
    Server(#[from] ServerStateError),
}

impl From<SqlError> for HandoverError {
    fn from(error: SqlError) -> HandoverError {
        HandoverError::Refused(error)
    }
}

pub(super) type Moved<T> = Result<T, HandoverError>;

impl SqlSession {
    /// Writes the session down. From then on it answers nothing, and its end releases nothing that
    /// the document names. Does not block.
    ///
    /// # Errors
    /// Why it cannot move; it then continues unchanged.
    pub fn suspend(&mut self) -> Moved<Vec<u8>> {
        judge(self)?;
        let written = written(&self.runner, &self.prepared);
        self.runner.catalog.detach_temporary_tables();
        self.is_suspended = true;
        Ok(document::encode(&written))
    }

    /// A new session that resumes what another one wrote down. Blocks.
    ///
    /// # Errors
    /// What cannot be resumed. The document can then be used again, unless the error says
    /// otherwise.
    pub fn resume(
        instance: &Arc<Instance>,
        beginning: Beginning,
        document: &[u8],
    ) -> Moved<SqlSession> {
        let written = document::decode(document)?;
        if written.account != beginning.account.name {
            return Err(HandoverError::OtherAccount(written.account));
        }
        let beginning = Beginning { schema: None, ..beginning };
        let mut session = SqlSession::open(instance, beginning)?;
        take_up(&mut session.runner, &mut session.prepared, written)?;
        Ok(session)
    }
}

fn judge(session: &SqlSession) -> Moved<()> {
    let SqlSession { runner, handlers, .. } = session;
    if runner.transactions.open.is_some() || runner.transactions.xa.is_some() {
        return Err(HandoverError::TransactionOpen);
    }
    if !runner.locked.is_empty() || runner.instance.server.holds_read_lock(runner.facts.id) {
        return Err(HandoverError::TablesLocked);
    }
    match handlers.is_empty() {
        true => Ok(()),
        false => Err(HandoverError::HandlerOpen),
    }
}

pub(super) fn written(runner: &StatementRunner, prepared: &PreparedStatements) -> WrittenSession {
    let StatementRunner { state, catalog, facts, rights, instance, transactions, .. } = runner;
    let connection = &state.connection;
    let numbered = prepared.numbered.iter().map(|(number, one)| (*number, one.written()));
    let named = prepared.named.iter().map(|(name, one)| (name.clone(), one.written()));
    let user_variables = connection.user_variables.iter();
    let tables = catalog.temporary_tables().into_iter();
    let next = transactions.next;
    WrittenSession {
        connection: facts.id,
        account: rights.account.name.clone(),
        roles: facts.roles.lock().clone(),
        schema: connection.schema.as_deref().map(str::to_owned),
        variables: connection.variables.different_from(&instance.variables),
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
        user_locks: instance.server.user_locks_of(facts.id).into_iter().collect(),
        temporary_tables: tables
            .map(|(schema, name, table)| WrittenTable { schema, name, table })
            .collect(),
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
    let tables = written.temporary_tables.into_iter();
    let tables = tables.map(|one| (one.schema, one.name, one.table)).collect();
    runner.catalog.adopt_temporary_tables(tables)?;
    take_over_locks(runner, written.connection, &written.user_locks)
}

fn take_over_locks(
    runner: &StatementRunner,
    from: u64,
    locks: &BTreeMap<String, u64>,
) -> Moved<()> {
    let server = &runner.instance.server;
    let held: BTreeMap<String, u64> = server.user_locks_of(from).into_iter().collect();
    if let Some(lost) = locks.keys().find(|name| !held.contains_key(*name)) {
        return Err(HandoverError::LockLost(lost.clone()));
    }
    server.hand_over_user_locks(from, runner.facts.id);
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
