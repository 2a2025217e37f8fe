//! The registry of connections: their clients, their state, and how to end them.
//!
//! Rule 1: the registry's mutex and a connection's canceller mutex are held only to look up or to
//! change, never while a callback runs or the network is used.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::cancellation::{CancelReason, Canceller};
use crate::channel::{LateAnswer, PeerAddress, Socket};
use crate::command::CommandCode;
use crate::error::ServerError;
use crate::reply::put_error;

/// The command code of an idle connection.
const IDLE: u8 = 0xff;

/// What other threads see of a connection, and how they end it.
pub struct ConnectionControl {
    id: u32,
    peer: PeerAddress,
    socket: Option<Arc<Socket>>,
    late: Option<Arc<LateAnswer>>,
    /// Set when the connection must end. The next read or write sees it.
    pub(crate) closing: Arc<AtomicBool>,
    /// Set when the connection must end once the running command is answered.
    ends_after_answer: AtomicBool,
    canceller: Mutex<Option<Arc<dyn Canceller>>>,
    /// The running command's code, or [`IDLE`].
    command: AtomicU8,
    /// When the command, or the idleness, began.
    since_ms: AtomicU64,
    /// Counts commands, so that the watch can tell one long command from two short ones.
    commands: AtomicU64,
    /// The number of the last command that was cancelled; 0 if none was.
    cancelled: AtomicU64,
    wait_timeout_ms: AtomicU64,
    /// Whether it is counted in [`Connections::logged_in`].
    logged_in: AtomicBool,
    /// Whether the client has sent `COM_QUIT`.
    said_good_bye: AtomicBool,
    /// Whether another process serves the client, which may have its statement run elsewhere.
    is_relayed: bool,
}

