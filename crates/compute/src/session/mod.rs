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
//! | [`runner::StatementRunner`] | plans statements and runs the plans; composed of the next five |
//! | [`connection::ConnectionState`] | what the client has set up; moves to another session |
//! | [`rights::Rights`] | the account, its privileges, those of views' definers |
//! | [`transaction::Transactions`] | the open transaction and its locks |
//! | [`statement_view::State`] | what expressions and virtual tables see of all this |
//! | [`diagnostics::Diagnostics`] | the conditions of the last statement |
//! | [`prepared::PreparedStatements`] | the prepared statements |
//! | [`handler::Handlers`] | the tables that `HANDLER` has open |
//! | [`text_buffers::TextBuffers`] | memory for texts |
//!
//! [`statement::Statements`] gives each statement to the type of its family (`XaStatements`,
//! `SetStatements`, …), which has the parts that the family needs: those that plan or evaluate
//! something have the runner, none has the session.
//!
//! Invariants:
//! * a statement is answered after its effects are durable, if they are meant to last (the answer
//!   may be sent by the log's thread, see [`late_commits`]);
//! * one thread uses a session at a time; others see only its [`Facts`];
//! * a session that ends rolls back, releases its locks and drops its temporary tables.

mod account;
mod answers;
mod arguments;
mod binary_text;
mod carrying;
mod cluster_tables;
mod connection;
mod definition;
mod definition_locks;
mod definition_needs;
mod described_transaction;
mod diagnostics;
mod document;
mod execution;
mod executor;
mod explain;
mod flush;
mod freshness;
mod handler;
mod handover;
mod hinted_variables;
mod kill;
mod late_commits;
mod leaving;
mod lifted_text;
mod load;
mod locked_tables;
mod maintenance;
mod outfile;
mod parameters;
mod permission;
mod planning;
mod prepared;
mod prepared_execution;
mod protocol_commands;
mod query;
mod read_only;
mod renewal;
mod rights;
mod rows;
mod runner;
mod scalar_expressions;
mod select_into;
mod set;
mod settings;
mod show;
mod sinks;
mod statement;
mod statement_measurement;
mod statement_view;
mod table_locks;
mod tables;
mod text_buffers;
mod transaction;
mod transaction_statements;
mod view_rights;
mod xa;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::server::KillScope;
use firn_format::value::CollationId;
use firn_sql::catalog::SessionCatalog;
use firn_sql::error::Result;
use firn_wire::{
    CommandIdentity, ConnectionControl, Connections, Execution, FieldDefinition, Prepared, Query,
    Replies, Status, TlsInformation,
};

use crate::accounts::{Account, attribute};
use crate::instance::Instance;
use crate::read_consistency;
use crate::session_facts::Facts;
use crate::variables::{SessionVariables, Setting};

pub(crate) use answers::wire_error;
use answers::{Answered, Answers};
use carrying::Carrying;
pub use document::DocumentError;
use handler::Handlers;
pub use handover::HandoverError;
use prepared::{NumberedStatements, PreparedStatements};
use query::TextStatements;
use runner::{Client, Cutting, StatementRunner};
use text_buffers::TextBuffers;

