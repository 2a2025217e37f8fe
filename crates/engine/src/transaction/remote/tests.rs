mod between;
mod engine_model;
mod second_process;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_api::Timestamps;
use firn_base::Lsn;
use firn_base::random::{RandomSource, SplitMix};
use firn_base::task::{ThreadSpawner, sleep};
use firn_fabric::{
    Epoch, Fabric, InProcessFabric, OwnedRegion, SharedMemoryFabric, SharedMemoryPeer,
};

use super::*;
use crate::sync::Ordering;
use crate::transaction::commit_order::{CommitOrder, REGION_WORDS};
use crate::transaction::snapshots::{SnapshotSlot, Snapshots};
use crate::transaction::table::TransactionTable;

const PATIENCE: Duration = Duration::from_secs(60);
const SOCKET_VARIABLE: &str = "FIRN_TEST_FABRIC";

/// The regions of an owner, without the rest of an engine.
struct Owner {
    table: TransactionTable,
    order: CommitOrder,
    snapshots: Snapshots,
}

impl Owner {
    fn new(fabric: Arc<dyn Fabric>, slots: usize) -> Owner {
        let register = |name, words| -> OwnedRegion { fabric.register(name, words).unwrap() };
        let order = CommitOrder::new(
            register(commit_order::REGION, REGION_WORDS),
            Cts(0),
            &Timestamps::Local,
        )
        .expect("local timestamps");
        let places = register(snapshots::REGION, Snapshots::region_words(8));
        drop(register(DURABLE_REGION, 1));
        let snapshots = Snapshots::new(places, Cts(0));
        Owner { table: TransactionTable::register(fabric, slots).unwrap(), order, snapshots }
    }

    fn begin(&self, trx: TrxId) {
        self.table.begin(trx, self.snapshots.horizon()).unwrap();
    }

    fn commit(&self, trx: TrxId) -> Cts {
        let ticket = self.order.allocate();
        self.table.commit(trx, ticket.cts(), Lsn(8 * ticket.cts().0));
        self.order.publish(ticket);
        ticket.cts()
    }

