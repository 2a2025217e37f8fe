//! Plans of earlier statements, shared by all sessions.
//!
//! ```text
//!   SELECT c FROM t WHERE id = 7     text protocol ┐ normalised: SELECT c FROM t WHERE id = ?
//!   SELECT c FROM t WHERE id = ?     prepared      ┘ key: that, schema, modes, types of parameters
//! ```
//!
//! A plan is used as long as neither the definitions nor the statistics of its tables have changed
//! since it was begun. The definitions of a node have a version, and statistics have a generation
//! here: while both are unchanged, two comparisons show that a plan is valid. After a change, the
//! plan's tables are checked, and the plan is kept if none of them is affected. The cache is
//! bounded: when a shard is full, plans that were not used since the last time are evicted.
//!
//! Rule: a shard's lock is held for a look-up or an insertion, never while a plan is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_sql::catalog::Catalog;
use firn_sql::catalog::model::TableModel;
use firn_sql::execute::vectorised::Unsupported;
use firn_sql::plan::{PlanShape, PlannedLock, PreparedPlan};
use firn_wire::EncodedColumns;
use parking_lot::RwLock;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

use crate::accounts::need::Need;
use crate::statement_kind::StatementKind;
use crate::status::Command;

/// The executor of a plan, chosen when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenExecutor {
    /// The engine over columns.
    Vectorised,
    /// The row executor, and why.
    Row(Unsupported),
}

/// A plan, with further data for the session.
#[derive(Debug)]
pub struct CachedPlan {
    pub plan: PreparedPlan,
    /// The result's columns as packets, for clients whose results are in UTF-8.
    pub columns: Option<EncodedColumns>,
    /// The privileges that the session needs.
    pub needs: Vec<Need>,
    /// The kind of statement, for counters and for statements that end a transaction.
    pub kind: StatementKind,
    /// [`PlanCache::generation`] before it was made.
    generation: u64,
    /// The last generation whose statistics were those that it was made from.
    checked_generation: AtomicU64,
    /// How the statement is counted; `None` if it stands for another one.
    pub command: Option<Command>,
    /// The shape of the plan, for counters.
    pub shape: PlanShape,
    pub executor: ChosenExecutor,
    was_used: AtomicBool,
}

impl CachedPlan {
    /// A plan that was just made.
    #[must_use]
    pub fn new(
        plan: PreparedPlan,
        columns: Option<EncodedColumns>,
        needs: Vec<Need>,
        kind: StatementKind,
        executor: ChosenExecutor,
        generation: u64,
    ) -> CachedPlan {
        let (command, shape) = (Some(Command::of_plan(kind, &plan)), PlanShape::of(&plan));
        let was_used = AtomicBool::new(true);
        CachedPlan {
            plan,
            columns,
            needs,
            kind,
            generation,
            checked_generation: AtomicU64::new(generation),
            command,
            shape,
            executor,
            was_used,
        }
    }

    /// Whether the plan is still valid.
    #[inline]
    pub fn holds(&self, catalog: &Catalog, cache: &PlanCache) -> bool {
        let generation = cache.generation();
        let is_checked = self.checked_generation.load(Ordering::Relaxed) == generation;
        (is_checked || self.has_these_statistics(cache, generation)) && self.plan.holds_in(catalog)
    }

    #[cold]
    fn has_these_statistics(&self, cache: &PlanCache, generation: u64) -> bool {
        let made_in = self.generation;
        let is_older = |lock: &PlannedLock| lock.model.statistics.changed_in() <= made_in;
        let holds = made_in >= cache.cleared_in() && self.plan.locks.iter().all(is_older);
        if holds {
            self.checked_generation.fetch_max(generation, Ordering::Relaxed);
        }
        holds
    }

