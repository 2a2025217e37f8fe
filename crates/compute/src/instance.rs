//! The state that all sessions of a compute node share; and the node as a member of its server.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::Incarnation;
use firn_api::cluster::ClusterSeam;
use firn_api::rows::{
    DatabaseNode, Freshness, HandedSession, HandedSessions, RowsResult, TakenOver, WriterLease,
};
use firn_api::server::{
    KillScope, Membership, Process, ServerMember, ServerState, ServerStateError, SharedVariable,
};
use firn_base::disk::SpillDirectory;
use firn_base::memory::Cache;
use firn_base::{Cts, Environment, TableId};
use firn_sql::catalog::Catalog;
use firn_sql::execute::vectorised::VectorisedEngine;
use firn_wire::{ConnectionControl, ConnectionState, Connections};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::accounts::{AccountBook, AccountName, RowsAccountStore, StoreError, UsageBook};
use crate::belongings::Holder;
use crate::commits::CommitNotes;
use crate::left_sessions::{self, LeftSessions};
use crate::logs::{LogDirectories, Logs};
use crate::plan_cache::PlanCache;
use crate::process_state::state_of;
use crate::server::{self, WriteGate};
use crate::session_facts::{Facts, SharedFacts};
use crate::status::{Status, StatusCounts};
use crate::variables::{
    GlobalVariables, KeptGlobals, PersistedVariables, Setting, decode_setting, encode_setting,
};

/// Applies a global variable that belongs to another layer, by its name and value.
pub type GlobalHook = Box<dyn Fn(&str, &Setting) + Send + Sync>;

/// Why a compute node did not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The accounts, or the variables that are stored beside them.
    #[error(transparent)]
    Accounts(#[from] StoreError),
    /// The server did not accept it as a member.
    #[error(transparent)]
    Server(#[from] ServerStateError),
}

/// Which sessions may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritesAllowed {
    All,
    /// Those with `CONNECTION_ADMIN`: `read_only` is on.
    Administrators,
    /// No session: `super_read_only` is on.
    Nobody,
}

/// The parts of a compute node.
pub struct InstanceOptions {
    /// Clock, randomness and disk.
    pub environment: Environment,
    pub node: Arc<dyn DatabaseNode>,
    /// The state that the compute nodes of the server share.
    pub server: Arc<dyn ServerState>,
    /// The compute node and this start of it.
    pub incarnation: Incarnation,
    /// Global variables from the configuration.
    pub variables: GlobalVariables,
    /// Applies global variables of other layers when they are set.
    pub global_hook: Option<GlobalHook>,
    /// Where statements put rows for which they have no memory.
    pub spill: Option<SpillDirectory>,
    /// Runs analytic statements; without it the row executor does.
    pub vectorised: Option<Arc<dyn VectorisedEngine>>,
    /// Tells of the cluster that the node belongs to, if it does.
    pub cluster: Option<Arc<dyn ClusterSeam>>,
    /// Over a node that other ones may replace as the writer.
    pub lease: Option<Arc<dyn WriterLease>>,
    /// The sessions of the writer before that go on here. See [`Instance::take_over`].
    pub coming: Vec<HandedSession>,
}

