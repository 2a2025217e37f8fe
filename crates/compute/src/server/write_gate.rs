//! The gate for statements that write: it is closed while a session of any compute node holds the
//! lock of `FLUSH TABLES WITH READ LOCK`.
//!
//! ```text
//!   server   closed += 1, then waits until writers = 0     (each counts up before it looks,
//!   writer   writers += 1, then looks: closed = 0, or       so one of two sees the other)
//!            goes back
//! ```
//!
//! Statements that write, changes of definitions and `COMMIT` are writers while they run; an idle
//! transaction that has written is not one. A writer that finds the gate open asks no other node:
//! two atomic additions are its whole cost.
//!
//! Rule: nothing is locked while a writer waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use firn_api::server::{Patience, ServerState, ServerStateError};
use firn_base::event::Event;
use firn_sql::error::{Result, SqlError};

use super::wait;

pub struct WriteGate {
    server: Arc<dyn ServerState>,
    /// Closes without their opens. Negative while an open has overtaken its close.
    closed: AtomicI64,
    writers: AtomicU64,
    opened: Event,
}

impl std::fmt::Debug for WriteGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteGate")
            .field("closed", &self.closed)
            .field("writers", &self.writers)
            .finish_non_exhaustive()
    }
}

/// A running statement that writes; dropping it ends it.
#[derive(Debug)]
pub struct Writing(Arc<WriteGate>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl WriteGate {
    /// The gate of a compute node of this server.
    #[must_use]
    pub fn new(server: Arc<dyn ServerState>) -> WriteGate {
        WriteGate {
            server,
            closed: AtomicI64::new(0),
            writers: AtomicU64::new(0),
            opened: Event::new(),
        }
    }

    /// Whether a session of any compute node may hold the read lock.
    #[must_use]
    pub fn may_be_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst) != 0
    }

    /// Lets a statement write, if the gate is open. Does not block.
    #[must_use]
    pub fn try_write(self: &Arc<Self>) -> Option<Writing> {
        self.try_enter().then(|| Writing(Arc::clone(self)))
    }

    /// Lets a statement of a connection write, once the gate is open. Blocks.
    ///
    /// # Errors
    /// 1223 if the connection itself holds the read lock, 1205 after the timeout, 1317 if the
    /// statement was cancelled.
    pub fn write(self: &Arc<Self>, connection: u64, patience: &Patience<'_>) -> Result<Writing> {
        if !self.try_enter() {
            if self.server.holds_read_lock(connection) {
                let why = "Can't execute the query because you have a conflicting read lock";
                return Err(SqlError::new(1223, why));
            }
            wait(&self.opened, patience, &|| self.try_enter()).map_err(refused)?;
        }
        Ok(Writing(Arc::clone(self)))
    }

    /// Stops further statements from writing.
    pub(crate) fn close(&self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }

    /// Undoes one [`WriteGate::close`].
    pub(crate) fn open(&self) {
        self.closed.fetch_sub(1, Ordering::SeqCst);
        self.opened.notify_all();
    }

    pub(crate) fn have_writers_ended(&self) -> bool {
        self.writers.load(Ordering::SeqCst) == 0
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst) > 0
    }

    fn try_enter(&self) -> bool {
        self.writers.fetch_add(1, Ordering::SeqCst);
        if !self.is_closed() {
            return true;
        }
        self.leave();
        false
    }

    fn leave(&self) {
        if self.writers.fetch_sub(1, Ordering::SeqCst) == 1 && self.is_closed() {
            self.server.writers_ended();
        }
    }
}

/// The client's error if the server state refused something.
pub(crate) fn refused(error: ServerStateError) -> SqlError {
    match error {
        ServerStateError::TimedOut => SqlError::lock_wait_timeout(),
        ServerStateError::Cancelled => SqlError::interrupted(),
        ServerStateError::NotAMember(_) => SqlError::new(1053, "Server shutdown in progress"),
        ServerStateError::Full(_) | ServerStateError::Unavailable(_) => {
            SqlError::new(1105, error.to_string())
        }
    }
}
