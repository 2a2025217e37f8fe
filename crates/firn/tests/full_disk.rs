//! A server whose disk is completely full: SQL can free space, and the server always ends in order.
//! The disk is a tmpfs that the test mounts, so these tests run as root, in the step
//! `scripts/test.sh full_disk`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

mod support;

use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use support::Server;

const DISK_BYTES: &str = "320M";
const PATIENCE: Duration = Duration::from_secs(30);

/// A small disk for one test.
struct SmallDisk {
    mount_point: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> SmallDisk {
        let mount_point = tempfile::tempdir().unwrap();
        let size = format!("size={DISK_BYTES}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(mount_point.path());
        assert!(mount.status().unwrap().success(), "mounting needs root");
        SmallDisk { mount_point }
    }

    fn start(&self) -> Server {
        self.start_in(tempfile::tempdir_in(self.mount_point.path()).unwrap())
    }

    fn start_in(&self, directory: tempfile::TempDir) -> Server {
        Server::start_in(directory, &["--shutdown-patience-seconds", "2"], &[])
    }

    /// Takes all free space, as another program would.
    fn fill(&self) {
        let mut file = File::create(self.mount_point.path().join("other")).unwrap();
        let mut bytes = vec![1; 1 << 20];
        while !bytes.is_empty() {
            if file.write_all(&bytes).is_err() {
                bytes.truncate(bytes.len() / 2);
            }
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.mount_point.path().join("other")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.mount_point.path()).status();
    }
}

/// The error's number, 0 if there is none. Fails if the statement takes too long.
fn code(connection: &mut Conn, statement: &str) -> u16 {
    let began = Instant::now();
    let code = match connection.query_drop(statement) {
        Ok(()) => 0,
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(error) => panic!("{statement}: {error}"),
    };
    let took = began.elapsed();
    assert!(took < PATIENCE, "{statement}: {took:?}");
    println!("{statement}: {code} in {took:?}");
    code
}

/// Two tables. `t` has as many rows as fit, and then the rest of the disk is filled.
fn filled(disk: &SmallDisk) -> (Server, Conn) {
    let server = disk.start();
    let mut connection = server.connect();
    for statement in [
        "CREATE DATABASE s",
        "USE s",
        "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(2000), KEY (v(10)))",
        "CREATE TABLE u LIKE t",
        "INSERT INTO u (v) VALUES (REPEAT('u', 2000)), (REPEAT('v', 2000))",
        "INSERT INTO t (v) VALUES (REPEAT('t', 2000)), (REPEAT('w', 2000))",
    ] {
        connection.query_drop(statement).unwrap();
    }
    for _ in 0..11 {
        assert_eq!(code(&mut connection, "INSERT INTO u (v) SELECT v FROM u"), 0);
    }
    let mut is_full = false;
    let began = Instant::now();
    while !is_full {
        let more = "INSERT INTO t (v) SELECT v FROM u LIMIT 500";
        is_full = code(&mut connection, more) == 1021;
        assert!(began.elapsed() < 4 * PATIENCE, "the disk does not run full");
    }
    disk.fill();
    assert_eq!(code(&mut connection, "INSERT INTO t (v) SELECT v FROM u"), 1021);
    (server, connection)
}

/// New rows are accepted soon after space was freed.
fn assert_writable(connection: &mut Conn, table: &str) {
    let began = Instant::now();
    while code(connection, &format!("INSERT INTO {table} (v) VALUES (REPEAT('n', 2000))")) == 1021 {
        assert!(began.elapsed() < PATIENCE, "room was made, and writes do not go on");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn assert_sound(connection: &mut Conn, table: &str) {
    let check = format!("CHECK TABLE {table}");
    let rows: Vec<(String, String, String, String)> = connection.query(check).unwrap();
    assert!(rows.iter().all(|row| row.3 == "OK"), "{rows:?}");
}

/// Ends the server in order, and starts it again over the same directory.
fn restarted(disk: &SmallDisk, mut server: Server) -> Server {
    let began = Instant::now();
    server.signal("TERM");
    let (status, output) = server.wait();
    let took = began.elapsed();
    assert!(status.success() && took < PATIENCE, "{status} after {took:?}: {output}");
    let directory = std::mem::replace(&mut server.directory, tempfile::tempdir().unwrap());
    disk.start_in(directory)
}

#[test]
#[ignore = "mounts a tmpfs, which needs root"]
fn a_whole_delete_frees_a_full_disk() {
    let disk = SmallDisk::mount();
    let (server, mut connection) = filled(&disk);
    let rows: u64 = connection.query_first("SELECT COUNT(*) FROM t").unwrap().unwrap();
    let whole = code(&mut connection, "DELETE FROM t");
    assert!(whole == 0 || whole == 1021, "{whole}");
    let left: u64 = connection.query_first("SELECT COUNT(*) FROM t").unwrap().unwrap();
    assert_eq!(left, if whole == 0 { 0 } else { rows }, "a statement is done or undone as a whole");
    // There is no room for a DELETE of all rows; shorter ones succeed.
    let began = Instant::now();
    while connection.query_first::<u64, _>("SELECT COUNT(*) FROM t").unwrap().unwrap() > 0 {
        code(&mut connection, "DELETE FROM t LIMIT 2000");
        assert!(began.elapsed() < 4 * PATIENCE, "the table is not emptied");
    }
    assert_writable(&mut connection, "t");
    drop(connection);
    let server = restarted(&disk, server);
    let mut connection = server.connect();
    assert_sound(&mut connection, "s.t");
    assert_sound(&mut connection, "s.u");
}

#[test]
#[ignore = "mounts a tmpfs, which needs root"]
fn truncate_and_drop_free_a_full_disk() {
    let disk = SmallDisk::mount();
    let (server, mut connection) = filled(&disk);
    assert_eq!(code(&mut connection, "TRUNCATE TABLE u"), 0);
    assert_writable(&mut connection, "u");
    assert_eq!(code(&mut connection, "DROP TABLE t"), 0);
    assert_writable(&mut connection, "u");
    drop(connection);
    let server = restarted(&disk, server);
    assert_sound(&mut server.connect(), "s.u");
}

#[test]
#[ignore = "mounts a tmpfs, which needs root"]
fn a_server_ends_in_order_on_a_full_disk_with_a_transaction_that_wrote_much() {
    let disk = SmallDisk::mount();
    let (server, mut connection) = filled(&disk);
    connection.query_drop("BEGIN").unwrap();
    for _ in 0..4 {
        code(&mut connection, "DELETE FROM t LIMIT 5000");
    }
    let server = restarted(&disk, server);
    drop(connection);
    let mut connection = server.connect();
    assert_eq!(code(&mut connection, "TRUNCATE TABLE s.t"), 0);
    assert_writable(&mut connection, "s.t");
    disk.free();
    assert_writable(&mut connection, "s.u");
    assert_sound(&mut connection, "s.t");
    assert_sound(&mut connection, "s.u");
}
