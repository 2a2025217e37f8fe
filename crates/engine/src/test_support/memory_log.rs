//! A log in memory. A group is durable as soon as it was taken, and nothing is ever lost. A thread
//! takes the groups that no committer waits for.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_api::log_store::conformance::KeptLog;
use firn_api::{
    FollowOptions, LogEpoch, LogError, LogFollower, LogSource, LogStore, LogWriter, OpenedLog,
    Room, Tail, WriterEpoch,
};
use firn_base::event::Event;
use firn_base::{Environment, Lsn};
use firn_format::redo::GroupDamage;
use firn_storage::follower::{FollowedLog, Follower};
use firn_storage::leases::Leases;
use parking_lot::Mutex;

thread_local! {
    /// The room that [`MemoryLog`] reports to this thread.
    pub(crate) static ROOM: Cell<Room> = const { Cell::new(Room::Plenty) };
}

/// A log in memory; see the module documentation.
#[derive(Default, Clone)]
pub(crate) struct MemoryLog {
    stream: Arc<Stream>,
}

/// What the log refuses, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals {
    /// The reply to a request for room.
    pub(crate) room: Option<LogError>,
    /// The reply to a committer that waits. Meanwhile nothing becomes durable.
    pub(crate) durability: Option<LogError>,
}

struct Stream {
    kept: Mutex<KeptLog>,
    refusals: Mutex<Refusals>,
    durable: AtomicU64,
    advanced: Event,
    epoch: AtomicU64,
    leases: Leases,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            kept: Mutex::default(),
            refusals: Mutex::default(),
            durable: AtomicU64::new(Lsn::FIRST.0),
            advanced: Event::new(),
            epoch: AtomicU64::new(0),
            leases: Leases::new(Lsn::FIRST),
        }
    }
}

impl FollowedLog for Stream {
    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    fn advanced(&self) -> &Event {
        &self.advanced
    }

    fn is_closed(&self) -> Result<bool, LogError> {
        Ok(false)
    }

    fn leases(&self) -> &Leases {
        &self.leases
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.kept.lock().read(from, self.durable(), limit_bytes, into)
    }

    fn damaged(&self, at: Lsn, damage: &GroupDamage) -> LogError {
        LogError::Damaged { at: format!("log position {at}"), what: damage.to_string() }
    }
}

impl MemoryLog {
    /// From now on refuses these, until it is called again.
    pub(crate) fn refuse(&self, refusals: Refusals) {
        // A round that is under way ends first.
        let _kept = self.stream.kept.lock();
        *self.stream.refusals.lock() = refusals;
    }

    /// Only readers still need log before `lsn`.
    pub(crate) fn let_go(&self, lsn: Lsn) {
        let floor = self.stream.leases.raise_floor(lsn, self.stream.durable());
        self.stream.kept.lock().truncate(floor);
    }
}

impl LogStore for MemoryLog {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        let kept = self.stream.kept.lock();
        let by = self.stream.epoch.load(Ordering::SeqCst);
        let epoch = match epoch {
            WriterEpoch::Next => LogEpoch(by + 1),
            WriterEpoch::Exactly(epoch) if epoch.0 > by => epoch,
            WriterEpoch::Exactly(_) => return Err(LogError::Fenced { by: LogEpoch(by) }),
        };
        self.stream.epoch.store(epoch.0, Ordering::SeqCst);
        let tail = Tail { epoch, end: kept.end(), watermarks: kept.watermarks() };
        let stream = Arc::clone(&self.stream);
        Ok(OpenedLog::new(tail, move |source| {
            let is_closed = AtomicBool::new(false);
            let writer = Arc::new(Writer { stream, epoch, source, is_closed });
            let own = Arc::downgrade(&writer);
            let body = Box::new(move || take_again_and_again(&own));
            drop(Environment::system().spawner.spawn("memory-log", body));
            Box::new(WriterHandle(writer))
        }))
    }

    fn durable_lsn(&self) -> Lsn {
        self.stream.durable()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.stream.kept.lock().from()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        FollowedLog::read(&*self.stream, from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        Ok(Box::new(Follower::new(Arc::clone(&self.stream), options)?))
    }
}

