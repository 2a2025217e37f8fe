//! What a process of a cluster can tell of the whole cluster, for the SQL tables about it, and what
//! an administrator can ask of it in SQL.
//!
//! A report is taken when a statement reads one of the tables, and says what control and the nodes
//! answered then. What did not answer is missing from it, or is `None`.

use firn_base::Lsn;

/// The cluster that a process belongs to.
pub trait ClusterSeam: Send + Sync {
    /// The state of the cluster now, or a moment ago. Blocks for some seconds if nodes do not
    /// answer.
    fn report(&self) -> ClusterReport;

    /// Has another database node write: that one, or any that can. Returns once the switch is under
    /// way, before the statement that asks for it has ended: the switch waits for that. Blocks
    /// until control has taken it.
    ///
    /// # Errors
    /// Why not, for people: there is no such node, it cannot lead, or control does not answer.
    fn switch(&self, to: Option<&str>) -> Result<(), String>;
}

/// The state of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterReport {
    pub nodes: Vec<ClusterNode>,
    /// One for each log member, page node, replica and archiver that answers.
    pub parts: Vec<ClusterPart>,
    pub members: Vec<ClusterMember>,
    pub copies: Vec<ChunkCopy>,
    pub operations: Vec<ClusterOperation>,
}

/// A node of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterNode {
    pub name: String,
    pub number: u64,
    /// Where other nodes reach it.
    pub address: String,
    /// Where clients reach it, if it has any.
    pub client_address: Option<String>,
    /// Joined with `+`.
    pub roles: String,
    /// The release that the node told control.
    pub version: Option<String>,
    /// What control makes of the node.
    pub state: Option<String>,
    /// When the process that reports learnt of this state, in milliseconds since the Unix epoch.
    pub since_ms: Option<u64>,
    /// How often the node has started.
    pub starts: Option<u64>,
    /// Where and how clients are answered now.
    pub serves: Option<String>,
    /// What is wrong with the node, or why it does not answer.
    pub error: Option<String>,
}

/// What kind of part follows the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    Log,
    Pages,
    Replica,
    Archive,
}

/// A part of a node that follows the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPart {
    /// The node's name.
    pub node: String,
    pub kind: PartKind,
    /// The part has all log before this. `None` while it is being opened.
    pub position: Option<Lsn>,
    /// Durable log that it does not have, as far as is known.
    pub lag_bytes: Option<u64>,
    /// For how long there has been some. `None` for a member of the log: it does not know.
    pub lag_ms: Option<u64>,
    /// Where the log begins that a member has or that a page node needs.
    pub kept_from: Option<Lsn>,
    /// The term in which a log member leads; the epoch of the writer that a replica follows.
    pub epoch: Option<u64>,
    /// Pages that a page node stores in a second.
    pub images_per_second: Option<u64>,
    pub error: Option<String>,
}

/// A member of a group: of that of the control nodes, or of a log group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterMember {
    /// 0 is the group of the control nodes.
    pub group: u64,
    /// Counts the changes of the group's members.
    pub group_epoch: u64,
    pub member: u64,
    /// The node's name.
    pub node: String,
    pub role: &'static str,
    /// The term in which it leads, as far as control knows.
    pub leads_in: Option<u64>,
}

/// A copy of a chunk of pages on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkCopy {
    pub chunk: u64,
    /// Counts the changes of the chunk's range and copies.
    pub epoch: u64,
    /// `None`: the chunk has pages of all spaces.
    pub space: Option<u64>,
    pub first_page: u64,
    /// The page behind the last one. `None`: there is no end.
    pub end_page: Option<u64>,
    /// The group whose log makes the pages.
    pub group: u64,
    /// About how much a copy takes.
    pub bytes: u64,
    pub pages: u64,
    /// The name of the node that has the copy.
    pub node: String,
    pub state: &'static str,
    /// All log before this is in stored pages of the copy.
    pub position: Option<Lsn>,
    pub lag_bytes: Option<u64>,
    pub lag_ms: Option<u64>,
}

/// An operation of control that is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterOperation {
    pub number: u64,
    pub text: String,
    pub reason: &'static str,
    pub done_bytes: Option<u64>,
    pub total_bytes: Option<u64>,
    pub waits_for: Option<String>,
}
