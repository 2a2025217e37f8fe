//! `firn sql` as scripts use it.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

mod support;

use std::io::{Read, Write};
use std::process::{ChildStdout, Command, Stdio};

use expect_test::expect;
use support::{Server, firn, text};

const SHOP: &str = "CREATE DATABASE shop; USE shop;
CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60), price DECIMAL(8,2), KEY (name));
INSERT INTO item (name, price) VALUES ('nut; \"M4\"', 0.25), ('bolt', NULL);
";

fn shop() -> Server {
    let server = Server::start(&[], &[]);
    let output = server.sql(&[], SHOP);
    assert!(output.status.success(), "{}", text(&output.stderr));
    server
}

#[test]
fn rows_come_in_each_format() {
    let server = shop();
    let rows = |format| {
        let statement = "SELECT * FROM item ORDER BY id";
        let output = server.sql(&["-D", "shop", "-f", format, "-e", statement], "");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    expect![[r#"
        id	name	price
        1	nut; "M4"	0.25
        2	bolt	NULL
    "#]]
    .assert_eq(&rows("tab"));
    expect![[r#"
        id,name,price
        1,"nut; ""M4""",0.25
        2,bolt,
    "#]]
    .assert_eq(&rows("csv"));
    expect![[r#"
        [
        {"id":1,"name":"nut; \"M4\"","price":0.25},
        {"id":2,"name":"bolt","price":null}
        ]
    "#]]
    .assert_eq(&rows("json"));
    expect![[r#"
        +----+-----------+-------+
        | id | name      | price |
        +----+-----------+-------+
        |  1 | nut; "M4" |  0.25 |
        |  2 | bolt      |  NULL |
        +----+-----------+-------+
    "#]]
    .assert_eq(&rows("table"));
}

#[test]
fn a_script_ends_at_its_first_error_unless_it_is_to_go_on() {
    let server = shop();
    let script = "USE shop;\nSELECT 1;\n\n-- here\nSELECT * FROM nope;\nSELECT 2;\n";
    let output = server.sql(&["-N"], script);
    assert_eq!(text(&output.stdout), "1\n");
    expect![[r#"
        ERROR 1146 (42S02) at line 4: Table 'shop.nope' doesn't exist
    "#]]
    .assert_eq(text(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
    let output = server.sql(&["-N", "--force"], script);
    assert_eq!(text(&output.stdout), "1\n2\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn statements_may_take_several_lines_and_end_as_they_like() {
    let server = shop();
    let script = "SELECT\n  1 AS one\\G\ndelimiter //\nSELECT ';' AS sign//\nSELECT 3 AS three";
    let output = server.sql(&["-N"], script);
    let stars = "*".repeat(27);
    assert_eq!(text(&output.stdout), format!("{stars} 1. row {stars}\none: 1\n;\n3\n"));
    assert!(output.status.success());
}

#[test]
fn helpers_describe_what_is_there() {
    let server = shop();
    let output = server.sql(&["-D", "shop", "-f", "tab"], "\\d item\n\\dt\n\\d nothing\n");
    let shown = text(&output.stdout);
    for line in
        ["| id     | int          | not null |", "| name    | name    |", "| item | base table |"]
    {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert_eq!(text(&output.stderr), "There is no table nothing here\n");
}

#[test]
fn a_password_comes_from_the_environment_or_an_option_file() {
    let server = shop();
    let script = "CREATE USER ann IDENTIFIED BY 'secret'; GRANT ALL ON shop.* TO ann;";
    assert!(server.sql(&[], script).status.success());
    let directory = server.directory.path();
    let port = server.port().to_string();
    let arguments = ["sql", "-P", &port, "-u", "ann", "-N", "-e", "SELECT CURRENT_USER()"];
    let with = firn(directory, &arguments, &[("MYSQL_PWD", "secret")]);
    assert_eq!(text(&with.stdout), "ann@%\n", "{}", text(&with.stderr));
    let without = firn(directory, &arguments, &[]);
    assert!(text(&without.stderr).starts_with("firn: ERROR 1045 (28000): "), "{without:?}");
    let file = directory.join("client.cnf");
    let options = format!("[client]\nuser=ann\npassword=\"secret\"\nport={port}\ndatabase=shop\n");
    std::fs::write(&file, options).unwrap();
    let named = ["sql", "--defaults-file", "client.cnf", "-N", "-e", "SELECT DATABASE()"];
    let output = firn(directory, &named, &[]);
    assert_eq!(text(&output.stdout), "shop\n", "{}", text(&output.stderr));
}

#[test]
fn sockets_and_tls_lead_there_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("firn.sock").display().to_string();
    let server = Server::start_in(directory, &["--socket", &socket], &[]);
    let over = |arguments: &[&str]| {
        let cipher = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";
        let output = server.sql(&[arguments, &["-N", "-e", cipher]].concat(), "");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    assert_eq!(over(&["-S", &socket]), "Ssl_cipher\t\n");
    assert_eq!(over(&["--tls", "disabled"]), "Ssl_cipher\t\n");
    assert!(over(&["--tls", "required"]).starts_with("Ssl_cipher\tTLS"));
    let unsigned = server.sql(&["--tls", "verified", "-e", "SELECT 1"], "");
    assert_eq!(unsigned.status.code(), Some(1), "nobody has signed the server's certificate");
}

#[test]
fn a_server_that_is_not_there_is_told_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let output = firn(directory.path(), &["sql", "-P", "1", "-e", "SELECT 1"], &[]);
    let told = text(&output.stderr);
    assert!(told.starts_with("firn: ERROR 2003 (HY000): cannot connect to 127.0.0.1:1"), "{told}");
    assert_eq!(told.lines().count(), 1);
    let output = firn(directory.path(), &["sql", "--defaults-file", "nowhere.cnf"], &[]);
    assert_eq!(output.status.code(), Some(2));
}

/// The output of a terminal, and how far it was examined.
struct Screen {
    output: ChildStdout,
    seen: Vec<u8>,
    at: usize,
}

impl Screen {
    /// Waits for a text after the texts of earlier calls.
    fn wait_for(&mut self, wanted: &str) {
        let wanted = wanted.as_bytes();
        let mut part = [0; 4096];
        loop {
            let rest = &self.seen[self.at..];
            if let Some(place) = rest.windows(wanted.len()).position(|window| window == wanted) {
                self.at += place + wanted.len();
                return;
            }
            let length = self.output.read(&mut part).unwrap();
            assert!(length > 0, "{}", String::from_utf8_lossy(&self.seen));
            self.seen.extend_from_slice(&part[..length]);
        }
    }
}

#[test]
fn the_prompt_takes_statements_of_several_lines_and_keeps_no_passwords() {
    let server = shop();
    let history = server.directory.path().join("history");
    let client = format!(
        "exec {} sql --port {} --history {} shop",
        env!("CARGO_BIN_EXE_firn"),
        server.port(),
        history.display()
    );
    // `script` provides the terminal. Without `exec` a shell may stay between, and end at the
    // interrupt itself.
    let started = Command::new("script")
        .args(["-qec", &client, "/dev/null"])
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut terminal) = started else { return };
    let mut keys = terminal.stdin.take().unwrap();
    let mut screen = Screen { output: terminal.stdout.take().unwrap(), seen: Vec::new(), at: 0 };
    for (typed, shown) in [
        ("", "lists the other commands."),
        ("SELECT 40 +\n2 AS answer;\n", "|     42 |"),
        ("CREATE USER hidden IDENTIFIED BY 'x';\n", "Query OK"),
        ("SELECT * FROM nope;\n", "ERROR 1146 (42S02): "),
        ("SELECT 1/0;\n", "Warning (1365): Division by 0"),
        ("\\d item\n", "| PRIMARY | id      | yes    |"),
        ("SELECT 7 AS seven\\G\n", "seven: 7"),
    ] {
        keys.write_all(typed.as_bytes()).unwrap();
        screen.wait_for(shown);
        screen.wait_for("/shop> ");
    }
    keys.write_all(b"SELECT SLEEP(60);\n").unwrap();
    let asleep = || text(&server.sql(&[], "SHOW PROCESSLIST").stdout).contains("SLEEP(60)");
    while !asleep() {}
    keys.write_all(b"\x03").unwrap();
    screen.wait_for("row in set");
    keys.write_all(b"\\q\n").unwrap();
    assert!(terminal.wait().unwrap().success());
    let kept = std::fs::read_to_string(history).unwrap();
    assert!(kept.contains("SELECT 40 +\\n2 AS answer;") && !kept.contains("hidden"), "{kept}");
}
