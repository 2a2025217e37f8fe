//! What the leader concludes from the heartbeat of a node.

use crate::chunk::{Chunk, EVERY_SPACE, ReplicaState};
use crate::controller::Controller;
use crate::identifiers::{ChunkId, NodeId};
use crate::message::{ChunkReport, ControlMessage, Heartbeat};
use crate::order::retire_stray;
use crate::proposal::Proposal;

/// A chunk is measured again when it has changed by one part in `MEASURED_PARTS`.
const MEASURED_PARTS: u64 = 16;
/// Changes of fewer bytes than this are not worth an entry of the log.
const MEASURED_BYTES: u64 = 1 << 16;

impl Controller {
    pub(super) fn take_report(&mut self, node: NodeId, heartbeat: &Heartbeat) {
        self.note_leaders(node, heartbeat);
        self.find_lost(node, heartbeat);
        for (chunk, report) in &heartbeat.chunks {
            match self.catalog.chunks().get(chunk) {
                Some(known) if known.replicas.contains_key(&node) => {
                    if known.replicas[&node].since <= heartbeat.entries {
                        self.measure(node, *chunk, report);
                    }
                }
                _ => self.retire_stray(node, *chunk, report),
            }
        }
        self.progress.retain(|id, _| self.catalog.operations().contains_key(id));
        for (operation, progress) in &heartbeat.copies {
            if self.catalog.operations().contains_key(operation) {
                self.progress.insert(*operation, *progress);
            }
        }
    }

    fn note_leaders(&mut self, node: NodeId, heartbeat: &Heartbeat) {
        for (id, (term, member)) in &heartbeat.leads {
            let Some(group) = self.catalog.groups().get(id) else { continue };
            let is_new = *term > group.term || (*term == group.term && group.writer.is_none());
            let is_there = group.members.get(member).is_some_and(|known| known.node == node);
            if is_new && is_there {
                self.propose(Proposal::Led { group: *id, term: *term, member: *member });
            }
        }
    }

    /// A replica that the node has acknowledged, and does not have, is lost.
    fn find_lost(&mut self, node: NodeId, heartbeat: &Heartbeat) {
        let is_lost = |(id, chunk): &(ChunkId, &Chunk)| {
            let replica = chunk.replicas[&node];
            let operation = chunk.operation.map(|id| &self.catalog.operations()[&id].kind);
            let changes = operation
                .is_some_and(|kind| kind.replica_move().is_none() && kind.division().is_none());
            !changes
                && replica.state != ReplicaState::Copying
                && replica.since <= heartbeat.entries
                && !heartbeat.chunks.contains_key(id)
        };
        let lost: Vec<_> = self
            .catalog
            .chunks_on(node)
            .filter(is_lost)
            .map(|(chunk, known)| Proposal::Lost { chunk, node, epoch: known.epoch })
            .collect();
        lost.into_iter().for_each(|proposal| self.propose(proposal));
    }

    /// One replica speaks for the size of a chunk, so that two do not contradict each other.
    fn measure(&mut self, node: NodeId, id: ChunkId, report: &ChunkReport) {
        let chunk = &self.catalog.chunks()[&id];
        let speaker = chunk.nodes_in(ReplicaState::InService).find(|one| self.catalog.is_up(*one));
        if speaker != Some(node) || report.epoch > chunk.epoch || chunk.operation.is_some() {
            return;
        }
        let most = self.catalog.settings().chunk_pages;
        let pages_moved = report.pages.abs_diff(chunk.pages);
        let bytes_moved = report.bytes.abs_diff(chunk.bytes);
        // Pages matter where a chunk with too many is split.
        let is_split = chunk.space != EVERY_SPACE;
        let limit = self.catalog.split_above();
        let grown = match is_split {
            true => report.pages > most && chunk.pages <= most,
            false => report.bytes > limit && chunk.bytes <= limit,
        };
        let differs = is_split && u64::from(pages_moved) * MEASURED_PARTS > u64::from(most)
            || bytes_moved > (chunk.bytes / MEASURED_PARTS).max(MEASURED_BYTES);
        if grown || differs {
            let (bytes, pages) = (report.bytes, report.pages);
            self.propose(Proposal::Measured { chunk: id, bytes, pages });
        }
    }

    /// The node has a chunk that it should not have: it was away when the chunk moved or was
    /// dropped, or a move to it was given up.
    fn retire_stray(&mut self, node: NodeId, id: ChunkId, report: &ChunkReport) {
        let Some(term) = self.term else { return };
        let epoch = match self.catalog.chunks().get(&id) {
            // It may be the last copy, though nobody was told so.
            Some(chunk) if !self.catalog.is_served_beside(chunk, node) => return,
            Some(chunk) => chunk.epoch,
            None if self.catalog.was_chunk(id) => report.epoch,
            None => return,
        };
        let order = retire_stray(node, id, epoch);
        self.send(node, term, ControlMessage::Order(order));
    }
}
