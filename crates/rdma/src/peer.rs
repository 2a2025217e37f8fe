//! The peer's end. See [`crate`] for the rules.
//!
//! A thread that waits for a batch drives the port for a moment, and so sees the end of the batch
//! without a switch between threads. Later, and for batches that nobody waits for, a thread drives
//! it.
//!
//! Latch rules: the mutex of the engine is a leaf. It is held during calls of UCX, which do not
//! wait.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_base::random::RandomSource;
use firn_base::task::{Spawner, TaskHandle, monotonic};
use firn_fabric::batch::{Act, Answered, Completer, PendingBatch};
use firn_fabric::header::{HEADER_BYTES, Header, USED_WORDS};
use firn_fabric::{Answers, Batch, Completion, Epoch, FabricError, Peer, Region};
use parking_lot::Mutex;

use crate::message::{Connect, MAX_NAME_BYTES, Memory, OwnerAddress, ToOwner, ToPeer};
use crate::message::{decode, encode};
use crate::owner::unreachable;
use crate::settings::RdmaSettings;
use crate::ucx::{Access, EndpointId, KeyId, Port, UcxError};
use crate::wake::Waker;

/// How many batches of a peer are under way at a time.
const MOST_UNDER_WAY: usize = 4096;
/// How long a thread that waits drives the port itself.
const OWN_DRIVE: Duration = Duration::from_micros(100);
/// How often the thread looks at the port while batches are under way, and while none is.
const BUSY: Duration = Duration::from_millis(5);
const IDLE: Duration = Duration::from_millis(200);
/// How long a peer that takes leave waits until the owner has been told.
const FAREWELL: Duration = Duration::from_millis(20);
const WORD_BYTES: u64 = size_of::<u64>() as u64;

/// The regions of an owner in one epoch.
pub struct RdmaPeer {
    way: Arc<Way>,
    thread: Mutex<Option<Box<dyn TaskHandle>>>,
}

/// The way to an owner.
struct Way {
    epoch: Epoch,
    timeout: Duration,
    engine: Mutex<Engine>,
    /// Something of the engine has changed.
    changed: Event,
    waker: Waker,
    is_ending: AtomicBool,
}

/// What is under way.
struct Engine {
    port: Port,
    owner: EndpointId,
    epoch: Epoch,
    /// This peer, by a number drawn at random, and its address.
    number: u64,
    address: Vec<u8>,
    last_question: u64,
    /// The questions whose answer is awaited, and the answers.
    questions: HashMap<u64, Option<ToPeer>>,
    /// The first one is being done.
    jobs: VecDeque<Job>,
    /// Why nothing can be done any more (D5).
    failure: Option<FabricError>,
}

/// Memory at the owner.
#[derive(Debug, Clone, Copy)]
struct Place {
    key: KeyId,
    /// Of word 0.
    address: u64,
}

/// A batch, as a list of accesses to single words (D4).
struct Job {
    place: Place,
    acts: Vec<Act>,
    /// The act that is next, and the word of it.
    next: (usize, usize),
    answers: Vec<u64>,
    completer: Completer,
    /// Nobody wants it done any more if it has not begun.
    is_withdrawn: Arc<AtomicBool>,
}

impl Job {
    /// The next access, and whether its answer is wanted.
    fn access(&mut self) -> Option<(usize, Access)> {
        loop {
            let (act, word) = self.next;
            let access = match self.acts.get(act)? {
                Act::Read { start, length } if word < *length => (start + word, Access::Read),
                Act::Write { start, words } if word < words.len() => {
                    (start + word, Access::Write(words[word]))
                }
                Act::CompareAndSwap { word: at, expected, new } if word == 0 => {
                    (*at, Access::CompareAndSwap { expected: *expected, new: *new })
                }
                Act::FetchAdd { word: at, amount } if word == 0 => (*at, Access::FetchAdd(*amount)),
                _ => {
                    self.next = (act + 1, 0);
                    continue;
                }
            };
            return Some(access);
        }
    }

    fn has_begun(&self) -> bool {
        self.next != (0, 0)
    }

    /// The access has been done, and has found this.
    fn take(&mut self, found: u64) {
        let (act, word) = self.next;
        if !matches!(self.acts[act], Act::Write { .. }) {
            self.answers.push(found);
        }
        self.next = (act, word + 1);
    }
}

