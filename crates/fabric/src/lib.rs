//! One-sided memory: regions of words that another node reads and changes without running code of
//! the owner's database threads (papers 000 §4.3, 003: RDMA verbs).
//!
//! ```text
//!   owner                                   peer
//!   fabric.register("timestamps", 16)       peer.connect("timestamps")
//!     └► OwnedRegion::words()                 └► Region::submit(batch) ─► Completion::wait
//!        the words themselves                    read · write · compare and swap · add
//! ```
//!
//! The owner uses the words directly and pays nothing for peers. A peer submits batches, several of
//! which may be under way, and each completion reports the end of its batch. A peer may rely on
//! this:
//!
//! * each word is read and written whole, and the operations of a batch happen in their order, also
//!   for an owner that uses sequentially consistent operations: a write is seen before the next
//!   operation of its batch reads. Several words are not a unit: the layout of a region says how a
//!   reader detects a half-done change;
//! * a region belongs to one [`Epoch`] of its owner. After that epoch has ended (the owner has died
//!   or begun another epoch), every access fails, so no peer reads what a former owner left behind;
//! * a failure is reported as a [`FabricError`], within the timeout that the peer gave.
//!
//! The content of regions is laid out in words, so that every fabric serves it unchanged. There are
//! two fabrics: within a process ([`in_process`]), the embedded default, and memory that processes
//! of one machine share ([`shared_memory`]). Peers on other machines reach the regions of either
//! through `firn_region_service`, and shared memory through `firn_rdma`.

pub mod batch;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod epoch;
mod error;
#[cfg(not(feature = "shuttle"))]
pub mod header;
pub mod in_process;
#[cfg(not(feature = "shuttle"))]
mod mapping;
mod owned;
pub mod region;
#[cfg(not(feature = "shuttle"))]
pub mod shared_memory;
mod words;

pub use batch::{Answers, Batch, Completion};
pub use epoch::Epoch;
pub use error::FabricError;
pub use in_process::InProcessFabric;
pub use owned::OwnedRegion;
pub use region::{Fabric, Peer, Region};
#[cfg(not(feature = "shuttle"))]
pub use shared_memory::{SharedMemoryFabric, SharedMemoryPeer};
