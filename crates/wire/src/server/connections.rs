//! The registry of connections: who is connected, what each does, and how to end it.
//!
//! Rule 1: the registry's mutex and a connection's canceller mutex are held only to look up or to change,
//! never while a callback runs or the network is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::channel::{PeerAddress, Socket};
use crate::command::CommandCode;
use crate::service::{CancelReason, Canceller};

/// What a connection's command code is while none is running.
const IDLE: u8 = 0xff;

/// What others can see of a connection and do to it.
pub struct ConnectionControl {
    id: u32,
    peer: PeerAddress,
    socket: Option<Arc<Socket>>,
    /// The connection shall end; seen by whoever reads or writes next.
    pub(super) closing: Arc<AtomicBool>,
    canceller: Mutex<Option<Arc<dyn Canceller>>>,
    /// The running command's code, or [`IDLE`].
    command: AtomicU8,
    /// When the command, or the idleness, began.
    since_ms: AtomicU64,
    /// Counts commands, so that the watch knows a long one from two short ones.
    commands: AtomicU64,
    wait_timeout_ms: AtomicU64,
    /// Counted among [`Connections::logged_in`].
    logged_in: AtomicBool,
}

impl std::fmt::Debug for ConnectionControl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ConnectionControl").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ConnectionControl {
    pub(super) fn new(id: u32, peer: PeerAddress, socket: Option<Arc<Socket>>) -> Self {
        ConnectionControl {
            id,
            peer,
            socket,
            closing: Arc::new(AtomicBool::new(false)),
            canceller: Mutex::new(None),
            command: AtomicU8::new(IDLE),
            since_ms: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            wait_timeout_ms: AtomicU64::new(u64::MAX),
            logged_in: AtomicBool::new(false),
        }
    }

    /// A connection that leads nowhere, for tests of sessions.
    #[must_use]
    pub fn detached(id: u32) -> ConnectionControl {
        ConnectionControl::new(id, PeerAddress::Unix, None)
    }

    /// The connection's number: `CONNECTION_ID()`.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Where the client comes from.
    #[must_use]
    pub fn peer(&self) -> &PeerAddress {
        &self.peer
    }

    /// After how long without a command the connection is closed: the session's `wait_timeout`.
    pub fn set_wait_timeout(&self, timeout: Duration) {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.wait_timeout_ms.store(timeout_ms, Ordering::Relaxed);
    }

    /// See [`ConnectionControl::set_wait_timeout`].
    #[must_use]
    pub fn wait_timeout(&self) -> Duration {
        Duration::from_millis(self.wait_timeout_ms.load(Ordering::Relaxed))
    }

    /// Whether the connection was told to end.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    pub(super) fn socket(&self) -> Option<&Arc<Socket>> {
        self.socket.as_ref()
    }

    pub(super) fn set_canceller(&self, canceller: Option<Arc<dyn Canceller>>) {
        // The former one is dropped after the mutex is free (rule 1).
        let former = std::mem::replace(&mut *self.canceller.lock(), canceller);
        drop(former);
    }

    #[inline]
    pub(super) fn begin_command(&self, code: CommandCode, now: Duration) {
        self.since_ms.store(now.as_millis() as u64, Ordering::Relaxed);
        self.commands.store(self.commands.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.command.store(code as u8, Ordering::Release);
    }

    #[inline]
    pub(super) fn end_command(&self) {
        self.command.store(IDLE, Ordering::Release);
    }

    pub(super) fn idle_since(&self, now: Duration) {
        self.since_ms.store(now.as_millis() as u64, Ordering::Relaxed);
    }

    /// The running command's number, if one is running.
    pub(super) fn running(&self) -> Option<u64> {
        (self.command.load(Ordering::Acquire) != IDLE)
            .then(|| self.commands.load(Ordering::Relaxed))
    }

    /// Interrupts the running statement.
    pub(super) fn cancel(&self, reason: CancelReason) {
        let canceller = self.canceller.lock().clone();
        if let Some(canceller) = canceller {
            canceller.cancel(reason);
        }
    }

    /// Ends the connection: the running statement is interrupted and answered, then the client finds the
    /// connection closed.
    pub(super) fn end(&self, reason: CancelReason) {
        self.closing.store(true, Ordering::Relaxed);
        self.cancel(reason);
        self.stop_reading();
    }

    /// Ends what the client sends, so that a wait for its next command ends too.
    pub(super) fn stop_reading(&self) {
        if let Some(socket) = &self.socket {
            socket.shut_down_reading();
        }
    }

    /// Ends both directions, whatever is under way.
    pub(super) fn disconnect(&self) {
        if let Some(socket) = &self.socket {
            socket.shut_down();
        }
    }

    fn state(&self) -> ConnectionState {
        let command = CommandCode::from_code(self.command.load(Ordering::Acquire));
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        ConnectionState { id: self.id, peer: self.peer.clone(), command, since }
    }
}

