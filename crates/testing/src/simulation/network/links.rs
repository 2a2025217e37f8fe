//! The faults between hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{HostId, LinkFaults};
use crate::random::Random;

/// The longest time of a message from a host to itself.
const LOOPBACK_DELAY: Duration = Duration::from_micros(20);

/// All links: the default faults, and those that differ.
#[derive(Default)]
pub(super) struct Links {
    pub(super) default: LinkFaults,
    pub(super) own: BTreeMap<(HostId, HostId), LinkFaults>,
    pub(super) cuts: BTreeSet<(HostId, HostId)>,
}

impl Links {
    pub(super) fn is_cut(&self, from: HostId, to: HostId) -> bool {
        self.cuts.contains(&(from, to))
    }

    /// The faults from one host to another; none within a host.
    pub(super) fn faults(&self, from: HostId, to: HostId) -> LinkFaults {
        if from == to {
            let delay = Duration::ZERO..=LOOPBACK_DELAY;
            return LinkFaults { delay, ..LinkFaults::default() };
        }
        self.own.get(&(from, to)).unwrap_or(&self.default).clone()
    }
}

impl LinkFaults {
    /// Draws the time that one message is under way.
    pub(super) fn draw_delay(&self, random: &Random) -> Duration {
        let (least, most) = (self.delay.start().as_nanos(), self.delay.end().as_nanos());
        Duration::from_nanos(random.between(least as u64, most.max(least) as u64))
    }

    /// The time that a message of this size takes.
    pub(super) fn time_of(&self, bytes: usize) -> Duration {
        let rate = self.bytes_per_second.map_or(f64::INFINITY, |rate| rate.max(1) as f64);
        Duration::from_secs_f64(bytes as f64 / rate)
    }
}
