//! Batches of one-sided operations, and their completion.
//!
//! ```text
//!   let mut batch = Batch::new();
//!   let slot = batch.read(40, 5);               // where its answer will be found
//!   batch.compare_and_swap(7, 0, 1);
//!   let done = region.submit(batch);            // goes out at once; others may follow
//!   let answers = done.wait(timeout)?;
//!   answers.words(slot)
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_base::event::Event;
use parking_lot::Mutex;

use crate::error::FabricError;
use crate::words::{AtomicU64, Ordering};

/// One act on a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Reads `length` words in ascending order.
    Read {
        /// The first word.
        start: usize,
        length: usize,
    },
    /// Writes words in ascending order.
    Write {
        /// The first word.
        start: usize,
        words: Vec<u64>,
    },
    /// Writes `new` if the word equals `expected`, and returns the word's former value.
    CompareAndSwap { word: usize, expected: u64, new: u64 },
    /// Adds to a word, and returns its former value.
    FetchAdd { word: usize, amount: u64 },
}

impl Act {
    /// The first word that it touches, and one past the last.
    fn range(&self) -> (usize, usize) {
        match self {
            Act::Read { start, length } => (*start, *length),
            Act::Write { start, words } => (*start, words.len()),
            Act::CompareAndSwap { word, .. } | Act::FetchAdd { word, .. } => (*word, 1),
        }
    }
}

/// Where the answer to an act is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerPlace(Range<usize>);

/// Acts that are submitted together and run in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    acts: Vec<Act>,
    answer_words: usize,
}

impl Batch {
    #[must_use]
    pub fn new() -> Batch {
        Batch::default()
    }

    #[must_use]
    pub fn acts(&self) -> &[Act] {
        &self.acts
    }

    /// For transports: the acts in their order.
    #[must_use]
    pub fn into_acts(self) -> Vec<Act> {
        self.acts
    }

    fn place(&mut self, words: usize) -> AnswerPlace {
        let start = self.answer_words;
        self.answer_words = start.saturating_add(words);
        AnswerPlace(start..self.answer_words)
    }

    /// Reads `length` words from `start` on.
    pub fn read(&mut self, start: usize, length: usize) -> AnswerPlace {
        self.acts.push(Act::Read { start, length });
        self.place(length)
    }

    /// Writes words from `start` on.
    pub fn write(&mut self, start: usize, words: Vec<u64>) {
        self.acts.push(Act::Write { start, words });
    }

    /// Writes bytes, the low byte of each word first; the last word is padded with zeros.
    pub fn write_bytes(&mut self, start: usize, bytes: &[u8]) {
        let word = |bytes: &[u8]| {
            let mut word = [0; size_of::<u64>()];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        self.write(start, bytes.chunks(size_of::<u64>()).map(word).collect());
    }

    /// Writes `new` if the word equals `expected`; the answer is the word's former value.
    pub fn compare_and_swap(&mut self, word: usize, expected: u64, new: u64) -> AnswerPlace {
        self.acts.push(Act::CompareAndSwap { word, expected, new });
        self.place(1)
    }

    /// Adds to a word; the answer is its former value.
    pub fn fetch_add(&mut self, word: usize, amount: u64) -> AnswerPlace {
        self.acts.push(Act::FetchAdd { word, amount });
        self.place(1)
    }

    /// Whether it does anything but read.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.acts.iter().any(|act| !matches!(act, Act::Read { .. }))
    }

    /// How many words the answers have.
    #[must_use]
    pub fn answer_words(&self) -> usize {
        self.answer_words
    }

    /// How many words a transport carries: those that it writes, and the answers.
    #[must_use]
    pub fn carried_words(&self) -> usize {
        let written = |act: &Act| match act {
            Act::Write { words, .. } => words.len(),
            _ => 0,
        };
        let written: usize = self.acts.iter().map(written).sum();
        written.saturating_add(self.answer_words)
    }

    /// Whether all of it lies within a region of this length.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`]
    pub fn check_bounds(&self, length: usize) -> Result<(), FabricError> {
        for act in &self.acts {
            let (start, words) = act.range();
            let end = start.saturating_add(words);
            if end > length {
                return Err(FabricError::OutOfBounds { start, end, length });
            }
        }
        Ok(())
    }

