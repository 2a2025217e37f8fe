//! What all sessions of a server share.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use firn_api::rows::DatabaseNode;
use firn_base::Environment;
use firn_base::memory::Cache;
use firn_sql::catalog::Catalog;
use firn_wire::Connections;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::accounts::{AccountBook, AccountName, RowsAccountStore, StoreError, UsageBook};
use crate::facts::{Facts, SharedFacts};
use crate::global_lock::GlobalLock;
use crate::logs::{LogDirectories, Logs};
use crate::plan_cache::PlanCache;
use crate::status::{Figure, Status, StatusCounts, server_figures};
use crate::user_locks::UserLocks;
use crate::variables::{GlobalVariables, PersistedVariables, Setting};

/// Counters and gauges of the storage engine, told by who runs it.
pub type NodeReport = Box<dyn Fn() -> Vec<Figure> + Send + Sync>;
/// The text of `SHOW ENGINE INNODB STATUS`, told by who runs the storage engine.
pub type NodeText = Box<dyn Fn() -> String + Send + Sync>;
/// Obeys a global variable that is not this layer's, by its name and value.
pub type GlobalHook = Box<dyn Fn(&str, &Setting) + Send + Sync>;

/// Who may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritesAllowed {
    /// Everybody.
    All,
    /// Those with `CONNECTION_ADMIN`: `read_only` is on.
    Administrators,
    /// Nobody: `super_read_only` is on.
    Nobody,
}

