//! The reads of concurrent transactions of the engine, checked against their isolation level.

use std::ops::{Bound, RangeInclusive};
use std::time::Duration;

use firn_base::{Cts, Environment, IndexId};
use firn_engine::transaction::{
    Cursor, Direction, IsolationLevel, KeyRange, ReadMode, Transaction, WaitPolicy,
};
use firn_engine::{Engine, EngineError};
use firn_node::node::{Node, NodeOptions};
use firn_testing::history::{Element, History, Isolation, Key, Recorder, Rejected};
use firn_testing::random::Random;
use firn_testing::workload::{Refused, Session, Workload, WorkloadOptions};

use crate::mirror::Trees;
use crate::plan::Shape;

const SESSIONS: u32 = 8;
const TRANSACTIONS: usize = 400;

/// A session of the engine: lists are payloads of four-byte elements.
pub(crate) struct EngineSession<'a> {
    engine: &'a Engine,
    index: IndexId,
    level: IsolationLevel,
    /// Whether statements that meet a newer row run again, if the snapshot can be renewed.
    renews: bool,
    trx: Option<Transaction>,
}

impl<'a> EngineSession<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        index: IndexId,
        level: IsolationLevel,
    ) -> EngineSession<'a> {
        EngineSession { engine, index, level, renews: false, trx: None }
    }

    fn renewing(mut self, renews: bool) -> Self {
        self.renews = renews;
        self
    }

    /// Runs a statement again as long as its snapshot can be renewed.
    fn run_renewing<R>(
        &self,
        trx: &mut Transaction,
        run: impl Fn(&mut Transaction, IndexId) -> Result<R, EngineError>,
    ) -> Result<R, EngineError> {
        let (mark, savepoint) = (trx.read_mark(), trx.savepoint());
        loop {
            match run(trx, self.index) {
                Err(EngineError::WriteConflict) if self.renews => {
                    trx.rollback_to(savepoint)?;
                    if !trx.renew_snapshot(mark)? {
                        return Err(EngineError::WriteConflict);
                    }
                }
                done => return done,
            }
        }
    }

    /// Runs one statement; any failure ends the transaction.
    fn statement<R>(
        &mut self,
        run: impl Fn(&mut Transaction, IndexId) -> Result<R, EngineError>,
    ) -> Result<R, Refused> {
        let mut trx = self.trx.take().expect("a transaction is open");
        if self.level == IsolationLevel::ReadCommitted {
            trx.open_snapshot();
        }
        match self.run_renewing(&mut trx, run) {
            Ok(result) => {
                trx.end_statement();
                self.trx = Some(trx);
                Ok(result)
            }
            Err(error) => {
                let is_expected =
                    error.is_retryable() || matches!(error, EngineError::DuplicateKey { .. });
                assert!(is_expected, "{error:?}");
                trx.rollback().expect("nothing is wrong with the log");
                Err(Refused::Aborted)
            }
        }
    }
}

fn encode(list: &[Element]) -> Vec<u8> {
    list.iter().flat_map(|element| element.to_be_bytes()).collect()
}

fn decode(payload: &[u8]) -> Vec<Element> {
    let elements = payload.chunks_exact(4);
    elements.map(|bytes| Element::from_be_bytes(bytes.try_into().expect("four bytes"))).collect()
}

