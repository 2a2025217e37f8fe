//! The ways to the other control nodes: one queue, one link and one task for each. They come and go
//! with the members.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::network::Address;
use firn_consensus::MemberId;
use firn_link::{Caller, CallerSettings, LocalNode};
use parking_lot::{Mutex, RwLock};

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
pub(super) struct Lanes {
    environment: Environment,
    local: Arc<LocalNode>,
    tick: Duration,
    lanes: RwLock<BTreeMap<MemberId, Arc<Lane>>>,
}

pub(super) struct Lane {
    member: MemberId,
    address: Address,
    caller: Caller,
    waiting: Mutex<VecDeque<Vec<u8>>>,
    arrived: Event,
    /// The member has left, or is somewhere else.
    is_over: AtomicBool,
}

impl Lanes {
    /// Ways to nobody yet.
    pub(super) fn new(environment: &Environment, local: &Arc<LocalNode>, tick: Duration) -> Lanes {
        let (environment, local) = (environment.clone(), Arc::clone(local));
        Lanes { environment, local, tick, lanes: RwLock::default() }
    }

    /// The other members are these from now on. Returns the new ways; the caller starts their tasks
    /// ([`Shared::run_lane`]).
    pub(super) fn lead_to(&self, others: &ControlMembers) -> Vec<Arc<Lane>> {
        let mut lanes = self.lanes.write();
        let stays = |id: &MemberId, lane: &Arc<Lane>| others.get(id) == Some(&lane.address);
        let over = lanes.extract_if(.., |id, lane| !stays(id, lane));
        over.for_each(|(_, lane)| lane.end());
        let mut new = Vec::new();
        for (member, address) in others {
            if !lanes.contains_key(member) {
                let lane = Arc::new(self.lane(*member, address));
                lanes.insert(*member, Arc::clone(&lane));
                new.push(lane);
            }
        }
        new
    }

    fn lane(&self, member: MemberId, address: &Address) -> Lane {
        let mut settings = CallerSettings::new(address.clone());
        // A link that is dead costs an election if it is noticed late.
        settings.connect_timeout = self.tick * 10;
        settings.send_timeout = self.tick * 10;
        settings.most_delay = self.tick * 5;
        settings.silence = (self.tick * 20).max(LEAST_SILENCE);
        Lane {
            member,
            address: address.clone(),
            caller: Caller::new(&self.environment, Arc::clone(&self.local), settings),
            waiting: Mutex::default(),
            arrived: Event::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Queues a message. False if it was dropped.
    pub(super) fn send(&self, to: MemberId, bytes: Vec<u8>) -> bool {
        let lanes = self.lanes.read();
        let Some(lane) = lanes.get(&to) else { return false };
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
        self.lanes.read().values().for_each(|lane| lane.arrived.notify_all());
    }

    pub(super) fn close(&self) {
        self.lanes.read().values().for_each(|lane| lane.caller.close());
    }
}

impl Lane {
    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.arrived.notify_all();
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// What a task `control-send` does.
    pub(super) fn run_lane(&self, lane: &Lane) {
        let ends = || self.is_stopped() || lane.is_over();
        loop {
            lane.arrived.wait_until(None, || ends() || !lane.waiting.lock().is_empty());
            if ends() {
                break;
            }
            let Some(bytes) = lane.waiting.lock().pop_front() else { continue };
            let is_long = bytes.len() > LONG_BYTES;
            let patience = if is_long { 10 * self.options.tick } else { Duration::ZERO };
            if let Err(error) = lane.caller.cast(CONTROL_GROUP, bytes, patience) {
                tracing::debug!(%error, member = %lane.member, "a control node is not reached");
                lane.waiting.lock().clear();
                self.event(|core| core.member.unreachable(lane.member));
            }
        }
        if lane.is_over() {
            lane.caller.close();
        }
    }
}
