//! Sessions elsewhere: [`firn_wire::Service`] as messages over links.
//!
//! ```text
//!   clients ─► wire::Server ─► Front ──── links ────► SessionService ─► wire::Service
//!              TLS, packets,     │  one request a        │ one thread a running
//!              passwords         │  command              │ command
//!                                └ what it keeps of      └ sessions, by the front and the
//!                                  each session            connection's number
//! ```
//!
//! A *front* is a process that has clients and no data; a *backend* runs their sessions. Clients of
//! a front share its few links. Answers come back as the bytes of packets, which the front passes
//! on.
//!
//! Rules, cited by number:
//!
//! * S1. *A front sends one command of a session at a time*, and the next one after the answer. The
//!   backend runs each at most once.
//! * S2. *A front attaches before it opens sessions, and its sessions end with the attachment*:
//!   when its link ends, when the backend gives up, or when the front says so. A front that
//!   attaches again has no sessions. So a session is at one backend at a time, as far as its front
//!   knows.
//! * S3. *Each answer carries what the front keeps of the session* ([`firn_wire::Carried`]): with
//!   it, the front opens the session again at another backend.
//! * S4. *What was not executed is sent again; what may have been is not*, except for a statement
//!   that only reads and of which the client has nothing yet. A command in an open transaction that
//!   cannot have committed it gets error 1213. A statement that wrote rows, and a `COMMIT`, leave a
//!   note with what they commit: the next writer is asked for it, and the statement is answered,
//!   sent again, or gets error 1213. For everything else the client is told that the outcome is
//!   unknown.
//! * S5. *An interruption does not wait*: cancellations and ends of sessions travel on a link of
//!   their own, so that running commands do not take their room.
//! * S6. *A long command comes in parts*, which are answered at once, so that the room that it has
//!   on its link while it runs is small.
//! * S7. *A backend that is leaving runs begun transactions to their end, and nothing else*: it
//!   takes no session more, and each session goes on elsewhere once it is at the end of a
//!   statement, and has no transaction and nothing else that ends with the backend. Later it *hands
//!   over*: then such a session goes on, too, and leaves what it has with the service. Where it
//!   goes on, it asks for that. The client gets error 1213 if its transaction is not there, and
//!   error 1053 if its tables and locks are not.
//! * S8. *A session has one home, the node that writes, and may read apart from it*, in its front's
//!   process or, if its home is not there, at another node: what it has at the home alone (changes,
//!   temporary tables, locks) keeps its reads there too. What was set up reaches the
//!   other place before the next command there, by opening the session again; the results of the
//!   last statements travel with the command. A read that the other place has not begun to answer
//!   runs at home.
//! * S10. *A transaction that has only read may be at the place for reading.* It moves home before
//!   its first statement that does not only read, with its snapshot and what it has read, and is
//!   open where it was until the home has it. It is in one place at a time, as far as its front
//!   knows. Where the session's transactions have lately written, they begin at home.
//!
//! * S9. *A command that holds a backend up that hands over is cut*
//!   ([`firn_wire::Canceller::cut`]), unless a part of its answer is on its way or it does what the
//!   session does not carry: it ends as if it had not been run, and is refused as one that was not
//!   (S4). The front gives it to the next backend, with what it kept of the session from before the
//!   command.
//!
//! * S11. *A backend that is paused opens no session, and says so.* Fronts then ask it seldom. A
//!   client of theirs that waits for a backend has them wake it ([`Backends::wake`]) and ask often.
//!
//! `docs/formats/session_service.md` describes the bytes.
//!
//! Architecture invariant: it knows the wire's seam alone; any `wire::Service` can be served.

mod activity;
mod backend;
mod front;
pub mod message;
mod workers;

pub use activity::Activity;
pub use backend::SessionService;
pub use front::{
    BackendLinks, Backends, Front, FrontOptions, Judge, Route, Router, StatementClass,
};

/// The number of the service in a link, at the node that writes.
pub const SESSION_SERVICE: firn_link::ServiceId = firn_link::ServiceId(0x0601);
/// The same service at nodes that only read (S8).
pub const READING_SERVICE: firn_link::ServiceId = firn_link::ServiceId(0x0602);