pub struct Instance {
    pub(crate) node: Arc<dyn DatabaseNode>,
    /// How reads wait for what is newest, over a node that follows another one.
    pub(crate) freshness: Option<Arc<dyn Freshness>>,
    /// Whether what was read is newest, over a node that other ones may replace.
    pub(crate) lease: Option<Arc<dyn WriterLease>>,
    /// The state that the compute nodes of the server share.
    pub(crate) server: Arc<dyn ServerState>,
    /// The compute node and this start of it.
    pub(crate) incarnation: Incarnation,
    /// The compute node's place in the server.
    membership: Joined,
    pub(crate) catalog: Arc<Catalog>,
    pub accounts: AccountBook,
    /// Failed logins, and usage of the accounts' limits, as far as this node knows.
    pub(crate) usage: UsageBook,
    pub variables: GlobalVariables,
    /// The global variables that the next start takes over.
    pub(crate) persisted: PersistedVariables,
    /// Commits of commands that other processes have sent.
    pub(crate) commits: Arc<CommitNotes>,
    /// The gate for statements that write, see `FLUSH TABLES WITH READ LOCK`.
    pub(crate) write_gate: Arc<WriteGate>,
    /// Plans of statements that were seen before.
    pub(crate) plans: PlanCache,
    /// The counts of sessions that have ended.
    pub(crate) status: Status,
    /// The slow-query log and the general log.
    pub(crate) logs: Logs,
    /// The directories to which the logs may be moved.
    pub(crate) log_directories: LogDirectories,
    /// The facts that all sessions share.
    pub(crate) facts: SharedFacts,
    /// When the server started, on the environment's monotonic clock.
    pub(crate) started: Duration,
    /// Applies global variables of other layers when they are set.
    global_hook: Option<GlobalHook>,
    /// When `FLUSH STATUS` was last run, in milliseconds on the environment's monotonic clock.
    flushed_ms: AtomicU64,
    /// Where statements put rows for which they have no memory.
    pub(crate) spill: Option<SpillDirectory>,
    /// Runs analytic statements; without it the row executor does.
    pub(crate) vectorised: Option<Arc<dyn VectorisedEngine>>,
    /// Tells of the cluster that the node belongs to, if it does.
    pub(crate) cluster: Option<Arc<dyn ClusterSeam>>,
    /// Which sessions may write, according to the variables; each statement that writes reads it.
    writes_allowed: AtomicU8,
    /// What sessions have left here, and what those of the writer before will bring.
    pub(crate) left: LeftSessions,
    /// Open sessions by their connection's number.
    sessions: Mutex<FxHashMap<u64, OpenSession>>,
}

/// The membership of a compute node; dropping it ends the membership.
struct Joined {
    server: Arc<dyn ServerState>,
    incarnation: Incarnation,
    place: Membership,
}

impl Joined {
    fn new(
        server: Arc<dyn ServerState>,
        incarnation: Incarnation,
    ) -> Result<Joined, ServerStateError> {
        let place = server.join(incarnation)?;
        Ok(Joined { server, incarnation, place })
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.server.leave(self.incarnation);
    }
}

/// An open session, as other sessions know it.
#[derive(Clone)]
struct OpenSession {
    facts: Arc<Facts>,
    control: Arc<ConnectionControl>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Cache for Instance {
    fn release(&self) {
        self.plans.release();
    }
}

impl Instance {
    /// Starts a compute node: reads the accounts, joins the server, and removes what compute nodes
    /// that have ended have left of temporary tables. Over a database node that follows the log
    /// nothing is stored and nothing removed. Blocks.
    ///
    /// # Errors
    /// If the accounts cannot be read or stored, or the server does not accept the node.
    pub fn open(options: InstanceOptions) -> Result<Arc<Instance>, OpenError> {
        let InstanceOptions { environment, node, server, incarnation, variables, coming, .. } =
            options;
        let membership = Joined::new(Arc::clone(&server), incarnation)?;
        let book = RowsAccountStore::open(Arc::clone(&node))?;
        let accounts = AccountBook::open(Box::new(book), Arc::clone(&server), incarnation)?;
        let log_directories = LogDirectories::of(&variables);
        let persisted = PersistedVariables::open(Arc::clone(&node)).map_err(StoreError::Rows)?;
        persisted.apply(&variables).map_err(StoreError::Rows)?;
        let commits = Arc::new(CommitNotes::new(Arc::clone(&node)));
        let number = u64::from(membership.place.number) & 0xff;
        let facts = SharedFacts {
            server: Arc::clone(&server),
            sequence: Arc::new(AtomicU64::new(environment.clock.wall_time_us())),
            // Only its lowest byte is used in `UUID_SHORT`.
            node_id: environment.random.next_u64() & 0xffff_ffff_ff00 | number,
            environment: environment.clone(),
        };
        let holder = Holder {
            server: Arc::clone(&server),
            catalog: Arc::new(Catalog::new(Arc::clone(&node), incarnation)),
            write_gate: Arc::new(WriteGate::new(Arc::clone(&server))),
        };
        let instance = Arc::new(Instance {
            catalog: Arc::clone(&holder.catalog),
            freshness: node.freshness(),
            lease: options.lease,
            node,
            incarnation,
            membership,
            accounts,
            usage: UsageBook::default(),
            logs: Logs::new(&environment),
            log_directories,
            variables,
            persisted,
            commits,
            write_gate: Arc::clone(&holder.write_gate),
            server,
            plans: PlanCache::default(),
            status: Status::default(),
            global_hook: options.global_hook,
            flushed_ms: AtomicU64::new(environment.clock.monotonic().as_millis() as u64),
            facts,
            started: environment.clock.monotonic(),
            spill: options.spill,
            vectorised: options.vectorised,
            cluster: options.cluster,
            writes_allowed: AtomicU8::new(0),
            left: LeftSessions::new(&environment, holder),
            sessions: Mutex::default(),
        });
        let zone = system_time_zone(environment.clock.wall_time_us());
        instance.variables.install("system_time_zone", Setting::text(&zone));
        instance.join(&left_sessions::namespaces(&coming))?;
        Ok(instance)
    }

