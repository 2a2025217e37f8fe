//! A member's log under a simulator that kills the process and cuts the power at any point. What
//! comes back is what was synced, and of what was written after that a beginning.

use std::time::Duration;

use firn_base::random::RandomSource;
use firn_testing::simulation::{Faults, for_each_seed};
use parking_lot::Mutex;

use super::*;
use crate::local::page_log::PageLogListener;

/// An entry and its bytes.
type Made = Arc<(Entry, Vec<u8>)>;

/// What a disk may hold: the effect of all writes up to some part of one.
#[derive(Clone)]
struct State {
    vote: Vote,
    /// Where the log began, released or not.
    origin: Base,
    entries: Vec<Made>,
    /// The last durable entry that was written.
    durable: Index,
}

impl State {
    fn last(&self) -> Index {
        Index(self.origin.index.0 + self.entries.len() as u64)
    }

    fn end(&self) -> Lsn {
        self.entries.last().map_or(self.origin.lsn, |made| made.0.end())
    }

    fn end_of(&self, index: Index) -> Lsn {
        match index.0.checked_sub(self.origin.index.0 + 1) {
            Some(place) => self.entries[place as usize].0.end(),
            None => self.origin.lsn,
        }
    }

    fn after(&self, index: Index) -> &[Made] {
        &self.entries[(index.0 - self.origin.index.0) as usize..]
    }

    /// Whether this is what was saved. Log may have been released, from `released` at most.
    fn is(&self, saved: &Saved, released: Lsn) -> bool {
        let within = saved.base.index >= self.origin.index && saved.base.index <= self.last();
        if saved.vote != self.vote || !within || saved.base.lsn < released {
            return false;
        }
        let mut base = self.origin.clone();
        let before = (saved.base.index.0 - self.origin.index.0) as usize;
        self.entries[..before].iter().for_each(|made| base.pass(&made.0));
        let entries = self.after(saved.base.index).iter().map(|made| &made.0);
        base == saved.base && entries.eq(saved.entries.iter())
    }
}

/// What an outside observer knows of the member over all its lives.
struct Known {
    /// What the disk may hold; the first is what was synced.
    states: Vec<State>,
    /// The last entry that is durable in the group, and the position that pages were told.
    durable: Index,
    told: Lsn,
    released: Lsn,
}

impl Known {
    fn new() -> Known {
        let base = founding();
        let state = State {
            vote: Vote { term: base.term, member: None },
            durable: base.index,
            origin: base,
            entries: Vec::new(),
        };
        let durable = state.durable;
        Known { states: vec![state], durable, told: Lsn::FIRST, released: Lsn::FIRST }
    }

    fn now(&self) -> &State {
        self.states.last().unwrap()
    }

    fn change(&mut self, change: impl FnOnce(&mut State)) {
        let mut next = self.now().clone();
        change(&mut next);
        self.states.push(next);
    }

    fn synced(&mut self) {
        self.states.drain(..self.states.len() - 1);
    }
}

struct Deaf;

impl PageLogListener for Deaf {
    fn page_changed(&self, _: PageId, _: Lsn, _: Lsn) {}
    fn space_dropped(&self, _: SpaceId, _: Lsn) {}
    fn told_up_to(&self, _: Lsn) {}
}

