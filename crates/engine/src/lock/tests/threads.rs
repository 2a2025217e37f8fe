//! Threads over a small engine: leaves with latches, records that carry their writer, a transaction
//! table. Transactions read, write and scan at random. At its end, each checks that nothing that it
//! had locked has changed. If a wait that should end does not, the test fails by its timeout.

#![allow(clippy::disallowed_types, reason = "tests use the machine as it is")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::clock::SystemClock;
use firn_base::random::{RandomSource, SplitMix};
use firn_base::{IndexId, TrxId, task};
use parking_lot::{Mutex, MutexGuard};

use crate::lock::{LockError, LockManager, LockMode, LockTarget, Outcome};

const INDEX: IndexId = IndexId(1);
const LEAVES: usize = 3;
const KEYS_PER_LEAF: usize = 4;
const KEYS: usize = LEAVES * KEYS_PER_LEAF;
const THREADS: u64 = 8;
const TRANSACTIONS: u64 = 2000;

/// Far longer than any wait may take.
const FOREVER: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Clone, Copy)]
struct Record {
    writer: TrxId,
    value: u64,
}

struct ToyEngine {
    locks: LockManager,
    leaves: [Mutex<[Record; KEYS_PER_LEAF]>; LEAVES],
    active: Mutex<BTreeSet<TrxId>>,
    next: AtomicU64,
    committed_writes: AtomicU64,
}

struct Transaction<'a> {
    engine: &'a ToyEngine,
    random: &'a SplitMix,
    id: TrxId,
    /// Values that were read under a lock and must not change.
    seen: BTreeMap<usize, u64>,
    /// Written keys, each with the number of writes.
    written: BTreeMap<usize, u64>,
}

impl ToyEngine {
    fn is_active(&self, id: TrxId) -> bool {
        self.active.lock().contains(&id)
    }

    fn begin<'a>(&'a self, random: &'a SplitMix) -> Transaction<'a> {
        let id = TrxId(self.next.fetch_add(1, Ordering::Relaxed));
        self.active.lock().insert(id);
        Transaction { engine: self, random, id, seen: BTreeMap::new(), written: BTreeMap::new() }
    }

    fn latch(&self, key: usize) -> MutexGuard<'_, [Record; KEYS_PER_LEAF]> {
        self.leaves[key / KEYS_PER_LEAF].lock()
    }
}

