//! A writer for tests: its source is a list of bytes, and it checks what the store does to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::redo::{Group, GroupBuilder};
use parking_lot::Mutex;

use crate::log_store::{LogError, LogSource, LogStore, LogWriter, Tail, WriterEpoch};

/// Longer than a store takes for any operation.
pub(super) const LONG: Duration = Duration::from_secs(120);

/// An opened stream with a writer whose groups a test appends by hand.
pub struct Appender {
    /// Where the stream was opened.
    pub tail: Tail,
    /// The store's side.
    pub writer: Box<dyn LogWriter>,
    queue: Arc<Queue>,
}

struct Queue {
    waiting: Mutex<Waiting>,
    is_taking: AtomicBool,
    durable: AtomicU64,
    told: Mutex<Told>,
    left: Mutex<Left>,
    heard: Event,
}

/// Committers that have left.
#[derive(Default)]
struct Left {
    waiting: BTreeSet<Lsn>,
    answers: BTreeMap<Lsn, Result<(), LogError>>,
}

impl Left {
    fn answer(&mut self, durable: Lsn, answer: &Result<(), LogError>) {
        let later = self.waiting.split_off(&Lsn(durable.0.saturating_add(1)));
        let answered = std::mem::replace(&mut self.waiting, later);
        self.answers.extend(answered.into_iter().map(|lsn| (lsn, answer.clone())));
    }
}

/// Appended bytes that the store has not taken.
struct Waiting {
    first: Lsn,
    bytes: Vec<u8>,
    /// Groups from here on are not complete.
    hole: Option<Lsn>,
}

/// What the store has reported.
#[derive(Default)]
struct Told {
    durable: Lsn,
    error: Option<LogError>,
}

impl Waiting {
    fn end(&self) -> Lsn {
        self.first.advance(self.bytes.len() as u64)
    }
}

impl LogSource for Queue {
    fn take(&self, into: &mut Vec<u8>, limit_bytes: usize) -> Lsn {
        assert!(!self.is_taking.swap(true, Ordering::SeqCst), "two rounds are taken at a time");
        firn_base::task::yield_now();
        let mut waiting = self.waiting.lock();
        let start = waiting.first;
        let complete = waiting.hole.map_or(waiting.bytes.len(), |hole| hole.since(start) as usize);
        let mut length = 0;
        while length < complete && into.len() + length < limit_bytes {
            let group = Group::parse(&waiting.bytes[length..]).expect("whole groups are appended");
            length += group.length_bytes() as usize;
        }
        into.extend(waiting.bytes.drain(..length));
        waiting.first = start.advance(length as u64);
        drop(waiting);
        self.is_taking.store(false, Ordering::SeqCst);
        start
    }

    fn advance(&self, durable: Lsn) {
        let taken = self.waiting.lock().first;
        assert!(durable <= taken, "{durable} is durable, but only {taken} was taken");
        self.durable.fetch_max(durable.0, Ordering::SeqCst);
    }

    fn tell(&self, outcome: Result<Lsn, &LogError>) {
        let advanced = self.durable.load(Ordering::SeqCst);
        let mut told = self.told.lock();
        assert!(told.error.is_none(), "something was told after the end");
        match outcome {
            Ok(durable) => {
                assert!(durable.0 <= advanced, "told of {durable} before the source advanced");
                told.durable = told.durable.max(durable);
            }
            Err(error) => told.error = Some(error.clone()),
        }
        drop(told);
        match outcome {
            Ok(durable) => self.answer(durable),
            Err(error) => self.refuse(error),
        }
        self.heard.notify_all();
    }

    fn answer(&self, durable: Lsn) {
        let advanced = self.durable.load(Ordering::SeqCst);
        assert!(durable.0 <= advanced, "answered up to {durable} before the source advanced");
        self.left.lock().answer(durable, &Ok(()));
        self.heard.notify_all();
    }

    fn refuse(&self, error: &LogError) {
        self.left.lock().answer(Lsn::MAX, &Err(error.clone()));
        self.heard.notify_all();
    }

    fn left(&self) -> Lsn {
        self.left.lock().waiting.last().copied().unwrap_or_default()
    }
}

impl Appender {
    /// Opens the stream.
    ///
    /// # Errors
    /// The store's.
    pub fn open(store: &dyn LogStore, epoch: WriterEpoch) -> Result<Appender, LogError> {
        let opened = store.open(epoch)?;
        let tail = opened.tail;
        let queue = Arc::new(Queue {
            waiting: Mutex::new(Waiting { first: tail.end, bytes: Vec::new(), hole: None }),
            is_taking: AtomicBool::new(false),
            durable: AtomicU64::new(tail.end.0),
            told: Mutex::default(),
            left: Mutex::default(),
            heard: Event::new(),
        });
        let writer = opened.start(Arc::clone(&queue) as Arc<dyn LogSource>);
        Ok(Appender { tail, writer, queue })
    }

