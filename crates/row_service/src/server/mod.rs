//! The node's end: the objects of a client, and the calls on them. See [`crate`] for the rules.
//!
//! ```text
//!   message ─► objects[handle] ─► the seam's own object ─► reply
//!                 Transaction   with its scans
//!                 Locks         a session's metadata locks
//!                 Detached      locks of a prepared transaction, on their way
//!                 Change        of definitions
//!                 Build         of an index
//! ```
//!
//! Latch rules:
//! 1. The map of objects is locked only to find, add or remove one; no call to the node is made
//!    under that lock.
//! 2. An object is locked for a whole call. By rule M2 of the crate, no thread waits for it.

mod running;
mod scans;
mod tables;
mod transaction;

use std::any::Any;
use std::sync::Arc;

use firn_api::rows::{
    Cancellation, DatabaseNode, Definitions, IndexBuild, LockPatience, MetadataContext, NewIndex,
    RowsError, RowsResult,
};
use firn_base::TableId;
use firn_format::definition::{ColumnDefinition, TableDefinition};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_bytes::ByteBuf;

use crate::codec::{Damage, damaged_definition, decode, encode};
use crate::message::{
    Answer, BuildCall, Call, CallNumber, ChangeCall, Handle, LocksCall, Message, NodeCall, Reply,
    TableVersion,
};

use running::RunningCalls;
use tables::HandedTables;
use transaction::ServedTransaction;

/// A client's objects at a node. Dropping it ends all of them: open transactions are rolled back.
pub struct RowService {
    node: Arc<dyn DatabaseNode>,
    objects: Mutex<FxHashMap<Handle, Object>>,
    tables: HandedTables,
    running: RunningCalls,
}

#[derive(Clone)]
enum Object {
    Transaction(Arc<Mutex<ServedTransaction>>),
    Locks(Arc<dyn MetadataContext>),
    Detached(Arc<Mutex<Option<Box<dyn Any + Send + Sync>>>>),
    Change(Arc<Mutex<ServedChange>>),
    Build(Arc<Mutex<ServedBuild>>),
}

struct ServedChange {
    change: Option<Box<dyn Definitions>>,
    cancellation: Arc<Cancellation>,
}

struct ServedBuild {
    build: Option<Box<dyn IndexBuild>>,
    cancellation: Arc<Cancellation>,
}

impl RowService {
    /// A service of `node` for a new client.
    #[must_use]
    pub fn new(node: Arc<dyn DatabaseNode>) -> RowService {
        RowService {
            node,
            objects: Mutex::default(),
            tables: HandedTables::default(),
            running: RunningCalls::default(),
        }
    }

    /// Executes a call and returns the reply's bytes. Blocks as the call does.
    ///
    /// # Errors
    /// The bytes are not a call. Nothing was done.
    pub fn call(&self, message: &[u8]) -> Result<Vec<u8>, Damage> {
        match decode(message)? {
            Message::Call { number, call } => encode(&self.reply_to(number, call)),
            _ => Err(Damage::Message("it has no reply".to_owned())),
        }
    }

    /// Executes a message that has no reply. Blocks while a transaction is rolled back.
    ///
    /// # Errors
    /// The bytes are not such a message. Nothing was done.
    pub fn cast(&self, message: &[u8]) -> Result<(), Damage> {
        match decode(message)? {
            Message::Call { .. } => return Err(Damage::Message("it wants a reply".to_owned())),
            Message::Cancel(number) => self.running.cancel(number),
            Message::Close(handle) => drop(self.take(handle)),
            Message::CloseScan { transaction, scan } => {
                if let Some(Object::Transaction(transaction)) = self.object(transaction) {
                    transaction.lock().close_scan(scan);
                }
            }
            Message::Tell { transaction, settings } => {
                if let Some(Object::Transaction(found)) = self.object(transaction) {
                    // A failure here either repeats in the next call or has no consequence.
                    let _ = self.apply(&mut found.lock(), &settings);
                }
            }
            Message::GiveBack { table, received } => self.tables.give_back(table, received),
        }
        Ok(())
    }

    fn reply_to(&self, number: CallNumber, call: Call<'_>) -> Reply {
        let (outcome, transaction) = match call {
            Call::Node(call) => (self.node_call(number, call), None),
            Call::Transaction { handle, before, call } => {
                self.transaction_call(number, handle, &before, call)
            }
            Call::Locks { handle, call } => (self.locks_call(number, handle, &call), None),
            Call::Change { handle, call } => (self.change_call(number, handle, call), None),
            Call::Build { handle, call } => (self.build_call(number, handle, &call), None),
        };
        Reply { definitions_version: self.node.definitions_version(), transaction, outcome }
    }

    fn object(&self, handle: Handle) -> Option<Object> {
        self.objects.lock().get(&handle).cloned()
    }

    fn put(&self, handle: Handle, object: Object) {
        self.objects.lock().insert(handle, object);
    }

