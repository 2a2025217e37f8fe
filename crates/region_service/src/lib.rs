//! Regions of another machine: [`firn_fabric::Peer`] as messages over links.
//!
//! ```text
//!   peer                                            owner
//!   RemotePeer::connect ── name ──────────────────► RegionService ─► its own Peer
//!   RemoteRegion::run ──── acts of a batch ───────►  │ on the thread that reads the connection
//!        ◄── words, or why not ─────────────────────┘
//! ```
//!
//! The owner's end runs batches on the threads that read its links, which do nothing else: neither
//! a thread of the database nor a worker is woken. A peer that waits for a batch which only reads
//! has a connection of its own for it, so that no other thread of the peer is woken either.
//!
//! Rules, cited by number:
//!
//! * R1. *One epoch.* Each request names the epoch that its peer has connected to. An owner of
//!   another epoch, or a process without an owner, refuses it, and all later ones.
//! * R2. *Changes in their order, each once.* A peer numbers its batches that change words, and
//!   they leave in that order over one connection. The owner refuses a number that is not above
//!   all that it has run for that peer. So when a batch was done, no earlier one happens any more,
//!   even if it lies in a connection that has ended, and was reported as unknown.
//! * R3. *Reads after what was submitted before.* A batch that only reads takes a connection of its
//!   own only if nothing of its peer is under way. Otherwise it follows the others.
//! * R4. *An owner forgets a peer whole or not at all.* It remembers the numbers of
//!   [`MOST_PEERS`]; one that it has forgotten has to connect again before it changes anything.
//!
//! `docs/formats/region_service.md` describes the bytes.
//!
//! Architecture invariant: it knows the seam alone; the regions of any fabric whose batches end
//! when they are submitted can be served.

pub mod client;
pub mod message;
pub mod server;
#[cfg(test)]
mod tests;

pub use client::RemotePeer;
pub use server::RegionService;

/// The number of the service in a link.
pub const REGION_SERVICE: firn_link::ServiceId = firn_link::ServiceId(0x0402);

/// How many peers an owner remembers that may change words.
pub const MOST_PEERS: usize = 1024;
