//! The reading end: a [`LogStore`] over the members of a group, which cannot be written.
//!
//! ```text
//!   RemoteLog ─┬─ task log-renew, one for each member: renews leases, learns positions
//!              ├─ read: one member after the other, until one has the log
//!              └─ RemoteFollower: a stream from one member; from another one when it fails
//! ```
//!
//! Latch rule: the mutex of the state is a leaf. It is not held across a call, a wait or a
//! notification.

mod follower;
mod members;
mod options;
mod reading;
mod renewing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{FollowOptions, LogError, LogFollower, LogStore, OpenedLog, WriterEpoch};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use firn_link::{CallError, Caller};
use parking_lot::Mutex;

use self::follower::RemoteFollower;
use self::members::{Members, ReaderId, Standing};
pub use self::options::RemoteLogOptions;
use crate::LOG_SERVICE;
use crate::message::{HeldReader, MAX_NAME_BYTES, Positions, Reply, Request};

/// A log whose members are elsewhere, and may be others later. Several may share the links.
/// Dropping it lets go of its readers, without waiting.
pub struct RemoteLog {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

struct Shared {
    environment: Environment,
    options: RemoteLogOptions,
    /// Names this client to the members.
    client: u64,
    /// The highest durable position that a member has named (rule L2).
    durable: AtomicU64,
    state: Mutex<State>,
    /// Notified when a member has answered or failed, and at the end.
    changed: Event,
    /// Notified when leases should be renewed at once.
    wanted: Event,
    renewals_wanted: AtomicU64,
    is_closed: AtomicBool,
}

struct State {
    members: Members,
    /// The link to each of them.
    callers: Vec<Arc<Caller>>,
    readers: BTreeMap<ReaderId, HeldReader>,
    next_reader: ReaderId,
    /// What each reader that stays holds, as far as it and the members know. A registration is at
    /// a majority, so each majority has a member that knows it; the highest one that is known was
    /// let go up to there.
    registered: BTreeMap<String, Lsn>,
}

impl RemoteLog {
    /// A client of the members behind `callers`, which are all members of the group. Blocks until a
    /// majority has said what it has.
    ///
    /// # Errors
    /// [`LogError::Unavailable`] if they do not answer in time.
    ///
    /// # Panics
    /// If there are no members.
    pub fn open(
        environment: &Environment,
        callers: Vec<Arc<Caller>>,
        options: RemoteLogOptions,
    ) -> Result<Arc<RemoteLog>, LogError> {
        assert!(!callers.is_empty(), "a log has members");
        let members = Members::new(callers.len());
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            client: environment.random.next_u64(),
            options,
            durable: AtomicU64::new(0),
            state: Mutex::new(State {
                members,
                callers,
                readers: BTreeMap::new(),
                next_reader: 0,
                registered: BTreeMap::new(),
            }),
            changed: Event::new(),
            wanted: Event::new(),
            renewals_wanted: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        });
        let log = Arc::new(RemoteLog { shared, tasks: Mutex::default() });
        let places = log.shared.state.lock().members.places();
        places.into_iter().for_each(|place| log.start_renewing(place));
        log.shared.wait_for_majority()?;
        Ok(log)
    }

    fn start_renewing(&self, place: usize) {
        let of_task = Arc::clone(&self.shared);
        let body = Box::new(move || of_task.renew(place));
        let task = self.shared.environment.spawner.spawn("log-renew", body);
        self.tasks.lock().push(task);
    }

    /// The members of the group are those behind `callers` from now on. What readers hold is held
    /// at a newcomer once it has answered. Does not block.
    ///
    /// # Panics
    /// If there are no members.
    pub fn set_members(&self, callers: &[Arc<Caller>]) {
        assert!(!callers.is_empty(), "a log has members");
        let added = self.shared.state.lock().set_members(callers);
        if !self.shared.is_closed() {
            added.into_iter().for_each(|place| self.start_renewing(place));
        }
        self.shared.want_renewal();
        self.shared.changed.notify_all();
    }

    /// Ends the registration of a reader that stays, at all members: its log may go.
    ///
    /// # Errors
    /// [`LogError::Unavailable`] if a member did not answer. The registration may still be there,
    /// so the call should be repeated.
    pub fn forget(&self, reader: &str) -> Result<(), LogError> {
        let shared = &self.shared;
        let request = Request::Forget { name: reader.to_owned() };
        let mut missing = None;
        let places = shared.state.lock().members.places();
        for member in places {
            if let Err(error) = shared.ask(member, &request, shared.options.attempt) {
                missing = Some(error);
            }
        }
        shared.state.lock().registered.remove(reader);
        missing.map_or(Ok(()), Err)
    }

    /// Ends the followers, lets go of readers that do not stay, and waits for the tasks.
    pub fn close(&self) {
        self.shared.close();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
    }
}

