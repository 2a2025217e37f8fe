//! How a control node is set up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_base::network::{Address, ClusterId};
use firn_consensus::MemberId;
use firn_control::{Proposal, Settings};

use crate::observer::Observer;

/// The control nodes of a cluster, with the addresses of their link servers.
pub type ControlMembers = BTreeMap<MemberId, Address>;

/// What becomes of the empty directory of a control node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// A founding member. The members that are given are those of the group.
    Founds,
    /// A member that knows nothing, and that the group's leader fills.
    Joins,
    /// Nothing: the member was there before and has lost its directory. It has forgotten its votes,
    /// so it must not begin again.
    Exists,
}

/// The settings of a control node. Those of one group agree but for `id` and `beginning`.
#[derive(Clone)]
pub struct ControlOptions {
    pub cluster: ClusterId,
    /// Which of the members this node is.
    pub id: MemberId,
    /// The settings of a new cluster. Later ones are in the catalog.
    pub settings: Settings,
    /// The nodes and groups that a new cluster begins with. The first leader proposes its own.
    /// Without any, the control group comes into the catalog once its members have joined.
    pub founding: Option<Proposal>,
    /// What becomes of an empty directory.
    pub beginning: Beginning,
    /// How long a tick of control and of the member lasts. An election takes 10 to 20 ticks.
    pub tick: Duration,
    /// The file is written again, without the entries that are in its snapshot, once it has more
    /// bytes than this and than four snapshots.
    pub file_bytes: u64,
    /// How many applied entries stay in memory for members that are behind. Others get a snapshot.
    pub kept_entries: usize,
    pub observer: Option<Arc<dyn Observer>>,
}

impl ControlOptions {
    /// The usual settings.
    #[must_use]
    pub fn new(cluster: ClusterId, id: MemberId) -> ControlOptions {
        ControlOptions {
            cluster,
            id,
            settings: Settings::default(),
            founding: None,
            beginning: Beginning::Founds,
            tick: Duration::from_millis(100),
            file_bytes: 1 << 20,
            kept_entries: 4096,
            observer: None,
        }
    }
}
