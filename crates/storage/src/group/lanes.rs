//! Queues of messages to the other members of a group.
//!
//! ```text
//!   send ─► queue ─┬─► flush: the thread that queued it sends it, if nothing makes it wait
//!                  └─► task group-send: the rest; it may wait for the disk and for the member
//! ```
//!
//! Members come and go while the group runs ([`Lanes::set_members`]).
//!
//! A commit's message so leaves without a change of threads, and a member that does not read holds
//! up nobody but its own task. One thread at a time sends to a member, so the order is kept.
//!
//! A [`Carrier`] knows how a message gets to a member. The queues are bounded: what does not fit is
//! dropped, and consensus sends it again.
//!
//! Latch rule: the mutex of a queue and the latch of the list of lanes are leaves, held for a few
//! instructions. The thread that sends sets the queue's mark `is_sending` instead.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_consensus::{MemberId, MessageKind};
use parking_lot::{Mutex, RwLock};

use super::peers::{EntryBytes, Inbox, Outgoing};

/// The most messages that wait for one member.
const QUEUE_MESSAGES: usize = 1024;
/// The most log, in bytes, that waits for one member.
const QUEUE_BYTES: u64 = 64 << 20;
/// The pause after a message could not be sent; it doubles each time, up to the longest.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How messages get to the other members. One thread at a time calls it for a member.
pub trait Carrier: Send + Sync + 'static {
    /// Sends a message: `head`, followed by the log of its entries. Blocks for a bounded time.
    ///
    /// # Errors
    /// Why it was not sent, for people.
    fn carry(&self, member: MemberId, head: Vec<u8>, log: &[EntryBytes]) -> Result<(), String>;

    /// Like [`Carrier::carry`], if that needs no wait. Returns whether the message was sent; if it
    /// was not, [`Carrier::carry`] gets it.
    fn carry_at_once(&self, member: MemberId, head: Vec<u8>, log: &[EntryBytes]) -> bool;
}

/// The queues, and the inbox of this member.
pub struct Lanes<C> {
    carrier: C,
    lanes: RwLock<Arc<LaneMap>>,
    inbox: Mutex<Option<Arc<dyn Inbox>>>,
    is_closed: AtomicBool,
    closed: Event,
}

type LaneMap = BTreeMap<MemberId, Arc<Lane>>;

/// The way to one member.
#[derive(Default)]
struct Lane {
    /// The member is gone.
    is_closed: AtomicBool,
    waiting: Mutex<Waiting>,
    arrived: Event,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Outgoing>,
    log_bytes: u64,
    /// A thread has taken a message to send it.
    is_sending: bool,
}

impl<C: Carrier> Lanes<C> {
    #[must_use]
    pub fn new(members: impl IntoIterator<Item = MemberId>, carrier: C) -> Arc<Lanes<C>> {
        Arc::new(Lanes {
            carrier,
            lanes: RwLock::new(Arc::new(
                members.into_iter().map(|member| (member, Arc::default())).collect(),
            )),
            inbox: Mutex::new(None),
            is_closed: AtomicBool::new(false),
            closed: Event::new(),
        })
    }

    #[must_use]
    pub fn carrier(&self) -> &C {
        &self.carrier
    }

    /// Begins to send what is queued.
    pub fn start(self: &Arc<Lanes<C>>, environment: &Environment, inbox: Arc<dyn Inbox>) {
        *self.inbox.lock() = Some(inbox);
        for (member, lane) in &*self.lanes() {
            self.start_lane(environment, *member, lane);
        }
    }

    fn start_lane(self: &Arc<Self>, environment: &Environment, member: MemberId, lane: &Arc<Lane>) {
        let (lanes, lane) = (Arc::clone(self), Arc::clone(lane));
        drop(environment.spawner.spawn("group-send", Box::new(move || lanes.run(member, &lane))));
    }

    fn lanes(&self) -> Arc<LaneMap> {
        Arc::clone(&self.lanes.read())
    }

    /// The other members are these from now on. What waits for one that is gone is dropped. Called
    /// after [`Lanes::start`].
    pub fn set_members(self: &Arc<Self>, environment: &Environment, members: &BTreeSet<MemberId>) {
        let mut current = self.lanes.write();
        let before = Arc::clone(&current);
        let lane = |member: &MemberId| before.get(member).cloned().unwrap_or_default();
        let after: LaneMap = members.iter().map(|member| (*member, lane(member))).collect();
        *current = Arc::new(after.clone());
        drop(current);
        for (member, lane) in &after {
            if !before.contains_key(member) && !self.is_closed() {
                self.start_lane(environment, *member, lane);
            }
        }
        for (member, lane) in &*before {
            if !after.contains_key(member) {
                lane.is_closed.store(true, Ordering::SeqCst);
                lane.arrived.notify_all();
            }
        }
        self.closed.notify_all();
    }

