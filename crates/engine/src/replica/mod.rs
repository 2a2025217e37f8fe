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
//! How a replica starts: it first takes its place at the writer, so nothing that it can see is
//! purged from then on. Then it reads the durable end of the log, P, and after that the last
//! timestamp that was handed out, L. Commits before P have timestamps up to L and count as settled.
//! The first snapshot is at or above L, so it may see all of them ([`commits`]).
//!
//! Rules, cited by number:
//!
//! 1. One task applies the log. It alone changes pages, the transaction table and the definitions.
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
pub(crate) mod by_page;
mod commits;
#[cfg(test)]
mod faults;
mod newest;
mod regions;
mod replay;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::Awaited;
use firn_api::{
    FollowOptions, Followed, FollowedGroup, LogFollower, LogStore, PageFilter, PageStore,
    WriterError, WriterNode, WriterPlace, WriterPositions,
};
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Cts, Environment, Lsn};
use firn_buffer::{ApplyFailure, BufferPool, BufferPoolOptions, LogApplier};
use firn_fabric::Fabric;
use firn_format::key::CollationKeys;
use firn_format::redo::Group;
use parking_lot::Mutex;

use crate::dictionary::DictionaryReader;
use crate::dictionary::follow::Touched;
use crate::error::EngineError;
use crate::lock::LockError;
use crate::pages::ReadPages;
use crate::recovery::open_transactions;
use crate::space::DroppedSpaces;
use crate::transaction::commit_order::MAX_COMMITTED_WORD;
use crate::transaction::{TransactionOptions, Versions};
use crate::tree::ForestReader;

use ages::Ages;
use by_page::{ByPage, OpenChanges};
use commits::AppliedCommits;
use newest::Newest;
pub(crate) use newest::NewestCommits;
use replay::{Replay, ReplayedCommit};

pub use regions::RegionWriter;

/// How long a read waits for commits before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);
/// The pause before a writer that did not answer is asked again.
const RETRY: Duration = Duration::from_millis(100);

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

/// An open replica.
pub struct Replica {
    shared: Arc<Shared>,
    pool: Arc<BufferPool>,
    newest: Newest,
    /// If the writer tells what has changed.
    by_page: Option<Arc<ByPage>>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

/// The state that the applying task shares with readers.
struct Shared {
    versions: Arc<Versions>,
    dictionary: Arc<DictionaryReader>,
    /// A snapshot can be opened.
    is_ready: AtomicBool,
    /// A position of the log: every commit before it is visible.
    complete: AtomicU64,
    stopping: AtomicBool,
    failure: OnceLock<EngineError>,
    /// Whether the writer did not answer the last look.
    is_cut_off: AtomicBool,
    /// What the writer said last.
    positions: Mutex<WriterPositions>,
    open_changes: OpenChanges,
    /// More is visible, or the task has failed.
    moved: Event,
}

/// The task that applies the log (rule 1).
struct Applying {
    shared: Arc<Shared>,
    follower: Box<dyn LogFollower>,
    applier: LogApplier,
    replay: Replay,
    dropped: Arc<DroppedSpaces>,
    commits: AppliedCommits,
    /// Rule 3.
    place: Box<dyn WriterPlace>,
    /// When the last successful look at the writer began.
    held_at: Duration,
    /// The timestamp that the first snapshot must see.
    first: Cts,
    /// The newest timestamp at which definitions were read; never goes back.
    followed: Cts,
    is_dense: bool,
    options: ReplicaOptions,
    clock: Arc<dyn Clock>,
    looked_at: Duration,
    ages: Ages,
    #[cfg(test)]
    late: faults::Late,
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
            stopping: AtomicBool::new(false),
            failure: OnceLock::new(),
            is_cut_off: AtomicBool::new(false),
            positions: Mutex::new(positions),
            open_changes,
            moved: Event::new(),
        });
        let (start_timeout, is_dense) = (options.start_timeout, storage.writer.is_dense());
        let mut applying = Applying {
            shared: Arc::clone(&shared),
            follower,
            applier,
            replay,
            dropped,
            commits: AppliedCommits::new(is_dense),
            place,
            held_at,
            first,
            followed: Cts(0),
            is_dense,
            options,
            looked_at: Duration::ZERO,
            ages: Ages::default(),
            clock,
            #[cfg(test)]
            late: faults::Late::default(),
        };
        let task = environment.spawner.spawn("replica", Box::new(move || applying.run()));
        let by_page = storage.writer.modifications().map(|modifications| {
            Arc::new(ByPage::new(Arc::clone(&shared), Arc::clone(&pool), modifications))
        });
        let newest = Newest::new(storage.writer, Arc::clone(&environment.clock));
        let replica = Replica { shared, pool, newest, by_page, task: Mutex::new(Some(task)) };
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

    /// The definitions.
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

    /// Blocks until snapshots see what is awaited.
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
        self.shared.catch_up(awaited, until, Some(cancelled))
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

    /// See [`Replica::catch_up`].
    fn catch_up(
        &self,
        awaited: Awaited,
        until: Duration,
        cancelled: Option<&AtomicBool>,
    ) -> Result<(), EngineError> {
        let is_over = || self.reached(awaited).is_some() || self.failure.get().is_some();
        let patience = awaited.patience;
        loop {
            let left = until.saturating_sub(firn_base::task::monotonic());
            self.moved.wait_until(Some(left.min(LOOK)), is_over);
            if self.reached(awaited).is_some() {
                return Ok(());
            }
            if cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
                return Err(LockError::Cancelled.into());
            }
            let reason = match self.failure.get() {
                Some(failure) => failure.to_string(),
                None if left.is_zero() => "the log has not come so far".to_owned(),
                None => continue,
            };
            return Err(EngineError::NotCaughtUp { patience, reason });
        }
    }
}

