//! One-sided memory: regions of words that somebody else may read and change without running any
//! code of the owner's database threads (papers 000 §4.3, 003: RDMA verbs).
//!
//! ```text
//!   owner                                   peer
//!   fabric.register("timestamps", 16)       peer.connect("timestamps")
//!     └► OwnedRegion::words()                 └► Region::submit(batch) ─► Completion::wait
//!        the words themselves                    read · write · compare and swap · add
//! ```
//!
//! The owner uses the words directly and pays nothing for peers. A peer posts batches, any number of
//! which may be under way, and is told of each when it is done. What it may rely on:
//!
//! * each word is read and written as a whole, and acts of a batch happen in their order. Several
//!   words are no unit: the layout of a region says how a reader notices a change half-way;
//! * a region belongs to one [`Epoch`] of its owner. Once that has ended (the owner has gone or
//!   begun another one), every access is refused: nobody is told what an owner has left behind;
//! * what fails has an error ([`FabricError`]), within the time that the peer gave.
//!
//! What lives in regions is laid out in words from the start, so that every fabric serves it
//! unchanged. There are two: within a process ([`in_process`]), the embedded default, and memory
//! that processes of one machine share ([`shared_memory`]).

pub mod batch;
pub mod in_process;
#[cfg(not(feature = "shuttle"))]
mod mapping;
mod owned;
pub mod region;
#[cfg(not(feature = "shuttle"))]
pub mod shared_memory;
mod words;

pub use batch::{Answers, Batch, Completion};
pub use in_process::InProcessFabric;
pub use owned::OwnedRegion;
pub use region::{Epoch, Fabric, FabricError, Peer, Region};
#[cfg(not(feature = "shuttle"))]
pub use shared_memory::{SharedMemoryFabric, SharedMemoryPeer};
