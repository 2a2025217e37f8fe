//! Moments of the log, for a process that archives and does not write.
//!
//! ```text
//!   process that archives ── moment? ──► process that writes
//!                                          1. the time
//!                                          2. is it surely the only one that writes?
//!        ◄── time, end of the durable log ── 3. the end of the durable log
//! ```
//!
//! Members learn later what is durable than clients that commit, so the archiver's own clock does
//! not say up to when everything is in its log. The writer reads the clock first, and then the end
//! of its durable log; it answers only while no other member can have been elected. So everything
//! that anybody has acknowledged by that time is before that end. It is held up for no more than a
//! millisecond between the two, or gives no answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use firn_api::{LogError, Watermarks};
use firn_archive::format::Mark;
use firn_archive::{ArchivedWriter, mark_now};
use firn_base::clock::Clock;
use firn_base::network::{NodeId, Role};
use firn_base::{Cts, Lsn, TrxId};
use firn_link::{Caller, Peer, Request, Responder, Service, ServiceId};
use firn_storage::group::GroupStore;
use serde::{Deserialize, Serialize};

use crate::layout::NodeEntry;
use crate::links::Links;
use crate::versioned::{decode, encode};
use crate::view::View;

/// Asks a process for a moment of its log.
pub(crate) const SERVICE: ServiceId = ServiceId(0x0103);
const VERSION: u8 = 1;
/// How long a process has to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The order of the fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MomentRequest {
    /// Whether the answer should have the bounds of ids, which may take reading.
    wants_watermarks: bool,
}

/// The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum MomentReply {
    /// Another process may be writing.
    Unsure,
    /// The time, the end of the durable log, and the limits of transaction ids and of commit
    /// timestamps, if they are wanted.
    Moment {
        time_ms: u64,
        durable: Lsn,
        watermarks: Option<(TrxId, Cts)>,
    },
    Failed(String),
}

/// A member of the log group in this process, which answers while it surely leads.
#[derive(Clone)]
pub(crate) struct OwnMoments {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<GroupStore>,
}

impl OwnMoments {
    fn moment(&self) -> Option<Mark> {
        mark_now(&*self.clock, || self.store.surely_durable())
    }

    fn answer(&self, request: &[u8]) -> MomentReply {
        let Some(request) = decode::<MomentRequest>(VERSION, request) else {
            return MomentReply::Failed("the question is not one of this release".to_owned());
        };
        let Some(Mark { time_ms, lsn }) = self.moment() else { return MomentReply::Unsure };
        let watermarks = request.wants_watermarks.then(|| self.store.watermarks()).transpose();
        match watermarks {
            Err(error) => MomentReply::Failed(error.to_string()),
            Ok(found) => {
                let limits = found.map(|found| (found.trx_id_limit, found.cts_limit));
                MomentReply::Moment { time_ms, durable: lsn, watermarks: limits }
            }
        }
    }
}

impl Service for OwnMoments {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        responder.reply(encode(VERSION, &self.answer(&request.payload)));
    }
}

/// The member of this process, while it has one.
pub(crate) type CurrentMoments = Box<dyn Fn() -> Option<OwnMoments> + Send + Sync>;

/// The process that writes the log, wherever it is.
pub(crate) struct ClusterWriter {
    own: CurrentMoments,
    own_number: NodeId,
    view: Arc<View>,
    links: Links,
    /// Which of the other processes is asked.
    asked: AtomicUsize,
}

impl ClusterWriter {
    pub(crate) fn new(
        (own_number, own): (NodeId, CurrentMoments),
        view: &Arc<View>,
        links: Links,
    ) -> ClusterWriter {
        let view = Arc::clone(view);
        ClusterWriter { own, own_number, view, links, asked: AtomicUsize::new(0) }
    }

    /// Asks this process, and one of the others: the one that knew it last time, or the one after
    /// the one that did not. Blocks for the answer.
    fn ask(&self, wants_watermarks: bool) -> Option<(Mark, Watermarks)> {
        if let Some(own) = (self.own)()
            && let Some(moment) = own.moment()
        {
            let watermarks = match wants_watermarks {
                true => own.store.watermarks().ok()?,
                false => Watermarks::default(),
            };
            return Some((moment, watermarks));
        }
        let layout = self.view.layout();
        let others: Vec<&NodeEntry> = layout
            .log_members()
            .map(|(_, node)| node)
            .filter(|node| node.has(Role::Database) && node.number != self.own_number)
            .collect();
        let number = self.asked.load(Ordering::Relaxed);
        let node = others.get(number % others.len().max(1))?;
        let answer = ask(&self.links.to(node), wants_watermarks);
        if answer.is_none() {
            self.asked.store(number.wrapping_add(1), Ordering::Relaxed);
        }
        answer
    }
}

/// A moment of the process at the other end of a link, if it surely leads. Blocks for the answer.
fn ask(caller: &Caller, wants_watermarks: bool) -> Option<(Mark, Watermarks)> {
    let request = encode(VERSION, &MomentRequest { wants_watermarks });
    let answer = caller.call(SERVICE, request, TIMEOUT).ok()?;
    match decode::<MomentReply>(VERSION, &answer)? {
        MomentReply::Moment { time_ms, durable, watermarks } => {
            let limits = watermarks.unwrap_or_default();
            let watermarks = Watermarks { trx_id_limit: limits.0, cts_limit: limits.1 };
            Some((Mark { time_ms, lsn: durable }, watermarks))
        }
        MomentReply::Unsure => None,
        MomentReply::Failed(reason) => {
            tracing::warn!(reason, "the node that writes tells no moment of its log");
            None
        }
    }
}

impl ArchivedWriter for ClusterWriter {
    fn moment(&self) -> Option<Mark> {
        self.ask(false).map(|(moment, _)| moment)
    }

    fn watermarks(&self) -> Result<Watermarks, LogError> {
        let found = self.ask(true).map(|(_, watermarks)| watermarks);
        let reason = "no node says that it writes the log".to_owned();
        found.ok_or(LogError::Unavailable { reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_these_bytes() {
        let request = MomentRequest { wants_watermarks: true };
        assert_eq!(encode(VERSION, &request), [1, 1]);
        let reply = |watermarks| MomentReply::Moment { time_ms: 300, durable: Lsn(9), watermarks };
        let limits = reply(Some((TrxId(5), Cts(6))));
        assert_eq!(encode(VERSION, &limits), [1, 1, 0xac, 2, 9, 1, 5, 6]);
        assert_eq!(encode(VERSION, &reply(None)), [1, 1, 0xac, 2, 9, 0]);
        assert_eq!(encode(VERSION, &MomentReply::Unsure), [1, 0]);
        assert_eq!(encode(VERSION, &MomentReply::Failed("a".to_owned())), [1, 2, 1, b'a']);
        assert_eq!(decode(VERSION, &encode(VERSION, &limits)), Some(limits));
        assert_eq!(decode::<MomentReply>(VERSION, &[2, 0]), None, "another version");
        assert_eq!(decode::<MomentReply>(VERSION, &[1, 0, 0]), None);
    }
}
