//! A client's session: it runs statements, using the parts below.
//!
//! ```text
//!   text ─► normalise ─► plan cache ──hit──────────────► run ─► rows to the client
//!                            └─miss─► parse ─► plan ────┘
//!                                       └─► SET, SHOW, BEGIN, CREATE …  each by its own file
//! ```
//!
//! | part | has |
//! |---|---|
//! | [`connection::ConnectionState`] | what the client has set up; moves to another session |
//! | [`rights::Rights`] | the account, its privileges, those of views' definers |
//! | [`transaction::Transactions`] | the open transaction and its locks |
//! | [`statement_view::State`] | what expressions and virtual tables see of all this |
//! | `XaStatements`, `ShowStatements`, … | a family of statements each, over the parts it needs |
//! | `SetStatements`, `LoadStatements`, … | families that run other statements in the session |
//!
//! Invariants:
//! * a statement is answered after its effects are durable, if they are meant to last;
//! * one thread uses a session at a time; others see only its [`Facts`];
//! * a session that ends rolls back, releases its locks and drops its temporary tables.

mod account;
mod binary_text;
mod buffers;
mod connection;
mod definition;
mod diagnostics;
mod document;
mod execution;
mod executor;
mod explain;
mod handler;
mod handover;
mod immediate_results;
mod kill;
mod load;
mod locked_tables;
mod metadata_lock;
mod outfile;
mod plan_checks;
mod prepared;
mod protocol_commands;
mod query;
mod read_only;
mod renewal;
mod rights;
mod rows;
mod scalar_expressions;
mod select_into;
mod set;
mod settings;
mod show;
mod statement;
mod statement_measurement;
mod statement_view;
mod tables;
mod transaction;
mod view_rights;
mod xa;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_sql::catalog::SessionCatalog;
use firn_sql::error::{Condition, Level, Result, SqlError};
use firn_sql::grammar;
use firn_sql::types::EvaluationContext;
use firn_sql::types::session_facts::SessionFacts;
use firn_wire::{ConnectionControl, Connections, ServerError, Status, TlsInformation, WireError};

use crate::accounts::Account;
use crate::instance::Instance;
use crate::session_facts::Facts;
use crate::variables::Setting;

use buffers::StatementBuffers;
pub use document::DocumentError;
pub use handover::HandoverError;
pub(crate) use prepared::PreparedStatements;

use locked_tables::LockedTables;
use rights::Rights;
use settings::Settings;
use statement_measurement::Measured;
use statement_view::State;
use transaction::Transactions;

pub struct SqlSession {
    instance: Arc<Instance>,
    facts: Arc<Facts>,
    control: Arc<ConnectionControl>,
    connections: Arc<Connections>,
    catalog: Arc<SessionCatalog>,
    rights: Rights,
    settings: Settings,
    state: State,
    transactions: Transactions,
    conditions: Vec<Condition>,
    evaluation: EvaluationContext,
    buffers: StatementBuffers,
    /// Changes with everything that plans depend on besides definitions: settings and the current
    /// schema.
    epoch: u64,
    /// The counts of the current statement so far.
    measured: Measured,
    /// The client asked to end the connection (`COMMIT RELEASE`).
    ends: bool,
    locked: LockedTables,
    /// The tables that `HANDLER` has opened.
    handlers: Vec<handler::OpenHandler>,
    /// It was written down, and continues elsewhere.
    is_suspended: bool,
    /// The query of a view that is being created is being planned.
    judges_view: bool,
    /// The statement was not run, because its plan was no longer valid when its tables were locked.
    plan_is_stale: bool,
}

/// How a session begins.
pub struct Beginning {
    pub control: Arc<ConnectionControl>,
    /// All connections, for `KILL`.
    pub connections: Arc<Connections>,
    /// The name sent by the client.
    pub user: String,
    /// Where the client comes from.
    pub host: String,
    pub account: Arc<Account>,
    /// The initial schema.
    pub schema: Option<String>,
    /// The client's collation by its number.
    pub collation: u16,
    /// The negotiated TLS parameters.
    pub tls: Option<TlsInformation>,
}

