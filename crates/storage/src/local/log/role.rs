//! The writer's role: the right to take groups from the source, to write them and to make them
//! durable. One task has it at a time. A committer that finds the role free takes it and does the
//! work itself, so a lone commit is not handed to another thread. A committer that finds it taken
//! waits.
//!
//! ```text
//!   free ─try_take─► held ─begin_round─► writing [durable, taken) ─end_round─► held ─drop─► free
//!                                           │                                    │
//!                                           └─ fails, or its task dies ─► nothing more is written
//!
//!          durable            taken               appended
//!   ──────────┴─ this round ────┴─ the next round ────┴──►      between rounds durable = taken
//! ```
//!
//! Work is done in *rounds*. A round is identified by where it begins, and each has an event for
//! the threads that wait for its end. While a round runs, others append; the next round covers them
//! all. That is group commit, and it needs no timer: the slower the disk, the larger the groups.
//!
//! *Gathering.* A thread that commits at short intervals is back soon after its round has ended, so
//! the next round waits for it: a committer does not take the role while others are expected, and
//! the last one to arrive takes it. This wakes no thread, because waking a thread on another core
//! takes as long as several commits. The first to arrive is the *deputy*: it waits with a limit,
//! and leads when the limit has passed.
//!
//! ```text
//!   round ends ──► A arrives (deputy) ··· B arrives ··· C arrives, the last: leads for A, B and C
//!                  └─────── patience ───────┴──► A leads for A and B, if C does not come
//! ```
//!
//! *Leaving.* When many commit, most of them need not wait: another thread leads their round
//! anyway, and can answer their clients. A committer that may leave stays only if it is the one to
//! lead, or the deputy of its round. It leaves if its group is in the running round, or in the next
//! one while that has a deputy. It has entered its commit among those that were left before it
//! looks, and the thread that moves `durable` looks at those afterwards.
//!
//! ```text
//!   round ends ──► A arrives (deputy) ··· B arrives, leaves ··· C arrives, leaves ··· D leads,
//!                                                                and answers for B and C
//! ```
//!
//! Why no commit that was left is forgotten. A running round is ended by its holder, or the log
//! fails. A deputy is a thread that wakes after its limit at the latest. It then leads, or finds a
//! holder, or becomes the deputy again, or finds another deputy; it ends only when a round has
//! begun since. So each round that has a deputy comes to a holder. But the holder's round may end
//! before a commit that was left, because a group before that one is being copied. The
//! thread that returns the role therefore looks at what was left: unless the next round has a
//! deputy, it asks the task `log-writer` for that log ([`WriterRole::is_forsaken`]).
//!
//! Why no wake-up is lost. A waiter reads `durable` and `taken`, which tell it the round of its
//! group. It listens on that round's event, and then looks once more: unless the round is *led*,
//! the log has not failed and neither position has moved, it starts over. So its round had not
//! ended when it began to listen. Three cases remain:
//!
//! * Its group is in the running round. The end of that round wakes it.
//! * Its group is in the next round, and the role is held. Either a holder begins that round, and
//!   the round's end wakes all its waiters; or the holder returns the role first, and wakes one
//!   waiter, which tries to take the role. That waiter finds the role free and takes it, or finds
//!   another holder with the same duty, or gathers.
//! * Its group is in the next round, which is being gathered. Then the round has a deputy, which
//!   wakes when its limit has passed, and whose own group is not in an earlier round: until the
//!   round begins, the deputy leads it or becomes its deputy again. A deputy of another round does
//!   not count.

use std::sync::OnceLock;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use firn_api::LogError;
use firn_base::Lsn;

use crate::sync::{AtomicBool, AtomicU64, Event, Ordering};

/// Rounds that share an event only wake each other's waiters needlessly.
const EVENTS: u64 = 16;

/// No round begins here.
const NO_ROUND: u64 = u64::MAX;

/// A deputy whose holder's disk does not answer looks again after this time at the latest.
const LONGEST_STAND_BY: Duration = Duration::from_millis(100);

pub(super) struct WriterRole {
    held: CachePadded<AtomicBool>,
    durable: AtomicU64,
    taken: AtomicU64,
    round_events: [CachePadded<Event>; EVENTS as usize],
    /// How many commits have been waited for so far.
    arrivals: CachePadded<AtomicU64>,
    /// `arrivals` when the last round began, and its growth since the round before: the commits
    /// that the round covers.
    arrivals_at_begin: AtomicU64,
    covered: AtomicU64,
    /// `arrivals` once all committers that the last round woke are back.
    arrivals_expected: AtomicU64,
    /// The round that has a deputy.
    deputy_of: AtomicU64,
    /// Why nothing more will be durable. Set by the holder of the role.
    failure: OnceLock<LogError>,
}

