//! Operation of a server: metrics, logs, status, shutdown, time zone.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use expect_test::expect;
use mysql::prelude::Queryable;
use support::{Server, firn, text};

/// How long a slow machine may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The value of a metric in a scrape.
fn metric(page: &str, name: &str) -> f64 {
    let line = page.lines().find(|line| line.split(' ').next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("{name} is not in\n{page}"));
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

fn status(client: &mut mysql::Conn, scope: &str, name: &str) -> String {
    let statement = format!("SHOW {scope} STATUS LIKE '{name}'");
    let row: Option<(String, String)> = client.query_first(statement).unwrap();
    row.unwrap_or_else(|| panic!("{name} is not there")).1
}

fn number(client: &mut mysql::Conn, name: &str) -> u64 {
    status(client, "GLOBAL", name).parse().unwrap()
}

#[test]
fn metrics_and_status_tell_the_same() {
    let server = Server::start(&["--metrics-listen", "127.0.0.1:0"], &[]);
    let mut client = server.connect();
    client.query_drop("CREATE DATABASE d").unwrap();
    client.query_drop("CREATE TABLE d.t (a INT PRIMARY KEY, b INT)").unwrap();
    client.query_drop("INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3)").unwrap();
    for _ in 0..5 {
        client.query_drop("SELECT b FROM d.t WHERE a = 2").unwrap();
    }
    client.query_drop("SELECT * FROM d.t ORDER BY b").unwrap();
    assert!(client.query_drop("SELECT nothing FROM d.t").is_err());
    let page = server.get("/metrics");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.ends_with("# EOF\n"), "{page}");
    for (name, shown) in [
        ("firn_statements_total{command=\"insert\"}", "Com_insert"),
        ("firn_row_operations_total{operation=\"insert\"}", "Handler_write"),
        ("firn_row_operations_total{operation=\"read_key\"}", "Handler_read_key"),
        ("firn_row_operations_total{operation=\"read_scan\"}", "Handler_read_rnd_next"),
        ("firn_sorted_rows_total", "Sort_rows"),
        ("firn_connections_open", "Threads_connected"),
        ("firn_statement_errors_total", "Firn_statement_errors"),
    ] {
        assert_eq!(metric(&page, name) as u64, number(&mut client, shown), "{name}");
    }
    assert_eq!(number(&mut client, "Handler_write"), 3);
    assert_eq!(number(&mut client, "Sort_rows"), 3);
    assert!(metric(&page, "firn_statement_duration_seconds_count{class=\"read\"}") >= 6.0);
    assert!(metric(&page, "firn_memory_resident_bytes") > 1e6);
    assert!(metric(&page, "firn_network_bytes_total{direction=\"received\"}") > 100.0);
    assert!(server.get("/").starts_with("HTTP/1.1 404 "));
}

#[test]
fn every_metric_is_well_formed() {
    let server = Server::start(&["--metrics-listen", "127.0.0.1:0"], &[]);
    let page = server.get("/metrics");
    let body = page.split("\r\n\r\n").nth(1).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for line in body.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ") {
            assert!(seen.insert(name.to_owned()), "{name} comes twice");
        }
        if line.starts_with('#') {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("firn_"), "{name}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(seen.len() > 40, "{}", seen.len());
}

#[test]
fn a_session_counts_for_itself_until_it_is_flushed() {
    let server = Server::start(&[], &[]);
    let (mut one, mut two) = (server.connect(), server.connect());
    for _ in 0..7 {
        one.query_drop("DO 1").unwrap();
    }
    assert_eq!(status(&mut one, "SESSION", "Com_do"), "7");
    assert_eq!(status(&mut two, "SESSION", "Com_do"), "0");
    assert_eq!(status(&mut two, "GLOBAL", "Com_do"), "7");
    one.query_drop("FLUSH STATUS").unwrap();
    assert_eq!(status(&mut one, "SESSION", "Com_do"), "0");
    drop(one);
    assert_eq!(status(&mut two, "GLOBAL", "Com_do"), "7");
    assert_eq!(number(&mut two, "Max_used_connections"), 2);
    assert_eq!(number(&mut two, "Aborted_clients"), 0);
}