impl SqlSession {
    /// Begins a session.
    ///
    /// # Errors
    /// 1049 or 1044 for the schema.
    pub fn open(instance: &Arc<Instance>, beginning: Beginning) -> Result<SqlSession> {
        let Beginning { control, connections, user, host, account, schema, collation, tls } =
            beginning;
        let id = u64::from(control.id());
        let facts = Facts::new(&instance.facts, id, user, host, account.name.clone());
        *facts.roles.lock() = account.default_roles.clone();
        let facts = Arc::new(facts);
        let mut variables = instance.variables.session();
        variables.install("pseudo_thread_id", Setting::Number(id as i64));
        let settings = Settings::of(&variables)?;
        let mut session = SqlSession {
            catalog: Arc::new(SessionCatalog::new(Arc::clone(&instance.catalog), id)),
            rights: Rights::new(instance, &facts, account),
            state: State::new(
                Arc::clone(instance),
                Arc::clone(&facts),
                Arc::clone(&connections),
                variables,
                tls,
            ),
            instance: Arc::clone(instance),
            facts,
            control,
            connections,
            settings,
            transactions: Transactions::new(instance.node.metadata_locks().open()),
            conditions: Vec::new(),
            evaluation: EvaluationContext::default(),
            buffers: StatementBuffers::default(),
            epoch: 0,
            measured: Measured::default(),
            ends: false,
            locked: LockedTables::default(),
            handlers: Vec::new(),
            is_suspended: false,
            judges_view: false,
            plan_is_stale: false,
        };
        session.instance.register(&session.facts, &session.control);
        session.rights.refresh()?;
        session.begin_with_collation(collation);
        session.settings_changed()?;
        if let Some(schema) = schema {
            session.use_schema(&schema)?;
        }
        session.note_login();
        Ok(session)
    }

    /// What other sessions may know of this one.
    #[must_use]
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// Restores the state in which the session began.
    ///
    /// # Errors
    /// If temporary tables could not be dropped.
    pub fn reset(&mut self) -> Result<()> {
        self.transactions.roll_back_quietly();
        self.transactions.forget_table_locks();
        self.facts.release_locks();
        self.instance.server.release_read_lock(self.facts.id);
        self.locked = LockedTables::default();
        self.handlers.clear();
        self.transactions.metadata.release_explicit(None);
        self.conditions.clear();
        self.drop_temporary_tables();
        self.state.reset(self.instance.variables.session());
        self.facts.last_insert_id.store(0, Ordering::Relaxed);
        self.facts.insert_id.store(0, Ordering::Relaxed);
        *self.facts.roles.lock() = self.rights.account.default_roles.clone();
        self.rights.forget();
        self.transactions.next = transaction::NextTransaction::default();
        self.settings_changed()
    }

    fn drop_temporary_tables(&mut self) {
        if let Err(error) = self.catalog.drop_temporary_tables() {
            tracing::warn!(%error, "temporary tables could not be dropped now; the next start does");
        }
    }

    /// `USE`.
    ///
    /// # Errors
    /// 1049 for an unknown schema, 1044 for one that the account may not see.
    pub fn use_schema(&mut self, schema: &str) -> Result<()> {
        let known = self.catalog.schemas()?;
        let exact = known.iter().find(|name| ***name == *schema);
        let virtually =
            || known.iter().find(|name| is_virtual(name) && name.eq_ignore_ascii_case(schema));
        let unknown = || SqlError::new(1049, format!("Unknown database '{schema}'"));
        let name = exact.or_else(virtually);
        if !name.is_some_and(|name| crate::accounts::need::is_open(name))
            && !self.rights.grants.uses_schema(schema)
        {
            return Err(self.rights.schema_denied(schema));
        }
        let name: Arc<str> = Arc::from(&**name.ok_or_else(unknown)?);
        self.enter_schema(name);
        self.state.note_schema();
        Ok(())
    }

    /// Makes a schema the current one.
    fn enter_schema(&mut self, name: Arc<str>) {
        *self.facts.schema.lock() = Some(Arc::clone(&name));
        self.state.connection.schema = Some(name);
        self.epoch += 1;
    }

