//! What functions and other sessions may know of a session without waiting for it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::Cancellation;
use firn_api::server::{Patience, ServerState};
use firn_base::Environment;
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_sql::error::SqlError;
use firn_sql::execute::Interruption;
use firn_sql::types::session_facts::{LockAnswer, SessionFacts, SleepEnd};
use firn_wire::{CancelReason, Canceller};
use parking_lot::Mutex;

use crate::accounts::AccountName;
use crate::logs::secrets;
use crate::statement_cut::Cut;
use crate::status::Status;

/// The version that clients see.
pub const SERVER_VERSION: &str = "8.0.40-Firn";

/// Shared by a session, its statements and its observers.
pub struct Facts {
    /// The connection's number.
    pub id: u64,
    /// The name and host sent by the client.
    pub user: String,
    /// Where the client comes from.
    pub host: String,
    /// The account of the session.
    pub account: AccountName,
    /// Set to cancel the running statement. The engine checks it, too.
    pub cancelled: Arc<Cancellation>,
    pub(crate) last_insert_id: AtomicU64,
    /// Whether the running statement has called `LAST_INSERT_ID(x)`.
    pub(crate) has_given_id: AtomicBool,
    /// `@@insert_id`
    pub(crate) insert_id: AtomicU64,
    pub(crate) row_count: AtomicI64,
    pub(crate) found_rows: AtomicU64,
    is_running: AtomicBool,
    is_ending: AtomicBool,
    /// Whether the running statement can be run elsewhere in place of here.
    pub(crate) cut: Cut,
    woken: Event,
    /// What the running statement waits for, as the process list shows it.
    waits_for: Mutex<Option<&'static str>>,
    /// It waits for a lock on a definition.
    pub(crate) waits_for_definition: AtomicBool,
    /// The deadline of the running query, on the monotonic clock.
    deadline: Mutex<Option<Duration>>,
    /// For the session itself: whether there is one.
    has_deadline: AtomicBool,
    pub(crate) schema: Mutex<Option<Arc<str>>>,
    pub(crate) roles: Mutex<BTreeSet<AccountName>>,
    /// Counts `SET ROLE`.
    pub(crate) role_changes: AtomicU64,
    /// Whether `GET_LOCK` was ever called.
    pub(crate) has_asked_for_locks: AtomicBool,
    pub(crate) encryption_mode: Mutex<Arc<str>>,
    /// The session's counters; only its own thread adds to them.
    pub status: Status,
    /// The text of the statement that runs or ran last, for the process list.
    statement: Mutex<String>,
    runs_statement: AtomicBool,
    /// That text has more memory than is kept.
    has_long_statement: AtomicBool,
    server: Arc<dyn ServerState>,
    sequence: Arc<AtomicU64>,
    node_id: u64,
    environment: Environment,
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").field("id", &self.id).field("user", &self.user).finish()
    }
}

/// How much of a statement's text the process list shows, as MySQL's does.
const SHOWN_TEXT_BYTES: usize = 65_535;
/// The most memory kept for texts.
const KEPT_TEXT_BYTES: usize = 64 << 10;

/// The part that all sessions of a compute node share.
#[derive(Clone)]
pub struct SharedFacts {
    /// User-level locks.
    pub server: Arc<dyn ServerState>,
    /// The sequence for UUIDs.
    pub sequence: Arc<AtomicU64>,
    /// The number that identifies this server.
    pub node_id: u64,
    /// Clock and randomness.
    pub environment: Environment,
}

impl Facts {
    /// The facts of a new session.
    #[must_use]
    pub fn new(
        shared: &SharedFacts,
        id: u64,
        user: String,
        host: String,
        account: AccountName,
    ) -> Facts {
        Facts {
            id,
            user,
            host,
            account,
            cancelled: Arc::default(),
            last_insert_id: AtomicU64::new(0),
            has_given_id: AtomicBool::new(false),
            insert_id: AtomicU64::new(0),
            row_count: AtomicI64::new(-1),
            found_rows: AtomicU64::new(0),
            is_running: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            cut: Cut::default(),
            woken: Event::new(),
            waits_for: Mutex::new(None),
            waits_for_definition: AtomicBool::new(false),
            deadline: Mutex::new(None),
            has_deadline: AtomicBool::new(false),
            schema: Mutex::new(None),
            roles: Mutex::new(BTreeSet::new()),
            role_changes: AtomicU64::new(0),
            has_asked_for_locks: AtomicBool::new(false),
            encryption_mode: Mutex::new("aes-128-ecb".into()),
            status: Status::default(),
            statement: Mutex::default(),
            runs_statement: AtomicBool::new(false),
            has_long_statement: AtomicBool::new(false),
            server: Arc::clone(&shared.server),
            sequence: Arc::clone(&shared.sequence),
            node_id: shared.node_id,
            environment: shared.environment.clone(),
        }
    }

