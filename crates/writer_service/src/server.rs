//! The writer's end. See [`crate`] for the rules.
//!
//! Latch rules: the mutexes of the writer and of the list of places are leaves. That of a place is
//! held while the writer is asked, which does not wait for other processes, and before the list's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::{WriterError, WriterNode, WriterPlace};
use firn_base::Environment;
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_link::{
    FIRST_SERVICE_CODE, Offer, Peer, Placement, Request, RequestKind, Responder, Service,
};
use parking_lot::Mutex;

use crate::message::{Answer, Ask, MAX_NAME_BYTES, SharedRegions, decode, encode};
use crate::{LEASE, WRITER_SERVICE};

/// The request is not a message of this version.
pub const REFUSED_DAMAGED: u16 = FIRST_SERVICE_CODE;
/// How often places are looked at whose time may have passed.
const LOOK: Duration = Duration::from_secs(1);

/// Says whether the process surely leads in the writer's epoch: no other writer has begun. Does not
/// block.
pub type SurelyLeads = Arc<dyn Fn() -> bool + Send + Sync>;

/// Serves the node that writes in this process, while there is one. Dropping it ends its task
/// without waiting for it.
pub struct WriterService {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

struct Shared {
    environment: Environment,
    writer: Mutex<Option<Arc<Writer>>>,
    is_closing: AtomicBool,
    wake: Event,
}

/// One writer, in one epoch.
struct Writer {
    node: Arc<dyn WriterNode>,
    surely_leads: SurelyLeads,
    regions: Option<SharedRegions>,
    places: Mutex<BTreeMap<u64, Arc<Mutex<HeldPlace>>>>,
}

struct HeldPlace {
    replica: String,
    /// When the replica looked last.
    renewed_at: Duration,
    place: Box<dyn WriterPlace>,
}

impl WriterService {
    /// A service without a writer. Register [`WriterService::offer`] in a link's server.
    #[must_use]
    pub fn new(environment: &Environment) -> Arc<WriterService> {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            writer: Mutex::default(),
            is_closing: AtomicBool::new(false),
            wake: Event::new(),
        });
        let of_task = Arc::clone(&shared);
        let task = environment.spawner.spawn("writer-places", Box::new(move || of_task.expire()));
        Arc::new(WriterService { shared, task: Mutex::new(Some(task)) })
    }

    /// The service as a link's server takes it. It answers on the threads that read.
    #[must_use]
    pub fn offer(self: &Arc<Self>) -> Offer {
        let service = Arc::clone(self) as _;
        Offer { id: WRITER_SERVICE, placement: Placement::Reader, service }
    }

    /// From now on this writer is served. Its methods must not block for other processes.
    /// Processes of the same machine are told of `regions`.
    pub fn begin(
        &self,
        node: Arc<dyn WriterNode>,
        surely_leads: SurelyLeads,
        regions: Option<SharedRegions>,
    ) {
        let writer = Arc::new(Writer { node, surely_leads, regions, places: Mutex::default() });
        let before = self.shared.writer.lock().replace(writer);
        drop(before);
    }

    /// Ends all places of the writer; replicas are told that it is gone.
    pub fn end(&self) {
        let before = self.shared.writer.lock().take();
        drop(before);
    }

    /// The names of the replicas that have places.
    #[must_use]
    pub fn replicas(&self) -> Vec<String> {
        let Some(writer) = self.shared.writer() else { return Vec::new() };
        let places: Vec<_> = writer.places.lock().values().cloned().collect();
        places.iter().map(|place| place.lock().replica.clone()).collect()
    }

    /// Ends the writer and waits for the service's task.
    pub fn close(&self) {
        self.end();
        self.shared.close();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
    }
}

impl Drop for WriterService {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Service for WriterService {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        match decode(&request.payload) {
            Ok(ask) if request.kind == RequestKind::Call => {
                responder.reply(encode(&self.shared.answer(ask)));
            }
            Ok(_) => responder.refuse(REFUSED_DAMAGED, "the request wants another kind of answer"),
            Err(damage) => responder.refuse(REFUSED_DAMAGED, &damage.to_string()),
        }
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    fn writer(&self) -> Option<Arc<Writer>> {
        self.writer.lock().clone()
    }

    fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.wake.notify_all();
    }

    /// What the task does: ends places whose time has passed (W2).
    fn expire(&self) {
        let is_closing = || self.is_closing.load(Ordering::SeqCst);
        while !self.wake.wait_until(Some(LOOK), is_closing) {
            if let Some(writer) = self.writer() {
                writer.expire(self.now());
            }
        }
    }

    fn answer(&self, ask: Ask) -> Answer {
        let Some(writer) = self.writer() else {
            let reason = "this node does not write".to_owned();
            return match ask {
                Ask::Look { .. } | Ask::GiveBack { .. } => Answer::Gone { reason },
                Ask::TakePlace { .. } | Ask::Newest | Ask::Regions => Answer::NotHere { reason },
            };
        };
        let answered = match ask {
            Ask::TakePlace { replica } => {
                let place = self.environment.random.next_u64();
                writer.take_place(place, replica, self.now())
            }
            Ask::Look { place, needed } => writer.look(place, needed, self.now()),
            Ask::GiveBack { place } => {
                let given_back = writer.places.lock().remove(&place);
                drop(given_back);
                Ok(Answer::GivenBack)
            }
            Ask::Newest => writer.newest(),
            Ask::Regions => writer.regions(),
        };
        answered.unwrap_or_else(refusal)
    }
}

fn refusal(error: WriterError) -> Answer {
    match error {
        WriterError::Unreachable { reason } => Answer::NotHere { reason },
        WriterError::Ended { reason } => Answer::Gone { reason },
        WriterError::NoPlace => Answer::NoPlace,
    }
}

impl Writer {
    fn check_leads(&self) -> Result<(), WriterError> {
        let reason = || "this node is not sure that it still leads".to_owned();
        if (self.surely_leads)() {
            Ok(())
        } else {
            Err(WriterError::Unreachable { reason: reason() })
        }
    }

    fn newest(&self) -> Result<Answer, WriterError> {
        let positions = self.node.newest()?;
        // Only now (W1).
        self.check_leads()?;
        Ok(Answer::Positions(positions.into()))
    }

    fn regions(&self) -> Result<Answer, WriterError> {
        let none = || "the writer shares no memory".to_owned();
        let regions = self.regions.clone();
        regions.map(Answer::Regions).ok_or_else(|| WriterError::Unreachable { reason: none() })
    }

    fn take_place(
        &self,
        number: u64,
        replica: String,
        now: Duration,
    ) -> Result<Answer, WriterError> {
        self.check_leads()?;
        if replica.len() > MAX_NAME_BYTES {
            return Err(WriterError::Unreachable { reason: "the name is too long".to_owned() });
        }
        let mut place = self.node.take_place(&replica)?;
        let snapshot = place.snapshot();
        let epoch = place.look(snapshot)?.epoch.0;
        tracing::info!(replica, %snapshot, "a replica has taken a place");
        let held = HeldPlace { replica, renewed_at: now, place };
        self.places.lock().insert(number, Arc::new(Mutex::new(held)));
        let lease_ms = LEASE.as_millis() as u64;
        Ok(Answer::Place { place: number, snapshot, lease_ms, epoch })
    }

    fn look(
        &self,
        number: u64,
        needed: firn_base::Cts,
        now: Duration,
    ) -> Result<Answer, WriterError> {
        let held = self.places.lock().get(&number).cloned();
        let gone = || WriterError::Ended { reason: "it has given this place away".to_owned() };
        let held = held.ok_or_else(gone)?;
        let mut held = held.lock();
        held.renewed_at = now;
        // The task may have taken it from the list meanwhile; then it is not renewed.
        if !self.places.lock().contains_key(&number) {
            return Err(gone());
        }
        Ok(Answer::Positions(held.place.look(needed)?.into()))
    }

    fn expire(&self, now: Duration) {
        let places: Vec<_> =
            self.places.lock().iter().map(|(number, held)| (*number, Arc::clone(held))).collect();
        for (number, held) in places {
            let place = held.lock();
            if now.saturating_sub(place.renewed_at) > LEASE {
                let replica = &place.replica;
                tracing::warn!(replica, "a replica has not been heard of; its place is given away");
                self.places.lock().remove(&number);
            }
        }
    }
}
