//! A random walk through the lock manager, compared with a model of the README's rules 1 to 4, 7
//! and 9 in their simplest form: one list of requests, in which each is compared with all others.
//!
//! After each step, the two must agree on every lock and every wait. So no two conflicting locks
//! are granted, no owner waits for a lock that it could have, and owners are served in order.
//! Deadlocks are checked from both sides: each victim was on a cycle of the full waits-for graph on
//! which no owner was cheaper, and without the victims there is no cycle.

#![allow(clippy::disallowed_types, reason = "tests use the machine as it is")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use firn_base::clock::SystemClock;
use firn_base::{IndexId, TrxId};
use proptest::prelude::*;

use crate::lock::{Extent, KeyRange, LockError, LockManager, LockMode, LockTarget, Outcome};
use crate::lock::{TryOutcome, Wait};

const INDEX: IndexId = IndexId(1);
const KEYS: u8 = 5;
const ACTORS: u8 = 5;

/// A key, or a range of keys with both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Key(u8),
    Range(u8, u8),
}

impl Part {
    fn ends(self) -> (u8, u8) {
        match self {
            Part::Key(key) => (key, key),
            Part::Range(low, high) => (low, high),
        }
    }

    fn meets(self, other: Part) -> bool {
        let ((low, high), (other_low, other_high)) = (self.ends(), other.ends());
        low <= other_high && other_low <= high
    }

    fn covers(self, other: Part) -> bool {
        let ((low, high), (other_low, other_high)) = (self.ends(), other.ends());
        low <= other_low && other_high <= high
    }

    fn with_target<R>(self, act: impl FnOnce(LockTarget<'_>) -> R) -> R {
        match self {
            Part::Key(key) => act(LockTarget::Record { index: INDEX, key: &[key] }),
            Part::Range(low, high) => act(LockTarget::Range {
                index: INDEX,
                low: Bound::Included(&[low]),
                high: Bound::Included(&[high]),
            }),
        }
    }

    fn of(extent: &Extent) -> Part {
        let included = |bound: Bound<&[u8]>| match bound {
            Bound::Included(&[key]) => key,
            _ => panic!("no such bound was used"),
        };
        match extent {
            Extent::Key(key) => Part::Key(key[0]),
            Extent::Range(range) => Part::Range(included(range.low()), included(range.high())),
        }
    }
}

/// `None`: granted. Upgrades wait before newcomers; otherwise the order is the order of arrival.
type Place = Option<(bool, u64)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    owner: TrxId,
    part: Part,
    mode: LockMode,
    place: Place,
}

impl Entry {
    fn conflicts(&self, other: &Entry) -> bool {
        self.owner != other.owner
            && self.part.meets(other.part)
            && self.mode.conflicts_with(other.mode)
    }

