use expect_test::expect;
use proptest::prelude::*;

use crate::key::BinaryCollation;
use crate::row::{RowView, tests::annotate};
use crate::value::{CollationId, DecimalType, IntWidth, ValueRef};

use super::*;

const INT: ColumnType = ColumnType::Int(IntWidth::Four);
const COLLATION: CollationId = CollationId(255);

fn index(index_id: u64, name: &str, kind: IndexKind, parts: Vec<IndexPart>) -> IndexDefinition {
    IndexDefinition {
        index_id: IndexId(index_id),
        name: name.into(),
        kind,
        state: IndexState::Ready,
        root_page: PageNo(index_id as u32),
        parts,
        options: Vec::new(),
    }
}

/// `CREATE TABLE test.t (id INT PRIMARY KEY, name VARCHAR(60), UNIQUE by_name (name(10) DESC))`,
/// then `ADD COLUMN level INT NOT NULL DEFAULT 3`, then `DROP COLUMN` of another column.
fn table() -> TableDefinition {
    let name_type = ColumnType::Varchar { max_chars: 60, collation: COLLATION };
    let dropped = ColumnDefinition {
        dropped_in: Some(RowVersion(2)),
        ..ColumnDefinition::new("gone", ColumnType::Date, true)
    };
    let level = ColumnDefinition {
        added_in: RowVersion(1),
        instant_default: Value::Int(3),
        default: Some(b"3".to_vec()),
        ..ColumnDefinition::new("level", INT, false)
    };
    let by_name =
        IndexPart { column: 1, direction: Direction::Descending, prefix_length: Some(10) };
    TableDefinition {
        table_id: TableId(17),
        space: SpaceId(5),
        schema_name: "test".into(),
        name: "t".into(),
        schema_version: 3,
        row_version: RowVersion(2),
        columns: vec![
            ColumnDefinition::new("id", INT, false),
            ColumnDefinition::new("name", name_type, true),
            dropped,
            level,
        ],
        indexes: vec![
            index(3, "PRIMARY", IndexKind::Clustered, vec![IndexPart::ascending(0)]),
            index(4, "by_name", IndexKind::Unique, vec![by_name]),
        ],
        options: b"InnoDB".to_vec(),
    }
}