pub struct SqlSession {
    runner: StatementRunner,
    texts: TextBuffers,
    prepared: PreparedStatements,
    handlers: Handlers,
    /// What ends with the server waits for the session that goes on elsewhere.
    has_left: bool,
    carrying: Carrying,
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
        let variables = variables_of(instance, &account, id, collation);
        let client = Client { facts, control, connections, account, tls };
        let runner = StatementRunner::new(instance, client, variables)?;
        instance.register(&runner.facts, &runner.control);
        let mut session = SqlSession {
            runner,
            texts: TextBuffers::default(),
            prepared: PreparedStatements::default(),
            handlers: Handlers::default(),
            has_left: false,
            carrying: Carrying::default(),
        };
        session.runner.rights.refresh()?;
        session.runner.settings_changed()?;
        if let Some(schema) = schema {
            session.runner.use_fresh_schema(&schema)?;
        }
        let schema = session.runner.state.connection.schema.as_deref();
        statement_measurement::note_login(instance, &session.runner.facts, schema);
        session.begin_carrying();
        Ok(session)
    }

    /// What other sessions may know of this one.
    #[must_use]
    pub fn facts(&self) -> &Arc<Facts> {
        &self.runner.facts
    }

    /// Restores the state in which the session began.
    ///
    /// # Errors
    /// If temporary tables could not be dropped.
    pub fn reset(&mut self) -> Result<()> {
        let runner = &mut self.runner;
        runner.transactions.roll_back_quietly();
        runner.transactions.forget_table_locks();
        runner.facts.release_locks();
        runner.instance.server.release_read_lock(runner.facts.id);
        runner.locked = locked_tables::LockedTables::default();
        self.handlers.clear();
        runner.transactions.metadata.release_explicit(None);
        drop_temporary_tables(&runner.catalog);
        self.prepared = PreparedStatements::default();
        runner.state.reset(initial_variables(&runner.instance, &runner.rights.account));
        runner.facts.last_insert_id.store(0, Ordering::Relaxed);
        runner.facts.insert_id.store(0, Ordering::Relaxed);
        *runner.facts.roles.lock() = runner.rights.account.default_roles.clone();
        runner.rights.forget();
        runner.transactions.next = transaction::NextTransaction::default();
        runner.settings_changed()
    }

    /// A command begins that can be run elsewhere as long as it has done nothing.
    pub(crate) fn begin_command(&mut self) {
        self.runner.cutting = Cutting { is_possible: true, ..Cutting::default() };
    }

    /// A command has ended. See [`firn_wire::Session::was_cut`].
    pub(crate) fn end_command(&mut self, replies: &mut Replies<'_>) {
        let cutting = &mut self.runner.cutting;
        cutting.is_possible = false;
        cutting.was_cut = cutting.was_cut && replies.take_back();
    }

    /// See [`firn_wire::Session::was_cut`].
    pub(crate) fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.runner.cutting.was_cut)
    }

    /// See [`firn_wire::Session::identify`].
    pub(crate) fn identify_command(&mut self, command: CommandIdentity) {
        self.runner.transactions.identify(command);
    }

    /// Runs a text. See [`firn_wire::Session::query`].
    pub(crate) fn run_query(&mut self, query: Query<'_>, replies: &mut Replies<'_>) -> Answered {
        let SqlSession { runner, texts, handlers, prepared, .. } = self;
        TextStatements { runner, buffers: texts, handlers, prepared }.run_query(query, replies)
    }

    /// `COM_STMT_PREPARE`
    ///
    /// # Errors
    /// 1820, errors of the grammar and of binding.
    pub(crate) fn prepare_numbered(&mut self, number: u32, text: &[u8]) -> Result<Prepared> {
        self.runner.rights.refuse_sandboxed()?;
        self.numbered().prepare(number, text)
    }

    /// `COM_STMT_EXECUTE`
    pub(crate) fn execute_numbered(
        &mut self,
        execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        self.runner.rights.refuse_sandboxed().map_err(wire_error)?;
        self.numbered().execute(execution, replies)
    }

    fn numbered(&mut self) -> NumberedStatements<'_> {
        let SqlSession { runner, handlers, prepared, .. } = self;
        NumberedStatements { runner, handlers, prepared }
    }

    /// `COM_STMT_CLOSE`
    pub(crate) fn forget_numbered(&mut self, number: u32) {
        crate::status::count(&self.runner.facts.status.closes);
        self.prepared.numbered.remove(&number);
    }

    /// `COM_INIT_DB`
    ///
    /// # Errors
    /// 1820, and as `USE`.
    pub(crate) fn use_schema(&mut self, schema: &str) -> Result<()> {
        self.runner.rights.refuse_sandboxed()?;
        self.runner.use_fresh_schema(schema)
    }

    /// OK to a command that is not a statement.
    pub(crate) fn answer_plainly(&mut self, replies: &mut Replies<'_>) -> Answered {
        self.runner.state.diagnostics.clear();
        Answers::of(&mut self.runner).ok(replies)
    }

    /// The status for OK packets.
    pub(crate) fn status(&self) -> Status {
        answers::status(&self.runner.settings, &self.runner.transactions)
    }

    /// The line of `COM_STATISTICS`.
    pub(crate) fn statistics_line(&self) -> String {
        let StatementRunner { instance, state, .. } = &self.runner;
        protocol_commands::statistics_line(instance, state.connections())
    }

    /// `COM_FIELD_LIST`
    ///
    /// # Errors
    /// 1820, 1146 if the table does not exist.
    pub(crate) fn fields_of(&mut self, table: &[u8], names: &[u8]) -> Result<Vec<FieldDefinition>> {
        self.runner.rights.refuse_sandboxed()?;
        protocol_commands::fields_of(&self.runner, table, names)
    }

    /// `COM_PROCESS_KILL`
    ///
    /// # Errors
    /// 1094 if there is no such connection, 1095 if it belongs to another account.
    pub(crate) fn kill_connection(&self, id: u64) -> Result<()> {
        let StatementRunner { instance, rights, .. } = &self.runner;
        kill::kill(instance, rights, id, KillScope::Connection)
    }
}

impl Drop for SqlSession {
    fn drop(&mut self) {
        let StatementRunner { transactions, facts, catalog, instance, .. } = &mut self.runner;
        transactions.roll_back_quietly();
        transactions.forget_table_locks();
        transactions.metadata.release_explicit(None);
        if !self.has_left {
            facts.release_locks();
            drop_temporary_tables(catalog);
            instance.server.release_read_lock(facts.id);
        }
        statement_measurement::count_ended(transactions, &facts.status);
        statement_measurement::note_logout(instance, facts);
        instance.unregister(facts);
    }
}

fn drop_temporary_tables(catalog: &SessionCatalog) {
    if let Err(error) = catalog.drop_temporary_tables() {
        tracing::warn!(%error, "temporary tables could not be dropped now; the next start does");
    }
}

/// The variables of a session of this account, without what its connection brings.
fn initial_variables(instance: &Instance, account: &Account) -> SessionVariables {
    let mut variables = instance.variables.session();
    if let Some(consistency) = attribute::initial_consistency(account.attribute.as_deref()) {
        variables.install(read_consistency::VARIABLE, Setting::text(&consistency));
    }
    variables
}

/// The variables of a session that begins with the client's collation.
fn variables_of(
    instance: &Instance,
    account: &Account,
    id: u64,
    collation: u16,
) -> SessionVariables {
    let mut variables = initial_variables(instance, account);
    variables.install("pseudo_thread_id", Setting::Number(id as i64));
    let id = CollationId(collation);
    let known = firn_sql::collation::by_id(id);
    let Some(collation) = known.filter(|known| known.charset.unit_bytes() == 1) else {
        return variables;
    };
    let charset = Setting::text(collation.charset.name());
    for name in ["character_set_client", "character_set_connection", "character_set_results"] {
        variables.install(name, charset.clone());
    }
    variables.install("collation_connection", Setting::text(collation.name));
    variables.install_results_collation(id);
    variables
}

/// Schemas whose names are case-insensitive.
fn is_virtual(schema: &str) -> bool {
    firn_sql::catalog::virtual_schemas::proper_schema(schema).is_some()
}