    /// Runs the batch on words that this process can reach itself.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`]; no act of the batch was done.
    pub(crate) fn run(&self, words: &[AtomicU64]) -> Result<Answers, FabricError> {
        self.check_bounds(words.len())?;
        let mut answers = Vec::with_capacity(self.answer_words);
        for act in &self.acts {
            match act {
                Act::Read { start, length } => {
                    let read = words[*start..][..*length].iter();
                    answers.extend(read.map(|word| word.load(Ordering::SeqCst)));
                }
                Act::Write { start, words: new } => {
                    for (slot, word) in words[*start..].iter().zip(new) {
                        slot.store(*word, Ordering::SeqCst);
                    }
                }
                Act::CompareAndSwap { word, expected, new } => {
                    let order = Ordering::SeqCst;
                    let found = words[*word].compare_exchange(*expected, *new, order, order);
                    answers.push(found.unwrap_or_else(|found| found));
                }
                Act::FetchAdd { word, amount } => {
                    answers.push(words[*word].fetch_add(*amount, Ordering::SeqCst));
                }
            }
        }
        Ok(Answers(answers))
    }
}

/// The answers of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers(Vec<u64>);

impl Answers {
    /// For transports: the answers of all acts of a batch, one behind the other.
    #[must_use]
    pub fn new(words: Vec<u64>) -> Answers {
        Answers(words)
    }

    /// For transports: as [`Answers::new`] takes them.
    #[must_use]
    pub fn into_words(self) -> Vec<u64> {
        self.0
    }

    /// The words of a read.
    ///
    /// # Panics
    /// If the place belongs to another batch.
    #[must_use]
    pub fn words(&self, place: AnswerPlace) -> &[u64] {
        &self.0[place.0]
    }

    /// The word that a single-word act returned.
    ///
    /// # Panics
    /// As [`Answers::words`].
    #[must_use]
    pub fn word(&self, place: AnswerPlace) -> u64 {
        self.words(place)[0]
    }
}

/// How a batch has ended.
pub type Answered = Result<Answers, FabricError>;

/// The pending end of a batch.
#[derive(Debug)]
pub struct Completion(State);

enum State {
    Ready(Answered),
    Pending(Box<dyn PendingBatch>),
}

/// A batch under way, as its transport knows it. Dropping it does not take it back.
pub trait PendingBatch: Send {
    /// See [`Completion::is_done`].
    fn is_done(&self) -> bool;

    /// See [`Completion::wait`].
    ///
    /// # Errors
    /// As [`Completion::wait`].
    fn wait(self: Box<Self>, timeout: Duration) -> Answered;
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Ready(_) => "Ready",
            State::Pending(_) => "Pending",
        })
    }
}

#[derive(Debug, Default)]
struct Promise {
    answered: Mutex<Option<Answered>>,
    changed: Event,
}

/// The transport's end of a completion. If it is dropped without an answer, the peer waits until
/// its timeout.
#[derive(Debug)]
pub struct Completer(Arc<Promise>);

impl Completion {
    /// The completion of a batch that has ended.
    #[must_use]
    pub fn ready(answered: Answered) -> Completion {
        Completion(State::Ready(answered))
    }

    /// The completion of a batch that is under way.
    #[must_use]
    pub fn of(batch: Box<dyn PendingBatch>) -> Completion {
        Completion(State::Pending(batch))
    }

    /// The completion of a batch that is under way, and the means to complete it.
    #[must_use]
    pub fn pending() -> (Completion, Completer) {
        let promise = Arc::new(Promise::default());
        (Completion::of(Box::new(Promised(Arc::clone(&promise)))), Completer(promise))
    }

    /// Whether [`Completion::wait`] would not block.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.0 {
            State::Ready(_) => true,
            State::Pending(batch) => batch.is_done(),
        }
    }

    /// Waits until the batch is done.
    ///
    /// # Errors
    /// Why the batch was not done; [`FabricError::TimedOut`] after `timeout`.
    pub fn wait(self, timeout: Duration) -> Answered {
        match self.0 {
            State::Ready(answered) => answered,
            State::Pending(batch) => batch.wait(timeout),
        }
    }
}

/// A batch whose end somebody promises.
struct Promised(Arc<Promise>);

impl PendingBatch for Promised {
    fn is_done(&self) -> bool {
        self.0.answered.lock().is_some()
    }

    fn wait(self: Box<Self>, timeout: Duration) -> Answered {
        self.0.changed.wait_until(Some(timeout), || self.is_done());
        let answered = self.0.answered.lock().take();
        answered.unwrap_or(Err(FabricError::TimedOut { timeout }))
    }
}

impl Completer {
    /// Reports the batch's answers or error to the waiter.
    pub fn complete(self, answered: Answered) {
        *self.0.answered.lock() = Some(answered);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
