//! A node that follows another node's log and answers reads (papers 001 §2.1 and 003 §III).
//!
//! ```text
//!   log ──► Replay ──► pages ──► transaction table ──► definitions ──► visible
//!             │ begins            ends                   what changed     what snapshots see
//!   the writer ──► AppliedCommits (where visibility starts),
//!                  the writer's horizon (what it may purge)
//! ```
//!
//! A replica writes nothing: it has no redo, undo, locks or purge, and completes no split that the
//! writer left unfinished. Everything it knows comes from the log, from the page store at its own
//! position, and from the writer ([`firn_api::WriterNode`]). The writer tells it up to which
//! timestamp its commits are durable. It also has the replica's place, which keeps it from purging
//! what the replica's snapshots see. A writer of this machine is seen through its regions
//! ([`RegionWriter`]).
//!
//! Log comes by two ways. The log store sends it, and holds what the replica still needs. The
//! newest of it is in the memory of a writer on this machine ([`firn_api::LogTail`]), sooner than
//! any message brings it. Only durable log is taken from either.
//!
//! How a replica starts: it first takes its place at the writer, so nothing that it can see is
//! purged from then on. Then it reads the durable end of the log, P, and after that the last
//! timestamp that was handed out, L. Commits before P have timestamps up to L and count as settled.
//! The first snapshot is at or above L, so it may see all of them ([`commits`]).
//!
//! Rules, cited by number:
//!
//! 1. One thread at a time applies the log, in its order: the task, or a read that waits for it
//!    ([`applying`]). It alone changes pages, the transaction table and the definitions.
//! 2. A transaction is in the table before its first record is on a page. A commit is visible only
//!    once its records, the table and the definitions include it ([`replay`]).
//! 3. The place at the writer is at or below every snapshot that is open here or will be opened.
//!    Snapshots that are open for too long are given up, and what they read from then on is
//!    refused.
//! 4. Log is applied only if the place was surely held when it was written: it is of the writer's
//!    epoch ([`replay`]), and arrived within the place's lease.
//!
//! Departure from 001: the replica learns of the writer's transactions from the log, not by
//! fetching the writer's list of active transactions, so its own table answers without a round
//! trip.

mod ages;
mod applier;
mod applying;
pub(crate) mod by_page;
mod commits;
#[cfg(test)]
mod faults;
mod newest;
mod regions;
mod replay;
mod task;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::Awaited;
use firn_api::{FollowOptions, LogStore, PageFilter, PageStore, WriterNode, WriterPositions};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Cts, Environment, Lsn};
use firn_buffer::{BufferPool, BufferPoolOptions};
use firn_fabric::Fabric;
use firn_format::key::CollationKeys;
use parking_lot::Mutex;

use crate::dictionary::DictionaryReader;
use crate::error::EngineError;
use crate::pages::ReadPages;
use crate::recovery::open_transactions;
use crate::space::DroppedSpaces;
use crate::transaction::{TransactionOptions, Versions};
use crate::tree::ForestReader;

use ages::Ages;
use applier::Applier;
use applying::Applying;
use by_page::{ByPage, OpenChanges};
use commits::AppliedCommits;
use newest::Newest;
pub(crate) use newest::NewestCommits;
use replay::Replay;
use task::{News, Task};

pub use regions::{RegionWriter, modifications_at};

/// What a replica is built on.
#[derive(Clone)]
pub struct ReplicaStorage {
    /// The log that the writer writes.
    pub log: Arc<dyn LogStore>,
    /// Pages at the positions that the replica has applied.
    pub pages: Arc<dyn PageStore>,
    /// Makes the replica's own regions; has none of the engine's names yet.
    pub fabric: Arc<dyn Fabric>,
    /// The node that writes, in its present epoch.
    pub writer: Arc<dyn WriterNode>,
}

/// The settings of a replica.
#[derive(Debug, Clone)]
pub struct ReplicaOptions {
    /// The replica's name in listings of log readers.
    pub name: String,
    /// Memory for pages, with all bookkeeping.
    pub buffer_pool_bytes: usize,
    /// Transactions and slots of the table.
    pub transactions: TransactionOptions,
    /// How much log is applied before the replica checks whether anything else is due.
    pub piece_bytes: usize,
    /// The longest time between two looks at the writer while no log comes.
    pub interval: Duration,
    /// The most log that may be held back for the replica.
    pub hold_limit_bytes: u64,
    /// How long a snapshot may be open, about; older ones are given up, so that they do not keep
    /// the writer from purging. `None`: there is no limit.
    pub snapshot_limit: Option<Duration>,
    /// How long opening waits for the first snapshot.
    pub start_timeout: Duration,
    /// What the replica does wrong, so that tests show that they find it.
    #[cfg(test)]
    fault: Option<faults::Fault>,
}

impl Default for ReplicaOptions {
    fn default() -> ReplicaOptions {
        ReplicaOptions {
            name: "replica".to_owned(),
            buffer_pool_bytes: 128 << 20,
            transactions: TransactionOptions::default(),
            piece_bytes: 256 << 10,
            interval: Duration::from_millis(10),
            hold_limit_bytes: 16 << 30,
            snapshot_limit: None,
            start_timeout: Duration::from_secs(30),
            #[cfg(test)]
            fault: None,
        }
    }
}

