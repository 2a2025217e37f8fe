//! Entries, masks, and files with many writers.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::borrow::Cow;

use expect_test::expect;
use firn_sql::execute::RowCounts;
use firn_sql::plan::PlanShape;

use super::secrets::masked;
use super::*;
use crate::variables::Setting;

fn entry(statement: &str) -> SlowEntry<'_> {
    SlowEntry {
        who: Who { connection: 8, account: "ann", user: "ann", host: "10.0.0.7" },
        began_us: 1_795_285_539_123_456,
        took_us: 1_002_000,
        rows_sent: 1,
        rows: RowCounts { scans: 1, by_full_scan: 4096, ..RowCounts::default() },
        shape: PlanShape { scans: 1, ..PlanShape::default() },
        error: 0,
        traffic: (51, 80),
        schema: Some("shop"),
        statement,
    }
}

#[test]
fn an_entry_is_mysqls() {
    expect![[r#"
        # Time: 2026-11-21T18:25:40.125456Z
        # User@Host: ann[ann] @  [10.0.0.7]  Id:     8
        # Query_time: 1.002000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 4096
        use shop;
        SET timestamp=1795285539;
        SELECT COUNT(*) FROM sale;
    "#]]
    .assert_eq(&entry("SELECT COUNT(*) FROM sale ; ").text(false));
    let more = entry("SELECT 1").text(true);
    assert!(more.contains(" Thread_id: 8 Errno: 0 "), "{more}");
    assert!(more.contains(" Read_rnd_next: 4096 "), "{more}");
}

#[test]
fn passwords_are_masked() {
    for (statement, written) in [
        (
            "CREATE USER 'ann'@'%' IDENTIFIED BY 'it''s' REPLACE \"y\"",
            "CREATE USER 'ann'@'%' IDENTIFIED BY <secret> REPLACE <secret>",
        ),
        (
            "alter user a identified with 'caching_sha2_password' as 'hash'",
            "alter user a identified with 'caching_sha2_password' as <secret>",
        ),
        ("SET PASSWORD FOR 'a'@'%' = 'x'", "SET PASSWORD FOR 'a'@'%' = <secret>"),
        ("SET PASSWORD = PASSWORD('x')", "SET PASSWORD = PASSWORD(<secret>)"),
        ("CREATE USER a IDENTIFIED BY 'not ended", "CREATE USER a IDENTIFIED BY <secret>"),
    ] {
        assert_eq!(masked(statement), written);
    }
    let plain = "SELECT 'password' AS identified, 'a' = 'b'";
    assert!(matches!(masked("SELECT 'PASSWORD', 'a' = 'b'"), Cow::Borrowed(_)));
    assert!(!masked(plain).contains("'b'"), "a column's name is taken for the topic, at worst");
}

#[test]
fn administrative_statements_are_known() {
    for text in ["ALTER TABLE t ADD x INT", "create index i on t (a)", "OPTIMIZE TABLE t"] {
        assert!(is_administrative(text), "{text}");
    }
    for text in ["ALTER USER a", "CREATE TABLE t (a INT)", "SELECT 1", ""] {
        assert!(!is_administrative(text), "{text}");
    }
}

#[test]
fn a_log_is_turned_on_and_off_by_its_variables() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("firn-slow.log");
    let variables = GlobalVariables::default();
    variables.install("datadir", Setting::text(&directory.path().display().to_string()));
    let logs = Logs::new(&Environment::system());
    logs.obey(&variables);
    assert!(!logs.wants_slow() && !path.exists());
    variables.install("slow_query_log", Setting::Number(1));
    logs.obey(&variables);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| logs.slow(&entry("SELECT 1"))));
        }
    });
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("# Time: ").count(), 200);
    assert_eq!(text.matches("SELECT 1;\n").count(), 200);
    variables.install("slow_query_log", Setting::Number(0));
    logs.obey(&variables);
    logs.slow(&entry("SELECT 2"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_log_that_cannot_be_opened_stays_off() {
    let variables = GlobalVariables::default();
    variables.install("datadir", Setting::text("/nowhere/at/all"));
    variables.install("general_log", Setting::Number(1));
    let logs = Logs::new(&Environment::system());
    logs.obey(&variables);
    assert!(!logs.wants_all());
}
