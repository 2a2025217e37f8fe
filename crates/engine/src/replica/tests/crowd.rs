//! Threads that change rows and definitions, and replicas whose snapshots are compared with the
//! writer's: once as they are, and with each fault on purpose.

use std::sync::atomic::AtomicU32;

use firn_base::random::{RandomSource, SplitMix};
use firn_base::task::StopAtEnd;
use firn_format::definition::TableDefinition;

use super::*;
use crate::dictionary::stored;

/// Replicas that come and go in a round.
const REPLICAS: usize = 4;
/// Comparisons with each of them.
const COMPARISONS: usize = 12;
/// How long every third snapshot stays open before it is compared; purge comes by every 10 ms.
const HELD: Duration = Duration::from_millis(25);
/// The pause between two changes of definitions.
const PAUSE: Duration = Duration::from_millis(20);
/// Every tenth pause. What is visible under timestamps with gaps lags 40 ms behind the definitions,
/// so it never meets those that change all the time.
const REST: Duration = Duration::from_millis(150);
/// Attempts to meet a snapshot with the definitions as of it, while definitions change.
const ATTEMPTS: usize = 400;
/// The most rounds in which a fault must be found.
const ROUNDS: u64 = 4;

/// Threads that change rows and definitions, and threads that compare.
pub(super) struct Crowd<'a> {
    pub(super) writer: &'a Writer,
    pub(super) stop: AtomicBool,
    pub(super) compared: AtomicU32,
}

/// How a replica differs from the writer.
pub(super) type Compared = Result<(), String>;

pub(super) fn at(snapshot: Cts, what: impl std::fmt::Display) -> String {
    format!("at {snapshot}: {what}")
}