pub struct Replica {
    shared: Arc<Shared>,
    pool: Arc<BufferPool>,
    newest: Newest,
    applying: Arc<Applying>,
    /// If the writer tells what has changed.
    by_page: Option<Arc<ByPage>>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

/// The state that the applier shares with readers.
struct Shared {
    versions: Arc<Versions>,
    dictionary: Arc<DictionaryReader>,
    /// A snapshot can be opened.
    is_ready: AtomicBool,
    /// A position of the log: every commit before it is visible.
    complete: AtomicU64,
    /// The end of the log that was applied, between two pieces.
    position: AtomicU64,
    stopping: AtomicBool,
    failure: OnceLock<EngineError>,
    /// Whether the writer did not answer the last look.
    is_cut_off: AtomicBool,
    /// What the writer said last.
    positions: Mutex<WriterPositions>,
    open_changes: OpenChanges,
    /// More is visible, or the replica has failed.
    moved: Event,
}

impl Replica {
    /// Opens a replica at the durable end of the log, and starts to apply the log that follows.
    /// Blocks for I/O, and until a snapshot can be opened.
    ///
    /// # Errors
    /// If the writer cannot be reached or has no dictionary yet, the log or a page cannot be read,
    /// or the time has run out.
    pub fn open(
        environment: &Environment,
        storage: ReplicaStorage,
        options: ReplicaOptions,
        collations: Arc<dyn CollationKeys>,
    ) -> Result<Replica, EngineError> {
        let held_at = environment.clock.monotonic();
        let mut place = storage.writer.take_place(&options.name)?;
        let follower = storage.log.follow(FollowOptions {
            name: options.name.clone(),
            from: storage.log.durable_lsn(),
            until: None,
            pages: PageFilter::All,
            hold_limit_bytes: options.hold_limit_bytes,
        })?;
        let start = follower.position();
        let positions = place.look(place.snapshot())?;
        let first = positions.handed_out;
        let (pool, applier) = BufferPool::at_position(
            environment,
            Arc::clone(&storage.pages),
            storage.pages.hold(&options.name, start)?,
            &BufferPoolOptions::with_budget(options.buffer_pool_bytes),
        );
        let pages = ReadPages { pool: Arc::clone(&pool) };
        let dropped: Arc<DroppedSpaces> = Arc::default();
        let forest = Arc::new(ForestReader::new(pages.clone(), Arc::clone(&dropped)));
        let versions = Versions::register(
            &storage.fabric,
            forest,
            None,
            place.snapshot(),
            &options.transactions,
        )?;
        let versions = Arc::new(versions);
        let open = open_transactions(&pages)?;
        for trx in &open {
            versions.table().begin(*trx, versions.snapshots().horizon())?;
            // The writer's durable commits stay below one that is being decided, but not below one
            // that was in doubt when the writer started.
            if storage.writer.is_committing(*trx)? {
                versions.table().set_committing(*trx);
            }
        }
        let clock = Arc::clone(&environment.clock);
        let dictionary =
            DictionaryReader::open_following(&versions, Arc::clone(&clock), collations)?;
        let open_changes = OpenChanges::default();
        let replay = Replay::new(*dictionary.trees(), positions.epoch, open, open_changes.clone());
        let shared = Arc::new(Shared {
            versions,
            dictionary,
            is_ready: AtomicBool::new(false),
            complete: AtomicU64::new(0),
            position: AtomicU64::new(start.0),
            stopping: AtomicBool::new(false),
            failure: OnceLock::new(),
            is_cut_off: AtomicBool::new(false),
            positions: Mutex::new(positions),
            open_changes,
            moved: Event::new(),
        });
        let (start_timeout, is_dense) = (options.start_timeout, storage.writer.is_dense());
        let applier = Applier {
            shared: Arc::clone(&shared),
            pages: applier,
            replay,
            dropped,
            commits: AppliedCommits::new(is_dense),
            position: start,
            first,
            followed: Cts(0),
            held_until: held_at.saturating_add(place.lease()),
            is_dense,
            clock: Arc::clone(&clock),
            #[cfg(test)]
            fault: options.fault,
            #[cfg(test)]
            late: faults::Late::default(),
        };
        let applying = Applying::new(Arc::clone(&shared), applier, storage.writer.log_tail());
        let applying = Arc::new(applying);
        let mut task = Task {
            shared: Arc::clone(&shared),
            applying: Arc::clone(&applying),
            follower,
            place,
            held_at,
            looked_at: Duration::ZERO,
            ages: Ages::default(),
            options,
            clock,
            news: News::default(),
        };
        let task = environment.spawner.spawn("replica", Box::new(move || task.run()));
        let by_page = storage.writer.modifications().map(|modifications| {
            let (shared, applying) = (Arc::clone(&shared), Arc::clone(&applying));
            Arc::new(ByPage::new(shared, applying, Arc::clone(&pool), modifications))
        });
        let newest = Newest::new(storage.writer, Arc::clone(&environment.clock));
        let task = Mutex::new(Some(task));
        let replica = Replica { shared, pool, newest, applying, by_page, task };
        replica.wait_until_ready(start_timeout)?;
        Ok(replica)
    }