#[test]
fn slow_statements_are_logged_as_mysql_does() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    client.query_drop("CREATE DATABASE d").unwrap();
    client.query_drop("USE d").unwrap();
    client.query_drop("CREATE TABLE t (a INT PRIMARY KEY, b INT)").unwrap();
    client.query_drop("INSERT INTO t VALUES (1, 1), (2, 2)").unwrap();
    client.query_drop("SET GLOBAL slow_query_log = ON").unwrap();
    client.query_drop("SET GLOBAL log_queries_not_using_indexes = ON").unwrap();
    client.query_drop("SELECT a FROM t WHERE a = 1").unwrap();
    client.query_drop("SELECT b FROM t WHERE b = 2").unwrap();
    client.query_drop("SET min_examined_row_limit = 3").unwrap();
    client.query_drop("SELECT b FROM t WHERE b = 1").unwrap();
    client.query_drop("SET min_examined_row_limit = 0, long_query_time = 0").unwrap();
    client.query_drop("CREATE USER u IDENTIFIED BY 'hidden'").unwrap();
    client.query_drop("ALTER TABLE t ADD c INT").unwrap();
    let log = std::fs::read_to_string(server.data_file("firn-slow.log")).unwrap();
    assert!(!log.contains("WHERE a = 1") && !log.contains("WHERE b = 1"), "{log}");
    assert!(!log.contains("hidden") && log.contains("IDENTIFIED BY <secret>;\n"), "{log}");
    assert!(!log.contains("ALTER TABLE"), "{log}");
    let entry: Vec<&str> = log.lines().take(6).collect();
    assert!(entry[0].starts_with("# Time: 20") && entry[0].ends_with('Z'), "{log}");
    assert!(entry[1].starts_with("# User@Host: root[root] @ "), "{log}");
    assert!(entry[2].ends_with("Rows_sent: 1  Rows_examined: 2"), "{log}");
    assert_eq!(entry[3], "use d;");
    assert!(entry[4].starts_with("SET timestamp="), "{log}");
    assert_eq!(entry[5], "SELECT b FROM t WHERE b = 2;");
    assert!(number(&mut client, "Slow_queries") >= 2);
}

#[test]
fn logs_are_rotated_by_flush_logs() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    client.query_drop("SET GLOBAL general_log_file = 'all.log', GLOBAL general_log = ON").unwrap();
    client.query_drop("DO 1").unwrap();
    let (log, old) = (server.data_file("all.log"), server.data_file("all.log.1"));
    std::fs::rename(&log, &old).unwrap();
    client.query_drop("FLUSH LOGS").unwrap();
    client.query_drop("DO 2").unwrap();
    let (old, new) = (std::fs::read_to_string(old).unwrap(), std::fs::read_to_string(log).unwrap());
    assert!(old.contains("Query\tDO 1\n") && !old.contains("DO 2"), "{old}");
    assert!(new.contains("Query\tDO 2\n") && !new.contains("DO 1"), "{new}");
    assert!(client.query_drop("SET GLOBAL log_output = 'TABLE'").is_err());
}

#[test]
fn engine_status_has_figures() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    let row: Option<(String, String, String)> =
        client.query_first("SHOW ENGINE INNODB STATUS").unwrap();
    let (kind, _, status) = row.unwrap();
    assert_eq!(kind, "InnoDB");
    for part in ["TRANSACTIONS", "BUFFER POOL AND MEMORY", "Log durable up to", "PAGE STORE"] {
        assert!(status.contains(part), "{part}\n{status}");
    }
}

#[test]
fn a_process_list_shows_what_runs() {
    let server = Server::start(&[], &[]);
    let (mut watcher, mut sleeper) = (server.connect(), server.connect());
    let id = sleeper.connection_id();
    std::thread::scope(|scope| {
        scope.spawn(|| sleeper.query_drop("SELECT SLEEP(30)"));
        let deadline = Instant::now() + PATIENCE;
        for table in ["information_schema.PROCESSLIST", "performance_schema.processlist"] {
            let statement = format!("SELECT COMMAND, STATE, INFO FROM {table} WHERE ID = {id}");
            loop {
                let row: Option<(String, Option<String>, Option<String>)> =
                    watcher.query_first(&statement).unwrap();
                let (command, _, info) = row.unwrap();
                if command == "Query" && info.as_deref() == Some("SELECT SLEEP(30)") {
                    break;
                }
                assert!(Instant::now() < deadline, "{command} {info:?}");
            }
        }
        watcher.query_drop(format!("KILL {id}")).unwrap();
    });
}

