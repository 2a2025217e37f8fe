//! The serving end: the readers' half of a [`LogStore`] for the clients of a link.

mod readers;
mod registry;
mod saving;
mod stream;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use firn_api::{LogError, LogStore};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use firn_link::{
    FIRST_SERVICE_CODE, Offer, Peer, Placement, Request as LinkRequest, RequestKind, Responder,
    Service,
};
use parking_lot::Mutex;

use self::readers::Readers;
use self::registry::Registry;
pub use self::registry::check_any_bytes;
use self::saving::Saving;
use crate::LOG_SERVICE;
use crate::message::{Failure, FollowRequest, HeldReader, Positions, Reply, Request};

/// The service does not understand a request, or has no room for it.
pub const REFUSED: u16 = FIRST_SERVICE_CODE;

/// Says where the log is written, if that is known.
pub type LeaderHint = Arc<dyn Fn() -> Option<String> + Send + Sync>;

#[derive(Clone)]
pub struct LogServiceOptions {
    /// A client that has not renewed its readers for this long has let go of those that do not
    /// stay.
    pub lease: Duration,
    /// How often a stream says that nothing more is durable.
    pub heartbeat: Duration,
    /// Further streams are refused. Each has a thread.
    pub most_streams: usize,
    /// Further readers are refused.
    pub most_readers: usize,
    /// The most log that one answer or push has, in bytes.
    pub most_bytes: usize,
    /// Where the log is written, for clients that want to write.
    pub leader: Option<LeaderHint>,
}

impl Default for LogServiceOptions {
    fn default() -> LogServiceOptions {
        LogServiceOptions {
            lease: Duration::from_secs(30),
            heartbeat: Duration::from_millis(500),
            most_streams: 256,
            most_readers: 1024,
            most_bytes: 4 << 20,
            leader: None,
        }
    }
}

/// Serves a log to readers elsewhere. Any number of servers can offer it.
pub struct LogService {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

struct Shared {
    environment: Environment,
    store: Arc<dyn LogStore>,
    options: LogServiceOptions,
    readers: Readers,
    /// Where the readers that stay are written down.
    registry: Option<Registry>,
    saving: Saving,
    streams: AtomicUsize,
    is_closed: AtomicBool,
    /// Notified when the service is closed, when a stream has ended, and when there are readers to
    /// save.
    changed: Event,
}

impl LogService {
    /// A service over `store`. Readers that stay are forgotten when the process ends.
    #[must_use]
    pub fn new(
        environment: &Environment,
        store: Arc<dyn LogStore>,
        options: LogServiceOptions,
    ) -> Arc<LogService> {
        LogService::start(environment, store, options, None)
    }

    /// A service over `store` that keeps readers that stay in `directory`, which is its own. It
    /// must be opened before the store is told for the first time what it may truncate. Blocks for
    /// I/O.
    ///
    /// # Errors
    /// [`LogError::Unreadable`] or [`LogError::Damaged`] if the list of readers cannot be read, or
    /// the store's.
    pub fn open(
        environment: &Environment,
        store: Arc<dyn LogStore>,
        directory: &Path,
        options: LogServiceOptions,
    ) -> Result<Arc<LogService>, LogError> {
        let registry = Registry::open(&environment.disk, directory)?;
        let readers = registry.load()?;
        let service = LogService::start(environment, store, options, Some(registry));
        let shared = &service.shared;
        shared.readers.restore(&*shared.store, readers)?;
        shared.saving.allow();
        Ok(service)
    }

    fn start(
        environment: &Environment,
        store: Arc<dyn LogStore>,
        options: LogServiceOptions,
        registry: Option<Registry>,
    ) -> Arc<LogService> {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            readers: Readers::new(options.most_readers),
            store,
            options,
            registry,
            saving: Saving::default(),
            streams: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            changed: Event::new(),
        });
        let of_task = Arc::clone(&shared);
        let body = Box::new(move || of_task.keep_readers());
        let task = environment.spawner.spawn("log-leases", body);
        Arc::new(LogService { shared, task: Mutex::new(Some(task)) })
    }

    /// What a server has to offer. Requests run on its workers, streams on separate threads.
    #[must_use]
    pub fn offer(self: &Arc<LogService>) -> Offer {
        let service = Arc::clone(self) as Arc<dyn Service>;
        Offer { id: LOG_SERVICE, placement: Placement::Workers, service }
    }

    /// Who holds log here.
    #[must_use]
    pub fn readers(&self) -> Vec<HeldReader> {
        self.shared.readers.list()
    }

    /// Ends streams and leases. Blocks until the streams' threads have ended.
    pub fn close(&self) {
        self.shared.close();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
        let streams = &self.shared.streams;
        self.shared.changed.wait_until(None, || streams.load(Ordering::SeqCst) == 0);
        self.shared.readers.clear();
    }
}

