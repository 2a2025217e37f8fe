//! Replicas of chunks: made, moved, lost, cut in two.

use std::collections::BTreeSet;

use firn_base::{Lsn, PageNo};

use super::Catalog;
use crate::chunk::{Chunk, EVERY_SPACE, Replica, ReplicaState};
use crate::identifiers::{ChunkId, Epoch, NodeId, OperationId};
use crate::node::NodeRole;
use crate::operation::{MovePhase, OperationKind, Outcome, Reason, ReplicaMove};
use crate::refusal::Refusal;

impl Chunk {
    /// Sets the state of a replica, from this entry on.
    fn set(&mut self, node: NodeId, state: ReplicaState, entry: u64) {
        let fresh = Replica { state, since: entry, position: Lsn(0) };
        let replica = self.replicas.entry(node).or_insert(fresh);
        (replica.state, replica.since) = (state, entry);
        self.epoch = self.epoch.next();
    }

    fn forget(&mut self, node: NodeId) {
        self.replicas.remove(&node);
        self.epoch = self.epoch.next();
    }
}

impl Catalog {
    pub(super) fn move_replica(
        &mut self,
        id: ChunkId,
        epoch: Epoch,
        from: Option<NodeId>,
        to: NodeId,
        reason: Reason,
    ) -> Result<OperationId, Refusal> {
        let target = self.node_with(to, NodeRole::Page)?;
        if !target.takes_more() {
            return Err(Refusal::NotReady { name: target.name.clone(), state: target.state() });
        }
        let chunk = self.idle_chunk(id, epoch)?;
        // A replica more than the chunk needs is given up, for one that is there already.
        let is_surplus = from.is_some_and(|from| {
            from != to && chunk.nodes_in(ReplicaState::InService).any(|node| node == to)
        });
        if chunk.replicas.contains_key(&to) && !is_surplus {
            return Err(Refusal::HasReplica { node: to, chunk: id });
        }
        if let Some(from) = from.filter(|from| !chunk.replicas.contains_key(from)) {
            return Err(Refusal::LacksReplica { node: from, chunk: id });
        }
        if !chunk.nodes_in(ReplicaState::InService).any(|node| self.is_up(node)) {
            return Err(Refusal::NoSource(id));
        }
        let phase = if is_surplus { MovePhase::Retire } else { MovePhase::Copy };
        let one = ReplicaMove { chunk: id, from, to, phase };
        let operation = self.begin(OperationKind::MoveReplica(one), reason);
        let chunk = self.chunks.get_mut(&id).expect("looked up above");
        match from.filter(|_| is_surplus) {
            Some(from) => chunk.set(from, ReplicaState::Leaving, self.entries),
            None => chunk.set(to, ReplicaState::Copying, self.entries),
        }
        chunk.operation = Some(operation);
        Ok(operation)
    }

    /// The chunk, if it is as the caller saw it, and nothing changes it.
    pub(super) fn idle_chunk(&self, id: ChunkId, epoch: Epoch) -> Result<&Chunk, Refusal> {
        let chunk = self.chunk(id)?;
        match chunk.operation {
            Some(operation) => Err(Refusal::Busy(operation)),
            None if chunk.epoch != epoch => Err(Refusal::OldEpoch { epoch, newest: chunk.epoch }),
            None => Ok(chunk),
        }
    }

    pub(super) fn serves(&mut self, chunk: ChunkId, node: NodeId) {
        if let Some(chunk) = self.chunks.get_mut(&chunk) {
            chunk.set(node, ReplicaState::InService, self.entries);
        }
    }

    /// One step of a move is done.
    pub(super) fn replica_moved(
        &mut self,
        id: OperationId,
        mut one: ReplicaMove,
        node: NodeId,
        position: Lsn,
    ) {
        let Some(chunk) = self.chunks.get_mut(&one.chunk) else { return };
        match one.phase {
            MovePhase::Copy if node == one.to => {
                chunk.replicas.entry(node).and_modify(|replica| replica.position = position);
                one.phase = MovePhase::Serve;
                self.go_on(id, OperationKind::MoveReplica(one));
            }
            MovePhase::Serve if node == one.to => {
                chunk.set(node, ReplicaState::InService, self.entries);
                match one.from.filter(|from| chunk.replicas.contains_key(from)) {
                    Some(from) => {
                        chunk.set(from, ReplicaState::Leaving, self.entries);
                        one.phase = MovePhase::Retire;
                        self.go_on(id, OperationKind::MoveReplica(one));
                    }
                    None => self.end(id, Outcome::Done),
                }
            }
            MovePhase::Retire if Some(node) == one.from => {
                chunk.forget(node);
                self.end(id, Outcome::Done);
            }
            MovePhase::Copy | MovePhase::Serve | MovePhase::Retire => {}
        }
    }

