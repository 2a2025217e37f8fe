//! The catalog: what all control nodes know alike.
//!
//! The catalog is what the control group replicates. [`Catalog::apply`] takes the entries of the
//! group's log one by one, and depends on nothing else: no clock, no randomness, no order of hash
//! tables. Control nodes that have applied the same entries have catalogs with the same bytes.
//!
//! An entry that does not fit is refused by all control nodes alike, and changes only the count of
//! entries. So a decision that was made from an older catalog does no harm.
//!
//! The following holds between entries ([`Catalog::check`]):
//!
//! 1. Every node that a group or a chunk names is in the catalog.
//! 2. Names and directories of nodes are unique, and so are a group's nodes.
//! 3. The chunks of a space do not overlap.
//! 4. A number once given is never given again.
//! 5. At most one operation changes a chunk or a group, and the two name each other.
//! 6. The upper chunk of a division is not among the chunks, and its places are those of the chunk
//!    that is divided.

mod chunks;
mod division;
mod founding;
mod groups;
mod members;
mod nodes;
mod operations;
mod replicas;
mod switches;
mod upgrades;

use std::collections::BTreeMap;

use firn_base::{Extents, PageId, PageNo, SpaceId};
use serde::{Deserialize, Serialize};

use crate::chunk::{Chunk, EVERY_SPACE, SPLIT_ABOVE};
use crate::group::LogGroup;
use crate::identifiers::{ChunkId, ClusterId, GroupId, NodeId, OperationId};
use crate::node::{Node, NodeState};
use crate::operation::{Ended, Operation};
use crate::proposal::Proposal;
use crate::refusal::Refusal;
use crate::settings::Settings;

pub(crate) use groups::may_be_member;

/// What an entry of the log led to. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Applied {
    Done,
    Node(NodeId),
    Group(GroupId),
    Chunk(ChunkId),
    Operation(OperationId),
}

/// The replicated state of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    pub(crate) cluster: ClusterId,
    /// How many entries have been applied, refused ones included.
    pub(crate) entries: u64,
    pub(crate) settings: Settings,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) groups: BTreeMap<GroupId, LogGroup>,
    pub(crate) chunks: BTreeMap<ChunkId, Chunk>,
    pub(crate) operations: BTreeMap<OperationId, Operation>,
    /// The last operations that ended, the newest one last.
    pub(crate) ended: Vec<Ended>,
    pub(crate) next_node: u64,
    pub(crate) next_group: u32,
    pub(crate) next_chunk: u64,
    pub(crate) next_operation: u64,
    /// Chunks of all spaces that have more bytes are cut in two. It came later than the
    /// [`Settings`], and so it is behind everything else.
    pub(crate) split_above: u64,
}

impl Catalog {
    /// The catalog of a new cluster. Its founders all begin with it.
    ///
    /// # Errors
    /// If the settings are not possible.
    pub fn new(cluster: ClusterId, settings: Settings) -> Result<Catalog, Refusal> {
        match settings.problem() {
            Some(problem) => Err(Refusal::Setting(problem)),
            None => Ok(Catalog {
                cluster,
                entries: 0,
                settings,
                nodes: BTreeMap::new(),
                groups: BTreeMap::new(),
                chunks: BTreeMap::new(),
                operations: BTreeMap::new(),
                ended: Vec::new(),
                next_node: 1,
                next_group: 0,
                next_chunk: 1,
                next_operation: 1,
                split_above: SPLIT_ABOVE,
            }),
        }
    }

    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// How many entries of the log the catalog has taken, refused ones included.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Chunks of all spaces that have more bytes than this are cut in two.
    #[must_use]
    pub fn split_above(&self) -> u64 {
        self.split_above
    }

    #[must_use]
    pub fn nodes(&self) -> &BTreeMap<NodeId, Node> {
        &self.nodes
    }

    #[must_use]
    pub fn groups(&self) -> &BTreeMap<GroupId, LogGroup> {
        &self.groups
    }

    #[must_use]
    pub fn chunks(&self) -> &BTreeMap<ChunkId, Chunk> {
        &self.chunks
    }

    /// How a node is. `None` if there never was one with that id.
    #[must_use]
    pub fn node_state(&self, node: NodeId) -> Option<NodeState> {
        match self.nodes.get(&node) {
            Some(known) => Some(known.state()),
            None => (1..self.next_node).contains(&node.0).then_some(NodeState::Removed),
        }
    }

    /// How the pages of chunks of all spaces lie together.
    #[must_use]
    pub fn extents(&self) -> Extents {
        Extents { pages: self.settings.chunk_pages }
    }

    /// The chunk that has `page`.
    #[must_use]
    pub fn chunk_of(&self, page: PageId) -> Option<ChunkId> {
        let extents = self.extents();
        self.chunks.iter().find(|(_, chunk)| chunk.contains(extents, page)).map(|(id, _)| *id)
    }

    /// The operations that are under way.
    #[must_use]
    pub fn operations(&self) -> &BTreeMap<OperationId, Operation> {
        &self.operations
    }

    /// The last operations that ended, the newest one last.
    #[must_use]
    pub fn ended(&self) -> &[Ended] {
        &self.ended
    }

    /// Takes the next entry of the control group's log.
    ///
    /// # Errors
    /// If the entry does not fit the catalog. Then it changes nothing.
    pub fn apply(&mut self, proposal: &Proposal) -> Result<Applied, Refusal> {
        self.entries += 1;
        let applied = self.change(proposal)?;
        self.settle();
        Ok(applied)
    }

