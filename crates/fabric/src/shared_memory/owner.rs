//! The owner's side: makes regions and passes their memory to every process that may open the
//! socket.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_base::task::{Spawner, TaskHandle};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType,
};

use super::packets::{REQUEST_BYTES, Reply, Request};
use crate::epoch::Epoch;
use crate::error::FabricError;
use crate::in_process::InProcessFabric;
use crate::mapping::Mapping;
use crate::owned::OwnedRegion;
use crate::region::{Fabric, Peer};

/// How many peers may wait to be accepted.
const WAITING_PEERS: i32 = 128;

/// The regions of one process, in memory that other processes can map. Dropping it ends its epoch.
pub struct SharedMemoryFabric {
    shared: Arc<Shared>,
    server: Mutex<Option<Box<dyn TaskHandle>>>,
    /// The same regions, for peers in this process.
    own: InProcessFabric,
}

struct Shared {
    epoch: Epoch,
    path: PathBuf,
    listener: OwnedFd,
    is_closed: AtomicBool,
    regions: Mutex<HashMap<String, Arc<Mapping>>>,
}

impl SharedMemoryFabric {
    /// Serves regions at a socket, in its own task. Replaces an existing socket file: the caller
    /// ensures that no two owners share a path.
    ///
    /// # Errors
    /// [`FabricError::Unreachable`] if the socket cannot be made.
    pub fn serve(
        path: &Path,
        epoch: Epoch,
        spawner: &dyn Spawner,
    ) -> Result<SharedMemoryFabric, FabricError> {
        let listener = listen(path).map_err(|error| unreachable_at(path, &error))?;
        let shared = Arc::new(Shared {
            epoch,
            path: path.to_owned(),
            listener,
            is_closed: AtomicBool::new(false),
            regions: Mutex::new(HashMap::new()),
        });
        let served = Arc::clone(&shared);
        let server = spawner.spawn("fabric", Box::new(move || served.serve()));
        let (server, own) = (Mutex::new(Some(server)), InProcessFabric::new(epoch));
        Ok(SharedMemoryFabric { shared, server, own })
    }

    /// A peer of this owner in the same process, which needs no socket.
    #[must_use]
    pub fn peer(&self) -> Arc<dyn Peer> {
        self.own.peer()
    }

    /// The region `name`, for those who let other machines reach its memory.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<OwnedRegion> {
        self.shared.regions.lock().get(name).cloned().map(OwnedRegion::shared)
    }
}

impl Fabric for SharedMemoryFabric {
    fn register(&self, name: &str, length_words: usize) -> Result<OwnedRegion, FabricError> {
        let mut regions = self.shared.regions.lock();
        if regions.contains_key(name) {
            return Err(FabricError::Registered(name.to_owned()));
        }
        let mapping = Mapping::create(name, length_words, self.shared.epoch);
        let mapping = mapping.map_err(|error| unreachable_at(&self.shared.path, &error))?;
        let mapping = Arc::new(mapping);
        regions.insert(name.to_owned(), Arc::clone(&mapping));
        let region = OwnedRegion::shared(mapping);
        self.own.add(name, region.clone());
        Ok(region)
    }

    fn epoch(&self) -> Epoch {
        self.shared.epoch
    }
}

impl Drop for SharedMemoryFabric {
    fn drop(&mut self) {
        self.shared.regions.lock().values().for_each(|mapping| mapping.end());
        self.shared.is_closed.store(true, Ordering::SeqCst);
        // Wakes the server, which then ends. A failure has no consequence.
        let _ = rustix::net::shutdown(&self.shared.listener, Shutdown::Both);
        if let Some(server) = self.server.get_mut().take() {
            server.join();
        }
        // If the file stays, the next owner replaces it.
        let _ = rustix::fs::unlink(&self.shared.path);
    }
}

fn listen(path: &Path) -> io::Result<OwnedFd> {
    match rustix::fs::unlink(path) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::SEQPACKET;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, WAITING_PEERS)?;
    Ok(socket)
}

pub(super) fn unreachable_at(path: &Path, reason: &dyn std::fmt::Display) -> FabricError {
    FabricError::Unreachable { owner: path.display().to_string(), reason: reason.to_string() }
}

impl Shared {
    /// Answers peers until the fabric is dropped.
    fn serve(&self) {
        let mut peers: Vec<OwnedFd> = Vec::new();
        loop {
            let sockets = std::iter::once(&self.listener).chain(&peers);
            let mut polled: Vec<_> =
                sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            if rustix::event::poll(&mut polled, None).is_err() {
                continue; // a signal
            }
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            let has_called = !polled[0].revents().is_empty();
            let mut ready = polled[1..].iter().map(|polled| !polled.revents().is_empty());
            let ready: Vec<bool> = ready.by_ref().collect();
            let mut ready = ready.into_iter();
            peers.retain(|peer| !ready.next().unwrap_or(false) || self.answer(peer));
            if has_called {
                peers.extend(self.accept());
            }
        }
    }

    fn accept(&self) -> Option<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(&self.listener, flags) {
            Ok(peer) => Some(peer),
            Err(error) => {
                tracing::debug!(%error, "a peer of the fabric was not accepted");
                None
            }
        }
    }

    /// Answers one request; false if the peer has left or sent something else.
    fn answer(&self, peer: &OwnedFd) -> bool {
        let mut bytes = [0; REQUEST_BYTES];
        let length = match rustix::net::recv(peer, &mut bytes[..], RecvFlags::empty()) {
            Ok((0, _)) => return false,
            Ok((length, _)) => length,
            Err(error) => return error == rustix::io::Errno::AGAIN,
        };
        match Request::decode(&bytes[..length]) {
            Ok(Request::Watch) => self.reply(peer, true, None),
            Ok(Request::Region(name)) => {
                let region = self.regions.lock().get(&name).cloned();
                self.reply(peer, region.is_some(), region.as_deref())
            }
            Err(error) => {
                tracing::warn!(%error, "a process that is not a peer has called the fabric's socket");
                false
            }
        }
    }

    fn reply(&self, peer: &OwnedFd, is_known: bool, region: Option<&Mapping>) -> bool {
        let reply = Reply { epoch: self.epoch, is_known }.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        let descriptors = region.map(AsFd::as_fd);
        if let Some(descriptor) = &descriptors {
            rights.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
        }
        let sent =
            rustix::net::sendmsg(peer, &[IoSlice::new(&reply)], &mut rights, SendFlags::NOSIGNAL);
        sent.is_ok()
    }
}