fn owner_name(epoch: Epoch) -> String {
    format!("RDMA, epoch {epoch}")
}

impl RdmaPeer {
    /// Reaches the regions of an owner. Does not wait for it.
    ///
    /// # Errors
    /// [`FabricError::Unreachable`] if none of the transports can be used.
    pub fn new(
        owner: &OwnerAddress,
        settings: &RdmaSettings,
        spawner: &dyn Spawner,
        random: &dyn RandomSource,
    ) -> Result<RdmaPeer, FabricError> {
        let (epoch, timeout) = (Epoch(owner.epoch), settings.timeout);
        let failed = |error: UcxError| unreachable(&owner_name(epoch), &error);
        let mut port = Port::open(settings.transports()).map_err(failed)?;
        let address = port.address().map_err(failed)?;
        let waker = Waker::new(&mut port).map_err(failed)?;
        let endpoint = port.connect(&owner.worker).map_err(failed)?;
        let engine = Engine {
            port,
            owner: endpoint,
            epoch,
            number: random.next_u64(),
            address,
            last_question: 0,
            questions: HashMap::new(),
            jobs: VecDeque::new(),
            failure: None,
        };
        let way = Arc::new(Way {
            epoch,
            timeout,
            engine: Mutex::new(engine),
            changed: Event::new(),
            waker,
            is_ending: AtomicBool::new(false),
        });
        let driven = Arc::clone(&way);
        let thread = spawner.spawn("rdma-peer", Box::new(move || driven.run()));
        Ok(RdmaPeer { way, thread: Mutex::new(Some(thread)) })
    }
}

impl Drop for RdmaPeer {
    /// The regions that were connected are refused from now on.
    fn drop(&mut self) {
        self.way.is_ending.store(true, Ordering::SeqCst);
        self.way.waker.wake();
        if let Some(thread) = self.thread.get_mut().take() {
            thread.join();
        }
        self.way.engine.lock().take_leave();
    }
}

impl Peer for RdmaPeer {
    fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError> {
        let way = &self.way;
        if name.len() > MAX_NAME_BYTES {
            return Err(FabricError::Unknown(name.to_owned()));
        }
        let began = monotonic();
        let memory = match way.ask(name)? {
            ToPeer::Region(memory) => memory,
            ToPeer::Unknown { .. } => return Err(FabricError::Unknown(name.to_owned())),
            ToPeer::Stale { .. } | ToPeer::Ended { .. } => {
                return Err(FabricError::Stale { epoch: way.epoch });
            }
        };
        let left = way.timeout.saturating_sub(monotonic().saturating_sub(began));
        let (place, length_words) = way.checked(&memory, left)?;
        Ok(Arc::new(RdmaRegion { way: Arc::clone(way), place, length_words }))
    }
}

impl Way {
    /// Drives the port until the peer is dropped.
    fn run(&self) {
        while !self.is_ending.load(Ordering::SeqCst) {
            let timeout = {
                let mut engine = self.engine.lock();
                if engine.step() {
                    drop(engine);
                    self.changed.notify_all();
                    continue;
                }
                if !engine.port.arm() {
                    continue;
                }
                if engine.is_busy() { BUSY } else { IDLE }
            };
            self.waker.wait(timeout);
        }
    }

    /// Drives the port for a moment, unless another thread does, until this holds.
    fn drive(&self, is_over: &dyn Fn() -> bool) {
        let until = monotonic().saturating_add(OWN_DRIVE);
        while !is_over() && monotonic() < until {
            self.step();
            std::hint::spin_loop();
        }
    }

    /// Goes on with what is under way, unless another thread does.
    fn step(&self) {
        if let Some(mut engine) = self.engine.try_lock()
            && engine.step()
        {
            drop(engine);
            self.changed.notify_all();
        }
    }

    /// Asks the owner for a region's memory. Blocks for a round trip.
    fn ask(&self, name: &str) -> Result<ToPeer, FabricError> {
        let question = self.engine.lock().ask(name)?;
        self.waker.wake();
        let is_answered = || {
            let engine = self.engine.lock();
            engine.failure.is_some() || engine.questions[&question].is_some()
        };
        self.changed.wait_until(Some(self.timeout), is_answered);
        let mut engine = self.engine.lock();
        match (engine.questions.remove(&question).flatten(), &engine.failure) {
            (Some(answer), _) => Ok(answer),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => Err(FabricError::TimedOut { timeout: self.timeout }),
        }
    }

