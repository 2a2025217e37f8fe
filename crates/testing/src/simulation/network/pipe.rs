//! One direction of a connection: the items under way, and when they arrive.
//!
//! ```text
//!   post ─► [cut?] ─► held until the link is healed ─┐
//!              └────► under way, by time of arrival ◄┘─► received
//! ```
//!
//! Invariants: with [`Delivery::InOrder`] no item arrives before an earlier one; no item arrives
//! after an end; `under_way_bytes` is the sum of the messages in both places.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use firn_base::event::Event;
use firn_base::network::Delivery;

use super::{Life, State};
use crate::simulation::state::ProcessId;

pub(super) type PipeId = u64;

/// Delay before the simulated system repeats a lost message; it doubles each time.
const FIRST_REPETITION: Duration = Duration::from_millis(200);
/// The most losses of one message.
const MOST_REPETITIONS: u32 = 6;

/// The content of a pipe.
pub(super) enum Item {
    Message(Vec<u8>),
    /// The sender has closed the connection.
    End,
}

impl Item {
    fn length(&self) -> usize {
        match self {
            Item::Message(message) => message.len(),
            Item::End => 0,
        }
    }
}

pub(super) struct Pipe {
    pub(super) from: ProcessId,
    pub(super) to: ProcessId,
    pub(super) delivery: Delivery,
    pub(super) back: PipeId,
    under_way: BTreeMap<(Duration, u64), Item>,
    held: VecDeque<Item>,
    next_sequence: u64,
    last_arrival: Duration,
    /// The time at which the link has sent all earlier messages.
    busy_until: Duration,
    under_way_bytes: usize,
    /// Set when that end of the connection was closed or broken.
    pub(super) is_closed: bool,
    /// Notified when an item may have arrived.
    pub(super) arrived: Arc<Event>,
    /// Notified when there may be room for more.
    pub(super) drained: Arc<Event>,
}

/// The result of receiving.
pub(super) enum Found {
    Message(Vec<u8>),
    End,
    /// Nothing yet; the next item arrives at this time, if one is under way.
    Nothing(Option<Duration>),
}

impl Pipe {
    pub(super) fn new(from: ProcessId, to: ProcessId, back: PipeId, delivery: Delivery) -> Pipe {
        Pipe {
            from,
            to,
            delivery,
            back,
            under_way: BTreeMap::new(),
            held: VecDeque::new(),
            next_sequence: 0,
            last_arrival: Duration::ZERO,
            busy_until: Duration::ZERO,
            under_way_bytes: 0,
            is_closed: false,
            arrived: Arc::new(Event::new()),
            drained: Arc::new(Event::new()),
        }
    }

    /// Whether a message of this size may be sent now: short ones share the window, a long one is
    /// sent when it is empty.
    pub(super) fn has_room(&self, bytes: usize, window_bytes: usize) -> bool {
        self.under_way_bytes == 0 || self.under_way_bytes + bytes <= window_bytes
    }

    /// Whether the receiver has been told of the end by now.
    pub(super) fn has_told_end(&self, now: Duration) -> bool {
        let mut due = self.under_way.range(..=(now, u64::MAX));
        due.any(|(_, item)| matches!(item, Item::End))
    }

    fn put(&mut self, item: Item, at: Duration) {
        let at = match (self.delivery, &item) {
            (Delivery::Loose, Item::Message(_)) => at,
            _ => at.max(self.last_arrival),
        };
        self.last_arrival = self.last_arrival.max(at);
        self.under_way_bytes += item.length();
        self.under_way.insert((at, self.next_sequence), item);
        self.next_sequence += 1;
        self.arrived.notify_all();
    }

    /// Takes the next item that has arrived. An end stays, so that the next call finds it too.
    pub(super) fn take(&mut self, now: Duration) -> Found {
        let Some((&(at, sequence), item)) = self.under_way.first_key_value() else {
            return Found::Nothing(None);
        };
        if at > now {
            return Found::Nothing(Some(at));
        }
        match item {
            Item::End => Found::End,
            Item::Message(_) => {
                let Some(Item::Message(message)) = self.under_way.remove(&(at, sequence)) else {
                    unreachable!("it was looked at above");
                };
                self.under_way_bytes -= message.len();
                self.drained.notify_all();
                Found::Message(message)
            }
        }
    }

    /// Drops all items that were not received; returns the number of messages.
    fn clear(&mut self) -> u64 {
        let under_way = std::mem::take(&mut self.under_way);
        let items = under_way.into_values().chain(self.held.drain(..));
        self.under_way_bytes = 0;
        self.drained.notify_all();
        items.filter(|item| matches!(item, Item::Message(_))).count() as u64
    }
}

