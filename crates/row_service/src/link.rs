//! How messages get from a client to its service.

use std::sync::Arc;

use firn_api::rows::DatabaseNode;

use crate::server::RowService;

/// Why a message did not arrive, or its reply did not come back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct LinkError {
    pub reason: String,
}

/// The way to one node's [`RowService`]. Messages of one thread arrive in order.
pub trait Link: Send + Sync {
    /// Sends a call and returns its reply. Blocks.
    ///
    /// # Errors
    /// The reply did not come. The call may have been executed.
    fn call(&self, message: Vec<u8>) -> Result<Vec<u8>, LinkError>;
    /// Sends a message that has no reply. If it is lost, the end of the link makes up for it: the
    /// service drops what it holds for the client (M5).
    fn cast(&self, message: Vec<u8>);
}

/// A link to a node in the same process: each message is encoded, decoded and executed at once.
pub struct Loopback {
    service: RowService,
}

impl Loopback {
    /// A link to a service for `node`.
    #[must_use]
    pub fn to(node: Arc<dyn DatabaseNode>) -> Loopback {
        Loopback { service: RowService::new(node) }
    }
}

impl Link for Loopback {
    fn call(&self, message: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        self.service.call(&message).map_err(|damage| LinkError { reason: damage.to_string() })
    }

    fn cast(&self, message: Vec<u8>) {
        // An invalid cast is the client's fault; the next call shows it.
        let _ = self.service.cast(&message);
    }
}
