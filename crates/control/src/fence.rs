//! What a node does with orders that come late, twice, or from a leader that was replaced.

use std::collections::BTreeMap;

use firn_consensus::Term;

use crate::identifiers::{ChunkId, Epoch, GroupId};
use crate::order::{Action, Order};

/// The newest epochs that a node has had orders of. A node that starts tells the fence the epochs
/// of the chunks that it has ([`Fence::has_chunk`]); what it does not have, it need not remember.
/// So the epoch of an order is on the node's disk before the order is acknowledged.
#[derive(Debug, Clone, Default)]
pub struct Fence {
    term: Term,
    chunks: BTreeMap<ChunkId, Epoch>,
    groups: BTreeMap<GroupId, Epoch>,
}

impl Fence {
    /// The node has a chunk, which was of that epoch when it was last changed.
    pub fn has_chunk(&mut self, chunk: ChunkId, epoch: Epoch) {
        let known = self.chunks.entry(chunk).or_default();
        *known = epoch.max(*known);
    }

    /// Whether the node carries out the order, which a leader of `term` sent, or acknowledges it
    /// again if it has done so before. It ignores other orders, without an answer.
    pub fn admits(&mut self, term: Term, order: &Order) -> bool {
        if term < self.term {
            return false;
        }
        self.term = term;
        match &order.action {
            Action::CreateChunk { chunk, epoch, .. }
            | Action::CopyChunk { chunk, epoch, .. }
            | Action::CopyPart { chunk, epoch, .. }
            | Action::ServeChunk { chunk, epoch }
            | Action::RetireChunk { chunk, epoch } => admit(&mut self.chunks, *chunk, *epoch),
            Action::SplitChunk { chunk, upper, epoch, .. } => {
                // The upper half is new, so its first order is this one.
                let first = self.chunks.get(upper).is_none_or(|known| known <= epoch);
                first && admit(&mut self.chunks, *chunk, *epoch)
            }
            Action::SetMembers { group, epoch, .. } => admit(&mut self.groups, *group, *epoch),
            Action::FoundGroup { .. }
            | Action::JoinGroup { .. }
            | Action::CatchUp { .. }
            | Action::HandOver { .. }
            | Action::Switch { .. }
            | Action::LeaveGroup { .. }
            | Action::Upgrade { .. } => true,
        }
    }
}

/// Whether `epoch` is not older than the newest one of its subject, which it then is.
fn admit<Id: Ord>(newest: &mut BTreeMap<Id, Epoch>, id: Id, epoch: Epoch) -> bool {
    let known = newest.entry(id).or_default();
    let admitted = *known <= epoch;
    *known = epoch.max(*known);
    admitted
}

#[cfg(test)]
mod tests;
