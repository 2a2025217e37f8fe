//! Links between the processes of a cluster: calls, one-way messages and streams over
//! `firn_base::network`.
//!
//! ```text
//!   Caller ── call, begin ──►  items ──►  reader ──► worker ──► Service::serve
//!          ── cast ─────────►    │                                  │
//!          ── follow ───────►    │ one write has the items          ▼
//!   wait  ◄── link task ◄────────┴─ of several threads ◄──────  Responder
//! ```
//!
//! Promises to callers:
//!
//! 1. A request is executed at most once for each time that it was sent, and never again by the
//!    link itself: after a connection has ended, the caller decides.
//! 2. [`CallError`] says what is known. *Not sent*: no service has seen the request. *Refused*: the
//!    peer says why. *Unknown*: it may have been executed, or may still be.
//! 3. Everything ends by its deadline, which travels with the request: the server does not begin
//!    what nobody waits for.
//! 4. Casts of one thread, and the messages of a stream, arrive in order, and none of a connection
//!    after a missing one.
//! 5. A server that is slow slows its callers down, not its memory up: requests take room from a
//!    window that the server announced, and get it back when they are finished. Answers wait in the
//!    server until the client reads, and hold up its workers, but only as far as `queue_bytes`.
//! 6. A node of another cluster or of an older epoch is refused, and both sides name both sides
//!    ([`hello`]). When this process learns of a newer epoch, links of the older one end.
//!
//! Latch rules are numbered in the files: 1 sender, 2 credit, 3 session, 4 and 5 link task, 6 pool,
//! 7 desk, 8 casts, 9 server. In short: every mutex is a leaf, and none is held across a send, a
//! wait or a call to a service.
//!
//! Architecture invariant: payloads are bytes; nothing here knows what a service does.
//! Architecture invariant: what is done on threads, in time or at random goes through the
//! environment, so that the simulator replays it.

mod backoff;
mod client;
mod credit;
pub mod error;
mod handshake;
pub mod hello;
pub mod item;
mod late;
mod local;
mod payload;
mod sender;
mod server;
mod statistics;

pub use client::{Call, Caller, CallerSettings, Follower, Next};
pub use error::{CallError, FIRST_SERVICE_CODE, LinkError, Refused};
pub use handshake::meet;
pub use hello::{Answer, Hello, Refusal};
pub use item::ServiceId;
pub use late::LateService;
pub use local::LocalNode;
pub use payload::{Body, Payload};
pub use sender::MAX_PAYLOAD_BYTES;
pub use server::{
    Offer, Peer, PeerStatistics, Placement, PushError, Request, RequestKind, Responder, Server,
    ServerSettings, Service,
};
pub use statistics::{LATENCY_BUCKETS, LinkStatistics};