fn check_after_restart(log: &GroupLog, known: &mut Known) {
    let saved = log.saved();
    let synced = &known.states[0];
    let (least, most) = (synced.durable.min(synced.last()), known.now().durable);
    let found = known.states.iter().rposition(|state| state.is(&saved, known.released));
    let found = found.unwrap_or_else(|| {
        let last = saved.entries.last();
        panic!(
            "this was never written: vote {:?}, base {}, last {last:?}; synced {:?}, {}",
            saved.vote,
            saved.base.index,
            synced.vote,
            synced.last()
        )
    });
    let state = known.states[found].clone();
    assert!(saved.durable >= least.max(saved.base.index), "a durable entry is forgotten");
    let most = most.max(known.durable);
    assert!(saved.durable <= most, "{} was not durable", saved.durable);
    let local = log.log();
    assert_eq!(local.end_lsn(), state.end());
    assert!(local.durable_lsn() <= known.told, "pages are told of {}", local.durable_lsn());
    assert!(local.durable_lsn() >= state.end_of(saved.durable));
    assert!(local.indexed_lsn() <= local.durable_lsn());
    for made in state.after(saved.base.index) {
        let mut bytes = Vec::new();
        log.read(made.0.start, made.0.end(), &mut bytes).unwrap();
        assert!(bytes == made.1, "entry {} has other bytes", made.0.index);
    }
    known.released = saved.base.lsn;
    // A restart that was lost is asked for again, or never.
    known.durable = known.durable.min(state.last());
    known.told = state.end_of(known.durable);
    known.states = vec![State { durable: saved.durable, ..state }];
}

/// Draws what the member does.
struct Draw<'a>(&'a dyn RandomSource);

impl Draw<'_> {
    fn below(&self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn one_in(&self, number: u64) -> bool {
        self.below(number) == 0
    }

    fn content(&self) -> (Content, Vec<u8>) {
        match self.below(12) {
            0 => (Content::Mark, Vec::new()),
            1 => {
                let id = MemberId(10 + self.below(5));
                let changes = match self.below(3) {
                    0 => vec![],
                    1 => vec![MemberChange::Set(id, Role::Learner)],
                    _ => vec![
                        MemberChange::Set(id, Role::Logger),
                        MemberChange::Remove(MemberId(1 + self.below(3))),
                    ],
                };
                (Content::Members(changes), Vec::new())
            }
            _ => {
                let length = if self.one_in(20) { 9000 } else { self.below(700) as usize };
                let mut bytes = group(self.below(10) as u32, length);
                if self.one_in(3) {
                    bytes.extend(group(3, self.below(400) as usize));
                }
                let checksum = crc32c::crc32c(&bytes);
                (Content::Log { bytes: bytes.len() as u64, checksum }, bytes)
            }
        }
    }

    /// What the member asks for next. Its effects are in `known`, part by part, before it happens.
    fn write(&self, known: &mut Known) -> (Write, Vec<u8>) {
        let mut wanted = write();
        let mut term = known.now().vote.term;
        let cuts = self.one_in(8) && known.now().last() > known.durable;
        let restarts = !cuts && self.one_in(12);
        if (cuts && self.one_in(2)) || restarts || self.one_in(10) {
            term = Term(term.0 + 1);
            let member = Some(MemberId(1 + self.below(3))).filter(|_| self.one_in(2));
            wanted.vote = Some(Vote { term, member });
            known.change(|state| state.vote = Vote { term, member });
        }
        if restarts {
            let index = Index(known.durable.0 + 1 + self.below(40));
            let lsn = Lsn((known.told.0 + 8 * self.below(2000)).next_multiple_of(8));
            let base = Base { index, term, lsn, ..founding() };
            wanted.restart = Some(base.clone());
            (known.durable, known.told, known.released) = (index, lsn, Lsn::FIRST);
            known.change(|state| {
                (state.origin, state.durable) = (base, index);
                state.entries.clear();
            });
        }
        if cuts {
            let left = known.now().last().0 - known.durable.0;
            let first = Index(known.durable.0 + 1 + self.below(left));
            let start = known.now().end_of(Index(first.0 - 1));
            wanted.truncate = Some((first, start));
            known.change(|state| {
                state.entries.truncate((first.0 - state.origin.index.0 - 1) as usize);
            });
        }
        wanted.durable = known.durable;
        let mut all = Vec::new();
        let count = if self.one_in(15) { 30 } else { self.below(4) };
        for _ in 0..count {
            let (content, bytes) = self.content();
            let (index, start) = (Index(known.now().last().0 + 1), known.now().end());
            let entry = Entry { index, term, start, content };
            wanted.append.push(entry.clone());
            all.extend_from_slice(&bytes);
            known.change(|state| state.entries.push(Arc::new((entry, bytes))));
        }
        let durable = wanted.durable;
        known.change(|state| state.durable = durable);
        (wanted, all)
    }
}

