//! The log of one member of a replicated group.
//!
//! [`member_log`] is the seam between a member's driver, which carries out the commands of a
//! `firn_consensus::Member`, and the place where the member keeps its log.

pub mod member_log;

pub use member_log::MemberLog;
