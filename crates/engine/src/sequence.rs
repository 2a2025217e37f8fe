//! Counters that never hand out a number twice: `AUTO_INCREMENT` values, row ids, ids of tables and
//! spaces.
//!
//! ```text
//!   record   …   1024                 2048      everything below was, or may have been, handed out
//!   memory        1024 ─next──► · · · ┘ limit   nothing of this is written down
//! ```
//!
//! A block is reserved in a separate transaction before any number of it is handed out, so a crash
//! leaves a gap, never a repetition. No thread waits for that transaction to become durable: every
//! use of a number follows it in the log.

use std::sync::Arc;

use firn_base::{IndexId, TableId};
use parking_lot::Mutex;

use crate::error::EngineError;
use crate::transaction::{
    IsolationLevel, ReadMode, ReadTransaction, RecordReader, Transaction, TransactionSystem,
    Versions, WaitPolicy,
};

/// The stored counters of a node.
pub(crate) struct SequenceStore {
    versions: Arc<Versions>,
    /// Only a node that writes hands out numbers.
    system: Option<Arc<TransactionSystem>>,
    tree: IndexId,
}

impl SequenceStore {
    /// The counters of a node that writes.
    pub(crate) fn of_writer(system: &Arc<TransactionSystem>, tree: IndexId) -> SequenceStore {
        let versions = Arc::clone(system.versions());
        SequenceStore { versions, system: Some(Arc::clone(system)), tree }
    }

    /// The counters of a node that only reads them.
    pub(crate) fn of_reader(versions: &Arc<Versions>, tree: IndexId) -> SequenceStore {
        SequenceStore { versions: Arc::clone(versions), system: None, tree }
    }

    fn system(&self) -> Result<&Arc<TransactionSystem>, EngineError> {
        self.system.as_ref().ok_or(EngineError::ReadOnly)
    }
}

/// The use of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SequenceKind {
    Space = 1,
    Table = 2,
    RowId = 3,
    AutoIncrement = 4,
}

/// Numbers that are reserved and not handed out yet.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    next: u64,
    limit: u64,
}

pub struct Sequence {
    store: Arc<SequenceStore>,
    kind: SequenceKind,
    table: TableId,
    first: u64,
    block_length: u64,
    block: Mutex<Block>,
}

/// The counters of a table.
pub struct TableSequences {
    /// Row ids of a table without a primary key.
    pub row_id: Sequence,
    /// `AUTO_INCREMENT` values, from 1 on.
    pub auto_increment: Sequence,
}

impl TableSequences {
    pub(crate) fn new(store: &Arc<SequenceStore>, table: TableId) -> TableSequences {
        let sequence = |kind| Sequence::new(store, kind, table, 1, 1024);
        TableSequences {
            row_id: sequence(SequenceKind::RowId),
            auto_increment: sequence(SequenceKind::AutoIncrement),
        }
    }

    /// Deletes the records, in the transaction that drops or truncates the table.
    pub(crate) fn delete(&self, trx: &mut Transaction) -> Result<(), EngineError> {
        for sequence in [&self.row_id, &self.auto_increment] {
            trx.delete(sequence.store.tree, &sequence.key())?;
        }
        Ok(())
    }

    /// Returns the numbers that were reserved and not handed out.
    pub(crate) fn give_back(&self) -> Result<(), EngineError> {
        self.row_id.give_back()?;
        self.auto_increment.give_back()
    }
}

impl Sequence {
    /// A sequence that begins with `first`, unless its record has a higher number. Reads nothing
    /// yet.
    pub(crate) fn new(
        store: &Arc<SequenceStore>,
        kind: SequenceKind,
        table: TableId,
        first: u64,
        block_length: u64,
    ) -> Sequence {
        let (store, block) = (Arc::clone(store), Mutex::default());
        Sequence { store, kind, table, first, block_length, block }
    }

    /// Takes `count` consecutive numbers and returns the first. Blocks once per block.
    ///
    /// # Errors
    /// [`EngineError::SequenceExhausted`] when the numbers end, or why the record could not be
    /// written.
    pub fn take(&self, count: u64) -> Result<u64, EngineError> {
        let taken = {
            let mut block = self.block.lock();
            let first = block.next;
            let fits = block.limit - block.next >= count;
            fits.then(|| block.next += count).map(|()| first)
        };
        match taken {
            Some(first) => Ok(first),
            None => self.take_from_new_block(count),
        }
    }

