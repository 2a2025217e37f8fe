//! The peer's end. See [`crate`] for the rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_base::random::RandomSource;
use firn_base::task::monotonic;
use firn_fabric::batch::{Answered, PendingBatch};
use firn_fabric::{Answers, Batch, Completion, Epoch, FabricError, Peer, Region};
use firn_link::{Call, CallError, Caller, Next, Payload};

use crate::REGION_SERVICE;
use crate::message::{Answer, Ask, Change, MAX_NAME_BYTES, MOST_WORDS, Run, decode, encode, sent};
use crate::server::REFUSED_DAMAGED;

/// The owner of regions at the other end of a link, in one epoch.
pub struct RemotePeer {
    way: Arc<Way>,
}

/// The way to an owner.
struct Way {
    caller: Arc<Caller>,
    epoch: Epoch,
    timeout: Duration,
    /// This peer, by a number drawn at random.
    peer: u64,
    numbers: Numbers,
    under_way: UnderWay,
}

/// Batches that were submitted, and may not have been run yet (R3).
#[derive(Default)]
struct UnderWay {
    count: AtomicUsize,
    /// Those whose end nobody waits for any more, or is not known. One that is sent later and done
    /// says that they are over: what the owner has not run then, it refuses (R2).
    left: AtomicUsize,
}

struct RemoteRegion {
    way: Arc<Way>,
    number: u32,
    length_words: usize,
}

/// Numbers changing batches, and sends one after the other (R2).
#[derive(Default)]
struct Numbers {
    is_taken: AtomicBool,
    last: AtomicU64,
    free: Event,
}

/// The right to send the next changing batch.
struct Turn<'a>(&'a Numbers);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::SeqCst);
        self.0.free.notify_one();
    }
}

impl Numbers {
    /// Waits until no other thread sends; `None` after the timeout.
    fn turn(&self, timeout: Duration) -> Option<Turn<'_>> {
        let take = || !self.is_taken.swap(true, Ordering::SeqCst);
        self.free.wait_until(Some(timeout), take).then(|| Turn(self))
    }
}

