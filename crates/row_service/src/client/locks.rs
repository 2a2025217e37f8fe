//! Metadata locks at a remote node.

use std::any::Any;
use std::sync::Arc;

use firn_api::rows::{
    Cancellation, DetachedLocks, LockDuration, LockMark, LockPatience, MetadataContext,
    MetadataLock, MetadataLocks, RowsResult,
};
use firn_base::TableId;

use crate::message::{Answer, Call, Handle, LocksCall, Message};

use super::connection::Connection;

/// Grants the locks of a remote node.
pub(super) struct RemoteLocks {
    connection: Arc<Connection>,
}

impl RemoteLocks {
    pub(super) fn of(connection: &Arc<Connection>) -> RemoteLocks {
        RemoteLocks { connection: Arc::clone(connection) }
    }
}

impl MetadataLocks for RemoteLocks {
    fn open(self: Arc<Self>) -> Arc<dyn MetadataContext> {
        let handle = self.connection.new_handle();
        Arc::new(RemoteContext { connection: Arc::clone(&self.connection), handle })
    }
}

/// A session's locks. The node learns of them with the first call (M1).
pub(super) struct RemoteContext {
    connection: Arc<Connection>,
    handle: Handle,
}

impl RemoteContext {
    /// The handle of a context of this crate.
    pub(super) fn handle_of(context: Arc<dyn MetadataContext>) -> Option<Handle> {
        let any: Arc<dyn Any + Send + Sync> = context;
        any.downcast::<RemoteContext>().ok().map(|context| context.handle)
    }

    fn ask(&self, call: LocksCall, cancellation: Option<&Cancellation>) -> RowsResult<Answer> {
        let call = Call::Locks { handle: self.handle, call };
        self.connection.call(call, cancellation)?.outcome
    }

    fn ask_flag(&self, call: LocksCall) -> bool {
        matches!(self.ask(call, None), Ok(Answer::Flag(true)))
    }

    /// A call without an answer. If it is lost, the node releases all locks when the link ends
    /// (M5).
    fn tell(&self, call: LocksCall) {
        let _ = self.ask(call, None);
    }
}

impl MetadataContext for RemoteContext {
    fn acquire(
        &self,
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
        patience: &LockPatience<'_>,
    ) -> RowsResult<()> {
        let LockPatience { timeout, cancelled, transaction, .. } = *patience;
        let call = LocksCall::Acquire { table, lock, duration, timeout, transaction };
        // Only the node knows whether it waits.
        patience.while_waiting(|| self.ask(call, cancelled).map(|_| ()))
    }

    fn holds(&self, table: TableId, lock: MetadataLock) -> bool {
        self.ask_flag(LocksCall::Holds { table, lock })
    }

    fn mark(&self) -> LockMark {
        match self.ask(LocksCall::Mark, None) {
            Ok(Answer::Mark(mark)) => mark,
            _ => LockMark::default(),
        }
    }

    fn release_to(&self, mark: LockMark) {
        self.tell(LocksCall::ReleaseTo { mark });
    }

    fn release_transaction(&self) {
        self.tell(LocksCall::ReleaseTransaction);
    }

    fn release_explicit(&self, table: Option<TableId>) {
        self.tell(LocksCall::ReleaseExplicit { table });
    }

    fn downgrade(&self, table: TableId, to: MetadataLock) {
        self.tell(LocksCall::Downgrade { table, to });
    }

    fn is_wanted(&self, table: TableId) -> bool {
        self.ask_flag(LocksCall::IsWanted { table })
    }

    fn detach(&self) -> DetachedLocks {
        let handle = self.connection.new_handle();
        if !self.ask_flag(LocksCall::Detach { handle }) {
            return None;
        }
        let connection = Arc::clone(&self.connection);
        Some(Box::new(RemoteDetached { connection, handle: Some(handle) }))
    }
}

impl Drop for RemoteContext {
    fn drop(&mut self) {
        self.connection.cast(&Message::Close(self.handle));
    }
}

/// Locks on their way to a prepared transaction.
struct RemoteDetached {
    connection: Arc<Connection>,
    /// `None` once they were handed on.
    handle: Option<Handle>,
}

/// The handle of detached locks of this crate; the caller must hand it on.
pub(super) fn handle_of_detached(locks: Box<dyn Any + Send + Sync>) -> Option<Handle> {
    locks.downcast::<RemoteDetached>().ok().and_then(|mut locks| locks.handle.take())
}

impl Drop for RemoteDetached {
    fn drop(&mut self) {
        if let Some(handle) = self.handle {
            self.connection.cast(&Message::Close(handle));
        }
    }
}