    pub(super) fn settle_move(
        &mut self,
        id: OperationId,
        one: ReplicaMove,
        reason: Reason,
    ) -> bool {
        let Some(chunk) = self.chunks.get(&one.chunk) else {
            self.end(id, Outcome::Failed);
            return true;
        };
        if one.phase == MovePhase::Retire {
            let Some(from) = one.from else { return false };
            let is_gone = !chunk.replicas.contains_key(&from);
            let others = self.is_served_beside(chunk, from);
            if is_gone || (self.is_down(from) && others) {
                self.chunks.get_mut(&one.chunk).expect("looked up above").forget(from);
                self.end(id, Outcome::Done);
                return true;
            }
            return false;
        }
        let is_back = one
            .from
            .is_some_and(|from| self.nodes.get(&from).is_some_and(|node| node.takes_more()));
        if reason == Reason::NodeDown && is_back && one.phase == MovePhase::Copy {
            return self.give_up_move(id, one, Outcome::Cancelled);
        }
        self.is_down(one.to) && self.give_up_move(id, one, Outcome::Failed)
    }

    /// Whether readers of the chunk find a node other than `node` that is up.
    pub(crate) fn is_served_beside(&self, chunk: &Chunk, node: NodeId) -> bool {
        chunk.nodes_in(ReplicaState::InService).any(|other| other != node && self.is_up(other))
    }

    /// The chunk stays where it was. Whether that could be done.
    pub(super) fn give_up_move(
        &mut self,
        id: OperationId,
        one: ReplicaMove,
        outcome: Outcome,
    ) -> bool {
        if let Some(chunk) = self.chunks.get_mut(&one.chunk) {
            if chunk.replicas.len() == 1 {
                // The chunk is made again from the object store, and has no other node.
                return false;
            }
            chunk.forget(one.to);
        }
        self.end(id, outcome);
        true
    }

    /// A node does not have a replica that it should have.
    pub(super) fn lost(&mut self, id: ChunkId, node: NodeId, epoch: Epoch) -> Result<(), Refusal> {
        let chunk = self.chunk(id)?;
        if chunk.epoch != epoch {
            return Err(Refusal::OldEpoch { epoch, newest: chunk.epoch });
        }
        let under_way = chunk.operation.and_then(|operation| self.operations.get(&operation));
        let moving = under_way.and_then(|one| one.kind.replica_move()).copied();
        let is_divided = under_way.is_some_and(|one| one.kind.division().is_some());
        if let (Some(id), None, false) = (chunk.operation, moving, is_divided) {
            return Err(Refusal::Busy(id));
        }
        let state = chunk.replicas.get(&node).map(|replica| replica.state);
        if state.is_none_or(|state| state == ReplicaState::Copying) {
            return Err(Refusal::LacksReplica { node, chunk: id });
        }
        if let Some(division) = chunk.operation.filter(|_| is_divided) {
            self.end(division, Outcome::Failed);
        }
        let chunk = self.chunk(id)?;
        if chunk.replicas.len() > 1 {
            self.chunks.get_mut(&id).expect("looked up above").forget(node);
            self.keep_the_old_one(id, moving.filter(|one| one.to == node));
            return Ok(());
        }
        if let Some(operation) = chunk.operation {
            return Err(Refusal::Busy(operation));
        }
        // The last one: the node makes it again from the object store.
        let one = ReplicaMove { chunk: id, from: None, to: node, phase: MovePhase::Copy };
        let operation = self.begin(OperationKind::MoveReplica(one), Reason::TooFew);
        let chunk = self.chunks.get_mut(&id).expect("looked up above");
        chunk.set(node, ReplicaState::Copying, self.entries);
        chunk.operation = Some(operation);
        Ok(())
    }

    /// A move has ended at a node that lost the replica. If nobody else has it, the node where it
    /// was is not told to delete it any more. If it has done so already, it will say so.
    fn keep_the_old_one(&mut self, id: ChunkId, moving: Option<ReplicaMove>) {
        let Some((from, chunk)) = moving.and_then(|one| Some((one.from?, self.chunks.get(&id)?)))
        else {
            return;
        };
        if self.is_served_beside(chunk, from) || !chunk.replicas.contains_key(&from) {
            return;
        }
        let chunk = self.chunks.get_mut(&id).expect("looked up above");
        chunk.set(from, ReplicaState::InService, self.entries);
        if let Some(operation) = chunk.operation {
            self.end(operation, Outcome::Failed);
        }
    }