    /// Reads the header of the memory (D2). Returns where word 0 is, and how many words there are.
    fn checked(
        self: &Arc<Way>,
        memory: &Memory,
        timeout: Duration,
    ) -> Result<(Place, usize), FabricError> {
        let key = self.engine.lock().take_key(&memory.key)?;
        let header = Place { key, address: memory.address };
        let mut batch = Batch::new();
        let words = batch.read(0, USED_WORDS);
        let answers = self.submit(header, batch).wait(timeout)?;
        let words = answers.words(words).try_into().expect("the batch has read them");
        let incompatible =
            |reason: String| FabricError::Incompatible { owner: owner_name(self.epoch), reason };
        let found = Header::parse(words).map_err(|error| incompatible(error.to_string()))?;
        if found.epoch != self.epoch || found.has_ended {
            return Err(FabricError::Stale { epoch: self.epoch });
        }
        let length = usize::try_from(found.length_words).ok();
        match length.filter(|_| found.length_words == memory.length_words) {
            Some(length) => {
                let address = memory.address + HEADER_BYTES as u64;
                Ok((Place { key, address }, length))
            }
            None => Err(incompatible("the memory's length is not what its owner said".to_owned())),
        }
    }

    /// Submits a batch whose bounds have been checked.
    fn submit(self: &Arc<Way>, place: Place, batch: Batch) -> Completion {
        let has_room = || {
            let engine = self.engine.lock();
            engine.failure.is_some() || engine.jobs.len() < MOST_UNDER_WAY
        };
        if !self.changed.wait_until(Some(self.timeout), has_room) {
            return Completion::ready(Err(FabricError::TimedOut { timeout: self.timeout }));
        }
        let (completion, completer) = Completion::pending();
        let is_withdrawn = Arc::new(AtomicBool::new(false));
        let answers = Vec::with_capacity(batch.answer_words());
        let job = Job {
            place,
            acts: batch.into_acts(),
            next: (0, 0),
            answers,
            completer,
            is_withdrawn: Arc::clone(&is_withdrawn),
        };
        let mut engine = self.engine.lock();
        if let Some(failure) = &engine.failure {
            return Completion::ready(Err(failure.clone()));
        }
        engine.jobs.push_back(job);
        engine.step();
        drop(engine);
        let way = Arc::clone(self);
        Completion::of(Box::new(RdmaBatch { way, completion: Some(completion), is_withdrawn }))
    }
}

impl Engine {
    /// Nothing is done any more (D5).
    fn fail(&mut self, failure: FabricError) {
        self.port.close(self.owner);
        let failure = self.failure.get_or_insert(failure).clone();
        for job in self.jobs.drain(..) {
            job.completer.complete(Err(failure.clone()));
        }
    }

    fn fail_by(&mut self, error: &UcxError) {
        self.fail(unreachable(&owner_name(self.epoch), error));
    }

    fn is_busy(&self) -> bool {
        !self.jobs.is_empty() || !self.questions.is_empty()
    }

    /// Goes on with what is under way. True if anything has changed.
    fn step(&mut self) -> bool {
        let mut has_changed = self.port.progress();
        while let Some(message) = self.port.received() {
            has_changed = true;
            self.hear(&message);
        }
        if self.failure.is_none()
            && let Some(error) = self.port.failure(self.owner)
        {
            self.fail_by(&error);
            return true;
        }
        if let Some(ended) = self.port.ended() {
            has_changed = true;
            match (ended, self.jobs.front_mut()) {
                (Ok(found), Some(job)) => job.take(found),
                (Err(error), _) => self.fail_by(&error),
                // The batch has failed meanwhile.
                (Ok(_), None) => {}
            }
        }
        while !self.port.is_busy() && self.begin_next() {
            has_changed = true;
        }
        has_changed
    }

    /// Begins the next access, or completes the batch. False if there is neither.
    fn begin_next(&mut self) -> bool {
        let Some(job) = self.jobs.front_mut() else { return false };
        let is_withdrawn = !job.has_begun() && job.is_withdrawn.load(Ordering::SeqCst);
        let access = if is_withdrawn { None } else { job.access() };
        let Some((word, access)) = access else {
            let job = self.jobs.pop_front().expect("there is one");
            job.completer.complete(Ok(Answers::new(job.answers)));
            return true;
        };
        let address = job.place.address + word as u64 * WORD_BYTES;
        if let Err(error) = self.port.begin(self.owner, job.place.key, address, access) {
            self.fail_by(&error);
        }
        true
    }

