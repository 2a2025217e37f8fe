//! The engine of a database node: opening it over the seams, background tasks, closing it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::rows::{HandedOver, HandedTransaction, TakenOver};
use firn_api::{LogStore, OpenedLog, PageStore, Timestamps, WriterEpoch};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Cts, Environment, Lsn};
use firn_buffer::{BufferPool, BufferPoolOptions};
use firn_fabric::{Fabric, OwnedRegion};
use firn_format::key::CollationKeys;
use parking_lot::Mutex;

use crate::dictionary::Dictionary;
use crate::error::EngineError;
use crate::log::tail::LogTail;
use crate::log::{DURABLE_REGION, DURABLE_WORDS, EPOCH_WORD, RedoLog, RedoLogOptions};
use crate::modifications::ModificationTracker;
use crate::pages::Pages;
use crate::recovery::RecoveryReport;
use crate::rows::EngineTransaction;
use crate::space::Spaces;
use crate::transaction::durable_commits::DurableCommits;
use crate::transaction::handover::Expected;
use crate::transaction::undo::UndoLog;
use crate::transaction::{
    IdLimits, IsolationLevel, Transaction, TransactionOptions, TransactionSystem,
};
use crate::tree::{Forest, StructureChanges};

/// The settings of an engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Memory for pages and their bookkeeping.
    pub buffer_pool_bytes: usize,
    pub log: RedoLogOptions,
    pub transactions: TransactionOptions,
    /// How changes of a tree's structure exclude each other.
    pub structure_changes: StructureChanges,
    /// The interval between two runs of purge.
    pub purge_interval: Duration,
    /// Whether replicas are told which pages have changed.
    pub tracks_modifications: bool,
    /// How much of the newest log replicas can read in this node's memory; 0: none.
    pub log_tail_bytes: usize,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            buffer_pool_bytes: 128 << 20,
            log: RedoLogOptions::default(),
            transactions: TransactionOptions::default(),
            structure_changes: StructureChanges::Concurrent,
            purge_interval: Duration::from_millis(10),
            tracks_modifications: false,
            log_tail_bytes: 0,
        }
    }
}

/// The services that an engine stands on.
#[derive(Clone)]
pub struct Storage {
    /// The log stream that this node writes.
    pub log: Arc<dyn LogStore>,
    /// The epoch in which this node writes the log. Nodes of earlier epochs are fenced.
    pub epoch: WriterEpoch,
    /// The pages that the log changes. The store knows all of the durable log.
    pub pages: Arc<dyn PageStore>,
    /// The source of commit timestamps.
    pub timestamps: Timestamps,
    /// Makes the regions that other nodes read. None of the engine's names is registered yet.
    pub fabric: Arc<dyn Fabric>,
}

pub struct Engine {
    system: Arc<TransactionSystem>,
    fabric: Arc<dyn Fabric>,
    report: RecoveryReport,
    losers_left: Arc<AtomicU64>,
    maintenance: Arc<Maintenance>,
    /// Transactions of the writer before, until [`Engine::taken_over`].
    going_on: Mutex<Vec<(HandedTransaction, Transaction)>>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

/// State that the background tasks share with the engine.
struct Maintenance {
    system: Arc<TransactionSystem>,
    dictionary: OnceLock<Arc<Dictionary>>,
    stopping: AtomicBool,
    wake: Event,
    interval: Duration,
}

impl Engine {
    /// Opens an engine: recovers the state of the last run and starts the background tasks. The
    /// rollback of losers and the materialisation of pages continue after it has returned. Blocks
    /// for I/O.
    ///
    /// # Errors
    /// If the storage cannot be read or is damaged, or another node owns the log.
    pub fn open(
        environment: &Environment,
        storage: Storage,
        options: &EngineOptions,
    ) -> Result<Engine, EngineError> {
        Engine::open_after(environment, storage, options, &HandedOver::default())
    }

