//! Log from the writer's memory: the log store brings nothing, or later.

use firn_api::rows::Awaited;
use firn_api::{Followed, LogError, LogFollower, OpenedLog};

use super::*;

/// A log store that sends nothing while its gate is closed.
struct GatedLog {
    store: Arc<dyn LogStore>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    is_closed: AtomicBool,
    /// A reader waits at the gate.
    is_waiting: AtomicBool,
}

struct GatedFollower {
    follower: Box<dyn LogFollower>,
    gate: Arc<Gate>,
}

/// Opens the gate, also after a failure: the replica's task must end.
struct OpensAtEnd<'a>(&'a Gate);

impl Drop for OpensAtEnd<'_> {
    fn drop(&mut self) {
        self.0.set_closed(false);
    }
}

impl Gate {
    fn set_closed(&self, is_closed: bool) {
        self.is_closed.store(is_closed, Ordering::SeqCst);
    }

    /// Waits until the replica's task is at the closed gate. From then on only reads apply log.
    fn wait_for_task(&self) {
        while !self.is_waiting.load(Ordering::SeqCst) {
            firn_base::task::sleep(Duration::from_millis(1));
        }
    }
}

impl LogStore for GatedLog {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        self.store.open(epoch)
    }

    fn durable_lsn(&self) -> Lsn {
        self.store.durable_lsn()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.store.truncated_lsn()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.store.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        let (follower, gate) = (self.store.follow(options)?, Arc::clone(&self.gate));
        Ok(Box::new(GatedFollower { follower, gate }))
    }
}

impl LogFollower for GatedFollower {
    fn next(&mut self, limit_bytes: usize, timeout: Duration) -> Result<Followed, LogError> {
        while self.gate.is_closed.load(Ordering::SeqCst) {
            self.gate.is_waiting.store(true, Ordering::SeqCst);
            firn_base::task::sleep(Duration::from_millis(1));
        }
        self.gate.is_waiting.store(false, Ordering::SeqCst);
        self.follower.next(limit_bytes, timeout)
    }

    fn position(&self) -> Lsn {
        self.follower.position()
    }

    fn skip_to(&mut self, lsn: Lsn) {
        self.follower.skip_to(lsn);
    }

    fn check(&self) -> Result<(), LogError> {
        self.follower.check()
    }

    fn release(&mut self, lsn: Lsn) {
        self.follower.release(lsn);
    }
}

fn gated(writer: &Writer, fault: Option<Fault>) -> (Replica, Arc<Gate>) {
    let gate = Arc::<Gate>::default();
    let log = GatedLog { store: writer.storage.log.clone(), gate: Arc::clone(&gate) };
    let options = ReplicaOptions { fault, ..ReplicaOptions::default() };
    (writer.open_replica_over(Arc::new(log), options).unwrap(), gate)
}

fn strong(writer: &Writer, patience: Duration) -> Awaited {
    let newest = writer.as_seen().newest().unwrap();
    Awaited { commits: newest.visible, position: newest.durable_lsn, patience }
}

/// A strong read that waits for all log.
fn catch_up(writer: &Writer, replica: &Replica, patience: Duration) -> Result<(), EngineError> {
    let until = firn_base::task::monotonic() + patience;
    replica.catch_up(strong(writer, patience), until, &AtomicBool::new(false))
}

#[test]
fn a_read_that_waits_applies_the_newest_log_itself() {
    let writer = Writer::with_tail(1 << 20);
    let table = writer.create("t");
    writer.insert(&table, 0..10, 1);
    let (replica, gate) = gated(&writer, None);
    let _opens = OpensAtEnd(&gate);
    gate.set_closed(true);
    gate.wait_for_task();
    for id in 10..60 {
        writer.insert(&table, id..id + 1, 1);
        catch_up(&writer, &replica, TIMEOUT).unwrap();
        assert_eq!(ids(&replica, table.id()).len() as i64, id + 1);
    }
    // Definitions come the same way.
    let other = writer.create("u");
    writer.insert(&other, 0..3, 1);
    catch_up(&writer, &replica, TIMEOUT).unwrap();
    assert_eq!(ids(&replica, other.id()).len(), 3);
    // And what a read meets by page.
    writer.insert(&table, 60..61, 1);
    let mut trx =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    trx.must_see(Some(replica.by_page().unwrap().behind(strong(&writer, TIMEOUT))));
    let there = replica.dictionary().table_for_read(&mut trx, table.id()).unwrap();
    assert_eq!(rows(&there, &mut trx, ScanOptions::all()).unwrap().len(), 61);
    drop(trx);
    // The log store brings the same log once more.
    gate.set_closed(false);
    writer.insert(&table, 61..62, 1);
    writer.wait_for(&replica);
    assert_eq!(ids(&replica, table.id()).len(), 62);
    replica.close();
    writer.close();
}

