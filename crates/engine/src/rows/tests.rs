//! One pass through the seam: definitions, writes, reads by key, entry and range, errors.

use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{
    Cancellation, DatabaseNode, Direction, IsolationLevel, NewIndex, ReadMode, RowContent,
    RowsError, RowsResult, ScanOptions, TableRef, Transaction, WaitPolicy,
};
use firn_api::{LogEpoch, LogError};
use firn_format::definition::{ColumnDefinition, IndexDefinition, IndexKind, IndexPart};
use firn_format::key::KeyRange;
use firn_format::row::RowView;
use firn_format::value::{CollationId, ColumnType, IntWidth, Value, ValueRef};

use super::EngineNode;
use crate::test_support::{Database, Refusals, table_definition};

fn node_with_table() -> (Database, EngineNode, TableRef) {
    let database = Database::new();
    let columns = vec![
        ColumnDefinition::new("id", ColumnType::Int(IntWidth::Four), false),
        ColumnDefinition::new(
            "name",
            ColumnType::Varchar { max_chars: 20, collation: CollationId::BINARY },
            true,
        ),
    ];
    let indexes = vec![
        IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[0]),
        IndexDefinition::new("name", IndexKind::Unique, &[1]),
    ];
    let table = database.create(table_definition("t", columns, indexes));
    let node = EngineNode::new(Arc::clone(&database.dictionary));
    let table = node.table(table.id()).unwrap().unwrap();
    (database, node, table)
}

fn row<'a>(id: i64, name: &'a str) -> [ValueRef<'a>; 2] {
    [ValueRef::Int(id), ValueRef::Bytes(name.as_bytes())]
}

fn key(table: &TableRef, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    let clustered = &table.layout().clustered;
    clustered.encode_parts(&[ValueRef::Int(id)], table.collations(), &mut key).unwrap();
    key
}

fn names(trx: &mut dyn Transaction, table: &TableRef, index: Option<usize>) -> Vec<Value> {
    let options = ScanOptions {
        index,
        direction: Direction::Backward,
        columns: Some([1].into()),
        ..ScanOptions::all()
    };
    let mut scan = trx.scan(table, &options).unwrap();
    let mut found = Vec::new();
    while scan.fetch(trx).unwrap() {
        for number in 0..scan.len() {
            found.push(match scan.row(number).content {
                RowContent::Columns(values) => values[0].clone(),
                RowContent::Payload(payload) => {
                    let view = RowView::parse(&table.layout().row, payload).unwrap();
                    view.column(1).unwrap().inline().unwrap().to_value()
                }
            });
        }
    }
    found
}

#[test]
fn rows_are_written_and_found_through_the_seam() {
    let (_database, node, table) = node_with_table();
    let mut trx = node.begin(IsolationLevel::RepeatableRead).unwrap();
    for (id, name) in [(1, "ada"), (2, "bob"), (3, "cyd")] {
        trx.insert(&table, &row(id, name)).unwrap();
    }
    let taken = trx.insert(&table, &row(4, "bob")).unwrap_err();
    assert_eq!(taken.mysql_code(), 1062, "{taken}");

    let update = ReadMode::Update(WaitPolicy::Wait);
    let mut payload = Vec::new();
    assert!(trx.get(&table, &key(&table, 2), update, &mut payload).unwrap());
    trx.update(&table, &key(&table, 2), &payload, &[(1, ValueRef::Bytes(b"zoe"))]).unwrap();
    let before = trx.savepoint();
    assert!(trx.get(&table, &key(&table, 3), update, &mut payload).unwrap());
    trx.delete(&table, &key(&table, 3), &payload).unwrap();
    trx.rollback_to(before).unwrap();
    trx.commit().unwrap();

    let expected: Vec<Value> =
        ["zoe", "cyd", "ada"].map(|name| Value::Bytes(name.as_bytes().into())).into();
    let mut trx = node.begin(IsolationLevel::ReadCommitted).unwrap();
    assert_eq!(names(&mut *trx, &table, Some(1)), expected, "from the entries alone");
    let by_id: Vec<Value> = [2, 1, 0]
        .map(|at| ["ada", "zoe", "cyd"][at])
        .map(|name| Value::Bytes(name.as_bytes().into()))
        .into();
    assert_eq!(names(&mut *trx, &table, None), by_id, "in the order of the primary key");

    let mut entry = Vec::new();
    let (_, layout) = &table.layout().secondary[0];
    layout.key().encode_parts(&[ValueRef::Bytes(b"zoe")], table.collations(), &mut entry).unwrap();
    let mut primary_key = Vec::new();
    let mode = ReadMode::Consistent;
    assert!(trx.get_by_entry(&table, 1, &entry, mode, &mut primary_key, &mut payload).unwrap());
    assert_eq!(primary_key, key(&table, 2));
    let estimate = node.estimate(&table, Some(1), &KeyRange::all()).unwrap();
    assert!(estimate.entries >= 3.0, "{estimate:?}");
}

