//! Why the catalog refuses a proposal, in words for people.

use firn_base::{PageNo, SpaceId};
use firn_consensus::{MembersError, Term};

use crate::chunk::MOST_CHUNKS;
use crate::identifiers::{ChunkId, ClusterId, Epoch, GroupId, NodeId, OperationId};
use crate::node::{NodeRole, NodeState, Protocols, Release};

/// Why a proposal changes nothing. All control nodes refuse it alike.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "node {name} belongs to cluster {theirs}, and this is cluster {ours}. Give it an empty directory to join this cluster, or the addresses of its own one"
    )]
    OtherCluster { name: String, theirs: ClusterId, ours: ClusterId },
    #[error(
        "the name {name} belongs to node {node} at {address}. Choose another name, or remove that node first: firn cluster remove {name}"
    )]
    NameTaken { name: String, node: NodeId, address: String },
    #[error(
        "number {number} is that of node {name}; make a certificate with another number (firn admin certificates node)"
    )]
    NumberTaken { number: NodeId, name: String },
    #[error("the cluster has nodes already, and is not founded again")]
    Founded,
    #[error("{what} {value:?} is not possible: {rule}")]
    Malformed { what: &'static str, value: String, rule: &'static str },
    #[error(
        "release {release} speaks protocols {theirs}, and node {name} with release {other} speaks {ours}. Upgrade one release at a time"
    )]
    Protocols { release: Release, theirs: Protocols, name: String, other: Release, ours: Protocols },
    #[error("there is no node {0}; firn cluster status lists the nodes")]
    NoNode(NodeId),
    #[error(
        "node {0} was removed from the cluster. Give it an empty directory, and let it join again"
    )]
    NodeRemoved(NodeId),
    #[error(
        "the directory is not that of node {name}. Two processes must not use one node's identity; stop one of them, and let it join with an empty directory"
    )]
    OtherDirectory { name: String },
    #[error("the report is of an earlier start of node {0}")]
    OldIncarnation(NodeId),
    #[error("node {name} does not have the role {role}")]
    LacksRole { name: String, role: NodeRole },
    #[error("node {name} keeps {chunks} chunks and is in {groups} log groups. {next}")]
    NodeInUse { name: String, chunks: usize, groups: usize, next: NextStep },
    #[error("the setting is not possible: {0}")]
    Setting(&'static str),
    #[error("there is no log group {0}")]
    NoGroup(GroupId),
    #[error(transparent)]
    Members(#[from] MembersError),
    #[error("node {0} would be in the group twice")]
    NodeTwice(NodeId),
    #[error("the group has heard of term {newest}, so term {term} is over")]
    OldTerm { term: Term, newest: Term },
    #[error("the member that is said to lead is not a voter of group {0}")]
    CannotLead(GroupId),
    #[error("there is no chunk {0}")]
    NoChunk(ChunkId),
    #[error("pages of space {space} are in chunk {chunk} already")]
    PagesTaken { space: SpaceId, chunk: ChunkId },
    #[error("a chunk has at least one page and one node")]
    EmptyChunk,
    #[error("node {name} is {state}; nothing is placed there until it is up")]
    NotReady { name: String, state: NodeState },
    #[error(
        "without node {name} there would be {left} page nodes, and each chunk has {wanted} replicas. Let another page node join first, or keep fewer copies: firn cluster copies {left}"
    )]
    TooFewLeft { name: String, left: usize, wanted: usize },
    #[error("epoch {epoch} is over, the newest one is {newest}")]
    OldEpoch { epoch: Epoch, newest: Epoch },
    #[error("operation {0} is under way; wait until it is done, or cancel it")]
    Busy(OperationId),
    #[error("node {node} has chunk {chunk} already")]
    HasReplica { node: NodeId, chunk: ChunkId },
    #[error("node {node} does not have chunk {chunk}")]
    LacksReplica { node: NodeId, chunk: ChunkId },
    #[error(
        "no node that has chunk {0} is up, so it cannot be copied. Start one of them again, or restore the chunk from a backup"
    )]
    NoSource(ChunkId),
    #[error("chunk {0} is being made or copied; it can be split afterwards")]
    NotComplete(ChunkId),
    #[error("chunk {0} has pages of all spaces, and is cut by another proposal")]
    Spread(ChunkId),
    #[error("chunk {0} does not have pages of all spaces, and is cut by another proposal")]
    NotSpread(ChunkId),
    #[error("chunk {0} has the smallest range that there is")]
    TooNarrow(ChunkId),
    #[error(
        "there are {MOST_CHUNKS} chunks, and more are not possible: each costs the nodes that have it memory and registrations"
    )]
    TooManyChunks,
    #[error("page {page} is not within chunk {chunk}")]
    NotWithin { chunk: ChunkId, page: PageNo },
    #[error("log group {0} has no leader now; try again once one is elected")]
    NoLeader(GroupId),
    #[error("the control group chooses its leader by itself")]
    ControlGroup,
    #[error("node {name} leads the log group already")]
    LeadsAlready { name: String },
    #[error("node {name} is {state}; it can lead once it is up")]
    LeadsLater { name: String, state: NodeState },
    #[error(
        "node {name} has no member of the log group that may lead; firn cluster status shows those of database nodes"
    )]
    MayNotLead { name: String },
    #[error(
        "log group {0} has no other member that is up and may lead; start another database node"
    )]
    NobodyElse(GroupId),
    #[error(
        "log group {0} would have no majority that is up. Start the missing members, or add others first"
    )]
    NoMajority(GroupId),
    #[error("a member is added as voter or logger; it learns first by itself")]
    LearnerAsked,
    #[error("node {name} is in a zone that follows the others, and has no vote there")]
    StandbyVotes { name: String },
    #[error(
        "zone {zone} has nodes that do not follow the others; a zone follows from its first node on, so choose another zone, or leave asynchronous_zone out"
    )]
    ZoneVotes { zone: String },
    #[error("there is no operation {0}; firn cluster status lists those that are under way")]
    NoOperation(OperationId),
    #[error("operation {0} is nearly done, and can be cancelled no more; wait until it ends")]
    TooLateToCancel(OperationId),
}

/// How to go on when a node cannot be removed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    Drain,
    WaitUntilCopied,
    /// The node has the only copy of something.
    Restore,
}

impl std::fmt::Display for NextStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NextStep::Drain => "Move them elsewhere first: firn cluster drain",
            NextStep::WaitUntilCopied => {
                "They are being copied to other nodes; wait until firn cluster status shows none"
            }
            NextStep::Restore => {
                "It has the only replica of some; start it again, or restore them from a backup"
            }
        })
    }
}
