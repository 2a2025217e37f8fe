//! A server whose calls to its database node are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_row_service::{Link, LinkError, Loopback};

use crate::server::{Server, remote};

/// A link that counts calls and bytes.
pub(crate) struct CountingLink {
    inner: Loopback,
    calls: AtomicU64,
    received_bytes: AtomicU64,
}

/// What has crossed a link so far.
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) received_bytes: u64,
}

impl CountingLink {
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            calls: self.calls.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Link for CountingLink {
    fn call(&self, message: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        let reply = self.inner.call(message)?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.received_bytes.fetch_add(reply.len() as u64, Ordering::Relaxed);
        Ok(reply)
    }

    fn cast(&self, message: Vec<u8>) {
        self.inner.cast(message);
    }
}

/// A server whose statements reach their node through messages, and its link.
pub(crate) fn start_counted() -> (Server, Arc<CountingLink>) {
    let mut link = None;
    let server = Server::start_with(|rows| {
        let counting = Arc::new(CountingLink {
            inner: Loopback::to(rows),
            calls: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
        });
        link = Some(Arc::clone(&counting));
        remote(counting)
    });
    (server, link.expect("the server opens its node"))
}