impl Turn<'_> {
    fn next(&self) -> u64 {
        self.0.last.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl RemotePeer {
    /// Reaches the regions of an owner in this epoch. Batches take `timeout` at most. Does not wait
    /// for the owner.
    #[must_use]
    pub fn new(
        caller: Arc<Caller>,
        epoch: Epoch,
        timeout: Duration,
        random: &dyn RandomSource,
    ) -> RemotePeer {
        let (numbers, under_way) = (Numbers::default(), UnderWay::default());
        let peer = random.next_u64();
        RemotePeer { way: Arc::new(Way { caller, epoch, timeout, peer, numbers, under_way }) }
    }
}

impl RemotePeer {
    /// Where the owner's memory is reached without messages; `None` if it is not, or if the owner
    /// is of an earlier release. Blocks for a round trip.
    ///
    /// # Errors
    /// [`FabricError::Stale`], [`FabricError::Unreachable`], [`FabricError::TimedOut`].
    pub fn memory_address(&self) -> Result<Option<Vec<u8>>, FabricError> {
        let (way, began) = (&self.way, monotonic());
        let ask = Ask::MemoryAddress { epoch: way.epoch.0 };
        let reply = way.caller.call(REGION_SERVICE, encode(&ask), way.timeout);
        if let Err(CallError::Refused { refused, .. }) = &reply
            && refused.code == REFUSED_DAMAGED
        {
            return Ok(None);
        }
        match way.answer(reply, began, way.timeout)? {
            Answer::MemoryAddress(address) => Ok(Some(address)),
            Answer::Unknown => Ok(None),
            answer => Err(way.refusal(answer)),
        }
    }
}

impl Peer for RemotePeer {
    fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError> {
        let way = &self.way;
        if name.len() > MAX_NAME_BYTES {
            return Err(FabricError::Unknown(name.to_owned()));
        }
        let ask = Ask::Connect { epoch: way.epoch.0, peer: way.peer, name: name.to_owned() };
        let began = monotonic();
        let reply = way.caller.call(REGION_SERVICE, encode(&ask), way.timeout);
        match way.answer(reply, began, way.timeout)? {
            Answer::Region { region: number, length_words } => Ok(Arc::new(RemoteRegion {
                way: Arc::clone(way),
                number,
                length_words: usize::try_from(length_words).unwrap_or(usize::MAX),
            })),
            Answer::Unknown => Err(FabricError::Unknown(name.to_owned())),
            answer => Err(way.refusal(answer)),
        }
    }
}

impl Way {
    /// What a reply says to a request that was sent at `began`, and was waited for `timeout` at
    /// most.
    fn answer(
        &self,
        reply: Result<Payload, CallError>,
        began: Duration,
        timeout: Duration,
    ) -> Result<Answer, FabricError> {
        let reply = reply.map_err(|error| match error {
            CallError::Unknown { .. } if monotonic().saturating_sub(began) >= timeout => {
                FabricError::TimedOut { timeout }
            }
            error => self.unreachable(&error),
        })?;
        decode(&reply).map_err(|damage| self.incompatible(&damage))
    }

    fn name(&self) -> String {
        self.caller.peer().map_or_else(|| "another node".to_owned(), |peer| peer.to_string())
    }

    fn unreachable(&self, reason: &dyn std::fmt::Display) -> FabricError {
        FabricError::Unreachable { owner: self.name(), reason: reason.to_string() }
    }

    fn incompatible(&self, reason: &dyn std::fmt::Display) -> FabricError {
        FabricError::Incompatible { owner: self.name(), reason: reason.to_string() }
    }

    /// The error of an answer that gives nothing.
    fn refusal(&self, answer: Answer) -> FabricError {
        let place = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        match answer {
            Answer::Stale => FabricError::Stale { epoch: self.epoch },
            Answer::OutOfBounds { start, end, length } => FabricError::OutOfBounds {
                start: place(start),
                end: place(end),
                length: place(length),
            },
            Answer::Superseded => self.unreachable(&"a later batch has overtaken this one"),
            Answer::TooLarge => too_large(),
            Answer::Unknown
            | Answer::Region { .. }
            | Answer::Words(_)
            | Answer::MemoryAddress(_) => {
                self.incompatible(&"it answered something else than what was asked")
            }
        }
    }

    fn words(&self, answer: Answer, wanted: usize) -> Answered {
        match answer {
            Answer::Words(words) if words.len() == wanted => Ok(Answers::new(words)),
            answer => Err(self.refusal(answer)),
        }
    }
}

fn too_large() -> FabricError {
    FabricError::TooLarge { most: MOST_WORDS }
}

impl RemoteRegion {
    /// Finds out without the owner what cannot be done.
    fn check(&self, batch: &Batch) -> Result<(), FabricError> {
        batch.check_bounds(self.length_words)?;
        match batch.carried_words() > MOST_WORDS {
            true => Err(too_large()),
            false => Ok(()),
        }
    }

    fn request(&self, batch: &Batch, change: Option<u64>) -> Vec<u8> {
        let (way, acts) = (&self.way, sent(batch));
        let change = change.map(|number| Change { peer: way.peer, number });
        encode(&Ask::Run(Run { epoch: way.epoch.0, region: self.number, change, acts }))
    }

    fn send(&self, batch: &Batch) -> Result<Call, FabricError> {
        let way = &self.way;
        let timed_out = || FabricError::TimedOut { timeout: way.timeout };
        let turn = match batch.changes() {
            true => Some(way.numbers.turn(way.timeout).ok_or_else(timed_out)?),
            false => None,
        };
        let request = self.request(batch, turn.as_ref().map(Turn::next));
        let begun = way.caller.begin(REGION_SERVICE, request, way.timeout);
        begun.map_err(|error| way.unreachable(&error))
    }

    /// Runs a batch that only reads on a connection of its own.
    fn exchange(&self, batch: &Batch) -> Result<Answers, FabricError> {
        let (way, began) = (&self.way, monotonic());
        let request = self.request(batch, None);
        let begun = way.caller.exchange(REGION_SERVICE, request, 1, way.timeout);
        let next = begun.and_then(|exchange| exchange.next(Some(way.timeout)));
        let reply = match next {
            Ok(Next::End(reply)) => Ok(reply),
            Ok(Next::Nothing) => return Err(FabricError::TimedOut { timeout: way.timeout }),
            Ok(Next::Message(_)) => return Err(way.incompatible(&"it answers by a stream")),
            Err(error) => Err(error),
        };
        way.words(way.answer(reply, began, way.timeout)?, batch.answer_words())
    }
}

impl Region for RemoteRegion {
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
        let began = monotonic();
        if let Err(error) = self.check(&batch) {
            return Completion::ready(Err(error));
        }
        // Before it is sent: R3.
        let mut counted = Counted::begin(&self.way);
        match self.send(&batch) {
            Ok(call) => Completion::of(Box::new(RemoteBatch {
                answer_words: batch.answer_words(),
                counted,
                call,
                began,
            })),
            Err(error) => {
                counted.is_over = true;
                Completion::ready(Err(error))
            }
        }
    }

    fn run(&self, batch: Batch) -> Result<Answers, FabricError> {
        let under_way = &self.way.under_way;
        if !batch.changes() && under_way.count.load(Ordering::SeqCst) == 0 {
            self.check(&batch)?;
            return self.exchange(&batch);
        }
        let left = under_way.left.swap(0, Ordering::SeqCst);
        let answered = self.submit(batch).wait(self.timeout());
        match answered {
            Ok(_) => under_way.count.fetch_sub(left, Ordering::SeqCst),
            Err(_) => under_way.left.fetch_add(left, Ordering::SeqCst),
        };
        answered
    }
}

/// A batch that was sent.
struct RemoteBatch {
    call: Call,
    answer_words: usize,
    began: Duration,
    counted: Counted,
}

/// A batch among those that are under way.
struct Counted {
    way: Arc<Way>,
    /// Whether the owner has answered, or never will see the batch.
    is_over: bool,
}

impl Counted {
    fn begin(way: &Arc<Way>) -> Counted {
        way.under_way.count.fetch_add(1, Ordering::SeqCst);
        Counted { way: Arc::clone(way), is_over: false }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let under_way = &self.way.under_way;
        match self.is_over {
            true => under_way.count.fetch_sub(1, Ordering::SeqCst),
            false => under_way.left.fetch_add(1, Ordering::SeqCst),
        };
    }
}

impl PendingBatch for RemoteBatch {
    fn is_done(&self) -> bool {
        self.call.is_answered()
    }

    fn wait(self: Box<Self>, timeout: Duration) -> Answered {
        let RemoteBatch { call, answer_words, began, mut counted } = *self;
        let reply = call.wait_for(timeout);
        counted.is_over = reply.is_ok();
        let way = &counted.way;
        way.words(way.answer(reply, began, timeout.min(way.timeout))?, answer_words)
    }
}
