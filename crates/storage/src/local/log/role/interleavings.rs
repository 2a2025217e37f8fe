//! The hand-over of the role under many interleavings. To shuttle, a lost wake-up is a deadlock.

use std::sync::Arc;

use shuttle::thread::{self, yield_now};

use super::*;
use crate::sync::Mutex;

const GROUP_BYTES: u64 = 64;

/// Groups of one size that were appended and not taken yet; each is complete or not.
#[derive(Default)]
struct Appended {
    groups: Mutex<std::collections::VecDeque<bool>>,
    first: AtomicU64,
}

impl Appended {
    /// Reserves the place of a group, and completes it later: other groups may come in between.
    fn append(&self) -> Lsn {
        let number = {
            let mut groups = self.groups.lock();
            groups.push_back(false);
            self.first.load(Ordering::SeqCst) + groups.len() as u64 - 1
        };
        yield_now();
        let mut groups = self.groups.lock();
        let place = number - self.first.load(Ordering::SeqCst);
        groups[place as usize] = true;
        Lsn::FIRST.advance((number + 1) * GROUP_BYTES)
    }

    /// The end of the complete groups at the front, which are taken; `None` if there are none.
    fn take(&self) -> Option<Lsn> {
        let mut groups = self.groups.lock();
        let complete = groups.iter().take_while(|is_complete| **is_complete).count();
        groups.drain(..complete);
        let end = self.first.fetch_add(complete as u64, Ordering::SeqCst) + complete as u64;
        (complete > 0).then(|| Lsn::FIRST.advance(end * GROUP_BYTES))
    }
}

/// A source, the role, and files that only count.
struct Log {
    source: Appended,
    role: WriterRole,
    syncs: AtomicU64,
    /// The ends of groups whose committers may have left.
    left: Mutex<Vec<Lsn>>,
    /// The sync of this number fails.
    failing_sync: u64,
}

impl Log {
    fn new(failing_sync: u64) -> Arc<Log> {
        Arc::new(Log {
            source: Appended::default(),
            role: WriterRole::new(Lsn::FIRST),
            syncs: AtomicU64::new(0),
            left: Mutex::new(Vec::new()),
            failing_sync,
        })
    }

    /// A round, if there is a whole group; `Err` if the sync fails.
    fn write_round(&self, role: &mut HeldRole<'_>) -> Result<bool, LogError> {
        let Some(end) = self.source.take() else { return Ok(false) };
        role.begin_round(end);
        yield_now();
        if self.syncs.fetch_add(1, Ordering::SeqCst) + 1 == self.failing_sync {
            return Err(LogError::Failed { place: "a disk".into(), reason: "no sync".into() });
        }
        role.end_round();
        Ok(true)
    }

    fn lead(&self, mut role: HeldRole<'_>, lsn: Lsn) {
        while self.role.durable() < lsn {
            match self.write_round(&mut role) {
                Ok(true) => {}
                Ok(false) => yield_now(),
                Err(error) => return role.fail(error),
            }
        }
    }

    /// Appends a group and waits for it. False if the log has failed.
    fn commit(&self, tag: u32) -> bool {
        let end = self.source.append();
        // Some wait for the committers that the last round woke, others are in a hurry.
        let patience = Duration::from_millis(u64::from(tag % 2));
        self.role.wait_durable(end, patience, |role| self.lead_and_answer(role, end));
        let is_durable = self.role.durable() >= end;
        assert!(is_durable || self.role.failure().is_some(), "a wait ended for no reason");
        is_durable
    }

    /// Appends a group, and waits for it only if no other thread does. False if the log has failed.
    fn commit_or_leave(&self) -> bool {
        let end = self.source.append();
        self.left.lock().push(end);
        let patience = Duration::from_millis(1);
        let has_waited =
            self.role.wait_or_leave(end, patience, |role| self.lead_and_answer(role, end));
        if has_waited {
            self.answer();
            let is_durable = self.role.durable() >= end;
            assert!(is_durable || self.role.failure().is_some(), "a wait ended for no reason");
        }
        self.role.failure().is_none()
    }

