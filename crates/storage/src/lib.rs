//! Storage: where the log and the pages are. This build has the local directory; remote chunks can
//! implement the same seams.

pub mod follower;
pub mod group;
pub mod leases;
pub mod local;
pub mod page_node;
mod sync;
