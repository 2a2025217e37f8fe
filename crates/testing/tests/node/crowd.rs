//! Workers that engines have one after the other, and what they were told. Both outlive the engines
//! and their processes.
//!
//! ```text
//!   engine 1: workers ──┤ power cut      engine 2, elsewhere: the same workers go on
//!               └── acknowledged: 7, 12, 3 ──► check: each is there, and nothing half done
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_api::{LogStore, PageStore, Timestamps, WriterEpoch};
use firn_base::Environment;
use firn_engine::{Engine, EngineError, EngineOptions, Storage};
use firn_fabric::{Epoch, InProcessFabric};
use firn_testing::random::Random;
use parking_lot::Mutex;

use crate::mirror::Trees;
use crate::plan::{Model, Shape};
use crate::verify::Witness;
use crate::worker::{Report, Worker, end_prepared};

/// An engine with little memory and few transactions, which fences the one before it.
pub(crate) fn open_small_engine(
    environment: &Environment,
    log: Arc<dyn LogStore>,
    pages: Arc<dyn PageStore>,
    buffer_pool_bytes: usize,
) -> Result<Engine, EngineError> {
    let fabric = InProcessFabric::new(Epoch(environment.clock.wall_time_ms()));
    let storage = Storage {
        log,
        epoch: WriterEpoch::Next,
        pages,
        timestamps: Timestamps::Local,
        fabric: Arc::new(fabric),
    };
    let mut options = EngineOptions { buffer_pool_bytes, ..EngineOptions::default() };
    options.log.buffer_bytes = 512 << 10;
    options.transactions.transactions = 64;
    options.transactions.table_slots = 16;
    Engine::open(environment, storage, &options)
}

/// See the module's page. Clones are the same crowd.
#[derive(Clone)]
pub(crate) struct Crowd {
    pub(crate) trees: Trees,
    shape: Shape,
    /// The longest pause of a worker between two transactions.
    pace: Duration,
    witness: Arc<Mutex<Witness>>,
}

impl Crowd {
    /// Makes the trees of an empty database, and closes its engine.
    pub(crate) fn create(engine: Engine, shape: &Shape) -> Crowd {
        let trees = Trees::create(&engine, shape).expect("an empty database");
        engine.close().expect("nothing is wrong with the log");
        let witness = Arc::new(Mutex::new(Witness::new(Model::new(shape))));
        Crowd { trees, shape: shape.clone(), pace: Duration::ZERO, witness }
    }

    /// The same crowd, whose workers pause between their transactions, for so long at most.
    pub(crate) fn paced(self, pace: Duration) -> Crowd {
        Crowd { pace, ..self }
    }

    /// How many transactions are known to be committed.
    pub(crate) fn committed(&self) -> u64 {
        self.witness.lock().committed()
    }

    fn report(&self) -> Report {
        let witness = Arc::clone(&self.witness);
        Arc::new(move |thread, sequence, said| witness.lock().hear(thread, sequence, said))
    }

    /// One life of an engine: what earlier lives left prepared is ended, and workers work.
    pub(crate) fn live(&self, environment: &Environment, engine: &Arc<Engine>, random: &Random) {
        if end_prepared(engine, random, &self.report()).is_ok() {
            self.work(environment, engine, random);
        }
    }

    /// Workers work until they cannot continue.
    pub(crate) fn work(&self, environment: &Environment, engine: &Arc<Engine>, random: &Random) {
        let tasks = (0..self.shape.threads).map(|thread| {
            let (engine, crowd) = (Arc::clone(engine), self.clone());
            let random = random.fork();
            let body = move || {
                let worker = Worker {
                    engine: &engine,
                    trees: crowd.trees,
                    shape: &crowd.shape,
                    thread,
                    random: &random,
                    report: crowd.report(),
                    stop: &AtomicBool::new(false),
                    pace: crowd.pace,
                    lock_wait: Duration::from_millis(200),
                    is_storage_bad: true,
                };
                worker.run();
            };
            environment.spawner.spawn("worker", Box::new(body))
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.join();
        }
    }

    /// Compares an engine that has no other users with everything that was acknowledged.
    ///
    /// # Panics
    /// If something is missing, or is there and should not be.
    pub(crate) fn check(&self, engine: &Engine) {
        // Taken out, because the check waits, and no task may wait while it holds a mutex.
        let placeholder = Witness::new(Model::new(&self.shape));
        let mut witness = std::mem::replace(&mut *self.witness.lock(), placeholder);
        if let Err(complaint) = witness.check(engine, self.trees) {
            panic!("{complaint}");
        }
        *self.witness.lock() = witness;
    }
}