impl WriterRole {
    /// A free role; everything up to `durable` is durable.
    pub(super) fn new(durable: Lsn) -> WriterRole {
        WriterRole {
            held: CachePadded::new(AtomicBool::new(false)),
            durable: AtomicU64::new(durable.0),
            taken: AtomicU64::new(durable.0),
            round_events: std::array::from_fn(|_| CachePadded::new(Event::new())),
            arrivals: CachePadded::new(AtomicU64::new(0)),
            arrivals_at_begin: AtomicU64::new(0),
            covered: AtomicU64::new(0),
            arrivals_expected: AtomicU64::new(0),
            deputy_of: AtomicU64::new(NO_ROUND),
            failure: OnceLock::new(),
        }
    }

    /// The end of the durable log. Does not block.
    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    fn taken(&self) -> Lsn {
        Lsn(self.taken.load(Ordering::SeqCst))
    }

    /// Why nothing more will be durable, if it has failed.
    pub(super) fn failure(&self) -> Option<&LogError> {
        self.failure.get()
    }

    fn event_of(&self, round: Lsn) -> &Event {
        &self.round_events[(round.0 / Lsn::ALIGNMENT % EVENTS) as usize]
    }

    /// Takes the role if it is free and the log has not failed. Does not block.
    pub(super) fn try_take(&self) -> Option<HeldRole<'_>> {
        if self.held.load(Ordering::SeqCst) || self.held.swap(true, Ordering::SeqCst) {
            return None;
        }
        let held = HeldRole { role: self, untold: None };
        // Set by an earlier holder; if it is set, this holder reports it to the threads that came
        // since.
        self.failure.get().is_none().then_some(held)
    }

    /// Blocks until everything up to `lsn` is durable or nothing more will be. Meanwhile calls
    /// `lead` with the role whenever the role is free and either all committers that the last round
    /// woke are back or `patience` has passed.
    pub(super) fn wait_durable<'a>(
        &'a self,
        lsn: Lsn,
        patience: Duration,
        lead: impl Fn(HeldRole<'a>),
    ) {
        if self.durable() >= lsn {
            return;
        }
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        let mut is_patient = !patience.is_zero();
        while self.durable() < lsn && self.failure.get().is_none() {
            if is_patient && self.expects_more() {
                is_patient = self.wait_for_others(lsn, patience);
                continue;
            }
            match self.try_take() {
                Some(role) => lead(role),
                None => drop(self.wait_for_round(lsn, None, |_| self.is_held())),
            }
        }
    }

    /// As [`WriterRole::wait_durable`], for a committer that may leave: false once another thread
    /// is sure to end the round that covers `lsn`, or to end the log.
    pub(super) fn wait_or_leave<'a>(
        &'a self,
        lsn: Lsn,
        mut patience: Duration,
        lead: impl Fn(HeldRole<'a>),
    ) -> bool {
        if self.durable() >= lsn {
            return true;
        }
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        let mut is_patient = true;
        while self.durable() < lsn && self.failure.get().is_none() {
            if self.is_held() || (is_patient && self.expects_more()) {
                if self.is_left_to_others(lsn) {
                    return false;
                }
                // A deputy that has waited for the holder may still gather.
                let is_in_time = self.wait_for_others(lsn, patience);
                is_patient = is_in_time || self.is_held();
                if !is_in_time {
                    patience = (patience * 2).min(LONGEST_STAND_BY);
                }
            } else if let Some(role) = self.try_take() {
                lead(role);
            }
        }
        true
    }

    /// Whether the group that ends at `lsn` is in the running round, or in the next one and that
    /// has a deputy. Not the caller.
    fn is_left_to_others(&self, lsn: Lsn) -> bool {
        let taken = self.taken();
        let has_deputy = || self.deputy_of.load(Ordering::SeqCst) == taken.0;
        lsn <= taken || (has_deputy() && self.taken() == taken)
    }

    /// Whether no thread is there that would lead the next round for a commit that was left and
    /// ends at `lsn`. Asked by whoever has returned the role.
    pub(super) fn is_forsaken(&self, lsn: Lsn) -> bool {
        let taken = self.taken();
        let has_deputy = || self.deputy_of.load(Ordering::SeqCst) == taken.0;
        lsn > taken && !self.is_held() && !has_deputy()
    }

    /// How many commits the last round covered.
    pub(super) fn covered(&self) -> u64 {
        self.covered.load(Ordering::Relaxed)
    }

    /// Whether a committer that the last round woke is not back yet.
    fn expects_more(&self) -> bool {
        let expected = self.arrivals_expected.load(Ordering::SeqCst);
        self.arrivals.load(Ordering::SeqCst) < expected
    }

    /// Waits for the round that the last committer to arrive will lead. The first to wait here is
    /// the deputy: false if its `patience` has passed, and it must lead.
    fn wait_for_others(&self, lsn: Lsn, patience: Duration) -> bool {
        let round = self.taken();
        if lsn <= round {
            return self.wait_for_round(lsn, None, |_| self.is_held());
        }
        let is_gathering = || self.is_held() || self.expects_more();
        let before = self.deputy_of.load(Ordering::SeqCst);
        if before == round.0 {
            let has_deputy = |round: Lsn| self.deputy_of.load(Ordering::SeqCst) == round.0;
            return self.wait_for_round(lsn, None, |round| has_deputy(round) && is_gathering());
        }
        let replace = |before, after| {
            self.deputy_of.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst)
        };
        if replace(before, round.0).is_err() {
            return true;
        }
        let is_in_time = self.wait_for_round(lsn, Some(patience), |_| is_gathering());
        // Another thread may be the deputy of a later round by now.
        let _ = replace(round.0, NO_ROUND);
        is_in_time
    }

    fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    /// Blocks until the round that covers `lsn` is over, or `patience` has passed (false). Does not
    /// block unless `is_led`, called with the position where the next round begins, returns true.
    fn wait_for_round(
        &self,
        lsn: Lsn,
        patience: Option<Duration>,
        is_led: impl FnOnce(Lsn) -> bool,
    ) -> bool {
        let (durable, taken) = (self.durable(), self.taken());
        let event = self.event_of(if lsn <= taken { durable } else { taken });
        let ticket = event.listen();
        let is_led = is_led(taken) && self.failure.get().is_none();
        let is_as_before = self.durable() == durable && self.taken() == taken;
        if is_led && durable < lsn && is_as_before {
            return event.wait(ticket, patience);
        }
        true
    }
}

