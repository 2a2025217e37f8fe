//! What a session has that ends with its server, besides its transaction, for the session that goes
//! on elsewhere.
//!
//! ```text
//!   session ── leave ──► HeldBelongings ── Belongings, in a message ──► HeldBelongings ── take ──► session
//!                          └───────────────── the switch has failed ─────────────────────────────► session
//! ```
//!
//! Temporary tables are in the database node already. User locks, the locks of `LOCK TABLES` and
//! `HANDLER`, and that of `FLUSH TABLES WITH READ LOCK` are in memory.
//!
//! Invariant: who has the belongings holds these locks, from the moment that the session has left
//! until one takes them. No other session gets one in between.
//!
//! `docs/formats/session-belongings.md` describes the bytes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_api::rows::{LockDuration, LockPatience, MetadataContext, MetadataLock};
use firn_api::server::{LockAnswer, Patience, ServerState};
use firn_base::TableId;
use firn_sql::catalog::Catalog;
use firn_sql::catalog::session::TemporaryNamespace;
use serde::{Deserialize, Serialize};

use crate::server::{WriteGate, Writing};

const VERSION: u8 = 1;

/// Written down. The order of the fields is part of the format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Belongings {
    /// The names of `GET_LOCK`, and how often each was taken.
    pub(crate) user_locks: Vec<(String, u64)>,
    pub(crate) has_read_lock: bool,
    pub(crate) temporary: Option<WrittenNamespace>,
    /// The tables of `LOCK TABLES`.
    pub(crate) locked: Vec<WrittenLockedTable>,
    /// What that holds of definitions.
    pub(crate) locked_definitions: Vec<(TableId, MetadataLock)>,
    pub(crate) handlers: Vec<WrittenHandler>,
    pub(crate) xa: Option<WrittenXa>,
}

/// See [`TemporaryNamespace`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenNamespace {
    schema: String,
    next: u64,
    tables: Vec<(String, String, TableId)>,
}

/// A table of `LOCK TABLES`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenLockedTable {
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) alias: String,
    pub(crate) writes: bool,
}

/// A table that `HANDLER` has open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenHandler {
    pub(crate) alias: String,
    pub(crate) schema: String,
    pub(crate) table: String,
    /// The index and the values of the row that was read last, each as in a session's state.
    pub(crate) place: Option<(Option<String>, Vec<String>)>,
    /// The table whose definition it holds.
    pub(crate) locked: Option<TableId>,
}

/// The XA transaction that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenXa {
    /// Between `XA START` and `XA END`; otherwise idle, after `XA END`.
    pub(crate) is_active: bool,
    pub(crate) xid: Vec<u8>,
}

impl From<TemporaryNamespace> for WrittenNamespace {
    fn from(left: TemporaryNamespace) -> WrittenNamespace {
        let TemporaryNamespace { schema, next, tables } = left;
        WrittenNamespace { schema, next, tables }
    }
}

impl From<&WrittenNamespace> for TemporaryNamespace {
    fn from(written: &WrittenNamespace) -> TemporaryNamespace {
        let WrittenNamespace { schema, next, tables } = written.clone();
        TemporaryNamespace { schema, next, tables }
    }
}

impl Belongings {
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![VERSION]).expect("a vector takes all bytes")
    }

    /// The belongings in `bytes`, which are untrusted; `None` if they are not of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Belongings> {
        let (version, rest) = bytes.split_first()?;
        match postcard::take_from_bytes(rest) {
            Ok((belongings, [])) if *version == VERSION => Some(belongings),
            _ => None,
        }
    }

    /// The schema of the session's temporary tables.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.temporary.as_ref().map(|temporary| &*temporary.schema)
    }

    /// The definitions that are held beyond transactions.
    fn definitions(&self) -> impl Iterator<Item = (TableId, MetadataLock)> {
        let opened = self.handlers.iter().filter_map(|one| one.locked);
        let opened = opened.map(|table| (table, MetadataLock::Shared));
        self.locked_definitions.iter().copied().chain(opened)
    }

    fn writes_locked_tables(&self) -> bool {
        self.locked.iter().any(|one| one.writes)
    }
}

/// What of a server holds belongings.
#[derive(Clone)]
pub(crate) struct Holder {
    pub(crate) server: Arc<dyn ServerState>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) write_gate: Arc<WriteGate>,
}

/// What belongs to a session is not free at this server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotFree {
    #[error("the user lock '{0}' is not free")]
    UserLock(String),
    #[error("the global read lock is not free")]
    ReadLock,
    #[error("the global read lock is held by another session")]
    Writing,
    #[error("the definition of table {0} is locked")]
    Definition(TableId),
}

/// The belongings of a session that has left, until one goes on with them. Dropped, it gives back
/// what is in memory; temporary tables are dropped by [`HeldBelongings::end`], or by the node's
/// next start.
pub(crate) struct HeldBelongings {
    holder: Holder,
    /// The number of the session's connection.
    session: u64,
    written: Belongings,
    /// Has the locks on definitions that outlive transactions.
    metadata: Arc<dyn MetadataContext>,
    /// The permission of `LOCK TABLES … WRITE`.
    writing: Option<Writing>,
    is_taken: bool,
}

/// What a session has taken.
pub(crate) struct TakenBelongings {
    pub(crate) written: Belongings,
    pub(crate) metadata: Arc<dyn MetadataContext>,
    pub(crate) writing: Option<Writing>,
}