    /// Removes an object from the map. The caller drops it after unlocking the map (latch rule 1).
    fn take(&self, handle: Handle) -> Option<Object> {
        self.objects.lock().remove(&handle)
    }

    fn node_call(&self, number: CallNumber, call: NodeCall<'_>) -> RowsResult<Answer> {
        let node = &*self.node;
        Ok(match call {
            NodeCall::DefinitionsVersion => Answer::Done,
            NodeCall::Report => Answer::Report(Box::new(node.report()?)),
            NodeCall::StatusText => Answer::StatusText(node.status_text()?),
            NodeCall::Schemas => {
                Answer::Texts(node.schemas()?.into_iter().map(String::from).collect())
            }
            NodeCall::SchemaOptions { schema } => {
                let options = node.schema_options(schema)?;
                Answer::Bytes(options.map(|options| ByteBuf::from(options.to_vec())))
            }
            NodeCall::TablesOf { schema } => {
                let tables = node.tables_of(schema)?;
                let hand_out = |table| self.tables.hand_out(table, None);
                let tables = tables.map(|tables| tables.into_iter().map(hand_out).collect());
                Answer::Tables(tables.transpose()?)
            }
            NodeCall::TableNamed { schema, name, known } => {
                let table = node.table_named(schema, name)?;
                Answer::Table(table.map(|table| self.tables.hand_out(table, known)).transpose()?)
            }
            NodeCall::Table { table, known } => {
                let known = known.map(|version| TableVersion { table, version });
                let found = node.table(table)?;
                Answer::Table(found.map(|table| self.tables.hand_out(table, known)).transpose()?)
            }
            NodeCall::BeginChange { handle } => self.begin_change(handle)?,
            NodeCall::BeginIndex { handle, table, new, lock_wait_timeout } => {
                self.begin_index(number, handle, table, &new, lock_wait_timeout)?
            }
            NodeCall::TakeAutoIncrement { table, count } => {
                Answer::Number(node.take_auto_increment(&self.tables.table(table)?, count)?)
            }
            NodeCall::PassAutoIncrement { table, value } => {
                node.pass_auto_increment(&self.tables.table(table)?, value)?;
                Answer::Done
            }
            NodeCall::NextAutoIncrement { table } => {
                Answer::Number(node.next_auto_increment(&self.tables.table(table)?)?)
            }
            NodeCall::Estimate { table, index, range } => {
                Answer::Estimate(node.estimate(&self.tables.table(table)?, index, &range)?)
            }
            NodeCall::PreparedTransactions => {
                let xids = node.prepared_transactions()?;
                Answer::Identifiers(
                    xids.into_iter().map(|xid| ByteBuf::from(xid.into_vec())).collect(),
                )
            }
            NodeCall::SetCommitting { xid } => Answer::Lowest(node.set_committing(xid)?),
            NodeCall::CommitPrepared { xid, at } => {
                node.commit_prepared(xid, at)?;
                Answer::Done
            }
            NodeCall::RollbackPrepared { xid } => {
                node.rollback_prepared(xid)?;
                Answer::Done
            }
        })
    }

    fn begin_change(&self, handle: Handle) -> RowsResult<Answer> {
        let cancellation = Arc::default();
        let mut change = self.node.change_definitions()?;
        change.set_cancelled(&cancellation);
        let served = ServedChange { change: Some(change), cancellation };
        self.put(handle, Object::Change(Arc::new(Mutex::new(served))));
        Ok(Answer::Done)
    }

    fn begin_index(
        &self,
        number: CallNumber,
        handle: Handle,
        table: TableId,
        new: &NewIndex,
        lock_wait_timeout: std::time::Duration,
    ) -> RowsResult<Answer> {
        let cancellation = Arc::default();
        let build = {
            let _running = self.running.begin(number, &cancellation);
            self.node.begin_index(table, new, lock_wait_timeout, Some(&cancellation))?
        };
        let is_filled = build.is_filled();
        let served = ServedBuild { build: Some(build), cancellation };
        self.put(handle, Object::Build(Arc::new(Mutex::new(served))));
        Ok(Answer::Flag(is_filled))
    }

    /// A session's context, which begins with the first call on it (M1).
    fn context(&self, handle: Handle) -> RowsResult<Arc<dyn MetadataContext>> {
        match self.object(handle) {
            Some(Object::Locks(context)) => return Ok(context),
            Some(_) => return Err(other_object()),
            None => {}
        }
        let context = self.node.metadata_locks().open();
        self.put(handle, Object::Locks(Arc::clone(&context)));
        Ok(context)
    }

