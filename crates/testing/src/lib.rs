//! The tools of Firn's tests. Only tests import this crate.
//!
//! * [`simulation`] runs a whole cluster in one process, one task at a time, from a seed;
//! * [`history`] records concurrent transactions and checks which isolation they had;
//! * [`workload`] draws transactions from a seed and runs them against anything that has sessions;
//! * [`group_log`] runs a replicated log group, with disks and a network that fail;
//! * [`quorum_log`] is a log store whose copies are elsewhere, from a seed;
//! * [`crash`] kills a real program again and again and verifies it.

#![allow(clippy::disallowed_types, reason = "tests look at the machine from outside")]

pub mod crash;
pub mod group_log;
pub mod history;
pub mod quorum_log;
pub mod random;
pub mod simulation;
pub mod workload;