impl Drop for RemoteLog {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl LogStore for RemoteLog {
    /// Always refused, with [`LogError::NotLeader`].
    fn open(&self, _: WriterEpoch) -> Result<OpenedLog, LogError> {
        let state = self.shared.state.lock();
        let mut leaders = state.members.present().filter_map(|member| member.leader.clone());
        Err(LogError::NotLeader { hint: leaders.next() })
    }

    fn durable_lsn(&self) -> Lsn {
        self.shared.durable()
    }

    /// The position from which on a majority of the members keeps the log.
    fn truncated_lsn(&self) -> Lsn {
        self.shared.state.lock().members.truncated().unwrap_or_default()
    }

    /// What the reader holds, if it stays and is registered.
    fn kept_for(&self, reader: &str) -> Lsn {
        let registered = self.shared.state.lock().registered.get(reader).copied();
        registered.unwrap_or_else(|| self.truncated_lsn())
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.shared.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        Ok(Box::new(self.shared.follow(options)?))
    }
}

impl State {
    /// Returns the places of newcomers.
    fn set_members(&mut self, callers: &[Arc<Caller>]) -> Vec<usize> {
        for (known, member) in self.callers.iter().zip(&mut self.members.0) {
            member.is_gone |= !callers.iter().any(|caller| Arc::ptr_eq(caller, known));
        }
        let present = self.members.places();
        let is_new = |caller: &&Arc<Caller>| {
            !present.iter().any(|place| Arc::ptr_eq(caller, &self.callers[*place]))
        };
        let new: Vec<_> = callers.iter().filter(is_new).cloned().collect();
        let first = self.callers.len();
        self.members.0.resize_with(first + new.len(), Default::default);
        self.callers.extend(new);
        (first..self.callers.len()).collect()
    }

    /// Notes that a reader that stays holds the log from `held` on, or from further on.
    fn note_registered(&mut self, reader: &str, held: Lsn) {
        match self.registered.get_mut(reader) {
            Some(known) => *known = held.max(*known),
            None => _ = self.registered.insert(reader.to_owned(), held),
        }
    }
}

impl Shared {
    fn caller(&self, member: usize) -> Arc<Caller> {
        Arc::clone(&self.state.lock().callers[member])
    }

    /// Whether the member has no place in the group any more.
    fn is_gone(&self, member: usize) -> bool {
        self.state.lock().members.0[member].is_gone
    }

    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Whether the reader of this name stays when the client is gone.
    fn stays(&self, reader: &str) -> bool {
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        self.options.stays.iter().any(|name| reader.strip_prefix(&**name).is_some_and(is_below))
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.want_renewal();
        self.changed.notify_all();
    }

    /// Has all members asked at once.
    fn want_renewal(&self) {
        self.renewals_wanted.fetch_add(1, Ordering::SeqCst);
        self.wanted.notify_all();
    }

    /// Notes what a member has.
    fn heard(&self, member: usize, positions: Positions) {
        self.durable.fetch_max(positions.durable.0, Ordering::SeqCst);
        {
            let mut state = self.state.lock();
            let member = &mut state.members.0[member];
            member.positions = Some(positions);
            member.failed_at = None;
        }
        self.changed.notify_all();
    }

    /// Notes that a member did not do what was asked of it.
    fn failed(&self, member: usize, reason: &dyn std::fmt::Display) {
        let now = self.now();
        {
            let mut state = self.state.lock();
            let member = &mut state.members.0[member];
            member.failed_at = Some(now);
            member.reason = reason.to_string();
        }
        self.changed.notify_all();
    }

    /// Asks a member, and notes what its answer says.
    fn ask(
        &self,
        member: usize,
        request: &Request,
        timeout: Duration,
    ) -> Result<(Reply, Vec<u8>), LogError> {
        let asked_at = self.now();
        let answer = self.caller(member).call(LOG_SERVICE, request.encode(), timeout);
        let payload = answer.map_err(|error| self.no_answer(member, &error))?;
        if !matches!(request, Request::Read { .. }) {
            let took = self.now().saturating_sub(asked_at);
            self.state.lock().members.0[member].answered_in(took);
        }
        let (reply, log) = Reply::decode(&payload).map_err(|damage| {
            self.failed(member, &damage);
            LogError::Unavailable { reason: damage.to_string() }
        })?;
        self.heard(member, reply.positions());
        match reply {
            Reply::Failed { failure, .. } => Err(failure.into()),
            reply => {
                let log = log.to_vec();
                Ok((reply, log))
            }
        }
    }

