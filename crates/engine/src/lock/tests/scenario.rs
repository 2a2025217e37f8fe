//! Runs a story: one line a step, all in one thread. Each step's result is written beside it.
//!
//! ```text
//!   T1 X ant            request a key, S or X; [a..c) or (..) for a range, table for the table
//!   T1 try X ant        request without waiting
//!   T1 writes ant       has_conflict for an exclusive lock
//!   T1 held ant         another transaction finds that T1 has written ant: make_explicit
//!   T1 gives back ant   release
//!   T1 ends             release_all
//!   T1 times out        the time of its wait runs out
//!   T1 cancelled        cancel
//!   T1 weighs 5         register, with 5 undo records
//!   locks               the listing
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::{IndexId, TableId, TrxId};

use crate::lock::{LockError, LockManager, LockMode, LockTarget, Outcome, TryOutcome, Wait};

const INDEX: IndexId = IndexId(7);

struct StoppedClock;

impl Clock for StoppedClock {
    fn monotonic(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn wall_time_ms(&self) -> u64 {
        0
    }
}

struct Story {
    manager: LockManager,
    waits: BTreeMap<TrxId, Wait>,
    log: String,
}

/// Plays the steps; returns them with their results. At the end the lock manager must be empty.
pub(super) fn play(steps: &str) -> String {
    let mut story = Story {
        manager: LockManager::new(Arc::new(StoppedClock)),
        waits: BTreeMap::new(),
        log: String::new(),
    };
    for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
        story.step(step);
    }
    for owner in 1..10 {
        story.manager.release_all(TrxId(owner));
    }
    assert!(story.manager.is_empty(), "something is left behind");
    story.log
}

impl Story {
    fn step(&mut self, step: &str) {
        let words: Vec<&str> = step.split_whitespace().collect();
        if step == "locks" {
            return self.list();
        }
        let owner = TrxId(words[0].strip_prefix('T').unwrap().parse().unwrap());
        let outcome = self.act(owner, &words[1..]);
        let line = format!("{step:<18} {outcome}");
        writeln!(self.log, "{}", line.trim_end()).unwrap();
        self.collect();
    }

    fn act(&mut self, owner: TrxId, words: &[&str]) -> String {
        match *words {
            ["weighs", weight] => {
                let weight = AtomicU64::new(weight.parse().unwrap());
                self.manager.register(owner, Arc::new(weight));
                String::new()
            }
            ["try", mode, target] => {
                match with_target(target, |t| self.manager.try_request(owner, t, parse_mode(mode)))
                {
                    TryOutcome::Granted => "granted".into(),
                    TryOutcome::Held => "held already".into(),
                    TryOutcome::Blocked(by) => format!("refused, T{by} is in the way"),
                }
            }
            ["writes", key] => {
                let key = key.as_bytes();
                let conflict = self.manager.has_conflict(owner, INDEX, key, LockMode::Exclusive);
                if conflict { "must ask".into() } else { "goes ahead".into() }
            }
            ["held", key] => {
                let explicit = self.manager.make_explicit(owner, INDEX, key.as_bytes(), || true);
                if explicit { "explicit now".into() } else { "no more".into() }
            }
            ["gives", "back", target] => {
                with_target(target, |target| self.manager.release(owner, target));
                String::new()
            }
            ["ends"] => {
                self.waits.remove(&owner);
                self.manager.release_all(owner);
                String::new()
            }
            ["times", "out"] => {
                let wait = self.waits.remove(&owner).unwrap();
                let result = self.manager.wait(wait, Some(Duration::ZERO));
                assert_eq!(result, Err(LockError::Timeout));
                String::new()
            }
            ["cancelled"] => format!("{}", self.manager.cancel(owner)),
            [mode, target] => {
                match with_target(target, |t| self.manager.request(owner, t, parse_mode(mode))) {
                    Outcome::Granted => "granted".into(),
                    Outcome::Held => "held already".into(),
                    Outcome::Queued(wait) => {
                        self.waits.insert(owner, wait);
                        "waits".into()
                    }
                }
            }
            _ => panic!("no such step: {words:?}"),
        }
    }

    /// Writes down the waits that this step has ended.
    fn collect(&mut self) {
        for (owner, wait) in std::mem::take(&mut self.waits) {
            if !self.manager.is_decided(&wait) {
                self.waits.insert(owner, wait);
                continue;
            }
            let locked = wait.locked().to_string();
            let end = match self.manager.wait(wait, None) {
                Ok(()) => format!("gets {locked}"),
                Err(LockError::Deadlock { cycle }) => {
                    let cycle: Vec<_> = cycle.iter().map(|owner| format!("T{owner}")).collect();
                    format!("is the victim of {}", cycle.join(" > "))
                }
                Err(error) => error.to_string(),
            };
            writeln!(self.log, "    T{owner} {end}").unwrap();
        }
    }

    fn list(&mut self) {
        for lock in self.manager.snapshot() {
            write!(self.log, "  | {}  {} T{}", lock.locked, lock.mode, lock.owner).unwrap();
            if let Some(wait) = lock.wait {
                let blockers: Vec<_> = wait.blockers.iter().map(|b| format!("T{b}")).collect();
                write!(self.log, " waits for {}", blockers.join(" ")).unwrap();
            }
            self.log.push('\n');
        }
    }
}

fn parse_mode(text: &str) -> LockMode {
    match text {
        "S" => LockMode::Shared,
        "X" => LockMode::Exclusive,
        _ => panic!("no such mode: {text}"),
    }
}

fn with_target<R>(text: &str, act: impl FnOnce(LockTarget<'_>) -> R) -> R {
    if text == "table" {
        return act(LockTarget::Table { table: TableId(3) });
    }
    let Some((low, high)) = text.split_once("..") else {
        return act(LockTarget::Record { index: INDEX, key: text.as_bytes() });
    };
    let (open, low) = low.split_at(1);
    let (high, close) = high.split_at(high.len() - 1);
    let bound = |key: &str, included: bool| -> Bound<Vec<u8>> {
        match (key, included) {
            ("", _) => Bound::Unbounded,
            (key, true) => Bound::Included(key.into()),
            (key, false) => Bound::Excluded(key.into()),
        }
    };
    let (low, high) = (bound(low, open == "["), bound(high, close == "]"));
    act(LockTarget::Range {
        index: INDEX,
        low: low.as_ref().map(Vec::as_slice),
        high: high.as_ref().map(Vec::as_slice),
    })
}
