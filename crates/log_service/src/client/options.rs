//! How patient a client is, and how much it takes at once.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteLogOptions {
    /// The names of readers that stay registered when this client is gone, until
    /// [`super::RemoteLog::forget`] or until they are dropped for holding back too much. For
    /// readers that come back, such as a page node's: those of its chunks have names that go on
    /// with a slash, and stay too. The names are unique in the cluster.
    pub stays: Vec<String>,
    /// How long a call waits for members before the log counts as unavailable.
    pub patience: Duration,
    /// How long one member may take for one request.
    pub attempt: Duration,
    /// How often leases are renewed and positions asked for, at each member.
    pub renewal: Duration,
    /// How long a stream may bring nothing while another member has more.
    pub behind: Duration,
    /// How long a stream may be silent, heartbeats included.
    pub silence: Duration,
    /// How far a member may push ahead of a follower, in bytes.
    pub window_bytes: u64,
    /// About how much log one message has at most, in bytes.
    pub piece_bytes: u32,
    /// How long a member lets log gather before it pushes more to a follower that has all that is
    /// durable: fewer messages for log that comes later. A second at most.
    pub gather: Duration,
}

impl Default for RemoteLogOptions {
    fn default() -> RemoteLogOptions {
        RemoteLogOptions {
            stays: Vec::new(),
            patience: Duration::from_secs(10),
            attempt: Duration::from_secs(1),
            renewal: Duration::from_millis(200),
            behind: Duration::from_millis(500),
            silence: Duration::from_secs(2),
            window_bytes: 4 << 20,
            piece_bytes: 1 << 20,
            gather: Duration::ZERO,
        }
    }
}
