//! Which readers hold the log, and how far it may be truncated.
//!
//! ```text
//!            floor ≤ the least position that a reader holds ≤ durable
//!   ── gone ───┴────────────────────────────────────────────────┴──►
//! ```
//!
//! The floor moves and readers register under one mutex, so no reader gets a lease on log that is
//! about to be truncated. Every log store that keeps its log in one place can use this table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_api::LogError;
use firn_base::Lsn;
use parking_lot::Mutex;

#[derive(Debug)]
pub struct Leases {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    floor: Lsn,
    readers: Vec<Arc<Reader>>,
}

#[derive(Debug)]
struct Reader {
    name: String,
    limit_bytes: u64,
    held: AtomicU64,
    is_dropped: AtomicBool,
}

/// A reader's hold on the log. Dropping it releases the log.
#[derive(Debug)]
pub struct Lease(Arc<Reader>);

/// A lease, as listings show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStatus {
    /// The reader's name.
    pub name: String,
    /// Log from here on is kept for the reader.
    pub held: Lsn,
    /// The most log that is kept for it, in bytes before the durable end.
    pub limit_bytes: u64,
}

impl Leases {
    /// No leases, on a log that is truncated up to `floor`.
    #[must_use]
    pub fn new(floor: Lsn) -> Leases {
        Leases { state: Mutex::new(State { floor, readers: Vec::new() }) }
    }

    /// Holds the log from `from` on, for a reader that may hold back `limit_bytes` before the
    /// durable end.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`] if the log before `from` is gone or `from` is not durable.
    pub fn take(
        &self,
        name: &str,
        from: Lsn,
        limit_bytes: u64,
        durable: Lsn,
    ) -> Result<Lease, LogError> {
        let mut state = self.state.lock();
        if from < state.floor || from > durable {
            return Err(LogError::OutOfRange { position: from, from: state.floor, to: durable });
        }
        let reader = Arc::new(Reader {
            name: name.to_owned(),
            limit_bytes,
            held: AtomicU64::new(from.0),
            is_dropped: AtomicBool::new(false),
        });
        state.readers.push(Arc::clone(&reader));
        Ok(Lease(reader))
    }

    /// How far the log may be truncated if only readers need log before `wanted`. Drops a reader
    /// that holds back more than its limit.
    #[must_use]
    pub fn raise_floor(&self, wanted: Lsn, durable: Lsn) -> Lsn {
        let mut state = self.state.lock();
        state.readers.retain(|reader| Arc::strong_count(reader) > 1);
        let mut floor = wanted.min(durable);
        state.readers.retain(|reader| {
            let held = Lsn(reader.held.load(Ordering::SeqCst));
            if held < floor && durable.0 - held.0 > reader.limit_bytes {
                reader.is_dropped.store(true, Ordering::SeqCst);
                tracing::warn!(reader = %reader.name, %held, limit_bytes = reader.limit_bytes, "a reader of the log is too far behind and was dropped");
                return false;
            }
            true
        });
        for reader in &state.readers {
            floor = floor.min(Lsn(reader.held.load(Ordering::SeqCst)));
        }
        state.floor = state.floor.max(floor);
        state.floor
    }

    /// The leases, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<LeaseStatus> {
        let state = self.state.lock();
        let held = state.readers.iter().filter(|reader| Arc::strong_count(reader) > 1);
        let status = |reader: &Arc<Reader>| LeaseStatus {
            name: reader.name.clone(),
            held: Lsn(reader.held.load(Ordering::SeqCst)),
            limit_bytes: reader.limit_bytes,
        };
        held.map(status).collect()
    }
}

impl Lease {
    /// Releases the log before `lsn`.
    pub fn release(&self, lsn: Lsn) {
        self.0.held.fetch_max(lsn.0, Ordering::SeqCst);
    }

    /// Fails once the reader was dropped.
    ///
    /// # Errors
    /// [`LogError::ReaderDropped`].
    pub fn check(&self) -> Result<(), LogError> {
        if self.0.is_dropped.load(Ordering::SeqCst) {
            return Err(LogError::ReaderDropped {
                name: self.0.name.clone(),
                held: Lsn(self.0.held.load(Ordering::SeqCst)),
                limit_bytes: self.0.limit_bytes,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
