//! Packets: the units of both directions, and the primitive fields in them.
//!
//! ```text
//!   3 bytes          1 byte     length bytes
//!   payload length   sequence   payload
//! ```
//!
//! A payload of 16 MiB − 1 or more continues in the next packet, until a shorter (perhaps empty)
//! packet ends it. Sequence numbers count packets from 0 in every exchange, modulo 256, over both
//! directions.

mod reader;
mod writer;

pub(crate) use reader::{Malformed, PayloadReader};
pub(crate) use writer::PayloadWriter;

/// The length of a packet's header.
pub(crate) const HEADER_LENGTH: usize = 4;

/// The longest payload of one packet; one of just this length is continued in the next.
pub(crate) const MAX_PAYLOAD_LENGTH: usize = 0xff_ffff;

#[cfg(test)]
mod tests;
