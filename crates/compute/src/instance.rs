//! What all sessions of a server share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use firn_api::rows::DatabaseNode;
use firn_base::Environment;
use firn_sql::catalog::Catalog;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::accounts::{AccountBook, RowsAccountStore, StoreError};
use crate::facts::{Facts, SharedFacts};
use crate::plan_cache::PlanCache;
use crate::status::Status;
use crate::user_locks::UserLocks;
use crate::variables::GlobalVariables;

/// Rows of `SHOW ENGINE INNODB STATUS` and gauges of the storage engine, told by who runs it.
pub type NodeReport = Box<dyn Fn() -> Vec<(String, u64)> + Send + Sync>;

/// See the module's page.
pub struct Instance {
    /// Where rows are.
    pub node: Arc<dyn DatabaseNode>,
    /// The definitions.
    pub catalog: Arc<Catalog>,
    /// Accounts.
    pub accounts: AccountBook,
    /// Global system variables.
    pub variables: GlobalVariables,
    /// Plans of statements that were seen before.
    pub plans: PlanCache,
    /// Counters.
    pub status: Status,
    /// What functions share.
    pub facts: SharedFacts,
    /// When the server started, on the environment's monotonic clock.
    pub started: std::time::Duration,
    /// Gauges of the storage engine.
    pub report: NodeReport,
    /// Where statements put what they have no memory for.
    pub spill: Option<firn_sql::execute::SpillDirectory>,
    /// Open sessions by their connection's number.
    sessions: Mutex<FxHashMap<u64, Arc<Facts>>>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("status", &self.status).finish_non_exhaustive()
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
        Ok(Instance {
            node,
            catalog,
            accounts,
            variables,
            plans: PlanCache::default(),
            status: Status::default(),
            facts,
            started: environment.clock.monotonic(),
            report,
            spill: None,
            sessions: Mutex::default(),
        })
    }

    /// Seconds since the server started.
    #[must_use]
    pub fn uptime_seconds(&self) -> u64 {
        self.facts.environment.clock.monotonic().saturating_sub(self.started).as_secs()
    }

    pub(crate) fn register(&self, facts: &Arc<Facts>) {
        self.sessions.lock().insert(facts.id, Arc::clone(facts));
    }

    pub(crate) fn unregister(&self, facts: &Facts) {
        let mut sessions = self.sessions.lock();
        if sessions.get(&facts.id).is_some_and(|other| std::ptr::eq(&raw const **other, facts)) {
            sessions.remove(&facts.id);
        }
    }

    /// The facts of an open session.
    #[must_use]
    pub fn session(&self, id: u64) -> Option<Arc<Facts>> {
        self.sessions.lock().get(&id).cloned()
    }

    /// How many sessions are open.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.lock().len()
    }
}