    /// Writes down what goes on of all sessions that have left, for the next writer. It stays here;
    /// if there are transactions, nothing commits from now on until [`Instance::keep_writing`].
    /// Blocks.
    ///
    /// # Errors
    /// If the log has failed.
    pub fn hand_over(&self, handover: u64) -> RowsResult<HandedSessions> {
        self.left.hand_over(&*self.node, handover)
    }

    /// No other node writes after all: transactions commit here again, and sessions go on with
    /// what they have left.
    pub fn keep_writing(&self) {
        self.node.keep_writing();
    }

    /// Rolls back the transactions of sessions that have left. What else they have left stays.
    /// Blocks.
    pub fn roll_back_left_sessions(&self) {
        self.left.roll_back_all();
    }

    /// Ends what sessions have left and no other node goes on with: rolls transactions back, and
    /// drops temporary tables. Blocks.
    pub fn end_left_sessions(&self) {
        self.left.end_all();
    }

    /// Takes what goes on of the sessions of the writer before: those of
    /// [`InstanceOptions::coming`], and the transactions that their database node has taken over.
    /// Call it before there are sessions. Blocks.
    pub fn take_over(&self, sessions: Vec<HandedSession>, transactions: Vec<TakenOver>) {
        self.left.take_over(&*self.node, sessions, transactions);
    }

    /// Lets the server call this node from now on, and takes over the server's earlier state.
    /// `goes_on`: the schemas of temporary tables whose sessions go on here.
    fn join(self: &Arc<Self>, goes_on: &[String]) -> Result<(), ServerStateError> {
        let member: Arc<dyn ServerMember> = Arc::clone(self) as _;
        self.server.attach(self.incarnation, Arc::downgrade(&member))?;
        self.accounts.have_changed(self.server.accounts_since());
        self.obey_read_only();
        for variable in self.server.variables()? {
            self.variable_set(&variable);
        }
        self.logs.obey(&self.variables);
        self.remove_leftovers(&|owner| self.server.has_ended(owner), goes_on);
        Ok(())
    }

    /// Removes the temporary tables and unfinished copies of compute nodes that have ended. Blocks.
    fn remove_leftovers(&self, has_ended: &dyn Fn(Incarnation) -> bool, goes_on: &[String]) {
        if let Err(error) = self.catalog.remove_leftovers(has_ended, goes_on) {
            tracing::warn!(%error, "temporary tables of a compute node that has ended are left");
        }
    }

    /// Sets a global variable to a checked value, on all compute nodes of the server.
    ///
    /// # Errors
    /// 1105 if the server's state cannot be reached.
    pub(crate) fn set_global(&self, name: &str, value: &Setting) -> firn_sql::error::Result<()> {
        self.server.set_variable(name, &encode_setting(value)).map_err(server::refused)
    }

    /// The statistics of a table have changed: plans made from the old ones are dropped.
    fn forget_plans_of(&self, table: TableId) {
        match self.catalog.table_by_id(table) {
            Ok(Some(model)) => self.plans.statistics_changed(&model),
            // A table that is gone has no plans.
            Ok(None) => {}
            Err(_) => self.plans.clear(),
        }
    }