    /// Appends whole groups and returns their end. Does not block.
    pub fn append(&self, groups: &[u8]) -> Lsn {
        let mut waiting = self.queue.waiting.lock();
        waiting.bytes.extend_from_slice(groups);
        waiting.end()
    }

    /// Bytes of appended groups that the store has not taken.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.waiting.lock().bytes.len()
    }

    /// Groups appended from now on count as incomplete until [`Appender::close_hole`].
    pub fn open_hole(&self) {
        let mut waiting = self.queue.waiting.lock();
        waiting.hole = Some(waiting.end());
    }

    /// Completes all groups.
    pub fn close_hole(&self) {
        self.queue.waiting.lock().hole = None;
    }

    /// Appends groups and waits until they are durable.
    ///
    /// # Errors
    /// The store's.
    pub fn commit(&self, groups: &[u8]) -> Result<Lsn, LogError> {
        let end = self.append(groups);
        self.wait(end).map(|()| end)
    }

    /// Waits until everything up to `lsn` is durable; tries again while the store is unavailable.
    ///
    /// # Errors
    /// The error that ended the writer.
    pub fn wait(&self, lsn: Lsn) -> Result<(), LogError> {
        loop {
            match self.writer.wait_durable(lsn) {
                Ok(()) => {
                    assert!(self.durable() >= lsn, "a wait ended before the source had advanced");
                    return Ok(());
                }
                Err(error) if error.ends_writer() => return Err(error),
                Err(LogError::Unavailable { .. }) => {}
                Err(error) => panic!("a wait ended with {error}"),
            }
        }
    }

    /// Leaves a commit that ends at `lsn` to the store, or waits until it is durable.
    ///
    /// # Errors
    /// The store's.
    pub fn leave(&self, lsn: Lsn) -> Result<(), LogError> {
        self.queue.left.lock().waiting.insert(lsn);
        let waited = self.writer.wait_or_leave(lsn);
        if let Ok(false) = waited {
            return Ok(());
        }
        self.queue.left.lock().answer(lsn, &waited.clone().map(drop));
        waited.map(drop)
    }

    /// Waits for the answer to a commit that has [left](Appender::leave).
    ///
    /// # Errors
    /// The store's.
    pub fn answer(&self, lsn: Lsn) -> Result<(), LogError> {
        let queue = &self.queue;
        let is_answered = || queue.left.lock().answers.contains_key(&lsn);
        assert!(queue.heard.wait_until(Some(LONG), is_answered), "{lsn} was never answered");
        queue.left.lock().answers[&lsn].clone()
    }

    /// The position that the source knows to be durable.
    pub fn durable(&self) -> Lsn {
        Lsn(self.queue.durable.load(Ordering::SeqCst))
    }

    /// Waits until the store's own task has reported that `lsn` is durable, or that nothing will
    /// be.
    ///
    /// # Errors
    /// The error that ended the writer.
    pub fn hear(&self, lsn: Lsn) -> Result<(), LogError> {
        let queue = &self.queue;
        let is_told = || {
            let told = queue.told.lock();
            told.durable >= lsn || told.error.is_some()
        };
        assert!(queue.heard.wait_until(Some(LONG), is_told), "{lsn} was never told");
        let told = queue.told.lock();
        if told.durable >= lsn { Ok(()) } else { Err(told.error.clone().expect("one of the two")) }
    }

    /// Waits for the store's last word.
    pub fn hear_end(&self) -> LogError {
        let queue = &self.queue;
        let has_ended = || queue.told.lock().error.is_some();
        assert!(queue.heard.wait_until(Some(LONG), has_ended), "the end was never told");
        queue.told.lock().error.clone().expect("it was awaited")
    }
}

/// The page that group `number` is about.
pub(super) fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number % 50))
}

/// A group with one record of `length` bytes.
pub(super) fn group(number: u32, length: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let pattern = number.to_le_bytes();
    builder.push(1, page(number), |body| body.extend(pattern.iter().cycle().take(length)));
    builder.finish().to_vec()
}

/// All that the store keeps.
pub(super) fn read_all(store: &dyn LogStore) -> Vec<u8> {
    let (mut bytes, mut position) = (Vec::new(), store.truncated_lsn());
    while position < store.durable_lsn() {
        let next = store.read(position, 10_000, &mut bytes).expect("kept log can be read");
        assert!(next > position, "a read stands still at {position}");
        position = next;
    }
    bytes
}
