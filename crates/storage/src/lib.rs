//! Storage: where the log and the pages are. [`local`] is a directory on this machine, [`group`] a
//! log that several nodes keep, [`page_node`] pages that follow the log of other nodes.

pub mod follower;
pub mod group;
pub mod leases;
pub mod local;
pub mod page_node;
mod sync;
