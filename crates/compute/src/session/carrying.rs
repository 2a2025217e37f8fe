//! What the process that has the client keeps of a session, to go on with it at another server when
//! this one is gone: the session-state document of [`super::handover`], and the results of the last
//! statements.
//!
//! Variables are told as far as they differ from their built-in values, because the other server
//! may have other global ones: a session keeps those of the server at which it began.
//!
//! A session is written down again only when something in it has changed. [`Mark`] tells that: five
//! numbers that a change moves, compared after each command.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::rows::{IsolationLevel, ReadConsistency};
use firn_base::Cts;
use firn_wire::{Carried, LastResults};

use super::document;
use super::handover::{Moved, take_up, written};
use super::runner::StatementRunner;
use super::transaction::NextTransaction;
use super::{Beginning, SqlSession, is_virtual};
use crate::instance::Instance;
use crate::session_facts::Facts;

/// Differs between two moments if what the document says differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Mark {
    /// Changes with settings and the current schema.
    epoch: u64,
    variables: u64,
    /// Changes with user variables.
    connection: u64,
    prepared: u64,
    roles: u64,
    next: NextTransaction,
}

/// What was last told of a session.
#[derive(Default)]
pub(super) struct Carrying {
    told: Mark,
    /// Whether anything was told since the session was opened.
    has_told: bool,
}

impl SqlSession {
    /// From here on changes are told.
    pub(super) fn begin_carrying(&mut self) {
        self.carrying = Carrying { told: self.mark(), has_told: false };
    }

    fn mark(&self) -> Mark {
        let runner = &self.runner;
        let connection = &runner.state.connection;
        Mark {
            epoch: runner.epoch,
            variables: connection.variables.changes(),
            connection: connection.changes,
            prepared: self.prepared.changes,
            roles: runner.facts.role_changes.load(Ordering::Relaxed),
            next: runner.transactions.next,
        }
    }

    /// What has changed since the last call.
    pub(crate) fn what_is_carried(&mut self) -> Carried {
        let mark = self.mark();
        let is_first = !std::mem::replace(&mut self.carrying.has_told, true);
        // Sessions of a server with other global values begin with more than the login says.
        let has_own_beginning =
            is_first && self.runner.state.connection.variables.has_own_beginning();
        let document = (mark != self.carrying.told || has_own_beginning).then(|| {
            self.carrying.told = mark;
            document::encode(&written(&self.runner, &self.prepared))
        });
        Carried {
            document,
            last: LastResults { written: self.written_up_to(), ..last_results(&self.runner.facts) },
            is_bound: self.is_bound(),
            reads_at_home: self.reads_at_home(),
        }
    }

    fn reads_at_home(&self) -> bool {
        let StatementRunner { settings, transactions, state, .. } = &self.runner;
        let schema = state.connection.schema.as_deref();
        let isolation = transactions.next.isolation.unwrap_or(settings.isolation);
        schema.is_some_and(is_virtual) || isolation == IsolationLevel::Serializable
    }

    /// A timestamp from which on a replica has all that the session has committed, if its reads
    /// want just that.
    fn written_up_to(&self) -> u64 {
        let StatementRunner { instance, settings, written, transactions, .. } = &self.runner;
        let wants_own = matches!(settings.read_consistency, ReadConsistency::Position(_));
        if !wants_own || instance.freshness.is_some() || transactions.open.is_some() {
            return written.0;
        }
        let newest = instance.node.begin(IsolationLevel::ReadCommitted).map(|mut transaction| {
            transaction.open_snapshot();
            transaction.snapshot()
        });
        newest.ok().flatten().map_or(written.0, |newest| newest.0.max(written.0))
    }

    /// Whether the session has something that ends with this server, besides a transaction
    /// ([`super::leaving`]).
    pub(super) fn is_bound(&self) -> bool {
        let runner = &self.runner;
        let facts = &runner.facts;
        let server = &runner.instance.server;
        let has_read_lock =
            || runner.instance.write_gate.may_be_closed() && server.holds_read_lock(facts.id);
        let has_tables = || {
            runner.catalog.temporary_version() > 0 && !runner.catalog.temporary_tables().is_empty()
        };
        runner.transactions.xa.is_some()
            || !runner.locked.is_empty()
            || !self.handlers.is_empty()
            || has_tables()
            || !facts.user_locks().is_empty()
            || has_read_lock()
    }

    /// A session that goes on as one that another server had.
    ///
    /// # Errors
    /// What of it there is not any more.
    pub(crate) fn go_on(
        instance: &Arc<Instance>,
        beginning: Beginning,
        document: Option<&[u8]>,
        last: &LastResults,
    ) -> Moved<SqlSession> {
        let Some(document) = document else {
            let mut session = SqlSession::open(instance, beginning)?;
            session.forget_global_values()?;
            session.take_last_results(last);
            session.begin_carrying();
            return Ok(session);
        };
        let written = document::decode(document)?;
        if written.account != beginning.account.name {
            return Err(super::HandoverError::OtherAccount(written.account));
        }
        let beginning = Beginning { schema: None, ..beginning };
        let mut session = SqlSession::open(instance, beginning)?;
        session.runner.state.connection.variables.begin_again();
        take_up(&mut session.runner, &mut session.prepared, written)?;
        session.take_last_results(last);
        session.begin_carrying();
        Ok(session)
    }

    /// The session begins with the built-in values of variables in place of this server's.
    fn forget_global_values(&mut self) -> Moved<()> {
        let runner = &mut self.runner;
        if runner.state.connection.variables.has_own_beginning() {
            runner.state.connection.variables.begin_with_built_in();
            runner.settings_changed()?;
        }
        Ok(())
    }

    pub(crate) fn take_last_results(&mut self, last: &LastResults) {
        self.runner.written = Cts(last.written);
        let facts = &self.runner.facts;
        facts.last_insert_id.store(last.last_insert_id, Ordering::Relaxed);
        facts.insert_id.store(last.insert_id, Ordering::Relaxed);
        facts.row_count.store(last.row_count, Ordering::Relaxed);
        facts.found_rows.store(last.found_rows, Ordering::Relaxed);
    }
}

fn last_results(facts: &Facts) -> LastResults {
    LastResults {
        last_insert_id: facts.last_insert_id.load(Ordering::Relaxed),
        insert_id: facts.insert_id.load(Ordering::Relaxed),
        row_count: facts.row_count.load(Ordering::Relaxed),
        found_rows: facts.found_rows.load(Ordering::Relaxed),
        written: 0,
    }
}
