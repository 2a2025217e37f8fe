//! A service whose part of the process opens and closes while the server listens. A server listens
//! before all parts are open where parts of several processes wait for each other.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::item::ServiceId;
use crate::server::{Offer, Peer, Placement, Request, Responder, Service};

/// A service that begins later, and may end before the server does. In between requests have no
/// answer, and their callers ask another node, or ask again.
#[derive(Default)]
pub struct LateService(RwLock<Option<Arc<dyn Service>>>);

impl LateService {
    /// The service as an offer. What begins later runs where `placement` says.
    #[must_use]
    pub fn offer(self: &Arc<LateService>, id: ServiceId, placement: Placement) -> Offer {
        Offer { id, placement, service: Arc::clone(self) as Arc<dyn Service> }
    }

    /// Requests go to `service` from now on.
    ///
    /// # Panics
    /// If the service before has not ended.
    pub fn begin(&self, service: Arc<dyn Service>) {
        let before = self.0.write().replace(service);
        assert!(before.is_none(), "the service before has ended");
    }

    /// Requests that come in from now on have no answer.
    pub fn end(&self) {
        *self.0.write() = None;
    }
}

impl Service for LateService {
    fn serve(&self, peer: &Peer, request: Request, responder: Responder) {
        let service = self.0.read().clone();
        if let Some(service) = service {
            service.serve(peer, request, responder);
        }
    }
}