impl Session for EngineSession<'_> {
    fn begin(&mut self) -> Result<Option<Cts>, Refused> {
        let mut trx = self.engine.begin(self.level).expect("few transactions are open");
        trx.set_lock_wait_timeout(Duration::from_secs(5));
        if self.renews {
            trx.keep_reads();
        }
        self.trx = Some(trx);
        Ok(None)
    }

    fn read(&mut self, key: Key) -> Result<Vec<Element>, Refused> {
        self.statement(|trx, index| {
            let mut payload = Vec::new();
            let found = trx.get(index, &key.to_be_bytes(), ReadMode::Consistent, &mut payload)?;
            Ok(if found { decode(&payload) } else { Vec::new() })
        })
    }

    fn read_range(
        &mut self,
        keys: RangeInclusive<Key>,
    ) -> Result<Vec<(Key, Vec<Element>)>, Refused> {
        self.statement(|trx, index| {
            let range = KeyRange {
                low: Bound::Included(keys.start().to_be_bytes().to_vec()),
                high: Bound::Included(keys.end().to_be_bytes().to_vec()),
            };
            let direction = match keys.start() % 2 {
                0 => Direction::Forward,
                _ => Direction::Backward,
            };
            let mut cursor = Cursor::new(index, range, direction, ReadMode::Consistent);
            let mut found = Vec::new();
            while cursor.fetch(trx)? {
                found.extend(cursor.rows().map(|(key, payload)| {
                    (Key::from_be_bytes(key.try_into().expect("four bytes")), decode(payload))
                }));
            }
            Ok(found)
        })
    }

    fn append(&mut self, key: Key, element: Element) -> Result<(), Refused> {
        self.statement(|trx, index| {
            let (key, mut payload) = (key.to_be_bytes(), Vec::new());
            if trx.get(index, &key, ReadMode::Update(WaitPolicy::Wait), &mut payload)? {
                payload.extend_from_slice(&encode(&[element]));
                assert!(trx.update(index, &key, &payload)?, "it is locked");
                Ok(())
            } else {
                trx.insert(index, &key, &encode(&[element]))
            }
        })
    }

    fn commit(&mut self) -> Result<Option<Cts>, Refused> {
        let trx = self.trx.take().expect("a transaction is open");
        trx.commit().map_err(|_| Refused::Unknown)?;
        Ok(None)
    }

    fn rollback(&mut self) {
        let trx = self.trx.take().expect("a transaction is open");
        trx.rollback().expect("nothing is wrong with the log");
    }
}

fn record(level: IsolationLevel, seed: u64, options: WorkloadOptions) -> History {
    let directory = tempfile::tempdir().unwrap();
    let mut node_options = NodeOptions::default();
    node_options.engine.buffer_pool_bytes = 16 << 20;
    // With few slots, transactions are offloaded all the time.
    node_options.engine.transactions.table_slots = 16;
    let node = Node::open(&Environment::system(), directory.path(), &node_options).unwrap();
    let shape = Shape { seed, threads: 1, keys: 1, accounts: 1, value_bytes: 1, long_steps: 1 };
    let index = Trees::create(node.engine(), &shape).unwrap().index;
    let workload = Workload::new(options, Random::new(seed));
    let recorder = Recorder::new();
    std::thread::scope(|scope| {
        for id in 0..SESSIONS {
            let (workload, recorder, engine) = (&workload, &recorder, node.engine());
            scope.spawn(move || {
                let mut session = EngineSession::new(engine, index, level).renewing(id % 4 != 0);
                workload.run(&mut session, id, TRANSACTIONS, recorder);
            });
        }
    });
    let mut session = EngineSession::new(node.engine(), index, level);
    workload.read_everything(&mut session, SESSIONS, &recorder);
    node.close().unwrap();
    recorder.history()
}

fn check(level: IsolationLevel, claimed: Isolation) {
    for seed in 0..4 {
        let history = record(level, seed, WorkloadOptions::default());
        if let Err(rejected) = history.check(claimed) {
            panic!("seed {seed}, {level:?}: {rejected}");
        }
    }
}

#[test]
fn read_committed_reads_what_was_committed() {
    check(IsolationLevel::ReadCommitted, Isolation::StrongReadCommitted);
}

#[test]
fn repeatable_read_is_strong_snapshot_isolation() {
    check(IsolationLevel::RepeatableRead, Isolation::StrongSnapshotIsolation);
}

#[test]
fn serializable_is_strict() {
    check(IsolationLevel::Serializable, Isolation::StrictSerializable);
}

#[test]
fn snapshot_isolation_shows_write_skew_and_read_committed_skewed_reads() {
    // The machine decides which transactions meet, so a history may show no anomaly.
    let kinds = |level, claimed| {
        let options = || WorkloadOptions { keys: 3, ..WorkloadOptions::default() };
        let mut outcomes = (9..29).map(|seed| record(level, seed, options()).check(claimed));
        let violated = outcomes.find_map(|outcome| match outcome {
            Err(rejected @ Rejected::Violated(_)) => Some(rejected.to_string()),
            Ok(_) => None,
            Err(other) => panic!("{level:?} for {claimed:?}: {other:?}"),
        });
        violated.unwrap_or_else(|| panic!("{level:?} passes for {claimed:?} again and again"))
    };
    let found = kinds(IsolationLevel::RepeatableRead, Isolation::Serializable);
    assert!(found.contains("G2-item"), "{found}");
    let found = kinds(IsolationLevel::ReadCommitted, Isolation::SnapshotIsolation);
    assert!(found.contains("G-single") || found.contains("G-nonadjacent"), "{found}");
}
