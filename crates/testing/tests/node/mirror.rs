//! The two trees, and applying the steps of a plan to both of them in one transaction.

use firn_base::{IndexId, SpaceId, TableId};
use firn_engine::log::writer::Purpose;
use firn_engine::mini_transaction::MiniTransaction;
use firn_engine::transaction::{IsolationLevel, ReadMode, RecordRun, Transaction};
use firn_engine::{Engine, EngineError};
use firn_format::space::SpacePurpose;

use crate::plan::{
    OPENING_BALANCE, Plan, Shape, Step, Tagged, Transfer, account_key, account_payload,
    counter_key, index_key, parse_account,
};

/// The space of both trees.
pub(crate) const SPACE: SpaceId = SpaceId(100);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Trees {
    pub(crate) table: IndexId,
    pub(crate) index: IndexId,
}

impl Trees {
    /// Creates both trees, with a counter for each thread and all accounts. Returns when they are
    /// durable.
    pub(crate) fn create(engine: &Engine, shape: &Shape) -> Result<Trees, EngineError> {
        let forest = engine.forest();
        forest.spaces().create(SPACE, SpacePurpose::Table, TableId(1))?;
        let mut frames = forest.pages().pool.reserve(2);
        let [table, index] = forest.pages().run(|| {
            let mut mtr = MiniTransaction::begin_large(forest.pages(), Purpose::Forward)?;
            let table = forest.create_root(&mut mtr, &mut frames, SPACE)?;
            let index = forest.create_root(&mut mtr, &mut frames, SPACE)?;
            let _ = mtr.commit();
            Ok([table, index])
        })?;
        drop(frames);
        let mut trx = engine.begin(IsolationLevel::RepeatableRead)?;
        for thread in 0..shape.threads {
            trx.insert(table, &counter_key(thread), &0_u64.to_be_bytes())?;
        }
        for account in 0..shape.accounts {
            let payload = account_payload(OPENING_BALANCE, 0);
            trx.insert(table, &account_key(account), &payload)?;
        }
        trx.commit()?;
        Ok(Trees { table, index })
    }

    /// The last committed transaction of `thread`.
    pub(crate) fn sequence(&self, trx: &mut Transaction, thread: u32) -> Result<u64, EngineError> {
        let mut payload = Vec::new();
        let found =
            trx.get(self.table, &counter_key(thread), ReadMode::Consistent, &mut payload)?;
        assert!(found, "the counter of thread {thread} is gone");
        Ok(u64::from_be_bytes(payload.as_slice().try_into().expect("eight bytes")))
    }

    /// Carries out a plan, and counts it.
    pub(crate) fn carry_out(&self, trx: &mut Transaction, plan: &Plan) -> Result<(), EngineError> {
        for step in &plan.steps {
            self.do_step(trx, plan.thread, step)?;
        }
        if let Some(transfer) = plan.transfer {
            self.transfer(trx, transfer)?;
        }
        let counter = counter_key(plan.thread);
        assert!(trx.update(self.table, &counter, &plan.sequence.to_be_bytes())?);
        Ok(())
    }

    fn do_step(&self, trx: &mut Transaction, thread: u32, step: &Step) -> Result<(), EngineError> {
        match step {
            Step::Put { key, tag, value } => self.put(trx, thread, key, *tag, value),
            Step::Fill(records) => self.fill(trx, thread, records),
            Step::Delete { key } => self.delete(trx, thread, key),
            Step::Undone(steps) => {
                let savepoint = trx.savepoint();
                for step in steps {
                    self.do_step(trx, thread, step)?;
                }
                trx.rollback_to(savepoint)
            }
        }
    }

    fn put(
        &self,
        trx: &mut Transaction,
        thread: u32,
        key: &[u8],
        tag: [u8; 8],
        value: &[u8],
    ) -> Result<(), EngineError> {
        let payload = [&tag[..], value].concat();
        match self.tag_of(trx, key)? {
            Some(old) => {
                assert!(trx.update(self.table, key, &payload)?, "it was just read");
                self.delete_entry(trx, thread, old)?;
            }
            None => trx.insert(self.table, key, &payload)?,
        }
        trx.insert(self.index, &index_key(thread, tag), key)
    }

    fn fill(
        &self,
        trx: &mut Transaction,
        thread: u32,
        records: &[(Vec<u8>, Tagged)],
    ) -> Result<(), EngineError> {
        let (mut rows, mut entries) = (RecordRun::default(), RecordRun::default());
        for (key, (tag, value)) in records {
            if self.tag_of(trx, key)?.is_none() {
                rows.push(key, &[&tag[..], value].concat());
                entries.push(&index_key(thread, *tag), key);
            }
        }
        entries.sort();
        trx.insert_run(self.table, &mut rows)?;
        trx.insert_run(self.index, &mut entries)
    }

    fn delete(&self, trx: &mut Transaction, thread: u32, key: &[u8]) -> Result<(), EngineError> {
        let Some(old) = self.tag_of(trx, key)? else { return Ok(()) };
        assert!(trx.delete(self.table, key)?, "it was just read");
        self.delete_entry(trx, thread, old)
    }

    fn delete_entry(
        &self,
        trx: &mut Transaction,
        thread: u32,
        tag: [u8; 8],
    ) -> Result<(), EngineError> {
        let entry = index_key(thread, tag);
        assert!(trx.delete(self.index, &entry)?, "an index entry is missing: {entry:?}");
        Ok(())
    }

    fn tag_of(&self, trx: &mut Transaction, key: &[u8]) -> Result<Option<[u8; 8]>, EngineError> {
        let mut payload = Vec::new();
        let found = trx.get(self.table, key, ReadMode::Consistent, &mut payload)?;
        Ok(found.then(|| payload[..8].try_into().expect("eight bytes")))
    }

    fn transfer(&self, trx: &mut Transaction, transfer: Transfer) -> Result<(), EngineError> {
        let sides = [(transfer.from, -transfer.amount), (transfer.to, transfer.amount)];
        for (account, amount) in sides {
            let (key, mut payload) = (account_key(account), Vec::new());
            let mode = ReadMode::Update(firn_engine::transaction::WaitPolicy::Wait);
            assert!(trx.get(self.table, &key, mode, &mut payload)?, "an account is gone");
            let (balance, transfers) = parse_account(&payload);
            let payload = account_payload(balance + amount, transfers + 1);
            assert!(trx.update(self.table, &key, &payload)?, "it was just read");
        }
        Ok(())
    }
}