/// The role, in the hands of its holder. Dropping it returns the role and passes it on.
pub(super) struct HeldRole<'a> {
    role: &'a WriterRole,
    /// The round that has ended but whose waiters do not know yet.
    untold: Option<Lsn>,
}

impl HeldRole<'_> {
    /// Declares that the next round covers everything up to `end`, which the holder has taken.
    pub(super) fn begin_round(&mut self, end: Lsn) {
        assert!(!self.is_writing() && end > self.role.taken(), "a round follows the one before");
        let arrivals = self.role.arrivals.load(Ordering::SeqCst);
        let before = self.role.arrivals_at_begin.swap(arrivals, Ordering::SeqCst);
        self.role.covered.store(arrivals - before, Ordering::SeqCst);
        self.role.taken.store(end.0, Ordering::SeqCst);
    }

    /// Declares that everything covered by the round is durable. Its waiters are woken by
    /// [`HeldRole::tell_covered`] or by the return of the role, whichever comes first: not before
    /// the disk has work again.
    pub(super) fn end_round(&mut self) {
        assert!(self.is_writing(), "a round was begun");
        self.tell_covered();
        self.untold = Some(self.role.durable());
        let arrivals = self.role.arrivals.load(Ordering::SeqCst);
        let expected = arrivals + self.role.covered.load(Ordering::SeqCst);
        self.role.arrivals_expected.store(expected, Ordering::SeqCst);
        self.role.durable.store(self.role.taken().0, Ordering::SeqCst);
    }

    /// Returns the role for the last time: nothing more will be durable.
    pub(super) fn fail(self, error: LogError) {
        self.role.failure.get_or_init(|| error);
    }

    fn is_writing(&self) -> bool {
        self.role.durable() < self.role.taken()
    }

    /// Whether there is a round that has ended but whose waiters do not know yet.
    pub(super) fn has_to_tell(&self) -> bool {
        self.untold.is_some()
    }

    /// Wakes the waiters of the last round that has ended.
    pub(super) fn tell_covered(&mut self) {
        if let Some(round) = self.untold.take() {
            self.role.event_of(round).notify_all();
        }
    }
}

impl Drop for HeldRole<'_> {
    fn drop(&mut self) {
        if self.is_writing() {
            // The groups that were taken exist nowhere else.
            self.role.failure.get_or_init(|| LogError::Failed {
                place: "this node".to_owned(),
                reason: "the task that wrote the log has died".to_owned(),
            });
        }
        let next = self.role.taken();
        self.role.held.store(false, Ordering::SeqCst);
        if self.role.failure.get().is_some() {
            self.role.round_events.iter().for_each(|event| event.notify_all());
            return;
        }
        // First, so that it writes while the others are being woken.
        self.role.event_of(next).notify_one();
        self.tell_covered();
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
