//! Transactions whose sessions are on their way to another server, or come from one.
//!
//! ```text
//!   session ── leave ──► here ── hand over ──► message ──► here, at the next writer ──► session
//!                         └──────────── the switch has failed ─────────────────────────► session
//! ```
//!
//! A session asks by its connection's number, which no other connection of the cluster has. One
//! that never asks, because its client and its front have gone together, holds its locks until
//! [`PATIENCE`] has passed.
//!
//! Latch rule: the mutex is a leaf; no transaction ends under it.

use std::time::Duration;

use firn_api::rows::{
    DatabaseNode, DetachedLocks, HandedSession, HandedSessions, HandedTransaction, RowsResult,
    Savepoint, TakenOver, Transaction,
};
use firn_base::Environment;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// How long a transaction waits for its session.
const PATIENCE: Duration = Duration::from_secs(60);

/// A transaction without its session, until the session goes on.
pub(crate) struct LeftTransaction {
    pub(crate) inner: Box<dyn Transaction>,
    pub(crate) read_only: bool,
    /// By name, oldest first.
    pub(crate) savepoints: Vec<(String, Savepoint)>,
    /// What the session has locked of definitions for it.
    pub(crate) locks: DetachedLocks,
}

impl LeftTransaction {
    fn taken_over(taken: TakenOver, session: HandedSession) -> LeftTransaction {
        let HandedSession { read_only, savepoints, .. } = session;
        let TakenOver { transaction: inner, table_locks: locks, .. } = taken;
        LeftTransaction { inner, read_only, savepoints, locks }
    }

    fn hand_over(
        &mut self,
        handover: u64,
        session: u64,
    ) -> RowsResult<Option<(HandedSession, HandedTransaction)>> {
        let handed = self.inner.hand_over(handover, session, &self.locks)?;
        let (read_only, savepoints) = (self.read_only, self.savepoints.clone());
        Ok(handed.map(|handed| (HandedSession { session, read_only, savepoints }, handed)))
    }
}

pub(crate) struct LeftTransactions {
    environment: Environment,
    /// By the connection's number, with the time on the monotonic clock since when they wait.
    waiting: Mutex<FxHashMap<u64, (Duration, LeftTransaction)>>,
}

impl LeftTransactions {
    pub(crate) fn new(environment: &Environment) -> LeftTransactions {
        LeftTransactions { environment: environment.clone(), waiting: Mutex::default() }
    }

    /// Keeps the transaction of a session that has left.
    pub(crate) fn keep(&self, session: u64, left: LeftTransaction) {
        let now = self.environment.clock.monotonic();
        let before = self.waiting.lock().insert(session, (now, left));
        drop(before);
    }

    /// The transaction of a session that goes on. Dropped, it is rolled back.
    pub(crate) fn take(&self, session: u64) -> Option<LeftTransaction> {
        self.waiting.lock().remove(&session).map(|(_, left)| left)
    }

    /// Writes down all that wait, for the next writer. They stay here; if there are any, nothing
    /// commits at the node from now on until [`DatabaseNode::keep_writing`]. Blocks.
    ///
    /// # Errors
    /// If the log has failed.
    pub(crate) fn hand_over(
        &self,
        node: &dyn DatabaseNode,
        handover: u64,
    ) -> RowsResult<HandedSessions> {
        let mut described: FxHashMap<u64, HandedSession> = FxHashMap::default();
        let mut transactions = Vec::new();
        for (session, (since, mut left)) in self.take_all() {
            let handed = left.hand_over(handover, session);
            self.waiting.lock().insert(session, (since, left));
            if let Some((of_session, transaction)) = handed? {
                described.insert(session, of_session);
                transactions.push(transaction);
            }
        }
        let handed = node.hand_over(handover, transactions)?;
        if handed.transactions.is_empty() {
            node.keep_writing();
            return Ok(HandedSessions::default());
        }
        let of_followers = HandedTransaction::OF_FOLLOWERS;
        let kept = HandedSession { session: of_followers, read_only: true, savepoints: Vec::new() };
        described.insert(of_followers, kept);
        let going_on = handed.transactions.iter();
        let sessions = going_on.filter_map(|one| described.remove(&one.session)).collect();
        Ok(HandedSessions { sessions, node: handed })
    }

    /// Takes the transactions of the writer before, for their sessions.
    pub(crate) fn take_over(&self, sessions: Vec<HandedSession>, transactions: Vec<TakenOver>) {
        let mut sessions: FxHashMap<u64, HandedSession> =
            sessions.into_iter().map(|one| (one.session, one)).collect();
        for taken in transactions {
            if let Some(session) = sessions.remove(&taken.session) {
                self.keep(taken.session, LeftTransaction::taken_over(taken, session));
            }
        }
    }

    /// Rolls back all that wait. Blocks.
    pub(crate) fn end_all(&self) {
        drop(self.take_all());
    }

    fn take_all(&self) -> FxHashMap<u64, (Duration, LeftTransaction)> {
        std::mem::take(&mut *self.waiting.lock())
    }

    /// Rolls back transactions whose sessions have not come. Blocks.
    pub(crate) fn end_forgotten(&self) {
        let now = self.environment.clock.monotonic();
        let is_late = |since: Duration| now.saturating_sub(since) >= PATIENCE;
        let late: Vec<_> = {
            let mut waiting = self.waiting.lock();
            let late = waiting.iter().filter(|(_, (since, _))| is_late(*since));
            let late: Vec<u64> = late.map(|(session, _)| *session).collect();
            late.iter().filter_map(|session| Some((*session, waiting.remove(session)?))).collect()
        };
        let of_sessions = late.iter().filter(|(one, _)| *one != HandedTransaction::OF_FOLLOWERS);
        let count = of_sessions.count();
        if count > 0 {
            tracing::warn!(count, "transactions are rolled back, because nobody went on with them");
        }
    }
}
