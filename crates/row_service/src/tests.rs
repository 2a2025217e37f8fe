//! The bytes of messages, and how invalid bytes are handled.

use std::ops::Bound;
use std::time::Duration;

use expect_test::expect;
use firn_api::report::{LogReport, MemoryReport, NodeReport, PageStoreReport};
use firn_api::rows::expression::{ComparedBy, Comparison, Expression, Step, ValueKind, ValueType};
use firn_api::rows::{
    DescribedSnapshot, DescribedTransaction, Direction, Estimate, Filter, GroupSummary, Grouping,
    IsolationLevel, LockDuration, MetadataLock, NumberSummary, Prepared, ReadMark, ReadMode,
    ReadSpan, RowSpan, RowWrite, RowsError, Savepoint, ScanOptions, Summand, Summed, WaitPolicy,
};
use firn_base::{Cts, IndexId, Lsn, TableId, TrxId};
use firn_format::key::KeyRange;
use firn_format::value::{Value, ValueRef};
use proptest::prelude::*;
use serde_bytes::{ByteBuf, Bytes};

use crate::codec::{Damage, VERSION, decode, encode};
use crate::message::{
    Answer, Call, CallNumber, Handle, LocksCall, Message, NodeCall, Reply, Rows, Setting,
    TableVersion, TransactionCall, TransactionState, check_any_bytes,
};

const TABLE: TableVersion = TableVersion { table: TableId(7), version: 3 };

/// Bytes in hexadecimal, and what they mean.
fn shown<T: serde::Serialize + std::fmt::Debug>(message: &T) -> String {
    let bytes = encode(message).expect("a message has bytes");
    let hexadecimal: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}\n    {message:?}\n", hexadecimal.join(" "))
}

