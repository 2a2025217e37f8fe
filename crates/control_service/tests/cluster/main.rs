//! Control nodes and their clients in simulated processes: over disks that lose what is not synced,
//! and a network that is cut, slow and reset.

mod bugs;
mod checker;
mod faults;
mod forgetful;
mod node;
mod raw;
mod stories;
mod world;
