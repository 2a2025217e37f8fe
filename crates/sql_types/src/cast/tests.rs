use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::expect;
use firn_format::value::{CollationId, IntWidth};

use super::*;
use crate::temporal::parse::{DateRules, parse_date_time, parse_time};
use crate::{Coercibility, JsonValue, Members, SqlMode, StatementKind, TimeZone};

const UTF8MB4: CollationId = CollationId(255);

fn varchar(max_chars: u32) -> SqlType {
    SqlType::varchar(max_chars, UTF8MB4)
}

fn text(text: &str) -> (Datum, SqlType) {
    (Datum::text(text), varchar(100))
}

fn double(number: f64) -> (Datum, SqlType) {
    (Datum::Double(number), SqlType::double())
}

fn exact(number: &str) -> (Datum, SqlType) {
    (Datum::Decimal(number.parse_decimal()), SqlType::decimal(20, 5))
}

fn date_time(value: &str) -> (Datum, SqlType) {
    let parsed = parse_date_time(value.as_bytes(), DateRules::LENIENT).value.unwrap();
    (Datum::from(parsed.date_time), SqlType::new(TypeKind::DateTime { fsp: 6 }))
}

fn time(value: &str) -> (Datum, SqlType) {
    let parsed = parse_time(value.as_bytes(), DateRules::LENIENT).value.unwrap();
    (Datum::from(parsed), SqlType::new(TypeKind::Time { fsp: 6 }))
}

trait ParseDecimal {
    fn parse_decimal(&self) -> crate::Decimal;
}

impl ParseDecimal for str {
    fn parse_decimal(&self) -> crate::Decimal {
        crate::Decimal::parse(self).unwrap()
    }
}

/// The text of a value, control characters escaped.
fn plain(datum: &Datum, ty: &SqlType) -> String {
    let text = text::text_of(datum, ty);
    let escape = |character: char| match character {
        character if character.is_control() => character.escape_unicode().to_string(),
        character => character.to_string(),
    };
    text.to_str_lossy().chars().map(escape).collect()
}

/// The text of a result and of its conditions.
fn show(result: Result<Datum>, ty: &SqlType, ctx: &EvaluationContext) -> String {
    let mut shown = match result {
        Ok(Datum::Null) => "NULL".to_owned(),
        Ok(datum) => plain(&datum, ty),
        Err(error) => format!("ERROR {} {}", error.code, error.message),
    };
    for condition in ctx.take_conditions() {
        let _ = write!(shown, " | {:?} {} {}", condition.level, condition.code, condition.message);
    }
    shown
}

fn cast_of(from: (Datum, SqlType), to: &SqlType) -> String {
    let ctx = EvaluationContext::default();
    show(cast(&from.0, &from.1, to, &ctx), to, &ctx)
}