impl<'a> Crowd<'a> {
    pub(super) fn of(writer: &'a Writer) -> Crowd<'a> {
        Crowd { writer, stop: AtomicBool::new(false), compared: 0.into() }
    }

    /// One comparison has found no difference.
    pub(super) fn count(&self) {
        self.compared.fetch_add(1, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Inserts, updates and deletes rows of random tables; conflicts roll the transaction back.
    pub(super) fn write(&self, seed: u64) {
        let random = SplitMix::new(seed);
        let below = |bound: u64| random.next_u64() % bound;
        while !self.is_over() {
            let tables = self.writer.dictionary.tables();
            let Some(table) = tables.get(below(tables.len().max(1) as u64) as usize) else {
                continue;
            };
            let mut trx = self.writer.begin();
            let mut outcome = Ok(());
            for _ in 0..1 + below(30) {
                if outcome.is_ok() {
                    outcome = self.change(&mut trx, table.id(), &below);
                }
            }
            if outcome.is_err() || below(8) == 0 {
                let _ = trx.rollback();
            } else if below(4) == 0 {
                self.commit_in_two_phases(trx, &random.next_u64().to_le_bytes());
            } else {
                trx.commit().unwrap();
            }
        }
    }

    /// As a coordinator does whose other participants take a moment.
    fn commit_in_two_phases(&self, trx: Transaction, xid: &[u8]) {
        let system = self.writer.engine.system();
        trx.prepare(xid, None).unwrap();
        let at = match &self.writer.timestamps {
            Timestamps::Local => None,
            Timestamps::Shared(source) => {
                let lowest = system.set_committing(xid).unwrap();
                Some(source.next().unwrap().max(lowest))
            }
        };
        firn_base::task::sleep(Duration::from_millis(3));
        system.commit_prepared(xid, at).unwrap();
    }

    fn change(
        &self,
        trx: &mut Transaction,
        table: TableId,
        below: &impl Fn(u64) -> u64,
    ) -> Result<(), EngineError> {
        let table = self.writer.dictionary.table_for_write(trx, table)?;
        let id = below(3000) as i64;
        let mut key = Vec::new();
        table.primary_key(&[ValueRef::Int(id)], &mut key)?;
        let mut buffers = WriteBuffers::default();
        if below(3) == 0 {
            table.delete(trx, &key, &mut buffers)?;
            return Ok(());
        }
        let long = vec![b'x'; if below(50) == 0 { 40_000 } else { below(300) as usize }];
        let a = ValueRef::Int(below(50) as i64);
        let mut row = vec![ValueRef::Int(id), a, ValueRef::Bytes(&long)];
        // Not every reader sees the columns that were added.
        row.resize(table.definition().columns.len(), ValueRef::Null);
        match table.insert(trx, &row, &mut buffers) {
            Err(EngineError::DuplicateKey { .. }) => {
                let changes = [(1, a), (2, ValueRef::Bytes(&long))];
                table.update(trx, &key, &changes, &mut buffers).map(|_| ())
            }
            other => other,
        }
    }

    /// Creates, drops, empties and renames tables.
    pub(super) fn define(&self, seed: u64) {
        let random = SplitMix::new(seed);
        let below = |bound: u64| random.next_u64() % bound;
        let mut number = 0;
        while !self.is_over() {
            number += 1;
            firn_base::task::sleep(if number % 10 == 0 { REST } else { PAUSE });
            let tables = self.writer.dictionary.tables();
            let table = &tables[below(tables.len() as u64) as usize];
            let name = format!("t{number}");
            if tables.len() < 4 {
                self.writer.create(&name);
                continue;
            }
            let mut ddl = self.writer.dictionary.ddl().unwrap();
            let _ = match below(4) {
                0 => ddl.drop_table(table.id()),
                1 => ddl.truncate_table(table.id()),
                2 => ddl.rename_table(table.id(), "s", &name),
                _ => ddl
                    .add_column(
                        table.id(),
                        ColumnDefinition::new(&name, ColumnType::Int(IntWidth::Four), true),
                    )
                    .map(|_| ()),
            }
            .and_then(|()| ddl.commit());
        }
    }

    /// Compares a snapshot of the replica, which stays open for `held` first, with the writer's at
    /// the same timestamp.
    fn compare_rows(&self, replica: &Replica, held: Duration) -> Compared {
        let mut trx =
            ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
        trx.open_snapshot();
        let snapshot = trx.snapshot().unwrap();
        firn_base::task::sleep(held);
        let mut own = self.same_snapshot(snapshot)?;
        for table in replica.dictionary().tables() {
            let there = replica.dictionary().table_for_read(&mut trx, table.id());
            let here = self.writer.dictionary.table_for_read(&mut own, table.id());
            let (Ok(there), Ok(here)) = (there, here) else { continue };
            if there.space() != here.space() {
                continue;
            }
            let (there, here) = (contents(&there, &mut trx), contents(&here, &mut own));
            let there = there.map_err(|error| at(snapshot, error))?;
            if there != here.unwrap() {
                return Err(at(snapshot, format_args!("rows of {} differ", table.id())));
            }
            self.count();
        }
        Ok(())
    }

    pub(super) fn same_snapshot(&self, snapshot: Cts) -> Result<Transaction, String> {
        let system = self.writer.engine.system();
        Transaction::begin_at(system, IsolationLevel::RepeatableRead, snapshot)
            .map_err(|error| at(snapshot, error))
    }

    /// Compares the replica's definitions with those that the writer's trees have at its snapshot.
    /// The replica's may be newer for a moment.
    fn compare_definitions(&self, replica: &Replica) -> Compared {
        let mut difference = String::new();
        for _ in 0..ATTEMPTS {
            let mut own = self.same_snapshot(replica.visible())?;
            let trees = self.writer.dictionary.trees();
            let here = stored::read_definitions(&mut own, trees).unwrap();
            let there = replica.dictionary().tables();
            let mut there: Vec<&TableDefinition> =
                there.iter().map(|table| table.definition()).collect();
            there.sort_by_key(|table| table.table_id);
            if there.iter().copied().eq(&here) {
                return Ok(());
            }
            let names = |tables: &mut dyn Iterator<Item = &TableDefinition>| -> Vec<String> {
                tables.map(|table| format!("{} {}", table.name, table.schema_version)).collect()
            };
            let (here, there) = (names(&mut here.iter()), names(&mut there.iter().copied()));
            difference = format!("tables {there:?}, the writer has {here:?}");
            firn_base::task::sleep(Duration::from_millis(5));
        }
        Err(difference)
    }

    fn compare(&self, replica: &Replica) -> Compared {
        for number in 0..COMPARISONS {
            let held = if number % 3 == 2 { HELD } else { Duration::ZERO };
            self.compare_rows(replica, held)?;
            self.compare_definitions(replica)?;
        }
        replica.failure().map_or(Ok(()), |failure| Err(failure.to_string()))
    }
}

/// Compares replicas with a fault, or without one. Returns how many tables were the same, or the
/// first difference.
fn run(seed: u64, fault: Option<Fault>) -> Result<u32, String> {
    run_at(Writer::open(), seed, fault)
}

fn run_at(writer: Writer, seed: u64, fault: Option<Fault>) -> Result<u32, String> {
    for name in ["x", "y", "z"] {
        writer.create(name);
    }
    let crowd = Crowd::of(&writer);
    let compared: Compared = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&crowd.stop);
        for number in 0..3 {
            let crowd = &crowd;
            scope.spawn(move || crowd.write(seed * 10 + number));
        }
        scope.spawn(|| crowd.define(seed * 10 + 9));
        // Replicas come and go.
        (0..REPLICAS).try_for_each(|_| {
            let replica = writer.open_replica(fault).map_err(|error| error.to_string())?;
            let compared = crowd.compare(&replica);
            replica.close();
            compared
        })
    });
    let tables = crowd.compared.into_inner();
    writer.close();
    compared.map(|()| tables)
}

#[test]
fn every_snapshot_is_the_writers_at_the_same_timestamp() {
    for (seed, order) in [(0, None), (1, Some(Fault::ReorderedCommits))] {
        let compared =
            run(seed, order).unwrap_or_else(|difference| panic!("{order:?}, {difference}"));
        assert!(compared > 40, "only {compared} tables were compared");
    }
}

#[test]
fn every_snapshot_is_the_writers_if_log_comes_from_its_memory() {
    // The second is overwritten again and again.
    for (seed, bytes) in [(5, 1 << 20), (6, 16 << 10)] {
        let compared = run_at(Writer::with_tail(bytes), seed, None)
            .unwrap_or_else(|difference| panic!("{bytes}: {difference}"));
        assert!(compared > 40, "only {compared} tables were compared");
    }
}

#[test]
fn every_snapshot_is_the_writers_under_timestamps_with_gaps() {
    for source in shared_timestamps::sources() {
        let compared = run_at(Writer::numbered_by(source), 3, None)
            .unwrap_or_else(|difference| panic!("{difference}"));
        assert!(compared > 40, "only {compared} tables were compared");
    }
}

#[test]
fn each_fault_is_found() {
    for fault in Fault::ALL {
        let found = (0..ROUNDS).find_map(|seed| Some((seed, run(seed, Some(fault)).err()?)));
        let (seed, difference) = found.unwrap_or_else(|| panic!("{fault:?} is not found"));
        println!("{fault:?} is found in round {seed}: {difference}");
    }
}