impl Applying {
    fn run(&mut self) {
        while !self.shared.stopping.load(Ordering::Acquire) {
            match self.step() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::error!(%error, applied = %self.applier.applied_lsn(), "the replica stops following the log");
                    let _ = self.shared.failure.set(error);
                    self.shared.moved.notify_all();
                    return;
                }
            }
        }
    }

    /// Applies the next piece of log; false at its end.
    fn step(&mut self) -> Result<bool, EngineError> {
        match self.follower.next(self.options.piece_bytes, self.options.interval)? {
            Followed::Piece(piece) => {
                #[cfg(test)]
                self.receive();
                if !self.wait_for_place()? {
                    return Ok(false);
                }
                for group in piece.groups() {
                    self.apply_group(&group)?;
                }
                self.follower.release(piece.to);
            }
            Followed::Nothing => {}
            Followed::End => return Ok(false),
        }
        self.look_at_writer()?;
        self.publish()?;
        Ok(true)
    }

    fn apply_group(&mut self, group: &FollowedGroup<'_>) -> Result<(), EngineError> {
        #[cfg(test)]
        if let Some(fault) = self.options.fault {
            return self.apply_group_with(fault, group);
        }
        self.begin_group(&group.group)?;
        self.change_pages(group.start, &group.group)?;
        self.finish_group(group.end)
    }

    fn begin_group(&mut self, group: &Group<'_>) -> Result<(), EngineError> {
        self.replay.begin_group(&self.shared.versions, &self.dropped, group)
    }

    fn change_pages(&mut self, start: Lsn, group: &Group<'_>) -> Result<(), EngineError> {
        match self.applier.apply(start, group) {
            Ok(()) => Ok(()),
            // The page was dropped and is read again from the page store.
            Err(mismatch @ ApplyFailure::Mismatch { .. }) => {
                tracing::error!(%mismatch, "a cached page did not fit the log");
                Ok(())
            }
            Err(failure) => Err(EngineError::Invalid(failure.to_string())),
        }
    }

    /// Rule 2: the group's pages have changed; its commits follow.
    fn finish_group(&mut self, end: Lsn) -> Result<(), EngineError> {
        let commits = self.replay.end_group(&self.shared.versions, end);
        self.follow_commits(&commits)
    }

    /// Reads the definitions that the commits changed, then makes the commits visible.
    fn follow_commits(&mut self, commits: &[ReplayedCommit]) -> Result<(), EngineError> {
        let is_ready = self.shared.is_ready.load(Ordering::Acquire);
        for commit in commits {
            // A commit with a later timestamp may have been followed before; it stays visible.
            self.followed = self.followed.max(commit.cts).max(self.shared.versions.newest());
            // Before the replica is ready there are no readers, and then everything is read.
            if is_ready {
                self.shared.dictionary.follow(&commit.touched, self.followed)?;
            }
            if !commit.touched.is_nothing() {
                self.shared.open_changes.end();
            }
            self.commits.applied(commit.cts);
        }
        if commits.is_empty() { Ok(()) } else { self.publish() }
    }

    /// Makes visible what can be.
    fn publish(&mut self) -> Result<(), EngineError> {
        let Some(visible) = self.commits.advance(self.applier.applied_lsn()) else { return Ok(()) };
        let is_ready = self.shared.is_ready.load(Ordering::Acquire);
        if visible < self.first {
            return Ok(());
        }
        let is_news = !is_ready || visible != self.shared.versions.newest();
        if is_news {
            self.shared.versions.timestamps().words()[MAX_COMMITTED_WORD]
                .fetch_max(visible.0, Ordering::SeqCst);
        }
        if !is_ready {
            // Commits above `visible` may be applied already; nobody will follow them again.
            self.shared.dictionary.follow(&Touched::All, visible.max(self.followed))?;
            self.shared.is_ready.store(true, Ordering::Release);
        }
        // Only now: commits before the position are visible.
        if self.has_completed() || is_news {
            self.shared.moved.notify_all();
        }
        Ok(())
    }

    /// Publishes up to where every commit of the log is visible. Whether that has changed.
    fn has_completed(&self) -> bool {
        let applied = self.applier.applied_lsn().0;
        self.commits.are_all_visible()
            && self.shared.complete.swap(applied, Ordering::SeqCst) != applied
    }

    /// Rule 4: asks the writer until the place is surely held. False if the replica is closed.
    fn wait_for_place(&mut self) -> Result<bool, EngineError> {
        while self.clock.monotonic().saturating_sub(self.held_at) >= self.place.lease() {
            if self.shared.stopping.load(Ordering::Acquire) {
                return Ok(false);
            }
            self.look()?;
            if self.is_cut_off() {
                let stopping = || self.shared.stopping.load(Ordering::Acquire);
                self.shared.moved.wait_until(Some(RETRY), stopping);
            }
        }
        Ok(true)
    }

    /// Now and then: asks the writer what is durable, and reports what is still needed here.
    fn look_at_writer(&mut self) -> Result<(), EngineError> {
        let passed = self.clock.monotonic().saturating_sub(self.looked_at);
        let pause = if self.is_cut_off() { RETRY } else { self.options.interval };
        if passed < pause { Ok(()) } else { self.look() }
    }

    fn is_cut_off(&self) -> bool {
        self.shared.is_cut_off.load(Ordering::Acquire)
    }

    /// Asks the writer. One that does not answer is asked again later.
    fn look(&mut self) -> Result<(), EngineError> {
        let began = self.clock.monotonic();
        let versions = &self.shared.versions;
        self.ages.note(began, versions.newest());
        if let Some(oldest) =
            self.options.snapshot_limit.and_then(|limit| self.ages.at(began, limit))
        {
            versions.snapshots().give_up_below(oldest);
        }
        let horizon = versions.snapshots().advance_horizon(versions.newest());
        versions.table().recycle(horizon);
        let looked = self.place.look(horizon);
        self.looked_at = self.clock.monotonic();
        match looked {
            Ok(positions) => {
                self.held_at = began;
                self.shared.is_cut_off.store(false, Ordering::Release);
                *self.shared.positions.lock() = positions;
                if !self.is_dense || !self.shared.is_ready.load(Ordering::Acquire) {
                    self.commits.announce(positions.durable_commits, positions.durable_lsn);
                }
                Ok(())
            }
            Err(error @ WriterError::Unreachable { .. }) => {
                if !self.shared.is_cut_off.swap(true, Ordering::AcqRel) {
                    tracing::warn!(%error, "the replica cannot reach the node that writes");
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
