//! The owner's end: one thread that answers which memory a region has, and stands in for hardware
//! where there is none. See [`crate`] for the rules.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::task::{Spawner, TaskHandle, monotonic};
use firn_fabric::header::HEADER_BYTES;
use firn_fabric::{Fabric, FabricError, SharedMemoryFabric};
use parking_lot::Mutex;

use crate::message::{Connect, Memory, OwnerAddress, ToOwner, ToPeer, decode, encode};
use crate::settings::RdmaSettings;
use crate::ucx::{EndpointId, Port, UcxError};
use crate::wake::Waker;

/// How many peers an owner knows at a time. One more replaces one that has failed, or is refused.
const MOST_PEERS: usize = 1024;
/// How often the thread looks for peers that have failed.
const IDLE: Duration = Duration::from_millis(200);
/// How often the thread looks again before it sleeps: the next access often comes soon.
const LOOKS_BEFORE_SLEEP: u32 = 200;
/// How long an owner that takes leave waits until its peers have been told.
const FAREWELL: Duration = Duration::from_millis(100);

/// Lets other machines reach the regions of a fabric. Dropping it ends the way to them, not the
/// fabric.
pub struct RdmaOwner {
    address: OwnerAddress,
    shared: Arc<Shared>,
    thread: Mutex<Option<Box<dyn TaskHandle>>>,
}

struct Shared {
    is_ending: AtomicBool,
    waker: Waker,
}

/// What the thread has.
struct Server {
    port: Port,
    regions: Arc<SharedMemoryFabric>,
    peers: HashMap<u64, EndpointId>,
}

pub(crate) fn unreachable(owner: &str, reason: &dyn std::fmt::Display) -> FabricError {
    FabricError::Unreachable { owner: owner.to_owned(), reason: reason.to_string() }
}

impl RdmaOwner {
    /// Serves the regions of `fabric`, in a new task.
    ///
    /// # Errors
    /// [`FabricError::Unreachable`] if none of the transports can be used.
    pub fn serve(
        fabric: Arc<SharedMemoryFabric>,
        settings: &RdmaSettings,
        spawner: &dyn Spawner,
    ) -> Result<RdmaOwner, FabricError> {
        let epoch = fabric.epoch().0;
        let failed = |error: UcxError| unreachable("this process", &error);
        let mut port = Port::open(settings.transports()).map_err(failed)?;
        let worker = port.address().map_err(failed)?;
        let waker = Waker::new(&mut port).map_err(failed)?;
        let shared = Arc::new(Shared { is_ending: AtomicBool::new(false), waker });
        let (seen, peers) = (Arc::clone(&shared), HashMap::new());
        let server = Server { port, regions: fabric, peers };
        let thread = spawner.spawn("rdma-owner", Box::new(move || server.run(&seen)));
        let address = OwnerAddress { epoch, worker };
        Ok(RdmaOwner { address, shared, thread: Mutex::new(Some(thread)) })
    }

    /// Where peers find it.
    #[must_use]
    pub fn address(&self) -> &OwnerAddress {
        &self.address
    }
}

impl Drop for RdmaOwner {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.get_mut().take() {
            thread.join();
        }
    }
}

impl Server {
    fn run(mut self, shared: &Shared) {
        let mut looks = 0;
        while !shared.is_ending.load(Ordering::SeqCst) {
            if self.progress() {
                looks = 0;
                continue;
            }
            looks += 1;
            if looks > LOOKS_BEFORE_SLEEP && self.port.arm() {
                shared.waker.wait(IDLE);
                self.forget_failed();
                looks = 0;
            }
        }
        self.take_leave();
    }

    /// Whether there was anything to do.
    fn progress(&mut self) -> bool {
        let mut was_busy = self.port.progress();
        while let Some(message) = self.port.received() {
            was_busy = true;
            match decode(&message) {
                Ok(ToOwner::Connect(connect)) => self.connect(connect),
                Ok(ToOwner::Leave { epoch, peer }) if epoch == self.epoch() => {
                    if let Some(endpoint) = self.peers.remove(&peer) {
                        self.port.close(endpoint);
                    }
                }
                Ok(ToOwner::Leave { .. }) => {}
                Err(error) => tracing::warn!(%error, "a message about RDMA was not understood"),
            }
        }
        was_busy
    }

    fn epoch(&self) -> u64 {
        self.regions.epoch().0
    }

    fn connect(&mut self, connect: Connect) {
        let answered = self.endpoint(&connect).and_then(|endpoint| {
            let answer = self.answer(&connect)?;
            self.port.send(endpoint, encode(&answer))
        });
        if let Err(error) = answered {
            tracing::warn!(%error, "a peer that uses RDMA was not answered");
        }
    }

    fn endpoint(&mut self, connect: &Connect) -> Result<EndpointId, UcxError> {
        if let Some(endpoint) = self.peers.get(&connect.peer) {
            return Ok(*endpoint);
        }
        if self.peers.len() >= MOST_PEERS {
            self.forget_failed();
        }
        if self.peers.len() >= MOST_PEERS {
            return Err(UcxError::here("a peer is refused", &"there are as many as there may be"));
        }
        let endpoint = self.port.connect(&connect.worker)?;
        self.peers.insert(connect.peer, endpoint);
        Ok(endpoint)
    }

    fn answer(&mut self, connect: &Connect) -> Result<ToPeer, UcxError> {
        let (epoch, question) = (self.epoch(), connect.question);
        if connect.epoch != epoch {
            return Ok(ToPeer::Stale { epoch, question });
        }
        let Some(region) = self.regions.region(&connect.name) else {
            return Ok(ToPeer::Unknown { epoch, question });
        };
        let length_words = region.words().len() as u64;
        Ok(match self.port.offer(&connect.name, region)? {
            Some(offered) => ToPeer::Region(Memory {
                epoch,
                question,
                address: offered.address,
                length_words,
                key: offered.key,
            }),
            None => ToPeer::Unknown { epoch, question },
        })
    }

    fn forget_failed(&mut self) {
        let port = &mut self.port;
        self.peers.retain(|_, endpoint| {
            let is_good = port.failure(*endpoint).is_none();
            if !is_good {
                port.close(*endpoint);
            }
            is_good
        });
    }

    /// Tells the peers that this epoch has ended. The port is dropped then (D1).
    fn take_leave(mut self) {
        let farewell = encode(&ToPeer::Ended { epoch: self.epoch() });
        for endpoint in self.peers.values() {
            // A peer that is not told gets no answers any more.
            let _ = self.port.send(*endpoint, farewell.clone());
        }
        let until = monotonic().saturating_add(FAREWELL);
        while self.port.is_sending() && monotonic() < until {
            self.port.progress();
        }
    }
}

/// Regions have their words behind a header of whole words.
const _: () = assert!(HEADER_BYTES.is_multiple_of(size_of::<u64>()));
