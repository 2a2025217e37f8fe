//! The buffer pool: a node's pages in memory.
//!
//! ```text
//!            operation                          pool                          page store
//!   shared / exclusive / optimistic ──► translation ──► frame, latch
//!        │ Miss(page): release all guards
//!        └─ load(page) ───────────────► one read per page ─────────────────► read(version)
//!           prefetch(pages) ──────────► one call per batch ────────────────► read_many(versions)
//!           run again                   eviction ──── dirty, durable ──────► offer(image)
//!                                       copy_image ◄─────────────────────── asks in the background
//!                                       (both only with a store in the same address space)
//! ```
//!
//! The pool never flushes a page to make it durable: a page is a cache of the log, and a frame may
//! be dropped as soon as the log up to its LSN is durable. Relations that hold for a cached page:
//!
//! ```text
//!   page.lsn = frame.lsn                     under the latch, from `mark_changed` on
//!   dirty  ⟺  frame.lsn > stored_lsn and the store does not cover frame.lsn
//!   dropped only if frame.lsn ≤ durable      (or its space was discarded)
//!   loaded version ≥ every dropped version
//! ```
//!
//! A pool shows its pages at their newest version, or at an applied position of the log that a
//! [`LogApplier`] moves forward.
//!
//! The latch and lock rules are in this crate's README; code cites them by number.

mod background;
mod batch;
mod clock;
mod eviction;
mod follow;
mod frame;
mod free_frames;
mod guard;
mod latching;
mod load;
mod memory;
mod operation_limits;
mod optimistic;
mod pending_loads;
mod pool;
mod read_point;
mod reservation;
mod signals;
mod statistics;
mod sync;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod tier;
mod translation;

pub use crossbeam_epoch::{Guard as EpochGuard, pin as pin_epoch};
pub use follow::{ApplyFailure, LogApplier};
pub use frame::Access;
pub use guard::{ExclusiveGuard, Miss, PagePin, SharedGuard};
pub use load::LoadOptions;
pub use operation_limits::{PINS_PER_TURN, Turn};
pub use optimistic::OptimisticGuard;
pub use pool::{BufferPool, BufferPoolOptions, DurableLsn, LogEnd, MIN_FRAMES, RequestDurable};
pub use reservation::FrameReservation;
pub use statistics::PoolStatistics;
