//! The page node's end. See [`crate`] for the rules.
//!
//! ```text
//!   worker of the link ─ read ──► pages whose log has arrived ──► pushes, reply
//!                                └─► waiting batches ─► attendants ─► pushes, reply
//!                      ─ hold ──► leases ◄─ attendants: ends those not renewed
//! ```
//!
//! Latch rules:
//! 1. The mutexes of the waiting batches, of the leases and of the spare buffers are leaves. No
//!    call of the store or of a responder is made under them.
//! 2. A worker never waits for log (P3); an attendant does, for a tick at a time.

mod batch;
mod leases;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{PageStore, PageStoreError};
use firn_base::Environment;
use firn_base::task::TaskHandle;
use firn_link::{
    FIRST_SERVICE_CODE, Offer, Peer, Placement, Request, RequestKind, Responder, Service,
};
use parking_lot::Mutex;

use self::batch::{Batch, SpareBuffers};
use self::leases::Leases;
use self::waiting::Waiting;
use crate::PAGE_SERVICE;
use crate::message::{self, HoldRequest, encode_held, encode_positions, encode_spaces};

/// The request is not a message of this version.
pub const REFUSED_DAMAGED: u16 = FIRST_SERVICE_CODE;
/// The store cannot hold positions at present.
pub const REFUSED_HOLD: u16 = FIRST_SERVICE_CODE + 1;

/// How a page service works.
#[derive(Debug, Clone)]
pub struct PageServiceOptions {
    /// The longest that a page waits for log, whatever the client grants.
    pub patience: Duration,
    /// The longest that leases last without renewal, whatever the client asks for.
    pub lease_timeout: Duration,
    /// Threads that answer pages whose log arrived after the request.
    pub attendants: usize,
    /// Pages are sent in messages of about this length in bytes.
    pub message_bytes: usize,
}

impl Default for PageServiceOptions {
    fn default() -> PageServiceOptions {
        PageServiceOptions {
            patience: Duration::from_secs(10),
            lease_timeout: Duration::from_secs(60),
            attendants: 2,
            message_bytes: 1 << 20,
        }
    }
}

/// What a page service tells of itself. Counters since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageServiceStatus {
    /// Images that were sent.
    pub pages_sent: u64,
    /// Requests for a page that got a failure.
    pub failures: u64,
    /// Requests for a page that had to wait for log.
    pub late_pages: u64,
    /// Batches that wait for log now.
    pub waiting_batches: usize,
    /// Clients that hold leases, and their leases together.
    pub holders: usize,
    pub leases: usize,
}

/// Serves a page store. Dropping it ends its tasks without waiting for them.
pub struct PageService {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

struct Shared {
    environment: Environment,
    store: Arc<dyn PageStore>,
    options: PageServiceOptions,
    waiting: Waiting,
    leases: Leases,
    spare: SpareBuffers,
    counters: Counters,
    is_closing: AtomicBool,
}

#[derive(Default)]
struct Counters {
    pages_sent: AtomicU64,
    failures: AtomicU64,
    late_pages: AtomicU64,
}

impl PageService {
    /// A service over `store`. Register [`PageService::offer`] in a link's server.
    #[must_use]
    pub fn new(
        environment: &Environment,
        store: Arc<dyn PageStore>,
        options: PageServiceOptions,
    ) -> Arc<PageService> {
        let attendants = options.attendants.max(1);
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            store,
            options,
            waiting: Waiting::default(),
            leases: Leases::default(),
            spare: SpareBuffers::default(),
            counters: Counters::default(),
            is_closing: AtomicBool::new(false),
        });
        let spawn = |_| {
            let of_task = Arc::clone(&shared);
            environment.spawner.spawn("page-attendant", Box::new(move || of_task.attend()))
        };
        let tasks = (0..attendants).map(spawn).collect();
        Arc::new(PageService { shared, tasks: Mutex::new(tasks) })
    }

    /// The service as a link's server takes it.
    #[must_use]
    pub fn offer(self: &Arc<Self>) -> Offer {
        let service = Arc::clone(self) as _;
        Offer { id: PAGE_SERVICE, placement: Placement::Workers, service }
    }

    /// The state of the service. Does not block.
    #[must_use]
    pub fn status(&self) -> PageServiceStatus {
        let counters = &self.shared.counters;
        let (holders, leases) = self.shared.leases.count();
        PageServiceStatus {
            pages_sent: counters.pages_sent.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
            late_pages: counters.late_pages.load(Ordering::Relaxed),
            waiting_batches: self.shared.waiting.count(),
            holders,
            leases,
        }
    }

    /// Ends all leases and gives up what waits; later requests are answered as if all log were
    /// late. Waits for the service's tasks.
    pub fn close(&self) {
        self.shared.close();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
    }
}

impl Drop for PageService {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Service for PageService {
    fn serve(&self, peer: &Peer, request: Request, responder: Responder) {
        self.shared.serve(peer, &request, responder);
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        drop(self.waiting.take_all());
        self.leases.end_all();
        self.waiting.wake();
    }

    fn serve(&self, peer: &Peer, request: &Request, responder: Responder) {
        let is_call = request.kind == RequestKind::Call;
        match message::Request::decode(&request.payload) {
            Ok(message::Request::Read(read)) if request.kind == RequestKind::Follow => {
                let patience = read.patience.min(self.options.patience);
                let batch = Batch::new(responder, read, self.now() + patience);
                self.advance_or_keep(batch);
            }
            Ok(message::Request::Hold(hold)) if is_call => self.hold(peer, &hold, responder),
            Ok(message::Request::Applied(pages)) if is_call => {
                let positions: Vec<_> =
                    pages.iter().map(|page| self.store.applied_lsn(*page)).collect();
                responder.reply(encode_positions(&positions));
            }
            Ok(message::Request::Spaces) if is_call => {
                responder.reply(encode_spaces(&self.store.spaces()));
            }
            Ok(_) => responder.refuse(REFUSED_DAMAGED, "the request wants another kind of answer"),
            Err(damage) => responder.refuse(REFUSED_DAMAGED, &damage.to_string()),
        }
    }

    fn hold(&self, peer: &Peer, request: &HoldRequest, responder: Responder) {
        let timeout = request.timeout.min(self.options.lease_timeout);
        let name = &peer.hello.identity.name;
        let take =
            |reader: &str, position| self.store.hold(&format!("{reader} of {name}"), position);
        match self.leases.renew(request, self.now() + timeout, &take) {
            Ok(answers) => responder.reply(encode_held(&answers)),
            Err(error) => responder.refuse(REFUSED_HOLD, &error.to_string()),
        }
        // An attendant that sleeps does not know when the leases end.
        self.waiting.wake();
    }
}

type HoldResult = Result<Arc<dyn firn_api::PageLease>, PageStoreError>;
