//! Reads that begin before the replica has applied what they must see: they see what the writer's
//! snapshot sees that was the newest one before they began.

use firn_api::rows::Awaited;
use firn_base::random::{RandomSource, SplitMix};
use firn_base::task::StopAtEnd;
use firn_format::definition::TableDefinition;
use firn_format::key::KeyRange;

use super::crowd::{Compared, Crowd, at};
use super::*;
use crate::dictionary::stored;

/// Transactions that are compared in a round.
const TRANSACTIONS: usize = 1500;
/// Reads in each of them.
const READS: usize = 8;
/// Keys are below this.
const KEYS: u64 = 3000;
/// The most rounds in which a fault must be found.
const ROUNDS: u64 = 6;

/// A rule that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// The writer does not note every other change of a page.
    Notes,
    /// A version that the older snapshot does not see counts as not there.
    Unseen,
    /// Definitions are taken for the newest ones.
    Definitions,
}

/// What a read that arrives now must see.
fn awaited(writer: &Writer) -> Awaited {
    let newest = writer.as_seen().newest().unwrap();
    Awaited { commits: newest.visible, position: newest.durable_lsn, patience: TIMEOUT }
}

/// A replica's transaction that must see what is awaited.
fn begin(replica: &Replica, awaited: Awaited) -> ReadTransaction {
    let by_page = replica.by_page().unwrap();
    let mut trx =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    if by_page.has_newest_definitions() {
        trx.must_see(Some(by_page.behind(awaited)));
    } else {
        let until = firn_base::task::monotonic() + TIMEOUT;
        replica.catch_up(awaited, until, &AtomicBool::new(false)).unwrap();
    }
    trx.open_snapshot();
    trx
}

/// Reads by key and by ranges of keys, of rows and of an index, in tables of which both have the
/// same definition.
fn compare(crowd: &Crowd<'_>, replica: &Replica, random: &SplitMix) -> Compared {
    let below = |bound: u64| random.next_u64() % bound;
    let awaited = awaited(crowd.writer);
    let mut trx = begin(replica, awaited);
    compare_names(crowd, replica, seen_at(&trx, awaited))?;
    let tables = replica.dictionary().tables();
    for _ in 0..READS {
        let id = tables[below(tables.len() as u64) as usize].id();
        let Ok(there) = replica.dictionary().table_for_read(&mut trx, id) else { continue };
        let (low, kind) = (below(KEYS) as i64, below(3));
        let seen = read(&there, &mut trx, low, kind);
        let snapshot = seen_at(&trx, awaited);
        let seen = seen.map_err(|error| at(snapshot, error))?;
        let mut own = crowd.same_snapshot(snapshot)?;
        let Ok(here) = crowd.writer.dictionary.table_for_read(&mut own, id) else { continue };
        if there.space() == here.space() && seen != read(&here, &mut own, low, kind).unwrap() {
            return Err(at(snapshot, format_args!("what is at {low} of {id} differs")));
        }
        crowd.count();
    }
    Ok(())
}

/// The snapshot that the transaction has read from. While it has met no change, all snapshots up to
/// the awaited commits are the same to it.
fn seen_at(trx: &ReadTransaction, awaited: Awaited) -> Cts {
    if trx.is_behind() { awaited.commits } else { trx.snapshot().unwrap() }
}

fn read(
    table: &Arc<Table>,
    trx: &mut impl RecordReader,
    low: i64,
    kind: u64,
) -> Result<Vec<Vec<Value>>, EngineError> {
    match kind {
        0 => get(table, trx, low),
        kind => range(table, trx, low, kind == 1),
    }
}