    pub(super) fn settle_creation(
        &mut self,
        id: OperationId,
        chunk: ChunkId,
        waiting: &BTreeSet<NodeId>,
    ) -> bool {
        if !self.chunks.contains_key(&chunk) {
            self.end(id, Outcome::Failed);
            return true;
        }
        let mut left = waiting.clone();
        let down: Vec<_> = waiting.iter().filter(|node| self.is_down(**node)).collect();
        for node in down {
            let chunk = self.chunks.get_mut(&chunk).expect("looked up above");
            if chunk.replicas.len() > 1 {
                chunk.forget(*node);
                left.remove(node);
            }
        }
        if left.is_empty() {
            self.end(id, Outcome::Done);
            return true;
        }
        let changed = left != *waiting;
        self.replace_kind(id, OperationKind::CreateChunk { chunk, waiting: left });
        changed
    }

    /// Cuts a chunk in two. The catalog has both at once, and each node is told to cut its files.
    pub(super) fn split(
        &mut self,
        id: ChunkId,
        epoch: Epoch,
        at: PageNo,
    ) -> Result<OperationId, Refusal> {
        let chunk = self.idle_chunk(id, epoch)?;
        if chunk.space == EVERY_SPACE {
            return Err(Refusal::Spread(id));
        }
        if at <= chunk.first || chunk.end <= at {
            return Err(Refusal::NotWithin { chunk: id, page: at });
        }
        if chunk.replicas.values().any(|replica| replica.state != ReplicaState::InService) {
            return Err(Refusal::NotComplete(id));
        }
        let waiting: BTreeSet<_> = chunk.replicas.keys().copied().collect();
        let upper = ChunkId(self.next_chunk);
        self.next_chunk += 1;
        let kind = OperationKind::SplitChunk { chunk: id, upper, waiting };
        let operation = self.begin(kind, Reason::Growth);
        let lower = self.chunks.get_mut(&id).expect("looked up above");
        lower.operation = Some(operation);
        lower.epoch = lower.epoch.next();
        let above = lower.cut(at);
        self.chunks.insert(upper, above);
        Ok(operation)
    }

    pub(super) fn settle_split(
        &mut self,
        id: OperationId,
        chunk: ChunkId,
        upper: ChunkId,
        waiting: &BTreeSet<NodeId>,
    ) -> bool {
        if !self.chunks.contains_key(&chunk) || !self.chunks.contains_key(&upper) {
            self.end(id, Outcome::Failed);
            return true;
        }
        let mut left = waiting.clone();
        let down: Vec<_> = waiting.iter().filter(|node| self.is_down(**node)).collect();
        for node in down {
            let halves = [chunk, upper];
            if halves.iter().all(|half| self.is_served_beside(&self.chunks[half], *node)) {
                // When it is back, it has the chunk as it was before. It is told to delete it.
                halves.iter().for_each(|half| {
                    self.chunks.get_mut(half).expect("looked up above").forget(*node);
                });
                left.remove(node);
            }
        }
        if left.is_empty() {
            // What a node said before it had cut its files says nothing about the halves.
            for half in [chunk, upper] {
                let half = self.chunks.get_mut(&half).expect("checked above");
                half.replicas.values_mut().for_each(|replica| replica.since = self.entries);
            }
            self.end(id, Outcome::Done);
            return true;
        }
        let changed = left != *waiting;
        self.replace_kind(id, OperationKind::SplitChunk { chunk, upper, waiting: left });
        changed
    }
}

impl Chunk {
    /// Takes the pages from `at` on away and returns a chunk of them.
    fn cut(&mut self, at: PageNo) -> Chunk {
        let mut upper = self.clone();
        let lower_pages = self.pages.min(at.0 - self.first.0);
        upper.pages = self.pages - lower_pages;
        let share = u128::from(self.bytes) * u128::from(lower_pages);
        let lower_bytes = share.checked_div(u128::from(self.pages)).unwrap_or(0) as u64;
        upper.bytes = self.bytes - lower_bytes;
        (upper.first, self.end) = (at, at);
        (self.pages, self.bytes) = (lower_pages, lower_bytes);
        upper
    }
}
