//! What tests put between a peer and its regions: faults on purpose, and a network that is late and
//! fails.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;

use firn_base::task::Spawner;
use firn_fabric::batch::Act;
use firn_fabric::{Answers, Completion};

use super::*;

/// Carries the batches of a peer.
pub(super) trait Between: Send + Sync {
    fn submit(&self, name: &str, region: &Arc<dyn Region>, batch: Batch) -> Completion;

    fn connect(&self) -> Result<(), FabricError> {
        Ok(())
    }
}

/// A peer whose batches go through something.
pub(super) struct PeerBehind {
    pub(super) peer: Arc<dyn Peer>,
    pub(super) between: Arc<dyn Between>,
}

struct RegionBehind {
    name: String,
    region: Arc<dyn Region>,
    between: Arc<dyn Between>,
}

impl Peer for PeerBehind {
    fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError> {
        self.between.connect()?;
        let (region, between) = (self.peer.connect(name)?, Arc::clone(&self.between));
        Ok(Arc::new(RegionBehind { name: name.to_owned(), region, between }))
    }
}

impl Region for RegionBehind {
    fn length_words(&self) -> usize {
        self.region.length_words()
    }

    fn epoch(&self) -> Epoch {
        self.region.epoch()
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(2)
    }

    fn submit(&self, batch: Batch) -> Completion {
        self.between.submit(&self.name, &self.region, batch)
    }
}

/// What a transport does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The number of offloaded transactions reads as zero.
    HiddenOverflow,
    /// The owner does not see the peer's snapshots.
    HiddenSnapshots,
    /// The durable commits and the announced horizon read as they were at the last time.
    LateHorizons,
    /// A transaction that is COMMITTING reads as ACTIVE.
    CommittingIsActive,
    /// No fault, but the control of [`Fault::LateHorizons`]: the announced horizon reads as it is,
    /// and a peer that finds it above its snapshot looks again.
    LateDurableCommits,
}

impl Fault {
    /// What tests must find.
    pub(super) const ALL: [Fault; 4] = [
        Fault::HiddenOverflow,
        Fault::HiddenSnapshots,
        Fault::LateHorizons,
        Fault::CommittingIsActive,
    ];
}

/// A transport with a fault.
pub(super) struct Faulty {
    fault: Fault,
    last: Mutex<HashMap<&'static str, u64>>,
}

impl Faulty {
    pub(super) fn new(fault: Fault) -> Arc<Faulty> {
        Arc::new(Faulty { fault, last: Mutex::new(HashMap::new()) })
    }

    fn hides(&self, name: &str, word: usize) -> bool {
        self.fault == Fault::HiddenSnapshots
            && name == snapshots::REGION
            && word >= snapshots::peer_word(0)
    }

    /// Changes the answer to a read of the words from `start` on.
    fn alter(&self, name: &str, length_words: usize, start: usize, words: &mut [u64]) {
        let mut late = |key: &'static str, word: usize| {
            if let Some(word) = word_at(words, start, word) {
                let before = self.last.lock().insert(key, *word);
                *word = before.unwrap_or(*word);
            }
        };
        match self.fault {
            Fault::HiddenOverflow if name == table::REGION => {
                let count = length_words - HEADER_WORDS + overflow::COUNT;
                word_at(words, start, count).into_iter().for_each(|count| *count = 0);
            }
            Fault::LateHorizons | Fault::LateDurableCommits if name == commit_order::REGION => {
                late("durable", commit_order::DURABLE_WORD);
            }
            Fault::LateHorizons if name == snapshots::REGION => {
                late("announced", snapshots::ANNOUNCED_WORD);
            }
            Fault::CommittingIsActive if name.starts_with("transaction-") => {
                let (bits, active) = (committing(TrxId(0)), active(TrxId(0)));
                let is_committing = |word: &&mut u64| **word & bits == bits;
                words.iter_mut().filter(is_committing).for_each(|word| *word ^= bits ^ active);
            }
            _ => {}
        }
    }
}

/// One of the words that were read from `start` on.
fn word_at(words: &mut [u64], start: usize, word: usize) -> Option<&mut u64> {
    words.get_mut(word.checked_sub(start)?)
}

impl Between for Faulty {
    fn submit(&self, name: &str, region: &Arc<dyn Region>, batch: Batch) -> Completion {
        let mut answers = Vec::new();
        for act in batch.acts() {
            let done = match act {
                Act::Read { start, length } => {
                    let mut words = vec![0; *length];
                    region.read(*start, &mut words).map(|()| {
                        self.alter(name, region.length_words(), *start, &mut words);
                        answers.extend(words);
                    })
                }
                Act::CompareAndSwap { word, expected, .. } if self.hides(name, *word) => {
                    answers.push(*expected);
                    Ok(())
                }
                Act::Write { start, words } => region.write(*start, words),
                Act::CompareAndSwap { word, expected, new } => {
                    region.compare_and_swap(*word, *expected, *new).map(|found| answers.push(found))
                }
                Act::FetchAdd { word, amount } => {
                    region.fetch_add(*word, *amount).map(|found| answers.push(found))
                }
            };
            if let Err(error) = done {
                return Completion::ready(Err(error));
            }
        }
        Completion::ready(Ok(Answers::new(answers)))
    }
}

/// A network that loses, delays and answers late, from a seed, while it is not calm.
pub(super) struct Unsteady {
    random: SplitMix,
    is_calm: AtomicBool,
    /// Batches that nobody waits for any more and that have not happened yet.
    late: Mutex<Vec<(Arc<dyn Region>, Batch)>>,
    pub(super) failures: AtomicUsize,
}

impl Unsteady {
    pub(super) fn new(seed: u64) -> Arc<Unsteady> {
        Arc::new(Unsteady {
            random: SplitMix::new(seed),
            is_calm: AtomicBool::new(false),
            late: Mutex::new(Vec::new()),
            failures: AtomicUsize::new(0),
        })
    }

    pub(super) fn calm_down(&self) {
        self.is_calm.store(true, Ordering::SeqCst);
    }

    fn weather(&self) -> u64 {
        if self.is_calm.load(Ordering::SeqCst) { u64::MAX } else { self.random.next_u64() % 40 }
    }

    fn lost(&self) -> FabricError {
        self.failures.fetch_add(1, Ordering::Relaxed);
        FabricError::Unreachable { owner: "test".to_owned(), reason: "lost".to_owned() }
    }
}

impl Between for Unsteady {
    fn connect(&self) -> Result<(), FabricError> {
        if self.weather() < 4 { Err(self.lost()) } else { Ok(()) }
    }

    fn submit(&self, _name: &str, region: &Arc<dyn Region>, batch: Batch) -> Completion {
        for (region, batch) in std::mem::take(&mut *self.late.lock()) {
            drop(region.submit(batch));
        }
        match self.weather() {
            0 => Completion::ready(Err(self.lost())),
            1 => {
                drop(region.submit(batch));
                Completion::ready(Err(self.lost()))
            }
            2 => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.late.lock().push((Arc::clone(region), batch));
                Completion::pending().0
            }
            3 => {
                let answered = region.submit(batch).wait(PATIENCE);
                let (completion, completer) = Completion::pending();
                let reply = Box::new(move || {
                    sleep(Duration::from_micros(100));
                    completer.complete(answered);
                });
                drop(ThreadSpawner.spawn("late-reply", reply));
                completion
            }
            _ => region.submit(batch),
        }
    }
}
