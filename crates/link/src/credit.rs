//! Room for requests, measured in bytes that the server has not yet given back.
//!
//! Latch rule 2: the one mutex is a leaf: nothing is called with it held.

use std::collections::VecDeque;
use std::time::Duration;

use firn_base::event::Event;
use parking_lot::Mutex;

/// How long a request waits for room before it asks for it again. A request that another thread
/// had room for may arrive behind the question, and its room is not given back at once.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// What the server lets one client have under way. Requests get room in the order in which they
/// asked, so that a long one is not starved by short ones.
#[derive(Debug)]
pub(crate) struct Credit {
    window: u64,
    room: Mutex<Room>,
    /// Notified when there is more room, when another one is first, and at the end.
    changed: Event,
}

#[derive(Debug, Default)]
struct Room {
    used: u64,
    /// Those who wait, by their tickets.
    waiting: VecDeque<u64>,
    next_ticket: u64,
    has_ended: bool,
}

/// Why a request got no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    Ended,
    TimedOut,
}

impl Credit {
    pub(crate) fn new(window: u64) -> Credit {
        Credit { window, room: Mutex::default(), changed: Event::new() }
    }

    /// Takes room for a request; one that is longer than the window gets it when nothing else is
    /// under way. Blocks for `timeout` at most.
    pub(crate) fn take(&self, cost: u64, timeout: Duration) -> Result<(), NoRoom> {
        let mut ticket = None;
        let taken = self.attempt(cost, timeout, &mut ticket);
        taken.unwrap_or_else(|| {
            self.leave(ticket);
            Err(NoRoom::TimedOut)
        })
    }

    /// Like [`Credit::take`], and asks the server for room when there is none, and again now and
    /// then. Blocks for what `left` says, at most.
    pub(crate) fn take_asking(
        &self,
        cost: u64,
        left: impl Fn() -> Duration,
        ask: impl Fn(),
    ) -> Result<(), NoRoom> {
        let mut ticket = None;
        let mut taken = self.attempt(cost, Duration::ZERO, &mut ticket);
        while taken.is_none() && !left().is_zero() {
            ask();
            taken = self.attempt(cost, left().min(ASK_AGAIN), &mut ticket);
        }
        taken.unwrap_or_else(|| {
            self.leave(ticket);
            Err(NoRoom::TimedOut)
        })
    }

    /// `None` if the time runs out. The request keeps its place in line by its ticket.
    fn attempt(
        &self,
        cost: u64,
        timeout: Duration,
        ticket: &mut Option<u64>,
    ) -> Option<Result<(), NoRoom>> {
        let mut has_ended = false;
        let taken = self.changed.wait_until(Some(timeout), || {
            let mut room = self.room.lock();
            has_ended = room.has_ended;
            has_ended || room.try_take(cost, self.window, ticket)
        });
        if taken && has_ended {
            self.leave(*ticket);
            return Some(Err(NoRoom::Ended));
        }
        // The next in line may fit too.
        if taken && ticket.is_some() {
            self.changed.notify_all();
        }
        taken.then_some(Ok(()))
    }

    /// Leaves the line without room.
    fn leave(&self, ticket: Option<u64>) {
        if let Some(ticket) = ticket {
            self.room.lock().waiting.retain(|waiting| *waiting != ticket);
            self.changed.notify_all();
        }
    }

    pub(crate) fn give_back(&self, cost: u64) {
        let somebody_waits = {
            let mut room = self.room.lock();
            room.used = room.used.saturating_sub(cost);
            !room.waiting.is_empty()
        };
        if somebody_waits {
            self.changed.notify_all();
        }
    }

    /// Ends all waits.
    pub(crate) fn end(&self) {
        self.room.lock().has_ended = true;
        self.changed.notify_all();
    }

    #[cfg(test)]
    fn used(&self) -> u64 {
        self.room.lock().used
    }
}

impl Room {
    /// Takes room, or a ticket.
    fn try_take(&mut self, cost: u64, window: u64, ticket: &mut Option<u64>) -> bool {
        let is_first = match *ticket {
            None => self.waiting.is_empty(),
            Some(ticket) => self.waiting.front() == Some(&ticket),
        };
        let fits = self.used == 0 || self.used.saturating_add(cost) <= window;
        if is_first && fits {
            if ticket.is_some() {
                self.waiting.pop_front();
            }
            self.used += cost;
            return true;
        }
        if ticket.is_none() {
            *ticket = Some(self.next_ticket);
            self.waiting.push_back(self.next_ticket);
            self.next_ticket += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn room_is_taken_and_given_back() {
        let credit = Credit::new(100);
        assert_eq!(credit.take(60, NOW), Ok(()));
        assert_eq!(credit.take(41, NOW), Err(NoRoom::TimedOut));
        assert_eq!(credit.take(40, NOW), Ok(()), "who gave up is no longer in front");
        credit.give_back(60);
        assert_eq!(credit.take(61, NOW), Err(NoRoom::TimedOut));
        credit.give_back(40);
        assert_eq!(credit.take(1000, NOW), Ok(()), "alone, a request may be longer");
        assert_eq!(credit.used(), 1000);
        credit.end();
        assert_eq!(credit.take(1, NOW), Err(NoRoom::Ended));
    }

    #[test]
    fn a_long_request_is_not_overtaken() {
        let mut room = Room { used: 60, ..Room::default() };
        let (mut long, mut short) = (None, None);
        assert!(!room.try_take(90, 100, &mut long));
        assert!(!room.try_take(10, 100, &mut short), "there is room, but another one is first");
        room.used = 10;
        assert!(!room.try_take(10, 100, &mut short));
        assert!(room.try_take(90, 100, &mut long));
        assert!(!room.try_take(10, 100, &mut short));
        room.used -= 90;
        assert!(room.try_take(10, 100, &mut short));
    }
}
