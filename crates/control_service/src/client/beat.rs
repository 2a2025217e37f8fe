//! The task that registers the node and sends its heartbeats and acknowledgements.

use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_control::{
    Applied, ControlMessage, Heartbeat, NodeId, NodeMessage, Proposal, ToControl, ToNode,
};

use super::{ProposeError, Shared};
use crate::message::{Reply, Request, Unheard};

/// How long the client waits after a refusal, in heartbeats: only a person changes it.
const REFUSED_HEARTBEATS: u32 = 10;
/// How long an attempt to register goes on, in timeouts of one call.
const REGISTRATION_CALLS: u32 = 10;

impl Shared {
    /// What the task `control-beat` does.
    pub(super) fn run_beat(&self) {
        while !self.is_stopped() {
            let ticket = self.changed.listen();
            let began = self.clock.monotonic();
            let node = *self.registered.lock();
            let next = match node {
                Some(node) => self.beat(node),
                None => self.register(),
            };
            // It is not early because something else has changed.
            let took = self.clock.monotonic().saturating_sub(began);
            let left = next.saturating_sub(took);
            if !left.is_zero() && self.acknowledgements.lock().is_empty() {
                self.changed.wait(ticket, Some(left));
            }
        }
    }

    /// Registers the start of the node. Returns the wait until the next step.
    fn register(&self) -> Duration {
        match self.try_register() {
            Ok(node) => {
                self.node.joined(node);
                *self.registered.lock() = Some(node);
                self.changed.notify_all();
                Duration::ZERO
            }
            Err(ProposeError::Refused(text)) => {
                self.node.refused(&text);
                self.options.interval * REFUSED_HEARTBEATS
            }
            Err(error) => {
                tracing::debug!(%error, "the node is not registered yet");
                self.options.interval
            }
        }
    }

    fn try_register(&self) -> Result<NodeId, ProposeError> {
        let timeout = self.options.call_timeout * REGISTRATION_CALLS;
        let node = match self.description.node {
            Some(node) => node,
            None => match self.leader.propose(Proposal::Join(self.join()), timeout, true)? {
                Applied::Node(node) => node,
                other => return Err(ProposeError::Unknown(format!("{other:?} is no node"))),
            },
        };
        self.leader.propose(Proposal::Started(self.started(node)), timeout, true)?;
        Ok(node)
    }

    /// Sends acknowledgements and a heartbeat. Returns when the next one is due.
    fn beat(&self, node: NodeId) -> Duration {
        let due = std::mem::take(&mut *self.acknowledgements.lock());
        for (number, position) in due {
            let body = NodeMessage::Acknowledgement { number, position };
            if !self.tell(node, body) {
                return self.options.interval;
            }
        }
        // The report comes after everything that was acknowledged before `entries` were heard.
        let entries = self.heard.load(Ordering::SeqCst);
        let report = Heartbeat { entries, ..self.node.report() };
        self.tell(node, NodeMessage::Heartbeat(report));
        self.options.interval
    }

    /// Tells the leader something. False if it has not heard it.
    fn tell(&self, node: NodeId, body: NodeMessage) -> bool {
        let (cluster, incarnation) = (self.local.identity.cluster, self.description.incarnation);
        let message = ToControl { cluster, node, incarnation, body };
        // A heartbeat that is late says nothing.
        let deadline = self.clock.monotonic() + 2 * self.options.call_timeout;
        match self.leader.ask(&Request::Tell(message), deadline, true) {
            Ok(Reply::News { messages, .. }) => {
                messages.into_iter().for_each(|message| self.note_heard(&message));
                true
            }
            Ok(Reply::Unheard { why, text }) => {
                self.is_not_heard(why, &text);
                false
            }
            Ok(other) => {
                tracing::warn!(?other, "control answered a heartbeat with something else");
                false
            }
            Err(error) => {
                tracing::debug!(?error, "control was not told");
                false
            }
        }
    }

    fn note_heard(&self, message: &ToNode) {
        if let ControlMessage::Heard { entries } = message.body
            && self.counts(message.term)
        {
            self.heard.fetch_max(entries, Ordering::SeqCst);
        }
    }

    /// The leader does not listen to the node.
    pub(super) fn is_not_heard(&self, why: Unheard, text: &str) {
        match why {
            // The next round registers.
            Unheard::Unregistered => *self.registered.lock() = None,
            Unheard::Removed | Unheard::Stranger => {
                self.node.refused(text);
                let pause = self.options.interval * REFUSED_HEARTBEATS;
                self.changed.wait_until(Some(pause), || self.is_stopped());
            }
        }
    }
}