    /// Marks the plan as used, so that it stays in the cache.
    fn is_used(&self) {
        if !self.was_used.load(Ordering::Relaxed) {
            self.was_used.store(true, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Default)]
struct Shard {
    plans: FxHashMap<Box<[u8]>, Arc<CachedPlan>>,
    key_bytes: usize,
}

impl Shard {
    fn is_full(&self, plans: usize) -> bool {
        self.plans.len() >= plans || self.key_bytes > KEY_BYTES_PER_SHARD
    }

    /// Makes room: evicts what was not used since the last time, or else everything.
    fn make_room(&mut self, plans: usize) {
        self.plans.retain(|_, plan| plan.was_used.swap(false, Ordering::Relaxed));
        self.key_bytes = self.plans.keys().map(|key| key.len()).sum();
        if self.is_full(plans) {
            *self = Shard::default();
        }
    }
}

#[derive(Debug)]
pub struct PlanCache {
    shards: Box<[RwLock<Shard>]>,
    plans_per_shard: usize,
    evictions: AtomicU64,
    generation: AtomicU64,
    /// The generation in which all plans were last dropped.
    cleared_in: AtomicU64,
}

/// Plans that a session found last, so that it need not ask for them in the shared cache.
#[derive(Debug, Default)]
pub struct RecentPlans {
    plans: FxHashMap<Box<[u8]>, Arc<CachedPlan>>,
}

/// Plans that a session remembers.
const RECENT_PLANS: usize = 64;
/// A plan with a longer key is remembered alone.
const LONGEST_RECENT_KEY_BYTES: usize = 4 << 10;

impl RecentPlans {
    /// The plan for a key, if there is a valid one: remembered, or from the cache.
    pub fn find(
        &mut self,
        key: &[u8],
        catalog: &Catalog,
        cache: &PlanCache,
    ) -> Option<&CachedPlan> {
        if !self.plans.get(key).is_some_and(|plan| plan.holds(catalog, cache)) {
            let found = cache.get(key, catalog)?;
            if self.plans.len() >= RECENT_PLANS {
                self.plans.clear();
            }
            // The session keeps its remembered plans when the cache evicts them.
            if key.len() > LONGEST_RECENT_KEY_BYTES {
                self.plans.clear();
            }
            self.plans.insert(key.into(), found);
        }
        self.plans.get(key).map(|plan| {
            plan.is_used();
            &**plan
        })
    }
}

const SHARDS: usize = 16;
/// Longer statements are planned each time: their plans would fill the memory.
pub(crate) const LONGEST_KEY_BYTES: usize = 128 << 10;
/// The most memory for the keys of a shard; plans grow with their texts.
const KEY_BYTES_PER_SHARD: usize = 512 << 10;
/// Plans that are kept in all.
const PLANS: usize = 4096;

impl Default for PlanCache {
    fn default() -> PlanCache {
        PlanCache::new(PLANS)
    }
}

impl PlanCache {
    /// A cache for this many plans.
    #[must_use]
    pub fn new(plans: usize) -> PlanCache {
        PlanCache {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            plans_per_shard: plans.div_ceil(SHARDS).max(1),
            evictions: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            cleared_in: AtomicU64::new(0),
        }
    }

    fn shard(&self, key: &[u8]) -> &RwLock<Shard> {
        let hash = FxBuildHasher.hash_one(key);
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Changes whenever statistics change, and when all plans must be made again. Read before a
    /// plan is made, and stored in it.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn cleared_in(&self) -> u64 {
        self.cleared_in.load(Ordering::Acquire)
    }

    /// The plan for a key, if there is a valid one.
    #[must_use]
    pub fn get(&self, key: &[u8], catalog: &Catalog) -> Option<Arc<CachedPlan>> {
        // Checking the plan may ask the node, and the lock is not held for that.
        let found = self.shard(key).read().plans.get(key).cloned();
        let found = found.filter(|plan| plan.holds(catalog, self))?;
        found.is_used();
        Some(found)
    }

    pub fn put(&self, key: &[u8], plan: Arc<CachedPlan>) {
        if key.len() > LONGEST_KEY_BYTES {
            return;
        }
        let mut shard = self.shard(key).write();
        if shard.is_full(self.plans_per_shard) && !shard.plans.contains_key(key) {
            let before = shard.plans.len();
            shard.make_room(self.plans_per_shard);
            let gone = (before - shard.plans.len()) as u64;
            self.evictions.fetch_add(gone, Ordering::Relaxed);
        }
        if shard.plans.insert(key.into(), plan).is_none() {
            shard.key_bytes += key.len();
        }
    }

    /// The statistics of a table have changed: its plans are made again, those of other tables
    /// stay.
    pub fn statistics_changed(&self, table: &TableModel) {
        // The table first: when a plan is checked in the new generation, it must find the table
        // changed.
        table.statistics.set_changed_in(self.generation() + 1);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Drops all plans, including those that sessions hold or are making.
    pub fn clear(&self) {
        self.cleared_in.fetch_max(self.generation() + 1, Ordering::AcqRel);
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.shards.iter().for_each(|shard| *shard.write() = Shard::default());
    }

    /// Drops plans that are not in use at the moment.
    pub fn release(&self) {
        for shard in self
            .shards
            .iter()
            .filter_map(RwLock::try_write)
            .map(|mut shard| std::mem::take(&mut *shard))
        {
            self.evictions.fetch_add(shard.plans.len() as u64, Ordering::Relaxed);
        }
    }

    /// The number of plans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().plans.len()).sum()
    }

    /// Whether there are no plans.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many plans were evicted.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }
}
