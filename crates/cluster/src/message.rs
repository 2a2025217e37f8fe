//! What a process tells of itself, as bytes. `docs/formats/cluster.md` describes them.

use firn_api::report::ArchiveProgress;
use firn_base::network::NodeId;
use firn_base::{Cts, Lsn};
use serde::{Deserialize, Serialize};

const VERSION: u8 = 7;

/// The state of a process. The order of the fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    pub node: NodeId,
    /// The member of the log group, if the process has one.
    pub log: Option<LogStatus>,
    /// The page node, if the process has one.
    pub pages: Option<PagesStatus>,
    /// The replica, if the process has one.
    pub replica: Option<ReplicaStatus>,
    /// What the process archives, if it has an archive.
    pub archive: Option<ArchivingStatus>,
    /// Where clients are answered, while the process's engine or replica runs.
    pub serves: Option<String>,
    /// Why the process's engine or replica cannot be opened, if so.
    pub failure: Option<String>,
    /// Whether the process's engine or replica is closed because the cluster is paused.
    pub is_paused: bool,
    /// How often a standby has taken the cluster over, as far as the process knows.
    pub generation: u64,
}

/// A member of the log group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStatus {
    /// The term that the member leads in.
    pub leads: Option<u64>,
    /// The member that leads, as far as this one knows.
    pub leader: Option<u64>,
    /// Where the kept log begins.
    pub truncated: Lsn,
    /// The end of what the group has made durable, as far as the member knows.
    pub durable: Lsn,
    /// The end of all log that the member has.
    pub end: Lsn,
    /// Of a leader: how many milliseconds ago the log was durable up to where, the newest first.
    pub history: Vec<(u64, Lsn)>,
    /// Why the member takes no part any more.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesStatus {
    /// Whether it answers. If not, the positions are not known yet.
    pub is_open: bool,
    /// The node needs the log from here on.
    pub kept_from: Lsn,
    /// The end of the log that it has received.
    pub received: Lsn,
    /// All log before this is in page images.
    pub applied: Lsn,
    /// For how long, in milliseconds, there has been log behind `applied`.
    pub behind_ms: u64,
    pub images_per_second: u64,
    /// Why it does not answer, or why no more log comes.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Whether it follows the log. If not, the rest is of its last life.
    pub is_open: bool,
    /// The epoch of the writer that it follows.
    pub epoch: u64,
    /// The end of the log that it has applied.
    pub applied: Lsn,
    /// Its snapshots see commits up to this timestamp.
    pub visible: Cts,
    /// Durable log that it has not applied.
    pub behind_bytes: u64,
    /// For how long the oldest of that has been known here.
    pub behind_ms: u64,
    /// Whether the writer did not answer when it was asked last.
    pub is_cut_off: bool,
    pub load: LoadStatus,
}

/// What a replica's process has done up to a time. The figures only grow: the difference of two
/// looks says how busy it was. They begin again when the replica is opened again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStatus {
    /// The time, by the process's own clock.
    pub at_us: u64,
    /// How long the process has had processors.
    pub processor_us: u64,
    /// How many processors it can have at the same time.
    pub processors: u32,
    /// Reads that it has answered.
    pub reads: u64,
    /// How long they took together.
    pub read_us: u64,
}

/// The archiver of a process. Without one that runs, all figures are 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivingStatus {
    /// Whether this process is the one that archives, as far as it knows.
    pub is_chosen: bool,
    /// The choice in which it runs.
    pub epoch: u64,
    /// The archive does not need log before this. `None` until the archive has been read.
    pub archived: Option<Lsn>,
    pub progress: ArchiveProgress,
}

impl LogStatus {
    /// The member that leads, of members with what each has told. Several may believe that they
    /// lead: the one in the newest term does.
    pub(crate) fn newest_leader<'a, T>(
        members: impl Iterator<Item = (T, &'a LogStatus)>,
    ) -> Option<(T, &'a LogStatus)> {
        let leaders = members.filter(|(_, log)| log.leads.is_some());
        leaders.max_by_key(|(_, log)| log.leads)
    }
}

/// The bytes are no status of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the node's status cannot be read; it may be of another release")]
pub struct NotAStatus;

impl NodeStatus {
    /// A node that has no parts yet.
    pub(crate) fn of(node: NodeId) -> NodeStatus {
        NodeStatus {
            node,
            log: None,
            pages: None,
            replica: None,
            archive: None,
            serves: None,
            failure: None,
            is_paused: false,
            generation: 0,
        }
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![VERSION]).expect("a status is encodable")
    }

    /// # Errors
    /// If the bytes are no status of this version.
    pub fn decode(bytes: &[u8]) -> Result<NodeStatus, NotAStatus> {
        let [VERSION, rest @ ..] = bytes else { return Err(NotAStatus) };
        match postcard::take_from_bytes(rest) {
            Ok((status, [])) => Ok(status),
            _ => Err(NotAStatus),
        }
    }
}

#[cfg(test)]
mod tests;
