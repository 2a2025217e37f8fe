use expect_test::expect;
use proptest::prelude::*;

use crate::value::{CollationId, ColumnType, DecimalType, IntWidth, Value};

use super::*;

const INT: ColumnType = ColumnType::Int(IntWidth::Four);
const TEXT: ColumnType = ColumnType::Varchar { max_chars: 255, collation: CollationId(255) };
const BLOB: ColumnType = ColumnType::Blob { max_bytes: u32::MAX };

fn layout(columns: &[(ColumnType, bool)]) -> RowLayout {
    let columns = columns.iter().map(|&(column_type, null)| RowColumn::new(column_type, null));
    RowLayout::new(RowVersion(0), columns.collect()).expect("a possible table")
}

/// Checks that the readers of single columns agree with the view of the row wherever they return a
/// value.
fn compare_readers(layout: &RowLayout, row: &[u8]) {
    let view = RowView::parse(layout, row);
    for ordinal in 0..layout.columns().len() {
        let cell = view.as_ref().ok().map(|view| view.column(ordinal).expect("a column"));
        let value = cell.and_then(|cell| cell.inline());
        let read = layout.column_reader(ordinal).and_then(|reader| reader.read(row));
        assert!(read.is_none() || read == value, "column {ordinal}: {read:?}, not {value:?}");
        let Some(reader) = layout.number_reader(ordinal) else { continue };
        let mut numbers = Vec::new();
        let count = reader.read_all(&[row, row], |number| numbers.push(number));
        let number = value.and_then(|value| number(value, layout.columns()[ordinal].column_type));
        match number {
            Some(number) => assert_eq!((numbers, count), (vec![number; 2], 2), "column {ordinal}"),
            None => assert_eq!(count, 0, "column {ordinal}"),
        }
    }
}

/// The expected result of a number reader for a value.
fn number(value: ValueRef<'_>, column_type: ColumnType) -> Option<Option<i64>> {
    Some(match (value, column_type) {
        (ValueRef::Null, _) => None,
        (ValueRef::Int(number) | ValueRef::Temporal(number), _) => Some(number),
        (ValueRef::UInt(number), _) => Some(number as i64),
        (ValueRef::Decimal(encoded), ColumnType::Decimal(decimal)) => {
            Some(decimal.unpack_i128(encoded).ok()?.try_into().expect("few digits"))
        }
        other => panic!("{other:?} is no number"),
    })
}

fn read_all(layout: &RowLayout, row: &[u8]) -> Vec<Value> {
    let view = RowView::parse(layout, row).expect("a row");
    let columns = view.columns().map(|column| column.expect("a column"));
    columns.map(|column| column.inline().expect("an inline value").to_value()).collect()
}

/// The parts of stored bytes, one a line: bytes in hexadecimal, and their meaning.
pub(crate) fn annotate(bytes: &[u8], parts: &[(usize, &str)]) -> String {
    let mut rest = bytes;
    let mut text = String::new();
    for &(length, meaning) in parts {
        let (bytes, after) = rest.split_at(length);
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("{:40}{meaning}\n", hex.join(" "));
        rest = after;
    }
    assert_eq!(rest, [], "unnamed bytes");
    text
}

