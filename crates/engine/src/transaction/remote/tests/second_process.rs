//! An engine over shared memory, and a peer in a second process that has nothing but the engine's
//! regions. The engine's process writes into one more region what has committed.

use std::process::Child;

use firn_api::WriterEpoch;
use firn_base::Environment;
use firn_storage::local::{LocalOptions, LocalStorage};

use super::*;
use crate::engine::{Engine, EngineOptions, Storage};
use crate::test_support::{Oracle, create_tree};
use crate::transaction::{IsolationLevel, TransactionOptions};

/// Words: the newest transaction, the one to set to COMMITTING, its lowest timestamp; then for each
/// transaction its commit timestamp, or zero.
const HISTORY: &str = "history";
const NEWEST: usize = 0;
const PREPARED: usize = 1;
const LOWEST: usize = 2;
const FIRST: usize = 3;
const TRANSACTIONS: usize = 1 << 20;

/// Commits that the peer's snapshots must have seen, and as many that they must not.
const ENOUGH: usize = 3_000;
/// Snapshots that the peer opens at most.
const MOST_ROUNDS: usize = 100_000;

#[test]
#[ignore = "started by an_engine_over_shared_memory_has_peers_in_other_processes"]
fn engine_peer_process() {
    let path = std::env::var_os(SOCKET_VARIABLE).unwrap();
    let peer = SharedMemoryPeer::connect(path.as_ref(), PATIENCE, &ThreadSpawner).unwrap();
    let history = peer.connect(HISTORY).unwrap();
    let remote = RemoteTransactions::connect(Arc::new(peer)).unwrap();
    let word = |word: usize| {
        let mut found = [0];
        history.read(word, &mut found).unwrap();
        found[0]
    };
    let await_word = |number: usize| loop {
        match word(number) {
            0 => sleep(Duration::from_millis(1)),
            found => return found,
        }
    };
    // As a coordinator of two-phase commit.
    let prepared = TrxId(await_word(PREPARED));
    let lowest = remote.set_committing(prepared).unwrap().unwrap();
    history.write(LOWEST, &[lowest.0]).unwrap();
    let at = await_word(FIRST + prepared.0 as usize);
    assert!(at >= lowest.0);

    let (mut durable_lsn, mut seen, mut unseen) = (Lsn(0), 0, 0);
    for _ in 0..MOST_ROUNDS {
        if seen >= ENOUGH && unseen >= ENOUGH {
            return;
        }
        let snapshot = remote.open().unwrap().expect("a place is free");
        // Around the newest commit that the snapshot sees.
        let is_seen = |trx: u64| (1..=snapshot.cts().0).contains(&word(FIRST + trx as usize));
        let mut around = word(NEWEST);
        while around > 50 && !is_seen(around) {
            around -= 50;
        }
        for trx in around.saturating_sub(20).max(1)..around + 70 {
            // Read before the question, so that the commit has happened before it.
            let cts = Cts(word(FIRST + trx as usize));
            if cts == Cts(0) {
                continue;
            }
            let outcome = remote.outcome(TrxId(trx)).unwrap();
            let sees = remote.sees(&snapshot, TrxId(trx)).unwrap();
            assert_eq!(sees, Some(cts <= snapshot.cts()), "{trx}: {outcome:?}");
            if let Outcome::Committed(found, lsn) = outcome {
                assert_eq!(found, cts, "{trx}");
                assert!(cts > snapshot.cts() || remote.durable_lsn().unwrap() >= lsn, "{trx}");
            }
            match cts <= snapshot.cts() {
                true => seen += 1,
                false => unseen += 1,
            }
        }
        assert!(remote.horizon().unwrap() <= snapshot.cts(), "the horizon passed a snapshot");
        let now = remote.durable_lsn().unwrap();
        assert!(now >= durable_lsn);
        durable_lsn = now;
    }
    panic!("{seen} commits were seen, {unseen} not");
}

fn start_peer(path: &Path) -> Child {
    let name = "transaction::remote::tests::second_process::engine_peer_process";
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored"])
        .env(SOCKET_VARIABLE, path)
        .spawn()
        .unwrap()
}

#[test]
fn an_engine_over_shared_memory_has_peers_in_other_processes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fabric");
    let environment = Environment::system();
    let data = directory.path().join("data");
    let storage = LocalStorage::open(&environment, &data, LocalOptions::default()).unwrap();
    let fabric = SharedMemoryFabric::serve(&path, Epoch(1), &ThreadSpawner).unwrap();
    let history = fabric.register(HISTORY, FIRST + TRANSACTIONS).unwrap();
    let seams = Storage {
        log: storage.log.clone(),
        epoch: WriterEpoch::Next,
        pages: storage.pages.clone(),
        timestamps: Timestamps::Shared(Arc::new(Oracle::new(100))),
        fabric: Arc::new(fabric),
    };
    let transactions = TransactionOptions { table_slots: 16, ..Default::default() };
    let purge_interval = Duration::from_millis(1);
    let options = EngineOptions {
        buffer_pool_bytes: 4 << 20,
        transactions,
        purge_interval,
        ..Default::default()
    };
    let engine = Engine::open(&environment, seams, &options).unwrap();
    let index = create_tree(engine.forest());
    let words = history.words();
    let committed = |trx: TrxId| {
        let Outcome::Committed(cts, _) = engine.system().table().outcome(trx) else {
            panic!("{trx} has just committed")
        };
        words[FIRST + trx.0 as usize].store(cts.0, Ordering::SeqCst);
    };
    let write = |key: &[u8], payload: &[u8]| {
        let mut trx = engine.begin(IsolationLevel::ReadCommitted).unwrap();
        if !trx.update(index, key, payload).unwrap() {
            trx.insert(index, key, payload).unwrap();
        }
        words[NEWEST].store(trx.id().unwrap().0, Ordering::SeqCst);
        trx
    };
    let mut child = start_peer(&path);
    let prepared = write(b"prepared", b"row").prepare(b"xid", None).unwrap();
    words[PREPARED].store(prepared.trx.0, Ordering::SeqCst);
    while words[LOWEST].load(Ordering::SeqCst) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the peer has ended");
        sleep(Duration::from_millis(1));
    }
    let lowest = Cts(words[LOWEST].load(Ordering::SeqCst));
    engine.system().commit_prepared(b"xid", Some(lowest)).unwrap();
    committed(prepared.trx);
    let status = (0_u64..)
        .find_map(|number| {
            let trx = write(&[(number % 10) as u8], &number.to_be_bytes());
            let id = trx.id().unwrap();
            match number % 7 {
                0 => trx.rollback().unwrap(),
                1 => {
                    trx.commit().unwrap();
                    committed(id);
                }
                _ => {
                    trx.commit_without_waiting().unwrap();
                    committed(id);
                }
            }
            child.try_wait().unwrap()
        })
        .unwrap();
    assert!(status.success());
    engine.close().unwrap();
    storage.close();
}