/// A line of the process list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionState {
    /// The connection's number.
    pub id: u32,
    /// Where the client comes from.
    pub peer: PeerAddress,
    /// The command that is running; `None` for an idle connection (`Sleep`).
    pub command: Option<CommandCode>,
    /// Since when, on the environment's monotonic clock.
    pub since: Duration,
}

/// All connections of a server.
#[derive(Default)]
pub struct Connections {
    by_id: Mutex<FxHashMap<u32, Arc<ConnectionControl>>>,
    last_id: AtomicU32,
    /// How many have logged in.
    logged_in: AtomicU64,
    /// Notified when a connection has ended.
    pub(super) ended: Event,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connections").field("len", &self.len()).finish()
    }
}

impl Connections {
    /// How many there are, those that have not logged in yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.lock().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `KILL`: interrupts the connection's statement and closes it. False if there is no such connection.
    pub fn kill(&self, id: u32) -> bool {
        let found = self.get(id);
        if let Some(connection) = &found {
            connection.end(CancelReason::KillConnection);
        }
        found.is_some()
    }

    /// `KILL QUERY`: interrupts the connection's statement. False if there is no such connection.
    pub fn kill_query(&self, id: u32) -> bool {
        let found = self.get(id);
        if let Some(connection) = &found
            && connection.running().is_some()
        {
            connection.cancel(CancelReason::KillQuery);
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

    pub(super) fn all(&self) -> Vec<Arc<ConnectionControl>> {
        self.by_id.lock().values().cloned().collect()
    }

    /// Registers a new connection under a number of its own.
    pub(super) fn register(
        &self,
        peer: PeerAddress,
        socket: Arc<Socket>,
    ) -> Arc<ConnectionControl> {
        let mut by_id = self.by_id.lock();
        loop {
            // Numbers come around after four thousand million connections; 0 is nobody's.
            let id = self.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if id == 0 || by_id.contains_key(&id) {
                continue;
            }
            let connection = Arc::new(ConnectionControl::new(id, peer, Some(socket)));
            by_id.insert(id, connection.clone());
            return connection;
        }
    }

    pub(super) fn unregister(&self, id: u32) {
        let removed = self.by_id.lock().remove(&id);
        if removed.is_some_and(|connection| connection.logged_in.load(Ordering::Relaxed)) {
            self.logged_in.fetch_sub(1, Ordering::SeqCst);
        }
        self.ended.notify_all();
    }

    /// How many have logged in.
    pub(super) fn logged_in(&self) -> u64 {
        self.logged_in.load(Ordering::SeqCst)
    }

    /// Counts a connection among those that have logged in; false if there are `limit` already.
    pub(super) fn admit(&self, connection: &ConnectionControl, limit: u64) -> bool {
        let counted = self.logged_in.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
            (count < limit).then_some(count + 1)
        });
        if counted.is_ok() {
            connection.logged_in.store(true, Ordering::Relaxed);
        }
        counted.is_ok()
    }

    /// Ends the connection that has been there longest without having logged in, if there are more than
    /// `limit` of them.
    pub(super) fn make_room(&self, limit: u64) {
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