    fn blocks(&self, later: &Entry) -> bool {
        self.place < later.place && self.conflicts(later)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Held,
    Granted,
    Queued,
}

#[derive(Debug, Default, Clone)]
struct Model {
    entries: Vec<Entry>,
    arrivals: u64,
}

impl Model {
    fn own(&self, owner: TrxId) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.owner == owner && entry.place.is_none())
    }

    fn holds(&self, owner: TrxId, part: Part, mode: LockMode) -> bool {
        let probe = Entry { owner, part, mode, place: None };
        let key_is_taken = matches!(part, Part::Key(_))
            && self
                .entries
                .iter()
                .any(|e| e.place.is_none() && e.part == part && e.conflicts(&probe));
        self.own(owner).any(|own| {
            own.mode >= mode
                && (own.part == part
                    || (matches!(own.part, Part::Range(..))
                        && own.part.covers(part)
                        && !key_is_taken))
        })
    }

    fn request(&mut self, owner: TrxId, part: Part, mode: LockMode, may_wait: bool) -> Answer {
        if self.holds(owner, part, mode) {
            return Answer::Held;
        }
        let newcomer = !self.own(owner).any(|own| own.part.meets(part));
        self.arrivals += 1;
        let entry = Entry { owner, part, mode, place: Some((newcomer, self.arrivals)) };
        if self.entries.iter().any(|earlier| earlier.blocks(&entry)) {
            if may_wait {
                self.entries.push(entry);
            }
            return Answer::Queued;
        }
        self.grant(entry);
        Answer::Granted
    }

    fn grant(&mut self, entry: Entry) {
        let is_same =
            |e: &&mut Entry| e.owner == entry.owner && e.part == entry.part && e.place.is_none();
        match self.entries.iter_mut().find(is_same) {
            Some(own) => own.mode = own.mode.max(entry.mode),
            None => self.entries.push(Entry { place: None, ..entry }),
        }
    }

    fn has_conflict(&self, owner: TrxId, key: u8) -> bool {
        let entry = Entry { owner, part: Part::Key(key), mode: LockMode::Exclusive, place: None };
        let own = self.own(owner).any(|o| o.part == entry.part && o.mode == entry.mode);
        !own && self.entries.iter().any(|other| other.conflicts(&entry))
    }

    /// Grants what can be granted; returns the owners.
    fn advance(&mut self) -> BTreeSet<TrxId> {
        let mut granted = BTreeSet::new();
        while let Some(position) = self.entries.iter().position(|waiting| {
            waiting.place.is_some() && !self.entries.iter().any(|earlier| earlier.blocks(waiting))
        }) {
            let entry = self.entries.remove(position);
            granted.insert(entry.owner);
            self.grant(entry);
        }
        granted
    }

    fn remove(&mut self, is_it: impl Fn(&Entry) -> bool) {
        self.entries.retain(|entry| !is_it(entry));
    }

    fn stop_waiting(&mut self, owner: TrxId) {
        self.remove(|entry| entry.owner == owner && entry.place.is_some());
    }

    /// Whether `owner` waits, directly or through others that satisfy `counts`, for itself.
    fn is_on_cycle(&self, owner: TrxId, counts: impl Fn(TrxId) -> bool) -> bool {
        let mut reached = BTreeSet::new();
        let mut frontier = vec![owner];
        while let Some(waiter) = frontier.pop() {
            let waiting = self.entries.iter().filter(|w| w.owner == waiter && w.place.is_some());
            for waiting in waiting {
                for earlier in self.entries.iter().filter(|earlier| earlier.blocks(waiting)) {
                    if earlier.owner == owner {
                        return true;
                    }
                    if counts(earlier.owner) && reached.insert(earlier.owner) {
                        frontier.push(earlier.owner);
                    }
                }
            }
        }
        false
    }

    fn owners(&self) -> BTreeSet<TrxId> {
        self.entries.iter().map(|entry| entry.owner).collect()
    }
}

struct Walk {
    manager: LockManager,
    model: Model,
    /// The current transaction of each actor.
    owners: Vec<TrxId>,
    weights: BTreeMap<TrxId, u64>,
    waits: BTreeMap<TrxId, Wait>,
    /// Requests that had to wait so far.
    waits_begun: u64,
    /// The last of these waits of each owner.
    began: BTreeMap<TrxId, u64>,
    /// The owner that has written each key without a lock.
    implicit: BTreeMap<u8, TrxId>,
    next: u64,
}

impl Walk {
    fn new() -> Walk {
        let manager = LockManager::new(Arc::new(SystemClock));
        let mut walk = Walk {
            manager,
            model: Model::default(),
            owners: Vec::new(),
            weights: BTreeMap::new(),
            waits: BTreeMap::new(),
            waits_begun: 0,
            began: BTreeMap::new(),
            implicit: BTreeMap::new(),
            next: 1,
        };
        walk.owners = (0..ACTORS).map(|actor| walk.start(u64::from(actor % 2))).collect();
        walk
    }

    fn start(&mut self, weight: u64) -> TrxId {
        let owner = TrxId(self.next);
        self.next += 1;
        self.manager.register(owner, Arc::new(AtomicU64::new(weight)));
        self.weights.insert(owner, weight);
        owner
    }

    fn step(&mut self, [actor, action, place, detail]: [u8; 4]) {
        let actor = usize::from(actor % ACTORS);
        let owner = self.owners[actor];
        let (low, high) = (place % KEYS, (place / KEYS) % KEYS);
        let range = Part::Range(low.min(high), low.max(high));
        let key = Part::Key(low);
        let mode = if detail % 2 == 0 { LockMode::Shared } else { LockMode::Exclusive };
        let waits = self.waits.contains_key(&owner);
        match action % 16 {
            0..=1 => self.end(actor, u64::from(detail % 4)),
            2 if waits => self.time_out(owner),
            3 if waits => {
                assert!(self.manager.cancel(owner));
                self.model.stop_waiting(owner);
            }
            _ if waits => {}
            4..=8 => self.lock(owner, key, mode),
            9..=10 => self.lock(owner, range, mode),
            11..=12 => self.write(owner, low),
            13 => self.try_lock(owner, if detail % 4 < 2 { key } else { range }, mode),
            14 => self.give_back(owner, if detail % 4 < 2 { key } else { range }),
            _ => self.lock(owner, Part::Range(0, KEYS - 1), mode),
        }
        self.settle();
        self.compare();
    }

