//! Regions of another machine by one-sided accesses: [`firn_fabric::Peer`] over UCX, which finds
//! RDMA hardware, and has other transports where there is none.
//!
//! ```text
//!   owner                                            peer
//!   SharedMemoryFabric ─ RdmaOwner::serve             RdmaPeer::new(OwnerAddress)
//!     │ one thread, one UCX worker                      │ one UCX worker, one endpoint
//!     │ ◄──── name of a region, own address ─────────── │ connect
//!     │ ───── address and key of its memory ──────────► │
//!     memory ◄════ get · put · compare and swap · add ══╡ submit, one word after the other
//! ```
//!
//! The [`OwnerAddress`](message::OwnerAddress) is exchanged over a link: `announce` gives it to the
//! owner's region service, and `FarPeer` asks for it. All else goes over UCX. On hardware the
//! network cards do the accesses; where UCX stands in for it (TCP, shared memory), the thread of
//! [`RdmaOwner`] does. No thread of the database runs.
//!
//! Rules, cited by number:
//!
//! * D1. *An epoch is a worker.* Owner and peer have one worker each for one epoch. The worker of
//!   the owner ends with the epoch, and with the process at the latest. With it end all endpoints
//!   and the keys of all memory. A later owner has another worker at another address, which does
//!   not know those endpoints and keys. So no access reaches the memory of a former epoch, or that
//!   of a later one by mistake.
//! * D2. *Connected by the owner.* An access begins only after the owner has answered over this
//!   endpoint, in this epoch, for this region. The peer then reads the header of the memory, and
//!   refuses another epoch or length.
//! * D3. *Nothing outlives its process.* Only transports are used that reach memory through a
//!   network card, which forgets a dead process, or through the owner's thread
//!   ([`RdmaSettings::transports`]). Transports that map or copy the memory of another process
//!   would find it after the death of the owner, or another process in its place.
//! * D4. *One word after the other.* Each access is one word, and the next one begins when it has
//!   been done at the owner. Neither RDMA nor UCX promises an order within a longer access, and UCX
//!   orders accesses by a fence only if they take the same way.
//! * D5. *A failed endpoint stays failed.* All batches that are under way on it fail, and all later
//!   ones. A peer that connects again has another worker. So what the network still carries of a
//!   batch is not done after a later batch of the same region.
//!
//! `docs/formats/rdma.md` describes the bytes.
//!
//! All but the messages is behind the feature `ucx`, which links libucp.
//!
//! UCX trusts its peers: it neither encrypts nor asks who calls. Use it in a network that only
//! nodes of the cluster reach.

#[cfg(feature = "ucx")]
mod far;
pub mod message;
#[cfg(feature = "ucx")]
mod owner;
#[cfg(feature = "ucx")]
mod peer;
#[cfg(feature = "ucx")]
mod settings;
#[cfg(all(test, feature = "ucx"))]
mod tests;
#[cfg(feature = "ucx")]
mod ucx;
#[cfg(feature = "ucx")]
mod wake;

#[cfg(feature = "ucx")]
pub use far::{FarPeer, announce};
#[cfg(feature = "ucx")]
pub use owner::RdmaOwner;
#[cfg(feature = "ucx")]
pub use peer::RdmaPeer;
#[cfg(feature = "ucx")]
pub use settings::{RdmaSettings, SettingsError};