    /// See [`super::Peers::send`].
    pub fn send(&self, outgoing: Outgoing) -> bool {
        let lanes = self.lanes();
        let Some(lane) = lanes.get(&outgoing.message.to()) else { return false };
        let mut waiting = lane.waiting.lock();
        if waiting.messages.len() >= QUEUE_MESSAGES || waiting.log_bytes >= QUEUE_BYTES {
            return false;
        }
        waiting.log_bytes += outgoing.log_bytes();
        waiting.messages.push_back(outgoing);
        true
    }

    /// See [`super::Peers::flush`].
    pub fn flush(&self) {
        for (member, lane) in &*self.lanes() {
            while let Some(outgoing) = lane.take() {
                let is_sent = !needs_disk(&outgoing)
                    && self.carrier.carry_at_once(*member, head(&outgoing), &outgoing.log.kept);
                lane.has_tried((!is_sent).then_some(outgoing));
                if !is_sent {
                    lane.arrived.notify_all();
                    break;
                }
            }
        }
    }

    /// Ends the tasks without waiting for them, and lets go of the inbox.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.closed.notify_all();
        self.lanes().values().for_each(|lane| lane.arrived.notify_all());
        drop(self.inbox.lock().take());
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Where messages of the other members go, between start and close.
    #[must_use]
    pub fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.inbox.lock().clone()
    }

    /// What a task `group-send` does: it sends what waits for one member.
    fn run(&self, member: MemberId, lane: &Lane) {
        let mut pause = PAUSE;
        let is_closed = || self.is_closed() || lane.is_closed.load(Ordering::SeqCst);
        while !is_closed() {
            let Some(outgoing) = lane.next(is_closed) else { return };
            let carried = self.carry(member, &outgoing);
            lane.has_tried(None);
            match carried {
                Ok(()) => pause = PAUSE,
                Err(reason) => {
                    tracing::debug!(reason, %member, "a member of the group is not reached");
                    lane.forget_all();
                    let Some(inbox) = self.inbox() else { return };
                    inbox.unreachable(member);
                    self.closed.wait_until(Some(pause), is_closed);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn carry(&self, member: MemberId, outgoing: &Outgoing) -> Result<(), String> {
        let mut head = head(outgoing);
        if needs_disk(outgoing) {
            let Some(inbox) = self.inbox() else { return Ok(()) };
            let read = match outgoing.log.stored {
                Some((from, to)) => inbox.read(from, to, &mut head),
                None => inbox.read_watermarks(&mut head),
            };
            if let Err(error) = read {
                tracing::warn!(%error, %member, "log for a member is not read");
                inbox.unreachable(member);
                return Ok(());
            }
        }
        self.carrier.carry(member, head, &outgoing.log.kept)
    }
}

/// Whether something that goes with the message has to be read first.
fn needs_disk(outgoing: &Outgoing) -> bool {
    outgoing.log.stored.is_some() || outgoing.message.kind() == MessageKind::Restart
}

/// The message without its log.
fn head(outgoing: &Outgoing) -> Vec<u8> {
    let mut head = Vec::new();
    outgoing.message.encode(&mut head);
    head
}

impl Lane {
    /// The next message. Blocks until there is one that nobody else sends; `None` if `is_closed`.
    fn next(&self, is_closed: impl Fn() -> bool) -> Option<Outgoing> {
        let mut next = None;
        self.arrived.wait_until(None, || {
            next = self.take();
            next.is_some() || is_closed()
        });
        next
    }

    /// The next message, which the caller sends; `None` if there is none, or if another thread is
    /// sending: that one looks again.
    fn take(&self) -> Option<Outgoing> {
        let mut waiting = self.waiting.lock();
        if waiting.is_sending {
            return None;
        }
        let next = waiting.messages.pop_front()?;
        waiting.log_bytes -= next.log_bytes();
        waiting.is_sending = true;
        Some(next)
    }

    /// The message that was taken is on its way, or goes back.
    fn has_tried(&self, unsent: Option<Outgoing>) {
        let mut waiting = self.waiting.lock();
        waiting.is_sending = false;
        if let Some(outgoing) = unsent {
            waiting.log_bytes += outgoing.log_bytes();
            waiting.messages.push_front(outgoing);
        }
    }

    fn forget_all(&self) {
        let mut waiting = self.waiting.lock();
        (waiting.messages, waiting.log_bytes) = (VecDeque::new(), 0);
    }
}

#[cfg(test)]
mod tests;
