//! Plans statements and runs the plans in the session's transaction. The families of statements
//! that read rows or evaluate expressions stand on it.
//!
//! | file | what the runner does there |
//! |---|---|
//! | `planning` | a tree becomes a plan |
//! | `execution` | a plan runs, in a transaction that may end with it |
//! | `renewal` | a plan runs again with a newer snapshot |
//! | [`super::answers`] | what the client is told |
//! | [`super::definition_locks`] | the locks that a plan needs first |
//! | [`super::permission`] | whether the session may run it now |
//!
//! The last three are types over the parts of the runner that they need.

use std::sync::Arc;
use std::time::Duration;

use firn_base::Cts;
use firn_sql::catalog::SessionCatalog;
use firn_sql::error::{Condition, Result, SqlError};
use firn_sql::execute::Scratch;
use firn_sql::grammar;
use firn_sql::types::EvaluationContext;
use firn_sql::types::session_facts::SessionFacts;
use firn_wire::{ConnectionControl, Connections, TlsInformation, WireError};

use super::answers::wire_error;
use super::is_virtual;
use super::locked_tables::LockedTables;
use super::rights::Rights;
use super::settings::Settings;
use super::statement_measurement::Measured;
use super::statement_view::State;
use super::transaction::Transactions;
use crate::accounts::Account;
use crate::instance::Instance;
use crate::session_facts::Facts;
use crate::variables::SessionVariables;

pub(super) struct StatementRunner {
    pub(super) instance: Arc<Instance>,
    pub(super) facts: Arc<Facts>,
    pub(super) control: Arc<ConnectionControl>,
    pub(super) catalog: Arc<SessionCatalog>,
    pub(super) rights: Rights,
    pub(super) settings: Settings,
    pub(super) state: State,
    pub(super) transactions: Transactions,
    pub(super) evaluation: EvaluationContext,
    pub(super) locked: LockedTables,
    /// Warnings of the current statement's `SET_VAR` hints that it has not told yet.
    pub(super) hint_conditions: Vec<Condition>,
    /// The counts of the current statement so far.
    pub(super) measured: Measured,
    /// Memory that executions reuse, so that short ones allocate nothing.
    pub(super) scratch: Option<Box<Scratch>>,
    /// Long literals of the statement that is being planned, which are not in its tree.
    pub(super) long_texts: grammar::LongTexts,
    /// Changes with everything that plans depend on besides definitions: settings and the current
    /// schema.
    pub(super) epoch: u64,
    /// The statement was not run, because its plan was no longer valid when its tables were locked.
    pub(super) plan_is_stale: bool,
    pub(super) cutting: Cutting,
    /// What the session has written at another server, and must see here.
    pub(super) written: Cts,
}

/// How far the running command can be run elsewhere in place of here.
#[derive(Debug, Default)]
pub(super) struct Cutting {
    /// No statement of it has run yet.
    pub(super) is_possible: bool,
    /// One was cut, see [`crate::statement_cut`].
    pub(super) was_cut: bool,
    /// The user locks that the session had before the statement, and how often each was taken.
    pub(super) user_locks: Vec<(String, u64)>,
}

/// Whom a runner works for.
pub(super) struct Client {
    pub(super) facts: Arc<Facts>,
    pub(super) control: Arc<ConnectionControl>,
    pub(super) connections: Arc<Connections>,
    pub(super) account: Arc<Account>,
    pub(super) tls: Option<TlsInformation>,
}

impl StatementRunner {
    /// The runner of a session that begins with these variables.
    ///
    /// # Errors
    /// 1115, 1298 or 1231 for invalid variables.
    pub(super) fn new(
        instance: &Arc<Instance>,
        client: Client,
        variables: SessionVariables,
    ) -> Result<StatementRunner> {
        let Client { facts, control, connections, account, tls } = client;
        let settings = Settings::of(&variables)?;
        Ok(StatementRunner {
            catalog: Arc::new(SessionCatalog::new(Arc::clone(&instance.catalog), facts.id)),
            rights: Rights::new(instance, &facts, account),
            state: State::new(
                Arc::clone(instance),
                Arc::clone(&facts),
                connections,
                variables,
                tls,
            ),
            instance: Arc::clone(instance),
            settings,
            transactions: Transactions::new(
                instance.node.metadata_locks().open(),
                &facts.cancelled,
                &control,
                instance,
            ),
            control,
            evaluation: EvaluationContext::default(),
            locked: LockedTables::default(),
            hint_conditions: Vec::new(),
            measured: Measured::default(),
            scratch: None,
            long_texts: grammar::LongTexts::new(),
            epoch: 0,
            plan_is_stale: false,
            cutting: Cutting::default(),
            written: Cts(0),
            facts,
        })
    }

    /// `USE`.
    ///
    /// # Errors
    /// 1049 for an unknown schema, 1044 for one that the account may not see.
    pub(super) fn use_schema(&mut self, schema: &str) -> Result<()> {
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
    pub(super) fn enter_schema(&mut self, name: Arc<str>) {
        *self.facts.schema.lock() = Some(Arc::clone(&name));
        self.state.connection.schema = Some(name);
        self.epoch += 1;
    }

    /// Applies variables that were changed.
    ///
    /// # Errors
    /// 1115, 1298 or 1231 for an invalid one; nothing has changed then.
    pub(super) fn settings_changed(&mut self) -> Result<()> {
        self.settings = Settings::of(&self.state.connection.variables)?;
        self.epoch += 1;
        self.transactions.set_lock_wait_timeout(self.settings.lock_wait_timeout);
        self.settings.apply_to(&mut self.evaluation);
        let facts: Arc<dyn SessionFacts> = Arc::clone(&self.facts) as _;
        self.evaluation.session = facts;
        let mode = self.state.connection.variables.known("block_encryption_mode").as_text();
        *self.facts.encryption_mode.lock() = mode.into();
        let timeout = self.state.connection.variables.known("wait_timeout").number();
        self.control.set_wait_timeout(Duration::from_secs(timeout));
        Ok(())
    }

    /// Whether names mean the same to this session as to all others: it has had no temporary
    /// tables.
    pub(super) fn shares_plans(&self) -> bool {
        self.catalog.temporary_version() == 0
    }

    /// Keeps a statement's error for `SHOW WARNINGS`, and puts it into the wire's form.
    pub(super) fn refused(&mut self, error: SqlError) -> WireError {
        self.state.diagnostics.keep_error(&self.evaluation, &error);
        wire_error(error)
    }
}
