//! A client's transaction and its scans.

use std::sync::Arc;

use firn_api::rows::{
    Cancellation, Fetched, HeldLeaves, IsolationLevel, RowsError, RowsResult, Savepoint, Scan,
    Summaries, Summed, TableRef, Transaction,
};
use firn_base::Cts;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_bytes::ByteBuf;

use crate::message::{
    Answer, CallNumber, Handle, Held, Setting, TableVersion, TransactionCall, TransactionState,
};

use super::scans::rows_of;
use super::{Object, RowService};

/// After this many empty batches, a fetch returns without rows, so that its caller can react.
const MOST_EMPTY: usize = 64;

/// An open transaction of a client.
pub(super) struct ServedTransaction {
    scans: FxHashMap<Handle, Box<dyn Scan>>,
    /// Summaries of which groups are still to come.
    summaries: FxHashMap<Handle, Box<dyn Summaries>>,
    /// `None` once it has ended.
    inner: Option<Box<dyn Transaction>>,
    cancellation: Arc<Cancellation>,
    /// The point at which it began.
    first: Savepoint,
}

impl ServedTransaction {
    fn over(mut inner: Box<dyn Transaction>) -> ServedTransaction {
        let cancellation = Arc::default();
        inner.set_cancelled(&cancellation);
        let first = inner.savepoint();
        let (scans, summaries) = (FxHashMap::default(), FxHashMap::default());
        ServedTransaction { scans, summaries, inner: Some(inner), cancellation, first }
    }

    pub(super) fn close_scan(&mut self, scan: Handle) {
        self.scans.remove(&scan);
        self.summaries.remove(&scan);
    }

    fn open(&mut self) -> RowsResult<&mut dyn Transaction> {
        self.inner.as_deref_mut().map(|inner| inner as _).ok_or(RowsError::LeaseExpired)
    }

    /// Removes it, to end it.
    fn end(&mut self) -> RowsResult<Box<dyn Transaction>> {
        self.scans.clear();
        self.summaries.clear();
        self.inner.take().ok_or(RowsError::LeaseExpired)
    }

    fn state(&self) -> Option<TransactionState> {
        let inner = self.inner.as_ref()?;
        Some(TransactionState {
            id: inner.id(),
            snapshot: inner.snapshot(),
            savepoint: Some(inner.savepoint()),
            read_mark: inner.read_mark(),
        })
    }

    /// The next groups of a summary, which ends with the last ones.
    fn next_groups(&mut self, handle: Handle) -> RowsResult<Summed> {
        let mut summaries = self.summaries.remove(&handle).ok_or(RowsError::LeaseExpired)?;
        let summed = summaries.next(self.open()?)?;
        if let Summed::Groups { is_last: false, .. } = &summed {
            self.summaries.insert(handle, summaries);
        }
        Ok(summed)
    }

    fn scan_and_transaction(
        &mut self,
        scan: Handle,
    ) -> RowsResult<(&mut Box<dyn Scan>, &mut dyn Transaction)> {
        let found = self.scans.get_mut(&scan).ok_or(RowsError::LeaseExpired)?;
        let inner = self.inner.as_deref_mut().ok_or(RowsError::LeaseExpired)?;
        Ok((found, inner))
    }
}

impl RowService {
    /// Executes a call of a transaction; returns its result and the transaction's state after it.
    pub(super) fn transaction_call(
        &self,
        number: CallNumber,
        handle: Handle,
        before: &[Setting],
        call: TransactionCall<'_>,
    ) -> (RowsResult<Answer>, Option<TransactionState>) {
        let served = match self.transaction(handle, before) {
            Ok(served) => served,
            Err(error) => return (Err(error), None),
        };
        let mut served = served.lock();
        let cancellation = Arc::clone(&served.cancellation);
        let _running = self.running.begin(number, &cancellation);
        let outcome = self
            .apply(&mut served, before)
            .and_then(|()| self.ask_transaction(handle, &mut served, call));
        let state = served.state();
        (outcome, state)
    }

    /// The transaction of a handle, which begins if the settings say so (M1).
    fn transaction(
        &self,
        handle: Handle,
        before: &[Setting],
    ) -> RowsResult<Arc<Mutex<ServedTransaction>>> {
        if let Some(Object::Transaction(served)) = self.object(handle) {
            return Ok(served);
        }
        let inner = match before.first() {
            Some(Setting::Begin { isolation, snapshot }) => self.begin(*isolation, *snapshot)?,
            Some(Setting::TakeUp(described)) => self.node.take_up(described)?,
            _ => return Err(RowsError::LeaseExpired),
        };
        Ok(self.serve(handle, inner))
    }