impl HeldBelongings {
    /// Those of a session of this server, which holds none of it any more.
    pub(crate) fn left(holder: Holder, session: u64, left: TakenBelongings) -> HeldBelongings {
        let TakenBelongings { written, metadata, writing } = left;
        HeldBelongings { holder, session, written, metadata, writing, is_taken: false }
    }

    /// Those of a session of the writer before; `metadata` has the locks of its transaction. Call
    /// it before there are sessions. Blocks.
    ///
    /// # Errors
    /// What is not free. Nothing is held then.
    pub(crate) fn take_over(
        holder: Holder,
        session: u64,
        written: Belongings,
        metadata: Arc<dyn MetadataContext>,
    ) -> Result<HeldBelongings, NotFree> {
        let left = TakenBelongings { written, metadata, writing: None };
        let mut held = HeldBelongings::left(holder, session, left);
        held.lock_again()?;
        Ok(held)
    }

    fn lock_again(&mut self) -> Result<(), NotFree> {
        let cancelled = AtomicBool::new(false);
        let patience = Patience { timeout: Some(Duration::ZERO), cancelled: &cancelled };
        let server = &self.holder.server;
        for (name, times) in &self.written.user_locks {
            for _ in 0..*times {
                if server.take_user_lock(self.session, name, &patience) != LockAnswer::Granted {
                    return Err(NotFree::UserLock(name.clone()));
                }
            }
        }
        let at_once = LockPatience::of(Duration::ZERO);
        for (table, lock) in self.written.definitions() {
            let acquired = self.metadata.acquire(table, lock, LockDuration::Explicit, &at_once);
            acquired.map_err(|_| NotFree::Definition(table))?;
        }
        if self.written.writes_locked_tables() {
            self.writing = Some(self.holder.write_gate.try_write().ok_or(NotFree::Writing)?);
        }
        match self.written.has_read_lock {
            true => server.take_read_lock(self.session, &patience).map_err(|_| NotFree::ReadLock),
            false => Ok(()),
        }
    }

    pub(crate) fn written(&self) -> &Belongings {
        &self.written
    }

    /// A session goes on with them.
    pub(crate) fn take(mut self) -> TakenBelongings {
        self.is_taken = true;
        TakenBelongings {
            written: std::mem::take(&mut self.written),
            metadata: Arc::clone(&self.metadata),
            writing: self.writing.take(),
        }
    }

    /// No session goes on with them. Blocks.
    pub(crate) fn end(self) {
        let Some(temporary) = &self.written.temporary else { return };
        if let Err(error) = self.holder.catalog.drop_left(&temporary.into()) {
            tracing::warn!(%error, "temporary tables could not be dropped now; the next start does");
        }
    }
}

impl Drop for HeldBelongings {
    fn drop(&mut self) {
        if !self.is_taken {
            self.metadata.release_explicit(None);
            self.holder.server.release_user_locks(self.session);
            self.holder.server.release_read_lock(self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belongings() -> Belongings {
        Belongings {
            user_locks: vec![("x".to_owned(), 2)],
            has_read_lock: false,
            temporary: Some(WrittenNamespace {
                schema: "#temporary-1-7".to_owned(),
                next: 3,
                tables: vec![("shop".to_owned(), "t".to_owned(), TableId(17))],
            }),
            locked: vec![WrittenLockedTable {
                schema: "shop".to_owned(),
                table: "u".to_owned(),
                alias: "a".to_owned(),
                writes: true,
            }],
            locked_definitions: vec![(TableId(18), MetadataLock::NoReadWrite)],
            handlers: vec![WrittenHandler {
                alias: "h".to_owned(),
                schema: "shop".to_owned(),
                table: "u".to_owned(),
                place: Some((Some("i".to_owned()), vec!["{}".to_owned()])),
                locked: Some(TableId(18)),
            }],
            xa: Some(WrittenXa { is_active: true, xid: vec![1, 2] }),
        }
    }

    #[test]
    fn belongings_have_these_bytes() {
        let expected = [
            &[1][..],         // version
            &[1, 1, b'x', 2], // one user lock, taken twice
            &[0],             // no read lock
            &[1, 14],
            b"#temporary-1-7",
            &[3], // temporary tables, the next one is 3
            &[1, 4],
            b"shop",
            &[1, b't', 17], // one: shop.t is table 17
            &[1, 4],
            b"shop",
            &[1, b'u', 1, b'a', 1], // LOCK TABLES shop.u AS a WRITE
            &[1, 18, 6],            // its definition: no read or write
            &[1, 1, b'h', 4],
            b"shop",
            &[1, b'u'], // one HANDLER
            &[1, 1, 1, b'i', 1, 2],
            b"{}",            // its place: index i, one value
            &[1, 18],         // the definition that it holds
            &[1, 1, 2, 1, 2], // XA, active, the identifier
        ]
        .concat();
        assert_eq!(belongings().encode(), expected);
        assert_eq!(Belongings::decode(&expected), Some(belongings()));
        assert_eq!(Belongings::decode(&expected[..expected.len() - 1]), None);
        assert_eq!(Belongings::decode(&[&expected[..], &[0]].concat()), None);
        assert_eq!(Belongings::decode(&[2]), None);
    }
}
