//! Random transactions of an engine with its trees, undo and purge, seen through a peer that has
//! nothing but regions.
//!
//! The peer's open snapshots are compared with a model. For each key, the versions in the tree and
//! in the undo log are walked from the newest one back, and the peer alone says which one its
//! snapshot sees. Versions that the engine has purged too early, and transactions that the peer
//! takes for settled too early, show as another row.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;

use firn_api::{LogError, TimestampSource};
use firn_format::undo::RecordVersion;

use super::between::{Fault, Faulty, PeerBehind, Unsteady};
use super::*;
use crate::error::EngineError;
use crate::test_support::{HybridClock, Node, Oracle, Refusals};
use crate::transaction::durable_commits::DurableCommits;
use crate::transaction::{IsolationLevel, Prepared, Transaction, TransactionOptions};
use crate::tree::Target;

const KEYS: usize = 6;
const STEPS: usize = 150;

type Row = Option<Vec<u8>>;

/// An open transaction, and what it has written.
struct Writing {
    trx: Transaction,
    writes: BTreeMap<usize, Row>,
}

/// A prepared transaction.
struct Deciding {
    prepared: Prepared,
    writes: BTreeMap<usize, Row>,
    /// Whether it is COMMITTING, and then its timestamp, if the coordinator chooses that.
    decision: Option<Option<Cts>>,
}

struct Model {
    node: Node,
    source: Option<Arc<dyn TimestampSource>>,
    remote: RemoteTransactions,
    random: SplitMix,
    durable: DurableCommits,
    open: Vec<Writing>,
    deciding: Vec<Deciding>,
    /// Each key's committed rows.
    rows: Vec<Vec<(Cts, Row)>>,
    is_log_held: bool,
    /// Commits that the log has not made durable.
    not_durable: Vec<Cts>,
    held: Vec<RemoteSnapshot>,
    written: u64,
    reached: Reached,
}

/// What the runs of a model have met.
#[derive(Debug, Default)]
struct Reached {
    offloaded: AtomicUsize,
    undecided: AtomicUsize,
    older_versions: AtomicUsize,
    purged: AtomicUsize,
}

/// What a peer finds for a key.
enum Found {
    Row(Row),
    /// It depends on a transaction that is COMMITTING.
    Undecided,
}

/// The node's own numbers, an oracle, or a hybrid logical clock.
fn source(seed: u64) -> Option<Arc<dyn TimestampSource>> {
    match seed % 3 {
        0 => None,
        1 => Some(Arc::new(Oracle::new(100))),
        _ => Some(Arc::new(HybridClock::default())),
    }
}

fn key(number: usize) -> [u8; 1] {
    [number as u8]
}

fn xid(trx: TrxId) -> [u8; 8] {
    trx.0.to_be_bytes()
}