    fn begin(
        &self,
        isolation: IsolationLevel,
        snapshot: Option<Cts>,
    ) -> RowsResult<Box<dyn Transaction>> {
        match snapshot {
            Some(snapshot) => self.node.begin_at(isolation, snapshot),
            None => self.node.begin(isolation),
        }
    }

    fn serve(&self, handle: Handle, inner: Box<dyn Transaction>) -> Arc<Mutex<ServedTransaction>> {
        let served = Arc::new(Mutex::new(ServedTransaction::over(inner)));
        self.put(handle, Object::Transaction(Arc::clone(&served)));
        served
    }

    /// Applies what happened to a transaction since its last call.
    pub(super) fn apply(
        &self,
        served: &mut ServedTransaction,
        settings: &[Setting],
    ) -> RowsResult<()> {
        let inner = served.open()?;
        for setting in settings {
            match setting {
                Setting::Begin { .. } | Setting::TakeUp(_) => {}
                Setting::LockWaitTimeout(timeout) => inner.set_lock_wait_timeout(*timeout),
                Setting::FirstUpdaterWins(refuses) => inner.set_first_updater_wins(*refuses),
                Setting::MetadataContext(context) => {
                    inner.set_metadata_context(self.context(*context)?);
                }
                Setting::EndStatement => inner.end_statement(),
                Setting::KeepReads => inner.keep_reads(),
                Setting::Unlock { table, key } => inner.unlock(&self.tables.table(*table)?, key),
            }
        }
        Ok(())
    }

    fn ask_transaction(
        &self,
        handle: Handle,
        served: &mut ServedTransaction,
        call: TransactionCall<'_>,
    ) -> RowsResult<Answer> {
        match call {
            TransactionCall::Fetch { .. }
            | TransactionCall::FetchUnlessHeld { .. }
            | TransactionCall::Scan { .. }
            | TransactionCall::Summarise { .. }
            | TransactionCall::NextGroups { .. } => self.ask_scan(served, call),
            TransactionCall::Commit
            | TransactionCall::Rollback
            | TransactionCall::Prepare { .. } => self.end_transaction(handle, served, call),
            TransactionCall::Insert { .. }
            | TransactionCall::InsertRows { .. }
            | TransactionCall::Update { .. }
            | TransactionCall::Delete { .. }
            | TransactionCall::WriteRows { .. }
            | TransactionCall::RollbackTo { .. } => self.write(served, call),
            _ => self.read(served, call),
        }
    }

    fn read(
        &self,
        served: &mut ServedTransaction,
        call: TransactionCall<'_>,
    ) -> RowsResult<Answer> {
        let table = |version: TableVersion| self.tables.table(version);
        let inner = served.open()?;
        Ok(match call {
            TransactionCall::OpenSnapshot => {
                inner.open_snapshot();
                Answer::Done
            }
            TransactionCall::RenewSnapshot { before } => {
                Answer::Flag(inner.renew_snapshot(before)?)
            }
            TransactionCall::OpenReader { handle } => {
                let reader = inner.reader();
                let is_there = reader.is_some();
                reader.map(|reader| self.serve(handle, reader));
                Answer::Flag(is_there)
            }
            TransactionCall::TableForRead { table, known } => {
                self.handed(inner.table_for_read(table)?, known)?
            }
            TransactionCall::TableForWrite { table, known } => {
                self.handed(inner.table_for_write(table)?, known)?
            }
            TransactionCall::CheckTable { table: version } => {
                Answer::Texts(inner.check_table(&table(version)?)?)
            }
            TransactionCall::Get { table: version, key, mode } => {
                let mut payload = Vec::new();
                let found = inner.get(&table(version)?, key, mode, &mut payload)?;
                Answer::Row(found.then(|| (ByteBuf::new(), ByteBuf::from(payload))))
            }
            TransactionCall::GetByEntry { table: version, index, entry, mode } => {
                let (mut key, mut payload) = (Vec::new(), Vec::new());
                let table = table(version)?;
                let found =
                    inner.get_by_entry(&table, index, entry, mode, &mut key, &mut payload)?;
                Answer::Row(found.then(|| (ByteBuf::from(key), ByteBuf::from(payload))))
            }
            TransactionCall::GetRows { table: version, index, keys, mode } => {
                let keys: Vec<Vec<u8>> = keys.into_iter().map(ByteBuf::into_vec).collect();
                let mut found = Vec::with_capacity(keys.len());
                inner.get_rows(&table(version)?, index, &keys, mode, &mut found)?;
                Answer::Found(found)
            }
            TransactionCall::ReadOverflow { table: version, reference, start, end } => {
                let mut bytes = Vec::new();
                inner.read_overflow(&table(version)?, reference, start..end, &mut bytes)?;
                Answer::Bytes(Some(ByteBuf::from(bytes)))
            }
            TransactionCall::Describe => Answer::Described(inner.describe()?.map(Box::new)),
            TransactionCall::Settings => Answer::Done,
            other => unreachable!("{other:?} has a function of its own"),
        })
    }

