//! The workload and the checks against a toy store of known isolation, under the simulator.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use firn_base::Cts;
use firn_base::event::Event;
use firn_base::task::yield_now;
use parking_lot::Mutex;

use super::{Refused, Session, Workload, WorkloadOptions};
use crate::history::{Element, History, Isolation, Key, Recorder, Rejected, SessionId};
use crate::simulation::{Simulation, World};

/// The isolation of the toy store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Appends are visible at once, and a rollback undoes them.
    ReadUncommitted,
    /// Each read sees what has been committed; an append locks its list.
    ReadCommitted,
    /// Reads see a snapshot, but commits do not check for conflicts.
    SnapshotWithoutConflicts,
    /// Reads see a snapshot, the first committer wins.
    Snapshot,
    /// Like [`Level::Snapshot`], but the snapshot may be older than the last commit.
    StaleSnapshot,
    /// One transaction at a time.
    Serial,
}

type Versions = Vec<(Cts, Element)>;

#[derive(Default)]
struct Lists {
    lists: BTreeMap<Key, Versions>,
    clock: u64,
    busy: bool,
    /// The owner of each locked list.
    locks: BTreeMap<Key, SessionId>,
}

impl Lists {
    fn at(&self, key: Key, snapshot: Cts) -> Vec<Element> {
        let versions = self.lists.get(&key).into_iter().flatten();
        versions.filter(|(cts, _)| *cts <= snapshot).map(|(_, element)| *element).collect()
    }

    fn changed_after(&self, key: Key, snapshot: Cts) -> bool {
        self.lists.get(&key).and_then(|list| list.last()).is_some_and(|(cts, _)| *cts > snapshot)
    }
}

#[derive(Clone)]
struct Store {
    level: Level,
    lists: Arc<Mutex<Lists>>,
    idle: Arc<Event>,
}

struct Client {
    store: Store,
    id: SessionId,
    snapshot: Cts,
    written: Vec<(Key, Element)>,
}

impl Client {
    fn new(store: &Store, id: SessionId) -> Client {
        Client { store: store.clone(), id, snapshot: Cts(0), written: Vec::new() }
    }

    fn acquire(&self) {
        let store = &self.store;
        let take = || !std::mem::replace(&mut store.lists.lock().busy, true);
        store.idle.wait_until(None, take);
    }

    fn release(&self) {
        self.store.lists.lock().locks.retain(|_, owner| *owner != self.id);
        if self.store.level == Level::Serial {
            self.store.lists.lock().busy = false;
            self.store.idle.notify_all();
        }
    }

    fn install(&self) -> Result<Option<Cts>, Refused> {
        let mut lists = self.store.lists.lock();
        let careful = matches!(self.store.level, Level::Snapshot | Level::StaleSnapshot);
        let conflict = |(key, _): &(Key, Element)| lists.changed_after(*key, self.snapshot);
        if careful && self.written.iter().any(conflict) {
            return Err(Refused::Aborted);
        }
        if self.written.is_empty() || self.store.level == Level::ReadUncommitted {
            return Ok(None);
        }
        lists.clock += 1;
        let cts = Cts(lists.clock);
        for (key, element) in &self.written {
            lists.lists.entry(*key).or_default().push((cts, *element));
        }
        Ok(Some(cts))
    }
}

impl Session for Client {
    fn begin(&mut self) -> Result<Option<Cts>, Refused> {
        yield_now();
        if self.store.level == Level::Serial {
            self.acquire();
        }
        let clock = self.store.lists.lock().clock;
        let age = if self.store.level == Level::StaleSnapshot { 3 } else { 0 };
        self.snapshot = Cts(clock.saturating_sub(age));
        self.written.clear();
        let tells = matches!(self.store.level, Level::Snapshot | Level::Serial);
        Ok(tells.then_some(self.snapshot))
    }

    fn read(&mut self, key: Key) -> Result<Vec<Element>, Refused> {
        yield_now();
        let latest = matches!(self.store.level, Level::ReadUncommitted | Level::ReadCommitted);
        let snapshot = if latest { Cts::MAX } else { self.snapshot };
        let mut list = self.store.lists.lock().at(key, snapshot);
        if self.store.level != Level::ReadUncommitted {
            list.extend(self.written.iter().filter(|(k, _)| *k == key).map(|(_, element)| element));
        }
        Ok(list)
    }

