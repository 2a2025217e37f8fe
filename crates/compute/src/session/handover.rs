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
    /// A statement of the session is running.
    #[error("a statement of the session runs; it can be moved once that has ended")]
    StatementRuns,
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

type Moved<T> = Result<T, HandoverError>;

impl SqlSession {
    /// Writes the session down. From then on it answers nothing, and its end releases nothing that
    /// the document names. Does not block.
    ///
    /// # Errors
    /// Why it cannot move; it then continues unchanged.
    pub fn suspend(&mut self) -> Moved<Vec<u8>> {
        let handover = Handover { session: self };
        handover.judge()?;
        let written = handover.written()?;
        self.catalog.detach_temporary_tables();
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
        Handover { session: &mut session }.take_up(written)?;
        Ok(session)
    }
}

/// What moves between a session and the document.
struct Handover<'s> {
    session: &'s mut SqlSession,
}

impl Handover<'_> {
    fn judge(&self) -> Moved<()> {
        if self.session.transactions.open.is_some() || self.session.transactions.xa.is_some() {
            return Err(HandoverError::TransactionOpen);
        }
        if !self.session.locked.is_empty()
            || self.session.instance.server.holds_read_lock(self.session.facts.id)
        {
            return Err(HandoverError::TablesLocked);
        }
        match self.session.handlers.is_empty() {
            true => Ok(()),
            false => Err(HandoverError::HandlerOpen),
        }
    }

    fn written(&self) -> Moved<WrittenSession> {
        let connection = &self.session.state.connection;
        let numbered = connection.numbered.iter().map(|(number, place)| {
            let statement = place.as_ref().ok_or(HandoverError::StatementRuns)?;
            Ok((*number, statement.written()))
        });
        let named = connection.named.iter().map(|(name, one)| (name.clone(), one.written()));
        let user_variables = connection.user_variables.iter();
        let tables = self.session.catalog.temporary_tables().into_iter();
        let next = self.session.transactions.next;
        Ok(WrittenSession {
            connection: self.session.facts.id,
            account: self.session.rights.account.name.clone(),
            roles: self.session.facts.roles.lock().clone(),
            schema: connection.schema.as_deref().map(str::to_owned),
            variables: connection.variables.different_from(&self.session.instance.variables),
            results_collation: connection.variables.own_results_collation(),
            user_variables: user_variables
                .map(|(name, one)| (name.to_string(), one.clone()))
                .collect(),
            numbered: numbered.collect::<Moved<_>>()?,
            named: named.collect(),
            next_isolation: next.isolation.map(|level| isolation_name(level).to_owned()),
            next_read_only: next.read_only,
            last_insert_id: self.session.facts.last_insert_id.load(Ordering::Relaxed),
            insert_id: self.session.facts.insert_id.load(Ordering::Relaxed),
            row_count: self.session.facts.row_count.load(Ordering::Relaxed),
            found_rows: self.session.facts.found_rows.load(Ordering::Relaxed),
            user_locks: self
                .session
                .instance
                .server
                .user_locks_of(self.session.facts.id)
                .into_iter()
                .collect(),
            temporary_tables: tables
                .map(|(schema, name, table)| WrittenTable { schema, name, table })
                .collect(),
        })
    }

    fn take_up(&mut self, written: WrittenSession) -> Moved<()> {
        for (name, value) in &written.variables {
            self.session.state.connection.variables.take_over(name, value.clone())?;
        }
        if let Some(collation) = written.results_collation {
            self.session.state.connection.variables.install_results_collation(collation);
        }
        let own = i64::try_from(self.session.facts.id).unwrap_or(i64::MAX);
        self.session.state.connection.variables.install("pseudo_thread_id", Setting::Number(own));
        self.session.settings_changed()?;
        *self.session.facts.roles.lock() = written.roles;
        self.session.rights.forget();
        self.session.rights.refresh()?;
        if let Some(schema) = &written.schema {
            self.session.enter_schema(Arc::from(schema.as_str()));
        }
        for (name, (value, ty)) in written.user_variables {
            self.session.state.connection.user_variables.insert(name.into(), (value, ty));
        }
        self.session.transactions.next = NextTransaction {
            isolation: written.next_isolation.as_deref().map(isolation_of).transpose()?,
            read_only: written.next_read_only,
        };
        self.session.facts.last_insert_id.store(written.last_insert_id, Ordering::Relaxed);
        self.session.facts.insert_id.store(written.insert_id, Ordering::Relaxed);
        self.session.facts.row_count.store(written.row_count, Ordering::Relaxed);
        self.session.facts.found_rows.store(written.found_rows, Ordering::Relaxed);
        for (number, statement) in &written.numbered {
            let prepared = Box::new(self.prepared_again(statement)?);
            self.session.state.connection.numbered.insert(*number, Some(prepared));
        }
        for (name, statement) in &written.named {
            let prepared = self.prepared_again(statement)?;
            self.session.state.connection.named.insert(name.clone(), prepared);
        }
        let tables = written.temporary_tables.into_iter();
        let tables = tables.map(|one| (one.schema, one.name, one.table)).collect();
        self.session.catalog.adopt_temporary_tables(tables)?;
        self.take_over_locks(written.connection, &written.user_locks)
    }

    fn prepared_again(&mut self, statement: &WrittenStatement) -> Moved<PreparedStatement> {
        Ok(PreparedStatements { session: self.session }
            .take_apart(&statement.text, statement.mode)?)
    }

    fn take_over_locks(&self, from: u64, locks: &BTreeMap<String, u64>) -> Moved<()> {
        let server = &self.session.instance.server;
        let held: BTreeMap<String, u64> = server.user_locks_of(from).into_iter().collect();
        if let Some(lost) = locks.keys().find(|name| !held.contains_key(*name)) {
            return Err(HandoverError::LockLost(lost.clone()));
        }
        server.hand_over_user_locks(from, self.session.facts.id);
        Ok(())
    }
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
