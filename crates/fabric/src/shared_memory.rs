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
//! The owner's process passes the memory over a Unix socket and takes no part in any access after
//! that. The peer keeps the connection open and notices the owner's death by the connection's end,
//! which the system ensures however the owner dies. An owner that ends regularly also marks its
//! regions as ended.
//!
//! The socket is of type `SEQPACKET` and serves processes of the same user: the modes of its
//! directory protect it. `docs/formats/shared-region.md` shows the packets.

mod owner;
mod packets;
mod peer;

pub use owner::SharedMemoryFabric;
pub use peer::SharedMemoryPeer;

#[cfg(test)]
mod tests;
