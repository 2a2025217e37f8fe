//! Compares a node that was started after a crash with everything that was ever acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use firn_base::IndexId;
use firn_engine::transaction::{Cursor, Direction, IsolationLevel, KeyRange, ReadMode};
use firn_engine::{Engine, EngineError};

use crate::mirror::Trees;
use crate::plan::{Model, counter_key};
use crate::structure;
use crate::worker::{Said, parse_xid};

/// What an outside observer knows of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    acknowledged: u64,
    /// A transaction that is prepared and has not ended.
    prepared: Option<u64>,
}

/// The reports of all workers of all lives, and their consequences.
#[derive(Debug)]
pub(crate) struct Witness {
    known: Vec<Known>,
    model: Model,
    wrong: Option<String>,
}

impl Witness {
    pub(crate) fn new(model: Model) -> Witness {
        Witness { known: vec![Known::default(); model.sequences.len()], model, wrong: None }
    }

    /// The number of transactions that are known to be committed.
    pub(crate) fn committed(&self) -> u64 {
        self.model.sequences.iter().sum()
    }

    /// Takes a worker's report.
    pub(crate) fn hear(&mut self, thread: u32, sequence: u64, said: Said) {
        let known = &mut self.known[thread as usize];
        match said {
            Said::Acknowledged => known.acknowledged = known.acknowledged.max(sequence),
            Said::Prepared => known.prepared = Some(sequence),
            Said::Ending => known.prepared = None,
            Said::Wrong => {
                self.wrong = Some(format!("thread {thread} failed at {sequence}"));
            }
        }
    }

    /// Checks a node that has no other users.
    pub(crate) fn check(&mut self, engine: &Engine, trees: Trees) -> Result<(), String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        // Once while losers are being rolled back and once afterwards: the results must be equal.
        self.check_records(engine, trees)?;
        while engine.losers_left() > 0 {
            firn_base::task::sleep(Duration::from_millis(1));
        }
        self.check_prepared(engine)?;
        self.check_records(engine, trees)?;
        // Merged pages are freed some time later.
        let mut checked = Ok(());
        for _ in 0..200 {
            checked = structure::check(engine, trees);
            if checked.is_ok() {
                break;
            }
            firn_base::task::sleep(Duration::from_millis(10));
        }
        checked
    }

    fn check_prepared(&self, engine: &Engine) -> Result<(), String> {
        let mut found = BTreeSet::new();
        for xid in engine.system().prepared_transactions() {
            let (thread, sequence) = parse_xid(&xid).ok_or("a prepared transaction of nobody")?;
            if self.model.sequences[thread as usize] + 1 != sequence {
                return Err(format!(
                    "thread {thread} is at {} and has {sequence} prepared",
                    self.model.sequences[thread as usize]
                ));
            }
            found.insert((thread, sequence));
        }
        for (thread, known) in self.known.iter().enumerate() {
            if let Some(sequence) = known.prepared
                && !found.contains(&(thread as u32, sequence))
            {
                return Err(format!(
                    "thread {thread}: {sequence} was prepared and is not any more"
                ));
            }
        }
        Ok(())
    }

    fn check_records(&mut self, engine: &Engine, trees: Trees) -> Result<(), String> {
        let table = scan(engine, trees.table).map_err(|error| format!("table: {error}"))?;
        let index = scan(engine, trees.index).map_err(|error| format!("index: {error}"))?;
        for thread in 0..self.known.len() as u32 {
            let counter =
                table.get(&counter_key(thread)).and_then(|bytes| bytes[..].try_into().ok());
            let Some(sequence) = counter.map(u64::from_be_bytes) else {
                return Err(format!("the counter of thread {thread} is gone"));
            };
            let known = &mut self.known[thread as usize];
            if sequence < known.acknowledged.max(self.model.sequences[thread as usize]) {
                return Err(format!(
                    "thread {thread}: {} was acknowledged, {} was seen, {sequence} is left",
                    known.acknowledged, self.model.sequences[thread as usize]
                ));
            }
            if sequence > known.acknowledged + 100_000 {
                return Err(format!("thread {thread} has come to {sequence}?"));
            }
            // A transaction that ended has seen it, so it is durable.
            known.acknowledged = sequence;
            self.model.advance(thread, sequence);
        }
        compare("table", &self.model.table(), &table)?;
        compare("index", &self.model.index(), &index)
    }
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn scan(engine: &Engine, index: IndexId) -> Result<Records, EngineError> {
    let mut trx = engine.begin(IsolationLevel::RepeatableRead)?;
    let mut cursor = Cursor::new(index, KeyRange::all(), Direction::Forward, ReadMode::Consistent);
    let mut records = Records::new();
    while cursor.fetch(&mut trx)? {
        for (key, payload) in cursor.rows() {
            let twice = records.insert(key.to_vec(), payload.to_vec());
            assert!(twice.is_none(), "a scan gave {key:?} twice");
        }
    }
    trx.commit()?;
    Ok(records)
}

fn compare(name: &str, expected: &Records, found: &Records) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let mut differences = Vec::new();
    for key in expected.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        let (left, right) = (expected.get(key), found.get(key));
        if left != right {
            let short = |value: Option<&Vec<u8>>| {
                value.map(|bytes| (bytes.len(), bytes[..bytes.len().min(16)].to_vec()))
            };
            differences.push(format!(
                "{key:?}: {:?} expected, {:?} found",
                short(left),
                short(right)
            ));
        }
    }
    let count = differences.len();
    differences.truncate(10);
    Err(format!("{name}: {count} records differ\n{}", differences.join("\n")))
}
