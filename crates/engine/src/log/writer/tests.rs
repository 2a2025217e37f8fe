//! Who writes, who waits and who is told, over a log store whose syncs a test holds up.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::thread::ThreadId;

use firn_base::{PageId, PageNo, SpaceId};
use firn_format::redo::GroupBuilder;

use super::*;

/// What the next sync does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Syncs,
    Fails,
    Panics,
}

/// A log store in memory.
struct GatedStore {
    written: AtomicU64,
    syncs_allowed: AtomicUsize,
    syncs_begun: AtomicUsize,
    changed: Event,
    behaviour: Mutex<Behaviour>,
    synced_by: Mutex<Vec<ThreadId>>,
}

impl GatedStore {
    fn new(syncs_allowed: usize) -> Arc<GatedStore> {
        Arc::new(GatedStore {
            written: AtomicU64::new(Lsn::FIRST.0),
            syncs_allowed: AtomicUsize::new(syncs_allowed),
            syncs_begun: AtomicUsize::new(0),
            changed: Event::new(),
            behaviour: Mutex::new(Behaviour::Syncs),
            synced_by: Mutex::default(),
        })
    }

    fn open_gate(&self) {
        self.allow(usize::MAX);
    }

    fn allow(&self, syncs: usize) {
        self.syncs_allowed.store(syncs, Ordering::SeqCst);
        self.changed.notify_all();
    }

    fn wait_for_sync(&self, number: usize) {
        self.changed.wait_until(None, || self.syncs_begun.load(Ordering::SeqCst) >= number);
    }
}

impl LogStore for GatedStore {
    fn append(&self, start: Lsn, groups: &[u8]) -> Result<(), LogError> {
        let end = start.0 + groups.len() as u64;
        let moved = self.written.compare_exchange(start.0, end, Ordering::SeqCst, Ordering::SeqCst);
        assert!(moved.is_ok(), "an append begins where the last one ended");
        Ok(())
    }

    fn sync(&self) -> Result<Lsn, LogError> {
        let covered = Lsn(self.written.load(Ordering::SeqCst));
        let number = self.syncs_begun.fetch_add(1, Ordering::SeqCst) + 1;
        self.changed.notify_all();
        self.changed.wait_until(None, || self.syncs_allowed.load(Ordering::SeqCst) >= number);
        self.synced_by.lock().push(std::thread::current().id());
        let behaviour = *self.behaviour.lock();
        match behaviour {
            Behaviour::Syncs => Ok(covered),
            Behaviour::Fails => {
                Err(LogError::Failed { place: "a disk".into(), reason: "it is broken".into() })
            }
            Behaviour::Panics => panic!("a sync that panics"),
        }
    }

    fn durable_lsn(&self) -> Lsn {
        Lsn::FIRST
    }

    fn truncated_lsn(&self) -> Lsn {
        Lsn::FIRST
    }

    fn read(&self, from: Lsn, _limit: usize, _into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        Ok(from)
    }

    fn is_room_low(&self) -> bool {
        false
    }
}

/// A log whose task waits, and comes by itself only after a minute.
fn start(store: &Arc<GatedStore>) -> Arc<RedoLog> {
    let log = RedoLog::start(
        &Environment::system(),
        Arc::clone(store) as Arc<dyn LogStore>,
        RedoLogOptions { idle_flush_ms: 60_000, ..RedoLogOptions::default() },
        Box::new(|_| {}),
    );
    while !log.work.is_awaited() {
        firn_base::task::yield_now();
    }
    log
}

fn append(log: &RedoLog) -> Lsn {
    let mut builder = GroupBuilder::new();
    builder.push(1, PageId::new(SpaceId(1), PageNo(1)), |body| body.extend([7; 20]));
    log.append(log.admit(64, Purpose::Completion).unwrap(), builder.finish()).end
}

/// Has `threads` threads append and wait while a sync of the store runs, which `release` then lets go on.
fn commit_behind_a_sync(
    log: &RedoLog,
    store: &GatedStore,
    threads: usize,
    release: impl FnOnce(),
) -> Vec<std::thread::Result<Result<(), LogError>>> {
    std::thread::scope(|scope| {
        let first = scope.spawn(|| log.wait_durable(append(log)));
        store.wait_for_sync(1);
        let (ready, is_ready) = mpsc::channel();
        let later = (0..threads).map(|_| {
            let ready = ready.clone();
            scope.spawn(move || {
                let lsn = append(log);
                ready.send(()).unwrap();
                log.wait_durable(lsn)
            })
        });
        let later: Vec<_> = later.collect();
        (0..threads).for_each(|_| is_ready.recv().unwrap());
        release();
        std::iter::once(first).chain(later).map(|thread| thread.join()).collect()
    })
}

