//! Sessions that are on their way to another server, or come from one: their transactions, and what
//! else ends with a server.
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
//! Latch rule: the mutex is a leaf; no transaction ends under it, and nothing is dropped.

use std::time::Duration;

use firn_api::rows::{
    DatabaseNode, DetachedLocks, HandedSession, HandedSessions, HandedTransaction, RowsResult,
    Savepoint, TakenOver, Transaction,
};
use firn_base::Environment;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::belongings::{Belongings, HeldBelongings, Holder};

/// How long what a session has left waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a session has left, until it goes on.
pub(crate) struct LeftSession {
    pub(crate) transaction: Option<LeftTransaction>,
    /// Dropped after the transaction, whose locks they may cover.
    pub(crate) belongings: Option<HeldBelongings>,
}

/// A transaction without its session.
pub(crate) struct LeftTransaction {
    pub(crate) inner: Box<dyn Transaction>,
    pub(crate) read_only: bool,
    /// By name, oldest first.
    pub(crate) savepoints: Vec<(String, Savepoint)>,
    /// What the session has locked of definitions for it.
    pub(crate) locks: DetachedLocks,
}

impl LeftSession {
    /// What goes on of the session, and its transaction, if that can go on.
    fn hand_over(
        &mut self,
        handover: u64,
        session: u64,
    ) -> RowsResult<(HandedSession, Option<HandedTransaction>)> {
        let belongings = self.belongings.as_ref().map(|held| held.written().encode());
        let mut of_session =
            HandedSession { session, read_only: false, savepoints: Vec::new(), belongings };
        let Some(left) = &mut self.transaction else { return Ok((of_session, None)) };
        let transaction = left.inner.hand_over(handover, session, &left.locks)?;
        (of_session.read_only, of_session.savepoints) = (left.read_only, left.savepoints.clone());
        Ok((of_session, transaction))
    }

    /// What has come of a session. Belongings that are not free are left out.
    fn taken_over(handed: HandedSession, taken: Option<TakenOver>, at: &Place<'_>) -> LeftSession {
        let HandedSession { session, read_only, savepoints, belongings } = handed;
        let (inner, mut locks) = match taken {
            Some(TakenOver { transaction, table_locks, .. }) => (Some(transaction), table_locks),
            None => (None, None),
        };
        let belongings = belongings.and_then(|bytes| {
            let metadata = at.node.metadata_locks().open();
            // The session's own locks do not conflict with each other.
            metadata.attach(locks.take());
            let held = Belongings::decode(&bytes).map(|written| {
                HeldBelongings::take_over(at.holder.clone(), session, written, metadata.clone())
            });
            locks = metadata.detach();
            match held? {
                Ok(held) => Some(held),
                Err(error) => {
                    tracing::warn!(session, %error, "a session cannot go on with all that it had");
                    None
                }
            }
        });
        let of = |inner| LeftTransaction { inner, read_only, savepoints, locks };
        LeftSession { transaction: inner.map(of), belongings }
    }

    /// No session goes on with it: rolls the transaction back, and drops temporary tables. Blocks.
    fn end(self) {
        let LeftSession { transaction, belongings } = self;
        drop(transaction);
        if let Some(belongings) = belongings {
            belongings.end();
        }
    }
}

/// Where sessions go on.
struct Place<'n> {
    node: &'n dyn DatabaseNode,
    holder: &'n Holder,
}

pub(crate) struct LeftSessions {
    environment: Environment,
    holder: Holder,
    /// By the connection's number, with the time on the monotonic clock since when they wait.
    waiting: Mutex<FxHashMap<u64, (Duration, LeftSession)>>,
}

impl LeftSessions {
    pub(crate) fn new(environment: &Environment, holder: Holder) -> LeftSessions {
        LeftSessions { environment: environment.clone(), holder, waiting: Mutex::default() }
    }

    /// What holds the belongings of this server's sessions.
    pub(crate) fn holder(&self) -> Holder {
        self.holder.clone()
    }

    /// Keeps what a session has left.
    pub(crate) fn keep(&self, session: u64, left: LeftSession) {
        let now = self.environment.clock.monotonic();
        let before = self.waiting.lock().insert(session, (now, left));
        drop(before);
    }