#[test]
fn log_that_was_overwritten_comes_from_the_log_store() {
    let writer = Writer::with_tail(4 << 10);
    let table = writer.create("t");
    writer.insert(&table, 0..10, 1);
    let (replica, gate) = gated(&writer, None);
    let _opens = OpensAtEnd(&gate);
    gate.set_closed(true);
    gate.wait_for_task();
    writer.insert(&table, 10..500, 1);
    let refused = catch_up(&writer, &replica, Duration::from_millis(50)).unwrap_err();
    assert_eq!(refused.mysql_code(), 1429, "{refused}");
    gate.set_closed(false);
    catch_up(&writer, &replica, TIMEOUT).unwrap();
    assert_eq!(ids(&replica, table.id()).len(), 500);
    // From here on there is enough in memory again.
    gate.set_closed(true);
    gate.wait_for_task();
    writer.insert(&table, 500..501, 1);
    catch_up(&writer, &replica, TIMEOUT).unwrap();
    assert_eq!(ids(&replica, table.id()).len(), 501);
    drop(_opens);
    replica.close();
    writer.close();
}

#[test]
fn the_task_takes_log_from_memory_too_and_none_is_held_for_it() {
    let writer = Writer::with_tail(1 << 20);
    let table = writer.create("t");
    let (replica, gate) = gated(&writer, None);
    let _opens = OpensAtEnd(&gate);
    gate.set_closed(true);
    gate.wait_for_task();
    // One read leads the task's way: its log comes from memory until the gate holds it up again.
    writer.insert(&table, 0..100, 1);
    gate.set_closed(false);
    writer.wait_for(&replica);
    for id in 100..300 {
        gate.set_closed(id % 2 == 0);
        writer.insert(&table, id..id + 1, 1);
    }
    gate.set_closed(false);
    writer.wait_for(&replica);
    assert_eq!(ids(&replica, table.id()).len(), 300);
    assert!(replica.failure().is_none());
    replica.close();
    writer.close();
}

#[test]
fn without_the_tail_the_log_store_is_waited_for() {
    let writer = Writer::with_tail(1 << 20);
    let table = writer.create("t");
    let (replica, gate) = gated(&writer, None);
    let _opens = OpensAtEnd(&gate);
    replica.use_log_tail(false);
    gate.set_closed(true);
    gate.wait_for_task();
    writer.insert(&table, 0..1, 1);
    assert!(catch_up(&writer, &replica, Duration::from_millis(50)).is_err());
    replica.use_log_tail(true);
    catch_up(&writer, &replica, TIMEOUT).unwrap();
    replica.use_log_tail(false);
    gate.set_closed(false);
    writer.insert(&table, 1..2, 1);
    catch_up(&writer, &replica, TIMEOUT).unwrap();
    assert_eq!(ids(&replica, table.id()).len(), 2);
    replica.close();
    writer.close();
}

#[test]
fn a_read_that_is_cancelled_or_out_of_time_applies_no_further() {
    let writer = Writer::with_tail(1 << 20);
    let table = writer.create("t");
    let (replica, gate) = gated(&writer, None);
    let _opens = OpensAtEnd(&gate);
    gate.set_closed(true);
    gate.wait_for_task();
    writer.insert(&table, 0..1, 1);
    // More than there will be.
    let awaited = Awaited { commits: Cts(u64::MAX), ..strong(&writer, TIMEOUT) };
    let awaited = Awaited { position: Lsn::MAX, ..awaited };
    let until = firn_base::task::monotonic() + Duration::from_millis(30);
    let late = replica.catch_up(awaited, until, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(late, EngineError::NotCaughtUp { .. }), "{late}");
    let until = firn_base::task::monotonic() + TIMEOUT;
    let cancelled = replica.catch_up(awaited, until, &AtomicBool::new(true)).unwrap_err();
    assert!(matches!(cancelled, EngineError::Lock(_)), "{cancelled}");
    // What they have applied is visible.
    assert_eq!(ids(&replica, table.id()).len(), 1);
    drop(_opens);
    replica.close();
    writer.close();
}

#[test]
fn a_read_that_fails_while_it_applies_stops_the_replica() {
    for fault in [Fault::ReadPanics, Fault::ReadFails] {
        let writer = Writer::with_tail(1 << 20);
        let table = writer.create("t");
        let (replica, gate) = gated(&writer, Some(fault));
        let _opens = OpensAtEnd(&gate);
        gate.set_closed(true);
        gate.wait_for_task();
        writer.insert(&table, 0..1, 1);
        let refused =
            std::thread::scope(|scope| scope.spawn(|| catch_up(&writer, &replica, TIMEOUT)).join());
        assert_eq!(refused.is_err(), fault == Fault::ReadPanics);
        assert!(replica.failure().is_some());
        // Nobody applies what was half applied.
        let refused = catch_up(&writer, &replica, TIMEOUT).unwrap_err();
        assert!(matches!(refused, EngineError::NotCaughtUp { .. }), "{refused}");
        assert_eq!(ids(&replica, table.id()).len(), 0);
        drop(_opens);
        replica.close();
        writer.close();
    }
}