    fn wait_until_ready(&self, timeout: Duration) -> Result<(), EngineError> {
        let shared = &self.shared;
        let is_over = || shared.is_ready.load(Ordering::Acquire) || shared.failure.get().is_some();
        let came = shared.moved.wait_until(Some(timeout), is_over);
        match shared.failure.get() {
            Some(failure) => Err(failure.clone()),
            None if came => Ok(()),
            None => Err(EngineError::Invalid(format!(
                "the replica could not catch up with the node that writes within {timeout:?}"
            ))),
        }
    }

    /// Which versions snapshots of this node see.
    #[must_use]
    pub fn versions(&self) -> &Arc<Versions> {
        &self.shared.versions
    }

    #[must_use]
    pub fn dictionary(&self) -> &Arc<DictionaryReader> {
        &self.shared.dictionary
    }

    /// The end of the applied log. Does not block.
    #[must_use]
    pub fn applied_lsn(&self) -> Lsn {
        self.pool.applied_lsn().unwrap_or_default()
    }

    /// What a snapshot taken now sees. Does not block.
    #[must_use]
    pub fn visible(&self) -> Cts {
        self.shared.versions.newest()
    }

    /// Blocks until snapshots see the commit at `cts` (true), or until `timeout` has passed or the
    /// replica has failed (false).
    pub fn wait_until_visible(&self, cts: Cts, timeout: Duration) -> bool {
        let is_over = || self.visible() >= cts || self.failure().is_some();
        self.shared.moved.wait_until(Some(timeout), is_over) && self.visible() >= cts
    }

    /// Blocks until snapshots see what is awaited. May apply log meanwhile.
    ///
    /// # Errors
    /// [`EngineError::NotCaughtUp`] at `until`, which is `patience` after the wait began;
    /// [`LockError::Cancelled`] if `cancelled` becomes true.
    pub(crate) fn catch_up(
        &self,
        awaited: Awaited,
        until: Duration,
        cancelled: &AtomicBool,
    ) -> Result<(), EngineError> {
        self.applying.catch_up(awaited, until, Some(cancelled))
    }

    /// Whether log is taken from the writer's memory, where that can be read. It is until this says
    /// otherwise.
    pub fn use_log_tail(&self, on: bool) {
        self.applying.use_tail(on);
    }

    /// Whether snapshots see what is awaited. Does not block.
    pub(crate) fn has_reached(&self, awaited: Awaited) -> bool {
        self.shared.reached(awaited).is_some()
    }

    /// For reads that wait only if they meet a change.
    pub(crate) fn by_page(&self) -> Option<&Arc<ByPage>> {
        self.by_page.as_ref()
    }

    /// How many reads have begun before everything was applied that they must see, and have waited
    /// because they met a change.
    #[must_use]
    pub fn changes_met(&self) -> u64 {
        self.by_page.as_ref().map_or(0, |by_page| by_page.waits())
    }

    /// What is newest at the writer, for reads that wait for it.
    pub(crate) fn newest(&self) -> &Newest {
        &self.newest
    }

    /// How often reads have asked the writer what is newest.
    #[must_use]
    pub fn newest_questions(&self) -> u64 {
        self.newest.questions()
    }

    /// What the writer last said of itself. Does not block.
    #[must_use]
    pub fn writer_positions(&self) -> WriterPositions {
        *self.shared.positions.lock()
    }

    /// Whether the writer did not answer when it was asked last.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.shared.is_cut_off.load(Ordering::Acquire)
    }

    /// Why the replica has stopped following. Its visible state no longer changes.
    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        self.shared.failure.get().cloned()
    }

    /// Stops following, and returns the place at the writer and the lease on the log. Blocks.
    pub fn close(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.moved.notify_all();
        if let Some(task) = self.task.lock().take() {
            task.join();
        }
        self.applying.close();
        self.pool.shutdown();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// The snapshot that sees what is awaited and nothing that came later, if it can be opened.
    fn reached(&self, awaited: Awaited) -> Option<Cts> {
        // In this order: commits before the position are visible afterwards.
        let is_complete = self.complete.load(Ordering::SeqCst) >= awaited.position.0;
        let visible = self.versions.newest();
        (is_complete || visible >= awaited.commits).then(|| visible.min(awaited.commits))
    }

    /// Whether the replica applies no more log.
    fn is_over(&self) -> bool {
        self.stopping.load(Ordering::Acquire) || self.failure.get().is_some()
    }

    /// The replica follows no further. The first failure counts.
    fn fail(&self, error: EngineError) {
        if self.failure.set(error.clone()).is_ok() {
            let position = Lsn(self.position.load(Ordering::Acquire));
            tracing::error!(%error, applied = %position, "the replica stops following the log");
        }
        self.moved.notify_all();
    }
}