fn transaction(before: Vec<Setting>, call: TransactionCall<'_>) -> Message<'_> {
    let call = Call::Transaction { handle: Handle(5), before, call };
    Message::Call { number: CallNumber(300), call }
}

/// A transaction that has read one key, and all keys before another one.
fn described() -> Box<DescribedTransaction> {
    let low = Bound::Unbounded;
    let reads = vec![
        ReadSpan::Record(IndexId(9), b"k".to_vec()),
        ReadSpan::Range(IndexId(10), low, Bound::Excluded(b"z".to_vec())),
    ];
    Box::new(DescribedTransaction {
        isolation: IsolationLevel::RepeatableRead,
        snapshot: Some(DescribedSnapshot { at: Cts(300), reads: Some(reads) }),
    })
}

#[test]
fn messages_have_these_bytes() {
    let begin = Setting::Begin { isolation: IsolationLevel::RepeatableRead, snapshot: None };
    let timeout = Setting::LockWaitTimeout(Duration::from_millis(1500));
    let mode = ReadMode::Update(WaitPolicy::SkipLocked);
    let scan = ScanOptions {
        index: Some(1),
        range: KeyRange { start: vec![0x80], end: None },
        direction: Direction::Backward,
        columns: Some(Box::new([0, 2])),
        batch_rows: 10,
        filter: Some(Box::new(Filter::Column { ordinal: 2, ranges: vec![KeyRange::all()] })),
        limit: Some(300),
        ..ScanOptions::all()
    };
    // a + 1 < 300, summed up by s.
    let bigint = ValueType {
        kind: ValueKind::Integer { bytes: 8, is_unsigned: false },
        is_nullable: true,
        collation_rank: 5,
    };
    let text = ValueType {
        kind: ValueKind::Varchar { max_chars: 40, collation: 255 },
        is_nullable: false,
        collation_rank: 2,
    };
    let number = |number| Step::Literal { value: Value::Int(number), ty: bigint };
    let condition = Expression {
        steps: vec![
            Step::Column { ordinal: 2, ty: bigint },
            number(1),
            Step::Call { function: "+".to_owned(), arguments: 2, result: bigint },
            number(300),
            Step::Compare { operator: Comparison::Less, by: ComparedBy::Integer },
        ],
    };
    let filter = Some(Box::new(Filter::Expression(condition)));
    let summed = ScanOptions { filter, ..ScanOptions::all() };
    let group = Expression { steps: vec![Step::Column { ordinal: 1, ty: text }] };
    let summand = Expression { steps: vec![Step::Column { ordinal: 2, ty: bigint }] };
    let grouping = Grouping {
        groups: vec![group],
        summands: vec![Summand::Column(4), Summand::Expression(summand)],
        most_groups: 2048,
    };
    let row = vec![ValueRef::Null, ValueRef::Int(-1), ValueRef::UInt(9), ValueRef::Bytes(b"ab")];
    let write = |changes| RowWrite { key: b"k", payload: b"kp", changes };
    let writes = vec![write(Some(vec![(1, ValueRef::Int(-1))])), write(None)];
    let acquire = LocksCall::Acquire {
        table: TableId(7),
        lock: MetadataLock::Read,
        duration: LockDuration::Transaction,
        timeout: Duration::from_secs(50),
        transaction: None,
    };
    let node = |call| Message::Call { number: CallNumber(1), call: Call::Node(call) };
    let all = [
        node(NodeCall::TableNamed { schema: "s", name: "t", known: Some(TABLE) }),
        transaction(
            vec![begin, timeout],
            TransactionCall::Get { table: TABLE, key: Bytes::new(b"\x81k"), mode },
        ),
        transaction(
            Vec::new(),
            TransactionCall::Scan { handle: Handle(6), table: TABLE, options: scan },
        ),
        transaction(
            Vec::new(),
            TransactionCall::Summarise {
                handle: Handle(9),
                table: TABLE,
                options: Box::new(summed),
                grouping: Box::new(grouping),
            },
        ),
        transaction(Vec::new(), TransactionCall::NextGroups { summaries: Handle(9) }),
        transaction(vec![Setting::EndStatement], TransactionCall::Insert { table: TABLE, row }),
        transaction(Vec::new(), TransactionCall::Commit),
        transaction(Vec::new(), TransactionCall::WriteRows { table: TABLE, rows: writes }),
        transaction(vec![Setting::TakeUp(described())], TransactionCall::Describe),
        Message::Call {
            number: CallNumber(2),
            call: Call::Locks { handle: Handle(8), call: acquire },
        },
        node(NodeCall::SetCommitting { xid: Bytes::new(b"x") }),
        node(NodeCall::CommitPrepared { xid: Bytes::new(b"x"), at: Some(Cts(300)) }),
        node(NodeCall::Report),
        node(NodeCall::StatusText),
        Message::Cancel(CallNumber(300)),
        Message::GiveBack { table: TABLE, received: 2 },
    ];
    let shown: String = all.iter().map(shown).collect();
    expect![[r#"
        04 00 01 00 04 01 73 01 74 01 07 03
            Call { number: CallNumber(1), call: Node(TableNamed { schema: "s", name: "t", known: Some(TableVersion { table: TableId(7), version: 3 }) }) }
        04 00 ac 02 01 05 02 00 01 00 01 01 80 ca b5 ee 01 07 07 03 02 81 6b 02 02
            Call { number: CallNumber(300), call: Transaction { handle: Handle(5), before: [Begin { isolation: RepeatableRead, snapshot: None }, LockWaitTimeout(1.5s)], call: Get { table: TableVersion { table: TableId(7), version: 3 }, key: [129, 107], mode: Update(SkipLocked) } } }
        04 00 ac 02 01 05 00 0a 06 07 03 01 01 01 80 00 01 00 01 02 00 02 0a 01 00 02 01 00 00 01 ac 02
            Call { number: CallNumber(300), call: Transaction { handle: Handle(5), before: [], call: Scan { handle: Handle(6), table: TableVersion { table: TableId(7), version: 3 }, options: ScanOptions { index: Some(1), range: KeyRange { start: [128], end: None }, direction: Backward, mode: Consistent, columns: Some([0, 2]), batch_rows: 10, filter: Some(Column { ordinal: 2, ranges: [KeyRange { start: [], end: None }] }), limit: Some(300) } } } }
        04 00 ac 02 01 05 00 0b 09 07 03 00 00 00 00 00 00 ff ff ff ff ff ff ff ff ff 01 01 03 05 00 02 01 08 00 01 05 01 01 02 01 08 00 01 05 02 01 2b 02 01 08 00 01 05 01 01 d8 04 01 08 00 01 05 04 03 00 00 01 01 00 01 06 28 ff 01 00 02 02 00 04 01 01 00 02 01 08 00 01 05 80 10
            Call { number: CallNumber(300), call: Transaction { handle: Handle(5), before: [], call: Summarise { handle: Handle(9), table: TableVersion { table: TableId(7), version: 3 }, options: ScanOptions { index: None, range: KeyRange { start: [], end: None }, direction: Forward, mode: Consistent, columns: None, batch_rows: 18446744073709551615, filter: Some(Expression(Expression { steps: [Column { ordinal: 2, ty: ValueType { kind: Integer { bytes: 8, is_unsigned: false }, is_nullable: true, collation_rank: 5 } }, Literal { value: Int(1), ty: ValueType { kind: Integer { bytes: 8, is_unsigned: false }, is_nullable: true, collation_rank: 5 } }, Call { function: "+", arguments: 2, result: ValueType { kind: Integer { bytes: 8, is_unsigned: false }, is_nullable: true, collation_rank: 5 } }, Literal { value: Int(300), ty: ValueType { kind: Integer { bytes: 8, is_unsigned: false }, is_nullable: true, collation_rank: 5 } }, Compare { operator: Less, by: Integer }] })), limit: None }, grouping: Grouping { groups: [Expression { steps: [Column { ordinal: 1, ty: ValueType { kind: Varchar { max_chars: 40, collation: 255 }, is_nullable: false, collation_rank: 2 } }] }], summands: [Column(4), Expression(Expression { steps: [Column { ordinal: 2, ty: ValueType { kind: Integer { bytes: 8, is_unsigned: false }, is_nullable: true, collation_rank: 5 } }] })], most_groups: 2048 } } } }
        04 00 ac 02 01 05 00 18 09
            Call { number: CallNumber(300), call: Transaction { handle: Handle(5), before: [], call: NextGroups { summaries: Handle(9) } } }
        04 00 ac 02 01 05 01 04 0f 07 03 04 00 01 01 02 09 07 02 61 62
            Call { number: CallNumber(300), call: Transaction { handle: Handle(5), before: [EndStatement], call: Insert { table: TableVersion { table: TableId(7), version: 3 }, row: [Null, Int(-1), UInt(9), Bytes([97, 98])] } } }
        04 00 ac 02 01 05 00 14
            Call { number: CallNumber(300), call: Transaction { handle: Handle(5), before: [], call: Commit } }
        04 00 ac 02 01 05 00 17 07 03 02 01 6b 02 6b 70 01 01 01 01 01 01 6b 02 6b 70 00
            Call { number: CallNumber(300), call: Transaction { handle: Handle(5), before: [], call: WriteRows { table: TableVersion { table: TableId(7), version: 3 }, rows: [RowWrite { key: [107], payload: [107, 112], changes: Some([(1, Int(-1))]) }, RowWrite { key: [107], payload: [107, 112], changes: None }] } } }
        04 00 ac 02 01 05 01 07 01 01 ac 02 01 02 00 09 01 6b 01 0a 00 02 01 7a 19
            Call { number: CallNumber(300), call: Transaction { handle: Handle(5), before: [TakeUp(DescribedTransaction { isolation: RepeatableRead, snapshot: Some(DescribedSnapshot { at: Cts(300), reads: Some([Record(IndexId(9), [107]), Range(IndexId(10), Unbounded, Excluded([122]))]) }) })], call: Describe } }
        04 00 02 02 08 00 07 01 00 32 00 00
            Call { number: CallNumber(2), call: Locks { handle: Handle(8), call: Acquire { table: TableId(7), lock: Read, duration: Transaction, timeout: 50s, transaction: None } } }
        04 00 01 00 0f 01 78
            Call { number: CallNumber(1), call: Node(SetCommitting { xid: [120] }) }
        04 00 01 00 0d 01 78 01 ac 02
            Call { number: CallNumber(1), call: Node(CommitPrepared { xid: [120], at: Some(Cts(300)) }) }
        04 00 01 00 10
            Call { number: CallNumber(1), call: Node(Report) }
        04 00 01 00 11
            Call { number: CallNumber(1), call: Node(StatusText) }
        04 01 ac 02
            Cancel(CallNumber(300))
        04 05 07 03 02
            GiveBack { table: TableVersion { table: TableId(7), version: 3 }, received: 2 }
    "#]].assert_eq(&shown);
}

#[test]
fn replies_have_these_bytes() {
    let state = TransactionState {
        id: Some(40),
        snapshot: Some(Cts(99)),
        savepoint: Some(Savepoint(128)),
        read_mark: ReadMark(1),
    };
    let spans = vec![RowSpan { key_start: 0, key_end: 1, row_start: 1, row_end: 3 }];
    let rows = Rows::Stored { bytes: ByteBuf::from(b"krr".to_vec()), spans };
    let estimate = Estimate { entries: 2.0, leaves: 1.0, is_exact: true };
    let report = NodeReport {
        memory: MemoryReport { resident: 300, ..MemoryReport::default() },
        log: LogReport { end: Lsn(128), ..LogReport::default() },
        pages: PageStoreReport {
            last_error: Some("full".to_owned()),
            ..PageStoreReport::default()
        },
        ..NodeReport::default()
    };
    let numbers = vec![NumberSummary { values: 2, sum: -7, extremes: Some((-9, 2)) }];
    let values = vec![Value::Bytes(Box::from(*b"ab"))];
    let groups = vec![GroupSummary { values, rows: 3, numbers }];
    let duplicate = RowsError::DuplicateKey { index: IndexId(4), key: Box::from(*b"k") };
    let outcomes = [
        Ok(Answer::Batch(Some(rows))),
        Ok(Answer::Estimate(estimate)),
        Ok(Answer::Prepared(Prepared { position: Lsn(64), lowest: Cts(300), trx: TrxId(40) })),
        Ok(Answer::Lowest(Cts(300))),
        Ok(Answer::Report(Box::new(report))),
        Ok(Answer::StatusText("idle".to_owned())),
        Ok(Answer::Summed(Some(Summed::Groups { groups, is_last: false }))),
        Ok(Answer::Summed(Some(Summed::Unknown))),
        Ok(Answer::Described(Some(described()))),
        Err(duplicate),
        Err(RowsError::NotLeader { hint: Some("10.0.0.2:3306".into()) }),
    ];
    let reply = |outcome| Reply { definitions_version: 17, transaction: Some(state), outcome };
    let shown: String = outcomes.into_iter().map(|outcome| shown(&reply(outcome))).collect();
    expect![[r#"
        04 11 01 01 28 01 63 01 80 01 01 00 0d 01 00 03 6b 72 72 01 00 01 01 03
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(Batch(Some(Stored { bytes: [107, 114, 114], spans: [RowSpan { key_start: 0, key_end: 1, row_start: 1, row_end: 3 }] }))) }
        04 11 01 01 28 01 63 01 80 01 01 00 0f 00 00 00 00 00 00 00 40 00 00 00 00 00 00 f0 3f 01
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(Estimate(Estimate { entries: 2.0, leaves: 1.0, is_exact: true })) }
        04 11 01 01 28 01 63 01 80 01 01 00 10 40 ac 02 28
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(Prepared(Prepared { position: Lsn(64), lowest: Cts(300), trx: TrxId(40) })) }
        04 11 01 01 28 01 63 01 80 01 01 00 13 ac 02
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(Lowest(Cts(300))) }
        04 11 01 01 28 01 63 01 80 01 01 00 14 00 ac 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 80 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 04 66 75 6c 6c 00 00 00 00 00 00 00 00
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(Report(NodeReport { memory: MemoryReport { budget: 0, resident: 300, withheld: 0, buffer_pool: 0, log_buffer: 0, log_index: 0, log_index_cache: 0, page_images: 0, page_map: 0, transactions: 0, locks: 0, column_cache: 0, promised: 0, refusals: 0 }, pool: PoolReport { frames: 0, hits: 0, misses: 0, prefetches: 0, evictions_clean: 0, evictions_offered: 0, eviction_waits: 0, reads_in_flight: 0 }, locks: LockReport { waits: 0, current_waits: 0, timeouts: 0, deadlocks: 0, wait_time_us: 0, longest_wait_us: 0 }, log: LogReport { opened: Lsn(0), end: Lsn(128), durable: Lsn(0), truncated: Lsn(0), syncs: 0 }, pages: PageStoreReport { applied: Lsn(0), pending_pages: 0, behind_bytes: 0, images_copied: 0, images_built: 0, images_repaired: 0, images_per_second: 0, bytes_written: 0, batches: 0, queued_bytes: 0, failures: 0, last_error: Some("full"), slots: 0, free_slots: 0 }, transactions: TransactionReport { splits: 0, merges: 0, restarts: 0, open_snapshots: 0, losers_left: 0 }, archive: None })) }
        04 11 01 01 28 01 63 01 80 01 01 00 15 04 69 64 6c 65
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(StatusText("idle")) }
        04 11 01 01 28 01 63 01 80 01 01 00 0c 01 00 01 01 07 02 61 62 03 01 02 0d 01 11 04 00
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(Summed(Some(Groups { groups: [GroupSummary { values: [Bytes([97, 98])], rows: 3, numbers: [NumberSummary { values: 2, sum: -7, extremes: Some((-9, 2)) }] }], is_last: false }))) }
        04 11 01 01 28 01 63 01 80 01 01 00 0c 01 01
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(Summed(Some(Unknown))) }
        04 11 01 01 28 01 63 01 80 01 01 00 16 01 01 01 ac 02 01 02 00 09 01 6b 01 0a 00 02 01 7a
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Ok(Described(Some(DescribedTransaction { isolation: RepeatableRead, snapshot: Some(DescribedSnapshot { at: Cts(300), reads: Some([Record(IndexId(9), [107]), Range(IndexId(10), Unbounded, Excluded([122]))]) }) }))) }
        04 11 01 01 28 01 63 01 80 01 01 01 00 04 01 6b
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Err(DuplicateKey { index: IndexId(4), key: [107] }) }
        04 11 01 01 28 01 63 01 80 01 01 01 0e 01 0d 31 30 2e 30 2e 30 2e 32 3a 33 33 30 36
            Reply { definitions_version: 17, transaction: Some(TransactionState { id: Some(40), snapshot: Some(Cts(99)), savepoint: Some(Savepoint(128)), read_mark: ReadMark(1) }), outcome: Err(NotLeader { hint: Some("10.0.0.2:3306") }) }
    "#]].assert_eq(&shown);
}

#[test]
fn another_version_is_named() {
    let mut bytes = encode(&Message::Cancel(CallNumber(1))).unwrap();
    bytes[0] = VERSION + 1;
    assert_eq!(decode::<Message<'_>>(&bytes).unwrap_err(), Damage::Version(VERSION + 1));
}

#[test]
fn bytes_behind_a_message_are_refused() {
    let mut bytes = encode(&Message::Cancel(CallNumber(1))).unwrap();
    bytes.push(0);
    assert!(matches!(decode::<Message<'_>>(&bytes), Err(Damage::Message(_))));
}

proptest! {
    /// Arbitrary bytes either are a message that is written back unchanged, or are refused.
    #[test]
    fn any_bytes_are_a_message_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        bytes.insert(0, VERSION);
        check_any_bytes(&bytes);
    }
}