    fn read_range(
        &mut self,
        keys: RangeInclusive<Key>,
    ) -> Result<Vec<(Key, Vec<Element>)>, Refused> {
        keys.map(|key| Ok((key, self.read(key)?))).collect()
    }

    fn append(&mut self, key: Key, element: Element) -> Result<(), Refused> {
        yield_now();
        if self.store.level == Level::ReadCommitted {
            let owner = *self.store.lists.lock().locks.entry(key).or_insert(self.id);
            if owner != self.id {
                self.release();
                return Err(Refused::Aborted);
            }
        }
        self.written.push((key, element));
        if self.store.level == Level::ReadUncommitted {
            let mut lists = self.store.lists.lock();
            lists.lists.entry(key).or_default().push((Cts(0), element));
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<Option<Cts>, Refused> {
        yield_now();
        let installed = self.install();
        self.release();
        installed
    }

    fn rollback(&mut self) {
        if self.store.level == Level::ReadUncommitted {
            let mut lists = self.store.lists.lock();
            for (key, element) in self.written.drain(..) {
                let list = lists.lists.entry(key).or_default();
                list.retain(|(_, other)| *other != element);
            }
        }
        self.release();
    }
}

fn record(world: &World, level: Level) -> History {
    let options = WorkloadOptions { keys: 3, appends_per_generation: 40, ..Default::default() };
    let workload = Workload::new(options, world.random());
    let store = Store { level, lists: Arc::default(), idle: Arc::default() };
    let recorder = Recorder::new();
    let clients: Vec<_> = (0..4)
        .map(|id| {
            let (workload, recorder, store) = (workload.clone(), recorder.clone(), store.clone());
            let mut client = Client::new(&store, id);
            world.spawn("client", move || workload.run(&mut client, id, 25, &recorder))
        })
        .collect();
    let committed: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert!(committed > 5, "{committed} of 100");
    workload.read_everything(&mut Client::new(&store, 0), 0, &recorder);
    recorder.history()
}

fn histories(level: Level) -> impl Iterator<Item = History> {
    (0..30).map(move |seed| Simulation::new(seed).run(move |world| record(world, level)))
}

#[track_caller]
fn always_holds(level: Level, claimed: Isolation) {
    for (seed, history) in histories(level).enumerate() {
        if let Err(rejected) = history.check(claimed) {
            panic!("seed {seed}: {rejected}");
        }
    }
}

#[track_caller]
fn is_found(level: Level, claimed: Isolation, kinds: &[&str]) {
    let mut missing = kinds.to_vec();
    for history in histories(level) {
        if let Err(rejected @ Rejected::Violated(_)) = history.check(claimed) {
            missing.retain(|kind| !rejected.kinds().contains(kind));
        }
    }
    assert!(missing.is_empty(), "{missing:?} were not found");
}

#[test]
fn one_at_a_time_is_strictly_serializable() {
    always_holds(Level::Serial, Isolation::StrictSerializable);
    assert!(histories(Level::Serial).all(|history| history.check_timestamps().is_ok()));
}

#[test]
fn snapshots_with_first_committer_wins_are_strong_snapshot_isolation_and_no_more() {
    always_holds(Level::Snapshot, Isolation::StrongSnapshotIsolation);
    assert!(histories(Level::Snapshot).all(|history| history.check_timestamps().is_ok()));
    is_found(Level::Snapshot, Isolation::Serializable, &["G2-item"]);
}

#[test]
fn stale_snapshots_are_snapshot_isolation_and_no_more() {
    always_holds(Level::StaleSnapshot, Isolation::SnapshotIsolation);
    let kinds = ["G-single-item-realtime"];
    is_found(Level::StaleSnapshot, Isolation::StrongSnapshotIsolation, &kinds);
}

#[test]
fn commits_that_do_not_look_for_conflicts_lose_updates() {
    let kinds = ["lost-update"];
    is_found(Level::SnapshotWithoutConflicts, Isolation::SnapshotIsolation, &kinds);
}

#[test]
fn reads_of_what_is_committed_are_read_committed_and_no_more() {
    always_holds(Level::ReadCommitted, Isolation::StrongReadCommitted);
    let kinds = ["internal", "G-single-item"];
    is_found(Level::ReadCommitted, Isolation::SnapshotIsolation, &kinds);
}

#[test]
fn reads_of_what_is_not_committed_are_not_even_that() {
    let kinds = ["G0", "G1a", "G1b", "G1c"];
    is_found(Level::ReadUncommitted, Isolation::ReadCommitted, &kinds);
}