impl std::fmt::Debug for ConnectionControl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ConnectionControl").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ConnectionControl {
    pub(crate) fn new(id: u32, peer: PeerAddress, socket: Option<Arc<Socket>>) -> Self {
        ConnectionControl {
            id,
            peer,
            late: socket.clone().map(|socket| Arc::new(LateAnswer::new(socket))),
            socket,
            closing: Arc::new(AtomicBool::new(false)),
            ends_after_answer: AtomicBool::new(false),
            canceller: Mutex::new(None),
            command: AtomicU8::new(IDLE),
            since_ms: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            wait_timeout_ms: AtomicU64::new(u64::MAX),
            logged_in: AtomicBool::new(false),
            said_good_bye: AtomicBool::new(false),
            is_relayed: false,
        }
    }

    /// A connection without a client, for tests of sessions.
    #[must_use]
    pub fn detached(id: u32) -> ConnectionControl {
        ConnectionControl::new(id, PeerAddress::Unix, None)
    }

    /// A connection whose client another process serves, under the number that it has there.
    #[must_use]
    pub fn relayed(id: u32, peer: PeerAddress) -> ConnectionControl {
        ConnectionControl { is_relayed: true, ..ConnectionControl::new(id, peer, None) }
    }

    /// The connection's number: `CONNECTION_ID()`.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    #[must_use]
    pub fn peer(&self) -> &PeerAddress {
        &self.peer
    }

    /// Sets the session's `wait_timeout`: the connection is closed after this time without a
    /// command.
    pub fn set_wait_timeout(&self, timeout: Duration) {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.wait_timeout_ms.store(timeout_ms, Ordering::Relaxed);
    }

    /// See [`ConnectionControl::set_wait_timeout`].
    #[must_use]
    pub fn wait_timeout(&self) -> Duration {
        Duration::from_millis(self.wait_timeout_ms.load(Ordering::Relaxed))
    }

    /// Set when the connection must end, for what waits in its place.
    #[must_use]
    pub fn closing(&self) -> &Arc<AtomicBool> {
        &self.closing
    }

    /// Whether the connection was told to end.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Ends the connection when the running command has been answered, as `COMMIT RELEASE` does. A
    /// text's later statements are not run.
    pub fn end_after_answer(&self) {
        self.ends_after_answer.store(true, Ordering::Relaxed);
    }

    /// Whether the connection ends when the running command has been answered.
    #[must_use]
    pub fn ends_after_answer(&self) -> bool {
        self.ends_after_answer.load(Ordering::Relaxed)
    }

    pub(crate) fn socket(&self) -> Option<&Arc<Socket>> {
        self.socket.as_ref()
    }

    /// Sets what interrupts the connection's statements; `None` once it has no session.
    pub fn set_canceller(&self, canceller: Option<Arc<dyn Canceller>>) {
        // The former one is dropped after the mutex is free (rule 1).
        let former = std::mem::replace(&mut *self.canceller.lock(), canceller);
        drop(former);
    }

    /// Marks the beginning of a command, for process lists and `KILL QUERY`. `now` is the time on
    /// the environment's monotonic clock.
    #[inline]
    pub fn begin_command(&self, code: CommandCode, now: Duration) {
        self.since_ms.store(now.as_millis() as u64, Ordering::Relaxed);
        self.commands.store(self.commands.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.command.store(code as u8, Ordering::Release);
    }

    /// Marks the end of the command.
    #[inline]
    pub fn end_command(&self) {
        self.command.store(IDLE, Ordering::Release);
    }

    /// Notes that the client has ended the connection with `COM_QUIT`.
    pub(crate) fn say_good_bye(&self) {
        self.said_good_bye.store(true, Ordering::Relaxed);
    }

    /// Bytes received from the client and sent to it.
    #[must_use]
    pub fn traffic(&self) -> (u64, u64) {
        self.socket.as_ref().map_or((0, 0), |socket| socket.traffic())
    }

    /// Marks the beginning of the time without a command.
    pub fn idle_since(&self, now: Duration) {
        self.since_ms.store(now.as_millis() as u64, Ordering::Relaxed);
    }

    /// The running command's number, if one is running.
    pub(crate) fn running(&self) -> Option<u64> {
        (self.command.load(Ordering::Acquire) != IDLE)
            .then(|| self.commands.load(Ordering::Relaxed))
    }

    /// Interrupts the running statement.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        if let Some(command) = self.running() {
            self.cancelled.store(command, Ordering::Relaxed);
        }
        let canceller = self.canceller.lock().clone();
        if let Some(canceller) = canceller {
            canceller.cancel(reason);
        }
    }

    /// The number of the running command if it was cancelled but waits for the confirmation of its
    /// effects.
    pub(crate) fn unconfirmed(&self) -> Option<u64> {
        let cancelled = self.cancelled.load(Ordering::Relaxed);
        let command = self.running().filter(|running| *running == cancelled)?;
        let canceller = self.canceller.lock().clone();
        let is_unconfirmed = canceller.is_some_and(|canceller| canceller.is_confirming())
            || self.late.as_ref().is_some_and(|late| late.is_unconfirmed());
        is_unconfirmed.then_some(command)
    }

    /// Where answers wait for the confirmation of their commits.
    pub(crate) fn late_answer(&self) -> Option<&Arc<LateAnswer>> {
        self.late.as_ref()
    }

    /// Announces that the answer to the running command waits until [`ConnectionControl::confirm`]
    /// is called, so that the command's thread need not wait. False if it has to. Only if
    /// [`Replies::can_be_late`](crate::Replies::can_be_late) says so.
    #[must_use]
    pub fn promise_confirmation(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.promise())
    }

    /// The command's thread has waited after all: nobody will confirm.
    pub fn withdraw_promise(&self) {
        if let Some(late) = &self.late {
            late.withdraw();
        }
    }

    /// Confirms the effects of the command whose confirmation was promised, or says why nobody
    /// can: its answer, or the error, is sent now. Does not wait for the client.
    pub fn confirm(&self, outcome: Result<(), ServerError>) {
        let Some(late) = &self.late else { return };
        let outcome = outcome.map_err(|error| {
            let mut payload = Vec::new();
            put_error(&mut payload, &error, true);
            payload
        });
        late.confirm(outcome, || self.end_command());
    }

    /// Closes the connection in the middle of its command, which is not answered: its client knows
    /// that the outcome is unknown. The command continues.
    pub(crate) fn abandon(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.disconnect();
    }

    /// Ends the connection: interrupts and answers the running statement, then closes the
    /// connection.
    pub(crate) fn end(&self, reason: CancelReason) {
        self.closing.store(true, Ordering::Relaxed);
        self.cancel(reason);
        self.stop_reading();
    }

    /// Stops receiving from the client, so that a wait for its next command ends too.
    pub(crate) fn stop_reading(&self) {
        if let Some(socket) = &self.socket {
            socket.shut_down_reading();
        }
    }

    /// Closes both directions, even in the middle of a command or reply.
    pub(crate) fn disconnect(&self) {
        if let Some(socket) = &self.socket {
            socket.shut_down();
        }
    }

    /// `KILL`: interrupts the statement and closes the connection.
    pub fn kill(&self) {
        self.end(CancelReason::KillConnection);
    }

    /// `KILL QUERY`: interrupts the statement, if one is running, or may be at another process.
    pub fn kill_query(&self) {
        if self.is_relayed || self.running().is_some() {
            self.cancel(CancelReason::KillQuery);
        }
    }

    /// Its line of the process list.
    #[must_use]
    pub fn state(&self) -> ConnectionState {
        let command = CommandCode::from_code(self.command.load(Ordering::Acquire));
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        let is_ending = self.is_closing();
        ConnectionState { id: self.id, peer: self.peer.clone(), command, since, is_ending }
    }
}