/// Asks until the network lets an answer through.
fn ask<T>(mut question: impl FnMut() -> Result<T, FabricError>) -> T {
    for _ in 0..1_000 {
        match question() {
            Ok(answer) => return answer,
            Err(FabricError::Unreachable { .. } | FabricError::TimedOut { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the network lets nothing through")
}

impl Model {
    fn new(seed: u64, behind: impl FnOnce(Arc<dyn Peer>) -> Arc<dyn Peer>) -> Model {
        let source = source(seed);
        let timestamps = source.clone().map_or(Timestamps::Local, Timestamps::Shared);
        let options = TransactionOptions { table_slots: 4, ..Default::default() };
        let node = Node::with_timestamps(options, &timestamps);
        let peer = behind(node.fabric.peer());
        Model {
            remote: ask(|| RemoteTransactions::connect(Arc::clone(&peer))),
            node,
            source,
            random: SplitMix::new(seed),
            durable: DurableCommits::default(),
            open: Vec::new(),
            deciding: Vec::new(),
            rows: vec![Vec::new(); KEYS],
            is_log_held: false,
            not_durable: Vec::new(),
            held: Vec::new(),
            written: 0,
            reached: Reached::default(),
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.next_u64() as usize % bound.max(1)
    }

    /// Runs the steps, and compares after each; the first difference.
    fn run(&mut self) -> Result<(), String> {
        for step in 0..STEPS {
            self.step();
            self.check().map_err(|difference| format!("step {step}: {difference}"))?;
        }
        let (offloads, _) = self.node.system.table().offload_counts();
        self.reached.offloaded.fetch_add(offloads as usize, Ordering::Relaxed);
        Ok(())
    }

    fn step(&mut self) {
        match self.below(17) {
            0..=4 => self.write(),
            5 | 6 => self.commit(),
            7 => drop(self.pick_open()),
            8 => self.prepare(),
            9 => self.choose(),
            10 | 11 => self.commit_prepared(),
            12 if self.below(3) == 0 => self.rollback_prepared(),
            12 | 13 => self.purge(),
            14 if self.held.len() < 4 && self.below(2) == 0 => {
                self.held.extend(ask(|| self.remote.open()));
            }
            15 if !self.held.is_empty() => {
                let number = self.below(self.held.len());
                match self.below(3) {
                    0 => {
                        let durable = self.node.system.order().durable();
                        ask(|| self.held[number].advance(durable));
                    }
                    1 => drop(self.held.swap_remove(number)),
                    _ => self.held.clear(),
                }
            }
            16 => self.set_log_held(!self.is_log_held),
            _ => {}
        }
    }

    fn is_locked(&self, key: usize, by_other_than: usize) -> bool {
        let mut open = self.open.iter().enumerate();
        open.any(|(number, writing)| number != by_other_than && writing.writes.contains_key(&key))
            || self.deciding.iter().any(|deciding| deciding.writes.contains_key(&key))
    }

    fn write(&mut self) {
        let number = self.below(4);
        let (number, key_number) = (number.min(self.open.len()), self.below(KEYS));
        if self.is_locked(key_number, number) {
            return;
        }
        if number == self.open.len() {
            let trx = Transaction::begin(&self.node.system, IsolationLevel::ReadCommitted);
            self.open.push(Writing { trx: trx.unwrap(), writes: BTreeMap::new() });
        }
        self.written += 1;
        let row = (self.below(2) > 0)
            .then(|| [&self.written.to_be_bytes()[..], &vec![7; self.below(40)]].concat());
        let (index, key) = (self.node.index, key(key_number));
        let Writing { trx, writes } = &mut self.open[number];
        match &row {
            None => drop(trx.delete(index, &key).unwrap()),
            Some(payload) => {
                if !trx.update(index, &key, payload).unwrap() {
                    trx.insert(index, &key, payload).unwrap();
                }
            }
        }
        writes.insert(key_number, row);
    }

    fn pick_open(&mut self) -> Option<Writing> {
        (!self.open.is_empty()).then(|| self.open.swap_remove(self.below(self.open.len())))
    }

    fn commit(&mut self) {
        let Some(Writing { trx, writes }) = self.pick_open() else { return };
        let id = trx.id().expect("it has written");
        self.check_end(trx.commit());
        self.note_commit(id, writes);
    }

    /// The log confirms nothing while it is held.
    fn check_end(&self, outcome: Result<(), EngineError>) {
        match outcome {
            Ok(()) => {}
            Err(EngineError::OutcomeUnknown(_)) if self.is_log_held => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn note_commit(&mut self, trx: TrxId, writes: BTreeMap<usize, Row>) {
        // A transaction that deleted only what did not exist has no commit.
        let Outcome::Committed(cts, _) = self.node.system.table().outcome(trx) else { return };
        for (key, row) in writes {
            self.rows[key].push((cts, row));
        }
        if self.is_log_held {
            self.not_durable.push(cts);
        }
    }

    fn prepare(&mut self) {
        if self.is_log_held {
            return;
        }
        let Some(Writing { trx, writes }) = self.pick_open() else { return };
        let xid = xid(trx.id().expect("it has written"));
        let prepared = trx.prepare(&xid, None).unwrap();
        self.deciding.push(Deciding { prepared, writes, decision: None });
    }

    /// A coordinator sets COMMITTING, here or through the region, and chooses the timestamp.
    fn choose(&mut self) {
        if self.deciding.is_empty() {
            return;
        }
        let number = self.below(self.deciding.len());
        let trx = self.deciding[number].prepared.trx;
        let lowest = match self.below(2) {
            0 => self.node.system.set_committing(&xid(trx)).unwrap(),
            _ => ask(|| self.remote.set_committing(trx)).expect("it is prepared"),
        };
        let deciding = &mut self.deciding[number];
        deciding.decision.get_or_insert_with(|| {
            let at = self.source.as_ref().map(|source| source.next().unwrap().max(lowest));
            at.inspect(|at| self.source.as_ref().unwrap().observe(*at).unwrap())
        });
    }

    fn commit_prepared(&mut self) {
        let is_decided = |deciding: &Deciding| deciding.decision.is_some();
        let Some(number) = self.deciding.iter().position(is_decided) else { return };
        let Deciding { prepared, writes, decision } = self.deciding.swap_remove(number);
        let at = decision.expect("it is decided");
        self.check_end(self.node.system.commit_prepared(&xid(prepared.trx), at));
        self.note_commit(prepared.trx, writes);
    }

    fn rollback_prepared(&mut self) {
        if self.deciding.is_empty() || self.is_log_held {
            return;
        }
        let deciding = self.deciding.swap_remove(self.below(self.deciding.len()));
        self.node.system.rollback_prepared(&xid(deciding.prepared.trx)).unwrap();
    }

    /// What the background task of an engine does.
    fn purge(&mut self) {
        // What the first call looks at, the second one finds durable.
        self.durable.advance(&self.node.system);
        let limit = self.durable.advance(&self.node.system);
        self.node.system.order().publish_durable(limit);
        let before = self.node.records();
        self.node.purge_up_to(limit);
        self.reached.purged.fetch_add(before - self.node.records(), Ordering::Relaxed);
    }

    fn set_log_held(&mut self, is_held: bool) {
        let reason = "held".to_owned();
        let durability = is_held.then_some(LogError::Unavailable { reason });
        self.node.log.refuse(Refusals { durability, ..Refusals::default() });
        self.is_log_held = is_held;
        if !is_held {
            let log = &self.node.system.pages().log;
            log.wait_durable(log.end_lsn()).unwrap();
            self.not_durable.clear();
        }
    }

    fn check(&self) -> Result<(), String> {
        let durable = self.node.system.order().durable();
        let chosen = self.deciding.iter().filter_map(|deciding| deciding.decision?);
        if let Some(cts) =
            self.not_durable.iter().copied().chain(chosen).find(|cts| *cts <= durable)
        {
            return Err(format!("{cts} is not durable, but the horizon is {durable}"));
        }
        for snapshot in &self.held {
            for (number, history) in self.rows.iter().enumerate() {
                let newest = history.iter().filter(|(cts, _)| *cts <= snapshot.cts());
                let expected = newest.max_by_key(|(cts, _)| *cts).and_then(|(_, row)| row.clone());
                match (self.look_up(snapshot, number)?, self.is_being_decided(number)) {
                    (Found::Row(row), false) if row == expected => {}
                    (Found::Row(row), is_being_decided) => {
                        let cts = snapshot.cts();
                        let state = if is_being_decided { "is being decided" } else { "differs" };
                        return Err(format!(
                            "key {number} at {cts} {state}: {row:?}, expected {expected:?}"
                        ));
                    }
                    (Found::Undecided, true) => {
                        self.reached.undecided.fetch_add(1, Ordering::Relaxed);
                    }
                    (Found::Undecided, false) => {
                        return Err(format!("key {number} is decided"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the newest version of a key is of a transaction that is COMMITTING: nobody may say
    /// then which version a snapshot sees.
    fn is_being_decided(&self, key: usize) -> bool {
        let Some((newest, _)) = self.newest_version(key) else { return false };
        let is_its = |one: &Deciding| one.decision.is_some() && one.prepared.trx == newest.trx;
        self.deciding.iter().any(is_its)
    }

    fn newest_version(&self, number: usize) -> Option<(RecordVersion, Vec<u8>)> {
        let tree = self.node.system.forest().tree(self.node.index);
        let key = key(number);
        let value = tree.read(Target::At(&key), |leaf| {
            Ok(leaf.search(&key).ok().map(|slot| leaf.value(slot).to_vec()))
        });
        let value = value.unwrap()?;
        let (version, payload) = RecordVersion::parse(&value).unwrap();
        Some((version, payload.to_vec()))
    }

    /// Walks the versions of a key back to the one that the peer's snapshot sees.
    fn look_up(&self, snapshot: &RemoteSnapshot, key: usize) -> Result<Found, String> {
        let Some((mut version, mut payload)) = self.newest_version(key) else {
            return Ok(Found::Row(None));
        };
        let mut older = Vec::new();
        loop {
            match ask(|| self.remote.sees(snapshot, version.trx)) {
                None => return Ok(Found::Undecided),
                Some(true) => return Ok(Found::Row((!version.deleted).then_some(payload))),
                Some(false) => {}
            }
            let versions = self.node.system.versions();
            let previous = versions.previous_version(version, &payload, &mut older);
            match previous.map_err(|error| error.to_string())? {
                None => return Ok(Found::Row(None)),
                Some(previous) => version = previous,
            }
            std::mem::swap(&mut payload, &mut older);
            self.reached.older_versions.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_peer_sees_the_versions_that_its_snapshots_see() {
    let mut all = [0; 4];
    for seed in 0..90 {
        let mut model = Model::new(seed, |peer| peer);
        model.run().unwrap_or_else(|difference| panic!("seed {seed}, {difference}"));
        let Reached { offloaded, undecided, older_versions, purged } = model.reached;
        for (sum, count) in all.iter_mut().zip([offloaded, undecided, older_versions, purged]) {
            *sum += count.into_inner();
        }
    }
    println!("offloaded, undecided, older versions, purged: {all:?}");
    assert!(all.iter().all(|count| *count > 50), "{all:?}");
}

#[test]
fn each_fault_is_found() {
    let run = |fault, seed| {
        let between = Faulty::new(fault);
        Model::new(seed, |peer| Arc::new(PeerBehind { peer, between })).run()
    };
    for fault in Fault::ALL {
        let found = (0..90).find_map(|seed| Some((seed, run(fault, seed).err()?)));
        let (seed, difference) = found.unwrap_or_else(|| panic!("{fault:?} is not found"));
        println!("{fault:?} is found with seed {seed}: {difference}");
    }
    for seed in 0..30 {
        let control = run(Fault::LateDurableCommits, seed);
        control.unwrap_or_else(|difference| panic!("seed {seed}, {difference}"));
    }
}

#[test]
fn a_peer_behind_a_network_that_fails_is_right_and_leaves_no_place_taken() {
    let mut failures = 0;
    for seed in 0..30 {
        let network = Unsteady::new(seed);
        let between = Arc::clone(&network) as _;
        let mut model = Model::new(seed, |peer| Arc::new(PeerBehind { peer, between }));
        model.run().unwrap_or_else(|difference| panic!("seed {seed}, {difference}"));
        model.held.clear();
        network.calm_down();
        drop(model.remote.open().unwrap().expect("a place is free"));
        assert_eq!(model.node.system.snapshots().open_count(), 0, "seed {seed}");
        failures += network.failures.load(Ordering::Relaxed);
    }
    assert!(failures > 500, "{failures} failures");
}
