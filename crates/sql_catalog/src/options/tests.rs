//! The bytes of options, field by field, and arbitrary bytes.

use expect_test::{Expect, expect};
use firn_sql_types::{Datum, Decimal};
use proptest::prelude::*;

use super::super::model::DefaultValue;
use super::*;

/// Bytes with their meaning, one field per line.
fn annotate(bytes: &[u8], fields: &[(usize, &str)]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    for (length, meaning) in fields {
        let (field, behind) = rest.split_at(*length);
        rest = behind;
        let hex: Vec<String> = field.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("{:<39} {meaning}\n", hex.join(" ")));
    }
    assert!(rest.is_empty(), "{} bytes without a meaning", rest.len());
    text
}

#[track_caller]
fn holds(bytes: &[u8], fields: &[(usize, &str)], expected: &Expect) {
    expected.assert_eq(&annotate(bytes, fields));
}

fn table() -> TableOptions {
    TableOptions {
        collation: CollationId(46),
        comment: "of t".into(),
        row_format: "DYNAMIC".into(),
        order: vec![2, 0],
        checks: vec![CheckModel { name: "c".into(), text: "(`a` > 0)".into(), enforced: true }],
        foreign_keys: vec![ForeignKeyModel {
            name: "fk".into(),
            columns: vec![2],
            parent_schema: "s".into(),
            parent_table: "p".into(),
            parent_columns: vec!["id".into()],
            on_delete: ReferentialAction::Cascade,
            on_update: ReferentialAction::NoAction,
        }],
        view: None,
        temporary: None,
        created_us: 1,
        other: vec![("MAX_ROWS".into(), "7".into())],
    }
}