impl Drop for LogService {
    /// Does not wait.
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Service for LogService {
    fn serve(&self, peer: &Peer, request: LinkRequest, responder: Responder) {
        let decoded = Request::decode(&request.payload);
        match (request.kind, decoded) {
            (_, Err(damage)) => {
                tracing::warn!(%damage, peer = %peer.hello.identity, "a request to the log service was refused");
                responder.refuse(REFUSED, &damage.to_string());
            }
            (RequestKind::Follow, Ok(Request::Follow(follow))) => {
                self.shared.begin_stream(follow, responder);
            }
            (RequestKind::Call, Ok(request)) => self.shared.answer(request, responder),
            _ => responder.refuse(REFUSED, "the log service does not take this kind of request"),
        }
    }
}

impl Shared {
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// What a client is told of the log here. The order matters: what was durable when the start
    /// was read is not before it.
    fn positions(&self) -> Positions {
        let truncated = self.store.truncated_lsn();
        Positions { truncated, durable: self.store.durable_lsn() }
    }

    fn failed(&self, error: LogError) -> Vec<u8> {
        Reply::Failed { positions: self.positions(), failure: Failure::from(error) }.encode()
    }

    fn answer(&self, request: Request, responder: Responder) {
        match request {
            Request::Hold { client, readers } => {
                let now = self.environment.clock.monotonic();
                let staying = readers.iter().filter(|reader| reader.stays).cloned().collect();
                let held = self.readers.hold(&*self.store, client, readers, now);
                match held.and_then(|kept_from| self.save_readers(staying).map(|()| kept_from)) {
                    Ok(kept_from) => {
                        let positions = self.positions();
                        let leader = self.options.leader.as_ref().and_then(|leader| leader());
                        responder.reply(Reply::Held { positions, kept_from, leader }.encode());
                    }
                    Err(error) => responder.reply(self.failed(error)),
                }
            }
            Request::Forget { name } => {
                self.readers.forget(&name);
                let positions = self.positions();
                match self.save_now() {
                    Ok(()) => responder.reply(Reply::Forgotten { positions }.encode()),
                    Err(error) => responder.reply(self.failed(error)),
                }
            }
            Request::Readers => {
                let (positions, readers) = (self.positions(), self.readers.list());
                responder.reply(Reply::Readers { positions, readers }.encode());
            }
            Request::Read { from, limit_bytes } => {
                let limit = (limit_bytes as usize).min(self.options.most_bytes);
                let mut log = Vec::new();
                let read = self.store.read(from, limit, &mut log);
                let positions = self.positions();
                match read.and_then(|end| self.check_durable(end, positions)) {
                    Ok(end) => responder.reply(Reply::Log { positions, end }.with_log(log)),
                    Err(error) => responder.reply(self.failed(error)),
                }
            }
            Request::Follow(_) => responder.refuse(REFUSED, "a stream has to be followed"),
        }
    }

    /// Rule L1.
    fn check_durable(&self, end: Lsn, positions: Positions) -> Result<Lsn, LogError> {
        if end <= positions.durable {
            return Ok(end);
        }
        let durable = positions.durable;
        tracing::error!(%end, %durable, "the log store returned log that is not durable");
        let reason = format!("it returned log up to {end}, and {durable} is durable");
        Err(LogError::Unreadable { at: "the log store".to_owned(), reason })
    }

    /// Follows the store for a client, on a thread of the stream's own.
    fn begin_stream(self: &Arc<Shared>, follow: FollowRequest, responder: Responder) {
        if self.streams.fetch_add(1, Ordering::SeqCst) >= self.options.most_streams {
            self.streams.fetch_sub(1, Ordering::SeqCst);
            let most = self.options.most_streams;
            return responder.refuse(REFUSED, &format!("the node has {most} streams already"));
        }
        let shared = Arc::clone(self);
        let body = move || {
            shared.run_stream(&follow, responder);
            shared.streams.fetch_sub(1, Ordering::SeqCst);
            shared.changed.notify_all();
        };
        // The thread ends with its stream; `close` counts the streams.
        drop(self.environment.spawner.spawn("log-stream", Box::new(body)));
    }
}
