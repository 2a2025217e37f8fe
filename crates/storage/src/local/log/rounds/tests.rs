//! Which thread writes, waits and is informed, over files whose syncs a test can hold up.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::ThreadId;

use super::*;

/// The outcome of the next sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Syncs,
    Fails,
    Panics,
}

/// Files in memory that keep nothing but the end.
struct GatedFiles {
    written: AtomicU64,
    syncs_allowed: AtomicUsize,
    syncs_begun: AtomicUsize,
    changed: Event,
    behaviour: Mutex<Behaviour>,
    synced_by: Mutex<Vec<ThreadId>>,
}

impl GatedFiles {
    fn new(syncs_allowed: usize) -> Arc<GatedFiles> {
        Arc::new(GatedFiles {
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

impl RoundFiles for GatedFiles {
    fn append(&self, _epoch: LogEpoch, start: Lsn, groups: &[u8]) -> Result<(), LogError> {
        let end = start.0 + groups.len() as u64;
        let moved = self.written.compare_exchange(start.0, end, Ordering::SeqCst, Ordering::SeqCst);
        assert!(moved.is_ok(), "an append begins where the last one ended");
        Ok(())
    }

    fn begin_sync(&self) {}

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

    fn room(&self) -> Room {
        Room::Plenty
    }
}

/// A report to the source: the durable position, the end of the written log at that time, the
/// thread.
type Told = (Option<Lsn>, Lsn, Option<String>);

/// Appended bytes, all of complete groups.
struct Appended {
    files: Arc<GatedFiles>,
    taken_and_end: Mutex<(Lsn, Lsn)>,
    durable: AtomicU64,
    tell: Mutex<Sender<Told>>,
}

impl LogSource for Appended {
    fn take(&self, into: &mut Vec<u8>, _limit_bytes: usize) -> Lsn {
        let (taken, end) = &mut *self.taken_and_end.lock();
        let start = std::mem::replace(taken, *end);
        into.resize(into.len() + end.since(start) as usize, 0);
        start
    }

    fn advance(&self, durable: Lsn) {
        self.durable.store(durable.0, Ordering::SeqCst);
    }

    fn tell(&self, outcome: Result<Lsn, &LogError>) {
        let written = Lsn(self.files.written.load(Ordering::SeqCst));
        let name = std::thread::current().name().map(str::to_owned);
        // A test that does not listen has dropped the receiver.
        let _ = self.tell.lock().send((outcome.ok(), written, name));
    }
}

/// A writer whose own task only runs after a minute.
struct Log {
    writer: RoundWriter,
    source: Arc<Appended>,
    told: Receiver<Told>,
}

impl Log {
    fn start(files: &Arc<GatedFiles>) -> Log {
        let (tell, told) = mpsc::channel();
        let source = Arc::new(Appended {
            files: Arc::clone(files),
            taken_and_end: Mutex::new((Lsn::FIRST, Lsn::FIRST)),
            durable: AtomicU64::new(Lsn::FIRST.0),
            tell: Mutex::new(tell),
        });
        let writer = RoundWriter::start(
            &Environment::system(),
            Arc::clone(files) as Arc<dyn RoundFiles>,
            (LogEpoch(1), Lsn::FIRST),
            Arc::clone(&source) as Arc<dyn LogSource>,
            Duration::from_secs(60),
        );
        while !writer.rounds.work.is_awaited() {
            firn_base::task::yield_now();
        }
        Log { writer, source, told }
    }

    fn append(&self) -> Lsn {
        let (_, end) = &mut *self.source.taken_and_end.lock();
        *end = end.advance(64);
        *end
    }

    fn commit(&self) -> Result<(), LogError> {
        let lsn = self.append();
        let outcome = self.writer.wait_durable(lsn);
        let durable = self.source.durable.load(Ordering::SeqCst);
        assert!(outcome.is_err() || durable >= lsn.0, "the source hears of it first");
        outcome
    }

    fn durable(&self) -> Lsn {
        self.writer.rounds.role.durable()
    }

    /// The first report beyond `lsn`, or that the log has failed.
    fn hear_beyond(&self, lsn: Lsn) -> Told {
        loop {
            let told = self.told.recv().expect("the writer is there");
            if told.0.is_none_or(|durable| durable > lsn) {
                return told;
            }
        }
    }
}

/// Lets `threads` threads append and wait while a sync runs; `release` then lets the sync finish.
fn commit_behind_a_sync(
    log: &Log,
    files: &GatedFiles,
    threads: usize,
    release: impl FnOnce(),
) -> Vec<std::thread::Result<Result<(), LogError>>> {
    let writer = &log.writer;
    let source = &log.source;
    std::thread::scope(|scope| {
        let append = || {
            let (_, end) = &mut *source.taken_and_end.lock();
            *end = end.advance(64);
            *end
        };
        let first = scope.spawn(move || writer.wait_durable(append()));
        files.wait_for_sync(1);
        let (ready, is_ready) = mpsc::channel();
        let later = (0..threads).map(|_| {
            let ready = ready.clone();
            scope.spawn(move || {
                let lsn = append();
                ready.send(()).unwrap();
                writer.wait_durable(lsn)
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
    let files = GatedFiles::new(usize::MAX);
    let log = Log::start(&files);
    for _ in 0..3 {
        log.commit().unwrap();
    }
    assert_eq!(*files.synced_by.lock(), [std::thread::current().id(); 3]);
    log.writer.close();
}

#[test]
fn those_who_come_during_a_sync_share_the_next_one() {
    let files = GatedFiles::new(0);
    let log = Log::start(&files);
    let outcomes = commit_behind_a_sync(&log, &files, 10, || files.open_gate());
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap().is_ok()));
    assert_eq!(files.syncs_begun.load(Ordering::SeqCst), 2);
    log.writer.close();
}

#[test]
fn the_source_is_told_by_the_task_whoever_has_synced() {
    let files = GatedFiles::new(0);
    let log = Log::start(&files);
    let outcomes = commit_behind_a_sync(&log, &files, 2, || {
        log.writer.submit(log.append());
        files.open_gate();
    });
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap().is_ok()));
    let (durable, _, name) = log.hear_beyond(Lsn::FIRST.advance(64));
    assert_eq!((durable, name.as_deref()), (Some(Lsn::FIRST.advance(256)), Some("log-writer")));
    log.writer.close();
}

#[test]
fn a_failed_sync_is_told_to_everybody_and_nothing_is_written_after_it() {
    let files = GatedFiles::new(0);
    *files.behaviour.lock() = Behaviour::Fails;
    let log = Log::start(&files);
    let outcomes = commit_behind_a_sync(&log, &files, 5, || {
        log.writer.submit(log.append());
        files.open_gate();
    });
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap().is_err()));
    assert_eq!(log.hear_beyond(Lsn::FIRST).0, None);
    assert!(log.writer.room().is_err());
    log.writer.close();
    assert_eq!(files.synced_by.lock().len(), 1);
}

#[test]
fn a_holder_that_dies_stops_the_log() {
    let files = GatedFiles::new(0);
    *files.behaviour.lock() = Behaviour::Panics;
    let log = Log::start(&files);
    let mut outcomes = commit_behind_a_sync(&log, &files, 5, || files.open_gate()).into_iter();
    assert!(outcomes.next().unwrap().is_err(), "the panic ends the thread that wrote");
    assert!(outcomes.all(|outcome| outcome.unwrap().is_err()));
    assert!(log.writer.failure().is_some());
    assert_eq!(files.synced_by.lock().len(), 1);
}

#[test]
fn a_closed_writer_has_written_everything_and_takes_no_more() {
    let files = GatedFiles::new(usize::MAX);
    let log = Log::start(&files);
    let end = log.append();
    log.writer.close();
    assert_eq!(log.durable(), end);
    assert!(log.writer.room().is_err());
    assert!(log.commit().is_err());
    assert_eq!(log.hear_beyond(end).0, None);
}

#[test]
fn the_source_is_told_when_the_next_group_has_been_written() {
    let files = GatedFiles::new(0);
    let log = Log::start(&files);
    let first = log.append();
    log.writer.submit(first);
    files.wait_for_sync(1);
    let next = log.append();
    log.writer.submit(next);
    files.allow(1);
    files.wait_for_sync(2);
    let (durable, written, _) = log.hear_beyond(Lsn::FIRST);
    assert_eq!((durable, written), (Some(first), next));
    files.open_gate();
    assert_eq!(log.hear_beyond(first).0, Some(next));
    log.writer.close();
}