/// Like MySQL, which names the stage of a statement that waits for a row.
#[test]
fn a_process_list_names_the_stage_of_those_that_wait_for_rows() {
    let server = Server::start(&[], &[]);
    let mut holder = server.connect();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO d.t VALUES (1, 1)",
        "BEGIN",
        "UPDATE d.t SET v = 2 WHERE id = 1",
    ] {
        holder.query_drop(statement).unwrap();
    }
    let cases = [
        ("UPDATE d.t SET v = 3 WHERE id = 1", "updating"),
        ("DELETE FROM d.t WHERE id = 1", "updating"),
        ("REPLACE INTO d.t VALUES (1, 5)", "update"),
        ("SELECT * FROM d.t FOR UPDATE", "executing"),
        ("UPDATE d.t a JOIN d.t b ON a.id = b.id SET a.v = 5", "executing"),
    ];
    let waiters = cases.map(|(statement, _)| {
        let mut client = server.connect();
        std::thread::spawn(move || client.query_drop(statement))
    });
    let mut watcher = server.connect();
    for (statement, state) in cases {
        let look =
            format!("SELECT state FROM information_schema.processlist WHERE info = '{statement}'");
        let began = Instant::now();
        // It has other stages before it waits.
        let mut shown: Option<Option<String>> = None;
        while shown.iter().flatten().all(|shown| shown != state) && began.elapsed() < PATIENCE {
            shown = watcher.query_first(&look).unwrap();
        }
        assert_eq!(shown.flatten().as_deref(), Some(state), "{statement}");
    }
    holder.query_drop("ROLLBACK").unwrap();
    waiters.into_iter().for_each(|waiter| drop(waiter.join()));
}

/// Without name resolution there is no cache of hosts, so no host is blocked, even after many
/// broken connections: like MySQL under `skip_name_resolve`.
#[test]
fn hosts_are_not_blocked_while_names_are_not_resolved() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    let fixed: Option<(u8, u64)> =
        client.query_first("SELECT @@skip_name_resolve, @@max_connect_errors").unwrap();
    assert_eq!(fixed, Some((1, 100)));
    client.query_drop("SET GLOBAL max_connect_errors = 1").unwrap();
    for greeting in [&b"\x05\x00\x00\x07garba"[..], b"", b"\x01"] {
        for _ in 0..3 {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            let mut head = [0; 4];
            stream.read_exact(&mut head).unwrap();
            let _ = stream.write_all(greeting);
        }
    }
    let mut other = server.connect();
    let rows = "SELECT COUNT(*) FROM performance_schema.host_cache";
    assert_eq!(other.query_first::<u64, _>(rows).unwrap(), Some(0));
    other.query_drop("TRUNCATE TABLE performance_schema.host_cache").unwrap();
    let gone = other.query_drop("FLUSH HOSTS").unwrap_err();
    assert!(gone.to_string().contains("ERROR 1064"), "{gone}");
}

/// Waits until another session is in a state.
fn wait_for_state(watcher: &mut mysql::Conn, state: &str) {
    let began = Instant::now();
    let look =
        format!("SELECT COUNT(*) FROM information_schema.processlist WHERE state = '{state}'");
    while watcher.query_first::<u64, _>(&look).unwrap() != Some(1) {
        assert!(began.elapsed() < PATIENCE, "nobody is in the state {state}");
    }
}

/// Waits until the server has ended a session that is idle.
fn wait_for_end(idle: &mut mysql::Conn) {
    let began = Instant::now();
    while idle.query_drop("DO 1").is_ok() {
        assert!(began.elapsed() < PATIENCE, "the session goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_server_that_ends_lets_statements_go_on_for_a_while() {
    let mut server = Server::start(&["--shutdown-patience-seconds", "600"], &[]);
    let mut running = server.connect();
    let mut idle = server.connect();
    assert_eq!(idle.query_first::<u64, _>("SELECT GET_LOCK('x', 0)").unwrap(), Some(1));
    let ended = std::thread::scope(|scope| {
        let answer =
            scope.spawn(move || running.query_first::<u64, _>("SELECT GET_LOCK('x', 300)"));
        wait_for_state(&mut idle, "User lock");
        server.signal("TERM");
        answer.join().unwrap()
    });
    assert_eq!(ended.unwrap(), Some(1), "idle sessions are ended, and the statement goes on");
    wait_for_end(&mut idle);
    let (status, rest) = server.wait();
    assert!(status.success() && rest.ends_with("closed after SIGTERM\n"), "{status} {rest}");
}

#[test]
fn statements_that_go_on_for_too_long_are_ended_and_rolled_back() {
    let mut server = Server::start(&["--shutdown-patience-seconds", "0"], &[]);
    let mut client = server.connect();
    client.query_drop("CREATE DATABASE d").unwrap();
    client.query_drop("CREATE TABLE d.t (a INT PRIMARY KEY)").unwrap();
    client.query_drop("BEGIN").unwrap();
    client.query_drop("INSERT INTO d.t VALUES (1)").unwrap();
    let mut watcher = server.connect();
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || client.query_drop("SELECT SLEEP(600)"));
        wait_for_state(&mut watcher, "User sleep");
        server.signal("TERM");
        let (status, _) = server.wait();
        assert!(status.success(), "{status}");
    });
    assert!(began.elapsed() < Duration::from_secs(300));
    let directory = std::mem::replace(&mut server.directory, tempfile::tempdir().unwrap());
    let server = Server::start_in(directory, &[], &[]);
    let count: Option<u64> = server.connect().query_first("SELECT COUNT(*) FROM d.t").unwrap();
    assert_eq!(count, Some(0));
}

