//! Open sessions on their way to the next writer, in a planned switch: their transactions, and what
//! else ends with a server.
//!
//! ```text
//!   writer                                  the member that leads next
//!   sessions have left what they had
//!   markers in the log ── Keep ───────────► keeps what it was told
//!                        ◄── kept ─────────
//!   lets it lead                            leads, and opens its engine with that
//!   it does not lead: ── Forget ──────────► opens without, whenever it leads
//! ```
//!
//! Rules, cited by number:
//!
//! 1. *A session goes on at one writer.* The one that goes on writing after all has what its own
//!    sessions have left back only once the other one has forgotten it; otherwise it ends that, and
//!    rolls transactions back.
//! 2. *What was kept is for the next term.* It is dropped after [`KEPT`], and where a transaction's
//!    undo log does not end with the marker of this handover, the engine drops it.
//!
//! `docs/formats/handed-transactions.md` describes the bytes.

use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::HandedSessions;
use firn_base::Environment;
use firn_consensus::MemberId;
use firn_link::{
    CallError, Caller, FIRST_SERVICE_CODE, Offer, Peer, Placement, Request, Responder, Service,
    ServiceId,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::versioned::{decode, encode};

/// Tells a process what it needs as the next writer.
const SERVICE: ServiceId = ServiceId(0x0104);
const VERSION: u8 = 2;
/// How long the next writer has to answer.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long something is kept for a writer that does not begin.
const KEPT: Duration = Duration::from_secs(10);

/// The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Message {
    /// What goes on at the writer of the next term.
    Keep(HandedSessions),
    /// The handover with this number has failed.
    Forget { number: u64 },
}

/// What this process was told as the next writer.
pub(crate) struct Handovers {
    environment: Environment,
    /// With the time on the monotonic clock at which it came.
    kept: Mutex<Option<(Duration, HandedSessions)>>,
}

impl Handovers {
    pub(crate) fn new(environment: &Environment) -> Arc<Handovers> {
        Arc::new(Handovers { environment: environment.clone(), kept: Mutex::default() })
    }

    pub(crate) fn offer(self: &Arc<Self>) -> Offer {
        let service = Arc::clone(self) as _;
        Offer { id: SERVICE, placement: Placement::Workers, service }
    }

    /// What goes on at the engine that is about to be opened (rule 2).
    pub(crate) fn take(&self) -> HandedSessions {
        let now = self.environment.clock.monotonic();
        let kept = self.kept.lock().take();
        let kept = kept.filter(|(since, _)| now.saturating_sub(*since) < KEPT);
        kept.map(|(_, handed)| handed).unwrap_or_default()
    }

    fn told(&self, message: Message) {
        let now = self.environment.clock.monotonic();
        let mut kept = self.kept.lock();
        match message {
            Message::Keep(handed) => *kept = Some((now, handed)),
            Message::Forget { number } => {
                kept.take_if(|(_, handed)| handed.node.number == number);
            }
        }
    }
}

impl Service for Handovers {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        match decode::<Message>(VERSION, &request.payload) {
            Some(message) => {
                self.told(message);
                responder.reply(Vec::new());
            }
            None => responder.refuse(FIRST_SERVICE_CODE, "the message is not one of this release"),
        }
    }
}

/// Links to the members that may lead.
pub(crate) type MemberLinks = Box<dyn Fn(MemberId) -> Option<Arc<Caller>> + Send + Sync>;

/// Has the next writer keep sessions. Blocks for its answer.
///
/// # Errors
/// It may have kept them, or not.
pub(crate) fn keep(next: &Caller, handed: HandedSessions) -> Result<(), CallError> {
    tell(next, &Message::Keep(handed))
}

/// Has it forget them again. Blocks for its answer.
///
/// # Errors
/// It may go on with them.
pub(crate) fn forget(next: &Caller, number: u64) -> Result<(), CallError> {
    tell(next, &Message::Forget { number })
}

fn tell(next: &Caller, message: &Message) -> Result<(), CallError> {
    next.call(SERVICE, encode(VERSION, message), TIMEOUT).map(drop)
}

#[cfg(test)]
mod tests;