#[test]
fn a_row_has_the_documented_bytes() {
    let layout = layout(&[(INT, false), (TEXT, true), (INT, true), (BLOB, true), (TEXT, true)]);
    let overflow = OverflowReference { first_page: PageNo(9), length: 70_000 };
    let cells = [
        ValueRef::Int(7).into(),
        ValueRef::Bytes(b"snow").into(),
        ValueRef::Null.into(),
        ColumnValue::Overflow(overflow),
        ValueRef::Null.into(),
    ];
    let mut row = Vec::new();
    layout.encode_into(&cells, &mut row).expect("fits");
    let parts = [
        (2, "version 0"),
        (1, "null bitmap: columns 2 and 4, the second and fourth nullable ones"),
        (4, "column 0: 7, sign flipped"),
        (4, "column 2: NULL"),
        (2, "end of column 1: 4"),
        (2, "end of column 3: 16, out of line"),
        (2, "end of column 4: 16"),
        (4, "column 1: 'snow'"),
        (12, "column 3: first page 9, 70,000 bytes"),
    ];
    expect![[r#"
        00 00                                   version 0
        0a                                      null bitmap: columns 2 and 4, the second and fourth nullable ones
        80 00 00 07                             column 0: 7, sign flipped
        00 00 00 00                             column 2: NULL
        04 00                                   end of column 1: 4
        10 80                                   end of column 3: 16, out of line
        10 00                                   end of column 4: 16
        73 6e 6f 77                             column 1: 'snow'
        09 00 00 00 70 11 01 00 00 00 00 00     column 3: first page 9, 70,000 bytes
    "#]].assert_eq(&annotate(&row, &parts));
    let view = RowView::parse(&layout, &row).expect("a row");
    for (ordinal, cell) in cells.iter().enumerate() {
        assert_eq!(view.column(ordinal), Ok(*cell));
    }
    assert_eq!(view.column(5), Err(RowError::NoSuchColumn(5)));
}

#[test]
fn misuse_is_refused_and_leaves_the_buffer_alone() {
    let layout = layout(&[(INT, false), (TEXT, false)]);
    let mut out = b"before".to_vec();
    let cases: [(&[ValueRef<'_>], RowError); 5] = [
        (&[ValueRef::Int(1)], RowError::WrongColumnCount { given: 1, columns: 2 }),
        (&[ValueRef::Null, ValueRef::Bytes(b"")], RowError::NullInNotNull(0)),
        (&[ValueRef::Int(1), ValueRef::Null], RowError::NullInNotNull(1)),
        (
            &[ValueRef::Bytes(b"1"), ValueRef::Bytes(b"")],
            RowError::Value { ordinal: 0, error: ValueError::Mismatch(INT) },
        ),
        (
            &[ValueRef::Int(1), ValueRef::Int(1)],
            RowError::Value { ordinal: 1, error: ValueError::Mismatch(TEXT) },
        ),
    ];
    for (values, error) in cases {
        assert_eq!(layout.encode_into(values, &mut out), Err(error));
        assert_eq!(out, b"before");
        assert!(!error.is_corruption());
    }
    let overflow = OverflowReference { first_page: PageNo(1), length: 1 };
    let cells = [ColumnValue::Overflow(overflow), ValueRef::Bytes(b"").into()];
    let error = RowError::Value { ordinal: 0, error: ValueError::Mismatch(INT) };
    assert_eq!(layout.encode_into(&cells, &mut out), Err(error));
}

/// Version 0: (a INT NOT NULL, b TEXT). Version 1 adds c INT NOT NULL DEFAULT 5. Version 2 drops b.
/// Version 3 adds d TEXT, without a default.
fn evolved(version: u16) -> RowLayout {
    let mut columns = vec![RowColumn::new(INT, false), RowColumn::new(TEXT, true)];
    if version >= 1 {
        let (added_in, default) = (RowVersion(1), Value::Int(5));
        columns.push(RowColumn { added_in, default, ..RowColumn::new(INT, false) });
    }
    if version >= 2 {
        columns[1].dropped_in = Some(RowVersion(2));
    }
    if version >= 3 {
        columns.push(RowColumn { added_in: RowVersion(3), ..RowColumn::new(TEXT, true) });
    }
    RowLayout::new(RowVersion(version), columns).expect("a possible table")
}

#[test]
fn rows_of_older_versions_are_read_under_the_newest() {
    let (a, b, c) = (ValueRef::Int(1), ValueRef::Bytes(b"old"), ValueRef::Int(3));
    let d = ValueRef::Bytes(b"new");
    let newest = evolved(3);
    let dropped = Value::Null;
    let rows = [
        (evolved(0).encode(&[a, b]), [Value::Int(1), dropped.clone(), Value::Int(5), Value::Null]),
        (
            evolved(1).encode(&[a, b, c]),
            [Value::Int(1), dropped.clone(), c.to_value(), Value::Null],
        ),
        (
            evolved(2).encode(&[a, b, c]),
            [Value::Int(1), dropped.clone(), c.to_value(), Value::Null],
        ),
        (evolved(3).encode(&[a, b, c, d]), [Value::Int(1), dropped, c.to_value(), d.to_value()]),
    ];
    for (version, (row, expected)) in rows.into_iter().enumerate() {
        let row = row.expect("fits");
        assert_eq!(read_all(&newest, &row), expected, "version {version}");
        let view = RowView::parse(&newest, &row).expect("a row");
        assert_eq!(usize::from(view.version().0), version);
        let held = if version < 2 { Ok(b.into()) } else { Err(RowError::NoSuchColumn(1)) };
        assert_eq!(view.column(1), held, "version {version}");
    }
}

#[test]
fn a_row_names_the_chains_to_free_with_it() {
    let reference = |page| OverflowReference { first_page: PageNo(page), length: 5000 };
    let [b, d] = [reference(7), reference(9)].map(ColumnValue::Overflow);
    let (a, c) = (ValueRef::Int(1).into(), ValueRef::Int(3).into());
    let (mut old, mut new) = (Vec::new(), Vec::new());
    evolved(0).encode_into(&[a, b], &mut old).expect("fits");
    evolved(3).encode_into(&[a, b, c, d], &mut new).expect("fits");
    let newest = evolved(3);
    for (row, expected) in [(old, reference(7)), (new, reference(9))] {
        let view = RowView::parse(&newest, &row).expect("a row");
        assert_eq!(view.overflow_references().collect::<Vec<_>>(), [Ok(expected)]);
    }
}

#[test]
fn a_row_of_a_later_version_is_told_apart_from_damage() {
    let row =
        evolved(3).encode(&[ValueRef::Int(1), ValueRef::Null, ValueRef::Int(2), ValueRef::Null]);
    let older = evolved(1);
    let error = RowView::parse(&older, &row.expect("fits")).expect_err("newer");
    assert_eq!(error, RowError::NewerVersion { row: RowVersion(3), layout: RowVersion(1) });
    assert!(!error.is_corruption());
}

#[test]
fn contradicting_columns_are_refused() {
    let column = RowColumn::new(INT, true);
    let in_version = |added: u16, dropped: Option<u16>| RowColumn {
        added_in: RowVersion(added),
        dropped_in: dropped.map(RowVersion),
        ..column.clone()
    };
    for contradiction in [in_version(3, None), in_version(0, Some(3)), in_version(2, Some(1))] {
        let refused = RowLayout::new(RowVersion(2), vec![contradiction]);
        assert!(matches!(refused, Err(RowError::InvalidLayout(_))), "{refused:?}");
    }
    let many = vec![in_version(0, Some(1)); RowLayout::MAX_COLUMNS + 1];
    let refused = RowLayout::new(RowVersion(2), many);
    assert!(matches!(refused, Err(RowError::InvalidLayout(_))), "{refused:?}");
    for default in [Value::UInt(1), Value::Int(1 << 40)] {
        let refused = RowLayout::new(RowVersion(0), vec![RowColumn { default, ..column.clone() }]);
        assert!(matches!(refused, Err(RowError::Value { ordinal: 0, .. })), "{refused:?}");
    }
    let without_default = RowColumn { nullable: false, ..in_version(1, None) };
    let refused = RowLayout::new(RowVersion(2), vec![without_default]).map(|_| ());
    assert_eq!(refused, Err(RowError::NullInNotNull(0)));
    let wide = vec![RowColumn::new(ColumnType::Double, false); 1200];
    let refused = RowLayout::new(RowVersion(0), wide).map(|_| ());
    assert_eq!(refused, Err(RowError::TooLarge { row_bytes: 9602 }));
}

#[test]
fn the_longest_values_leave_a_row_that_is_too_long() {
    let layout = layout(&[(INT, false), (BLOB, true), (BLOB, true), (BLOB, true)]);
    let (short, long, longest) = (vec![1; 1000], vec![2; 3000], vec![3; 9000]);
    let values = [
        ValueRef::Int(1),
        ValueRef::Bytes(&long),
        ValueRef::Bytes(&short),
        ValueRef::Bytes(&longest),
    ];
    let header = 2 + 1 + 4 + 3 * 2;
    let too_large = RowError::TooLarge { row_bytes: header + 13_000 };
    assert_eq!(layout.encode(&values), Err(too_large));
    let plan = layout.plan(&values, usize::MAX).expect("fits with references");
    assert_eq!(plan.externalise.as_slice(), [3, 1]);
    assert_eq!(plan.row_bytes, header + 1000 + 24);

    let beside_a_long_key = layout.plan(&values, 100).expect("fits with references");
    assert_eq!(beside_a_long_key.externalise.as_slice(), [3, 1, 2]);
    assert_eq!(layout.plan(&values, 40), Err(RowError::TooLarge { row_bytes: header + 36 }));

    let mut cells = values.map(ColumnValue::from);
    for &ordinal in &plan.externalise {
        let reference = OverflowReference { first_page: PageNo(u32::from(ordinal)), length: 3 };
        cells[usize::from(ordinal)] = ColumnValue::Overflow(reference);
    }
    let mut row = Vec::new();
    layout.encode_into(&cells, &mut row).expect("fits");
    assert_eq!(row.len(), plan.row_bytes);
    assert_eq!(
        layout.plan(&cells, usize::MAX),
        Ok(RowPlan { row_bytes: row.len(), ..RowPlan::default() })
    );
}

#[test]
fn a_row_of_too_many_small_values_is_refused() {
    let layout = layout(&[(BLOB, true); 800]);
    let bytes = [0; 12];
    let values = [ValueRef::Bytes(&bytes); 800];
    assert_eq!(
        layout.plan(&values, usize::MAX),
        Err(RowError::TooLarge { row_bytes: 2 + 100 + 800 * 14 })
    );
}

#[test]
fn short_values_leave_a_row_only_if_it_has_no_place() {
    let layout = layout(&[(BLOB, false); 10]);
    let (short, long) = ([0; SHORT_VALUE_BYTES], [0; SHORT_VALUE_BYTES + 1]);
    let mut values = [ValueRef::Bytes(&short); 10];
    let place = MAX_ROW_BYTES - 100;
    let moved = layout.plan(&values, place).expect("fits with references").externalise;
    assert_eq!(moved.as_slice(), [0, 1]);
    values[7] = ValueRef::Bytes(&long);
    let moved = layout.plan(&values, place).expect("fits with references").externalise;
    assert_eq!(moved.as_slice(), [7, 0]);
}

#[test]
fn damaged_rows_are_refused() {
    let layout = layout(&[(INT, false), (TEXT, false), (TEXT, false)]);
    let row = layout.encode(&[ValueRef::Int(1), ValueRef::Bytes(b"ab"), ValueRef::Bytes(b"c")]);
    let row = row.expect("fits");
    for length in 0..row.len() {
        let error = RowView::parse(&layout, &row[..length]).expect_err("cut short");
        assert!(error.is_corruption(), "{error}");
    }
    let longer = [&row[..], &[0]].concat();
    assert!(RowView::parse(&layout, &longer).is_err());

    let mut crossed = row.clone();
    crossed[6] = 5;
    let view = RowView::parse(&layout, &crossed).expect("the length is right");
    assert!(view.column(1).is_err_and(|error| error.is_corruption()));
    assert!(view.column(2).is_err_and(|error| error.is_corruption()));

    let mut flagged = row;
    flagged[7] = 0x80;
    let view = RowView::parse(&layout, &flagged).expect("the length is right");
    assert!(view.column(1).is_err_and(|error| error.is_corruption()));
}

/// A column type with a strategy for its values.
fn any_column() -> impl Strategy<Value = (ColumnType, BoxedStrategy<Value>)> {
    let any_decimal = (1_u8..25).prop_flat_map(|precision| {
        (0..=precision).prop_map(move |scale| DecimalType::new(precision, scale).expect("a type"))
    });
    (any_column_of_a_kind(), any_decimal).prop_map(|(column, decimal)| match column {
        (ColumnType::Decimal(_), _) => (ColumnType::Decimal(decimal), decimals(decimal).boxed()),
        other => other,
    })
}

fn decimals(decimal: DecimalType) -> impl Strategy<Value = Value> {
    let digits = prop::collection::vec(0_u8..10, usize::from(decimal.precision()));
    (any::<bool>(), digits).prop_map(move |(negative, digits)| {
        let mut encoded = vec![0; decimal.encoded_length()];
        decimal.pack_digits(negative, &digits, &mut encoded).expect("digits");
        Value::Decimal(encoded.into())
    })
}

fn any_column_of_a_kind() -> impl Strategy<Value = (ColumnType, BoxedStrategy<Value>)> {
    let decimal = DecimalType::new(20, 4).expect("a possible type");
    let bytes = prop::collection::vec(any::<u8>(), 0..60).prop_map(|b| Value::Bytes(b.into()));
    let small = any::<i16>().prop_map(|number| Value::Int(number.into()));
    let big = any::<u64>().prop_map(Value::UInt);
    let doubles = prop::num::f64::NORMAL.prop_map(Value::Double);
    let times = (-3_020_399_999_999_i64..3_020_399_999_999).prop_map(Value::Temporal);
    let seconds = (0_i64..1 << 40).prop_map(|seconds| Value::Temporal(seconds << 20));
    prop::sample::select(vec![
        (ColumnType::Int(IntWidth::Two), small.boxed()),
        (ColumnType::UInt(IntWidth::Eight), big.boxed()),
        (ColumnType::Double, doubles.boxed()),
        (ColumnType::Decimal(decimal), decimals(decimal).boxed()),
        (ColumnType::Time { fsp: 6 }, times.boxed()),
        (ColumnType::Date, (0_i64..1 << 24).prop_map(Value::Temporal).boxed()),
        (ColumnType::DateTime { fsp: 0 }, seconds.boxed()),
        (TEXT, bytes.clone().boxed()),
        (BLOB, bytes.boxed()),
    ])
}

/// Columns with a value each, every one of them nullable or not.
fn any_row() -> impl Strategy<Value = Vec<(ColumnType, bool, Value)>> {
    let column =
        (any_column(), any::<bool>()).prop_flat_map(|((column_type, values), nullable)| {
            let nulls = if nullable { 1 } else { 0 };
            let value = prop_oneof![nulls => Just(Value::Null), 3 => values];
            (Just(column_type), Just(nullable), value)
        });
    prop::collection::vec(column, 0..20)
}

/// A change to the set of columns.
#[derive(Clone, Debug)]
enum Change {
    Add(RowColumn),
    Drop(prop::sample::Index),
}

fn any_change() -> impl Strategy<Value = Change> {
    let add = any_column().prop_flat_map(|(column_type, values)| {
        let column = move |default| RowColumn { default, ..RowColumn::new(column_type, true) };
        prop_oneof![Just(Value::Null), values].prop_map(move |default| Change::Add(column(default)))
    });
    prop_oneof![2 => add, 1 => any::<prop::sample::Index>().prop_map(Change::Drop)]
}

/// The columns before any change and after each.
fn versions(changes: Vec<Change>) -> Vec<Vec<RowColumn>> {
    let mut columns = vec![RowColumn::new(INT, false)];
    let mut versions = vec![columns.clone()];
    for (version, change) in (1..).map(RowVersion).zip(changes) {
        match change {
            Change::Add(column) => columns.push(RowColumn { added_in: version, ..column }),
            Change::Drop(index) => {
                let column = index.get_mut(&mut columns);
                column.dropped_in = column.dropped_in.or(Some(version));
            }
        }
        versions.push(columns.clone());
    }
    versions
}

/// A value that identifies the version of its row.
fn value_of_version(column: &RowColumn, version: u16) -> Value {
    match column.column_type {
        ColumnType::Int(_) => Value::Int(version.into()),
        column_type if column_type.fixed_length().is_none() => {
            Value::Bytes(vec![b'v'; usize::from(version)].into())
        }
        _ => Value::Null,
    }
}

proptest! {
    #[test]
    fn rows_of_all_versions_are_read_under_the_last(
        changes in prop::collection::vec(any_change(), 0..12)
    ) {
        let versions = versions(changes);
        let last = (0..).map(RowVersion).zip(&versions).last().expect("at least one");
        let last = RowLayout::new(last.0, last.1.clone()).expect("a possible table");
        for (version, columns) in (0..).zip(&versions) {
            let layout = RowLayout::new(RowVersion(version), columns.clone());
            let values: Vec<_> = columns.iter().map(|c| value_of_version(c, version)).collect();
            let values: Vec<_> = values.iter().map(Value::as_ref).collect();
            let row = layout.expect("a possible table").encode(&values).expect("fits");
            let expected = last.columns().iter().map(|column| {
                if column.dropped_in.is_some() {
                    Value::Null
                } else if column.added_in > RowVersion(version) {
                    column.default.clone()
                } else {
                    value_of_version(column, version)
                }
            });
            prop_assert_eq!(read_all(&last, &row), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn rows_survive(row in any_row()) {
        let columns: Vec<_> = row.iter().map(|(t, nullable, _)| (*t, *nullable)).collect();
        let layout = layout(&columns);
        let values: Vec<_> = row.iter().map(|(_, _, value)| value.as_ref()).collect();
        let encoded = layout.encode(&values).expect("fits");
        prop_assert_eq!(layout.plan(&values, usize::MAX).expect("fits").row_bytes, encoded.len());
        let given: Vec<_> = row.iter().map(|(_, _, value)| value.clone()).collect();
        prop_assert_eq!(read_all(&layout, &encoded), given);
        compare_readers(&layout, &encoded);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        row in any_row(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let columns: Vec<_> = row.iter().map(|(t, nullable, _)| (*t, *nullable)).collect();
        let layout = layout(&columns);
        let values: Vec<_> = row.iter().map(|(_, _, value)| value.as_ref()).collect();
        let mut damaged = layout.encode(&values).expect("fits");
        for (at, byte) in changes {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        let tagged = [&[0, 0][..], &bytes].concat();
        for bytes in [&damaged, &bytes, &tagged] {
            if let Ok(view) = RowView::parse(&layout, bytes) {
                assert_eq!(view.columns().count(), columns.len());
            }
            for ordinal in 0..columns.len() {
                let _ = layout.column_reader(ordinal).map(|reader| reader.read(bytes).is_some());
                let _ = layout.number_reader(ordinal).map(|reader| reader.read_all(&[bytes], drop));
            }
        }
    }
}

/// `cargo test --release -p firn-format sysbench -- --ignored --nocapture` prints nanoseconds.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods)]
fn sysbench_row_timing() {
    use std::hint::black_box;
    use std::time::Instant;

    const ROUNDS: u32 = 250_000;
    let layout = layout(&[(INT, false), (INT, false), (TEXT, false), (TEXT, false)]);
    let (c, pad) = ([b'c'; 120], [b'p'; 60]);
    let values = [ValueRef::Int(1), ValueRef::Int(2), ValueRef::Bytes(&c), ValueRef::Bytes(&pad)];
    let time = |name: &str, mut round: Box<dyn FnMut() + '_>| {
        let batch = |_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| round());
            start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        };
        let best = (0..20).map(batch).fold(f64::MAX, f64::min);
        println!("{name}: {best:.1} ns");
    };
    let mut row = Vec::new();
    time(
        "encode into a buffer",
        Box::new(|| {
            row.clear();
            layout.encode_into(black_box(&values), &mut row).expect("fits");
        }),
    );
    time("encode", Box::new(|| drop(black_box(layout.encode(black_box(&values))))));
    let row = layout.encode(&values).expect("fits");
    time(
        "parse and read one column",
        Box::new(|| {
            let view = RowView::parse(&layout, black_box(&row)).expect("a row");
            black_box(view.column(2)).expect("a column");
        }),
    );
    time(
        "parse and read four columns",
        Box::new(|| {
            let view = RowView::parse(&layout, black_box(&row)).expect("a row");
            (0..4).for_each(|ordinal| {
                black_box(view.column(ordinal)).expect("a column");
            });
        }),
    );
}
