//! Sees what a control node does, for logs and for tests.

use firn_consensus::{Index, MemberId, Message, Saved, Term};
use firn_control::{Proposal, ToNode};

/// Is told what a control node does, at the moment when it does it. It is called with the node's
/// latch held, so it neither blocks nor calls the node.
pub trait Observer: Send + Sync {
    /// The node has started from this, as that member of the group.
    fn opened(&self, member: MemberId, saved: &Saved) {
        let _ = (member, saved);
    }

    /// A message leaves for another control node.
    fn sends(&self, message: &Message) {
        let _ = message;
    }

    /// The node, which leads in `term`, tells another node something.
    fn acts(&self, term: Term, message: &ToNode) {
        let _ = (term, message);
    }

    /// An entry was applied to the node's catalog.
    fn applies(&self, index: Index, proposal: &Proposal) {
        let _ = (index, proposal);
    }
}