/// See the module's page.
pub struct Instance {
    /// Where rows are.
    pub node: Arc<dyn DatabaseNode>,
    /// The definitions.
    pub catalog: Arc<Catalog>,
    /// Accounts.
    pub accounts: AccountBook,
    /// Failed logins, and what accounts have used of their limits.
    pub usage: UsageBook,
    /// Global system variables.
    pub variables: GlobalVariables,
    /// What of them the next start takes over.
    pub persisted: PersistedVariables,
    /// `FLUSH TABLES WITH READ LOCK`.
    pub global_lock: Arc<GlobalLock>,
    /// Plans of statements that were seen before.
    pub plans: PlanCache,
    /// What sessions that have ended counted.
    pub status: Status,
    /// The slow-query log and the general log.
    pub logs: Logs,
    /// Where the logs may be moved to.
    pub log_directories: LogDirectories,
    /// What functions share.
    pub facts: SharedFacts,
    /// When the server started, on the environment's monotonic clock.
    pub started: std::time::Duration,
    /// Gauges of the storage engine.
    pub report: NodeReport,
    /// What `SHOW ENGINE INNODB STATUS` says.
    pub node_text: Option<NodeText>,
    /// Obeys global variables that are not this layer's; set once, by who serves clients.
    pub global_hook: OnceLock<GlobalHook>,
    /// When `FLUSH STATUS` was last run, in milliseconds on the environment's monotonic clock.
    flushed_ms: AtomicU64,
    /// Where statements put what they have no memory for.
    pub spill: Option<firn_sql::execute::SpillDirectory>,
    /// What runs analytic statements; without it the row executor does.
    pub vectorised: Option<Arc<dyn firn_sql::execute::vectorised::VectorisedEngine>>,
    /// Who may write, as the variables say: read by each statement that writes.
    writes_allowed: AtomicU8,
    /// Open sessions by their connection's number.
    sessions: Mutex<FxHashMap<u64, Arc<Facts>>>,
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
    /// A server over a database node: reads the accounts, removes temporary tables that a crash left.
    /// Blocks.
    ///
    /// # Errors
    /// If the accounts cannot be read or stored.
    pub fn open(
        environment: &Environment,
        node: Arc<dyn DatabaseNode>,
        variables: GlobalVariables,
        report: NodeReport,
    ) -> Result<Instance, StoreError> {
        let accounts = AccountBook::open(Box::new(RowsAccountStore::open(Arc::clone(&node))?))?;
        let log_directories = LogDirectories::of(&variables);
        let persisted = PersistedVariables::open(Arc::clone(&node)).map_err(StoreError::Rows)?;
        persisted.apply(&variables).map_err(StoreError::Rows)?;
        let catalog = Arc::new(Catalog::new(Arc::clone(&node)));
        if let Err(error) = catalog.remove_leftovers() {
            tracing::warn!(%error, "temporary tables of an earlier life are left");
        }
        let facts = SharedFacts {
            locks: Arc::new(UserLocks::default()),
            sequence: Arc::new(AtomicU64::new(environment.clock.wall_time_us())),
            node_id: environment.random.next_u64() & 0xffff_ffff_ffff,
            environment: environment.clone(),
        };
        let instance = Instance {
            node,
            catalog,
            accounts,
            usage: UsageBook::default(),
            logs: Logs::new(environment),
            log_directories,
            variables,
            persisted,
            global_lock: Arc::default(),
            plans: PlanCache::default(),
            status: Status::default(),
            node_text: None,
            global_hook: OnceLock::new(),
            flushed_ms: AtomicU64::new(environment.clock.monotonic().as_millis() as u64),
            facts,
            started: environment.clock.monotonic(),
            report,
            spill: None,
            vectorised: None,
            writes_allowed: AtomicU8::new(0),
            sessions: Mutex::default(),
        };
        instance.obey_read_only();
        let zone = system_time_zone(environment.clock.wall_time_us());
        instance.variables.install("system_time_zone", Setting::text(&zone));
        instance.logs.obey(&instance.variables);
        Ok(instance)
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

    /// What all sessions have counted, those that have ended included.
    #[must_use]
    pub fn totals(&self) -> StatusCounts {
        // Under the lock, so that a session that ends is counted once: this only adds numbers up.
        let sessions = self.sessions.lock();
        let mut totals = self.status.read();
        sessions.values().for_each(|facts| totals.add(&facts.status.read()));
        totals
    }

    /// All figures, for a scrape. `connections` are the server's.
    #[must_use]
    pub fn figures(&self, connections: &Connections) -> Vec<Figure> {
        server_figures(self, connections, None)
    }

    /// `FLUSH STATUS`: the session's counters go to the sums and begin at zero.
    pub(crate) fn flush_status(&self, facts: &Facts, connections: &Connections) {
        let sessions = self.sessions.lock();
        self.status.take_from(&facts.status);
        drop(sessions);
        connections.forget_most();
        let now = self.facts.environment.clock.monotonic().as_millis() as u64;
        self.flushed_ms.store(now, Ordering::Relaxed);
    }

    /// Who may write.
    #[inline]
    pub(crate) fn writes_allowed(&self) -> WritesAllowed {
        match self.writes_allowed.load(Ordering::Relaxed) {
            0 => WritesAllowed::All,
            1 => WritesAllowed::Administrators,
            _ => WritesAllowed::Nobody,
        }
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

    /// Obeys a global variable that was set.
    pub(crate) fn global_changed(&self, name: &str) {
        self.obey_read_only();
        self.logs.obey(&self.variables);
        if let (Some(hook), Some(value)) = (self.global_hook.get(), self.variables.get(name)) {
            hook(name, &value);
        }
    }

    pub(crate) fn register(&self, facts: &Arc<Facts>) {
        self.sessions.lock().insert(facts.id, Arc::clone(facts));
    }

    pub(crate) fn unregister(&self, facts: &Facts) {
        let mut sessions = self.sessions.lock();
        if sessions.get(&facts.id).is_some_and(|other| std::ptr::eq(&raw const **other, facts)) {
            sessions.remove(&facts.id);
        }
        self.status.take_from(&facts.status);
    }

    /// The facts of an open session.
    #[must_use]
    pub fn session(&self, id: u64) -> Option<Arc<Facts>> {
        self.sessions.lock().get(&id).cloned()
    }

    /// How many sessions an account has open.
    #[must_use]
    pub fn sessions_of(&self, account: &AccountName) -> usize {
        self.sessions.lock().values().filter(|facts| facts.account == *account).count()
    }

    /// The time, in seconds since 1970.
    #[must_use]
    pub fn now_s(&self) -> u64 {
        self.facts.environment.clock.wall_time_us() / 1_000_000
    }

    /// How many sessions are open.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.lock().len()
    }
}

/// The abbreviation of the process's time zone, such as `CET`.
fn system_time_zone(now_us: u64) -> String {
    let zone = jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC);
    let now = i64::try_from(now_us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let now = now.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    now.to_zoned(zone).strftime("%Z").to_string()
}