struct Writer {
    stream: Arc<Stream>,
    epoch: LogEpoch,
    source: Arc<dyn LogSource>,
    is_closed: AtomicBool,
}

impl Writer {
    fn check(&self) -> Result<(), LogError> {
        let by = LogEpoch(self.stream.epoch.load(Ordering::SeqCst));
        if by != self.epoch {
            return Err(LogError::Fenced { by });
        }
        if self.is_closed.load(Ordering::SeqCst) {
            let reason = "it is closed".to_owned();
            return Err(LogError::Failed { place: "memory".to_owned(), reason });
        }
        Ok(())
    }

    /// Takes the complete groups.
    fn take(&self) -> Result<Lsn, LogError> {
        let mut kept = self.stream.kept.lock();
        self.check()?;
        let before = kept.end();
        if self.stream.refusals.lock().durability.is_some() {
            return Ok(before);
        }
        self.source.take(kept.bytes_mut(), usize::MAX);
        let durable = kept.end();
        if durable > before {
            self.source.advance(durable);
            self.stream.durable.store(durable.0, Ordering::SeqCst);
            self.stream.advanced.notify_all();
        }
        Ok(durable)
    }
}

/// The engine's handle of the writer. When it is dropped, the thread ends.
struct WriterHandle(Arc<Writer>);

impl LogWriter for WriterHandle {
    fn submit(&self, _lsn: Lsn) {
        // If the log has ended, the thread reports it.
        let _ = self.0.take();
    }

    fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        if let Some(refusal) = self.0.stream.refusals.lock().durability.clone() {
            return Err(refusal);
        }
        while self.0.take()? < lsn {
            firn_base::task::yield_now();
        }
        Ok(())
    }

    fn room(&self) -> Result<Room, LogError> {
        match self.0.stream.refusals.lock().room.clone() {
            Some(refusal) => Err(refusal),
            None => self.0.check().map(|()| ROOM.get()),
        }
    }

    fn failure(&self) -> Option<LogError> {
        self.0.check().err()
    }

    fn close(&self) {
        let _ = self.0.take();
        self.0.is_closed.store(true, Ordering::SeqCst);
    }
}

fn take_again_and_again(writer: &Weak<Writer>) {
    while let Some(writer) = writer.upgrade() {
        match writer.take() {
            Ok(durable) => writer.source.tell(Ok(durable)),
            Err(error) => return writer.source.tell(Err(&error)),
        }
        drop(writer);
        firn_base::task::sleep(Duration::from_millis(1));
    }
}

mod tests {
    use firn_api::log_store::conformance::{CASES, Life, Lives, Node};

    use super::*;

    struct Process<'a> {
        environment: Environment,
        log: &'a Arc<MemoryLog>,
    }

    impl Node for Process<'_> {
        fn environment(&self) -> &Environment {
            &self.environment
        }

        fn store(&self) -> Arc<dyn LogStore> {
            Arc::clone(self.log) as _
        }

        fn other_store(&self) -> Arc<dyn LogStore> {
            self.store()
        }

        fn let_go(&self, lsn: Lsn) {
            self.log.let_go(lsn);
        }
    }

    /// A log that keeps its content from one run of the engine to the next.
    #[derive(Default)]
    struct Lasting(Arc<MemoryLog>);

    impl Lives for Lasting {
        fn live(&self, life: Life) {
            life(&Process { environment: Environment::system(), log: &self.0 });
        }
    }

    #[test]
    fn the_log_in_memory_conforms() {
        for case in CASES {
            eprintln!("{}", case.name);
            (case.run)(&Lasting::default());
        }
    }
}
