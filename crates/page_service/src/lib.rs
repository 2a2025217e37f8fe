//! A page store elsewhere: [`firn_api::PageStore`] as messages over links.
//!
//! ```text
//!   database node                                            page nodes
//!   buffer ─► RemotePages ─ placement ─► Caller ═ link ═ PageService ─► PageStore
//!               │  batches split by node, hedged              │  pages that wait for log
//!               │  leases, renewed                            │  leases by client, with an end
//!               └─ applied positions, as last heard           └─ sealed images
//! ```
//!
//! Rules, cited by number:
//!
//! * P1. *Pages never go to page nodes.* They make their own from the log, so a client that dies
//!   leaves nothing half done.
//! * P2. *A reply is checked by its receiver*: checksum, page id, and that it is as new as the
//!   request. A node that fails the check counts as one that has no page.
//! * P3. *A page that waits for log delays no other.* The node answers the pages of a batch whose
//!   log has arrived, and keeps the rest aside, on no thread of the link.
//! * P4. *The first good answer counts.* A read asks one node, a further one if the first is slow
//!   or fails, and so on; all of them give the same bytes at the same position (001 §3.4).
//! * P5. *A client says what it holds as a whole list*, again and again. A node that was restarted
//!   or has joined gets the same leases; a node that hears nothing for the time-out ends them.
//! * P6. *A page is covered when every node of its chunk has it durable*
//!   (`docs/decisions/2026-11-25-covered-by-every-page-node.md`).
//!
//! `docs/formats/page_service.md` describes the bytes.
//!
//! Architecture invariant: it knows the seam alone; any `PageStore` can be served.

pub mod client;
mod codec;
pub mod message;
pub mod server;

use firn_link::ServiceId;

pub use client::{
    PageNodeLink, PlacedChunk, PlacedPart, Placement, PlacementError, RemotePages,
    RemotePagesOptions, RemotePagesStatistics,
};
pub use codec::Damage;
pub use server::{PageService, PageServiceOptions, PageServiceStatus};

/// The number of the page service in a node's links.
pub const PAGE_SERVICE: ServiceId = ServiceId(0x0301);
