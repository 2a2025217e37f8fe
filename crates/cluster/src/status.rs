//! The service by which processes tell of themselves.

use std::sync::Arc;
use std::time::Duration;

use firn_link::{
    CallError, Caller, Offer, Peer, Placement, Request, Responder, Service, ServiceId,
};

use crate::message::NodeStatus;

/// Asks a process for its [`NodeStatus`]; the request is empty.
pub(crate) const SERVICE: ServiceId = ServiceId(0x0101);

/// Tells the state of this process.
pub(crate) struct StatusService(pub(crate) Arc<dyn Fn() -> NodeStatus + Send + Sync>);

impl StatusService {
    pub(crate) fn offer(self) -> Offer {
        Offer { id: SERVICE, placement: Placement::Workers, service: Arc::new(self) }
    }
}

impl Service for StatusService {
    fn serve(&self, _: &Peer, _: Request, responder: Responder) {
        responder.reply((self.0)().encode());
    }
}

/// Why a process does not tell its state.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Message(#[from] crate::message::NotAStatus),
}

/// The state of the process at the other end of a link. Blocks for `timeout` at most.
///
/// # Errors
/// If the process does not answer, or not in words of this release.
pub(crate) fn ask(caller: &Caller, timeout: Duration) -> Result<NodeStatus, AskError> {
    let answer = caller.call(SERVICE, Vec::new(), timeout)?;
    Ok(NodeStatus::decode(&answer)?)
}
