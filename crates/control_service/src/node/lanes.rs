//! The ways to the other control nodes: one queue, one link and one task for each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_consensus::MemberId;
use firn_link::{Caller, CallerSettings, LocalNode};
use parking_lot::Mutex;

use super::CONTROL_GROUP;
use super::shared::Shared;
use crate::options::ControlMembers;

/// The most messages that wait for one member.
const MOST_WAITING: usize = 1024;
/// No link ends for a shorter silence than this, whatever a tick is.
const LEAST_SILENCE: Duration = Duration::from_secs(2);
/// A message with more bytes than this may wait for room on the link.
const LONG_BYTES: usize = 64 << 10;

/// The other members, by id.
pub(super) struct Lanes(BTreeMap<MemberId, Lane>);

struct Lane {
    caller: Caller,
    waiting: Mutex<VecDeque<Vec<u8>>>,
    arrived: Event,
}

impl Lanes {
    /// Begins to connect to the other members.
    pub(super) fn new(
        environment: &Environment,
        local: &Arc<LocalNode>,
        members: &ControlMembers,
        own: MemberId,
        tick: Duration,
    ) -> Lanes {
        let lane = |(member, address): (&MemberId, &firn_base::network::Address)| {
            let mut settings = CallerSettings::new(address.clone());
            // A link that is dead costs an election if it is noticed late.
            settings.connect_timeout = tick * 10;
            settings.send_timeout = tick * 10;
            settings.most_delay = tick * 5;
            settings.silence = (tick * 20).max(LEAST_SILENCE);
            let caller = Caller::new(environment, Arc::clone(local), settings);
            (*member, Lane { caller, waiting: Mutex::default(), arrived: Event::new() })
        };
        Lanes(members.iter().filter(|(member, _)| **member != own).map(lane).collect())
    }

    pub(super) fn members(&self) -> Vec<MemberId> {
        self.0.keys().copied().collect()
    }

    /// Queues a message. False if it was dropped.
    pub(super) fn send(&self, to: MemberId, bytes: Vec<u8>) -> bool {
        let Some(lane) = self.0.get(&to) else { return false };
        let mut waiting = lane.waiting.lock();
        if waiting.len() >= MOST_WAITING {
            return false;
        }
        waiting.push_back(bytes);
        drop(waiting);
        lane.arrived.notify_all();
        true
    }

    pub(super) fn wake_all(&self) {
        self.0.values().for_each(|lane| lane.arrived.notify_all());
    }

    pub(super) fn close(&self) {
        self.0.values().for_each(|lane| lane.caller.close());
    }
}

impl Shared {
    /// What a task `control-send` does.
    pub(super) fn run_lane(&self, member: MemberId) {
        let lane = &self.lanes.0[&member];
        loop {
            let is_due = || self.is_stopped() || !lane.waiting.lock().is_empty();
            lane.arrived.wait_until(None, is_due);
            if self.is_stopped() {
                return;
            }
            let Some(bytes) = lane.waiting.lock().pop_front() else { continue };
            let is_long = bytes.len() > LONG_BYTES;
            let patience = if is_long { 10 * self.options.tick } else { Duration::ZERO };
            if let Err(error) = lane.caller.cast(CONTROL_GROUP, bytes, patience) {
                tracing::debug!(%error, %member, "a control node is not reached");
                lane.waiting.lock().clear();
                self.event(|core| core.member.unreachable(member));
            }
        }
    }
}