    /// A command begins: later cancellations are meant for it.
    pub(crate) fn begin_command(&self) {
        self.cancelled.reset(self.is_ending.load(Ordering::Relaxed));
        self.cut.begin_command();
        self.is_running.store(true, Ordering::Release);
    }

    /// What has been cut was done already: the rest of its command runs on.
    pub(crate) fn outlive_cut(&self) {
        self.cancelled.reset(self.is_ending.load(Ordering::Relaxed));
    }

    /// A command has ended: later cancellations find nothing to cancel.
    pub(crate) fn end_command(&self) {
        self.is_running.store(false, Ordering::Release);
    }

    pub(crate) fn begin_statement(&self, text: &str) {
        let mut shown = self.statement.lock();
        shown.clear();
        shown.push_str(&text[..text.floor_char_boundary(SHOWN_TEXT_BYTES)]);
        if shown.capacity() > KEPT_TEXT_BYTES {
            self.has_long_statement.store(true, Ordering::Relaxed);
        }
        self.runs_statement.store(true, Ordering::Release);
    }

    pub(crate) fn end_statement(&self) {
        self.runs_statement.store(false, Ordering::Release);
        if self.has_long_statement.load(Ordering::Relaxed) {
            self.has_long_statement.store(false, Ordering::Relaxed);
            *self.statement.lock() = String::new();
        }
    }

    /// The text of the running statement, without passwords.
    pub(crate) fn statement(&self) -> Option<String> {
        let text = {
            let shown = self.statement.lock();
            self.runs_statement.load(Ordering::Acquire).then(|| shown.clone())
        };
        text.map(|text| secrets::masked(&text).into_owned())
    }

    /// Runs something that waits; meanwhile the process list shows this name.
    pub(crate) fn waiting_for<T>(&self, what: &'static str, wait: impl FnOnce() -> T) -> T {
        *self.waits_for.lock() = Some(what);
        let answer = wait();
        *self.waits_for.lock() = None;
        answer
    }

    /// What the running statement waits for.
    pub(crate) fn waits_for(&self) -> Option<&'static str> {
        match self.waits_for_definition.load(Ordering::Relaxed) {
            true => Some("Waiting for table metadata lock"),
            false => *self.waits_for.lock(),
        }
    }

    /// Whether the running statement was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// A query begins that may take this long.
    pub(crate) fn set_deadline(&self, deadline: Option<Duration>) {
        if deadline.is_some() || self.has_deadline.load(Ordering::Relaxed) {
            *self.deadline.lock() = deadline;
            self.has_deadline.store(deadline.is_some(), Ordering::Relaxed);
        }
    }

    /// How much time the running query has left, if it is limited.
    fn time_left(&self) -> Option<Duration> {
        let now = self.environment.clock.monotonic();
        self.deadline.lock().map(|deadline| deadline.saturating_sub(now))
    }

    pub(crate) fn release_locks(&self) -> u64 {
        self.server.release_user_locks(self.id)
    }

    /// The session's user locks, and how often each was taken.
    pub(crate) fn user_locks(&self) -> Vec<(String, u64)> {
        match self.has_asked_for_locks.load(Ordering::Relaxed) {
            true => self.server.user_locks_of(self.id),
            false => Vec::new(),
        }
    }

    /// Gives back what was taken beyond `before`.
    pub(crate) fn release_locks_but(&self, before: &[(String, u64)]) {
        for (name, times) in self.user_locks() {
            let kept = before.iter().find(|(other, _)| *other == name).map_or(0, |(_, kept)| *kept);
            for _ in kept..times {
                let _ = self.server.release_user_lock(self.id, &name);
            }
        }
    }

    /// The running statement is not cut from here on: what it gives back now, it might not get
    /// again elsewhere.
    fn end_cutting(&self) {
        if self.cut.close() {
            self.outlive_cut();
        }
    }
}