    /// Opens an engine that goes on with transactions of the writer before; see
    /// [`Engine::taken_over`]. Transactions whose undo logs do not end as they were handed over are
    /// rolled back like all others. Blocks for I/O.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_after(
        environment: &Environment,
        storage: Storage,
        options: &EngineOptions,
        handed: &HandedOver,
    ) -> Result<Engine, EngineError> {
        let durable = storage.fabric.register(DURABLE_REGION, DURABLE_WORDS)?;
        let opened = storage.log.open(storage.epoch)?;
        let epoch = opened.tail.epoch;
        durable.words()[EPOCH_WORD].store(epoch.0, Ordering::Release);
        let limits = opened.tail.watermarks;
        let (trx, cts) = (limits.trx_id_limit, limits.cts_limit);
        let horizon = handed.oldest_snapshot().map_or(cts, |oldest| oldest.min(cts));
        let limits = IdLimits { trx, cts, horizon };
        let tracker = match options.tracks_modifications {
            true => Some(ModificationTracker::register(&*storage.fabric, opened.tail.end)?),
            false => None,
        };
        let tail = LogTail::register(&*storage.fabric, opened.tail.end, options.log_tail_bytes)?;
        let pages = open_pages(environment, &storage, opened, options, durable, tail);
        let pages = pages.with_modifications(tracker.map(Arc::new));
        let spaces = Arc::new(Spaces::new(pages.clone()));
        let forest = Arc::new(Forest::new(pages, spaces, options.structure_changes));
        let system = TransactionSystem::new(
            environment,
            &storage.fabric,
            forest,
            limits,
            &storage.timestamps,
            options.transactions,
        )?;
        let system = Arc::new(system);
        system.begin_epoch(epoch)?;
        system.ensure_undo_space()?;
        let mut expected = Expected::of(handed);
        let (mut report, mut losers) = system.recover(&mut expected)?;
        let going_on = system.go_on_with(handed, expected, &mut losers)?;
        (report.losers, report.going_on) = (losers.len(), going_on.len());
        let maintenance = Arc::new(Maintenance {
            system: Arc::clone(&system),
            dictionary: OnceLock::new(),
            stopping: AtomicBool::new(false),
            wake: Event::new(),
            interval: options.purge_interval,
        });
        let engine = Engine {
            system,
            fabric: storage.fabric,
            report,
            losers_left: Arc::new(AtomicU64::new(losers.len() as u64)),
            maintenance,
            going_on: Mutex::new(going_on),
            tasks: Mutex::default(),
        };
        engine.start_tasks(environment, losers);
        Ok(engine)
    }

    fn start_tasks(&self, environment: &Environment, losers: Vec<UndoLog>) {
        let maintenance = Arc::clone(&self.maintenance);
        let purge = environment.spawner.spawn("purge", Box::new(move || maintenance.run()));
        self.tasks.lock().push(purge);
        if losers.is_empty() {
            return;
        }
        let (maintenance, left) = (Arc::clone(&self.maintenance), Arc::clone(&self.losers_left));
        let rollback = Box::new(move || maintenance.roll_back(losers, &left));
        self.tasks.lock().push(environment.spawner.spawn("rollback", rollback));
    }

    /// Opens the dictionary, or returns the open one. Called by one thread, before the first
    /// session. `collations` must order text in the same way for as long as the data exists.
    /// Blocks.
    ///
    /// # Errors
    /// If the dictionary cannot be read, or was written by a later version of Firn.
    pub fn open_dictionary(
        &self,
        collations: Arc<dyn CollationKeys>,
    ) -> Result<Arc<Dictionary>, EngineError> {
        if let Some(dictionary) = self.maintenance.dictionary.get() {
            return Ok(Arc::clone(dictionary));
        }
        let dictionary = Dictionary::open(&self.system, collations)?;
        Ok(Arc::clone(self.maintenance.dictionary.get_or_init(|| dictionary)))
    }

    /// The transactions of the writer before, for their sessions. Call it before the first session
    /// is opened: until then, no change of definitions comes between.
    ///
    /// # Errors
    /// If a lock on a definition is not free.
    pub fn taken_over(&self, dictionary: &Arc<Dictionary>) -> Result<Vec<TakenOver>, EngineError> {
        let going_on = std::mem::take(&mut *self.going_on.lock());
        let taken_over = |(handed, transaction): (HandedTransaction, Transaction)| {
            let table_locks = dictionary.lock_definitions(&handed.table_locks)?;
            let transaction = Box::new(EngineTransaction::over(dictionary, transaction));
            Ok(TakenOver { session: handed.session, transaction, table_locks })
        };
        going_on.into_iter().map(taken_over).collect()
    }

    /// Begins a transaction. Does not block.
    ///
    /// # Errors
    /// If the number of open transactions has reached the limit.
    pub fn begin(&self, isolation: IsolationLevel) -> Result<Transaction, EngineError> {
        Transaction::begin(&self.system, isolation)
    }

    #[must_use]
    pub fn system(&self) -> &Arc<TransactionSystem> {
        &self.system
    }

    #[must_use]
    pub fn forest(&self) -> &Arc<Forest> {
        self.system.forest()
    }