#[test]
fn a_cancelled_transaction_scans_no_further() {
    let (_database, node, table) = node_with_table();
    let mut trx = node.begin(IsolationLevel::RepeatableRead).unwrap();
    trx.insert(&table, &row(1, "ada")).unwrap();
    let cancellation = Arc::new(Cancellation::default());
    trx.set_cancelled(&cancellation);
    cancellation.cancel();
    let options = ScanOptions::all();
    let mut scan = trx.scan(&table, &options).unwrap();
    assert_eq!(scan.fetch(&mut *trx), Err(RowsError::Cancelled));
}

#[test]
fn options_that_were_made_from_an_older_definition_are_refused() {
    let (_database, node, table) = node_with_table();
    let id = table.definition().table_id;
    let mut change = node.change_definitions().unwrap();
    let mut definition = change.lock_definition(id).unwrap();
    definition.options = b"first".to_vec();
    change.alter_options(definition.clone()).unwrap();
    assert_eq!(change.lock_definition(id).unwrap().options, b"first");
    assert_eq!(change.alter_options(definition), Err(RowsError::TableChanged(id)));
    change.commit().unwrap();
}

#[test]
fn a_build_that_is_dropped_leaves_no_index() {
    let (_database, node, table) = node_with_table();
    let id = table.definition().table_id;
    let new = NewIndex {
        name: "later".to_owned(),
        unique: false,
        parts: vec![IndexPart::ascending(1)],
        options: Vec::new(),
    };
    let begin = || node.begin_index(id, &new, Duration::from_secs(1), None).unwrap();
    let mut build = begin();
    build.step().unwrap();
    assert!(build.is_filled());
    drop(build);
    assert_eq!(node.table(id).unwrap().unwrap().definition().indexes.len(), 2);
    begin().finish().unwrap();
    assert_eq!(node.table(id).unwrap().unwrap().definition().indexes.len(), 3);
}

/// Where a log that refuses meets a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Statement,
    /// Before the commit is in the log.
    CommitBegins,
    /// The commit is in the log, and not known to be durable.
    CommitWaits,
    PrepareWaits,
    CommitPreparedWaits,
    RollbackPreparedWaits,
    /// The end of a transaction that has read a commit which is not durable.
    ReaderWaits,
    DefinitionsWait,
}