    fn end(&mut self, actor: usize, weight: u64) {
        let owner = self.owners[actor];
        self.waits.remove(&owner);
        self.implicit.retain(|_, writer| *writer != owner);
        self.manager.release_all(owner);
        assert!(!self.manager.make_explicit(owner, INDEX, &[0], || false));
        self.model.remove(|entry| entry.owner == owner);
        self.owners[actor] = self.start(weight);
    }

    fn time_out(&mut self, owner: TrxId) {
        let wait = self.waits.remove(&owner).unwrap();
        assert_eq!(self.manager.wait(wait, Some(Duration::ZERO)), Err(LockError::Timeout));
        self.model.stop_waiting(owner);
    }

    /// What the engine does when it finds a record that another active transaction has written.
    fn make_explicit(&mut self, owner: TrxId, key: u8) {
        let Some(&writer) = self.implicit.get(&key).filter(|writer| **writer != owner) else {
            return;
        };
        assert!(self.manager.make_explicit(writer, INDEX, &[key], || true));
        let (part, mode) = (Part::Key(key), LockMode::Exclusive);
        self.model.grant(Entry { owner: writer, part, mode, place: None });
        self.settle();
    }

    fn lock(&mut self, owner: TrxId, part: Part, mode: LockMode) {
        if let Part::Key(key) = part {
            self.make_explicit(owner, key);
            if self.waits.contains_key(&owner) || self.implicit.get(&key) == Some(&owner) {
                return;
            }
        }
        let outcome = part.with_target(|target| self.manager.request(owner, target, mode));
        let answer = match outcome {
            Outcome::Granted => Answer::Granted,
            Outcome::Held => Answer::Held,
            Outcome::Queued(wait) => {
                self.waits.insert(owner, wait);
                self.waits_begun += 1;
                self.began.insert(owner, self.waits_begun);
                Answer::Queued
            }
        };
        assert_eq!(answer, self.model.request(owner, part, mode, true), "{owner} {part:?} {mode}");
        if let (Part::Key(key), Answer::Granted | Answer::Held) = (part, answer) {
            assert!(self.implicit.get(&key).is_none_or(|writer| *writer == owner));
        }
    }

    fn try_lock(&mut self, owner: TrxId, part: Part, mode: LockMode) {
        if let Part::Key(key) = part {
            self.make_explicit(owner, key);
        }
        let answer = match part.with_target(|target| self.manager.try_request(owner, target, mode))
        {
            TryOutcome::Granted => Answer::Granted,
            TryOutcome::Held => Answer::Held,
            TryOutcome::Blocked(blocker) => {
                assert!(self.model.owners().contains(&blocker));
                Answer::Queued
            }
        };
        assert_eq!(answer, self.model.request(owner, part, mode, false), "{owner} {part:?} {mode}");
    }

    fn write(&mut self, owner: TrxId, key: u8) {
        if self.implicit.get(&key).is_some_and(|writer| *writer != owner) {
            return self.lock(owner, Part::Key(key), LockMode::Exclusive);
        }
        let conflict = self.manager.has_conflict(owner, INDEX, &[key], LockMode::Exclusive);
        assert_eq!(conflict, self.model.has_conflict(owner, key));
        if conflict {
            self.lock(owner, Part::Key(key), LockMode::Exclusive);
        } else {
            self.implicit.insert(key, owner);
        }
    }

    /// Locks on keys that the owner has written are not released early.
    fn give_back(&mut self, owner: TrxId, part: Part) {
        let written = |key: u8| self.implicit.get(&key) == Some(&owner);
        if (part.ends().0..=part.ends().1).any(written) {
            return;
        }
        part.with_target(|target| self.manager.release(owner, target));
        self.model.remove(|e| e.owner == owner && e.part == part && e.place.is_none());
    }

    /// Collects the waits that have ended, and checks each end with the model.
    fn settle(&mut self) {
        let mut granted = BTreeSet::new();
        let mut victims = BTreeSet::new();
        for (owner, wait) in std::mem::take(&mut self.waits) {
            if !self.manager.is_decided(&wait) {
                self.waits.insert(owner, wait);
                continue;
            }
            let extent = wait.locked().extent.clone();
            match self.manager.wait(wait, None) {
                Ok(()) => {
                    if let Part::Key(key) = Part::of(&extent) {
                        assert!(self.implicit.get(&key).is_none_or(|writer| *writer == owner));
                    }
                    granted.insert(owner);
                }
                Err(LockError::Deadlock { cycle }) => {
                    assert!(cycle.contains(&owner));
                    victims.insert(owner);
                }
                Err(LockError::Cancelled) => {}
                Err(LockError::Timeout) => panic!("nobody's time has run out"),
            }
        }
        let mut expected = self.model.advance();
        let (model, also) = self.without(self.model.clone(), &victims).expect("a needless victim");
        self.model = model;
        expected.extend(also);
        assert_eq!(granted, expected);
        for owner in self.model.owners() {
            assert!(!self.model.is_on_cycle(owner, |_| true), "a deadlock was not found");
        }
    }

