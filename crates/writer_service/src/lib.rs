//! The node that writes, elsewhere: [`firn_api::WriterNode`] as messages over links.
//!
//! ```text
//!   replica                                       node that writes
//!   RemoteWriter ── take place, look, newest ───► WriterService ─► WriterNode
//!        ◄── positions, or a refusal ───────────       │ places, each with an end
//! ```
//!
//! Rules, cited by number:
//!
//! * W1. *Who answers [`newest`](firn_api::WriterNode::newest) led at that moment.* The service
//!   reads the positions and then asks whether its process surely leads. A lease that holds after
//!   the read means that no other writer had begun before it. A process that is not sure refuses.
//! * W2. *A place ends by its time.* A replica that has not looked for [`LEASE`] loses its place,
//!   and what it held may be purged. It never gets the place back, so a look that succeeds says
//!   that the place was held all the time before.
//! * W3. *An answer is of one epoch.* Each names the writer's epoch; a client that hears another
//!   one than its own takes its writer for ended.
//!
//! `docs/formats/writer_service.md` describes the bytes.
//!
//! Architecture invariant: it knows the seam alone; any `WriterNode` can be served.

pub mod client;
pub mod message;
pub mod server;

use std::time::Duration;

pub use client::RemoteWriter;
pub use message::SharedRegions;
pub use server::{SurelyLeads, WriterService};

/// The number of the service in a link.
pub const WRITER_SERVICE: firn_link::ServiceId = firn_link::ServiceId(0x0401);

/// How long a place is kept for a replica that does not look.
pub const LEASE: Duration = Duration::from_secs(10);