    fn hear(&mut self, message: &[u8]) {
        let answer = match decode(message) {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(%error, "a message about RDMA was not understood");
                return;
            }
        };
        let question = match &answer {
            ToPeer::Ended { epoch } if *epoch == self.epoch.0 => {
                self.fail(FabricError::Stale { epoch: self.epoch });
                return;
            }
            ToPeer::Ended { .. } => return,
            ToPeer::Region(Memory { epoch, .. }) if *epoch != self.epoch.0 => return,
            ToPeer::Region(Memory { question, .. })
            | ToPeer::Unknown { question, .. }
            | ToPeer::Stale { question, .. } => *question,
        };
        if let Some(place) = self.questions.get_mut(&question) {
            *place = Some(answer);
        }
    }

    fn ask(&mut self, name: &str) -> Result<u64, FabricError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.last_question += 1;
        let question = self.last_question;
        let ask = ToOwner::Connect(Connect {
            epoch: self.epoch.0,
            peer: self.number,
            question,
            worker: self.address.clone(),
            name: name.to_owned(),
        });
        let sent = self.port.send(self.owner, encode(&ask));
        sent.map_err(|error| unreachable(&owner_name(self.epoch), &error))?;
        self.questions.insert(question, None);
        Ok(question)
    }

    fn take_key(&mut self, key: &[u8]) -> Result<KeyId, FabricError> {
        let taken = self.port.take_key(self.owner, key);
        taken.map_err(|error| unreachable(&owner_name(self.epoch), &error))
    }

    /// Tells the owner that this peer asks no more, and refuses what follows.
    fn take_leave(&mut self) {
        if self.failure.is_none() {
            let leave = ToOwner::Leave { epoch: self.epoch.0, peer: self.number };
            let sent = self.port.send(self.owner, encode(&leave));
            let until = monotonic().saturating_add(FAREWELL);
            while sent.is_ok() && self.port.is_sending() && monotonic() < until {
                self.port.progress();
            }
        }
        self.fail(unreachable(&owner_name(self.epoch), &"this process has ended the connection"));
    }
}

/// A region of an owner.
struct RdmaRegion {
    way: Arc<Way>,
    place: Place,
    length_words: usize,
}

impl Region for RdmaRegion {
    fn length_words(&self) -> usize {
        self.length_words
    }

    fn epoch(&self) -> Epoch {
        self.way.epoch
    }

    fn is_at_hand(&self) -> bool {
        false
    }

    fn timeout(&self) -> Duration {
        self.way.timeout
    }

    fn submit(&self, batch: Batch) -> Completion {
        if let Err(error) = batch.check_bounds(self.length_words) {
            return Completion::ready(Err(error));
        }
        self.way.submit(self.place, batch)
    }
}

/// A batch that was submitted.
struct RdmaBatch {
    way: Arc<Way>,
    /// The caller that waits takes it.
    completion: Option<Completion>,
    is_withdrawn: Arc<AtomicBool>,
}

impl RdmaBatch {
    fn has_ended(&self) -> bool {
        self.completion.as_ref().is_none_or(Completion::is_done)
    }
}

impl PendingBatch for RdmaBatch {
    fn is_done(&self) -> bool {
        if !self.has_ended() {
            self.way.step();
        }
        self.has_ended()
    }

    fn wait(mut self: Box<Self>, timeout: Duration) -> Answered {
        let began = monotonic();
        self.way.drive(&|| self.has_ended());
        let Some(completion) = self.completion.take() else {
            return Err(FabricError::TimedOut { timeout });
        };
        if !completion.is_done() {
            self.way.waker.wake();
        }
        let left = timeout.saturating_sub(monotonic().saturating_sub(began));
        let answered = completion.wait(left);
        match answered {
            Err(FabricError::TimedOut { .. }) => {
                self.is_withdrawn.store(true, Ordering::SeqCst);
                Err(FabricError::TimedOut { timeout })
            }
            answered => answered,
        }
    }
}

impl Drop for RdmaBatch {
    fn drop(&mut self) {
        // Nobody waits for it: the thread goes on with it.
        if self.completion.is_some() {
            self.way.waker.wake();
        }
    }
}
