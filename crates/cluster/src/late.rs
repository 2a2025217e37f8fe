//! A service whose part of the process opens and closes while the server listens. The server
//! listens before page nodes open, because they wait for a log whose members speak to each other
//! through it.

use std::sync::Arc;

use firn_link::{Offer, Peer, Placement, Request, Responder, Service, ServiceId};
use parking_lot::RwLock;

/// A service that begins later, and may end before the server does. In between requests have no
/// answer, and their callers ask another node, or ask again.
#[derive(Default)]
pub(crate) struct LateService(RwLock<Option<Arc<dyn Service>>>);

impl LateService {
    /// The service as an offer. What begins later runs on workers.
    pub(crate) fn offer(self: &Arc<LateService>, id: ServiceId) -> Offer {
        let service = Arc::clone(self) as Arc<dyn Service>;
        Offer { id, placement: Placement::Workers, service }
    }

    /// Requests go to `service` from now on.
    pub(crate) fn begin(&self, service: Arc<dyn Service>) {
        let before = self.0.write().replace(service);
        assert!(before.is_none(), "the service before has ended");
    }

    /// Requests that come in from now on have no answer.
    pub(crate) fn end(&self) {
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
