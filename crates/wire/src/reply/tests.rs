use std::sync::Arc;

use expect_test::{Expect, expect};

use super::annotate::packets;
use super::{
    ColumnDefinition, Completion, EncodedColumns, Replies, ReplyRecorder, RowFormat, SessionChange,
};
use crate::error::{ServerError, WireError};
use crate::flags::{Capabilities, ColumnFlags, Status};
use crate::value::{ColumnType, Date, DateTime, Time};

const DONE: Completion<'static> = Completion {
    affected_rows: 0,
    last_insert_id: 0,
    status: Status::AUTOCOMMIT,
    warnings: 0,
    info: "",
    changes: &[],
};

fn record(
    format: RowFormat,
    capabilities: Option<Capabilities>,
    answer: impl FnOnce(&mut Replies<'_>) -> Result<(), WireError>,
) -> Vec<u8> {
    let mut recorder = ReplyRecorder::new(format);
    if let Some(capabilities) = capabilities {
        recorder = recorder.with_capabilities(capabilities);
    }
    answer(&mut recorder.replies()).unwrap();
    recorder.take()
}

fn check(
    format: RowFormat,
    answer: impl FnOnce(&mut Replies<'_>) -> Result<(), WireError>,
    expected: Expect,
) {
    expected.assert_eq(&packets(&record(format, None, answer)));
}

fn column(name: &str, column_type: ColumnType) -> ColumnDefinition {
    let varies = matches!(column_type, ColumnType::Float | ColumnType::Double);
    let decimals = if varies { 31 } else { 0 };
    ColumnDefinition { decimals, ..ColumnDefinition::new(name, column_type) }
}

#[test]
fn an_ok_with_all_that_it_can_tell() {
    let completion = Completion {
        affected_rows: 3,
        last_insert_id: 300,
        status: Status::AUTOCOMMIT | Status::IN_TRANSACTION,
        warnings: 2,
        info: "Records: 3",
        changes: &[
            SessionChange::SystemVariable { name: "autocommit", value: b"OFF" },
            SessionChange::Schema("shop"),
            SessionChange::State,
            SessionChange::Gtids("a:1"),
            SessionChange::TransactionCharacteristics("START TRANSACTION;"),
            SessionChange::TransactionState("T_______"),
        ],
    };
    check(
        RowFormat::Text,
        |replies| replies.ok(&completion),
        expect![[r#"
        packet 1, 88 bytes
        00 03 fc 2c 01 03 40 02 00 0a 52 65 63 6f 72 64 |...,..@...Record
        73 3a 20 33 43 00 0f 0a 61 75 74 6f 63 6f 6d 6d |s: 3C...autocomm
        69 74 03 4f 46 46 01 05 04 73 68 6f 70 02 02 01 |it.OFF...shop...
        31 03 05 00 03 61 3a 31 04 13 12 53 54 41 52 54 |1....a:1...START
        20 54 52 41 4e 53 41 43 54 49 4f 4e 3b 05 09 08 | TRANSACTION;...
        54 5f 5f 5f 5f 5f 5f 5f                         |T_______
    "#]],
    );
    // A client that does not track the session receives only the line.
    let plain =
        record(RowFormat::Text, Some(Capabilities::PROTOCOL_41), |replies| replies.ok(&completion));
    assert!(plain.ends_with(b"\x03\x00\x02\x00\x0aRecords: 3"), "{}", packets(&plain));
}

#[test]
fn a_result_set_with_eof_packets() {
    let sent = record(RowFormat::Text, Some(Capabilities::PROTOCOL_41), |replies| {
        let id = ColumnDefinition {
            schema: "shop".to_owned(),
            table: "i".to_owned(),
            original_table: "items".to_owned(),
            original_name: "id".to_owned(),
            flags: ColumnFlags::NOT_NULL | ColumnFlags::PRIMARY_KEY,
            length_bytes: 20,
            ..column("id", ColumnType::LongLong)
        };
        let mut rows = replies.columns(&[id])?;
        let mut row = rows.row()?;
        row.int(-42);
        row.end();
        let mut row = rows.row()?;
        row.null();
        row.end();
        rows.finish(&Completion { warnings: 1, ..DONE })
    });
    expect![[r#"
        packet 1, 1 bytes
        01                                              |.
        packet 2, 36 bytes
        03 64 65 66 04 73 68 6f 70 01 69 05 69 74 65 6d |.def.shop.i.item
        73 02 69 64 02 69 64 0c 3f 00 14 00 00 00 08 03 |s.id.id.?.......
        00 00 00 00                                     |....
        packet 3, 5 bytes
        fe 00 00 02 00                                  |.....
        packet 4, 4 bytes
        03 2d 34 32                                     |.-42
        packet 5, 1 bytes
        fb                                              |.
        packet 6, 5 bytes
        fe 01 00 02 00                                  |.....
    "#]]
    .assert_eq(&packets(&sent));
}

/// A row that has every kind of field.
fn every_kind(replies: &mut Replies<'_>) -> Result<(), WireError> {
    use ColumnType::*;
    let kinds = [
        Tiny, Short, Int24, Long, LongLong, Float, Double, NewDecimal, Date, DateTime, Time, Year,
        VarString, Null,
    ];
    let columns: Vec<_> = kinds.iter().map(|&kind| column("", kind)).collect();
    let columns = EncodedColumns::new(&columns);
    let mut rows = replies.encoded_columns(&columns)?;
    let date = crate::value::Date { year: 2026, month: 11, day: 21 };
    let mut row = rows.row()?;
    [-1, -2, -3, -4, -5].into_iter().for_each(|value| row.int(value));
    row.float(1.5);
    row.double(-0.25);
    row.decimal("12.30");
    row.date(date);
    row.datetime(
        crate::value::DateTime { date, hour: 1, minute: 2, second: 3, microsecond: 45_000 },
        3,
    );
    row.time(
        crate::value::Time { negative: true, hours: 49, minute: 2, second: 3, microsecond: 0 },
        0,
    );
    row.int(1999);
    row.bytes(b"text");
    row.null();
    row.end();
    rows.finish(&DONE)
}

/// The packets of the rows in a reply with the columns of `every_kind`.
fn without_columns(sent: &[u8]) -> String {
    let text = packets(sent);
    let start = text.find("packet 16").unwrap();
    text[start..].to_owned()
}

#[test]
fn a_row_as_text() {
    let sent = record(RowFormat::Text, None, every_kind);
    expect![[r#"
        packet 16, 87 bytes
        02 2d 31 02 2d 32 02 2d 33 02 2d 34 02 2d 35 03 |.-1.-2.-3.-4.-5.
        31 2e 35 05 2d 30 2e 32 35 05 31 32 2e 33 30 0a |1.5.-0.25.12.30.
        32 30 32 36 2d 31 31 2d 32 31 17 32 30 32 36 2d |2026-11-21.2026-
        31 31 2d 32 31 20 30 31 3a 30 32 3a 30 33 2e 30 |11-21 01:02:03.0
        34 35 09 2d 34 39 3a 30 32 3a 30 33 04 31 39 39 |45.-49:02:03.199
        39 04 74 65 78 74 fb                            |9.text.
        packet 17, 7 bytes
        fe 00 00 02 00 00 00                            |.......
    "#]]
    .assert_eq(&without_columns(&sent));
}

#[test]
fn a_row_in_binary() {
    let sent = record(RowFormat::Binary, None, every_kind);
    expect![[r#"
        packet 16, 73 bytes
        00 00 80 ff fe ff fd ff ff ff fc ff ff ff fb ff |................
        ff ff ff ff ff ff 00 00 c0 3f 00 00 00 00 00 00 |.........?......
        d0 bf 05 31 32 2e 33 30 04 ea 07 0b 15 0b ea 07 |...12.30........
        0b 15 01 02 03 c8 af 00 00 08 01 02 00 00 00 01 |................
        02 03 cf 07 04 74 65 78 74                      |.....text
        packet 17, 7 bytes
        fe 00 00 02 00 00 00                            |.......
    "#]]
    .assert_eq(&without_columns(&sent));
}

#[test]
fn an_error_after_a_row_leaves_no_trace_of_the_next() {
    let mut recorder = ReplyRecorder::new(RowFormat::Text);
    let mut replies = recorder.replies();
    let mut rows = replies.columns(&[column("a", ColumnType::Long)]).unwrap();
    let mut row = rows.row().unwrap();
    row.int(1);
    row.end();
    rows.row().unwrap().int(2);
    replies.error(&ServerError::new(1317, b"70100", "stopped")).unwrap();
    expect![[r#"
        packet 1, 1 bytes
        01                                              |.
        packet 2, 23 bytes
        03 64 65 66 00 00 00 01 61 00 0c 3f 00 00 00 00 |.def....a..?....
        00 03 00 00 00 00 00                            |.......
        packet 3, 2 bytes
        01 31                                           |.1
        packet 4, 16 bytes
        ff 25 05 23 37 30 31 30 30 73 74 6f 70 70 65 64 |.%.#70100stopped
    "#]]
    .assert_eq(&packets(&recorder.take()));
}

#[test]
fn several_results_say_that_more_follow_until_the_last() {
    check(
        RowFormat::Text,
        |replies| {
            replies.set_more_results(true);
            replies.ok(&DONE)?;
            let rows = replies.columns(&[column("a", ColumnType::Long)])?;
            rows.finish(&DONE)?;
            replies.set_more_results(false);
            replies.ok(&DONE)
        },
        expect![[r#"
            packet 1, 7 bytes
            00 00 00 0a 00 00 00                            |.......
            packet 2, 1 bytes
            01                                              |.
            packet 3, 23 bytes
            03 64 65 66 00 00 00 01 61 00 0c 3f 00 00 00 00 |.def....a..?....
            00 03 00 00 00 00 00                            |.......
            packet 4, 7 bytes
            fe 00 00 0a 00 00 00                            |.......
            packet 5, 7 bytes
            00 00 00 02 00 00 00                            |.......
        "#]],
    );
}

/// The text that a value becomes.
fn as_text(write: impl FnOnce(&mut super::Row<'_>), column_type: ColumnType) -> String {
    as_text_of(write, column("", column_type))
}

/// The text of a double of a column with that many digits after the point.
fn with_decimals(value: f64, decimals: u8) -> String {
    let of = ColumnDefinition { decimals, ..column("", ColumnType::Double) };
    as_text_of(|row| row.double(value), of)
}

fn as_text_of(write: impl FnOnce(&mut super::Row<'_>), of: ColumnDefinition) -> String {
    let sent = record(RowFormat::Text, None, |replies| {
        let mut rows = replies.columns(&[of])?;
        let mut row = rows.row()?;
        write(&mut row);
        row.end();
        rows.finish(&DONE)
    });
    // The number of columns, the definition, and then the row, which is one field.
    let mut rest = &sent[..];
    for _ in 0..2 {
        rest = &rest[4 + usize::from(rest[0])..];
    }
    let length = usize::from(rest[4]);
    String::from_utf8(rest[5..5 + length].to_vec()).unwrap()
}

#[test]
fn doubles_are_written_as_mysql_writes_them() {
    let text = |value| as_text(|row| row.double(value), ColumnType::Double);
    let table: Vec<_> = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.1,
        1e14,
        123_456_789_012_345.0,
        1e15,
        1.5e15,
        1e22,
        1e-14,
        1e-15,
        1e-16,
        1.25e-20,
        f64::MAX,
        f64::MIN_POSITIVE,
        2.0 / 3.0,
    ]
    .into_iter()
    .map(text)
    .collect();
    expect![[r#"
        0
        -0
        1
        -1.5
        0.1
        100000000000000
        123456789012345
        1e15
        1.5e15
        1e22
        0.00000000000001
        0.000000000000001
        1e-16
        1.25e-20
        1.7976931348623157e308
        2.2250738585072014e-308
        0.6666666666666666
    "#]]
    .assert_eq(&(table.join("\n") + "\n"));
    assert_eq!(with_decimals(2.345, 2), "2.35");
    assert_eq!(with_decimals(1e20, 1), "100000000000000000000.0");
}

#[test]
fn floats_have_six_digits() {
    let text = |value| as_text(|row| row.float(value), ColumnType::Float);
    assert_eq!(text(std::f32::consts::PI), "3.14159");
    assert_eq!(text(0.1), "0.1");
    assert_eq!(text(16_777_216.0), "16777200");
    assert_eq!(text(1e20), "1e20");
    let of = ColumnDefinition { decimals: 3, ..column("", ColumnType::Float) };
    assert_eq!(as_text_of(|row| row.float(0.5), of), "0.500");
}

#[test]
fn times_are_written_with_their_fractional_digits() {
    let time = Time { negative: false, hours: 838, minute: 5, second: 9, microsecond: 1_200 };
    assert_eq!(as_text(|row| row.time(time, 6), ColumnType::Time), "838:05:09.001200");
    assert_eq!(as_text(|row| row.time(time, 2), ColumnType::Time), "838:05:09.00");
    assert_eq!(as_text(|row| row.time(Time::default(), 0), ColumnType::Time), "00:00:00");
    let zero = DateTime::default();
    assert_eq!(as_text(|row| row.datetime(zero, 0), ColumnType::DateTime), "0000-00-00 00:00:00");
    assert_eq!(as_text(|row| row.date(Date::default()), ColumnType::Date), "0000-00-00");
}

#[test]
fn zeros_fill_the_width_of_a_zerofill_column() {
    // A column of years has the flag, an expression that gives years has not.
    assert_eq!(as_text(|row| row.int(0), ColumnType::Year), "0");
    let zerofill = |column_type, length_bytes| ColumnDefinition {
        flags: ColumnFlags::ZEROFILL | ColumnFlags::UNSIGNED,
        length_bytes,
        ..column("", column_type)
    };
    assert_eq!(as_text_of(|row| row.uint(0), zerofill(ColumnType::Year, 4)), "0000");
    let decimal = zerofill(ColumnType::NewDecimal, 9);
    assert_eq!(as_text_of(|row| row.decimal("3.50"), decimal), "000003.50");
    let sent = record(RowFormat::Text, None, |replies| {
        let padded = ColumnDefinition {
            flags: ColumnFlags::ZEROFILL | ColumnFlags::UNSIGNED,
            length_bytes: 5,
            ..column("", ColumnType::Long)
        };
        let mut rows = replies.columns(&[padded])?;
        let mut row = rows.row()?;
        row.uint(42);
        row.end();
        rows.finish(&DONE)
    });
    assert!(sent.windows(6).any(|bytes| bytes == b"\x0500042"));
}

#[test]
fn values_of_another_type_than_their_column_become_it() {
    let sent = record(RowFormat::Binary, None, |replies| {
        let columns = [
            column("", ColumnType::Double),
            column("", ColumnType::VarString),
            column("", ColumnType::NewDecimal),
            column("", ColumnType::VarString),
            column("", ColumnType::DateTime),
        ];
        let mut rows = replies.columns(&columns)?;
        let mut row = rows.row()?;
        row.int(2);
        row.uint(17);
        row.double(0.5);
        row.time(Time { hours: 1, ..Time::default() }, 0);
        row.date(Date { year: 2026, month: 1, day: 2 });
        row.end();
        rows.finish(&DONE)
    });
    let text = packets(&sent);
    let row = &text[text.find("packet 7").unwrap()..];
    expect![[r#"
        packet 7, 31 bytes
        00 00 00 00 00 00 00 00 00 40 02 31 37 03 30 2e |.........@.17.0.
        35 08 30 31 3a 30 30 3a 30 30 04 ea 07 01 02    |5.01:00:00.....
        packet 8, 7 bytes
        fe 00 00 02 00 00 00                            |.......
    "#]]
    .assert_eq(row);
}

#[test]
fn a_row_can_be_gone_on_with() {
    let columns = [column("a", ColumnType::Long), column("b", ColumnType::Tiny)];
    for format in [RowFormat::Text, RowFormat::Binary] {
        let at_once = record(format, None, |replies| {
            let mut rows = replies.columns(&columns)?;
            let mut row = rows.row()?;
            row.null();
            row.int(7);
            row.end();
            rows.finish(&DONE)
        });
        let bit_by_bit = record(format, None, |replies| {
            let mut rows = replies.columns(&columns)?;
            rows.row()?;
            rows.same_row().null();
            rows.same_row().int(7);
            rows.same_row().end();
            rows.finish(&DONE)
        });
        assert_eq!(at_once, bit_by_bit);
    }
}

#[test]
#[should_panic(expected = "cannot be sent as bytes")]
fn bytes_in_a_number_column_are_a_mistake() {
    record(RowFormat::Binary, None, |replies| {
        let mut rows = replies.columns(&[column("", ColumnType::Long)])?;
        rows.row()?.bytes(b"1");
        rows.finish(&DONE)
    });
}

#[test]
#[should_panic(expected = "answered once")]
fn a_command_is_not_answered_twice() {
    record(RowFormat::Text, None, |replies| {
        replies.ok(&DONE)?;
        replies.ok(&DONE)
    });
}

#[test]
fn a_row_of_sixteen_mebibytes_goes_on_in_the_next_packet() {
    for length in [0xff_fffa - 4, 0xff_ffff - 4, 0xff_ffff, 0x1ff_ffff] {
        let sent = record(RowFormat::Text, None, |replies| {
            let mut rows = replies.columns(&[column("", ColumnType::LongBlob)])?;
            let mut row = rows.row()?;
            row.formatted(|text| text.resize(text.len() + length, b'x'));
            row.end();
            rows.finish(&DONE)
        });
        let mut numbers = Vec::new();
        let mut row_bytes = 0;
        let mut rest = &sent[..];
        while let [a, b, c, number, tail @ ..] = rest {
            let size = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            numbers.push(*number);
            row_bytes += tail[..size].iter().filter(|&&byte| byte == b'x').count();
            rest = &tail[size..];
        }
        assert_eq!(row_bytes, length);
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
        let prefix = if length > 0xff_ffff { 9 } else { 4 };
        assert_eq!(numbers.len(), 4 + (length + prefix) / 0xff_ffff);
    }
}

#[test]
fn a_value_that_is_shared_is_sent_as_if_it_were_copied() {
    let value = |length: usize| Arc::new((0..length).map(|at| at as u8).collect::<Vec<u8>>());
    for length in [100, 0xff_ffff - 12, 0xff_ffff - 11, 0xff_ffff, 0x1ff_ffff] {
        let values = [value(length), value(70_000)];
        let sent = |is_shared: bool| {
            record(RowFormat::Text, None, |replies| {
                let columns = [column("", ColumnType::LongBlob), column("", ColumnType::LongBlob)];
                let mut rows = replies.columns(&columns)?;
                for _ in 0..2 {
                    // A dropped row leaves nothing behind.
                    let mut dropped = rows.row()?;
                    dropped.shared(&values[0]);
                    let mut row = rows.row()?;
                    for value in &values {
                        if is_shared { row.shared(value) } else { row.bytes(value) }
                    }
                    row.end();
                }
                rows.finish(&DONE)
            })
        };
        assert!(sent(true) == sent(false), "{length}");
    }
}

#[test]
fn an_answer_that_is_taken_back_leaves_nothing() {
    let answer = |replies: &mut Replies<'_>| {
        let mut rows = replies.columns(&[column("a", ColumnType::Long)])?;
        rows.row()?.int(1);
        rows.same_row().end();
        rows.finish(&DONE)
    };
    let taken_back = record(RowFormat::Text, None, |replies| {
        let mut rows = replies.columns(&[column("long", ColumnType::LongBlob)])?;
        rows.row()?.shared(&Arc::new(vec![b'x'; 100]));
        drop(rows);
        assert!(replies.has_begun());
        assert!(replies.take_back());
        assert!(!replies.has_begun());
        answer(replies)
    });
    assert_eq!(taken_back, record(RowFormat::Text, None, answer));
}

#[test]
fn an_answer_that_was_sent_in_part_is_not_taken_back() {
    record(RowFormat::Text, None, |replies| {
        let _rows = replies.columns(&[column("a", ColumnType::Long)])?;
        replies.flush()?;
        assert!(!replies.take_back());
        replies.error(&ServerError::new(1317, b"70100", ""))
    });
}
