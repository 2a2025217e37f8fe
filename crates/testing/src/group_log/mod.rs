//! A replicated log group under the simulator: processes with a `firn_storage::group::GroupStore`
//! each, over disks that lose what is not synced and a network that fails.
//!
//! ```text
//!   host log-1          host log-2          host log-3
//!   GroupStore ◄──────► GroupStore ◄──────► GroupStore      they die with their processes
//!   MemberDisk          MemberDisk          MemberDisk      they stay
//! ```

mod cluster;
mod disk;
mod peer_fault;

pub use cluster::{GroupCluster, GroupSettings};
pub use disk::{DiskFault, MemberDisk};
pub use peer_fault::PeerFault;