    /// A table has new statistics: plans made from the old ones are made again.
    pub(crate) fn statistics_gathered(&self, table: TableId) {
        self.forget_plans_of(table);
        self.server.statistics_gathered(self.incarnation, table);
    }

    /// The ids of this compute node's connections.
    #[must_use]
    pub fn connection_ids(&self) -> RangeInclusive<u32> {
        let ids = self.membership.place.connection_ids;
        ids.first..=ids.last
    }

    /// Seconds since the server started.
    #[must_use]
    pub fn uptime_seconds(&self) -> u64 {
        self.facts.environment.clock.monotonic().saturating_sub(self.started).as_secs()
    }

    /// Seconds since `FLUSH STATUS`, or since the server started.
    #[must_use]
    pub fn seconds_since_flush(&self) -> u64 {
        let now = self.facts.environment.clock.monotonic().as_millis() as u64;
        now.saturating_sub(self.flushed_ms.load(Ordering::Relaxed)) / 1000
    }

    /// The counts of all sessions, including those that have ended.
    #[must_use]
    pub fn totals(&self) -> StatusCounts {
        // Under the lock, so that a session that ends is counted once; only numbers are added here.
        let sessions = self.sessions.lock();
        let mut totals = self.status.read();
        sessions.values().for_each(|one| totals.add(&one.facts.status.read()));
        totals
    }