impl Transaction<'_> {
    fn roll(&self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    fn wait(&self, outcome: Outcome) -> Result<(), LockError> {
        let Outcome::Queued(wait) = outcome else { return Ok(()) };
        let impatient = self.roll(8) == 0;
        let timeout = if impatient { Duration::from_micros(50) } else { FOREVER };
        let result = self.engine.locks.wait(wait, Some(timeout));
        assert!(impatient || result != Err(LockError::Timeout), "a wake-up was lost");
        result
    }

    /// Puts an explicit lock on a record that another active transaction has written.
    fn make_explicit(&self, key: usize, record: &Record) {
        let engine = self.engine;
        if record.writer != self.id && engine.is_active(record.writer) {
            let is_active = || engine.is_active(record.writer);
            engine.locks.make_explicit(record.writer, INDEX, &[key as u8], is_active);
        }
    }

    fn request(&self, key: usize, mode: LockMode) -> Outcome {
        let target = LockTarget::Record { index: INDEX, key: &[key as u8] };
        self.engine.locks.request(self.id, target, mode)
    }

    fn lock_record(&mut self, key: usize, mode: LockMode) -> Result<(), LockError> {
        loop {
            let leaf = self.engine.latch(key);
            let record = leaf[key % KEYS_PER_LEAF];
            if record.writer != self.id {
                self.make_explicit(key, &record);
                match self.request(key, mode) {
                    queued @ Outcome::Queued(_) => {
                        drop(leaf);
                        self.wait(queued)?;
                        continue;
                    }
                    Outcome::Granted | Outcome::Held => {
                        assert!(!self.engine.is_active(record.writer), "two have one key");
                    }
                }
            }
            self.see(key, record.value);
            return Ok(());
        }
    }

    fn see(&mut self, key: usize, value: u64) {
        let seen = *self.seen.entry(key).or_insert(value);
        assert_eq!(seen, value, "{} saw key {key} change", self.id);
    }

    fn write(&mut self, key: usize) -> Result<(), LockError> {
        loop {
            let mut leaf = self.engine.latch(key);
            let record = &mut leaf[key % KEYS_PER_LEAF];
            let foreign = record.writer != self.id && self.engine.is_active(record.writer);
            let locks = &self.engine.locks;
            if foreign || locks.has_conflict(self.id, INDEX, &[key as u8], LockMode::Exclusive) {
                self.make_explicit(key, record);
                if let queued @ Outcome::Queued(_) = self.request(key, LockMode::Exclusive) {
                    drop(leaf);
                    self.wait(queued)?;
                    continue;
                }
                let writer = record.writer;
                assert!(writer == self.id || !self.engine.is_active(writer), "two have one key");
            }
            let seen = self.seen.get(&key);
            assert!(seen.is_none_or(|seen| *seen == record.value), "an update would be lost");
            record.writer = self.id;
            record.value += 1;
            self.seen.insert(key, record.value);
            *self.written.entry(key).or_default() += 1;
            return Ok(());
        }
    }

    fn scan(&mut self, low: usize, high: usize) -> Result<(), LockError> {
        let range = LockTarget::Range {
            index: INDEX,
            low: Bound::Included(&[low as u8]),
            high: Bound::Included(&[high as u8]),
        };
        let outcome = self.engine.locks.request(self.id, range, LockMode::Shared);
        self.wait(outcome)?;
        (low..=high).try_for_each(|key| self.lock_record(key, LockMode::Shared))
    }

    fn give_back(&mut self) {
        let released = self.seen.keys().copied().find(|key| !self.written.contains_key(key));
        if let Some(key) = released {
            self.seen.remove(&key);
            let target = LockTarget::Record { index: INDEX, key: &[key as u8] };
            self.engine.locks.release(self.id, target);
        }
    }

    fn run(&mut self) -> Result<(), LockError> {
        for _ in 0..=self.roll(4) {
            let key = self.roll(KEYS as u64) as usize;
            match self.roll(12) {
                0..=2 => self.lock_record(key, LockMode::Shared)?,
                3..=5 => self.lock_record(key, LockMode::Exclusive)?,
                6..=9 => self.write(key)?,
                10 => self.scan(key, (key + 3).min(KEYS - 1))?,
                _ => self.give_back(),
            }
            task::yield_now();
        }
        Ok(())
    }

    /// Checks what was read, or undoes what was written; then ends.
    fn end(self, committed: bool) {
        for (key, seen) in &self.seen {
            assert_eq!(self.engine.latch(*key)[key % KEYS_PER_LEAF].value, *seen, "key {key}");
        }
        for (key, times) in &self.written {
            if committed {
                self.engine.committed_writes.fetch_add(*times, Ordering::Relaxed);
            } else {
                self.engine.latch(*key)[key % KEYS_PER_LEAF].value -= times;
            }
        }
        self.engine.active.lock().remove(&self.id);
        self.engine.locks.release_all(self.id);
    }
}

#[test]
fn nothing_that_is_locked_changes() {
    let engine = ToyEngine {
        locks: LockManager::new(Arc::new(SystemClock)),
        leaves: Default::default(),
        active: Mutex::default(),
        next: AtomicU64::new(1),
        committed_writes: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            let engine = &engine;
            scope.spawn(move || {
                let random = SplitMix::new(seed);
                for _ in 0..TRANSACTIONS {
                    let mut transaction = engine.begin(&random);
                    let result = transaction.run();
                    transaction.end(result.is_ok());
                    // Cancels a random wait from time to time.
                    if random.next_u64().is_multiple_of(64) {
                        let newest = engine.next.load(Ordering::Relaxed);
                        engine.locks.cancel(TrxId(newest - 1 - random.next_u64() % 3));
                    }
                }
            });
        }
    });
    let values = engine.leaves.iter().flat_map(|leaf| *leaf.lock()).map(|record| record.value);
    assert_eq!(values.sum::<u64>(), engine.committed_writes.load(Ordering::Relaxed));
    let statistics = engine.locks.statistics();
    assert!(statistics.waits > 0 && statistics.deadlocks > 0, "{statistics:?}");
    assert!(engine.locks.is_empty(), "something is left behind");
}