    fn lead_and_answer(&self, role: HeldRole<'_>, end: Lsn) {
        self.lead(role, end);
        self.pass_on_left();
        self.answer();
    }

    /// What the task `log-writer` does when it is asked for what was left.
    fn pass_on_left(&self) {
        loop {
            let last = self.left.lock().iter().copied().max().unwrap_or(Lsn(0));
            if !self.role.is_forsaken(last) || self.role.failure().is_some() {
                return;
            }
            if let Some(role) = self.role.try_take() {
                self.lead(role, last);
                self.answer();
            }
        }
    }

    fn answer(&self) {
        let durable = self.role.durable();
        self.left.lock().retain(|end| *end > durable);
    }
}

fn explore(run: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(run.clone(), 3_000);
    shuttle::check_pct(run, 3_000, 3);
}

fn committers(log: &Arc<Log>, threads: u32, commits: u32) -> Vec<thread::JoinHandle<bool>> {
    let committer = |tag| {
        let log = Arc::clone(log);
        thread::spawn(move || (0..commits).all(|_| log.commit(tag)))
    };
    (1..=threads).map(committer).collect()
}

#[test]
fn every_committer_learns_that_its_group_is_durable() {
    explore(|| {
        let log = Log::new(0);
        for committer in committers(&log, 3, 2) {
            assert!(committer.join().expect("no panic"));
        }
        let syncs = log.syncs.load(Ordering::SeqCst);
        assert!((1..=6).contains(&syncs), "{syncs} syncs for six commits");
    });
}

#[test]
fn a_role_that_is_given_back_unused_is_passed_on() {
    explore(|| {
        let log = Log::new(0);
        let idler = Arc::clone(&log);
        let idle = thread::spawn(move || {
            for _ in 0..3 {
                drop(idler.role.try_take());
            }
        });
        for committer in committers(&log, 2, 2) {
            assert!(committer.join().expect("no panic"));
        }
        idle.join().expect("no panic");
    });
}

#[test]
fn a_failed_sync_reaches_everybody_and_ends_the_log() {
    explore(|| {
        let log = Log::new(2);
        let outcomes = committers(&log, 3, 2).into_iter().map(|thread| thread.join().unwrap());
        let succeeded = outcomes.filter(|outcome| *outcome).count();
        let syncs = log.syncs.load(Ordering::SeqCst);
        assert!(syncs <= 2, "synced after a failure");
        assert_eq!(syncs == 2, log.role.failure().is_some());
        assert!(syncs == 2 || succeeded == 3);
    });
}

#[test]
fn a_holder_that_dies_with_groups_in_its_hands_ends_the_log() {
    explore(|| {
        let log = Log::new(0);
        let dying = Arc::clone(&log);
        let death = thread::spawn(move || {
            if let Some(mut role) = dying.role.try_take() {
                if let Some(end) = dying.source.take() {
                    role.begin_round(end);
                }
            }
        });
        let outcomes: Vec<_> =
            committers(&log, 2, 2).into_iter().map(|thread| thread.join().unwrap()).collect();
        death.join().expect("no panic");
        assert_eq!(outcomes.contains(&false), log.role.failure().is_some());
    });
}

#[test]
fn every_commit_that_was_left_is_answered() {
    explore(|| {
        let log = Log::new(0);
        let committer = |waits: bool| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                (0..2).all(|_| if waits { log.commit(1) } else { log.commit_or_leave() })
            })
        };
        let threads = [false, false, false, true].map(committer);
        for thread in threads {
            assert!(thread.join().expect("no panic"));
        }
        // Those that had a thread to answer for have gone: nobody would answer any more.
        assert_eq!(*log.left.lock(), []);
    });
}

#[test]
fn a_failed_sync_ends_the_waits_of_those_that_stayed() {
    explore(|| {
        let log = Log::new(2);
        let committer = |_| {
            let log = Arc::clone(&log);
            thread::spawn(move || (0..2).all(|_| log.commit_or_leave()))
        };
        for thread in [0; 3].map(committer) {
            thread.join().expect("no panic");
        }
        assert!(log.left.lock().is_empty() || log.role.failure().is_some());
    });
}
