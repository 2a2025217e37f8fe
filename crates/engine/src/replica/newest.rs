//! What is newest at the writer: one question serves many reads (003 §4.1).
//!
//! ```text
//!   read A   ──arrives 1───────────── takes the answer of 2 ──►
//!   question          ──begins 2────────── answer: 44 ──►
//!   read B               ──arrives 3── waits, and asks 4 ─────────── answer: 45 ──►
//!   read C                   ──arrives 4'── … joins it
//! ```
//!
//! An answer holds for a read that arrived before its question began: every commit that was
//! acknowledged before the read is older than the question. Arrivals and beginnings are numbered by
//! one counter, which is the paper's linear Lamport timestamp: a clock would not order what happens
//! within one of its ticks. A read that finds a question under way which began too early waits for
//! its end, and then one of those that wait asks the next one for all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{WriterError, WriterNode, WriterPositions};
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::{Cts, Lsn};
use parking_lot::Mutex;

/// What is newest at the writer at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewestCommits {
    /// What a snapshot sees that is taken there.
    pub(crate) visible: Cts,
    /// The end of its durable log.
    pub(crate) durable: Lsn,
}

/// The arrival of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrival(u64);

/// What is newest at a writer, as it was asked for last.
pub(crate) struct Newest {
    writer: Arc<dyn WriterNode>,
    clock: Arc<dyn Clock>,
    /// Numbers arrivals and questions.
    counter: AtomicU64,
    questions: AtomicU64,
    state: Mutex<State>,
    /// A question has ended.
    ended: Event,
}

#[derive(Default)]
struct State {
    answer: Option<Answered>,
    /// The last question failed, if no answer came after it.
    failure: Option<(Arrival, WriterError)>,
    is_asking: bool,
}

#[derive(Debug, Clone, Copy)]
struct Answered {
    /// When its question began.
    began: Arrival,
    began_at: Duration,
    newest: NewestCommits,
}

impl From<WriterPositions> for NewestCommits {
    fn from(positions: WriterPositions) -> NewestCommits {
        NewestCommits { visible: positions.visible, durable: positions.durable_lsn }
    }
}

impl Newest {
    pub(crate) fn new(writer: Arc<dyn WriterNode>, clock: Arc<dyn Clock>) -> Newest {
        Newest {
            writer,
            clock,
            counter: AtomicU64::new(0),
            questions: AtomicU64::new(0),
            state: Mutex::default(),
            ended: Event::new(),
        }
    }

    pub(crate) fn arrive(&self) -> Arrival {
        Arrival(self.counter.fetch_add(1, Ordering::SeqCst))
    }

    /// How many questions were asked so far.
    pub(crate) fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// Includes every commit that was acknowledged before the arrival. Blocks for
    /// a round trip to the writer, or for the end of somebody else's and one more. A writer that
    /// answers at once is asked for each read.
    ///
    /// # Errors
    /// Why the writer has not said it.
    pub(crate) fn since(&self, arrival: Arrival) -> Result<NewestCommits, WriterError> {
        if self.writer.answers_at_once() {
            return self.ask_alone();
        }
        self.get(&|answer| answer.began > arrival, arrival)
    }

    /// Includes every commit that was acknowledged longer than `age` ago.
    ///
    /// # Errors
    /// As [`Newest::since`].
    pub(crate) fn within(&self, age: Duration) -> Result<NewestCommits, WriterError> {
        let oldest = self.clock.monotonic().saturating_sub(age);
        self.get(&|answer| answer.began_at >= oldest, self.arrive())
    }

    /// Asks for this read alone, without an answer that others have: what 003 compares with.
    ///
    /// # Errors
    /// As [`Newest::since`].
    pub(crate) fn ask_alone(&self) -> Result<NewestCommits, WriterError> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        Ok(self.writer.newest()?.into())
    }

    fn get(
        &self,
        holds: &dyn Fn(&Answered) -> bool,
        arrival: Arrival,
    ) -> Result<NewestCommits, WriterError> {
        loop {
            let ticket = self.ended.listen();
            {
                let mut state = self.state.lock();
                if let Some(answer) = state.answer.filter(holds) {
                    return Ok(answer.newest);
                }
                if let Some((_, error)) = state.failure.as_ref().filter(|(at, _)| *at > arrival) {
                    return Err(error.clone());
                }
                if !std::mem::replace(&mut state.is_asking, true) {
                    drop(state);
                    self.ask();
                    continue;
                }
            }
            self.ended.wait(ticket, None);
        }
    }

    /// Asks the writer, for all that wait.
    fn ask(&self) {
        let (began, began_at) = (self.arrive(), self.clock.monotonic());
        self.questions.fetch_add(1, Ordering::Relaxed);
        let said = self.writer.newest();
        let mut state = self.state.lock();
        state.is_asking = false;
        match said {
            Ok(positions) => {
                let newest = positions.into();
                state.answer = Some(Answered { began, began_at, newest });
                state.failure = None;
            }
            Err(error) => state.failure = Some((began, error)),
        }
        drop(state);
        self.ended.notify_all();
    }
}

#[cfg(test)]
mod tests;
