use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

fn json(text: &str) -> JsonValue {
    JsonValue::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[test]
fn texts_are_normalised() {
    for (text, printed) in [
        (
            r#"{"bb":1,"a":[1,2.0,null,true],"b":"x"}"#,
            r#"{"a": [1, 2.0, null, true], "b": "x", "bb": 1}"#,
        ),
        (r#"{"a":1,"a":2}"#, r#"{"a": 2}"#),
        (" [ ] ", "[]"),
        ("{}", "{}"),
        (r#""a\u00e9\n\/\ud83d\ude00""#, r#""aé\n/😀""#),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("-0", "0"),
        ("1e2", "100.0"),
        ("1.5e300", "1.5e300"),
    ] {
        assert_eq!(json(text).to_text(), printed, "{text}");
    }
}

#[test]
fn errors_say_what_and_where() {
    let error = |text: &str| match JsonValue::parse(text) {
        Err(JsonError::Syntax { message, position }) => format!("{message} {position}"),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(error(""), "The document is empty. 0");
    assert_eq!(error("abc"), "Invalid value. 0");
    assert_eq!(error("[1, 2"), "Missing a comma or ] after an array element. 5");
    assert_eq!(error(r#"{"a" 1}"#), "Missing a colon after a name of object member. 5");
    assert_eq!(error(r#"{"a": 1 "b"}"#), "Missing a comma or } after an object member. 8");
    assert_eq!(error("{a: 1}"), "Missing a name for object member. 1");
    assert_eq!(error("1 2"), "The document root must not be followed by other values. 2");
    assert_eq!(error("\"abc"), "Missing a closing quotation mark in string. 0");
    assert_eq!(error("1."), "Miss fraction part in number. 2");
    assert_eq!(error("nul"), "Invalid value. 3");
    assert_eq!(JsonValue::parse(&"[".repeat(101)), Err(JsonError::TooDeep));
}

#[test]
fn kinds_come_in_mysqls_order() {
    let order =
        ["null", "1", "1.5", "2", "\"a\"", "{}", "[]", "[1]", "[1, 2]", "[2]", "false", "true"];
    for (at, a) in order.iter().enumerate() {
        for (place, b) in order.iter().enumerate() {
            assert_eq!(json(a).compare(&json(b)), at.cmp(&place), "{a} {b}");
        }
    }
    assert_eq!(json("1").compare(&json("1.0")), Ordering::Equal);
    assert_eq!(JsonValue::UInt(7).compare(&JsonValue::Int(7)), Ordering::Equal);
}

pub(crate) fn any_json() -> impl Strategy<Value = JsonValue> {
    let scalar = prop_oneof![
        Just(JsonValue::Null),
        any::<bool>().prop_map(JsonValue::Bool),
        any::<i64>().prop_map(JsonValue::Int),
        (-3..3_i64).prop_map(JsonValue::Int),
        (-1e18..1e18_f64).prop_map(JsonValue::Double),
        "[a-z\"\\\\é\n]{0,4}".prop_map(JsonValue::string),
    ];
    scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(JsonValue::Array),
            proptest::collection::vec(("[a-c]{0,2}".prop_map(String::into_boxed_str), inner), 0..4)
                .prop_map(|members| JsonValue::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn printed_documents_are_read_back(value in any_json()) {
        prop_assert_eq!(JsonValue::parse(&value.to_text()), Ok(value));
    }

    #[test]
    fn the_order_is_one(a in any_json(), b in any_json(), c in any_json()) {
        prop_assert_eq!(a.compare(&b), b.compare(&a).reverse());
        if a.compare(&b).is_le() && b.compare(&c).is_le() {
            prop_assert!(a.compare(&c).is_le());
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}\",:0-9a-z.\\\\ -]{0,40}") {
        let _ = JsonValue::parse(&text);
    }
}
