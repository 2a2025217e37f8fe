//! Each format, with the values that are hard to write.

use expect_test::{Expect, expect};

use super::*;

fn header(name: &str, is_number: bool) -> Header {
    Header { name: name.to_owned(), is_number, is_json: false, is_binary: false }
}

fn sample() -> (Vec<Header>, Vec<Vec<Value>>) {
    let mut headers = vec![header("id", true), header("a name", false), header("doc", false)];
    headers[2].is_json = true;
    headers.push(Header { is_binary: true, ..header("bytes", false) });
    let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
    let rows = vec![
        vec![
            text("1"),
            text("nut, \"M4\"\tsmall"),
            text("{\"a\": [1]}"),
            Value::Bytes(vec![0, 255]),
        ],
        vec![text("-20.50"), Value::NULL, Value::NULL, text("")],
    ];
    (headers, rows)
}

fn written(format: Format) -> String {
    let (headers, rows) = sample();
    let mut out = Vec::new();
    match row_writer(format, false) {
        Some(mut writer) => {
            writer.begin(&headers, &mut out).unwrap();
            rows.iter().for_each(|row| writer.row(&headers, row, &mut out).unwrap());
            writer.end(&mut out).unwrap();
        }
        None => write_table(&headers, &rows, false, Screen::default(), &mut out).unwrap(),
    }
    String::from_utf8(out).unwrap()
}

fn check(format: Format, expected: Expect) {
    expected.assert_eq(&written(format));
}

#[test]
fn a_table() {
    check(
        Format::Table,
        expect![[r#"
        +--------+-----------------+------------+--------+
        | id     | a name          | doc        | bytes  |
        +--------+-----------------+------------+--------+
        |      1 | nut, "M4" small | {"a": [1]} | 0x00FF |
        | -20.50 | NULL            | NULL       |        |
        +--------+-----------------+------------+--------+
    "#]],
    );
}

#[test]
fn vertically() {
    check(
        Format::Vertical,
        expect![[r#"
        *************************** 1. row ***************************
            id: 1
        a name: nut, "M4"	small
           doc: {"a": [1]}
         bytes: 0x00FF
        *************************** 2. row ***************************
            id: -20.50
        a name: NULL
           doc: NULL
         bytes: 
    "#]],
    );
}

#[test]
fn tabs() {
    check(
        Format::Tab,
        expect![[r#"
        id	a name	doc	bytes
        1	nut, "M4"\tsmall	{"a": [1]}	0x00FF
        -20.50	NULL	NULL	
    "#]],
    );
}

#[test]
fn comma_separated_values() {
    check(
        Format::Csv,
        expect![[r#"
        id,a name,doc,bytes
        1,"nut, ""M4""	small","{""a"": [1]}",0x00FF
        -20.50,,,""
    "#]],
    );
}

#[test]
fn json() {
    check(
        Format::Json,
        expect![[r#"
        [
        {"id":1,"a name":"nut, \"M4\"\tsmall","doc":{"a": [1]},"bytes":"0x00FF"},
        {"id":-20.50,"a name":null,"doc":null,"bytes":""}
        ]
    "#]],
    );
    let parsed: serde_json::Value = serde_json::from_str(&written(Format::Json)).unwrap();
    assert_eq!(parsed[0]["doc"]["a"][0], 1);
}

#[test]
fn a_table_that_is_too_wide_is_wrapped_or_stood_up() {
    let headers: Vec<Header> = ["one", "two"].map(|name| header(name, false)).into();
    let rows = vec![vec![Value::Bytes(vec![b'x'; 30]), Value::Bytes(vec![b'y'; 50])]];
    let lines = |width: u16| {
        let mut out = Vec::new();
        let screen = Screen { width: Some(width), height: None };
        write_table(&headers, &rows, false, screen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(lines(60).lines().all(|line| line.len() <= 60), "{}", lines(60));
    assert!(lines(60).starts_with('+'), "{}", lines(60));
    assert!(lines(20).starts_with("***"), "{}", lines(20));
}
