//! How a control node is set up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_base::network::{Address, ClusterId};
use firn_consensus::MemberId;
use firn_control::{Founding, Settings};

use crate::observer::Observer;

/// The control nodes of a cluster, with the addresses of their link servers. Each member has the
/// same map.
pub type ControlMembers = BTreeMap<MemberId, Address>;

/// The settings of a control node. Those of one group agree but for `id`.
#[derive(Clone)]
pub struct ControlOptions {
    pub cluster: ClusterId,
    /// Which of the members this node is.
    pub id: MemberId,
    /// The settings of a new cluster. Later ones are in the catalog.
    pub settings: Settings,
    /// The nodes and groups that a new cluster begins with. The first leader proposes its own.
    /// Without any, the control group comes into the catalog once its members have joined.
    pub founding: Option<Founding>,
    /// Whether an empty directory becomes a founding member. A member that was founded before and
    /// has lost its directory must not be founded again: it has forgotten its votes.
    pub may_found: bool,
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
            may_found: true,
            tick: Duration::from_millis(100),
            file_bytes: 1 << 20,
            kept_entries: 4096,
            observer: None,
        }
    }
}