#[test]
fn table_options_have_the_documented_bytes() {
    let fields = [
        (1, "format"),
        (5, "collation: 2 bytes"),
        (2, "  utf8mb4_bin"),
        (5, "comment: 4 bytes"),
        (4, "  'of t'"),
        (5, "row format: 7 bytes"),
        (7, "  'DYNAMIC'"),
        (5, "order of columns: 8 bytes"),
        (4, "  two"),
        (4, "  ordinals 2, 0"),
        (5, "checks"),
        (4, "  one"),
        (5, "  name 'c'"),
        (13, "  text"),
        (1, "  enforced"),
        (5, "foreign keys"),
        (4, "  one"),
        (6, "  name 'fk'"),
        (6, "  columns: ordinal 2"),
        (5, "  parent's schema 's'"),
        (5, "  parent 'p'"),
        (4, "  parent's columns: one"),
        (6, "    'id'"),
        (1, "  ON DELETE CASCADE"),
        (1, "  ON UPDATE NO ACTION"),
        (5, "created"),
        (8, "  1 µs after 1970"),
        (5, "other options"),
        (4, "  one"),
        (12, "  name 'MAX_ROWS'"),
        (5, "  value '7'"),
    ];
    holds(
        &table().encode(),
        &fields,
        &expect![[r#"
        01                                      format
        01 02 00 00 00                          collation: 2 bytes
        2e 00                                     utf8mb4_bin
        02 04 00 00 00                          comment: 4 bytes
        6f 66 20 74                               'of t'
        03 07 00 00 00                          row format: 7 bytes
        44 59 4e 41 4d 49 43                      'DYNAMIC'
        04 08 00 00 00                          order of columns: 8 bytes
        02 00 00 00                               two
        02 00 00 00                               ordinals 2, 0
        05 17 00 00 00                          checks
        01 00 00 00                               one
        01 00 00 00 63                            name 'c'
        09 00 00 00 28 60 61 60 20 3e 20 30 29    text
        01                                        enforced
        06 26 00 00 00                          foreign keys
        01 00 00 00                               one
        02 00 00 00 66 6b                         name 'fk'
        01 00 00 00 02 00                         columns: ordinal 2
        01 00 00 00 73                            parent's schema 's'
        01 00 00 00 70                            parent 'p'
        01 00 00 00                               parent's columns: one
        02 00 00 00 69 64                           'id'
        02                                        ON DELETE CASCADE
        00                                        ON UPDATE NO ACTION
        09 08 00 00 00                          created
        01 00 00 00 00 00 00 00                   1 µs after 1970
        0a 15 00 00 00                          other options
        01 00 00 00                               one
        08 00 00 00 4d 41 58 5f 52 4f 57 53       name 'MAX_ROWS'
        01 00 00 00 37                            value '7'
    "#]],
    );
    assert_eq!(TableOptions::decode(&table().encode()), Ok(table()));
}

fn column() -> ColumnOptions {
    ColumnOptions {
        auto_increment: true,
        invisible: true,
        hidden: true,
        zerofill: true,
        unsigned: true,
        members: vec!["x".into(), "yz".into()],
        member_collation: Some(CollationId(46)),
        comment: "of c".into(),
        generated: Some(Generated { text: "(`a` + 1)".into(), stored: true }),
        on_update_now: Some(3),
        display_width: Some(5),
        display_decimals: Some(2),
        geometry: "point".into(),
    }
}

#[test]
fn column_options_have_the_documented_bytes() {
    let fields = [
        (1, "format"),
        (5, "flags"),
        (1, "  all"),
        (5, "members of an enum or set"),
        (4, "  two"),
        (5, "  'x'"),
        (6, "  'yz'"),
        (5, "collation of members"),
        (2, "  utf8mb4_bin"),
        (5, "comment"),
        (4, "  'of c'"),
        (5, "generated"),
        (1, "  stored"),
        (9, "  expression"),
        (5, "on update now"),
        (1, "  3 digits"),
        (5, "display width"),
        (2, "  5"),
        (5, "display decimals"),
        (1, "  2"),
        (5, "geometry"),
        (5, "  'point'"),
    ];
    holds(
        &column().encode(),
        &fields,
        &expect![[r#"
        01                                      format
        01 01 00 00 00                          flags
        1f                                        all
        02 0f 00 00 00                          members of an enum or set
        02 00 00 00                               two
        01 00 00 00 78                            'x'
        02 00 00 00 79 7a                         'yz'
        03 02 00 00 00                          collation of members
        2e 00                                     utf8mb4_bin
        04 04 00 00 00                          comment
        6f 66 20 63                               'of c'
        05 0a 00 00 00                          generated
        01                                        stored
        28 60 61 60 20 2b 20 31 29                expression
        06 01 00 00 00                          on update now
        03                                        3 digits
        07 02 00 00 00                          display width
        05 00                                     5
        08 01 00 00 00                          display decimals
        02                                        2
        09 05 00 00 00                          geometry
        70 6f 69 6e 74                            'point'
    "#]],
    );
    assert_eq!(ColumnOptions::decode(&column().encode()), Ok(column()));
}

#[test]
fn index_schema_and_view_options_have_the_documented_bytes() {
    let index = IndexOptions {
        invisible: true,
        implicit: true,
        comment: "k".into(),
        using: Some("HASH".into()),
        special: Some(SpecialIndex::Spatial),
    };
    let fields = [
        (1, "format"),
        (5, "flags"),
        (1, "  invisible, made for a foreign key"),
        (5, "comment"),
        (1, "  'k'"),
        (5, "USING"),
        (4, "  'HASH'"),
        (5, "special"),
        (1, "  SPATIAL"),
    ];
    holds(
        &index.encode(),
        &fields,
        &expect![[r#"
        01                                      format
        01 01 00 00 00                          flags
        03                                        invisible, made for a foreign key
        02 01 00 00 00                          comment
        6b                                        'k'
        03 04 00 00 00                          USING
        48 41 53 48                               'HASH'
        04 01 00 00 00                          special
        01                                        SPATIAL
    "#]],
    );
    assert_eq!(IndexOptions::decode(&index.encode()), Ok(index));

    let schema = SchemaOptions { collation: CollationId(8), read_only: true };
    let fields = [(1, "format"), (5, "collation"), (2, "  latin1_swedish_ci"), (5, "read only")];
    holds(
        &schema.encode(),
        &fields,
        &expect![[r#"
        01                                      format
        01 02 00 00 00                          collation
        08 00                                     latin1_swedish_ci
        02 00 00 00 00                          read only
    "#]],
    );
    assert_eq!(SchemaOptions::decode(&schema.encode()), Ok(schema));

    let view = TableOptions {
        view: Some(ViewModel {
            body: "select 1".into(),
            schema: "s".into(),
            definer: "u@h".into(),
            security_definer: true,
            algorithm: ViewAlgorithm::Merge,
            check_option: CheckOption::Local,
        }),
        ..TableOptions::default()
    };
    let fields = [
        (1, "format"),
        (5, "view"),
        (12, "  query"),
        (5, "  schema of names"),
        (7, "  definer"),
        (1, "  SQL SECURITY DEFINER"),
        (1, "  ALGORITHM = MERGE"),
        (1, "  WITH LOCAL CHECK OPTION"),
    ];
    holds(
        &view.encode(),
        &fields,
        &expect![[r#"
        01                                      format
        07 1b 00 00 00                          view
        08 00 00 00 73 65 6c 65 63 74 20 31       query
        01 00 00 00 73                            schema of names
        03 00 00 00 75 40 68                      definer
        01                                        SQL SECURITY DEFINER
        01                                        ALGORITHM = MERGE
        01                                        WITH LOCAL CHECK OPTION
    "#]],
    );
    assert_eq!(TableOptions::decode(&view.encode()), Ok(view));

    let temporary =
        TableOptions { temporary: Some(("s".into(), "t".into())), ..TableOptions::default() };
    let fields = [(1, "format"), (5, "temporary table"), (5, "  its schema"), (5, "  its name")];
    holds(
        &temporary.encode(),
        &fields,
        &expect![[r#"
        01                                      format
        08 0a 00 00 00                          temporary table
        01 00 00 00 73                            its schema
        01 00 00 00 74                            its name
    "#]],
    );
    assert_eq!(TableOptions::decode(&temporary.encode()), Ok(temporary));
}

#[test]
fn what_has_its_default_takes_no_bytes() {
    assert_eq!(TableOptions::default().encode(), []);
    assert_eq!(ColumnOptions::default().encode(), []);
    assert_eq!(IndexOptions::default().encode(), []);
    assert_eq!(SchemaOptions::default().encode(), []);
    assert_eq!(encode_default(&DefaultValue::None), None);
}

#[test]
fn defaults_have_the_documented_bytes() {
    let decimal = Decimal::parse("-1.50").unwrap();
    let literals = [
        Datum::Int(-1),
        Datum::UInt(2),
        Datum::Double(0.5),
        Datum::Decimal(decimal),
        Datum::text("ab"),
        Datum::Date(3),
        Datum::Time(-4),
        Datum::DateTime(5),
    ];
    let mut defaults: Vec<DefaultValue> = literals.map(DefaultValue::Literal).into();
    defaults.push(DefaultValue::Null);
    defaults.push(DefaultValue::Expression("uuid()".into()));
    defaults.push(DefaultValue::CurrentTimestamp { fsp: 6 });
    let mut text = String::new();
    for default in &defaults {
        let bytes = encode_default(default).unwrap();
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("{default:?}\n    {}\n", hex.join(" ")));
        assert_eq!(decode_default(Some(&bytes)), Ok(default.clone()));
    }
    expect![[r#"
        Literal(Int(-1))
            01 02 09 00 00 00 01 ff ff ff ff ff ff ff ff
        Literal(UInt(2))
            01 02 09 00 00 00 02 02 00 00 00 00 00 00 00
        Literal(Double(0.5))
            01 02 09 00 00 00 03 00 00 00 00 00 00 e0 3f
        Literal(Decimal(Decimal(-1.50)))
            01 02 0a 00 00 00 04 05 00 00 00 2d 31 2e 35 30
        Literal(Text(b"ab"))
            01 02 07 00 00 00 05 02 00 00 00 61 62
        Literal(Date(3))
            01 02 09 00 00 00 06 03 00 00 00 00 00 00 00
        Literal(Time(-4))
            01 02 09 00 00 00 07 fc ff ff ff ff ff ff ff
        Literal(DateTime(5))
            01 02 09 00 00 00 08 05 00 00 00 00 00 00 00
        Null
            01 01 00 00 00 00
        Expression("uuid()")
            01 03 06 00 00 00 75 75 69 64 28 29
        CurrentTimestamp { fsp: 6 }
            01 04 01 00 00 00 06
    "#]]
    .assert_eq(&text);
}

#[test]
fn fields_out_of_order_and_unknown_ones_are_refused() {
    let bytes = table().encode();
    for length in 1..bytes.len() {
        let cut = TableOptions::decode(&bytes[..length]);
        // Between two fields, what was read so far is complete.
        assert!(cut.is_err() || bytes[..length].len() < bytes.len());
    }
    assert!(TableOptions::decode(&[2]).is_err());
    assert!(TableOptions::decode(&[1, 200, 0, 0, 0, 0]).is_err());
    assert!(TableOptions::decode(&[1, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0]).is_err());
    assert!(TableOptions::decode(&[1, 1, 3, 0, 0, 0, 46, 0, 9]).is_err(), "more than a field has");
    assert!(ColumnOptions::decode(&[1, 1, 1, 0, 0, 0, 0xff]).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..120),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        bytes.insert(0, 1);
        let _ = SchemaOptions::decode(&bytes);
        let _ = TableOptions::decode(&bytes);
        let _ = ColumnOptions::decode(&bytes);
        let _ = IndexOptions::decode(&bytes);
        let _ = decode_default(Some(&bytes));
        for mut damaged in [table().encode(), column().encode()] {
            for (at, byte) in &changes {
                let at = at.index(damaged.len());
                damaged[at] = *byte;
            }
            let _ = TableOptions::decode(&damaged);
            let _ = ColumnOptions::decode(&damaged);
        }
    }
}