    /// The work of the background task when the log is durable up to `cts`.
    fn purge(&self, cts: Cts) {
        self.order.publish_durable(cts);
        let horizon = self.snapshots.advance_horizon(cts);
        self.table.recycle(horizon);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Active,
    Committed(Cts),
    RolledBack,
}

/// An owner, a peer, and the expected outcomes.
struct Model {
    owner: Owner,
    remote: RemoteTransactions,
    random: SplitMix,
    fates: BTreeMap<TrxId, Fate>,
    durable: Cts,
    held: Vec<RemoteSnapshot>,
    own: Vec<(SnapshotSlot, Cts)>,
}

impl Model {
    fn new(seed: u64) -> Model {
        let fabric = Arc::new(InProcessFabric::new(Epoch(1)));
        let owner = Owner::new(Arc::clone(&fabric) as _, 4);
        let peer = fabric.peer();
        // The epoch lasts as long as the model: the owner's table keeps its fabric alive.
        let remote = RemoteTransactions::connect(peer).unwrap();
        Model {
            owner,
            remote,
            random: SplitMix::new(seed),
            fates: BTreeMap::new(),
            durable: Cts(0),
            held: Vec::new(),
            own: Vec::new(),
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.next_u64() as usize % bound
    }

    /// One of the active transactions.
    fn pick_active(&self) -> Option<TrxId> {
        let active: Vec<_> = self
            .fates
            .iter()
            .filter(|(_, fate)| **fate == Fate::Active)
            .map(|(id, _)| *id)
            .collect();
        (!active.is_empty()).then(|| active[self.below(active.len())])
    }

    fn step(&mut self) {
        match self.below(9) {
            0..=2 => {
                let trx = TrxId(self.fates.len() as u64 + 1);
                self.owner.begin(trx);
                self.fates.insert(trx, Fate::Active);
            }
            3 | 4 => {
                if let Some(trx) = self.pick_active() {
                    let cts = self.owner.commit(trx);
                    self.fates.insert(trx, Fate::Committed(cts));
                }
            }
            5 => {
                if let Some(trx) = self.pick_active() {
                    self.owner.table.remove(trx);
                    self.fates.insert(trx, Fate::RolledBack);
                }
            }
            6 => {
                let newer = self.owner.order.max_committed().0 - self.durable.0;
                self.durable.0 += self.random.next_u64() % (newer + 1);
                self.owner.purge(self.durable);
            }
            7 => match self.below(2) {
                0 => self.held.extend(self.remote.open().unwrap()),
                _ => self.open_own(),
            },
            _ => match self.below(2) {
                0 if !self.held.is_empty() => {
                    drop(self.held.swap_remove(self.below(self.held.len())))
                }
                _ if !self.own.is_empty() => {
                    let (slot, _) = self.own.swap_remove(self.below(self.own.len()));
                    self.owner.snapshots.give_back(slot);
                }
                _ => {}
            },
        }
    }

    fn open_own(&mut self) {
        if let Ok(slot) = self.owner.snapshots.take() {
            let cts = self.owner.snapshots.open(&slot, || self.owner.order.max_committed());
            self.own.push((slot, cts));
        }
    }

    fn check(&self) {
        let horizon = self.remote.horizon().unwrap();
        assert!(horizon <= self.remote.durable_commits().unwrap());
        let open = self.held.iter().map(RemoteSnapshot::cts);
        assert!(open.chain(self.own.iter().map(|(_, cts)| *cts)).all(|cts| horizon <= cts));
        for (trx, fate) in &self.fates {
            let outcome = self.remote.outcome(*trx).unwrap();
            assert_eq!(outcome, self.owner.table.outcome(*trx), "{trx}");
            match *fate {
                Fate::Active => assert_eq!(outcome, Outcome::Active, "{trx}"),
                Fate::RolledBack => assert_eq!(outcome, Outcome::Settled, "{trx}"),
                Fate::Committed(cts) => match outcome {
                    Outcome::Committed(found, lsn) => {
                        assert_eq!((found, lsn), (cts, Lsn(8 * cts.0)), "{trx}");
                    }
                    _ => {
                        assert!(outcome == Outcome::Settled && cts <= horizon, "{trx} {outcome:?}")
                    }
                },
            }
            let Fate::Committed(cts) = *fate else { continue };
            for snapshot in &self.held {
                let sees = self.remote.sees(snapshot, *trx).unwrap();
                assert_eq!(sees, Some(cts <= snapshot.cts()), "{trx}, {cts}");
            }
        }
    }
}

#[test]
fn a_peer_decides_what_the_owner_decides() {
    let mut most_offloaded = 0;
    for seed in 0..200 {
        let mut model = Model::new(seed);
        for _ in 0..150 {
            model.step();
            model.check();
        }
        most_offloaded = most_offloaded.max(model.owner.table.offload_counts().1);
    }
    assert!(most_offloaded > 10, "the overflow was used");
}

#[test]
fn peers_have_places_of_their_own_that_run_out_and_come_back() {
    let fabric = Arc::new(InProcessFabric::new(Epoch(1)));
    let owner = Owner::new(Arc::clone(&fabric) as _, 4);
    let remote = RemoteTransactions::connect(fabric.peer()).unwrap();
    let open: Vec<_> = std::iter::from_fn(|| remote.open().unwrap()).collect();
    assert_eq!(open.len(), snapshots::PEER_PLACES);
    owner.commit_next(1);
    owner.purge(Cts(1));
    assert_eq!(remote.horizon().unwrap(), Cts(0), "peers hold it");
    drop(open);
    owner.purge(Cts(1));
    assert_eq!(remote.horizon().unwrap(), Cts(1));
    std::mem::forget(remote.open().unwrap().unwrap());
    owner.commit_next(2);
    owner.purge(Cts(2));
    assert_eq!(remote.horizon().unwrap(), Cts(1), "a peer that died holds it still");
    owner.snapshots.forget_peer(0);
    owner.purge(Cts(2));
    assert_eq!(remote.horizon().unwrap(), Cts(2));
}

impl Owner {
    /// Transaction `number` of a history in which every seventh one rolls back.
    fn commit_next(&self, number: u64) {
        self.begin(TrxId(number));
        match committed_at(number) {
            Some(cts) => assert_eq!(self.commit(TrxId(number)), cts),
            None => self.table.remove(TrxId(number)),
        }
    }

