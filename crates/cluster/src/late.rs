//! A service whose part of the process is not open yet: the server listens before page nodes open,
//! because they wait for a log whose members speak to each other through it.

use std::sync::{Arc, OnceLock};

use firn_link::{Offer, Peer, Placement, Request, Responder, Service, ServiceId};

/// A service that begins later. Until then requests have no answer, and their callers ask another
/// node, or ask again.
#[derive(Default)]
pub(crate) struct LateService(OnceLock<Arc<dyn Service>>);

impl LateService {
    /// The service as an offer. What begins later runs on workers.
    pub(crate) fn offer(self: &Arc<LateService>, id: ServiceId) -> Offer {
        let service = Arc::clone(self) as Arc<dyn Service>;
        Offer { id, placement: Placement::Workers, service }
    }

    /// Requests go to `service` from now on.
    pub(crate) fn begin(&self, service: Arc<dyn Service>) {
        let is_first = self.0.set(service).is_ok();
        assert!(is_first, "a service begins once");
    }
}

impl Service for LateService {
    fn serve(&self, peer: &Peer, request: Request, responder: Responder) {
        if let Some(service) = self.0.get() {
            service.serve(peer, request, responder);
        }
    }
}