    /// The model after the waits of `victims` have ended, and the owners that were granted a lock
    /// because of that. `None` if there is no order in which each victim was the cheapest on a
    /// cycle.
    fn without(&self, model: Model, victims: &BTreeSet<TrxId>) -> Option<(Model, BTreeSet<TrxId>)> {
        if victims.is_empty() {
            return Some((model, BTreeSet::new()));
        }
        let began = |owner| self.began.get(&owner).copied();
        let cost = |owner: TrxId| (self.weights[&owner], std::cmp::Reverse(began(owner)));
        let guilty = victims
            .iter()
            .filter(|victim| model.is_on_cycle(**victim, |other| cost(other) >= cost(**victim)));
        for victim in guilty {
            let mut next = model.clone();
            next.stop_waiting(*victim);
            let granted = next.advance();
            let others = victims.iter().copied().filter(|other| other != victim).collect();
            if let Some((model, also)) = self.without(next, &others) {
                return Some((model, &granted | &also));
            }
        }
        None
    }

    fn compare(&self) {
        let key =
            |owner: TrxId, part: Part, waits: bool, mode: LockMode| (owner, part, waits, mode);
        let locks = self.manager.snapshot().into_iter();
        let actual: BTreeSet<_> = locks
            .map(|lock| {
                key(lock.owner, Part::of(&lock.locked.extent), lock.wait.is_some(), lock.mode)
            })
            .collect();
        let entries = self.model.entries.iter();
        let expected: BTreeSet<_> =
            entries.map(|e| key(e.owner, e.part, e.place.is_some(), e.mode)).collect();
        assert_eq!(actual, expected);
    }

    fn finish(mut self) {
        for actor in 0..usize::from(ACTORS) {
            self.end(actor, 0);
            self.settle();
        }
        for owner in &self.owners {
            self.manager.release_all(*owner);
        }
        assert!(self.manager.is_empty(), "something is left behind");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_model(steps in prop::collection::vec(any::<[u8; 4]>(), 1..150)) {
        let mut walk = Walk::new();
        for step in steps {
            walk.step(step);
        }
        walk.finish();
    }

    #[test]
    fn ranges_know_what_they_contain(
        low in 0..6_u8, high in 0..6_u8, other_low in 0..6_u8, other_high in 0..6_u8, kinds: [u8; 4],
    ) {
        let ends = [[low], [high], [other_low], [other_high]];
        let bound = |position: usize| match kinds[position] % 3 {
            0 => Bound::Included(ends[position].as_slice()),
            1 => Bound::Excluded(ends[position].as_slice()),
            _ => Bound::Unbounded,
        };
        let (range, other) =
            (KeyRange::new(bound(0), bound(1)), KeyRange::new(bound(2), bound(3)));
        let inside = |low: Bound<&[u8]>, high: Bound<&[u8]>, key: &[u8]| {
            let after_low = match low {
                Bound::Included(low) => key >= low,
                Bound::Excluded(low) => key > low,
                Bound::Unbounded => true,
            };
            after_low && match high {
                Bound::Included(high) => key <= high,
                Bound::Excluded(high) => key < high,
                Bound::Unbounded => true,
            }
        };
        // Longer keys lie between two neighbouring one-byte keys, and the empty key before all of
        // them.
        let mut keys: Vec<Vec<u8>> =
            (0..7).flat_map(|key| [vec![key], vec![key, 0], vec![key, 9]]).collect();
        keys.push(Vec::new());
        let first = |key: &&Vec<u8>| inside(bound(0), bound(1), key);
        let second = |key: &&Vec<u8>| inside(bound(2), bound(3), key);
        for key in &keys {
            prop_assert_eq!(range.contains(key), first(&key) );
        }
        prop_assert_eq!(range.is_empty(), !keys.iter().any(|key| first(&key)));
        if !range.is_empty() && !other.is_empty() {
            let meet = keys.iter().any(|key| first(&key) && second(&key));
            prop_assert_eq!(range.overlaps(&other), meet);
            if range.covers(&other) {
                prop_assert!(keys.iter().filter(second).all(|key| first(&key)));
            }
        }
    }
}
