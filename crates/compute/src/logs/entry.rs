//! Entries of the logs as text.

use std::fmt::Write;

use firn_sql::execute::RowCounts;
use firn_sql::plan::PlanShape;

use super::secrets;

/// The session of a statement.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    /// The connection's number.
    pub connection: u64,
    /// The account's name.
    pub account: &'a str,
    /// The name sent by the client.
    pub user: &'a str,
    /// Where it comes from: an address, or `localhost`.
    pub host: &'a str,
}

/// A statement for the slow-query log.
#[derive(Debug, Clone, Copy)]
pub struct SlowEntry<'a> {
    pub who: Who<'a>,
    /// When it began, in microseconds since 1970.
    pub began_us: u64,
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// Rows that went to the client.
    pub rows_sent: u64,
    /// Its requests to the node.
    pub rows: RowCounts,
    /// The shape of its plan.
    pub shape: PlanShape,
    /// The number of its error, or 0.
    pub error: u16,
    /// Bytes received and sent for it.
    pub traffic: (u64, u64),
    /// The current schema.
    pub schema: Option<&'a str>,
    pub statement: &'a str,
}

impl SlowEntry<'_> {
    /// The text of the entry; with the additions of `log_slow_extra` if it `tells_more`.
    #[must_use]
    pub fn text(&self, tells_more: bool) -> String {
        let mut text = String::with_capacity(400 + self.statement.len());
        // Writing to a String cannot fail.
        let _ = self.write(tells_more, &mut text);
        text
    }

    fn write(&self, tells_more: bool, out: &mut String) -> std::fmt::Result {
        let Who { connection, account, user, host } = self.who;
        let (name, address) = match host {
            "localhost" => ("localhost", ""),
            address => ("", address),
        };
        writeln!(out, "# Time: {}", moment(self.began_us + self.took_us))?;
        writeln!(out, "# User@Host: {account}[{user}] @ {name} [{address}]  Id: {connection:>5}")?;
        write!(
            out,
            "# Query_time: {}  Lock_time: 0.000000 Rows_sent: {}  Rows_examined: {}",
            seconds(self.took_us),
            self.rows_sent,
            self.rows.examined(),
        )?;
        if tells_more {
            self.write_more(out)?;
        }
        out.push('\n');
        if let Some(schema) = self.schema {
            writeln!(out, "use {schema};")?;
        }
        let statement = secrets::masked(self.statement);
        let statement = statement.trim_end_matches(|end: char| end == ';' || end.is_whitespace());
        writeln!(out, "SET timestamp={};\n{statement};", self.began_us / 1_000_000)
    }

    fn write_more(&self, out: &mut String) -> std::fmt::Result {
        let (rows, shape) = (&self.rows, &self.shape);
        write!(
            out,
            " Thread_id: {} Errno: {} Killed: {} Bytes_received: {} Bytes_sent: {} Read_first: {} \
             Read_last: 0 Read_key: {} Read_next: {} Read_prev: 0 Read_rnd: 0 Read_rnd_next: {} \
             Sort_merge_passes: {} Sort_range_count: {} Sort_rows: {} Sort_scan_count: {} \
             Created_tmp_disk_tables: 0 Created_tmp_tables: {} Start: {} End: {}",
            self.who.connection,
            self.error,
            if self.error == INTERRUPTED { self.error } else { 0 },
            self.traffic.0,
            self.traffic.1,
            rows.scans,
            rows.points,
            rows.by_index,
            rows.by_full_scan,
            rows.sort_runs,
            shape.sorted_ranges,
            rows.sorted,
            shape.sorted_scans,
            shape.temporary_tables,
            moment(self.began_us),
            moment(self.began_us + self.took_us),
        )
    }
}

/// The error of a statement that was killed.
const INTERRUPTED: u16 = 1317;

/// A line of the general log.
pub(super) fn general(now_us: u64, connection: u64, command: &str, argument: &str) -> String {
    format!("{}\t{connection:>5} {command}\t{}\n", moment(now_us), secrets::masked(argument))
}

/// `2026-11-21T18:25:40.123456Z`
fn moment(us: u64) -> String {
    let timestamp =
        i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let timestamp = timestamp.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    timestamp.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Whether `log_slow_admin_statements` applies to a statement.
#[must_use]
pub fn is_administrative(statement: &str) -> bool {
    let mut words = statement.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or("").to_ascii_uppercase();
    let second = words.next().unwrap_or("").to_ascii_uppercase();
    match first.as_str() {
        "ALTER" => second == "TABLE",
        "CREATE" | "DROP" => matches!(second.as_str(), "INDEX" | "UNIQUE"),
        "ANALYZE" | "CHECK" | "OPTIMIZE" | "REPAIR" => true,
        _ => false,
    }
}
