//! Settings of the whole cluster. Times are in ticks of the control group's leader.

use serde::{Deserialize, Serialize};

/// The settings that the catalog replicates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// On how many nodes each chunk is kept.
    pub replicas: u8,
    /// A chunk of one space with more pages in use than this is split. Where chunks have parts of
    /// all spaces, this many neighbouring pages lie together ([`firn_base::Extents`]), and the
    /// value does not change.
    pub chunk_pages: u32,
    /// A node is suspected when it was not heard for this long.
    pub suspect_ticks: u32,
    /// A node is down when it was not heard for this long.
    pub down_ticks: u32,
    /// A node that was down is up again when it has been heard for this long. Doubled for each time
    /// that it went down lately, up to 64 times.
    pub stable_ticks: u32,
    /// A node that has been up for this long is forgiven one of these times.
    pub calm_ticks: u32,
    /// An order that is not acknowledged is sent again after this long.
    pub repeat_ticks: u32,
    /// A node that is upgraded has this long to come back. Until then its replicas are not copied.
    pub upgrade_ticks: u32,
    /// The most copies of chunks that go to one node, or come from one node, at a time.
    pub moves_per_node: u32,
    /// Chunks are moved when a node has this much more than the average, in percent.
    pub tolerance_percent: u32,
}

impl Default for Settings {
    /// For ticks of about 100 ms and pages of 16 KiB: chunks of 10 GiB, 5 s until a node is down.
    fn default() -> Settings {
        Settings {
            replicas: 3,
            chunk_pages: 655_360,
            suspect_ticks: 15,
            down_ticks: 50,
            stable_ticks: 20,
            calm_ticks: 6_000,
            repeat_ticks: 10,
            upgrade_ticks: 1_200,
            moves_per_node: 2,
            tolerance_percent: 10,
        }
    }
}

impl Settings {
    /// What is wrong with the settings, and which values are possible.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let Settings { replicas, chunk_pages, suspect_ticks, down_ticks, .. } = *self;
        if !(1..=7).contains(&replicas) {
            return Some("replicas is 1 to 7");
        }
        if chunk_pages == 0 || chunk_pages > u32::MAX / 2 {
            return Some("chunk_pages is 1 to 2147483647");
        }
        if suspect_ticks < 2 || down_ticks <= suspect_ticks {
            return Some("suspect_ticks is 2 or more, and down_ticks is above it");
        }
        let periods = [self.stable_ticks, self.calm_ticks, self.repeat_ticks, self.upgrade_ticks];
        if periods.contains(&0) || self.moves_per_node == 0 {
            return Some("times and moves_per_node are above 0");
        }
        None
    }
}
