//! Operations: how they begin, go on and end.
//!
//! After each entry, [`Catalog::settle`] brings every operation as far as it goes by the facts in
//! the catalog alone: a node that is down acknowledges nothing, so what waits for it goes on
//! without it or is undone.

use std::collections::BTreeSet;

use firn_base::Lsn;

use super::Catalog;
use crate::identifiers::{ChunkId, GroupId, NodeId, OperationId};
use crate::node::Health;
use crate::operation::{Ended, MovePhase, Operation, OperationKind, Outcome, Reason};
use crate::refusal::Refusal;

/// How many operations that are over the catalog remembers.
const REMEMBERED: usize = 32;

impl Catalog {
    pub(super) fn begin(&mut self, kind: OperationKind, reason: Reason) -> OperationId {
        let id = OperationId(self.next_operation);
        self.next_operation += 1;
        self.operations.insert(id, Operation { kind, reason, step: 1 });
        id
    }

    /// The operation is at its next step. Acknowledgements of the one before count no more.
    pub(super) fn go_on(&mut self, id: OperationId, kind: OperationKind) {
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.kind = kind;
            operation.step += 1;
        }
    }

    /// Keeps the step: others of the same one are still waited for.
    pub(super) fn replace_kind(&mut self, id: OperationId, kind: OperationKind) {
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.kind = kind;
        }
    }

    pub(super) fn end(&mut self, id: OperationId, outcome: Outcome) {
        let Some(Operation { kind, reason, .. }) = self.operations.remove(&id) else { return };
        let (chunks, group) = match &kind {
            OperationKind::CreateChunk { chunk, .. } => ([Some(*chunk), None], None),
            OperationKind::MoveReplica(one) => ([Some(one.chunk), None], None),
            OperationKind::SplitChunk { chunk, upper, .. } => ([Some(*chunk), Some(*upper)], None),
            OperationKind::DivideChunk(one) => ([Some(one.chunk), None], None),
            OperationKind::FoundGroup { group, .. } => ([None, None], Some(*group)),
            OperationKind::ChangeMember(one) => ([None, None], Some(one.group)),
            OperationKind::Switch(one) => ([None, None], Some(one.group)),
            OperationKind::Drain { .. } | OperationKind::Upgrade(_) => ([None, None], None),
        };
        for chunk in chunks.into_iter().flatten() {
            if let Some(chunk) = self.chunks.get_mut(&chunk) {
                chunk.operation = None;
            }
        }
        if let Some(group) = group.and_then(|group| self.groups.get_mut(&group)) {
            group.operation = None;
        }
        self.ended.push(Ended { operation: id, kind, reason, outcome });
        if self.ended.len() > REMEMBERED {
            self.ended.remove(0);
        }
    }

    /// A node has carried out an order. One that nobody waits for is ignored.
    pub(super) fn acknowledge(&mut self, id: OperationId, step: u32, node: NodeId, position: Lsn) {
        let Some(operation) = self.operations.get(&id).filter(|one| one.step == step) else {
            return;
        };
        match operation.kind.clone() {
            OperationKind::FoundGroup { group, mut waiting } => {
                waiting.remove(&node);
                self.replace_kind(id, OperationKind::FoundGroup { group, waiting });
            }
            OperationKind::CreateChunk { chunk, mut waiting } => {
                if waiting.remove(&node) {
                    self.serves(chunk, node);
                }
                self.replace_kind(id, OperationKind::CreateChunk { chunk, waiting });
            }
            OperationKind::MoveReplica(one) => self.replica_moved(id, one, node, position),
            OperationKind::SplitChunk { chunk, upper, mut waiting } => {
                waiting.remove(&node);
                self.replace_kind(id, OperationKind::SplitChunk { chunk, upper, waiting });
            }
            OperationKind::DivideChunk(one) => self.has_upper(id, one, node, position),
            OperationKind::ChangeMember(one) => self.member_changed(id, one, node),
            // The leader could not.
            OperationKind::Switch(_) => self.end(id, Outcome::Failed),
            OperationKind::Drain { .. } | OperationKind::Upgrade(_) => {}
        }
    }

    /// Stops an operation and undoes what it has begun.
    pub(super) fn cancel(&mut self, id: OperationId) -> Result<(), Refusal> {
        let operation = self.operations.get(&id).ok_or(Refusal::NoOperation(id))?;
        match operation.kind.clone() {
            OperationKind::MoveReplica(one) if one.phase != MovePhase::Retire => {
                self.give_up_move(id, one, Outcome::Cancelled);
            }
            OperationKind::ChangeMember(one) if one.can_be_undone() => self.undo_change(id, one),
            OperationKind::Drain { node } => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.draining = false;
                }
                self.end(id, Outcome::Cancelled);
            }
            OperationKind::Upgrade(_)
            | OperationKind::Switch(_)
            | OperationKind::DivideChunk(_) => {
                self.end(id, Outcome::Cancelled);
            }
            OperationKind::FoundGroup { .. }
            | OperationKind::CreateChunk { .. }
            | OperationKind::MoveReplica(_)
            | OperationKind::SplitChunk { .. }
            | OperationKind::ChangeMember(_) => return Err(Refusal::TooLateToCancel(id)),
        }
        Ok(())
    }

    /// Brings all operations as far as they go.
    pub(super) fn settle(&mut self) {
        loop {
            let ids: Vec<_> = self.operations.keys().copied().collect();
            let mut changed = false;
            for id in ids {
                changed |= self.settle_one(id);
            }
            if !changed {
                return;
            }
        }
    }

    /// Whether something has changed.
    fn settle_one(&mut self, id: OperationId) -> bool {
        let Some(operation) = self.operations.get(&id) else { return false };
        let reason = operation.reason;
        match operation.kind.clone() {
            OperationKind::FoundGroup { group, waiting } => {
                let heard: BTreeSet<_> =
                    waiting.iter().copied().filter(|node| !self.is_down(*node)).collect();
                let founders = self.groups.get(&group).map_or(0, |group| group.members.len());
                // A founder that is down is replaced later, once the others have begun.
                if heard.is_empty() && waiting.len() < founders {
                    self.end(id, Outcome::Done);
                    return true;
                }
                false
            }
            OperationKind::CreateChunk { chunk, waiting } => {
                self.settle_creation(id, chunk, &waiting)
            }
            OperationKind::MoveReplica(one) => self.settle_move(id, one, reason),
            OperationKind::SplitChunk { chunk, upper, waiting } => {
                self.settle_split(id, chunk, upper, &waiting)
            }
            OperationKind::DivideChunk(one) => self.settle_division(id, &one),
            OperationKind::ChangeMember(one) => self.settle_member(id, one),
            OperationKind::Drain { node } => self.settle_drain(id, node),
            OperationKind::Upgrade(one) => self.settle_upgrade(id, one),
            OperationKind::Switch(one) => self.settle_switch(id, one),
        }
    }

    pub(super) fn check_operations(&self) -> Option<&'static str> {
        let holds = |id: &OperationId, operation: &Operation| match &operation.kind {
            OperationKind::CreateChunk { chunk, waiting } => {
                self.works_on_chunk(*id, *chunk, waiting)
            }
            OperationKind::SplitChunk { chunk, upper, waiting } => {
                let halves = [chunk, upper];
                halves.iter().all(|half| self.works_on_chunk(*id, **half, waiting))
            }
            OperationKind::MoveReplica(one) => {
                // Later, the node may lose it, as any other.
                let may_lack = one.phase == MovePhase::Retire;
                let to = if may_lack { BTreeSet::new() } else { BTreeSet::from([one.to]) };
                self.works_on_chunk(*id, one.chunk, &to) && one.from != Some(one.to)
            }
            OperationKind::DivideChunk(one) => self.is_possible(*id, one),
            OperationKind::FoundGroup { group, .. } => self.works_on_group(*id, *group),
            OperationKind::Switch(one) => self.works_on_group(*id, one.group),
            OperationKind::ChangeMember(one) => {
                let added = one.add.map_or(0, |new| new.member.0);
                self.works_on_group(*id, one.group)
                    && one.add.is_none_or(|new| self.nodes.contains_key(&new.node))
                    && added < self.groups[&one.group].next_member
            }
            OperationKind::Drain { node } => self.nodes.contains_key(node),
            OperationKind::Upgrade(_) => true,
        };
        let backward = self.chunks.values().filter_map(|chunk| chunk.operation);
        let backward = backward.chain(self.groups.values().filter_map(|group| group.operation));
        let known = backward.into_iter().all(|id| self.operations.contains_key(&id));
        let all = known
            && self
                .operations
                .iter()
                .all(|(id, operation)| operation.step < u32::MAX / 2 && holds(id, operation));
        (!all).then_some("an operation changes what it cannot")
    }

    /// Whether the chunk names the operation and has replicas on the nodes.
    pub(super) fn works_on_chunk(
        &self,
        id: OperationId,
        chunk: ChunkId,
        nodes: &BTreeSet<NodeId>,
    ) -> bool {
        self.chunks.get(&chunk).is_some_and(|chunk| {
            chunk.operation == Some(id)
                && nodes.iter().all(|node| chunk.replicas.contains_key(node))
        })
    }

    fn works_on_group(&self, id: OperationId, group: GroupId) -> bool {
        self.groups.get(&group).is_some_and(|group| group.operation == Some(id))
    }

    /// Whether the node acknowledges nothing any more.
    pub(crate) fn is_down(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_none_or(|known| known.health == Health::Down)
    }

    pub(crate) fn is_up(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|known| known.is_up())
    }
}