    fn no_answer(&self, member: usize, error: &CallError) -> LogError {
        self.failed(member, error);
        LogError::Unavailable { reason: error.to_string() }
    }

    /// The members in the order in which to ask them for log at `position`.
    fn order(&self, position: Lsn) -> Vec<usize> {
        let forgiven_after = 2 * self.options.attempt;
        let state = self.state.lock();
        let first = (self.client % state.callers.len() as u64) as usize;
        state.members.order(position, first, self.now(), forgiven_after)
    }

    fn wait_for_majority(&self) -> Result<(), LogError> {
        let has_majority = || {
            let state = self.state.lock();
            state.members.heard() >= state.members.majority()
        };
        match self.changed.wait_until(Some(self.options.patience), has_majority) {
            true => Ok(()),
            false => Err(self.unavailable("too few of its members answer")),
        }
    }

    /// [`LogError::Unavailable`], with the members' own reasons.
    fn unavailable(&self, what: &str) -> LogError {
        let state = self.state.lock();
        let failed = state.members.present().filter(|member| member.failed_at.is_some());
        let reasons: Vec<_> = failed.map(|member| member.reason.clone()).collect();
        let reason = match reasons.is_empty() {
            true => what.to_owned(),
            false => format!("{what}: {}", reasons.join("; ")),
        };
        LogError::Unavailable { reason }
    }

    /// Registers a reader with the members and returns its follower.
    fn follow(self: &Arc<Shared>, options: FollowOptions) -> Result<RemoteFollower, LogError> {
        if options.name.len() > MAX_NAME_BYTES {
            let what = format!("a reader's name has {MAX_NAME_BYTES} bytes at most");
            return Err(LogError::Unavailable { reason: what });
        }
        let id = {
            let mut state = self.state.lock();
            let id = state.next_reader;
            state.next_reader += 1;
            let reader = HeldReader {
                name: options.name.clone(),
                held: options.from,
                limit_bytes: options.hold_limit_bytes,
                stays: self.stays(&options.name),
            };
            state.readers.insert(id, reader);
            id
        };
        self.want_renewal();
        // Its drop takes the reader from the list again.
        let follower = RemoteFollower::new(Arc::clone(self), id, options);
        let standing = self.wait_for_standing(id, &follower);
        let (position, from, to) = (follower.position(), self.begin_of(id), self.durable());
        match standing {
            Standing::Held if position <= to => {
                self.note_registered(&follower.options().name, position);
                Ok(follower)
            }
            Standing::Held | Standing::Gone => Err(LogError::OutOfRange { position, from, to }),
            Standing::Unknown => {
                Err(self.unavailable("too few of its members keep log for readers"))
            }
        }
    }

    /// Waits until a majority keeps the log for a new reader, or has none for it. A reader that was
    /// registered is at a majority already: it begins with the first member that keeps its log, as
    /// others may have been away and let go of it meanwhile.
    fn wait_for_standing(&self, id: ReaderId, follower: &RemoteFollower) -> Standing {
        let is_known = {
            let state = self.state.lock();
            let registered = state.registered.get(&follower.options().name);
            registered.is_some_and(|held| *held <= follower.position())
        };
        let mut standing = Standing::Unknown;
        self.changed.wait_until(Some(self.options.patience), || {
            let state = self.state.lock();
            standing = match state.members.standing(id) {
                Standing::Unknown if is_known && state.members.is_held(id) => Standing::Held,
                standing => standing,
            };
            standing != Standing::Unknown || self.is_closed()
        });
        standing
    }

    /// Notes that a reader holds the log from `held` on.
    fn note_registered(&self, reader: &str, held: Lsn) {
        if self.stays(reader) {
            self.state.lock().note_registered(reader, held);
        }
    }

    /// Where the log begins that is kept for a reader at a majority, or that a majority has.
    fn begin_of(&self, reader: ReaderId) -> Lsn {
        let state = self.state.lock();
        let kept = state.members.present().filter_map(|member| member.kept.get(&reader));
        let mut starts: Vec<Lsn> = kept.map(|kept| kept.from).collect();
        starts.sort_unstable();
        let start = starts.get(state.members.majority() - 1).copied();
        start.or_else(|| state.members.truncated()).unwrap_or_default()
    }

    /// Takes a reader from the list. Members hear of it with the next renewal.
    fn end_reader(&self, id: ReaderId) {
        {
            let mut state = self.state.lock();
            state.readers.remove(&id);
            for member in &mut state.members.0 {
                member.kept.remove(&id);
            }
        }
        self.want_renewal();
    }
}