#[test]
fn casts_to_integers() {
    let (signed, unsigned) = (SqlType::bigint(), SqlType::bigint_unsigned());
    let mut shown = String::new();
    for from in [
        text("12"),
        text(" 12.9"),
        text("-1"),
        text("abc"),
        text(""),
        text("18446744073709551615"),
        text("99999999999999999999"),
        double(2.5),
        double(-1.0),
        double(1e20),
        exact("2.5"),
        exact("-1.5"),
        (Datum::Int(-1), signed.clone()),
        (Datum::UInt(u64::MAX), unsigned.clone()),
        date_time("2026-11-21 15:04:05.5"),
        time("-10:11:12"),
        (Datum::from(JsonValue::parse("[1]").unwrap()), SqlType::new(TypeKind::Json)),
        (Datum::from(JsonValue::parse("\"7\"").unwrap()), SqlType::new(TypeKind::Json)),
    ] {
        let input = plain(&from.0, &from.1);
        let _ = writeln!(shown, "{input} → {}", cast_of(from.clone(), &signed));
        let _ = writeln!(shown, "{input} → unsigned {}", cast_of(from, &unsigned));
    }
    expect![[r#"
        12 → 12
        12 → unsigned 12
         12.9 → 12 | Warning 1292 Truncated incorrect INTEGER value: ' 12.9'
         12.9 → unsigned 12 | Warning 1292 Truncated incorrect INTEGER value: ' 12.9'
        -1 → -1
        -1 → unsigned 18446744073709551615 | Warning 1105 Cast to unsigned converted negative integer to its positive complement
        abc → 0 | Warning 1292 Truncated incorrect INTEGER value: 'abc'
        abc → unsigned 0 | Warning 1292 Truncated incorrect INTEGER value: 'abc'
         → 0 | Warning 1292 Truncated incorrect INTEGER value: ''
         → unsigned 0 | Warning 1292 Truncated incorrect INTEGER value: ''
        18446744073709551615 → -1 | Warning 1105 Cast to signed converted positive out-of-range integer to its negative complement
        18446744073709551615 → unsigned 18446744073709551615
        99999999999999999999 → -1 | Warning 1292 Truncated incorrect INTEGER value: '99999999999999999999'
        99999999999999999999 → unsigned 18446744073709551615 | Warning 1292 Truncated incorrect INTEGER value: '99999999999999999999'
        2.5 → 2
        2.5 → unsigned 2
        -1 → -1
        -1 → unsigned 18446744073709551615
        1e20 → 9223372036854775807
        1e20 → unsigned 9223372036854775807
        2.5 → 3
        2.5 → unsigned 3
        -1.5 → -2
        -1.5 → unsigned 18446744073709551614
        -1 → -1
        -1 → unsigned 18446744073709551615
        18446744073709551615 → -1
        18446744073709551615 → unsigned 18446744073709551615
        2026-11-21 15:04:05.500000 → 20261121150406
        2026-11-21 15:04:05.500000 → unsigned 20261121150406
        -10:11:12.000000 → -101112
        -10:11:12.000000 → unsigned 18446744073709450504
        [1] → 0 | Warning 3156 Invalid JSON value for CAST to INTEGER from column json at row 1
        [1] → unsigned 0 | Warning 3156 Invalid JSON value for CAST to INTEGER from column json at row 1
        "7" → 7
        "7" → unsigned 7
    "#]].assert_eq(&shown);
}

#[test]
fn casts_to_other_types() {
    let date = SqlType::new(TypeKind::Date);
    let date_time_type = SqlType::new(TypeKind::DateTime { fsp: 0 });
    let time_type = SqlType::new(TypeKind::Time { fsp: 0 });
    let mut shown = String::new();
    for (from, to) in [
        (text("1.5abc"), SqlType::double()),
        (text(""), SqlType::double()),
        (text("1e400"), SqlType::double()),
        (text("12.345"), SqlType::decimal(10, 2)),
        (text("x"), SqlType::decimal(10, 2)),
        (text("123456.7"), SqlType::decimal(5, 1).with_coercibility(Coercibility::Implicit)),
        (text("123456.7"), SqlType::decimal(5, 1).with_coercibility(Coercibility::Numeric)),
        (double(0.1), SqlType::new(TypeKind::Float)),
        (text("héllo"), SqlType::varchar(3, UTF8MB4)),
        (text("abc"), SqlType::new(TypeKind::Binary { max_bytes: 5 })),
        (text("Zürich 😀"), SqlType::varchar(20, CollationId(8))),
        ((Datum::text(&b"\xff"[..]), SqlType::varbinary(1)), varchar(1)),
        (double(1e15), varchar(30)),
        (text("2026-02-30"), date.clone()),
        (text("2026-11-21x"), date.clone()),
        (text("0000-00-00"), date.clone()),
        (text("20261121"), date.clone()),
        ((Datum::Int(20_261_121), SqlType::bigint()), date.clone()),
        (date_time("2026-11-21 23:59:59.9"), date),
        (date_time("2026-11-21 23:59:59.9"), date_time_type.clone()),
        (text("2026-11-21 15:04:05+02:00"), date_time_type.clone()),
        (time("30:00:00"), date_time_type),
        (text("900:00:00"), time_type.clone()),
        (text("abc"), time_type.clone()),
        (exact("101112.6"), time_type),
        ((Datum::Int(99), SqlType::bigint()), SqlType::new(TypeKind::Year)),
        (text("0"), SqlType::new(TypeKind::Year)),
        (text("{\"b\":1,\"a\":[]}"), SqlType::new(TypeKind::Json)),
        (text("{"), SqlType::new(TypeKind::Json)),
    ] {
        let input = plain(&from.0, &from.1);
        let _ = writeln!(shown, "{input} → {} {}", to.kind.definition(), cast_of(from, &to));
    }
    expect![[r#"
        1.5abc → double 1.5 | Warning 1292 Truncated incorrect DOUBLE value: '1.5abc'
         → double 0
        1e400 → double 1.7976931348623157e308 | Warning 1292 Truncated incorrect DOUBLE value: '1e400'
        12.345 → decimal(10,2) 12.35
        x → decimal(10,2) 0.00 | Warning 1292 Truncated incorrect DECIMAL value: 'x'
        123456.7 → decimal(5,1) 9999.9 | Warning 1264 Out of range value for column '123456.7' at row 1
        123456.7 → decimal(5,1) 9999.9
        0.1 → float 0.1
        héllo → varchar(3) hél | Warning 1292 Truncated incorrect CHAR(3) value: 'héllo'
        abc → binary(5) abc\u{0}\u{0}
        Zürich 😀 → varchar(20) Zürich ?
        � → varchar(1) NULL | Warning 1300 Invalid utf8mb4 character string: 'FF'
        1e15 → varchar(30) 1e15
        2026-02-30 → date NULL | Warning 1292 Truncated incorrect date value: '2026-02-30'
        2026-11-21x → date 2026-11-21 | Warning 1292 Truncated incorrect date value: '2026-11-21x'
        0000-00-00 → date NULL | Warning 1292 Truncated incorrect date value: '0000-00-00'
        20261121 → date 2026-11-21
        20261121 → date 2026-11-21
        2026-11-21 23:59:59.900000 → date 2026-11-21
        2026-11-21 23:59:59.900000 → datetime 2026-11-22 00:00:00
        2026-11-21 15:04:05+02:00 → datetime 2026-11-21 13:04:05
        30:00:00.000000 → datetime 1970-01-02 06:00:00
        900:00:00 → time 838:59:59 | Warning 1292 Truncated incorrect time value: '900:00:00'
        abc → time NULL | Warning 1292 Truncated incorrect time value: 'abc'
        101112.6 → time 10:11:13
        99 → year 1999
        0 → year 2000
        {"b":1,"a":[]} → json {"a": [], "b": 1}
        { → json ERROR 3141 Invalid JSON text in argument 1 to function cast_as_json: "Missing a name for object member." at position 1.
    "#]].assert_eq(&shown);
}

/// What is stored in strict mode and, after `/`, otherwise.
fn assigned(from: &(Datum, SqlType), to: &SqlType) -> String {
    let shown = |statement_kind| {
        let ctx = EvaluationContext { statement_kind, ..EvaluationContext::default() };
        let target = Target { ty: to, column: "c", row: 1, ctx: &ctx, source: Source::Expression };
        show(assign(&from.0, &from.1, target), to, &ctx)
    };
    let strict = shown(StatementKind::Write);
    let adjusted = shown(StatementKind::WriteIgnore);
    if strict == adjusted { strict } else { format!("{strict} / {adjusted}") }
}

#[test]
fn what_is_stored() {
    let members = Arc::new(Members::new(["red", "green", "7"]));
    let enumeration = SqlType::new(TypeKind::Enum { members: members.clone(), collation: UTF8MB4 });
    let set = SqlType::new(TypeKind::Set { members, collation: UTF8MB4 });
    let tiny = SqlType::new(TypeKind::Integer { width: IntWidth::One, unsigned: false });
    let tiny_unsigned = SqlType::new(TypeKind::Integer { width: IntWidth::One, unsigned: true });
    let timestamp = SqlType::new(TypeKind::Timestamp { fsp: 0 });
    let char = SqlType::new(TypeKind::Char { max_chars: 3, collation: UTF8MB4 });
    let date = SqlType::new(TypeKind::Date);
    let json = SqlType::new(TypeKind::Json);
    let unsigned_decimal = TypeKind::Decimal { precision: 4, scale: 1, unsigned: true };
    let mut shown = String::new();
    for (from, to) in [
        ((Datum::Int(300), SqlType::bigint()), tiny.clone()),
        (text("12.5"), tiny.clone()),
        (text("12x"), tiny.clone()),
        (text("x"), tiny.clone()),
        (text(""), tiny.clone()),
        (double(-0.6), tiny_unsigned),
        (exact("-128.5"), tiny.clone()),
        ((Datum::Null, SqlType::null()), tiny.clone().not_null()),
        (exact("1.25"), SqlType::decimal(4, 1)),
        (exact("12345"), SqlType::decimal(4, 1)),
        (text("1.5x"), SqlType::decimal(4, 1)),
        (text("x"), SqlType::decimal(4, 1)),
        (exact("-1"), SqlType::new(unsigned_decimal)),
        (text("x"), SqlType::double()),
        (double(1e39), SqlType::new(TypeKind::Float)),
        (text("abcd"), char.clone()),
        (text("abc  "), char.clone()),
        (text("a "), char),
        (text("abcd"), varchar(3)),
        (text("abc  "), varchar(3)),
        (text("a😀b"), SqlType::varchar(9, CollationId(33))),
        (text("é"), SqlType::new(TypeKind::Text { max_bytes: 1, collation: UTF8MB4 })),
        (text("é"), SqlType::new(TypeKind::Text { max_bytes: 1, collation: CollationId(8) })),
        (text("abc"), SqlType::varbinary(2)),
        (text("2026-02-30"), date.clone()),
        (text("0000-00-00"), date.clone()),
        (text("2026-11-21 10:00:00"), date.clone()),
        ((Datum::Int(5), SqlType::bigint()), date),
        (text("1960-01-01"), timestamp.clone()),
        (text("2026-11-21 10:00:00.6"), timestamp),
        (text("900:00:00"), SqlType::new(TypeKind::Time { fsp: 0 })),
        (text("x"), SqlType::new(TypeKind::Time { fsp: 0 })),
        ((Datum::Int(1800), SqlType::bigint()), SqlType::new(TypeKind::Year)),
        (text("GREEN"), enumeration.clone()),
        (text("7"), enumeration.clone()),
        (text("2"), enumeration.clone()),
        (text("blue"), enumeration.clone()),
        ((Datum::Int(1), SqlType::bigint()), enumeration.clone()),
        ((Datum::Int(4), SqlType::bigint()), enumeration),
        (text("green,red"), set.clone()),
        (text("red,blue"), set.clone()),
        ((Datum::Int(8), SqlType::bigint()), set.clone()),
        (text(""), set),
        (
            (Datum::text(&b"\x01\x02"[..]), SqlType::varbinary(2)),
            SqlType::new(TypeKind::Bit { bits: 4 }),
        ),
        (text("[1,"), json.clone()),
        ((Datum::Int(1), SqlType::bigint()), json.clone()),
        ((Datum::text(&b"x"[..]), SqlType::varbinary(1)), json),
    ] {
        let input = plain(&from.0, &from.1);
        let _ = writeln!(shown, "{input} → {} {}", to.kind.definition(), assigned(&from, &to));
    }
    expect![[r#"
        300 → tinyint ERROR 1264 Out of range value for column 'c' at row 1 / 127 | Warning 1264 Out of range value for column 'c' at row 1
        12.5 → tinyint 13
        12x → tinyint ERROR 1265 Data truncated for column 'c' at row 1 / 12 | Warning 1265 Data truncated for column 'c' at row 1
        x → tinyint ERROR 1366 Incorrect integer value: 'x' for column 'c' at row 1 / 0 | Warning 1366 Incorrect integer value: 'x' for column 'c' at row 1
         → tinyint ERROR 1366 Incorrect integer value: '' for column 'c' at row 1 / 0 | Warning 1366 Incorrect integer value: '' for column 'c' at row 1
        -0.6 → tinyint unsigned ERROR 1264 Out of range value for column 'c' at row 1 / 0 | Warning 1264 Out of range value for column 'c' at row 1
        -128.5 → tinyint ERROR 1264 Out of range value for column 'c' at row 1 / -128 | Warning 1264 Out of range value for column 'c' at row 1
         → tinyint ERROR 1048 Column 'c' cannot be null / 0 | Warning 1048 Column 'c' cannot be null
        1.25 → decimal(4,1) 1.3 | Note 1265 Data truncated for column 'c' at row 1
        12345 → decimal(4,1) ERROR 1264 Out of range value for column 'c' at row 1 / 999.9 | Warning 1264 Out of range value for column 'c' at row 1
        1.5x → decimal(4,1) ERROR 1366 Incorrect decimal value: '1.5x' for column 'c' at row 1 / 1.5 | Note 1265 Data truncated for column 'c' at row 1
        x → decimal(4,1) ERROR 1366 Incorrect decimal value: 'x' for column 'c' at row 1 / 0.0 | Warning 1366 Incorrect decimal value: 'x' for column 'c' at row 1
        -1 → decimal(4,1) unsigned ERROR 1264 Out of range value for column 'c' at row 1 / 0.0 | Warning 1264 Out of range value for column 'c' at row 1
        x → double ERROR 1366 Incorrect DOUBLE value: 'x' for column 'c' at row 1 / 0 | Warning 1366 Incorrect DOUBLE value: 'x' for column 'c' at row 1
        1e39 → float ERROR 1264 Out of range value for column 'c' at row 1 / 3.40282e38 | Warning 1264 Out of range value for column 'c' at row 1
        abcd → char(3) ERROR 1406 Data too long for column 'c' at row 1 / abc | Warning 1265 Data truncated for column 'c' at row 1
        abc   → char(3) abc
        a  → char(3) a
        abcd → varchar(3) ERROR 1406 Data too long for column 'c' at row 1 / abc | Warning 1265 Data truncated for column 'c' at row 1
        abc   → varchar(3) abc | Note 1265 Data truncated for column 'c' at row 1
        a😀b → varchar(9) ERROR 1366 Incorrect string value: '\xF0\x9F\x98\x80b' for column 'c' at row 1 / a?b | Warning 1366 Incorrect string value: '\xF0\x9F\x98\x80b' for column 'c' at row 1
        é → tinytext ERROR 1406 Data too long for column 'c' at row 1 /  | Warning 1265 Data truncated for column 'c' at row 1
        é → tinytext é
        abc → varbinary(2) ERROR 1406 Data too long for column 'c' at row 1 / ab | Warning 1265 Data truncated for column 'c' at row 1
        2026-02-30 → date ERROR 1292 Incorrect date value: '2026-02-30' for column 'c' at row 1 / 0000-00-00 | Warning 1264 Out of range value for column 'c' at row 1
        0000-00-00 → date ERROR 1292 Incorrect date value: '0000-00-00' for column 'c' at row 1 / 0000-00-00 | Warning 1264 Out of range value for column 'c' at row 1
        2026-11-21 10:00:00 → date 2026-11-21 | Note 1292 Incorrect date value: '2026-11-21 10:00:00' for column 'c' at row 1 / 2026-11-21 | Note 1265 Data truncated for column 'c' at row 1
        5 → date ERROR 1292 Incorrect date value: '5' for column 'c' at row 1 / 0000-00-00 | Warning 1265 Data truncated for column 'c' at row 1
        1960-01-01 → timestamp ERROR 1292 Incorrect datetime value: '1960-01-01' for column 'c' at row 1 / 0000-00-00 00:00:00 | Warning 1264 Out of range value for column 'c' at row 1
        2026-11-21 10:00:00.6 → timestamp 2026-11-21 10:00:01
        900:00:00 → time ERROR 1292 Incorrect time value: '900:00:00' for column 'c' at row 1 / 838:59:59 | Warning 1264 Out of range value for column 'c' at row 1
        x → time ERROR 1292 Incorrect time value: 'x' for column 'c' at row 1 / 00:00:00 | Warning 1265 Data truncated for column 'c' at row 1
        1800 → year ERROR 1264 Out of range value for column 'c' at row 1 / 0000 | Warning 1264 Out of range value for column 'c' at row 1
        GREEN → enum('red','green','7') green
        7 → enum('red','green','7') 7
        2 → enum('red','green','7') green
        blue → enum('red','green','7') ERROR 1265 Data truncated for column 'c' at row 1 /  | Warning 1265 Data truncated for column 'c' at row 1
        1 → enum('red','green','7') red
        4 → enum('red','green','7') ERROR 1265 Data truncated for column 'c' at row 1 /  | Warning 1265 Data truncated for column 'c' at row 1
        green,red → set('red','green','7') red,green
        red,blue → set('red','green','7') ERROR 1265 Data truncated for column 'c' at row 1 / red | Warning 1265 Data truncated for column 'c' at row 1
        8 → set('red','green','7') ERROR 1265 Data truncated for column 'c' at row 1 /  | Warning 1265 Data truncated for column 'c' at row 1
         → set('red','green','7') 
        \u{1}\u{2} → bit(4) ERROR 1406 Data too long for column 'c' at row 1 / \u{f} | Warning 1406 Data too long for column 'c' at row 1
        [1, → json ERROR 3140 Invalid JSON text: "Invalid value." at position 3 in value for column 'c'.
        1 → json ERROR 3140 Invalid JSON text: "not a JSON text, may need CAST" at position 0 in value for column 'c'.
        x → json ERROR 3144 Cannot create a JSON value from a string with CHARACTER SET 'binary'.
    "#]].assert_eq(&shown);
}

#[test]
fn modes_take_zero_dates() {
    let ctx = EvaluationContext {
        sql_mode: SqlMode::STRICT_TRANS_TABLES,
        statement_kind: StatementKind::Write,
        ..EvaluationContext::default()
    };
    let date = SqlType::new(TypeKind::Date);
    let target = Target { ty: &date, column: "d", row: 1, ctx: &ctx, source: Source::Expression };
    for value in ["0000-00-00", "2026-00-00"] {
        let (datum, from) = text(value);
        assert_eq!(show(assign(&datum, &from, target), &date, &ctx), value);
    }
}

#[test]
fn a_time_that_the_clocks_skip_is_no_timestamp() {
    let ctx = EvaluationContext {
        time_zone: TimeZone::parse("Europe/Zurich").unwrap(),
        statement_kind: StatementKind::Write,
        ..EvaluationContext::default()
    };
    let ty = SqlType::new(TypeKind::Timestamp { fsp: 0 });
    let target = Target { ty: &ty, column: "t", row: 1, ctx: &ctx, source: Source::Expression };
    let (datum, from) = text("2026-03-29 02:30:00");
    assert_eq!(
        show(assign(&datum, &from, target), &ty, &ctx),
        "ERROR 1292 Incorrect datetime value: '2026-03-29 02:30:00' for column 't' at row 1"
    );
    let (datum, from) = text("2026-10-25 02:30:00");
    assert_eq!(show(assign(&datum, &from, target), &ty, &ctx), "2026-10-25 02:30:00");
}

#[test]
fn reading_truncates_with_warnings_that_are_errors_in_strict_writes() {
    let ctx =
        EvaluationContext { statement_kind: StatementKind::Write, ..EvaluationContext::default() };
    let (datum, from) = text("5 apples");
    assert_eq!(
        show(cast(&datum, &from, &SqlType::double(), &ctx), &SqlType::double(), &ctx),
        "ERROR 1292 Truncated incorrect DOUBLE value: '5 apples'"
    );
}
