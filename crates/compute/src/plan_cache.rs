//! Plans of statements that were seen before, shared by all sessions.
//!
//! ```text
//!   SELECT c FROM t WHERE id = 7      text protocol ┐ normalised: SELECT c FROM t WHERE id = ?
//!   SELECT c FROM t WHERE id = ?      prepared      ┘ key: that, schema, modes, types of parameters
//! ```
//!
//! A plan is used for as long as neither the definitions nor the statistics of its tables have changed
//! since it was begun. The definitions of a node have a version, and statistics a generation here: as
//! long as both stand, a plan holds by two comparisons. After a change its tables are looked at, and the
//! plan is kept if none of them is concerned. The cache is bounded: when a shard is full, plans that
//! nobody has used since the last time go.
//!
//! Rule: a shard's lock is held for a look-up or an insertion, never while a plan is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_sql::catalog::Catalog;
use firn_sql::catalog::model::TableModel;
use firn_sql::plan::{PlanShape, PlannedLock, PreparedPlan};
use firn_wire::EncodedColumns;
use parking_lot::RwLock;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

use crate::status::Command;

/// A plan with what a session needs besides.
#[derive(Debug)]
pub struct CachedPlan {
    /// The plan.
    pub plan: PreparedPlan,
    /// The result's columns as packets, as they are sent to clients whose results are in UTF-8.
    pub columns: Option<EncodedColumns>,
    /// What the session must be allowed to do.
    pub needs: Vec<crate::privileges::Need>,
    /// The kind of statement, for counters and for what ends a transaction.
    pub kind: crate::privileges::StatementKind,
    /// What [`PlanCache::generation`] was before it was made.
    generation: u64,
    /// The last generation at which the statistics were those that it was made from.
    checked_generation: AtomicU64,
    /// What the statement counts as; nothing if it stands for another one.
    pub command: Option<Command>,
    /// What the plan does as a whole, for counters.
    pub shape: PlanShape,
    was_used: AtomicBool,
}

impl CachedPlan {
    /// A plan that was just made.
    #[must_use]
    pub fn new(
        plan: PreparedPlan,
        columns: Option<EncodedColumns>,
        needs: Vec<crate::privileges::Need>,
        kind: crate::privileges::StatementKind,
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
            was_used,
        }
    }

    /// Whether the plan is what would be made now.
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

    /// Keeps the plan in the cache for another while.
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

    /// Makes room: what nobody has used since the last time goes, or else everything.
    fn make_room(&mut self, plans: usize) {
        self.plans.retain(|_, plan| plan.was_used.swap(false, Ordering::Relaxed));
        self.key_bytes = self.plans.keys().map(|key| key.len()).sum();
        if self.is_full(plans) {
            *self = Shard::default();
        }
    }
}

/// See the module's page.
#[derive(Debug)]
pub struct PlanCache {
    shards: Box<[RwLock<Shard>]>,
    plans_per_shard: usize,
    evictions: AtomicU64,
    generation: AtomicU64,
    /// The generation in which all plans were forgotten last.
    cleared_in: AtomicU64,
}

/// Plans that one session found last, so that it need not ask for them where all sessions do.
#[derive(Debug, Default)]
pub struct RecentPlans {
    plans: FxHashMap<Box<[u8]>, Arc<CachedPlan>>,
}

/// Plans that a session remembers.
const RECENT_PLANS: usize = 64;
/// A plan with a longer key is remembered alone.
const LONGEST_RECENT_KEY_BYTES: usize = 4 << 10;

impl RecentPlans {
    /// The plan of a key, if there is one that holds: a remembered one, or one of the cache.
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
            // What a session remembers stays when the cache gives way.
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

/// Shards of the cache.
const SHARDS: usize = 16;
/// Statements that are longer are planned each time: their plans would fill the memory.
pub(crate) const LONGEST_KEY_BYTES: usize = 128 << 10;
/// What the keys of a shard may take; plans grow with their texts.
const KEY_BYTES_PER_SHARD: usize = 512 << 10;
/// Plans that are kept in all.
const PLANS: usize = 4096;

impl Default for PlanCache {
    fn default() -> PlanCache {
        PlanCache::new(PLANS)
    }
}

impl PlanCache {
    /// A cache of so many plans.
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

    /// Moves whenever statistics change, and when plans are to be made anew. It is read before a plan is
    /// made, and goes into it.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn cleared_in(&self) -> u64 {
        self.cleared_in.load(Ordering::Acquire)
    }

    /// The plan of a key, if there is one that holds.
    #[must_use]
    pub fn get(&self, key: &[u8], catalog: &Catalog) -> Option<Arc<CachedPlan>> {
        // Whether it holds may take a look at the node, and the lock is not held for that.
        let found = self.shard(key).read().plans.get(key).cloned();
        let found = found.filter(|plan| plan.holds(catalog, self))?;
        found.is_used();
        Some(found)
    }

    /// Keeps a plan.
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

    /// The statistics of a table have changed: its plans are made anew, those of other tables stay.
    pub fn statistics_changed(&self, table: &TableModel) {
        // The table first: a plan that is looked at in the new generation must find it changed.
        table.statistics.set_changed_in(self.generation() + 1);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Forgets all plans, those that sessions hold or are making included.
    pub fn clear(&self) {
        self.cleared_in.fetch_max(self.generation() + 1, Ordering::AcqRel);
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.shards.iter().for_each(|shard| *shard.write() = Shard::default());
    }

    /// Forgets plans that nobody looks at just now.
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

    /// How many plans there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().plans.len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many plans had to go for others.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }
}