/// Compares the tables that exist, if no definition changes meanwhile.
fn compare_names(crowd: &Crowd<'_>, replica: &Replica, snapshot: Cts) -> Compared {
    let names = |tables: Vec<&TableDefinition>| {
        let mut names: Vec<_> =
            tables.iter().map(|table| (table.name.clone(), table.schema_version)).collect();
        names.sort();
        names
    };
    let there = replica.dictionary().tables();
    let there = names(there.iter().map(|table| table.definition()).collect());
    let trees = crowd.writer.dictionary.trees();
    let here = stored::read_definitions(&mut crowd.same_snapshot(snapshot)?, trees).unwrap();
    let here = names(here.iter().collect());
    if there == here {
        return Ok(());
    }
    // The replica may have newer ones; the writer's threads may take a moment to show them.
    firn_base::task::sleep(Duration::from_millis(20));
    let applied = replica.visible();
    while crowd.writer.engine.system().order().max_committed() < applied {
        firn_base::task::sleep(Duration::from_millis(1));
    }
    let latest = stored::read_definitions(&mut crowd.writer.begin(), trees).unwrap();
    let latest = names(latest.iter().collect());
    if here == latest {
        return Err(format!("tables {there:?}, the writer has {here:?}"));
    }
    Ok(())
}

fn key(table: &Table, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.primary_key(&[ValueRef::Int(id)], &mut key).unwrap();
    key
}

fn get(
    table: &Arc<Table>,
    trx: &mut impl RecordReader,
    id: i64,
) -> Result<Vec<Vec<Value>>, EngineError> {
    let mut payload = Vec::new();
    let found = table.get(trx, &key(table, id), ReadMode::Consistent, &mut payload)?;
    Ok(if found { vec![vec![Value::Bytes(payload.into())]] } else { Vec::new() })
}

fn range(
    table: &Arc<Table>,
    trx: &mut impl RecordReader,
    low: i64,
    on_index: bool,
) -> Result<Vec<Vec<Value>>, EngineError> {
    let mut options = ScanOptions::all();
    let ready = table.secondary().iter().find(|index| index.state == IndexState::Ready);
    if let Some(index) = ready.filter(|_| on_index) {
        options = ScanOptions { index: Some(*index), columns: Some([1, 0].into()), ..options };
    } else {
        let (low, high) = (key(table, low), key(table, low + 20));
        let range = KeyRange { start: low, end: Some(high) };
        options = ScanOptions { range, ..options };
    }
    rows(table, trx, options)
}

/// How many reads were the same, and how many of the transactions met a change and waited.
fn run_at(writer: Writer, seed: u64, broken: Option<Broken>) -> Result<(u32, u64), String> {
    for name in ["x", "y", "z"] {
        let table = writer.create(name);
        writer.insert(&table, 0..KEYS as i64, 1);
    }
    let replica = writer.open_replica(Some(Fault::LatePieces)).unwrap();
    let by_page = replica.by_page().unwrap();
    match broken {
        Some(Broken::Notes) => writer.engine.system().pages().modifications().unwrap().miss_some(),
        Some(Broken::Unseen) => by_page.ignore_unseen(),
        Some(Broken::Definitions) => by_page.ignore_definitions(),
        None => {}
    }
    let crowd = Crowd::of(&writer);
    let compared = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&crowd.stop);
        let crowd = &crowd;
        scope.spawn(move || crowd.write(seed * 10));
        scope.spawn(move || crowd.write(seed * 10 + 1));
        scope.spawn(move || crowd.define(seed * 10 + 2));
        let random = SplitMix::new(seed * 10 + 3);
        (0..TRANSACTIONS).try_for_each(|_| compare(crowd, &replica, &random))
    });
    let waits = replica.changes_met();
    replica.close();
    let reads = crowd.compared.into_inner();
    writer.close();
    compared.map(|()| (reads, waits))
}

#[test]
fn reads_that_begin_behind_see_the_writers_newest_snapshot() {
    let (reads, waits) =
        run_at(Writer::open(), 1, None).unwrap_or_else(|difference| panic!("{difference}"));
    println!("{reads} reads in {TRANSACTIONS} transactions, {waits} of which met a change");
    assert!(reads > 4000, "only {reads} reads were compared");
    assert!(waits < TRANSACTIONS as u64, "every transaction has waited");
}

#[test]
fn reads_that_apply_the_log_themselves_see_the_writers_newest_snapshot() {
    let (reads, waits) = run_at(Writer::with_tail(1 << 20), 2, None)
        .unwrap_or_else(|difference| panic!("{difference}"));
    println!("{reads} reads in {TRANSACTIONS} transactions, {waits} of which met a change");
    assert!(reads > 4000, "only {reads} reads were compared");
}