    /// The fabric of this node's regions. Their epoch lasts as long as this value.
    #[must_use]
    pub fn fabric(&self) -> &dyn Fabric {
        &*self.fabric
    }

    #[must_use]
    pub fn recovery_report(&self) -> RecoveryReport {
        self.report
    }

    /// The number of transactions of the last run whose rollback is not finished.
    #[must_use]
    pub fn losers_left(&self) -> u64 {
        self.losers_left.load(Ordering::Acquire)
    }

    /// The reason why the node cannot continue, if its log has failed. The node acknowledges
    /// nothing more, and the process should end.
    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        self.system.pages().log.failure().map(EngineError::from)
    }

    /// Stops the background tasks and makes the log durable. Transactions that are still open
    /// become losers of the next start. Blocks.
    ///
    /// # Errors
    /// If the log has failed.
    pub fn close(&self) -> Result<(), EngineError> {
        // Those that nobody has asked for.
        self.going_on.lock().clear();
        let counted = self.maintenance.dictionary.get().map_or(Ok(()), |open| open.close());
        self.maintenance.stopping.store(true, Ordering::Release);
        self.maintenance.wake.notify_all();
        for task in std::mem::take(&mut *self.tasks.lock()) {
            task.join();
        }
        let flushed = self.system.pages().log.close();
        self.system.pages().pool.shutdown();
        flushed?;
        counted
    }
}

fn open_pages(
    environment: &Environment,
    storage: &Storage,
    opened: OpenedLog,
    options: &EngineOptions,
    durable: OwnedRegion,
    tail: Option<LogTail>,
) -> Pages {
    let published = durable.clone();
    let log = RedoLog::start_with_tail(
        opened,
        options.log,
        tail,
        Box::new(move |lsn| _ = published.words()[0].fetch_max(lsn.0, Ordering::SeqCst)),
    );
    let end_of = Arc::clone(&log);
    let pool = BufferPool::new(
        environment.clone(),
        Arc::clone(&storage.pages),
        Arc::new(move || Lsn(durable.words()[0].load(Ordering::Acquire))),
        BufferPoolOptions {
            log_end: Some(Arc::new(move || end_of.end_lsn())),
            ..BufferPoolOptions::with_budget(options.buffer_pool_bytes)
        },
    );
    Pages::new(pool, log)
}

impl Maintenance {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Purges until the engine closes.
    fn run(&self) {
        let mut durable = DurableCommits::default();
        let mut failures = FailureLog::new("purge");
        while !self.is_stopping() {
            let ticket = self.wake.listen();
            let limit = durable.advance(&self.system);
            // Published before the horizon is announced, so that no peer opens a snapshot older
            // than the horizon.
            self.system.order().publish_durable(limit);
            failures.note(self.purge_once(limit));
            if self.is_stopping() {
                return;
            }
            self.wake.wait(ticket, Some(self.interval));
        }
    }

    fn purge_once(&self, limit: Cts) -> Result<(), EngineError> {
        let horizon = self.system.snapshots().advance_horizon(limit);
        self.system.table().recycle(horizon);
        self.system.purge(horizon)?;
        self.system.forest().free_unreachable()?;
        if let Some(dictionary) = self.dictionary.get() {
            dictionary.reclaim(horizon)?;
        }
        Ok(())
    }

    fn roll_back(&self, losers: Vec<UndoLog>, left: &AtomicU64) {
        for loser in losers {
            if self.is_stopping() {
                return;
            }
            let trx = loser.trx;
            match self.system.rollback_writer(loser) {
                Ok(()) => {
                    left.fetch_sub(1, Ordering::AcqRel);
                }
                Err(error) => {
                    tracing::error!(%trx, %error, "a transaction of the last run could not be rolled back; its rows stay locked");
                }
            }
        }
    }
}

/// Logs the failures of a background activity: the first one after each success. The activity is
/// retried.
#[derive(Debug)]
struct FailureLog {
    activity: &'static str,
    has_failed: bool,
}

impl FailureLog {
    fn new(activity: &'static str) -> FailureLog {
        FailureLog { activity, has_failed: false }
    }

    /// Takes the result of a run; returns whether it was logged.
    fn note(&mut self, outcome: Result<(), EngineError>) -> bool {
        let before = std::mem::replace(&mut self.has_failed, outcome.is_err());
        match outcome {
            Err(error) if !before => {
                let activity = self.activity;
                tracing::error!(activity, %error, "background work failed; it will be tried again");
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
