//! The owner's end. See [`crate`] for the rules.
//!
//! Latch rules: the mutexes of the service and of the lists are leaves. That of a peer's last
//! number is held while a batch of that peer runs, which does not wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_fabric::{Batch, Epoch, FabricError, Peer, Region};
use firn_link::{FIRST_SERVICE_CODE, Offer, Placement, Request, RequestKind, Responder, Service};
use parking_lot::Mutex;

use crate::message::{Answer, Ask, Change, Run, decode, encode, received};
use crate::{MOST_PEERS, REGION_SERVICE};

/// The request is not a message of this version.
pub const REFUSED_DAMAGED: u16 = FIRST_SERVICE_CODE;

/// Serves the regions of this process, while it has any.
#[derive(Default)]
pub struct RegionService {
    owner: Mutex<Option<Arc<Owner>>>,
}

/// The regions of one epoch.
struct Owner {
    epoch: Epoch,
    peer: Arc<dyn Peer>,
    regions: Mutex<Vec<NamedRegion>>,
    changing: Mutex<ChangingPeers>,
    /// Where the memory is reached without messages, if it is.
    memory_address: Mutex<Option<Vec<u8>>>,
}

/// A region that somebody has connected to. Its place in the list is its number.
struct NamedRegion {
    name: String,
    region: Arc<dyn Region>,
}

/// The last number that was run for a peer (R2).
type LastNumber = Arc<Mutex<u64>>;

/// The peers that may change words (R4).
#[derive(Default)]
struct ChangingPeers {
    peers: BTreeMap<u64, KnownPeer>,
    uses: u64,
}

struct KnownPeer {
    last: LastNumber,
    used: u64,
}

impl ChangingPeers {
    fn add(&mut self, peer: u64) {
        if !self.peers.contains_key(&peer) && self.peers.len() >= MOST_PEERS {
            let oldest = self.peers.iter().min_by_key(|(_, known)| known.used);
            if let Some(peer) = oldest.map(|(peer, _)| *peer) {
                self.peers.remove(&peer);
            }
        }
        self.uses += 1;
        let used = self.uses;
        let new = || KnownPeer { last: LastNumber::default(), used };
        self.peers.entry(peer).or_insert_with(new).used = used;
    }

    fn find(&mut self, peer: u64) -> Option<LastNumber> {
        self.uses += 1;
        let known = self.peers.get_mut(&peer)?;
        known.used = self.uses;
        Some(Arc::clone(&known.last))
    }
}

impl RegionService {
    /// A service without regions. Register [`RegionService::offer`] in a link's server.
    #[must_use]
    pub fn new() -> Arc<RegionService> {
        Arc::default()
    }

    /// The service as a link's server takes it. It answers on the threads that read.
    #[must_use]
    pub fn offer(self: &Arc<Self>) -> Offer {
        let service = Arc::clone(self) as _;
        Offer { id: REGION_SERVICE, placement: Placement::Reader, service }
    }

    /// From now on the regions that `peer` reaches are served. It is one of this process: its
    /// batches end when they are submitted.
    pub fn begin(&self, epoch: Epoch, peer: Arc<dyn Peer>) {
        let (regions, changing) = (Mutex::default(), Mutex::default());
        let memory_address = Mutex::default();
        let owner = Arc::new(Owner { epoch, peer, regions, changing, memory_address });
        let before = self.owner.lock().replace(owner);
        drop(before);
    }

    /// Peers of this epoch that ask are told where its memory is reached without messages, in the
    /// words of the fabric that reaches it. Does nothing after another epoch has begun.
    pub fn set_memory_address(&self, epoch: Epoch, address: Vec<u8>) {
        let owner = self.owner.lock().clone();
        if let Some(owner) = owner.filter(|owner| owner.epoch == epoch) {
            *owner.memory_address.lock() = Some(address);
        }
    }

    /// Peers are told that the epoch has ended.
    pub fn end(&self) {
        let before = self.owner.lock().take();
        drop(before);
    }

    fn answer(&self, ask: Ask) -> Answer {
        let owner = self.owner.lock().clone();
        let epoch = match &ask {
            Ask::Connect { epoch, .. }
            | Ask::Run(Run { epoch, .. })
            | Ask::MemoryAddress { epoch } => Epoch(*epoch),
        };
        let Some(owner) = owner.filter(|owner| owner.epoch == epoch) else { return Answer::Stale };
        let answered = match ask {
            Ask::Connect { peer, name, .. } => owner.connect(peer, name),
            Ask::Run(run) => owner.run(run),
            Ask::MemoryAddress { .. } => {
                let address = owner.memory_address.lock().clone();
                Ok(address.map_or(Answer::Unknown, Answer::MemoryAddress))
            }
        };
        answered.unwrap_or_else(refusal)
    }
}

impl Service for RegionService {
    fn serve(&self, _: &firn_link::Peer, request: Request, responder: Responder) {
        match decode(&request.payload) {
            Ok(ask) if request.kind != RequestKind::Cast => {
                responder.reply(encode(&self.answer(ask)));
            }
            Ok(_) => responder.refuse(REFUSED_DAMAGED, "the request wants no answer"),
            Err(damage) => responder.refuse(REFUSED_DAMAGED, &damage.to_string()),
        }
    }
}

fn refusal(error: FabricError) -> Answer {
    match error {
        FabricError::OutOfBounds { start, end, length } => {
            Answer::OutOfBounds { start: start as u64, end: end as u64, length: length as u64 }
        }
        FabricError::Unknown(_) => Answer::Unknown,
        // Memory of this process fails in no other way.
        _ => Answer::Stale,
    }
}

impl Owner {
    fn connect(&self, peer: u64, name: String) -> Result<Answer, FabricError> {
        let known = {
            let regions = self.regions.lock();
            let number = regions.iter().position(|known| known.name == name);
            number.map(|number| (number, Arc::clone(&regions[number].region)))
        };
        let (number, region) = match known {
            Some(known) => known,
            None => {
                let region = self.peer.connect(&name)?;
                let mut regions = self.regions.lock();
                regions.push(NamedRegion { name, region: Arc::clone(&region) });
                (regions.len() - 1, region)
            }
        };
        self.changing.lock().add(peer);
        let region_number = u32::try_from(number).expect("no owner has that many regions");
        Ok(Answer::Region { region: region_number, length_words: region.length_words() as u64 })
    }

    fn run(&self, run: Run) -> Result<Answer, FabricError> {
        let number = usize::try_from(run.region).unwrap_or(usize::MAX);
        let region = self.regions.lock().get(number).map(|known| Arc::clone(&known.region));
        let Some(region) = region else { return Ok(Answer::Stale) };
        let Some(batch) = received(run.acts) else { return Ok(Answer::TooLarge) };
        let Some(Change { peer, number }) = run.change else {
            // What changes words has a number.
            return match batch.changes() {
                true => Ok(Answer::Superseded),
                false => words(&*region, batch),
            };
        };
        let Some(last) = self.changing.lock().find(peer) else { return Ok(Answer::Stale) };
        let mut last = last.lock();
        if number <= *last {
            return Ok(Answer::Superseded);
        }
        *last = number;
        words(&*region, batch)
    }
}

fn words(region: &dyn Region, batch: Batch) -> Result<Answer, FabricError> {
    Ok(Answer::Words(region.run(batch)?.into_words()))
}
