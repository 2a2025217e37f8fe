//! Regions in memory that processes of one machine share.
//!
//! ```text
//!   owner                                  peer
//!   SharedMemoryFabric::serve(socket)      SharedMemoryPeer::connect(socket)
//!      │  ◄──────── "timestamps" ───────────  │
//!      │  ───── epoch, file descriptor ────►  │  maps the memory
//!      │  ◄──── a connection that stays ────  │  whose end is the owner's end
//! ```
//!
//! The owner's process hands the memory over a Unix socket and has no part in any access after
//! that. A peer notices the owner's death because the connection that stays ends; the system sees
//! to that however the owner dies. An owner that takes leave also marks its regions.
//!
//! The socket is of the kind that keeps packets apart, and is for processes of the same user: it
//! has the modes of its directory. `docs/formats/shared-region.md` shows the packets.

mod owner;
mod packets;
mod peer;

pub use owner::SharedMemoryFabric;
pub use peer::SharedMemoryPeer;

#[cfg(test)]
mod tests;