    /// Whether any wait.
    pub(crate) fn are_there(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// What a session that goes on has left.
    pub(crate) fn take(&self, session: u64) -> Option<LeftSession> {
        self.waiting.lock().remove(&session).map(|(_, left)| left)
    }

    /// The client of a session that has left is gone. Blocks.
    pub(crate) fn abandon(&self, session: u64) {
        if let Some(left) = self.take(session) {
            left.end();
        }
    }

    /// Writes down all that wait, for the next writer. They stay here; if there are any
    /// transactions, nothing commits at the node from now on until
    /// [`DatabaseNode::keep_writing`]. Blocks.
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
            let (of_session, transaction) = handed?;
            described.insert(session, of_session);
            transactions.extend(transaction);
        }
        let handed = node.hand_over(handover, transactions)?;
        if handed.transactions.is_empty() {
            node.keep_writing();
        } else {
            let of_followers = HandedSession {
                session: HandedTransaction::OF_FOLLOWERS,
                read_only: true,
                savepoints: Vec::new(),
                belongings: None,
            };
            described.insert(of_followers.session, of_followers);
        }
        let has_transaction =
            |session: u64| handed.transactions.iter().any(|one| one.session == session);
        let goes_on =
            |one: &HandedSession| one.belongings.is_some() || has_transaction(one.session);
        let sessions = described.into_values().filter(goes_on).collect();
        Ok(HandedSessions { sessions, node: handed })
    }

    /// Takes what goes on of the sessions of the writer before. Blocks.
    pub(crate) fn take_over(
        &self,
        node: &dyn DatabaseNode,
        sessions: Vec<HandedSession>,
        transactions: Vec<TakenOver>,
    ) {
        let place = Place { node, holder: &self.holder };
        let mut transactions: FxHashMap<u64, TakenOver> =
            transactions.into_iter().map(|one| (one.session, one)).collect();
        for handed in sessions {
            let session = handed.session;
            let taken = transactions.remove(&session);
            self.keep(session, LeftSession::taken_over(handed, taken, &place));
        }
    }

    /// Rolls back the transactions of all that wait. What else they have stays. Blocks.
    pub(crate) fn roll_back_all(&self) {
        let mut waiting = self.waiting.lock();
        let transactions: Vec<_> =
            waiting.values_mut().map(|(_, left)| left.transaction.take()).collect();
        drop(waiting);
        drop(transactions);
    }

    /// No session goes on with any of it. Blocks.
    pub(crate) fn end_all(&self) {
        self.take_all().into_values().for_each(|(_, left)| left.end());
    }

    fn take_all(&self) -> FxHashMap<u64, (Duration, LeftSession)> {
        std::mem::take(&mut *self.waiting.lock())
    }

    /// Ends what sessions have left that have not come. Blocks.
    pub(crate) fn end_forgotten(&self) {
        let now = self.environment.clock.monotonic();
        let is_late = |since: Duration| now.saturating_sub(since) >= PATIENCE;
        let late: Vec<_> = {
            let mut waiting = self.waiting.lock();
            let late = waiting.iter().filter(|(_, (since, _))| is_late(*since));
            let late: Vec<u64> = late.map(|(session, _)| *session).collect();
            late.iter().filter_map(|session| Some((*session, waiting.remove(session)?.1))).collect()
        };
        let of_sessions = late.iter().filter(|(one, _)| *one != HandedTransaction::OF_FOLLOWERS);
        let count = of_sessions.count();
        if count > 0 {
            tracing::warn!(count, "what sessions have left ends, because nobody went on with it");
        }
        late.into_iter().for_each(|(_, left)| left.end());
    }
}

/// The schemas of the temporary tables that go on with these sessions.
pub(crate) fn namespaces(sessions: &[HandedSession]) -> Vec<String> {
    let belongings = sessions.iter().filter_map(|one| one.belongings.as_deref());
    let written = belongings.filter_map(Belongings::decode);
    written.filter_map(|one| one.namespace().map(str::to_owned)).collect()
}