/// A line of the process list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionState {
    pub id: u32,
    pub peer: PeerAddress,
    /// The command that is running; `None` for an idle connection (`Sleep`).
    pub command: Option<CommandCode>,
    /// Since when, on the environment's monotonic clock.
    pub since: Duration,
    /// The connection was told to end; a running command ends first.
    pub is_ending: bool,
}

/// Counts over all connections of a server, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionStatistics {
    /// Attempts to connect, including refused ones.
    pub attempts: u64,
    /// Attempts that ended before the login was done.
    pub aborted_logins: u64,
    /// Connections whose client left without `COM_QUIT`, or that the server ended.
    pub aborted_clients: u64,
    /// Attempts that found `max_connections` others.
    pub refused: u64,
    /// The most connections that were logged in at the same time.
    pub most: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Prepared statements that are open now.
    pub prepared: u64,
}

/// The counters behind [`ConnectionStatistics`], without the counts of open connections.
#[derive(Debug, Default)]
struct Tallies {
    attempts: AtomicU64,
    aborted_logins: AtomicU64,
    aborted_clients: AtomicU64,
    refused: AtomicU64,
    most: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// All connections of a server.
pub struct Connections {
    by_id: Mutex<FxHashMap<u32, Arc<ConnectionControl>>>,
    /// The range of connection numbers.
    ids: RangeInclusive<u32>,
    next_id: AtomicU32,
    /// How many have logged in.
    logged_in: AtomicU64,
    /// Prepared statements open in all connections.
    pub(crate) statements: AtomicU64,
    tallies: Tallies,
    /// Notified when a connection has ended.
    pub(crate) ended: Event,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connections").field("len", &self.len()).finish()
    }
}

impl Connections {
    /// An empty registry. New connections get numbers of this range.
    #[must_use]
    pub fn new(ids: RangeInclusive<u32>) -> Connections {
        Connections {
            by_id: Mutex::default(),
            next_id: AtomicU32::new(*ids.start()),
            ids,
            logged_in: AtomicU64::new(0),
            statements: AtomicU64::new(0),
            tallies: Tallies::default(),
            ended: Event::default(),
        }
    }