/// Uses the log until the process is killed or the log fails.
fn live(environment: &Environment, known: &Mutex<Known>) {
    let directory = LocalDirectory::open(environment, Path::new("/db")).unwrap();
    let log = match GroupLog::open(&directory, small(), founding()) {
        Err(OpenError::Io { .. }) => return,
        log => log.unwrap(),
    };
    check_after_restart(&log, &mut known.lock());
    let draw = Draw(environment.random.as_ref());
    let has_pages = draw.one_in(2);
    if has_pages {
        PageLog::follow(&*log.log(), Arc::new(Deaf));
    }
    loop {
        let (write, bytes) = draw.write(&mut known.lock());
        let written = loop {
            match log.write(&write, &bytes) {
                Err(LogError::NoRoom { .. }) => {
                    firn_base::task::sleep(Duration::from_millis(1));
                }
                written => break written,
            }
        };
        if written.is_err() {
            break;
        }
        if draw.one_in(3) {
            if log.sync().is_err() {
                break;
            }
            let mut known = known.lock();
            known.synced();
            if draw.one_in(2) {
                let left = known.now().last().0 - known.durable.0;
                known.durable.0 += draw.below(left + 1);
                let lsn = known.now().end_of(known.durable);
                known.told = known.told.max(lsn);
                log.set_durable(lsn);
            }
        }
        if draw.one_in(16) {
            let local = log.log();
            let durable = local.durable_lsn();
            if local.wait_until_indexed(durable).is_err() {
                break;
            }
            let upto = Lsn(durable.0.saturating_sub(draw.below(20_000)));
            PageLog::release_before(&*local, upto);
            let begin = log.release(upto);
            let mut known = known.lock();
            known.released = known.released.max(begin);
        }
    }
    assert!(log.write(&write(), &[]).is_err(), "a failed log takes nothing");
    assert!(log.sync().is_err());
}

fn lives(seeds: std::ops::Range<u64>, sync_failure: f64) {
    for_each_seed(seeds, move |world| {
        let disk = world.new_disk();
        let known = Arc::new(Mutex::new(Known::new()));
        let random = world.random();
        for life in 0..8u32 {
            let node = world.start("node", &disk);
            let (known, life_length) = (Arc::clone(&known), random.next_u64() % 120_000);
            let latency = Faults { max_latency: Duration::from_micros(100), ..Faults::default() };
            disk.set_faults(latency.clone());
            let task = node.spawn("user", move |environment| live(environment, &known));
            world.sleep(Duration::from_micros(life_length / 2));
            let probability = if life % 2 == 1 { sync_failure } else { 0.0 };
            disk.set_faults(Faults {
                sync_failure: probability,
                files: Some(Arc::new(|path: &Path| path.starts_with("/db/log"))),
                ..latency
            });
            world.sleep(Duration::from_micros(life_length / 2));
            disk.set_faults(Faults::default());
            match random.next_u64() % 3 {
                0 => node.kill(),
                _ => node.crash(),
            }
            drop(task);
        }
        let node = world.start("node", &disk);
        let last = node.run(move |environment| {
            let directory = LocalDirectory::open(environment, Path::new("/db")).unwrap();
            let log = GroupLog::open(&directory, small(), founding()).unwrap();
            check_after_restart(&log, &mut known.lock());
        });
        last.unwrap();
    });
}

#[test]
fn what_comes_back_is_what_was_synced_and_a_beginning_of_the_rest() {
    lives(0..150, 0.0);
}

#[test]
fn a_failed_sync_ends_the_log_and_loses_nothing_synced() {
    lives(1000..1150, 0.2);
}
