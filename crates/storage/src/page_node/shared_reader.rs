//! One reader of the log for all chunks of a node that are about as far.
//!
//! ```text
//!   log store ── one stream: what one of them wants ──► SharedReader ─┬─► chunk 3
//!                                                                     ├─► chunk 8
//!                                                                     └─► chunk 9
//!             ── a stream of its own, until it is near the end ─────────► chunk 14
//! ```
//!
//! The stream brings what passes the filter of one of the chunks. It is decoded once, and each
//! record goes to the chunk that has its page; to both while a chunk is cut in two.
//!
//! A chunk begins with its own stream. Near the end of the log it joins: it closes its stream and
//! gets the log from here. It *parts* when its memory is full, when it is closed, and when the
//! shared stream fails. Then it goes on by itself from where it is, and joins again later.
//!
//! Rules:
//!
//! 1. The log is held by the chunks: each has a lease from what it needs on, whether it has joined
//!    or not, so one chunk that is late is dropped alone. The lease of the shared stream holds
//!    nothing that no chunk holds.
//! 2. A chunk that joins has its log from its position on: the stream is opened again from there if
//!    it is further, with the records that the chunk wants. The others skip what they have.
//! 3. The mutex is held while log is given out: who has parted gets nothing more. The mutexes of
//!    the chunks' received log and of their page stores are taken under it, never the other way
//!    round.

mod routes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::{FollowOptions, Followed, LogError, LogPiece, LogStore, PageFilter};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use parking_lot::Mutex;

use self::routes::Routes;
use super::records::Records;

/// How much log is asked for at once.
const PIECE_BYTES: usize = 1 << 20;
/// How far from the end of the log, and from the stream, a chunk may be that joins, in bytes. The
/// stream may go back by as much.
const NEAR_BYTES: u64 = 1 << 20;
/// How long the task waits for log before it looks around.
const TICK: Duration = Duration::from_millis(100);
/// How long chunks follow by themselves after the shared stream has failed. Doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The most that it is doubled.
const MOST_DOUBLINGS: u32 = 6;

/// A chunk's end of the shared stream.
pub(super) trait Taker: Send + Sync {
    /// The end of the log that the chunk has.
    fn position(&self) -> Lsn;

    /// Takes the records from the chunk's position to `to`. False if the chunk has no room for
    /// more: it has parted.
    fn take(&self, to: Lsn, records: Records) -> bool;

    /// The chunk gets nothing more.
    fn part(&self);
}

/// Names a chunk that has joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemberNumber(u64);

/// What a shared reader tells of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedReaderStatus {
    /// Chunks that have joined.
    pub chunks: usize,
    /// The end of what was given out.
    pub position: Lsn,
    /// Bytes of log that were received since the reader began.
    pub received_bytes: u64,
}

/// See the module's page.
pub struct SharedReader {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

struct Shared {
    environment: Environment,
    store: Arc<dyn LogStore>,
    name: String,
    state: Mutex<State>,
    /// Notified when chunks join, and at the end.
    changed: Event,
    is_closing: AtomicBool,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    /// Which members have which pages.
    routes: Routes,
    next_number: u64,
    /// Counts what the stream must be opened again for.
    version: u64,
    /// From where the stream goes on.
    position: Lsn,
    /// Nobody joins before.
    not_before: Duration,
    /// How many times the stream has failed since it last brought something.
    failures: u32,
    received_bytes: u64,
}

struct Member {
    number: MemberNumber,
    filter: PageFilter,
    hold_limit_bytes: u64,
    taker: Arc<dyn Taker>,
}

/// What a stream is opened for.
struct Wanted {
    version: u64,
    from: Lsn,
    pages: PageFilter,
    hold_limit_bytes: u64,
}

impl SharedReader {
    /// A reader of `store`, named in listings of its readers. It reads once a chunk has joined.
    #[must_use]
    pub fn start(
        environment: &Environment,
        store: Arc<dyn LogStore>,
        name: &str,
    ) -> Arc<SharedReader> {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            store,
            name: name.to_owned(),
            state: Mutex::default(),
            changed: Event::new(),
            is_closing: AtomicBool::new(false),
        });
        let of_task = Arc::clone(&shared);
        let task = environment.spawner.spawn("firn-page-log", Box::new(move || of_task.run()));
        Arc::new(SharedReader { shared, task: Mutex::new(Some(task)) })
    }

    /// The log that it reads.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn LogStore> {
        &self.shared.store
    }

    /// The reader's state. Does not block for I/O.
    #[must_use]
    pub fn status(&self) -> SharedReaderStatus {
        let state = self.shared.state.lock();
        SharedReaderStatus {
            chunks: state.members.len(),
            position: state.position,
            received_bytes: state.received_bytes,
        }
    }

    /// Stops reading: all chunks follow by themselves. Blocks until the task has ended.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.state.lock().part_all();
        self.shared.changed.notify_all();
        let task = self.task.lock().take();
        if task.is_some_and(|task| !task.join()) {
            tracing::error!("the task that reads log for all chunks ended with a panic");
        }
    }

    /// A chunk gets its log from here, from its position on, if that is near. The chunk holds that
    /// log.
    pub(super) fn join(
        &self,
        filter: &PageFilter,
        hold_limit_bytes: u64,
        taker: &Arc<dyn Taker>,
    ) -> Option<MemberNumber> {
        let position = taker.position();
        let (durable, now) = (self.shared.store.durable_lsn(), self.shared.now());
        let mut state = self.shared.state.lock();
        if self.shared.is_closing() || now < state.not_before || !state.is_near(position, durable) {
            return None;
        }
        let number = MemberNumber(state.next_number);
        state.next_number += 1;
        state.position = match state.members.is_empty() {
            true => position,
            false => position.min(state.position),
        };
        let (filter, taker) = (filter.clone(), Arc::clone(taker));
        state.members.push(Member { number, filter, hold_limit_bytes, taker });
        state.reroute();
        state.version += 1;
        drop(state);
        self.shared.changed.notify_all();
        Some(number)
    }

    /// The chunk gets nothing more, and does not want what only it wanted.
    pub(super) fn leave(&self, number: MemberNumber) {
        let mut state = self.shared.state.lock();
        let before = state.members.len();
        state.members.retain(|member| member.number != number);
        if state.members.len() < before {
            state.reroute();
            state.version += 1;
        }
    }
}

