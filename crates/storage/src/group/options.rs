//! How a member's driver is set up.

use std::collections::BTreeMap;
use std::time::Duration;

use firn_consensus::MemberId;

/// The settings of [`super::GroupStore`].
#[derive(Debug, Clone)]
pub struct GroupOptions {
    /// Those of the member itself.
    pub member: firn_consensus::Options,
    /// How long a tick of the member lasts.
    pub tick: Duration,
    /// How long a committer, or an open, waits for a majority before the log counts as unavailable.
    pub patience: Duration,
    /// About how many bytes a round has at most.
    pub round_bytes: usize,
    /// Log that no thread waits for is written after this time.
    pub idle_flush: Duration,
    /// How many bytes of the newest log stay in memory, for members that are a little behind. Older
    /// log is read from the disk for them.
    pub recent_bytes: usize,
    /// Where clients find the members, for [`firn_api::LogError::NotLeader`].
    pub names: BTreeMap<MemberId, String>,
}

impl GroupOptions {
    /// Settings for members in one datacentre.
    #[must_use]
    pub fn new(member: firn_consensus::Options) -> GroupOptions {
        GroupOptions {
            member,
            tick: Duration::from_millis(50),
            patience: Duration::from_secs(10),
            round_bytes: 1 << 20,
            idle_flush: Duration::from_millis(50),
            recent_bytes: 16 << 20,
            names: BTreeMap::new(),
        }
    }
}
