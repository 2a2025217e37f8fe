//! The peer's side: maps the regions of an owner, and notices its end.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::task::{Spawner, TaskHandle};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType,
};

use super::owner::unreachable_at;
use super::packets::{REPLY_BYTES, REQUEST_BYTES, Reply, Request};
use crate::batch::{Batch, Completion};
use crate::epoch::Epoch;
use crate::error::FabricError;
use crate::mapping::{Mapping, MappingError};
use crate::region::{Peer, Region};

/// The owner of shared regions, as another process reaches it.
pub struct SharedMemoryPeer {
    owner: Arc<Owner>,
    watcher: Mutex<Option<Box<dyn TaskHandle>>>,
}

struct Owner {
    path: PathBuf,
    timeout: Duration,
    epoch: Epoch,
    /// The connection whose end reports the owner's end.
    watched: OwnedFd,
    has_gone: AtomicBool,
}

impl SharedMemoryPeer {
    /// Connects to an owner, and starts a task that watches for its end. Calls wait for `timeout`
    /// at most.
    ///
    /// # Errors
    /// [`FabricError::Unreachable`], [`FabricError::TimedOut`], [`FabricError::Incompatible`].
    pub fn connect(
        path: &Path,
        timeout: Duration,
        spawner: &dyn Spawner,
    ) -> Result<SharedMemoryPeer, FabricError> {
        let (watched, reply, _) = ask(path, &Request::Watch, timeout)?;
        let owner = Arc::new(Owner {
            path: path.to_owned(),
            timeout,
            epoch: reply.epoch,
            watched,
            has_gone: AtomicBool::new(false),
        });
        let watching = Arc::clone(&owner);
        let watcher = spawner.spawn("fabric-watch", Box::new(move || watching.watch()));
        Ok(SharedMemoryPeer { owner, watcher: Mutex::new(Some(watcher)) })
    }
}

impl Drop for SharedMemoryPeer {
    fn drop(&mut self) {
        // Ends the watcher; the regions that were connected are refused from now on.
        let _ = rustix::net::shutdown(&self.owner.watched, Shutdown::Both);
        if let Some(watcher) = self.watcher.get_mut().take() {
            watcher.join();
        }
    }
}

impl Peer for SharedMemoryPeer {
    fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError> {
        let owner = &self.owner;
        owner.check()?;
        let request = Request::Region(name.to_owned());
        if request.encode().len() > REQUEST_BYTES {
            return Err(FabricError::Unknown(name.to_owned()));
        }
        let (_, reply, memory) = ask(&owner.path, &request, owner.timeout)?;
        // Another owner has taken the path meanwhile.
        if reply.epoch != owner.epoch {
            return Err(FabricError::Stale { epoch: owner.epoch });
        }
        let Some(memory) = memory.filter(|_| reply.is_known) else {
            return Err(FabricError::Unknown(name.to_owned()));
        };
        let mapping = Mapping::open(memory).map_err(|error| match error {
            MappingError::System(error) => unreachable_at(&owner.path, &error),
            error => incompatible(&owner.path, &error),
        })?;
        if mapping.epoch() != owner.epoch {
            return Err(FabricError::Stale { epoch: owner.epoch });
        }
        Ok(Arc::new(SharedMemoryRegion { owner: Arc::clone(owner), mapping }))
    }
}

impl Owner {
    /// Waits for the owner's end.
    fn watch(&self) {
        let mut byte = [0];
        loop {
            let mut polled = [PollFd::new(&self.watched, PollFlags::IN)];
            if rustix::event::poll(&mut polled, None).is_err() {
                continue; // a signal
            }
            match rustix::net::recv(&self.watched, &mut byte[..], RecvFlags::empty()) {
                Ok((1.., _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Ok((0, _)) | Err(_) => break,
            }
        }
        self.has_gone.store(true, Ordering::Release);
    }

    fn check(&self) -> Result<(), FabricError> {
        match self.has_gone.load(Ordering::Acquire) {
            true => Err(FabricError::Stale { epoch: self.epoch }),
            false => Ok(()),
        }
    }
}

struct SharedMemoryRegion {
    owner: Arc<Owner>,
    mapping: Mapping,
}

impl SharedMemoryRegion {
    fn check(&self) -> Result<(), FabricError> {
        match self.mapping.has_ended() {
            true => Err(FabricError::Stale { epoch: self.owner.epoch }),
            false => self.owner.check(),
        }
    }
}

impl Region for SharedMemoryRegion {
    fn length_words(&self) -> usize {
        self.mapping.words().len()
    }

    fn epoch(&self) -> Epoch {
        self.owner.epoch
    }

    fn timeout(&self) -> Duration {
        self.owner.timeout
    }

    fn submit(&self, batch: Batch) -> Completion {
        let answered = self.check().and_then(|()| batch.run(self.mapping.words()));
        // A read that ran while the epoch ended returns an error.
        Completion::ready(answered.and_then(|answers| self.check().map(|()| answers)))
    }
}

fn incompatible(path: &Path, reason: &dyn std::fmt::Display) -> FabricError {
    FabricError::Incompatible { owner: path.display().to_string(), reason: reason.to_string() }
}

/// Sends one request to the owner. Returns the connection, the reply and the memory that came with
/// it.
fn ask(
    path: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<(OwnedFd, Reply, Option<OwnedFd>), FabricError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => FabricError::TimedOut { timeout },
        _ => unreachable_at(path, &error),
    };
    let socket = call(path, request).map_err(failed)?;
    await_reply(&socket, timeout).map_err(failed)?;
    let mut bytes = [0; REPLY_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let received = rustix::net::recvmsg(&socket, &mut slices, &mut rights, RecvFlags::CMSG_CLOEXEC);
    let length = received.map_err(|error| failed(error.into()))?.bytes;
    let memory = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let reply = Reply::decode(&bytes[..length]).map_err(|error| incompatible(path, &error))?;
    Ok((socket, reply, memory))
}

fn call(path: &Path, request: &Request) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::SEQPACKET;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::send(&socket, &request.encode(), SendFlags::NOSIGNAL)?;
    Ok(socket)
}

/// Waits until a reply can be read.
fn await_reply(socket: &OwnedFd, timeout: Duration) -> io::Result<()> {
    let limit = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match rustix::event::poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&limit)) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
