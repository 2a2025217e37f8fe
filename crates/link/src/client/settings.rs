//! Where a link leads, and how patient it is.

use std::time::Duration;

use firn_base::network::{Address, NodeId};

/// Where a link leads, and its patience.
#[derive(Debug, Clone)]
pub struct CallerSettings {
    pub peer: Address,
    /// The node that must answer there; `None`: any of the cluster.
    pub wanted: Option<NodeId>,
    pub connect_timeout: Duration,
    /// The connection ends when one write takes longer.
    pub send_timeout: Duration,
    /// The connection ends when nothing, not even the answer to a ping, has come for this long.
    pub silence: Duration,
    /// Most connections for exchanges, beside the one that everything else shares.
    pub most_lanes: usize,
    /// The delay before the second attempt to connect. It doubles with each further one.
    pub least_delay: Duration,
    pub most_delay: Duration,
}

/// Pings per time of silence after which the peer counts as gone.
const PINGS_PER_SILENCE: u32 = 3;

impl CallerSettings {
    /// How long a connection may be idle without a ping.
    pub(super) fn ping_interval(&self) -> Duration {
        self.silence / PINGS_PER_SILENCE
    }

    /// The usual patience within a data centre.
    #[must_use]
    pub fn new(peer: Address) -> CallerSettings {
        CallerSettings {
            peer,
            wanted: None,
            connect_timeout: Duration::from_secs(5),
            send_timeout: Duration::from_secs(5),
            silence: Duration::from_secs(6),
            most_lanes: 64,
            least_delay: Duration::from_millis(20),
            most_delay: Duration::from_secs(2),
        }
    }
}