    fn take_from_new_block(&self, count: u64) -> Result<u64, EngineError> {
        let length = count.max(self.block_length);
        let first = self.reserve(|stored| stored, length)?;
        {
            // If the new block continues the current one, the rest of the current one comes first.
            let mut block = self.block.lock();
            if block.limit == first && block.next < block.limit {
                let first = block.next;
                *block = Block { next: first + count, limit: block.limit + length };
                return Ok(first);
            }
        }
        self.install(first + count, first + length);
        Ok(first)
    }

    /// Ensures that numbers up to and including `value` are not handed out from now on. Blocks at
    /// most once per block.
    ///
    /// # Errors
    /// Why the record could not be written.
    pub fn pass(&self, value: u64) -> Result<(), EngineError> {
        {
            let mut block = self.block.lock();
            if value < block.next {
                return Ok(());
            }
            if value < block.limit {
                block.next = value + 1;
                return Ok(());
            }
        }
        let past = value.saturating_add(1);
        let length = self.block_length.min(u64::MAX - past);
        let first = self.reserve(|stored| stored.max(past), length)?;
        self.install(first, first + length);
        Ok(())
    }

    /// The next number, as far as this node knows. Blocks if no number was taken yet.
    ///
    /// # Errors
    /// Why the record could not be read.
    pub fn peek(&self) -> Result<u64, EngineError> {
        let block = *self.block.lock();
        if block.limit > block.next {
            return Ok(block.next);
        }
        let mut trx = ReadTransaction::begin(&self.store.versions, IsolationLevel::ReadCommitted)?;
        let stored = self.stored(&mut trx, ReadMode::Consistent)?;
        Ok(stored.unwrap_or(self.first).max(block.next))
    }

    /// Keeps a reserved block, unless another thread has installed a later one: then it becomes a
    /// gap.
    fn install(&self, next: u64, limit: u64) {
        let mut block = self.block.lock();
        if next >= block.limit {
            *block = Block { next, limit };
        }
    }

    /// Reserves `length` numbers, starting at `from(the record's number)`.
    fn reserve(&self, from: impl Fn(u64) -> u64, length: u64) -> Result<u64, EngineError> {
        let mut trx = Transaction::begin(self.store.system()?, IsolationLevel::ReadCommitted)?;
        // A read does not lock an absent record, so two threads may get here. The insert of the
        // second one fails, and it reads again.
        loop {
            let stored = self.stored(&mut trx, ReadMode::Update(WaitPolicy::Wait))?;
            let first = from(stored.unwrap_or(self.first).max(self.first));
            let limit = first.checked_add(length);
            let limit = limit.ok_or(EngineError::SequenceExhausted(self.table))?;
            let (key, value) = (self.key(), limit.to_le_bytes());
            let written = match stored {
                Some(_) => trx.update(self.store.tree, &key, &value)?,
                None => match trx.insert(self.store.tree, &key, &value) {
                    Err(EngineError::DuplicateKey { .. }) => false,
                    other => other.map(|()| true)?,
                },
            };
            if written {
                trx.commit_without_waiting()?;
                return Ok(first);
            }
        }
    }

    fn stored(
        &self,
        trx: &mut impl RecordReader,
        mode: ReadMode,
    ) -> Result<Option<u64>, EngineError> {
        let mut value = Vec::with_capacity(8);
        if !trx.get(self.store.tree, &self.key(), mode, &mut value)? {
            return Ok(None);
        }
        let bytes = value.as_slice().try_into().map_err(|_| EngineError::Corrupt {
            page: self.store.tree.root(),
            what: "a counter is not eight bytes long".to_owned(),
        })?;
        Ok(Some(u64::from_le_bytes(bytes)))
    }

    /// Records exactly the numbers that were handed out, so that an orderly shutdown leaves no gap.
    fn give_back(&self) -> Result<(), EngineError> {
        let block = std::mem::take(&mut *self.block.lock());
        if block.limit == block.next {
            return Ok(());
        }
        let mut trx = Transaction::begin(self.store.system()?, IsolationLevel::ReadCommitted)?;
        let stored = self.stored(&mut trx, ReadMode::Update(WaitPolicy::Wait))?;
        if stored == Some(block.limit) {
            trx.update(self.store.tree, &self.key(), &block.next.to_le_bytes())?;
        }
        trx.commit_without_waiting()
    }

    fn key(&self) -> [u8; 9] {
        let mut key = [self.kind as u8; 9];
        key[1..].copy_from_slice(&self.table.0.to_be_bytes());
        key
    }
}