    /// `FLUSH STATUS`: the session's counters are added to the totals and restart at zero.
    pub(crate) fn flush_status(&self, facts: &Facts, connections: &Connections) {
        let sessions = self.sessions.lock();
        self.status.take_from(&facts.status);
        drop(sessions);
        connections.forget_most();
        let now = self.facts.environment.clock.monotonic().as_millis() as u64;
        self.flushed_ms.store(now, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn writes_allowed(&self) -> WritesAllowed {
        match self.writes_allowed.load(Ordering::Relaxed) {
            0 => WritesAllowed::All,
            1 => WritesAllowed::Administrators,
            _ => WritesAllowed::Nobody,
        }
    }

    /// From now on no session may write (`super_read_only`).
    pub fn refuse_writes(&self) {
        for name in ["read_only", "super_read_only"] {
            self.variables.install(name, Setting::Number(1));
        }
        self.obey_read_only();
    }

    /// The accounts may have changed at the node that writes, which does not say so to this one.
    /// They are read again before one is looked up.
    pub fn accounts_may_have_changed(&self) {
        self.accounts.have_changed(Cts(0));
    }

    /// The global variables, for the next instance of this server.
    #[must_use]
    pub fn keep_globals(&self) -> KeptGlobals {
        self.variables.kept()
    }

    /// Goes on with the global variables of this server's last instance: they hold until the
    /// process ends. Call it before there are sessions.
    pub fn go_on_with(&self, globals: KeptGlobals) {
        self.variables.go_on_with(globals);
        self.obey_read_only();
        self.logs.obey(&self.variables);
    }

    /// Whether something waits here for sessions that have left.
    #[must_use]
    pub fn has_left_sessions(&self) -> bool {
        self.left.are_there()
    }

    fn obey_read_only(&self) {
        let is_on = |name| self.variables.get(name).is_some_and(|value| value.is_on());
        let allowed = match (is_on("read_only"), is_on("super_read_only")) {
            (_, true) => WritesAllowed::Nobody,
            (true, false) => WritesAllowed::Administrators,
            (false, false) => WritesAllowed::All,
        };
        self.writes_allowed.store(allowed as u8, Ordering::Relaxed);
    }

    /// Applies a global variable that was set.
    pub(crate) fn global_changed(&self, name: &str) {
        self.obey_read_only();
        self.logs.obey(&self.variables);
        if let (Some(hook), Some(value)) = (&self.global_hook, self.variables.get(name)) {
            hook(name, &value);
        }
    }

    pub(crate) fn register(&self, facts: &Arc<Facts>, control: &Arc<ConnectionControl>) {
        let session = OpenSession { facts: Arc::clone(facts), control: Arc::clone(control) };
        self.sessions.lock().insert(facts.id, session);
    }

    pub(crate) fn unregister(&self, facts: &Facts) {
        let mut sessions = self.sessions.lock();
        if sessions.get(&facts.id).is_some_and(|other| std::ptr::eq(&raw const *other.facts, facts))
        {
            sessions.remove(&facts.id);
        }
        self.status.take_from(&facts.status);
    }

    /// How many open sessions an account has, on all compute nodes of the server.
    #[must_use]
    pub fn sessions_of(&self, account: &AccountName) -> usize {
        let is_its = |process: &Process| {
            process.account.0 == account.user && process.account.1 == account.host
        };
        self.server.processes().iter().filter(|process| is_its(process)).count()
    }

    fn describe(&self, session: &OpenSession) -> Process {
        let OpenSession { facts, control } = session;
        let now = self.facts.environment.clock.monotonic();
        let connection = control.state();
        let statement = facts.statement();
        let stage = || state_of(statement.as_deref().unwrap_or_default());
        let state = match connection.command {
            Some(_) => facts.waits_for().unwrap_or_else(stage),
            None => "",
        };
        Process {
            id: facts.id,
            user: facts.user.clone(),
            host: facts.host.clone(),
            account: (facts.account.user.clone(), facts.account.host.clone()),
            schema: facts.schema.lock().as_deref().map(str::to_owned),
            command: name_of_command(&connection).to_owned(),
            time_s: now.saturating_sub(connection.since).as_secs(),
            state: state.to_owned(),
            info: statement,
        }
    }

    /// The time, in seconds since 1970.
    #[must_use]
    pub fn now_s(&self) -> u64 {
        self.facts.environment.clock.wall_time_us() / 1_000_000
    }
}

impl ServerMember for Instance {
    fn accounts_changed(&self, since: Cts) {
        self.accounts.have_changed(since);
    }

    fn statistics_changed(&self, table: TableId) {
        self.catalog.forget_statistics(table);
        self.forget_plans_of(table);
    }

    fn variable_set(&self, variable: &SharedVariable) {
        let Some(value) = decode_setting(&variable.value) else {
            tracing::warn!(
                variable = variable.name,
                "a value of another compute node cannot be read"
            );
            return;
        };
        if self.variables.take_over(&variable.name, value, variable.version) {
            self.global_changed(&variable.name);
        }
    }

    fn close_gate(&self) {
        self.write_gate.close();
    }

    fn have_writers_ended(&self) -> bool {
        self.write_gate.have_writers_ended()
    }

    fn open_gate(&self) {
        self.write_gate.open();
    }

    fn processes(&self) -> Vec<Process> {
        let sessions: Vec<OpenSession> = self.sessions.lock().values().cloned().collect();
        sessions.iter().map(|session| self.describe(session)).collect()
    }

    fn process(&self, connection: u64) -> Option<Process> {
        let session = self.sessions.lock().get(&connection).cloned();
        session.map(|session| self.describe(&session))
    }

    fn kill(&self, connection: u64, scope: KillScope) -> bool {
        let session = self.sessions.lock().get(&connection).cloned();
        if let Some(OpenSession { control, .. }) = &session {
            match scope {
                KillScope::Statement => control.kill_query(),
                KillScope::Connection => control.kill(),
            }
        }
        session.is_some()
    }

    fn clean_up_after(&self, ended: Incarnation) {
        let catalog = Arc::clone(&self.catalog);
        let clean = move || {
            if let Err(error) = catalog.remove_leftovers(&|owner| owner == ended, &[]) {
                tracing::warn!(%error, %ended, "temporary tables of a compute node that has ended are left");
            }
        };
        // This runs in the background; the next start of a compute node repeats it.
        drop(self.facts.environment.spawner.spawn("leftovers", Box::new(clean)));
    }
}

/// A connection's command in the process list. One that waits for its last statement to end, such
/// as for a commit that the log does not confirm, is `Killed`, as in MySQL.
fn name_of_command(connection: &ConnectionState) -> &'static str {
    match connection.command {
        Some(_) if connection.is_ending => "Killed",
        Some(command) => command.name(),
        None => "Sleep",
    }
}

/// The abbreviation of the process's time zone, such as `CET`.
fn system_time_zone(now_us: u64) -> String {
    let zone = jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC);
    let now = i64::try_from(now_us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let now = now.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    now.to_zoned(zone).strftime("%Z").to_string()
}