#[test]
fn reads_that_ask_a_writer_elsewhere_see_its_newest_snapshot() {
    let (reads, waits) =
        run_at(Writer::elsewhere(), 3, None).unwrap_or_else(|difference| panic!("{difference}"));
    println!("{reads} reads in {TRANSACTIONS} transactions, {waits} of which met a change");
    assert!(reads > 4000, "only {reads} reads were compared");
    assert!(waits < TRANSACTIONS as u64, "every transaction has waited");
}

#[test]
fn what_is_acknowledged_is_seen_at_once() {
    what_is_acknowledged_is_seen(Writer::open());
    what_is_acknowledged_is_seen(Writer::with_tail(1 << 20));
    what_is_acknowledged_is_seen(Writer::elsewhere());
}

fn what_is_acknowledged_is_seen(writer: Writer) {
    let table = writer.create("own");
    writer.create("others");
    let replica = writer.open_replica(Some(Fault::LatePieces)).unwrap();
    writer.wait_for(&replica);
    let there = replica.dictionary().table_named("s", "own").unwrap();
    let crowd = Crowd::of(&writer);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&crowd.stop);
        let crowd = &crowd;
        scope.spawn(move || crowd.write(7));
        scope.spawn(move || crowd.write(8));
        for id in 10_000..11_000 {
            writer.insert(&table, id..id + 1, 1);
            let mut trx = begin(&replica, awaited(&writer));
            assert_eq!(get(&there, &mut trx, id).unwrap().len(), 1, "row {id}");
        }
    });
    println!("{} of 1000 reads have waited", replica.changes_met());
    replica.close();
    writer.close();
}

#[test]
fn each_broken_rule_is_found() {
    for broken in [Broken::Notes, Broken::Unseen, Broken::Definitions] {
        find(Writer::open, broken);
    }
    find(Writer::elsewhere, Broken::Notes);
}

fn find(open: fn() -> Writer, broken: Broken) {
    let found =
        (0..ROUNDS).find_map(|seed| Some((seed, run_at(open(), seed, Some(broken)).err()?)));
    let (seed, difference) = found.unwrap_or_else(|| panic!("{broken:?} is not found"));
    println!("{broken:?} is found in round {seed}: {difference}");
}

#[test]
fn a_read_waits_for_a_change_of_its_leaf_and_for_no_other() {
    a_read_waits_for_its_leaf(Writer::open());
    a_read_waits_for_its_leaf(Writer::elsewhere());
}

fn a_read_waits_for_its_leaf(writer: Writer) {
    let table = writer.create("t");
    writer.insert(&table, 0..3000, 1);
    let replica = writer.replica();
    writer.wait_for(&replica);
    // What the replica must see lies beyond the end of the log, so a wait has no end.
    let by_page = replica.by_page().unwrap();
    let never = |replica: &Replica| Awaited {
        commits: Cts(replica.visible().0 + 1),
        position: Lsn::MAX,
        patience: Duration::from_millis(50),
    };
    let awaited = never(&replica);
    let begin = || {
        let mut trx =
            ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
        trx.must_see(Some(by_page.behind(awaited)));
        trx.open_snapshot();
        trx
    };
    let there = replica.dictionary().table_named("s", "t").unwrap();
    let mut trx = begin();
    assert_eq!(get(&there, &mut trx, 7).unwrap().len(), 1);
    assert_eq!(get(&there, &mut trx, 2999).unwrap().len(), 1);
    // An open transaction changes one leaf.
    let mut open = writer.begin();
    insert(&table, &mut open, 5000, 1, b"").unwrap();
    let refused = get(&there, &mut begin(), 2999).unwrap_err();
    assert_eq!(refused.mysql_code(), 1429, "{refused}");
    assert_eq!(get(&there, &mut begin(), 7).unwrap().len(), 1, "another leaf");
    // Once the change is applied, the leaf is the same, and the row's transaction is still open.
    writer.insert(&writer.create("other"), 0..1, 1);
    writer.wait_for(&replica);
    let mut trx =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    trx.must_see(Some(by_page.behind(never(&replica))));
    assert_eq!(get(&there, &mut trx, 2999).unwrap().len(), 1);
    assert!(get(&there, &mut trx, 5000).is_err(), "it may commit up to there");
    drop(open);
    drop(trx);
    replica.close();
    writer.close();
}