    fn locks_call(
        &self,
        number: CallNumber,
        handle: Handle,
        call: &LocksCall,
    ) -> RowsResult<Answer> {
        let context = self.context(handle)?;
        match *call {
            LocksCall::Acquire { table, lock, duration, timeout, transaction } => {
                let cancellation = Arc::default();
                let _running = self.running.begin(number, &cancellation);
                let cancelled = Some(&*cancellation);
                let patience = LockPatience { cancelled, transaction, ..LockPatience::of(timeout) };
                context.acquire(table, lock, duration, &patience)?;
            }
            LocksCall::Holds { table, lock } => {
                return Ok(Answer::Flag(context.holds(table, lock)));
            }
            LocksCall::Mark => return Ok(Answer::Mark(context.mark())),
            LocksCall::ReleaseTo { mark } => context.release_to(mark),
            LocksCall::ReleaseTransaction => context.release_transaction(),
            LocksCall::ReleaseExplicit { table } => context.release_explicit(table),
            LocksCall::Downgrade { table, to } => context.downgrade(table, to),
            LocksCall::IsWanted { table } => return Ok(Answer::Flag(context.is_wanted(table))),
            LocksCall::Detach { handle } => {
                let detached = context.detach();
                let are_there = detached.is_some();
                if are_there {
                    self.put(handle, Object::Detached(Arc::new(Mutex::new(detached))));
                }
                return Ok(Answer::Flag(are_there));
            }
        }
        Ok(Answer::Done)
    }

    fn change_call(
        &self,
        number: CallNumber,
        handle: Handle,
        call: ChangeCall<'_>,
    ) -> RowsResult<Answer> {
        let Some(Object::Change(served)) = self.object(handle) else {
            return Err(RowsError::LeaseExpired);
        };
        let mut served = served.lock();
        let _running = self.running.begin(number, &served.cancellation);
        let change = served.change.as_deref_mut().ok_or(RowsError::LeaseExpired)?;
        match call {
            ChangeCall::LockWaitTimeout(timeout) => change.set_lock_wait_timeout(timeout),
            ChangeCall::MetadataContext(context) => {
                change.set_metadata_context(self.context(context)?);
            }
            ChangeCall::CreateSchema { name, options } => change.create_schema(name, options)?,
            ChangeCall::AlterSchema { name, options } => change.alter_schema(name, options)?,
            ChangeCall::DropSchema { name } => change.drop_schema(name)?,
            ChangeCall::CreateTable { definition } => {
                let definition =
                    TableDefinition::decode_draft(definition).map_err(damaged_definition)?;
                return Ok(Answer::TableId(change.create_table(definition)?));
            }
            ChangeCall::DropTable { table } => change.drop_table(table)?,
            ChangeCall::TruncateTable { table } => change.truncate_table(table)?,
            ChangeCall::RenameTable { table, schema, name } => {
                change.rename_table(table, schema, name)?;
            }
            ChangeCall::ReplaceTable { table, schema, name } => {
                change.replace_table(table, schema, name)?;
            }
            ChangeCall::AddColumn { table, column } => {
                let column = ColumnDefinition::decode(column).map_err(damaged_definition)?;
                return Ok(Answer::Ordinal(change.add_column(table, column)?));
            }
            ChangeCall::DropColumn { table, ordinal } => change.drop_column(table, ordinal)?,
            ChangeCall::LockDefinition { table } => {
                let definition =
                    change.lock_definition(table)?.encode_draft().map_err(damaged_definition)?;
                return Ok(Answer::Bytes(Some(ByteBuf::from(definition))));
            }
            ChangeCall::AlterOptions { definition } => {
                let definition =
                    TableDefinition::decode_draft(definition).map_err(damaged_definition)?;
                change.alter_options(definition)?;
            }
            ChangeCall::DropIndex { table, name } => change.drop_index(table, name)?,
            ChangeCall::Commit => {
                drop(self.take(handle));
                served.change.take().ok_or(RowsError::LeaseExpired)?.commit()?;
            }
        }
        Ok(Answer::Done)
    }

    fn build_call(
        &self,
        number: CallNumber,
        handle: Handle,
        call: &BuildCall,
    ) -> RowsResult<Answer> {
        let Some(Object::Build(served)) = self.object(handle) else {
            return Err(RowsError::LeaseExpired);
        };
        let mut served = served.lock();
        let _running = self.running.begin(number, &served.cancellation);
        match call {
            BuildCall::Step => {
                let build = served.build.as_mut().ok_or(RowsError::LeaseExpired)?;
                let progress = build.step()?;
                Ok(Answer::Progress(progress, build.is_filled()))
            }
            BuildCall::Finish => {
                drop(self.take(handle));
                served.build.take().ok_or(RowsError::LeaseExpired)?.finish()?;
                Ok(Answer::Done)
            }
        }
    }
}

impl std::fmt::Debug for RowService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowService")
            .field("objects", &self.objects.lock().len())
            .finish_non_exhaustive()
    }
}

/// The error for a handle that names an object of another kind.
fn other_object() -> RowsError {
    RowsError::Unavailable { reason: "the handle is of another kind of object".into() }
}
