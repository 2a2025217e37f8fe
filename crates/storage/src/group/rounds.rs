//! Which committers wait for which round, so that a round that becomes durable wakes its own.
//!
//! ```text
//!   durable         1        2        3     begun
//!   ───┴────────────┴────────┴────────┴─────► appended
//!      └─ rounds in flight, by their ends ──┘ └ of the next round: 4
//! ```
//!
//! A committer whose log is in no round yet waits for the next one. If that one does not take its
//! log after all, because of its limit or of a group that is being copied, the committer is woken
//! once more than needed.
//!
//! Why no wake-up is lost: a committer reads its round, listens on that round's event, and then
//! compares the durable position and its round again. A round is removed after the durable position
//! covers it and before its event is notified.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use firn_base::Lsn;
use firn_base::event::Event;
use parking_lot::Mutex;

/// Rounds that share an event wake each other's committers needlessly.
const EVENTS: u64 = 32;

/// The rounds of one writer that are in flight.
pub(super) struct Rounds {
    begun: AtomicU64,
    /// Number and end of each round.
    in_flight: Mutex<VecDeque<(u64, Lsn)>>,
    events: [CachePadded<Event>; EVENTS as usize],
}

impl Rounds {
    pub(super) fn new() -> Rounds {
        Rounds {
            begun: AtomicU64::new(0),
            in_flight: Mutex::default(),
            events: std::array::from_fn(|_| CachePadded::new(Event::new())),
        }
    }

    /// A round that ends at `end` was proposed. One thread at a time calls this.
    pub(super) fn begin(&self, end: Lsn) {
        let mut in_flight = self.in_flight.lock();
        let number = self.begun.load(Ordering::SeqCst) + 1;
        in_flight.push_back((number, end));
        self.begun.store(number, Ordering::SeqCst);
    }

    /// The round of the log before `lsn`, which is not durable.
    pub(super) fn of(&self, lsn: Lsn) -> u64 {
        let in_flight = self.in_flight.lock();
        let own = in_flight.partition_point(|(_, end)| *end < lsn);
        in_flight.get(own).map_or_else(|| self.begun.load(Ordering::SeqCst) + 1, |(own, _)| *own)
    }

    /// Where the committers of a round wait.
    pub(super) fn event(&self, round: u64) -> &Event {
        &self.events[(round % EVENTS) as usize]
    }

    /// Removes the rounds that end at or before `durable`. Returns them: the caller wakes their
    /// committers.
    pub(super) fn reach(&self, durable: Lsn) -> Option<RangeInclusive<u64>> {
        let mut in_flight = self.in_flight.lock();
        let mut ended = None;
        while let Some((number, _)) = in_flight.pop_front_if(|(_, end)| *end <= durable) {
            let first = ended.map_or(number, |range: RangeInclusive<u64>| *range.start());
            ended = Some(first..=number);
        }
        ended
    }

    /// Wakes the committers of these rounds.
    pub(super) fn wake(&self, rounds: RangeInclusive<u64>) {
        if rounds.end() - rounds.start() >= EVENTS {
            return self.wake_all();
        }
        rounds.for_each(|round| self.event(round).notify_all());
    }

    /// Wakes all committers: the writer has ended.
    pub(super) fn wake_all(&self) {
        self.events.iter().for_each(|event| event.notify_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_committer_has_a_round() {
        let rounds = Rounds::new();
        assert_eq!(rounds.of(Lsn(50)), 1, "the next round takes it");
        rounds.begin(Lsn(100));
        rounds.begin(Lsn(200));
        assert_eq!([Lsn(50), Lsn(100), Lsn(101), Lsn(201)].map(|lsn| rounds.of(lsn)), [1, 1, 2, 3]);
        assert_eq!(rounds.reach(Lsn(99)), None);
        assert_eq!(rounds.reach(Lsn(100)), Some(1..=1));
        assert_eq!(rounds.of(Lsn(150)), 2);
        rounds.begin(Lsn(300));
        assert_eq!(rounds.reach(Lsn(300)), Some(2..=3));
        assert_eq!(rounds.of(Lsn(301)), 4);
    }

    #[test]
    fn a_round_wakes_its_committers_and_no_others() {
        let rounds = Rounds::new();
        (1..=40).for_each(|number| rounds.begin(Lsn(number * 8)));
        let tickets: Vec<_> = (1..=32).map(|round| rounds.event(round).listen()).collect();
        let ended = rounds.reach(Lsn(24)).expect("three rounds");
        rounds.wake(ended);
        let at_once = Some(std::time::Duration::from_millis(1));
        for (round, ticket) in (1..=32).zip(tickets) {
            assert_eq!(rounds.event(round).wait(ticket, at_once), round <= 3, "round {round}");
        }
    }
}