    /// Applies variables that were changed.
    fn settings_changed(&mut self) -> Result<()> {
        self.settings = Settings::of(&self.state.connection.variables)?;
        self.epoch += 1;
        let settings = &self.settings;
        if let Some(open) = &mut self.transactions.open {
            open.inner.set_lock_wait_timeout(settings.lock_wait_timeout);
        }
        self.evaluation.sql_mode = settings.sql_mode;
        self.evaluation.time_zone = settings.presentation.time_zone.clone();
        self.evaluation.div_precision_increment = settings.div_precision_increment;
        self.evaluation.group_concat_max_length_bytes = settings.group_concat_max_length_bytes;
        self.evaluation.max_allowed_packet_bytes = settings.max_allowed_packet_bytes;
        self.evaluation.connection_collation = settings.connection_collation;
        self.evaluation.default_week_format = settings.default_week_format;
        self.evaluation.max_error_count = settings.max_error_count;
        let facts: Arc<dyn SessionFacts> = Arc::clone(&self.facts) as _;
        self.evaluation.session = facts;
        let mode = self.state.connection.variables.known("block_encryption_mode").as_text();
        *self.facts.encryption_mode.lock() = mode.into();
        let timeout = self.state.connection.variables.known("wait_timeout").number();
        self.control.set_wait_timeout(std::time::Duration::from_secs(timeout));
        Ok(())
    }

    fn begin_with_collation(&mut self, collation: u16) {
        let id = firn_format::value::CollationId(collation);
        let known = firn_sql::collation::by_id(id);
        let Some(collation) = known.filter(|known| known.charset.unit_bytes() == 1) else {
            return;
        };
        let charset = Setting::text(collation.charset.name());
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.state.connection.variables.install(name, charset.clone());
        }
        self.state
            .connection
            .variables
            .install("collation_connection", Setting::text(collation.name));
        self.state.connection.variables.install_results_collation(id);
    }

    /// See [`Rights::refuse_sandboxed`].
    ///
    /// # Errors
    /// 1820
    pub(crate) fn refuse_sandboxed(&mut self) -> Result<()> {
        self.rights.refuse_sandboxed()
    }

    /// The grammar's switches under the current `sql_mode`.
    fn grammar_mode(&self) -> grammar::Mode {
        use firn_sql::types::SqlMode;
        let mode = self.settings.sql_mode;
        grammar::Mode {
            ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
            pipes_as_concat: mode.contains(SqlMode::PIPES_AS_CONCAT),
            no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
            high_not_precedence: mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
            ignore_space: mode.contains(SqlMode::IGNORE_SPACE),
        }
    }

    /// The status for OK packets.
    pub(crate) fn status(&self) -> Status {
        use firn_sql::types::SqlMode;
        let mut status = Status::empty();
        status.set(Status::AUTOCOMMIT, self.settings.autocommit);
        if let Some(open) = &self.transactions.open {
            status.set(Status::IN_TRANSACTION, open.lasting);
            status.set(Status::IN_TRANSACTION_READONLY, open.lasting && open.read_only);
        }
        let escapes = self.settings.sql_mode.contains(SqlMode::NO_BACKSLASH_ESCAPES);
        status.set(Status::NO_BACKSLASH_ESCAPES, escapes);
        status
    }

    /// How many warnings `SHOW WARNINGS` would show.
    fn warning_count(&self) -> u16 {
        u16::try_from(self.conditions.len()).unwrap_or(u16::MAX)
    }

    /// Keeps a statement's error for `SHOW WARNINGS`.
    fn keep_error(&mut self, error: &SqlError) {
        self.conditions.extend(self.evaluation.take_conditions());
        let message = error.message.clone();
        self.conditions.push(Condition { level: Level::Error, code: error.code, message });
        self.count_conditions();
    }

    /// `@@warning_count` and `@@error_count` are those of the statement that has just ended.
    fn count_conditions(&mut self) {
        let errors = self.conditions.iter().filter(|one| one.level == Level::Error).count();
        self.state.warning_count = self.conditions.len() as u64;
        self.state.error_count = errors as u64;
    }
}

impl Drop for SqlSession {
    fn drop(&mut self) {
        self.transactions.roll_back_quietly();
        self.transactions.forget_table_locks();
        self.transactions.metadata.release_explicit(None);
        if !self.is_suspended {
            self.facts.release_locks();
            self.drop_temporary_tables();
        }
        self.instance.server.release_read_lock(self.facts.id);
        self.note_logout();
        self.instance.unregister(&self.facts);
    }
}

/// Schemas whose names are case-insensitive.
fn is_virtual(schema: &str) -> bool {
    firn_sql::catalog::virtual_schemas::proper_schema(schema).is_some()
}

/// An error of SQL in the wire's form.
pub(crate) fn wire_error(error: SqlError) -> WireError {
    WireError::Refused(ServerError::new(error.code, &error.state, error.message))
}