#[test]
fn a_lone_committer_syncs_by_itself() {
    let store = GatedStore::new(usize::MAX);
    let log = start(&store);
    for _ in 0..3 {
        log.wait_durable(append(&log)).unwrap();
    }
    assert_eq!(*store.synced_by.lock(), [std::thread::current().id(); 3]);
    log.close().unwrap();
}

#[test]
fn those_who_come_during_a_sync_share_the_next_one() {
    let store = GatedStore::new(0);
    let log = start(&store);
    let outcomes = commit_behind_a_sync(&log, &store, 10, || store.open_gate());
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap().is_ok()));
    assert_eq!(log.sync_count(), 2);
    log.close().unwrap();
}

#[test]
fn completions_are_called_by_the_task_whoever_has_synced() {
    let store = GatedStore::new(0);
    let log = start(&store);
    let (sender, called_by) = mpsc::channel();
    let outcomes = commit_behind_a_sync(&log, &store, 2, || {
        let completion = move |_, outcome: Result<(), LogError>| {
            let name = std::thread::current().name().map(str::to_owned);
            sender.send((outcome.is_ok(), name)).unwrap();
        };
        log.when_durable(append(&log), Completion::new(Arc::new(completion), 0));
        store.open_gate();
    });
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap().is_ok()));
    assert_eq!(called_by.recv().unwrap(), (true, Some("log-writer".to_owned())));
    log.close().unwrap();
}

#[test]
fn a_failed_sync_is_told_to_everybody_and_nothing_is_written_after_it() {
    let store = GatedStore::new(0);
    *store.behaviour.lock() = Behaviour::Fails;
    let log = start(&store);
    let (sender, told) = mpsc::channel();
    let outcomes = commit_behind_a_sync(&log, &store, 5, || {
        let completion =
            move |_, outcome: Result<(), LogError>| sender.send(outcome.is_err()).unwrap();
        log.when_durable(append(&log), Completion::new(Arc::new(completion), 0));
        store.open_gate();
    });
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap().is_err()));
    assert!(told.recv().unwrap());
    assert!(log.admit(64, Purpose::Completion).is_err());
    assert!(log.close().is_err());
    assert_eq!(store.synced_by.lock().len(), 1);
}

#[test]
fn a_writer_that_dies_stops_the_log() {
    let store = GatedStore::new(0);
    *store.behaviour.lock() = Behaviour::Panics;
    let log = start(&store);
    let mut outcomes = commit_behind_a_sync(&log, &store, 5, || store.open_gate()).into_iter();
    assert!(outcomes.next().unwrap().is_err(), "the panic ends the thread that wrote");
    assert!(outcomes.all(|outcome| outcome.unwrap().is_err()));
    assert!(log.failure().is_some());
    assert_eq!(store.synced_by.lock().len(), 1);
}

#[test]
fn a_closed_log_has_written_everything_and_takes_no_more() {
    let store = GatedStore::new(usize::MAX);
    let log = start(&store);
    let end = append(&log);
    log.close().unwrap();
    assert_eq!(log.durable_lsn(), end);
    assert!(log.admit(64, Purpose::Completion).is_err());
    let (sender, told) = mpsc::channel();
    let completion = move |token, outcome| sender.send((token, outcome)).unwrap();
    log.when_durable(end.advance(64), Completion::new(Arc::new(completion), 7));
    assert!(matches!(told.recv().unwrap(), (7, Err(_))));
}

#[test]
fn completions_are_called_when_the_next_group_has_been_written() {
    let store = GatedStore::new(0);
    let log = start(&store);
    let (tell, told) = mpsc::channel();
    let hand_over = |lsn| {
        let (store, tell) = (Arc::clone(&store), tell.clone());
        let completion = move |_, outcome: Result<(), LogError>| {
            outcome.unwrap();
            tell.send(Lsn(store.written.load(Ordering::SeqCst))).unwrap();
        };
        log.when_durable(lsn, Completion::new(Arc::new(completion), 0));
    };
    hand_over(append(&log));
    store.wait_for_sync(1);
    let next = append(&log);
    hand_over(next);
    store.allow(1);
    store.wait_for_sync(2);
    assert_eq!(told.recv(), Ok(next));
    assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Empty));
    store.open_gate();
    assert_eq!(told.recv(), Ok(next));
    log.close().unwrap();
}