impl Drop for SharedReader {
    /// Nobody has joined: a chunk that has keeps the reader. The task may be the one that drops it,
    /// so nobody waits for it.
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.changed.notify_all();
    }
}

impl State {
    /// Whether a chunk at this position costs little.
    fn is_near(&self, position: Lsn, durable: Lsn) -> bool {
        let is_near_stream =
            self.members.is_empty() || position.0.abs_diff(self.position.0) <= NEAR_BYTES;
        is_near_stream && position.0.saturating_add(NEAR_BYTES) >= durable.0
    }

    fn reroute(&mut self) {
        self.routes = Routes::new(self.members.iter().map(|member| &member.filter));
    }

    fn part_all(&mut self) {
        self.members.drain(..).for_each(|member| member.taker.part());
        self.reroute();
        self.version += 1;
    }

    /// Gives each chunk what is new to it.
    fn give_out(&mut self, piece: &LogPiece) -> Result<(), LogError> {
        let positions: Vec<Lsn> = self.members.iter().map(|one| one.taker.position()).collect();
        let parts = Records::split(piece, &positions, |page| self.routes.find(page))?;
        let before = self.members.len();
        let mut parts = parts.into_iter().zip(positions);
        self.members.retain(|member| {
            let (records, position) = parts.next().expect("each chunk has a part");
            position >= piece.to || member.taker.take(piece.to, records)
        });
        // The stream brings what the others want, and stays.
        if self.members.len() < before {
            self.reroute();
        }
        self.position = piece.to;
        self.received_bytes += piece.bytes().len() as u64;
        Ok(())
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    fn run(&self) {
        loop {
            let mut wanted = None;
            self.changed.wait_until(None, || {
                wanted = self.wanted();
                wanted.is_some() || self.is_closing()
            });
            let Some(wanted) = wanted.filter(|_| !self.is_closing()) else { return };
            if let Err(error) = self.follow(&wanted) {
                self.give_up(&error);
            }
        }
    }

    /// What the stream must bring; `None` if nobody wants anything.
    fn wanted(&self) -> Option<Wanted> {
        let state = self.state.lock();
        let hold_limit_bytes = state.members.iter().map(|one| one.hold_limit_bytes).max()?;
        Some(Wanted {
            version: state.version,
            from: state.position,
            pages: PageFilter::union(state.members.iter().map(|member| &member.filter)),
            hold_limit_bytes,
        })
    }

    fn is_wanted(&self, version: u64) -> bool {
        let state = self.state.lock();
        state.version == version && !state.members.is_empty() && !self.is_closing()
    }

    /// Gives out a stream until something else is wanted.
    fn follow(&self, wanted: &Wanted) -> Result<(), LogError> {
        let mut follower = self.store.follow(FollowOptions {
            name: self.name.clone(),
            from: wanted.from,
            until: None,
            pages: wanted.pages.clone(),
            hold_limit_bytes: wanted.hold_limit_bytes,
        })?;
        while self.is_wanted(wanted.version) {
            match follower.next(PIECE_BYTES, TICK)? {
                Followed::Piece(piece) => {
                    self.give_out(wanted.version, &piece)?;
                    follower.release(piece.to);
                }
                Followed::Nothing => {}
                Followed::End => {
                    let reason = "it was closed where it is kept".to_owned();
                    return Err(LogError::Unavailable { reason });
                }
            }
        }
        Ok(())
    }

    /// Gives out a piece, unless it may lack what a new chunk wants.
    fn give_out(&self, version: u64, piece: &LogPiece) -> Result<(), LogError> {
        let mut state = self.state.lock();
        if state.version == version {
            state.failures = 0;
            state.give_out(piece)?;
        }
        Ok(())
    }

    /// All chunks follow by themselves, and find out what is wrong, if it is not this reader alone.
    fn give_up(&self, error: &LogError) {
        if !self.is_closing() {
            tracing::info!(%error, "each chunk of pages follows the log by itself for a while");
        }
        let now = self.now();
        let mut state = self.state.lock();
        state.not_before = now + FIRST_PAUSE * (1 << state.failures.min(MOST_DOUBLINGS));
        state.failures += 1;
        state.part_all();
    }
}