#[test]
fn the_process_list_says_who_waits_for_a_definition() {
    let server = Server::start(&[], &[]);
    let (mut holder, mut watcher) = (server.connect(), server.connect());
    for statement in ["CREATE DATABASE d", "CREATE TABLE d.t (a INT)"] {
        holder.query_drop(statement).unwrap();
    }
    let cases = [
        ("BEGIN; SELECT * FROM d.t", "ALTER TABLE d.t ADD COLUMN b INT"),
        ("BEGIN; SELECT * FROM d.t", "LOCK TABLES d.t WRITE"),
        ("BEGIN; SELECT * FROM d.t", "DROP DATABASE d"),
        ("LOCK TABLES d.t WRITE", "SELECT * FROM d.t"),
    ];
    for (holds, waits) in cases {
        holds.split("; ").for_each(|statement| holder.query_drop(statement).unwrap());
        let mut waiter = server.connect();
        let id = waiter.connection_id();
        std::thread::scope(|scope| {
            scope.spawn(move || waiter.query_drop(waits));
            wait_for_state(&mut watcher, "Waiting for table metadata lock");
            watcher.query_drop(format!("KILL {id}")).unwrap();
        });
        holder.query_drop("ROLLBACK").unwrap();
        holder.query_drop("UNLOCK TABLES").unwrap();
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = Server::start(&["--shutdown-patience-seconds", "600"], &[]);
    let (mut client, mut idle) = (server.connect(), server.connect());
    std::thread::scope(|scope| {
        scope.spawn(move || client.query_drop("SELECT SLEEP(600)"));
        wait_for_state(&mut idle, "User sleep");
        server.signal("TERM");
        wait_for_end(&mut idle);
        server.signal("TERM");
        assert_eq!(server.wait().0.code(), Some(1));
    });
}

#[test]
fn the_world_is_let_in_only_with_passwords() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        ["start", "--listen", "0.0.0.0:0", "--buffer-pool", "16M"].as_slice(),
        &[
            "start",
            "--listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "0.0.0.0:0",
            "--buffer-pool",
            "16M",
        ],
    ] {
        let output = firn(directory.path(), arguments, &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("no account has a password"), "{output:?}");
    }
    let server = Server::start_in(directory, &[], &[]);
    server.connect().query_drop("CREATE USER u IDENTIFIED BY 'x'").unwrap();
    let mut server = server;
    server.signal("TERM");
    server.wait();
    let directory = std::mem::replace(&mut server.directory, tempfile::tempdir().unwrap());
    let mut open = std::process::Command::new(env!("CARGO_BIN_EXE_firn"))
        .current_dir(directory.path())
        .args(["start", "--listen", "0.0.0.0:0", "--buffer-pool", "16M"])
        .env_clear()
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut greeting = [0; 400];
    let mut shown = String::new();
    while !shown.contains("listening at 0.0.0.0:") {
        let length = open.stdout.as_mut().unwrap().read(&mut greeting).unwrap();
        assert!(length > 0, "{shown}");
        shown.push_str(text(&greeting[..length]));
    }
    open.kill().unwrap();
    open.wait().unwrap();
}