impl State {
    pub(super) fn post(&mut self, id: PipeId, item: Item, now: Duration) {
        let Some(pipe) = self.pipes.get(&id) else { return };
        let (from, to) = (self.host_of(pipe.from), self.host_of(pipe.to));
        let (delivery, is_closed) = (pipe.delivery, pipe.is_closed);
        let is_message = matches!(item, Item::Message(_));
        if is_closed || !self.is_alive(self.pipes[&id].to) {
            // The machine answers that it does not know the connection, unless it is without power.
            self.counters.lost += u64::from(is_message);
            if is_message && self.is_up(to) {
                let back = self.pipes[&id].back;
                self.post_reset(back, now);
            }
            return;
        }
        if self.links.is_cut(from, to) {
            match delivery {
                Delivery::InOrder => self.hold_item(id, item),
                Delivery::Loose => self.counters.lost += u64::from(is_message),
            }
            return;
        }
        let faults = self.links.faults(from, to);
        let busy_until = self.pipes[&id].busy_until.max(now) + faults.time_of(item.length());
        let mut at = busy_until + faults.draw_delay(self.random());
        if let Some(pipe) = self.pipes.get_mut(&id) {
            pipe.busy_until = busy_until;
        }
        if is_message && self.random().chance(faults.reset) {
            return self.break_connection(id, item, now);
        }
        if is_message && delivery == Delivery::Loose {
            return self.post_loosely(id, item, at, &faults);
        }
        let mut patience = FIRST_REPETITION;
        for _ in 0..MOST_REPETITIONS {
            if !is_message || !self.random().chance(faults.loss) {
                break;
            }
            self.counters.repeated += 1;
            at += patience;
            patience *= 2;
        }
        self.put(id, item, at);
    }

    fn post_loosely(&mut self, id: PipeId, item: Item, at: Duration, faults: &super::LinkFaults) {
        if self.random().chance(faults.loss) {
            self.counters.lost += 1;
            return;
        }
        if let Item::Message(message) = &item
            && self.random().chance(faults.duplication)
        {
            self.counters.doubled += 1;
            let later = at + faults.draw_delay(self.random());
            let copy = Item::Message(message.clone());
            self.put(id, copy, later);
        }
        self.put(id, item, at);
    }

    fn put(&mut self, id: PipeId, item: Item, at: Duration) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            pipe.put(item, at);
        }
    }

    fn hold_item(&mut self, id: PipeId, item: Item) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            pipe.under_way_bytes += item.length();
            pipe.held.push_back(item);
        }
    }

    /// The connection ends with this message, which may or may not arrive.
    fn break_connection(&mut self, id: PipeId, item: Item, now: Duration) {
        self.counters.resets += 1;
        let back = self.pipes[&id].back;
        match self.random().chance(0.5) {
            true => self.put(id, item, now),
            false => self.counters.lost += 1,
        }
        self.post_reset(id, now);
        self.post_reset(back, now);
    }

    /// Tells the receiving side that the connection has ended. The seed decides whether it still
    /// receives items under way.
    pub(super) fn post_reset(&mut self, id: PipeId, now: Duration) {
        let Some(pipe) = self.pipes.get(&id) else { return };
        if self.processes[&pipe.to].life != Life::Alive {
            return;
        }
        if self.random().chance(0.5)
            && let Some(pipe) = self.pipes.get_mut(&id)
        {
            self.counters.lost += pipe.clear();
        }
        self.post(id, Item::End, now);
    }

    /// Holds the items under way until the link is healed.
    pub(super) fn hold(&mut self, id: PipeId, now: Duration) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        let late = pipe.under_way.split_off(&(now, u64::MAX));
        let loose = pipe.delivery == Delivery::Loose;
        for item in late.into_values() {
            match loose {
                true => {
                    pipe.under_way_bytes -= item.length();
                    self.counters.lost += u64::from(matches!(item, Item::Message(_)));
                }
                false => pipe.held.push_back(item),
            }
        }
        pipe.last_arrival = now.min(pipe.last_arrival);
    }

    /// Sends the held items.
    pub(super) fn release(&mut self, id: PipeId, now: Duration) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        let held = std::mem::take(&mut pipe.held);
        pipe.under_way_bytes -= held.iter().map(Item::length).sum::<usize>();
        held.into_iter().for_each(|item| self.post(id, item, now));
    }

    /// Notes that the receiving side is gone.
    pub(super) fn forget(&mut self, id: PipeId) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            self.counters.lost += pipe.clear();
        }
    }
}