    fn change(&mut self, proposal: &Proposal) -> Result<Applied, Refusal> {
        let done = |()| Applied::Done;
        match proposal {
            Proposal::Join(join) => self.join(join).map(Applied::Node),
            Proposal::Started(started) => self.start(started).map(done),
            Proposal::Health { node, incarnation, health, flaps } => {
                self.set_health(*node, *incarnation, *health, *flaps).map(done)
            }
            Proposal::Remove { node } => self.remove(*node).map(done),
            Proposal::Configure(settings) => self.configure(settings).map(done),
            Proposal::FoundGroup { members, wanted_voters, wanted_loggers } => {
                self.found(members, *wanted_voters, *wanted_loggers).map(Applied::Group)
            }
            Proposal::Led { group, term, member } => self.led(*group, *term, *member).map(done),
            Proposal::CreateChunk { space, first, end, group, position, nodes } => self
                .create_chunk(*space, *first..*end, *group, *position, nodes)
                .map(Applied::Chunk),
            Proposal::DropSpace { space } => {
                self.drop_space(*space);
                Ok(Applied::Done)
            }
            Proposal::Measured { chunk, bytes, pages } => {
                self.measured(*chunk, *bytes, *pages).map(done)
            }
            Proposal::Lost { chunk, node, epoch } => self.lost(*chunk, *node, *epoch).map(done),
            Proposal::StopUpgrade { operation } => self.stop_upgrade(*operation).map(done),
            Proposal::Cancel { operation } => self.cancel(*operation).map(done),
            Proposal::Acknowledge { operation, step, node, position } => {
                self.acknowledge(*operation, *step, *node, *position);
                Ok(Applied::Done)
            }
            Proposal::Found(founding) => self.found_cluster(founding, None).map(done),
            Proposal::FoundNumbered { founding, chunks } => {
                self.found_cluster(founding, Some(&**chunks)).map(done)
            }
            Proposal::SplitAbove { bytes } => self.split_chunks_above(*bytes).map(done),
            Proposal::Resize { group, voters, loggers } => {
                self.resize(*group, *voters, *loggers).map(done)
            }
            _ => self.begin_operation(proposal).map(Applied::Operation),
        }
    }

    fn begin_operation(&mut self, proposal: &Proposal) -> Result<OperationId, Refusal> {
        match proposal {
            Proposal::MoveReplica { chunk, epoch, from, to, reason } => {
                self.move_replica(*chunk, *epoch, *from, *to, *reason)
            }
            Proposal::Split { chunk, epoch, at } => self.split(*chunk, *epoch, *at),
            Proposal::Divide { chunk, epoch, reason } => self.divide(*chunk, *epoch, *reason),
            Proposal::ChangeMember { group, epoch, add, remove, reason } => {
                self.change_member(*group, *epoch, *add, *remove, *reason)
            }
            Proposal::Drain { node, on } => self.drain(*node, *on),
            Proposal::Upgrade { release } => self.upgrade(*release),
            Proposal::Switch { group, to } => self.switch(*group, *to),
            _ => Err(Refusal::NoOperation(OperationId(0))),
        }
    }

    fn configure(&mut self, settings: &Settings) -> Result<(), Refusal> {
        if let Some(problem) = settings.problem() {
            return Err(Refusal::Setting(problem));
        }
        let is_spread = self.chunks.values().any(|chunk| chunk.space == EVERY_SPACE);
        if is_spread && settings.chunk_pages != self.settings.chunk_pages {
            return Err(Refusal::Setting(
                "chunk_pages says where pages of all spaces lie, for ever",
            ));
        }
        self.settings = settings.clone();
        Ok(())
    }

    /// The known node with that id.
    pub(crate) fn node(&self, id: NodeId) -> Result<&Node, Refusal> {
        match self.nodes.get(&id) {
            Some(node) => Ok(node),
            None if self.node_state(id).is_some() => Err(Refusal::NodeRemoved(id)),
            None => Err(Refusal::NoNode(id)),
        }
    }

    /// What does not hold in the catalog. `None` for each catalog that [`Catalog::apply`] makes.
    #[must_use]
    pub fn check(&self) -> Option<&'static str> {
        self.check_numbers()
            .or_else(|| self.check_nodes())
            .or_else(|| self.check_groups())
            .or_else(|| self.check_chunks())
            .or_else(|| self.check_operations())
    }

    fn check_numbers(&self) -> Option<&'static str> {
        let nodes = self.nodes.keys().all(|id| (1..self.next_node).contains(&id.0));
        let groups = self.groups.keys().all(|id| id.0 < self.next_group);
        let chunks = self.chunks.keys().all(|id| (1..self.next_chunk).contains(&id.0));
        let most = u64::MAX / 2;
        let operations = self.operations.keys().all(|id| (1..self.next_operation).contains(&id.0));
        let bounded = [self.next_node, self.next_chunk, self.next_operation, self.entries]
            .iter()
            .all(|number| *number < most);
        let bounded = bounded && self.next_group < u32::MAX / 2 && self.split_above > 0;
        let all = nodes && groups && chunks && operations && bounded;
        (!all).then_some("a number was not given yet")
    }
}

/// The pages of a space from one to another, the last one excluded.
pub(crate) type Pages = std::ops::Range<PageNo>;

/// Whether a chunk has a page of the range of a space. A part of all spaces may have any page.
pub(crate) fn overlap(chunk: &Chunk, space: SpaceId, pages: &Pages) -> bool {
    match chunk.space == space {
        true => chunk.first < pages.end && pages.start < chunk.end,
        false => [chunk.space, space].contains(&EVERY_SPACE),
    }
}

#[cfg(test)]
pub(crate) mod tests;
