//! Plans of statements that were seen before, shared by all sessions.
//!
//! ```text
//!   SELECT c FROM t WHERE id = 7      text protocol ┐ normalised: SELECT c FROM t WHERE id = ?
//!   SELECT c FROM t WHERE id = ?      prepared      ┘ key: that, schema, modes, types of parameters
//! ```
//!
//! A plan is used for as long as neither the definitions nor the statistics have moved since it was begun:
//! definitions have a version, statistics a generation here. The cache is bounded: when a shard is full,
//! plans that nobody has used since the last time go.
//!
//! Rule: a shard's lock is held for a look-up or an insertion, never while a plan is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_sql::plan::{PlanShape, PreparedPlan};
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
    pub generation: u64,
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
        CachedPlan { plan, columns, needs, kind, generation, command, shape, was_used }
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
    /// The plan of a key that was made from these definitions and the present statistics: a remembered one,
    /// or one of the cache.
    pub fn find(
        &mut self,
        key: &[u8],
        definitions_version: u64,
        cache: &PlanCache,
    ) -> Option<&CachedPlan> {
        let generation = cache.generation();
        let is_current = |plan: &Arc<CachedPlan>| {
            plan.plan.definitions_version == definitions_version && plan.generation == generation
        };
        if !self.plans.get(key).is_some_and(is_current) {
            let found = cache.get(key, definitions_version)?;
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
        }
    }

    fn shard(&self, key: &[u8]) -> &RwLock<Shard> {
        let hash = FxBuildHasher.hash_one(key);
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Moves whenever plans are to be made anew although the definitions are the same. It is read before a
    /// plan is made, and goes into it.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The plan of a key that was made from these definitions and the present statistics.
    #[must_use]
    pub fn get(&self, key: &[u8], definitions_version: u64) -> Option<Arc<CachedPlan>> {
        let shard = self.shard(key).read();
        let found = shard.plans.get(key)?;
        if found.plan.definitions_version != definitions_version
            || found.generation != self.generation()
        {
            return None;
        }
        found.is_used();
        Some(Arc::clone(found))
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

    /// Forgets all plans, those that sessions hold or are making included.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Release);
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