#[test]
fn a_definition_has_the_documented_bytes() {
    let bytes = table().encode().expect("a possible table");
    let parts = [
        (1, "format"),
        (8, "table id"),
        (4, "space"),
        (8, "schema version"),
        (2, "row version"),
        (8, "schema name 'test'"),
        (5, "table name 't'"),
        (10, "table options 'InnoDB'"),
        (2, "columns"),
        (6, "column 0: name 'id'"),
        (7, "  type: int of 4 bytes"),
        (1, "  flags: none"),
        (2, "  added in 0"),
        (1, "  not dropped"),
        (1, "  no instant default"),
        (1, "  no default"),
        (4, "  no options"),
        (8, "column 1: name 'name'"),
        (7, "  type: varchar of 60 characters, collation 255"),
        (1, "  flags: nullable"),
        (9, "  the rest as for column 0"),
        (8, "column 2: name 'gone'"),
        (7, "  type: date"),
        (1, "  flags: nullable"),
        (2, "  added in 0"),
        (3, "  dropped in 2"),
        (6, "  the rest as for column 0"),
        (9, "column 3: name 'level'"),
        (7, "  type: int of 4 bytes"),
        (1, "  flags: none"),
        (2, "  added in 1"),
        (1, "  not dropped"),
        (9, "  instant default: signed 3"),
        (6, "  default '3'"),
        (4, "  no options"),
        (2, "indexes"),
        (8, "index id"),
        (11, "  name 'PRIMARY'"),
        (1, "  kind: clustered"),
        (1, "  state: ready"),
        (4, "  root page"),
        (4, "  no options"),
        (2, "  parts"),
        (4, "  part: column 0, ascending, no prefix"),
        (8, "index id"),
        (11, "  name 'by_name'"),
        (1, "  kind: unique"),
        (1, "  state: ready"),
        (4, "  root page"),
        (4, "  no options"),
        (2, "  parts"),
        (8, "  part: column 1, descending, prefix of 10"),
    ];
    expect![[r#"
        01                                      format
        11 00 00 00 00 00 00 00                 table id
        05 00 00 00                             space
        03 00 00 00 00 00 00 00                 schema version
        02 00                                   row version
        04 00 00 00 74 65 73 74                 schema name 'test'
        01 00 00 00 74                          table name 't'
        06 00 00 00 49 6e 6e 6f 44 42           table options 'InnoDB'
        04 00                                   columns
        02 00 00 00 69 64                       column 0: name 'id'
        01 04 00 00 00 00 00                      type: int of 4 bytes
        00                                        flags: none
        00 00                                     added in 0
        00                                        not dropped
        00                                        no instant default
        00                                        no default
        00 00 00 00                               no options
        04 00 00 00 6e 61 6d 65                 column 1: name 'name'
        08 3c 00 00 00 ff 00                      type: varchar of 60 characters, collation 255
        01                                        flags: nullable
        00 00 00 00 00 00 00 00 00                the rest as for column 0
        04 00 00 00 67 6f 6e 65                 column 2: name 'gone'
        0d 00 00 00 00 00 00                      type: date
        01                                        flags: nullable
        00 00                                     added in 0
        01 02 00                                  dropped in 2
        00 00 00 00 00 00                         the rest as for column 0
        05 00 00 00 6c 65 76 65 6c              column 3: name 'level'
        01 04 00 00 00 00 00                      type: int of 4 bytes
        00                                        flags: none
        01 00                                     added in 1
        00                                        not dropped
        01 03 00 00 00 00 00 00 00                instant default: signed 3
        01 01 00 00 00 33                         default '3'
        00 00 00 00                               no options
        02 00                                   indexes
        03 00 00 00 00 00 00 00                 index id
        07 00 00 00 50 52 49 4d 41 52 59          name 'PRIMARY'
        00                                        kind: clustered
        01                                        state: ready
        03 00 00 00                               root page
        00 00 00 00                               no options
        01 00                                     parts
        00 00 00 00                               part: column 0, ascending, no prefix
        04 00 00 00 00 00 00 00                 index id
        07 00 00 00 62 79 5f 6e 61 6d 65          name 'by_name'
        01                                        kind: unique
        01                                        state: ready
        04 00 00 00                               root page
        00 00 00 00                               no options
        01 00                                     parts
        01 00 01 01 0a 00 00 00                   part: column 1, descending, prefix of 10
    "#]]
    .assert_eq(&annotate(&bytes, &parts));
    assert_eq!(TableDefinition::decode(&bytes), Ok(table()));
}

#[test]
fn every_column_type_survives() {
    let types = [
        INT,
        ColumnType::Int(IntWidth::One),
        ColumnType::Int(IntWidth::Two),
        ColumnType::Int(IntWidth::Three),
        ColumnType::UInt(IntWidth::Eight),
        ColumnType::Decimal(DecimalType::new(65, 30).expect("a possible type")),
        ColumnType::Float,
        ColumnType::Double,
        ColumnType::Bit { bits: 64 },
        ColumnType::Char { max_chars: 255, collation: COLLATION },
        ColumnType::Varchar { max_chars: 65_535, collation: COLLATION },
        ColumnType::Text { max_bytes: u32::MAX, collation: COLLATION },
        ColumnType::Binary { max_bytes: 16 },
        ColumnType::Varbinary { max_bytes: 300 },
        ColumnType::Blob { max_bytes: u32::MAX },
        ColumnType::Date,
        ColumnType::Time { fsp: 6 },
        ColumnType::DateTime { fsp: 3 },
        ColumnType::Timestamp { fsp: 0 },
        ColumnType::Year,
        ColumnType::Enum { members: 65_535 },
        ColumnType::Set { members: 64 },
        ColumnType::Json,
        ColumnType::Geometry,
    ];
    let mut table = table();
    let columns = types.map(|column_type| ColumnDefinition::new("c", column_type, false));
    table.columns.extend(columns);
    let bytes = table.encode().expect("a possible table");
    assert_eq!(TableDefinition::decode(&bytes), Ok(table));
}

#[test]
fn contradictions_are_refused() {
    type Change = fn(&mut TableDefinition);
    let changes: [Change; 6] = [
        |table| table.indexes[0].kind = IndexKind::Unique,
        |table| table.indexes[1].kind = IndexKind::Clustered,
        |table| table.indexes[1].parts.clear(),
        |table| table.indexes[1].parts[0].column = 4,
        |table| table.indexes[1].parts[0].column = 2,
        |table| table.columns[0].nullable = true,
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut table = table();
        change(&mut table);
        let refused = table.encode();
        assert!(matches!(refused, Err(DefinitionError::Contradiction(_))), "change {number}");
        assert!(table.layout().is_err(), "change {number}");
    }
}

#[test]
fn damaged_and_unknown_bytes_are_refused() {
    let bytes = table().encode().expect("a possible table");
    for length in 0..bytes.len() {
        let refused = TableDefinition::decode(&bytes[..length]);
        assert!(matches!(refused, Err(DefinitionError::Damaged { .. })), "{length}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(TableDefinition::decode(&longer), Err(DefinitionError::Damaged { .. })));
    let later = [&[2], &bytes[1..]].concat();
    assert_eq!(TableDefinition::decode(&later), Err(DefinitionError::UnknownFormat(2)));
}

#[test]
fn a_layout_writes_a_row_and_its_entries() {
    let layout = table().layout().expect("a possible table");
    let name = ValueRef::Bytes(b"a glacier in summer");
    let values = [ValueRef::Int(1), name, ValueRef::Null, ValueRef::Int(9)];
    let row = layout.row.encode(&values).expect("fits");
    let view = RowView::parse(&layout.row, &row).expect("a row");
    assert_eq!(view.column(1), Ok(name.into()));

    let mut primary_key = Vec::new();
    layout.clustered.encode_row(&values, &BinaryCollation, &mut primary_key).expect("a key");
    let (index_id, by_name) = &layout.secondary[0];
    assert_eq!(*index_id, IndexId(4));
    let entry = by_name.entry(&values, &primary_key, &BinaryCollation).expect("an entry");
    let expected: Vec<u8> = b"\x01a glacier \0\0".iter().map(|byte| !byte).collect();
    assert_eq!((entry.key, entry.value), (expected, primary_key));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let _ = TableDefinition::decode(&bytes);
        bytes.insert(0, 1);
        let _ = TableDefinition::decode(&bytes);
        let mut damaged = table().encode().expect("a possible table");
        for (at, byte) in changes {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        if let Ok(definition) = TableDefinition::decode(&damaged) {
            let _ = definition.layout();
            let encoded = definition.encode();
            prop_assert_eq!(encoded, Ok(damaged));
        }
    }
}
