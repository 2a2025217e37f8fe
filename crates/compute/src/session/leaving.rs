//! A session leaves its transaction and its belongings to the one that goes on elsewhere, which
//! takes them ([`crate::left_sessions`]).
//!
//! All of it goes together: a session that has some of its locks and tables only would answer as if
//! it had never had the others. So belongings of which something is missing are given back as a
//! whole, and the client's connection ends. A transaction may be missing: then it was rolled back.

use std::sync::atomic::Ordering;

use super::SqlSession;
use super::definition_locks::locks_of;
use super::document::DocumentError;
use super::handler::Handlers;
use super::locked_tables::{LockedTable, LockedTables};
use super::runner::StatementRunner;
use super::transaction::{XaState, decode_xid, encode_xid};
use crate::belongings::{
    Belongings, HeldBelongings, TakenBelongings, WrittenLockedTable, WrittenXa,
};
use crate::left_sessions::LeftSession;

/// Why a session does not take its belongings.
#[derive(Debug, thiserror::Error)]
enum Missing {
    #[error(transparent)]
    Temporary(#[from] firn_sql::error::SqlError),
    #[error(transparent)]
    Handler(#[from] DocumentError),
}

impl SqlSession {
    /// See [`firn_wire::Session::leave_session`].
    pub(crate) fn leave_what_ends(&mut self) -> bool {
        if !self.runner.transactions.can_be_left() {
            return false;
        }
        let is_bound = self.is_bound();
        let transaction = self.runner.transactions.leave();
        let belongings = is_bound.then(|| self.leave_belongings());
        let left = &self.runner.instance.left;
        left.keep(self.runner.facts.id, LeftSession { transaction, belongings });
        self.has_left = true;
        true
    }

    /// The transaction was left already.
    fn leave_belongings(&mut self) -> HeldBelongings {
        let SqlSession { runner, handlers, .. } = self;
        let StatementRunner { instance, facts, catalog, transactions, locked, .. } = runner;
        let LockedTables { tables, writing } = std::mem::take(locked);
        let written = Belongings {
            user_locks: facts.user_locks(),
            has_read_lock: instance.server.holds_read_lock(facts.id),
            // A table that is gone is not locked.
            locked_definitions: locks_of(catalog, &tables).unwrap_or_default(),
            temporary: catalog.leave_temporary_tables().map(Into::into),
            locked: tables.into_iter().map(Into::into).collect(),
            handlers: handlers.leave(),
            xa: transactions.xa.take().map(Into::into),
        };
        let metadata = transactions.leave_definitions(instance.node.metadata_locks().open());
        let left = TakenBelongings { written, metadata, writing };
        HeldBelongings::left(instance.left.holder(), facts.id, left)
    }

    /// See [`firn_wire::Session::take_left`].
    pub(crate) fn take_what_was_left(&mut self) -> bool {
        let left = self.runner.instance.left.take(self.runner.facts.id);
        let Some(LeftSession { transaction, belongings }) = left else { return false };
        if let Some(held) = belongings
            && let Err(error) = self.take_belongings(held, transaction.is_some())
        {
            tracing::warn!(%error, "a session cannot go on with all that it had");
        }
        let StatementRunner { transactions, settings, facts, .. } = &mut self.runner;
        if let Some(transaction) = transaction {
            transactions.go_on(transaction, settings, facts);
        }
        true
    }

    fn take_belongings(
        &mut self,
        held: HeldBelongings,
        has_transaction: bool,
    ) -> Result<(), Missing> {
        let handlers = Handlers::take(held.written().handlers.clone())?;
        let runner = &mut self.runner;
        if let Some(temporary) = &held.written().temporary {
            runner.catalog.take_temporary_tables(&temporary.into())?;
        }
        let TakenBelongings { written, metadata, writing } = held.take();
        let locked = written.locked_definitions.iter().map(|(table, _)| *table).collect();
        runner.transactions.take_definitions(metadata, locked);
        // One that has lost its transaction is outside of XA.
        let xa = written.xa.filter(|_| has_transaction);
        runner.transactions.xa = xa.as_ref().and_then(XaState::again);
        let tables = written.locked.into_iter().map(Into::into).collect();
        runner.locked = LockedTables { tables, writing };
        runner.facts.has_asked_for_locks.store(!written.user_locks.is_empty(), Ordering::Relaxed);
        self.handlers = handlers;
        Ok(())
    }
}

impl From<LockedTable> for WrittenLockedTable {
    fn from(locked: LockedTable) -> WrittenLockedTable {
        let LockedTable { schema, table, alias, writes } = locked;
        WrittenLockedTable { schema, table, alias, writes }
    }
}

impl From<WrittenLockedTable> for LockedTable {
    fn from(written: WrittenLockedTable) -> LockedTable {
        let WrittenLockedTable { schema, table, alias, writes } = written;
        LockedTable { schema, table, alias, writes }
    }
}

impl From<XaState> for WrittenXa {
    fn from(state: XaState) -> WrittenXa {
        let is_active = matches!(state, XaState::Active(_));
        let (XaState::Active(xid) | XaState::Idle(xid)) = state;
        WrittenXa { is_active, xid: encode_xid(&xid) }
    }
}

impl XaState {
    fn again(written: &WrittenXa) -> Option<XaState> {
        let state = if written.is_active { XaState::Active } else { XaState::Idle };
        decode_xid(&written.xid).map(state)
    }
}