/// The error of a transaction that meets `refusal` at `moment`.
fn refused(moment: Moment, refusal: LogError) -> RowsResult<()> {
    let (database, node, table) = node_with_table();
    let log = &database.node.log;
    let begin = || node.begin(IsolationLevel::RepeatableRead).unwrap();
    let refuse_durability =
        || log.refuse(Refusals { durability: Some(refusal.clone()), ..Refusals::default() });
    let refuse_room =
        || log.refuse(Refusals { room: Some(refusal.clone()), ..Refusals::default() });
    let mut trx = begin();
    if moment == Moment::Statement {
        refuse_room();
        return trx.insert(&table, &row(1, "ada"));
    }
    trx.insert(&table, &row(1, "ada")).unwrap();
    let is_visible = || {
        log.refuse(Refusals::default());
        begin().get(&table, &key(&table, 1), ReadMode::Consistent, &mut Vec::new()).unwrap()
    };
    match moment {
        Moment::Statement => unreachable!("returned above"),
        Moment::CommitBegins => {
            refuse_room();
            let outcome = trx.commit();
            assert_eq!(is_visible(), outcome.is_ok(), "{outcome:?}");
            outcome
        }
        Moment::CommitWaits => {
            refuse_durability();
            let outcome = trx.commit();
            assert!(is_visible(), "{outcome:?}");
            outcome
        }
        Moment::PrepareWaits => {
            refuse_durability();
            trx.prepare(b"xid", None).map(drop)
        }
        Moment::CommitPreparedWaits => {
            trx.prepare(b"xid", None).unwrap();
            refuse_durability();
            let outcome = node.commit_prepared(b"xid", None);
            assert!(is_visible(), "{outcome:?}");
            outcome
        }
        Moment::RollbackPreparedWaits => {
            trx.prepare(b"xid", None).unwrap();
            refuse_durability();
            node.rollback_prepared(b"xid")
        }
        Moment::ReaderWaits => {
            refuse_durability();
            trx.commit().unwrap_err();
            let mut reader = begin();
            let (key, mode) = (key(&table, 1), ReadMode::Consistent);
            assert!(reader.get(&table, &key, mode, &mut Vec::new()).unwrap());
            reader.commit()
        }
        Moment::DefinitionsWait => {
            let mut change = node.change_definitions().unwrap();
            change.create_schema("later", b"").unwrap();
            refuse_durability();
            let outcome = change.commit();
            // What sessions see is what the trees say.
            assert!(node.schema_options("later").unwrap().is_some(), "{outcome:?}");
            outcome
        }
    }
}

#[test]
fn a_log_that_refuses_says_what_is_left_of_the_transaction() {
    let (place, reason) = (|| "a disk".to_owned(), || "no quorum".to_owned());
    let unavailable = || LogError::Unavailable { reason: reason() };
    let failed = || LogError::Failed { place: place(), reason: reason() };
    let fenced = || LogError::Fenced { by: LogEpoch(9) };
    let elsewhere = || LogError::NotLeader { hint: Some("10.0.0.2".to_owned()) };
    let no_room = || LogError::NoRoom { place: place(), reason: reason() };
    // The numbers of MySQL: 1429 cannot be reached, 1836 another node leads, 1180 outcome unknown.
    let nothing_done = [(failed(), 1429), (fenced(), 1836), (elsewhere(), 1836)];
    for (refusal, code) in nothing_done.into_iter().chain([(unavailable(), 1429)]) {
        let error = refused(Moment::Statement, refusal.clone()).unwrap_err();
        assert_eq!(error.mysql_code(), code, "{refusal}");
        assert!(error.ends_transaction() && error.is_retryable(), "{refusal}");
        if refusal.ends_writer() {
            assert_eq!(refused(Moment::CommitBegins, refusal), Err(error));
        }
    }
    assert_eq!(
        refused(Moment::Statement, elsewhere()),
        Err(RowsError::NotLeader { hint: Some("10.0.0.2".into()) }),
    );
    assert!(matches!(
        refused(Moment::Statement, unavailable()),
        Err(RowsError::Unavailable { .. })
    ));
    assert!(matches!(refused(Moment::Statement, no_room()), Err(RowsError::DiskFull { .. })));
    // A commit uses the room that is kept for it, and is durable once the log answers.
    assert_eq!(refused(Moment::CommitBegins, unavailable()), Ok(()));
    for refusal in [unavailable(), failed(), fenced(), elsewhere()] {
        for moment in [
            Moment::CommitWaits,
            Moment::PrepareWaits,
            Moment::CommitPreparedWaits,
            Moment::DefinitionsWait,
        ] {
            let error = refused(moment, refusal.clone()).unwrap_err();
            assert!(matches!(error, RowsError::OutcomeUnknown { .. }), "{moment:?}: {error:?}");
            assert!(error.to_string().contains(&refusal.to_string()), "{error}");
        }
        // What was rolled back or only read can be done again.
        for moment in [Moment::RollbackPreparedWaits, Moment::ReaderWaits] {
            let error = refused(moment, refusal.clone()).unwrap_err();
            assert!(error.is_retryable(), "{moment:?}: {error:?}");
        }
    }
}
