use expect_test::expect;

use super::*;
use firn_sql::types::{Decimal, JsonValue, TypeKind};
use std::sync::Arc;

fn variable(value: Datum, kind: TypeKind) -> (Datum, SqlType) {
    (value, SqlType::new(kind))
}

fn session() -> WrittenSession {
    let utf8 = CollationId(255);
    let statement = |text: &str| WrittenStatement { text: text.to_owned(), mode: Mode::default() };
    let ansi = Mode { ansi_quotes: true, ignore_space: true, ..Mode::default() };
    WrittenSession {
        account: AccountName::new("app", "%"),
        roles: BTreeSet::from([AccountName::new("reader", "%")]),
        schema: Some("shop".to_owned()),
        variables: BTreeMap::from([
            ("autocommit".to_owned(), Setting::Number(0)),
            ("sql_mode".to_owned(), Setting::text("ANSI_QUOTES")),
        ]),
        results_collation: Some(utf8),
        user_variables: BTreeMap::from([
            ("a".to_owned(), variable(Datum::Int(-7), SqlType::bigint().kind)),
            (
                "b".to_owned(),
                variable(Datum::text(&b"\xc3\xff"[..]), TypeKind::Varbinary { max_bytes: 2 }),
            ),
        ]),
        numbered: BTreeMap::from([(3, statement("SELECT ?"))]),
        named: BTreeMap::from([(
            "s".to_owned(),
            WrittenStatement { text: "SELECT \"a\"".to_owned(), mode: ansi },
        )]),
        next_isolation: Some("SERIALIZABLE".to_owned()),
        next_read_only: None,
        last_insert_id: 9,
        insert_id: 0,
        row_count: -1,
        found_rows: 2,
    }
}

fn shown(session: &WrittenSession) -> String {
    let document: Value = serde_json::from_slice(&encode(session)).unwrap();
    format!("{document:#}")
}

#[test]
fn a_session_is_written_down_like_this() {
    expect![[r#"
        {
          "account": [
            "app",
            "%"
          ],
          "found_rows": 2,
          "insert_id": 0,
          "last_insert_id": 9,
          "named": {
            "s": {
              "mode": 17,
              "text": "SELECT \"a\""
            }
          },
          "next_transaction": [
            "SERIALIZABLE",
            null
          ],
          "numbered": {
            "3": {
              "mode": 0,
              "text": "SELECT ?"
            }
          },
          "results_collation": 255,
          "roles": [
            [
              "reader",
              "%"
            ]
          ],
          "row_count": -1,
          "schema": "shop",
          "user_variables": {
            "a": {
              "coercibility": 5,
              "nullable": true,
              "type": [
                "integer",
                8,
                false
              ],
              "value": [
                "int",
                "-7"
              ]
            },
            "b": {
              "coercibility": 4,
              "nullable": true,
              "type": [
                "varbinary",
                2
              ],
              "value": [
                "bytes",
                "C3FF"
              ]
            }
          },
          "variables": {
            "autocommit": "v1 n 0",
            "sql_mode": "v1 t ANSI_QUOTES"
          },
          "version": 2
        }"#]]
    .assert_eq(&shown(&session()));
}

#[test]
fn what_is_written_comes_back() {
    let empty = WrittenSession {
        roles: BTreeSet::new(),
        schema: None,
        variables: BTreeMap::new(),
        results_collation: None,
        user_variables: BTreeMap::new(),
        numbered: BTreeMap::new(),
        named: BTreeMap::new(),
        next_isolation: None,
        next_read_only: Some(true),
        ..session()
    };
    for session in [session(), empty] {
        assert_eq!(decode(&encode(&session)), Ok(session));
    }
}

#[test]
fn values_of_every_type_come_back() {
    let members = Arc::new(firn_sql::types::Members::new(["a", "b"]));
    let collation = CollationId(255);
    let decimal = TypeKind::Decimal { precision: 5, scale: 2, unsigned: false };
    let document = JsonValue::parse(r#"{"a": [1, 2.50, "x"]}"#).unwrap();
    let values = [
        variable(Datum::Null, TypeKind::Null),
        variable(Datum::Int(i64::MIN), SqlType::bigint().kind),
        variable(Datum::UInt(u64::MAX), SqlType::bigint_unsigned().kind),
        variable(Datum::UInt(5), TypeKind::Bit { bits: 3 }),
        variable(Datum::UInt(2026), TypeKind::Year),
        variable(Datum::Decimal(Decimal::parse("-12.30").unwrap()), decimal),
        variable(Datum::Double(0.1 + 0.2), TypeKind::Double),
        variable(Datum::Double(1e300), TypeKind::Float),
        variable(Datum::text(&b"snow"[..]), TypeKind::Char { max_chars: 4, collation }),
        variable(Datum::text("❄".as_bytes()), TypeKind::Varchar { max_chars: 1, collation }),
        variable(Datum::text(&b""[..]), TypeKind::Text { max_bytes: 255, collation }),
        variable(Datum::text(&b"\0\xff"[..]), TypeKind::Binary { max_bytes: 2 }),
        variable(Datum::text(&b"x"[..]), TypeKind::Blob { max_bytes: 9 }),
        variable(Datum::Date(1234), TypeKind::Date),
        variable(Datum::Time(-5), TypeKind::Time { fsp: 6 }),
        variable(Datum::DateTime(99), TypeKind::DateTime { fsp: 0 }),
        variable(Datum::DateTime(98), TypeKind::Timestamp { fsp: 3 }),
        variable(Datum::UInt(1), TypeKind::Enum { members: Arc::clone(&members), collation }),
        variable(Datum::UInt(3), TypeKind::Set { members, collation }),
        variable(Datum::Json(Arc::new(document)), TypeKind::Json),
        variable(Datum::Null, TypeKind::Geometry),
    ];
    for (value, ty) in values {
        let written = encode_value(&value, &ty);
        let text = written.to_string();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(decode_value(&read), Ok((value, ty)), "{text}");
    }
}

#[test]
fn damaged_documents_and_other_versions_are_refused() {
    let whole: Value = serde_json::from_slice(&encode(&session())).unwrap();
    let refused = |document: &Value| decode(document.to_string().as_bytes()).unwrap_err().0;
    for field in whole.as_object().unwrap().keys() {
        let mut without = whole.clone();
        without.as_object_mut().unwrap().remove(field);
        refused(&without);
        let mut other = whole.clone();
        other[field] = json!({"x": 1.5});
        refused(&other);
    }
    let mut later = whole.clone();
    later["version"] = json!(3);
    assert_eq!(refused(&later), "it has version 3, and this server reads version 2");
    let bytes = encode(&session());
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err());
    }
    for (field, at, value) in [
        ("user_variables", "a", json!(["int", "x"])),
        ("user_variables", "b", json!(["bytes", "c"])),
        ("user_variables", "b", json!(["bytes", "+f"])),
        ("user_variables", "a", json!(["double", "inf"])),
    ] {
        let mut damaged = whole.clone();
        damaged[field][at]["value"] = value;
        refused(&damaged);
    }
}