    fn handed(&self, table: TableRef, known: Option<u64>) -> RowsResult<Answer> {
        let id = table.definition().table_id;
        let known = known.map(|version| TableVersion { table: id, version });
        Ok(Answer::Table(Some(self.tables.hand_out(table, known)?)))
    }

    fn ask_scan(
        &self,
        served: &mut ServedTransaction,
        call: TransactionCall<'_>,
    ) -> RowsResult<Answer> {
        match call {
            TransactionCall::Scan { handle, table, options } => {
                let table = self.tables.table(table)?;
                let scan = served.open()?.scan(&table, &options)?;
                let is_covered = scan.is_covered();
                served.scans.insert(handle, scan);
                Ok(Answer::Flag(is_covered))
            }
            TransactionCall::Summarise { handle, table, options, grouping } => {
                let table = self.tables.table(table)?;
                let inner = served.open()?;
                match inner.summarise(&table, &options, &grouping)? {
                    Some(summaries) => {
                        served.summaries.insert(handle, summaries);
                        served.next_groups(handle).map(|summed| Answer::Summed(Some(summed)))
                    }
                    None => Ok(Answer::Summed(None)),
                }
            }
            TransactionCall::NextGroups { summaries } => {
                served.next_groups(summaries).map(|summed| Answer::Summed(Some(summed)))
            }
            TransactionCall::Fetch { scan } => {
                let cancellation = Arc::clone(&served.cancellation);
                let (scan, inner) = served.scan_and_transaction(scan)?;
                let mut is_there = scan.fetch(inner)?;
                // A filter may leave out whole leaves: they are not worth a message each.
                for _ in 0..MOST_EMPTY {
                    if !is_there || !scan.is_empty() {
                        break;
                    }
                    if cancellation.is_cancelled() {
                        return Err(RowsError::Cancelled);
                    }
                    is_there = scan.fetch(inner)?;
                }
                Ok(Answer::Batch(if is_there { Some(rows_of(&**scan)?) } else { None }))
            }
            TransactionCall::FetchUnlessHeld { scan, held } => {
                let (scan, inner) = served.scan_and_transaction(scan)?;
                let held = match &held {
                    Held::Unknown => HeldLeaves::Unknown,
                    Held::No => HeldLeaves::No,
                    Held::Leaves(leaves) => HeldLeaves::Leaves(leaves),
                };
                let fetched = scan.fetch_unless_held(inner, held)?;
                let rows = match fetched {
                    Fetched::Rows(_) => Some(rows_of(&**scan)?),
                    _ => None,
                };
                Ok(Answer::Fetched(fetched, rows))
            }
            other => unreachable!("{other:?} is no call of a scan"),
        }
    }

    fn write(
        &self,
        served: &mut ServedTransaction,
        call: TransactionCall<'_>,
    ) -> RowsResult<Answer> {
        let first = served.first;
        let inner = served.open()?;
        let table = |version: TableVersion| self.tables.table(version);
        match call {
            TransactionCall::Insert { table: version, row } => {
                inner.insert(&table(version)?, &row)?;
            }
            TransactionCall::InsertRows { table: version, values } => {
                inner.insert_rows(&table(version)?, &values)?;
            }
            TransactionCall::Update { table: version, key, payload, changes } => {
                inner.update(&table(version)?, key, payload, &changes)?;
            }
            TransactionCall::Delete { table: version, key, payload } => {
                inner.delete(&table(version)?, key, payload)?;
            }
            TransactionCall::WriteRows { table: version, rows } => {
                inner.write_rows(&table(version)?, &rows)?;
            }
            TransactionCall::RollbackTo { savepoint } => {
                inner.rollback_to(savepoint.unwrap_or(first))?;
            }
            other => unreachable!("{other:?} does not write"),
        }
        Ok(Answer::Done)
    }

    fn end_transaction(
        &self,
        handle: Handle,
        served: &mut ServedTransaction,
        call: TransactionCall<'_>,
    ) -> RowsResult<Answer> {
        let locks = match &call {
            TransactionCall::Prepare { locks: Some(locks), .. } => match self.take(*locks) {
                Some(Object::Detached(locks)) => locks.lock().take(),
                _ => return Err(RowsError::LeaseExpired),
            },
            _ => None,
        };
        drop(self.take(handle));
        let inner = served.end()?;
        match call {
            TransactionCall::Commit => inner.commit()?,
            TransactionCall::Prepare { xid, .. } => {
                return Ok(Answer::Prepared(inner.prepare(xid, locks)?));
            }
            _ => inner.rollback()?,
        }
        Ok(Answer::Done)
    }
}
