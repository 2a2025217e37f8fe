//! Scenarios: what a client says and hears, byte by byte.

mod support;

use std::time::Duration;

use expect_test::{Expect, expect};
use firn_base::task::monotonic;
use firn_wire::Capabilities;
use support::{Client, Running, soon};

/// Plays a scenario with a client that has logged in and compares what was said.
fn scenario(play: impl FnOnce(&mut Client), expected: Expect) {
    scenario_with(Capabilities::empty(), Capabilities::empty(), play, expected);
}

fn scenario_with(
    more: Capabilities,
    less: Capabilities,
    play: impl FnOnce(&mut Client),
    expected: Expect,
) {
    let running = Running::new();
    let mut client = running.connect();
    client.capabilities = (client.capabilities | more) - less;
    client.log_in();
    client.record();
    play(&mut client);
    expected.assert_eq(&client.take_transcript());
}

#[test]
fn a_query_is_answered_by_rows() {
    scenario(
        |client| {
            client.query("one");
            client.read_result();
        },
        expect![[r#"
            client 0:
              03 6f 6e 65                                     |.one
            server 1:
              01                                              |.
            server 2:
              03 64 65 66 00 00 00 01 31 00 0c 3f 00 00 00 00 |.def....1..?....
              00 08 00 00 00 00 00                            |.......
            server 3:
              01 31                                           |.1
            server 4:
              fe 00 00 02 00 00 00                            |.......
        "#]],
    );
}

#[test]
fn an_unknown_text_and_an_unknown_command_are_errors() {
    scenario(
        |client| {
            client.query("nonsense");
            client.read_error();
            client.command(0x0d, b"");
            client.read_error();
            client.command(0x1a, b"\x01");
            client.read_error();
            // This command is never answered, even if it is malformed.
            client.command(0x18, b"\x01");
            client.command(0x0e, b"");
            client.read();
        },
        expect![[r#"
            client 0:
              03 6e 6f 6e 73 65 6e 73 65                      |.nonsense
            server 1:
              ff 28 04 23 34 32 30 30 30 6e 6f 20 73 75 63 68 |.(.#42000no such
              20 77 6f 72 64 3a 20 6e 6f 6e 73 65 6e 73 65    | word: nonsense
            client 0:
              0d                                              |.
            server 1:
              ff 17 04 23 30 38 53 30 31 55 6e 6b 6e 6f 77 6e |...#08S01Unknown
              20 63 6f 6d 6d 61 6e 64                         | command
            client 0:
              1a 01                                           |..
            server 1:
              ff 2b 07 23 48 59 30 30 30 4d 61 6c 66 6f 72 6d |.+.#HY000Malform
              65 64 20 63 6f 6d 6d 75 6e 69 63 61 74 69 6f 6e |ed communication
              20 70 61 63 6b 65 74 2e                         | packet.
            client 0:
              18 01                                           |..
            client 0:
              0e                                              |.
            server 1:
              00 00 00 02 00 00 00                            |.......
        "#]],
    );
}

#[test]
fn several_statements_are_answered_one_by_one() {
    scenario_with(
        Capabilities::MULTI_STATEMENTS,
        Capabilities::empty(),
        |client| {
            client.query("set a; one; nonsense; one");
            for _ in 0..3 {
                client.read_result();
            }
        },
        expect![[r#"
            client 0:
              03 73 65 74 20 61 3b 20 6f 6e 65 3b 20 6e 6f 6e |.set a; one; non
              73 65 6e 73 65 3b 20 6f 6e 65                   |sense; one
            server 1:
              00 00 00 0a 00 00 00                            |.......
            server 2:
              01                                              |.
            server 3:
              03 64 65 66 00 00 00 01 31 00 0c 3f 00 00 00 00 |.def....1..?....
              00 08 00 00 00 00 00                            |.......
            server 4:
              01 31                                           |.1
            server 5:
              fe 00 00 0a 00 00 00                            |.......
            server 6:
              ff 28 04 23 34 32 30 30 30 6e 6f 20 73 75 63 68 |.(.#42000no such
              20 77 6f 72 64 3a 20 6e 6f 6e 73 65 6e 73 65    | word: nonsense
        "#]],
    );
}

#[test]
fn set_option_allows_several_statements() {
    scenario(
        |client| {
            client.query("set a; set b");
            client.read_result();
            client.command(0x1b, &[0, 0]);
            client.read();
            client.query("set a; set b");
            client.read_result();
            client.read_result();
        },
        expect![[r#"
            client 0:
              03 73 65 74 20 61 3b 20 73 65 74 20 62          |.set a; set b
            server 1:
              00 00 00 02 00 00 00                            |.......
            client 0:
              1b 00 00                                        |...
            server 1:
              fe 00 00 02 00 00 00                            |.......
            client 0:
              03 73 65 74 20 61 3b 20 73 65 74 20 62          |.set a; set b
            server 1:
              00 00 00 0a 00 00 00                            |.......
            server 2:
              00 00 00 02 00 00 00                            |.......
        "#]],
    );
}

#[test]
fn a_prepared_statement_lives_from_prepare_to_close() {
    scenario_with(
        Capabilities::empty(),
        Capabilities::DEPRECATE_EOF,
        |client| {
            client.command(0x16, b"echo ? ?");
            (0..7).for_each(|_| drop(client.read()));
            client.command(0x17, b"\x01\0\0\0\0\x01\0\0\0\x02\x01\x03\0\xfd\0\x07\0\0\0");
            (0..6).for_each(|_| drop(client.read()));
            // Closing is not answered; the statement is gone.
            client.command(0x19, &[1, 0, 0, 0]);
            client.command(0x17, b"\x01\0\0\0\0\x01\0\0\0");
            client.read_error();
        },
        expect![[r#"
            client 0:
              16 65 63 68 6f 20 3f 20 3f                      |.echo ? ?
            server 1:
              00 01 00 00 00 02 00 02 00 00 00 00             |............
            server 2:
              03 64 65 66 00 00 00 01 3f 00 0c 3f 00 00 00 00 |.def....?..?....
              00 fd 00 00 00 00 00                            |.......
            server 3:
              03 64 65 66 00 00 00 01 3f 00 0c 3f 00 00 00 00 |.def....?..?....
              00 fd 00 00 00 00 00                            |.......
            server 4:
              fe 00 00 02 00                                  |.....
            server 5:
              03 64 65 66 00 00 00 01 30 00 0c ff 00 00 04 00 |.def....0.......
              00 fd 00 00 00 00 00                            |.......
            server 6:
              03 64 65 66 00 00 00 01 31 00 0c ff 00 00 04 00 |.def....1.......
              00 fd 00 00 00 00 00                            |.......
            server 7:
              fe 00 00 02 00                                  |.....
            client 0:
              17 01 00 00 00 00 01 00 00 00 02 01 03 00 fd 00 |................
              07 00 00 00                                     |....
            server 1:
              02                                              |.
            server 2:
              03 64 65 66 00 00 00 01 30 00 0c ff 00 00 04 00 |.def....0.......
              00 fd 00 00 00 00 00                            |.......
            server 3:
              03 64 65 66 00 00 00 01 31 00 0c ff 00 00 04 00 |.def....1.......
              00 fd 00 00 00 00 00                            |.......
            server 4:
              fe 00 00 02 00                                  |.....
            server 5:
              00 00 06 49 6e 74 28 37 29 04 4e 75 6c 6c       |...Int(7).Null
            server 6:
              fe 00 00 02 00                                  |.....
            client 0:
              19 01 00 00 00                                  |.....
            client 0:
              17 01 00 00 00 00 01 00 00 00                   |..........
            server 1:
              ff db 04 23 48 59 30 30 30 55 6e 6b 6e 6f 77 6e |...#HY000Unknown
              20 70 72 65 70 61 72 65 64 20 73 74 61 74 65 6d | prepared statem
              65 6e 74 20 68 61 6e 64 6c 65 72 20 28 31 29 20 |ent handler (1)
              67 69 76 65 6e 20 74 6f 20 6d 79 73 71 6c 64 5f |given to mysqld_
              73 74 6d 74 5f 65 78 65 63 75 74 65             |stmt_execute
        "#]],
    );
}

/// A client with Nagle's algorithm sends the next command only when the one that has no answer is
/// acknowledged.
#[test]
fn a_command_without_an_answer_does_not_hold_the_next_one_up() {
    const TIMES: u32 = 100;
    let running = Running::new();
    let mut client = running.connect();
    client.log_in();
    client.stream.set_nodelay(false).unwrap();
    // The system waits 40 ms before it acknowledges by itself. A busy machine is slow too, but not
    // each time.
    soon("100 times without the wait", || {
        let began = monotonic();
        for _ in 0..TIMES {
            client.command(0x19, &7_u32.to_le_bytes());
            client.command(0x0e, b"");
            client.read_result();
        }
        monotonic() - began < TIMES * Duration::from_millis(20)
    });
}

#[test]
fn long_data_comes_in_pieces_that_are_not_answered() {
    scenario(
        |client| {
            client.command(0x16, b"echo ?");
            (0..3).for_each(|_| drop(client.read()));
            client.command(0x18, b"\x01\0\0\0\0\0pie");
            client.command(0x18, b"\x01\0\0\0\0\0ces");
            client.command(0x17, b"\x01\0\0\0\0\x01\0\0\0\0\x01\xfc\0");
            client.read();
            client.read();
            client.read();
            client.read();
        },
        expect![[r#"
            client 0:
              16 65 63 68 6f 20 3f                            |.echo ?
            server 1:
              00 01 00 00 00 01 00 01 00 00 00 00             |............
            server 2:
              03 64 65 66 00 00 00 01 3f 00 0c 3f 00 00 00 00 |.def....?..?....
              00 fd 00 00 00 00 00                            |.......
            server 3:
              03 64 65 66 00 00 00 01 30 00 0c ff 00 00 04 00 |.def....0.......
              00 fd 00 00 00 00 00                            |.......
            client 0:
              18 01 00 00 00 00 00 70 69 65                   |.......pie
            client 0:
              18 01 00 00 00 00 00 63 65 73                   |.......ces
            client 0:
              17 01 00 00 00 00 01 00 00 00 00 01 fc 00       |..............
            server 1:
              01                                              |.
            server 2:
              03 64 65 66 00 00 00 01 30 00 0c ff 00 00 04 00 |.def....0.......
              00 fd 00 00 00 00 00                            |.......
            server 3:
              00 00 24 42 79 74 65 73 28 5b 31 31 32 2c 20 31 |..$Bytes([112, 1
              30 35 2c 20 31 30 31 2c 20 39 39 2c 20 31 30 31 |05, 101, 99, 101
              2c 20 31 31 35 5d 29                            |, 115])
            server 4:
              fe 00 00 02 00 00 00                            |.......
        "#]],
    );
}

#[test]
fn a_cursor_gives_rows_when_they_are_asked_for() {
    scenario(
        |client| {
            client.command(0x16, b"rows 3");
            client.read();
            client.command(0x17, b"\x01\0\0\0\x01\x01\0\0\0");
            (0..4).for_each(|_| drop(client.read()));
            client.command(0x1c, b"\x01\0\0\0\x02\0\0\0");
            (0..3).for_each(|_| drop(client.read()));
            client.command(0x1c, b"\x01\0\0\0\x02\0\0\0");
            (0..2).for_each(|_| drop(client.read()));
            client.command(0x1c, b"\x01\0\0\0\x02\0\0\0");
            client.read_error();
        },
        expect![[r#"
            client 0:
              16 72 6f 77 73 20 33                            |.rows 3
            server 1:
              00 01 00 00 00 00 00 00 00 00 00 00             |............
            client 0:
              17 01 00 00 00 01 01 00 00 00                   |..........
            server 1:
              02                                              |.
            server 2:
              03 64 65 66 00 00 00 06 6e 75 6d 62 65 72 00 0c |.def....number..
              3f 00 00 00 00 00 08 00 00 00 00 00             |?...........
            server 3:
              03 64 65 66 00 00 00 04 74 65 78 74 00 0c ff 00 |.def....text....
              00 04 00 00 fd 00 00 00 00 00                   |..........
            server 4:
              fe 00 00 42 00 00 00                            |...B...
            client 0:
              1c 01 00 00 00 02 00 00 00                      |.........
            server 1:
              00 00 00 00 00 00 00 00 00 00 05 72 6f 77 20 30 |...........row 0
            server 2:
              00 00 01 00 00 00 00 00 00 00 05 72 6f 77 20 31 |...........row 1
            server 3:
              fe 00 00 42 00 00 00                            |...B...
            client 0:
              1c 01 00 00 00 02 00 00 00                      |.........
            server 1:
              00 00 02 00 00 00 00 00 00 00 05 72 6f 77 20 32 |...........row 2
            server 2:
              fe 00 00 c2 00 00 00                            |.......
            client 0:
              1c 01 00 00 00 02 00 00 00                      |.........
            server 1:
              ff 8d 05 23 48 59 30 30 30 54 68 65 20 73 74 61 |...#HY000The sta
              74 65 6d 65 6e 74 20 28 31 29 20 68 61 73 20 6e |tement (1) has n
              6f 20 6f 70 65 6e 20 63 75 72 73 6f 72 2e       |o open cursor.
        "#]],
    );
}

#[test]
fn the_clients_file_is_read_in_the_midst_of_a_command() {
    scenario(
        |client| {
            client.query("infile data.csv");
            client.read();
            client.write(b"1,2\n");
            client.write(b"3,4\n");
            client.write(b"");
            client.read();
        },
        expect![[r#"
            client 0:
              03 69 6e 66 69 6c 65 20 64 61 74 61 2e 63 73 76 |.infile data.csv
            server 1:
              fb 64 61 74 61 2e 63 73 76                      |.data.csv
            client 2:
              31 2c 32 0a                                     |1,2.
            client 3:
              33 2c 34 0a                                     |3,4.
            client 4:
            server 5:
              00 08 00 02 00 00 00                            |.......
        "#]],
    );
}

#[test]
fn session_changes_are_told() {
    scenario(
        |client| {
            client.query("use shop");
            client.read();
            client.command(2, b"other");
            client.read();
        },
        expect![[r#"
            client 0:
              03 75 73 65 20 73 68 6f 70                      |.use shop
            server 1:
              00 00 00 02 40 00 00 07 63 68 61 6e 67 65 64 0d |....@...changed.
              01 05 04 73 68 6f 70 00 04 01 78 01 31          |...shop...x.1
            client 0:
              02 6f 74 68 65 72                               |.other
            server 1:
              00 00 00 02 40 00 00 00 08 01 06 05 6f 74 68 65 |....@.......othe
              72                                              |r
        "#]],
    );
}

#[test]
fn small_commands() {
    scenario(
        |client| {
            client.command(0x0e, b"");
            client.read();
            client.command(0x09, b"");
            client.read();
            client.command(0x1f, b"");
            client.read();
            client.command(0x04, b"table\0");
            client.read();
            client.read();
            client.command(0x0c, &[255, 0, 0, 0]);
            client.read_error();
            client.command(0x01, b"");
            assert!(client.is_closed());
        },
        expect![[r#"
            client 0:
              0e                                              |.
            server 1:
              00 00 00 02 00 00 00                            |.......
            client 0:
              09                                              |.
            server 1:
              55 70 74 69 6d 65 3a 20 31 20 20 54 68 72 65 61 |Uptime: 1  Threa
              64 73 3a 20 31                                  |ds: 1
            client 0:
              1f                                              |.
            server 1:
              00 00 00 02 00 00 00                            |.......
            client 0:
              04 74 61 62 6c 65 00                            |.table.
            server 1:
              03 64 65 66 00 00 00 05 74 61 62 6c 65 00 0c ff |.def....table...
              00 00 04 00 00 fd 00 00 00 00 00 04 6e 6f 6e 65 |............none
            server 2:
              fe 00 00 02 00 00 00                            |.......
            client 0:
              0c ff 00 00 00                                  |.....
            server 1:
              ff 46 04 23 48 59 30 30 30 55 6e 6b 6e 6f 77 6e |.F.#HY000Unknown
              20 74 68 72 65 61 64 20 69 64 3a 20 32 35 35    | thread id: 255
            client 0:
              01                                              |.
        "#]],
    );
}

#[test]
fn an_error_after_rows_ends_the_result() {
    scenario(
        |client| {
            client.query("partly");
            client.read_result();
        },
        expect![[r#"
            client 0:
              03 70 61 72 74 6c 79                            |.partly
            server 1:
              01                                              |.
            server 2:
              03 64 65 66 00 00 00 01 31 00 0c 3f 00 00 00 00 |.def....1..?....
              00 08 00 00 00 00 00                            |.......
            server 3:
              01 31                                           |.1
            server 4:
              ff 25 05 23 37 30 31 30 30 51 75 65 72 79 20 65 |.%.#70100Query e
              78 65 63 75 74 69 6f 6e 20 77 61 73 20 69 6e 74 |xecution was int
              65 72 72 75 70 74 65 64                         |errupted
        "#]],
    );
}
