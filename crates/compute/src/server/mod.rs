//! The state that belongs to the server and not to a session, for compute nodes of one process; and
//! a compute node's duties as a member of its server.
//!
//! ```text
//!   Instance ──► ServerState ◄── LocalServerState: members, variables, user locks, read lock
//!      └─ WriteGate  (a writer enters without asking the server)
//! ```
//!
//! [`firn_api::server`] has the seam and its invariants.

mod local;
#[cfg(test)]
mod tests;
mod user_locks;
mod write_gate;

pub use local::LocalServerState;
pub(crate) use write_gate::refused;
pub use write_gate::{WriteGate, Writing};

use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::server::{Patience, ServerStateError};
use firn_base::event::Event;

/// How often a waiting session checks whether it was cancelled.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until `is_ready`, rechecked when `changed` is notified.
fn wait(
    changed: &Event,
    patience: &Patience<'_>,
    is_ready: &dyn Fn() -> bool,
) -> Result<(), ServerStateError> {
    let mut left = patience.timeout;
    loop {
        let slice = left.map_or(LOOK_INTERVAL, |left| left.min(LOOK_INTERVAL));
        if changed.wait_until(Some(slice), is_ready) {
            return Ok(());
        }
        if patience.cancelled.load(Ordering::Relaxed) {
            return Err(ServerStateError::Cancelled);
        }
        left = left.map(|left| left.saturating_sub(slice));
        if left == Some(Duration::ZERO) {
            return Err(ServerStateError::TimedOut);
        }
    }
}