impl Canceller for Facts {
    fn cancel(&self, reason: CancelReason) {
        if reason != CancelReason::KillQuery {
            self.is_ending.store(true, Ordering::Relaxed);
        }
        // A statement that was cut runs elsewhere, however this server ends.
        if reason != CancelReason::Shutdown {
            self.cut.kill();
        }
        if self.is_running.load(Ordering::Acquire) {
            self.cancelled.cancel();
            self.woken.notify_all();
        }
    }

    fn cut(&self) {
        if self.cut.cut() {
            self.cancelled.cancel();
            self.woken.notify_all();
        }
    }

    fn is_confirming(&self) -> bool {
        self.cancelled.is_confirming()
    }
}

impl SessionFacts for Facts {
    fn connection_id(&self) -> u64 {
        self.id
    }

    fn user(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }

    fn current_user(&self) -> String {
        self.account.to_string()
    }

    fn current_role(&self) -> String {
        let roles = self.roles.lock();
        if roles.is_empty() {
            return "NONE".to_owned();
        }
        roles.iter().map(AccountName::quoted).collect::<Vec<_>>().join(",")
    }

    fn database(&self) -> Option<String> {
        self.schema.lock().as_deref().map(str::to_owned)
    }

    fn version(&self) -> String {
        SERVER_VERSION.to_owned()
    }

    fn last_insert_id(&self) -> u64 {
        self.last_insert_id.load(Ordering::Relaxed)
    }

    fn set_last_insert_id(&self, id: u64) {
        self.last_insert_id.store(id, Ordering::Relaxed);
        self.has_given_id.store(true, Ordering::Relaxed);
    }

    fn take_insert_id(&self) -> u64 {
        match self.insert_id.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.insert_id.swap(0, Ordering::Relaxed),
        }
    }

    fn row_count(&self) -> i64 {
        self.row_count.load(Ordering::Relaxed)
    }

    fn found_rows(&self) -> u64 {
        self.found_rows.load(Ordering::Relaxed)
    }

    fn block_encryption_mode(&self) -> String {
        self.encryption_mode.lock().to_string()
    }

    fn wall_time_us(&self) -> i64 {
        i64::try_from(self.environment.clock.wall_time_us()).unwrap_or(i64::MAX)
    }

    fn random_u64(&self) -> u64 {
        self.environment.random.next_u64()
    }

    fn node_id(&self) -> u64 {
        self.node_id
    }

    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    fn check_interrupted(&self) -> Result<(), SqlError> {
        let has_deadline = self.has_deadline.load(Ordering::Relaxed);
        let deadline = if has_deadline { *self.deadline.lock() } else { None };
        let deadline = deadline.map(|deadline| (&*self.environment.clock as &dyn Clock, deadline));
        Interruption { cancelled: self.cancelled.flag(), deadline }.check()
    }

    fn sleep(&self, duration: Duration) -> SleepEnd {
        let longest = self.time_left().map_or(duration, |left| left.min(duration));
        let is_woken = self.waiting_for("User sleep", || {
            self.woken.wait_until(Some(longest), || self.is_cancelled())
        });
        match is_woken {
            true if self.cut.is_cut() => SleepEnd::Cut,
            false if longest == duration => SleepEnd::Elapsed,
            _ => SleepEnd::Killed,
        }
    }

    fn get_lock(&self, name: &str, timeout: Option<Duration>) -> LockAnswer {
        self.has_asked_for_locks.store(true, Ordering::Relaxed);
        let left = self.time_left();
        let longest = match (left, timeout) {
            (Some(left), Some(timeout)) => Some(left.min(timeout)),
            (left, timeout) => left.or(timeout),
        };
        let patience = Patience { timeout: longest, cancelled: self.cancelled.flag() };
        let take = || self.server.take_user_lock(self.id, name, &patience);
        match self.waiting_for("User lock", take) {
            // The query has reached its time limit.
            LockAnswer::TimedOut if longest != timeout => LockAnswer::Killed,
            answer => answer,
        }
    }

    fn release_lock(&self, name: &str) -> Option<bool> {
        self.end_cutting();
        self.server.release_user_lock(self.id, name)
    }

    fn release_all_locks(&self) -> u64 {
        self.end_cutting();
        self.release_locks()
    }

    fn lock_owner(&self, name: &str) -> Option<u64> {
        self.server.user_lock_owner(name)
    }
}