#[test]
fn time_zones_are_the_systems_named_or_offsets() {
    let server = Server::start(&[], &[("TZ", "Europe/Berlin")]);
    let mut client = server.connect();
    let zones: Option<(String, String)> =
        client.query_first("SELECT @@time_zone, @@system_time_zone").unwrap();
    let (zone, system) = zones.unwrap();
    assert_eq!(zone, "SYSTEM");
    assert!(["CET", "CEST"].contains(&system.as_str()), "{system}");
    let shown = |client: &mut mysql::Conn, zone: &str| {
        client.query_drop(format!("SET time_zone = '{zone}'")).unwrap();
        let shown: Option<String> = client.query_first("SELECT FROM_UNIXTIME(1782900000)").unwrap();
        shown.unwrap()
    };
    expect!["2026-07-01 12:00:00"].assert_eq(&shown(&mut client, "SYSTEM"));
    expect!["2026-07-01 12:00:00"].assert_eq(&shown(&mut client, "America/New_York"));
    expect!["2026-07-01 12:00:00"].assert_eq(&shown(&mut client, "+05:30"));
    let converted: Option<(String, Option<String>)> = client
        .query_first(
            "SELECT CONVERT_TZ('2026-01-01 12:00:00', 'UTC', 'Europe/Berlin'), \
             CONVERT_TZ('2026-01-01 12:00:00', 'UTC', 'Mars/Base')",
        )
        .unwrap();
    assert_eq!(converted, Some(("2026-01-01 13:00:00".to_owned(), None)));
    let wrong = client.query_drop("SET time_zone = 'Mars/Base'").unwrap_err().to_string();
    assert!(wrong.contains("1298"), "{wrong}");
}

#[test]
fn file_variable_and_flag_name_a_setting_alike_and_refusals_name_their_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("firn.toml");
    let refusal = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output = firn(directory.path(), &[&["start"], arguments].concat(), variables);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr).to_owned()
    };
    std::fs::write(&file, "\n\nshutdown_patience_seconds = 'soon'\n").unwrap();
    expect![
        "firn: firn.toml:3: shutdown_patience_seconds: 'soon' is not a whole number of seconds\n"
    ]
    .assert_eq(&refusal(&["--config", "firn.toml"], &[]));
    std::fs::write(&file, "metrics_lisen = '127.0.0.1:1'\n").unwrap();
    assert!(
        refusal(&["--config", "firn.toml"], &[])
            .starts_with("firn: firn.toml:1: there is no setting")
    );
    expect!["firn: FIRN_SHUTDOWN_PATIENCE_SECONDS: shutdown_patience_seconds: '1e9' is not a whole number of seconds\n"]
        .assert_eq(&refusal(&[], &[("FIRN_SHUTDOWN_PATIENCE_SECONDS", "1e9")]));
    assert!(
        refusal(&["--metrics-listen", "nowhere"], &[])
            .starts_with("firn: --metrics-listen: metrics_listen: 'nowhere' is not an address")
    );
}

#[test]
fn verbosity_follows_the_level_and_can_be_changed() {
    let server = Server::start(&["--log-level", "error"], &[]);
    let mut client = server.connect();
    let verbosity: Option<u64> = client.query_first("SELECT @@log_error_verbosity").unwrap();
    assert_eq!(verbosity, Some(1));
    client.query_drop("SET GLOBAL log_error_verbosity = 3").unwrap();
    let verbosity: Option<u64> = client.query_first("SELECT @@log_error_verbosity").unwrap();
    assert_eq!(verbosity, Some(3));
}

#[test]
fn limits_of_the_wire_follow_their_variables() {
    let server = Server::start(&["--max-connections", "7"], &[]);
    let mut first = server.connect();
    let limits: Option<(u64, u64)> =
        first.query_first("SELECT @@max_connections, @@max_prepared_stmt_count").unwrap();
    assert_eq!(limits, Some((7, 65_536)));
    first.query_drop("SET GLOBAL max_connections = 1").unwrap();
    let port = server.port();
    let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port);
    let refused = mysql::Conn::new(options.user(Some("root")).prefer_socket(false));
    let refused = refused.expect_err("there is one already").to_string();
    assert!(refused.contains("1040"), "{refused}");
    assert_eq!(number(&mut first, "Connection_errors_max_connections"), 1);
    first.query_drop("SET GLOBAL max_connections = 2").unwrap();
    server.connect();
}

#[test]
fn entries_over_texts_are_the_keys_of_their_collations() {
    let mut server = Server::start(&[], &[]);
    let rows = "CREATE DATABASE d; USE d;
        CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20) COLLATE utf8mb4_bin, KEY (a), UNIQUE KEY (b), KEY (a, b));
        INSERT INTO t VALUES (1, 'nut', 'Nut'), (2, 'Bolt', 'bolt'), (3, 'BOLT ', NULL);
        CREATE TABLE k (a VARCHAR(20) PRIMARY KEY, b CHAR(5), KEY (b(2)));
        INSERT INTO k VALUES ('x', 'yz'), ('Y', 'YZa')";
    assert!(server.sql(&[], rows).status.success());
    server.signal("TERM");
    server.wait();
    let output = firn(server.directory.path(), &["admin", "check"], &[]);
    assert!(text(&output.stdout).ends_with("no damage found\n"), "{output:?}");
}