    /// Number of connections, including those that have not logged in yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.lock().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn statistics(&self) -> ConnectionStatistics {
        let tallies = &self.tallies;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut statistics = ConnectionStatistics {
            attempts: read(&tallies.attempts),
            aborted_logins: read(&tallies.aborted_logins),
            aborted_clients: read(&tallies.aborted_clients),
            refused: read(&tallies.refused),
            most: read(&tallies.most),
            received_bytes: read(&tallies.received_bytes),
            sent_bytes: read(&tallies.sent_bytes),
            prepared: read(&self.statements),
        };
        for connection in self.all() {
            let (received, sent) = connection.traffic();
            statistics.received_bytes += received;
            statistics.sent_bytes += sent;
        }
        statistics
    }

    /// Resets [`ConnectionStatistics::most`] to the current number (`FLUSH STATUS`).
    pub fn forget_most(&self) {
        self.tallies.most.store(self.logged_in(), Ordering::Relaxed);
    }

    /// Counts a client that was refused because there were too many.
    pub(crate) fn count_refused(&self) {
        self.tallies.attempts.fetch_add(1, Ordering::Relaxed);
        self.tallies.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// `KILL`: interrupts the connection's statement and closes the connection. False if there is
    /// no such connection.
    pub fn kill(&self, id: u32) -> bool {
        let found = self.get(id);
        if let Some(connection) = &found {
            connection.kill();
        }
        found.is_some()
    }

    /// `KILL QUERY`: interrupts the connection's statement. False if there is no such connection.
    pub fn kill_query(&self, id: u32) -> bool {
        let found = self.get(id);
        if let Some(connection) = &found {
            connection.kill_query();
        }
        found.is_some()
    }

    /// The connection of that number.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<Arc<ConnectionControl>> {
        self.by_id.lock().get(&id).cloned()
    }

    /// The process list, in the order of numbers.
    #[must_use]
    pub fn list(&self) -> Vec<ConnectionState> {
        let mut states: Vec<_> = self.all().iter().map(|connection| connection.state()).collect();
        states.sort_unstable_by_key(|state| state.id);
        states
    }

    pub(crate) fn all(&self) -> Vec<Arc<ConnectionControl>> {
        self.by_id.lock().values().cloned().collect()
    }

    /// Registers a new connection under a new number.
    pub(crate) fn register(
        &self,
        peer: PeerAddress,
        socket: Arc<Socket>,
    ) -> Arc<ConnectionControl> {
        self.tallies.attempts.fetch_add(1, Ordering::Relaxed);
        let mut by_id = self.by_id.lock();
        loop {
            // After the last number comes the first. Numbers of open connections are skipped.
            let id = self.next_id.load(Ordering::Relaxed);
            let next = if id == *self.ids.end() { *self.ids.start() } else { id + 1 };
            self.next_id.store(next, Ordering::Relaxed);
            if by_id.contains_key(&id) {
                continue;
            }
            let connection = Arc::new(ConnectionControl::new(id, peer, Some(socket)));
            by_id.insert(id, connection.clone());
            return connection;
        }
    }

    /// Adds a connection whose client another process serves; false if there is one with its
    /// number. [`Connections::release`] takes it out.
    #[must_use]
    pub fn adopt(&self, connection: &Arc<ConnectionControl>) -> bool {
        let mut by_id = self.by_id.lock();
        if by_id.contains_key(&connection.id()) {
            return false;
        }
        by_id.insert(connection.id(), Arc::clone(connection));
        drop(by_id);
        self.tallies.attempts.fetch_add(1, Ordering::Relaxed);
        connection.say_good_bye();
        self.admit(connection, u64::MAX)
    }

    /// Takes an adopted connection out.
    pub fn release(&self, connection: &ConnectionControl) {
        self.unregister(connection.id());
    }

    pub(crate) fn unregister(&self, id: u32) {
        let removed = self.by_id.lock().remove(&id);
        if let Some(connection) = removed {
            self.tally(&connection);
        }
        self.ended.notify_all();
    }

    /// Adds the counts of a connection that has ended.
    fn tally(&self, connection: &ConnectionControl) {
        let (received, sent) = connection.traffic();
        self.tallies.received_bytes.fetch_add(received, Ordering::Relaxed);
        self.tallies.sent_bytes.fetch_add(sent, Ordering::Relaxed);
        if !connection.logged_in.load(Ordering::Relaxed) {
            self.tallies.aborted_logins.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.logged_in.fetch_sub(1, Ordering::SeqCst);
        if !connection.said_good_bye.load(Ordering::Relaxed) {
            self.tallies.aborted_clients.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many have logged in.
    pub(crate) fn logged_in(&self) -> u64 {
        self.logged_in.load(Ordering::SeqCst)
    }

    /// Counts a connection among those that have logged in; false if there are `limit` already.
    pub(crate) fn admit(&self, connection: &ConnectionControl, limit: u64) -> bool {
        let counted = self.logged_in.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
            (count < limit).then_some(count + 1)
        });
        match counted {
            Ok(before) => {
                connection.logged_in.store(true, Ordering::Relaxed);
                self.tallies.most.fetch_max(before + 1, Ordering::Relaxed);
            }
            Err(_) => {
                self.tallies.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        counted.is_ok()
    }

    /// If more than `limit` connections are logging in, ends the one that has been logging in for
    /// longest.
    pub(crate) fn make_room(&self, limit: u64) {
        let oldest = {
            let by_id = self.by_id.lock();
            if (by_id.len() as u64).saturating_sub(self.logged_in()) <= limit {
                return;
            }
            let waiting = by_id
                .values()
                .filter(|one| !one.logged_in.load(Ordering::Relaxed) && !one.is_closing());
            waiting.min_by_key(|one| one.id).cloned()
        };
        if let Some(oldest) = oldest {
            oldest.end(CancelReason::KillConnection);
        }
    }
}
