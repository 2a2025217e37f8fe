//! The shell of control: what runs [`firn_control`] on the control nodes, and what all other nodes
//! talk to it with.
//!
//! ```text
//!   every node                    control node 1 (leads)             control nodes 2, 3
//!   ControlClient ── calls ────►  ControlNode                        ControlNode
//!     register                      Controller ◄── entries ──┐         Controller
//!     heartbeat  ◄── heard ───      │ proposals              │         ▲ entries
//!     watch      ◄── catalog,       ▼                        │         │
//!     propose        orders ──    consensus::Member ◄── messages ──► consensus::Member
//!                                   │ writes                           │
//!                                 control.group                      control.group
//! ```
//!
//! Promises:
//!
//! 1. A proposal that was answered with [`message::Reply::Applied`] is in the catalog for good: a
//!    majority of the control nodes has synced it.
//! 2. A vote, and the answer that entries have arrived, leaves after [`file::MemberFile`] has
//!    synced them.
//! 3. A control node acts (sends orders, answers heartbeats and watches) only while it leads and
//!    has a lease. So a leader that was deposed acts no more once another one may act, as long as
//!    clocks differ in rate by less than a quarter. Beyond that, orders carry the term, and nodes
//!    refuse older ones ([`firn_control::Fence`]).
//! 4. Catalogs that a [`ControlClient`] hands over have ever more entries, and two with the same
//!    number of entries are the same.
//!
//! How a process uses it:
//!
//! ```text
//!   control node   seat = ControlSeat::open(environment, local, parts)
//!                  Server::start(environment, local, own address, …, seat.offers() + others)
//!   every node     ControlClient::open(environment, local, addresses, description, node, …)
//!   command line   Administrator::new(environment, local, addresses, …)
//! ```
//!
//! A process with a control node is a node too, and has a client. The first groups of a cluster are
//! founded after the control group is in the catalog: its number is 0.
//!
//! The control group's members change as those of other groups do: control plans it, and orders it
//! from the nodes. A [`ControlSeat`] carries such orders out for its process.
//!
//! Architecture invariant: nothing is decided here. What should happen is `firn_control`'s, who
//! leads is `firn_consensus`'s.

mod client;
pub mod file;
pub mod message;
mod node;
mod observer;
mod options;
mod seat;

pub use client::{
    Administrator, ClientOptions, ControlClient, ControlledNode, ProposeError, SelfDescription,
};
pub use node::{CONTROL, CONTROL_GROUP, ControlNode, OpenError};
pub use observer::Observer;
pub use options::{Beginning, ControlMembers, ControlOptions};
pub use seat::{ControlSeat, Place, SeatParts, SeatRecord, SeatState};