    /// Commits one transaction after the other, and purges up to the horizon, until `is_done`.
    fn commit_until(&self, is_done: &dyn Fn() -> bool) {
        for number in 1.. {
            self.commit_next(number);
            if number % 16 == 0 {
                self.purge(Cts(self.order.max_committed().0.saturating_sub(5)));
                if is_done() {
                    return;
                }
            }
        }
    }
}

/// The timestamp of transaction `number` of that history.
fn committed_at(number: u64) -> Option<Cts> {
    (!number.is_multiple_of(7)).then(|| Cts(number - number / 7))
}

/// Opens snapshots at an owner that commits, and looks up transactions around each.
fn check_against(remote: &RemoteTransactions, rounds: usize) {
    for _ in 0..rounds {
        let snapshot = remote.open().unwrap().expect("a place is free");
        let newest = snapshot.cts().0 + snapshot.cts().0 / 6;
        for number in newest.saturating_sub(20).max(1)..newest + 20 {
            let Some(cts) = committed_at(number) else { continue };
            // A transaction that has not begun is not in the table, like one that every snapshot
            // sees.
            if cts > snapshot.cts() && remote.durable_commits().unwrap() < cts {
                continue;
            }
            let sees = remote.sees(&snapshot, TrxId(number)).unwrap();
            assert_eq!(sees, Some(cts <= snapshot.cts()), "{number} of {}", snapshot.cts());
        }
        assert!(remote.horizon().unwrap() <= snapshot.cts(), "the horizon passed a snapshot");
    }
}

#[test]
fn a_peer_is_right_while_the_owner_commits_and_purges() {
    let fabric = Arc::new(InProcessFabric::new(Epoch(1)));
    let owner = Owner::new(Arc::clone(&fabric) as _, 8);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let peers: Vec<_> = (0..2)
            .map(|_| {
                let remote = RemoteTransactions::connect(fabric.peer()).unwrap();
                scope.spawn(move || check_against(&remote, 2_000))
            })
            .collect();
        scope.spawn(|| owner.commit_until(&|| done.load(Ordering::Relaxed)));
        let ended: Vec<_> = peers.into_iter().map(|peer| peer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.into_iter().all(|ended| ended.is_ok()));
    });
}

fn connect(path: &Path) -> RemoteTransactions {
    let peer = SharedMemoryPeer::connect(path, PATIENCE, &ThreadSpawner).unwrap();
    RemoteTransactions::connect(Arc::new(peer)).unwrap()
}

/// The peer's process of the test below, which starts this test as a second process.
#[test]
#[ignore = "started by a_peer_in_another_process_is_right"]
fn peer_process() {
    let path = std::env::var_os(SOCKET_VARIABLE).unwrap();
    let remote = connect(path.as_ref());
    while remote.durable_commits().unwrap() < Cts(100) {
        sleep(Duration::from_millis(1));
    }
    check_against(&remote, 2_000);
}

#[test]
fn a_peer_in_another_process_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fabric");
    let fabric = SharedMemoryFabric::serve(&path, Epoch(1), &ThreadSpawner).unwrap();
    let owner = Owner::new(Arc::new(fabric), 8);
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "transaction::remote::tests::peer_process", "--ignored"])
        .env(SOCKET_VARIABLE, &path)
        .spawn();
    let (child, ended) = (RefCell::new(child.unwrap()), Cell::new(None));
    owner.commit_until(&|| {
        ended.set(child.borrow_mut().try_wait().unwrap());
        ended.get().is_some()
    });
    assert!(ended.get().is_some_and(|status| status.success()));
}
