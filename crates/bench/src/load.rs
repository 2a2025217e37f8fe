//! Loads tables in parts, which connections take one after the other. Rows are sent in batches as
//! `INSERT` or `LOAD DATA LOCAL`, or written to files.
//!
//! ```text
//!   parts 0 1 2 3 …  ──►  connection ── fill(part) ──► Rows ── 256 KiB ──► server
//!                    ──►  connection …
//! ```
//!
//! The content of a part depends on the seed and its number alone, whichever connection loads it.

#![allow(clippy::disallowed_methods, reason = "a client beside the node, under no simulator")]

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::client::{Session, Target, amount};
use crate::error::BenchError;
use crate::progress::Loading;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadBy {
    /// `INSERT` of many rows each.
    #[default]
    Insert,
    /// `LOAD DATA LOCAL INFILE`.
    Infile,
}

/// How a load is run.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions {
    /// Connections that load at once.
    pub connections: usize,
    pub by: LoadBy,
    pub reports_progress: bool,
}

/// A batch of this length is sent. Servers accept statements of at least 1 MiB.
const INSERT_BYTES: usize = 256 << 10;
const INFILE_BYTES: usize = 4 << 20;

pub enum Sink {
    Server(Session, LoadBy),
    /// Files named after the tables, in a format that other engines read.
    Files(std::path::PathBuf),
}

/// Rows of one table that are being sent.
pub struct Rows<'a> {
    table: &'a str,
    buffer: Buffer,
    is_first_field: bool,
    loading: &'a Loading,
}

enum Buffer {
    Insert { text: String, rows: u64 },
    Infile { text: String, rows: u64 },
    File { text: BufWriter<File>, line: String, rows: u64 },
}

/// The separator of fields in files; no generated text contains it.
pub const SEPARATOR: char = '|';

impl Sink {
    /// Rows for `table`.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn rows<'a>(&self, table: &'a str, loading: &'a Loading) -> Result<Rows<'a>, BenchError> {
        let buffer = match self {
            Sink::Server(_, LoadBy::Insert) => Buffer::Insert { text: String::new(), rows: 0 },
            Sink::Server(_, LoadBy::Infile) => Buffer::Infile { text: String::new(), rows: 0 },
            Sink::Files(directory) => {
                let path = directory.join(format!("{table}.csv"));
                let file = File::options().create(true).append(true).open(path)?;
                Buffer::File { text: BufWriter::new(file), line: String::new(), rows: 0 }
            }
        };
        Ok(Rows { table, buffer, is_first_field: true, loading })
    }
}

impl Rows<'_> {
    /// Writes the separator before this field; returns the text, and whether words are quoted.
    fn field(&mut self) -> (&mut String, bool) {
        let is_first = std::mem::take(&mut self.is_first_field);
        let (text, between, is_quoted) = match &mut self.buffer {
            Buffer::Insert { text, .. } => (text, if is_first { '(' } else { ',' }, true),
            Buffer::Infile { text, .. } => (text, SEPARATOR, false),
            Buffer::File { line, .. } => (line, SEPARATOR, false),
        };
        if is_quoted || !is_first {
            text.push(between);
        }
        (text, is_quoted)
    }

    pub fn whole(&mut self, number: i64) -> &mut Self {
        self.raw(&number.to_string())
    }

    /// Appends a literal that needs no quotes in SQL.
    fn raw(&mut self, literal: &str) -> &mut Self {
        self.field().0.push_str(literal);
        self
    }

    /// A decimal with two digits after the point.
    pub fn hundredths(&mut self, hundredths: i64) -> &mut Self {
        self.raw(&amount(hundredths))
    }

    /// A decimal with four digits after the point.
    pub fn ten_thousandths(&mut self, number: i64) -> &mut Self {
        self.raw(&format!("{}.{:04}", number / 10_000, number % 10_000))
    }

    /// Text without quotes, backslashes, separators and control characters.
    pub fn word(&mut self, word: &str) -> &mut Self {
        debug_assert!(!word.contains(['\'', '\\', SEPARATOR, '\n', '\0']), "{word:?}");
        let (text, is_quoted) = self.field();
        if is_quoted {
            text.push('\'');
            text.push_str(word);
            text.push('\'');
        } else {
            text.push_str(word);
        }
        self
    }

    pub fn null(&mut self) -> &mut Self {
        let (text, is_sql) = self.field();
        text.push_str(if is_sql { "NULL" } else { r"\N" });
        self
    }

    /// Ends the row. If the batch is long enough, sends it and blocks.
    ///
    /// # Errors
    /// The server's error.
    pub fn end(&mut self, sink: &mut Sink) -> Result<(), BenchError> {
        self.is_first_field = true;
        let is_full = match &mut self.buffer {
            Buffer::Insert { text, rows } => {
                text.push_str("),");
                *rows += 1;
                text.len() >= INSERT_BYTES
            }
            Buffer::Infile { text, rows } => {
                text.push('\n');
                *rows += 1;
                text.len() >= INFILE_BYTES
            }
            Buffer::File { text, line, rows } => {
                line.push('\n');
                text.write_all(line.as_bytes())?;
                line.clear();
                *rows += 1;
                false
            }
        };
        if is_full { self.flush(sink) } else { Ok(()) }
    }

    /// Sends the remaining rows. Blocks.
    ///
    /// # Errors
    /// The server's error.
    pub fn flush(&mut self, sink: &mut Sink) -> Result<(), BenchError> {
        let sent = match (&mut self.buffer, sink) {
            (Buffer::File { text, rows, .. }, _) => {
                text.flush()?;
                std::mem::take(rows)
            }
            (Buffer::Insert { rows: 0, .. } | Buffer::Infile { rows: 0, .. }, _) => 0,
            (Buffer::Insert { text, rows }, Sink::Server(session, _)) => {
                let values = text.trim_end_matches(',');
                session.run(&format!("INSERT INTO {} VALUES {values}", self.table))?;
                text.clear();
                std::mem::take(rows)
            }
            (Buffer::Infile { text, rows }, Sink::Server(session, _)) => {
                let sql = format!(
                    "LOAD DATA LOCAL INFILE '{0}' INTO TABLE {0} FIELDS TERMINATED BY '{SEPARATOR}'",
                    self.table
                );
                let loaded = session.load(&sql, std::mem::take(text).into_bytes())?;
                let sent = std::mem::take(rows);
                if loaded != sent {
                    return Err(BenchError::Wrong(format!(
                        "{loaded} of {sent} rows were loaded into {}",
                        self.table
                    )));
                }
                sent
            }
            (_, Sink::Files(_)) => unreachable!("rows stay with the kind of sink that made them"),
        };
        self.loading.add(sent);
        Ok(())
    }
}

/// Loads `parts` parts, about `rows` rows in all, over the connections of `options`. Returns the
/// rows loaded. Blocks.
///
/// # Errors
/// The first error of a part.
pub fn load(
    target: &Target,
    options: &LoadOptions,
    what: &str,
    (parts, rows): (usize, u64),
    fill: impl Fn(usize, &mut Sink, &Loading) -> Result<(), BenchError> + Sync,
) -> Result<u64, BenchError> {
    let sink = || -> Result<Sink, BenchError> {
        let mut session = target.connect()?;
        // Servers with these variables lose time on checks that a load cannot violate.
        session.run("SET foreign_key_checks = 0, unique_checks = 0")?;
        Ok(Sink::Server(session, options.by))
    };
    let loading = Loading::start(what, rows);
    let connections = options.connections.clamp(1, parts.max(1));
    let sinks: Result<Vec<Sink>, _> = (0..connections).map(|_| sink()).collect();
    let (next, at_work) = (AtomicUsize::new(0), AtomicUsize::new(connections));
    let failure = Mutex::new(None);
    let has_failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mut sink in sinks? {
            let (next, at_work, failure, has_failed, fill, loading) =
                (&next, &at_work, &failure, &has_failed, &fill, &loading);
            scope.spawn(move || {
                while !has_failed.load(Ordering::Relaxed) {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= parts {
                        break;
                    }
                    if let Err(error) = fill(part, &mut sink, loading) {
                        failure.lock().get_or_insert(error);
                        has_failed.store(true, Ordering::Relaxed);
                    }
                }
                at_work.fetch_sub(1, Ordering::Release);
            });
        }
        let is_over = || at_work.load(Ordering::Acquire) == 0;
        if options.reports_progress {
            loading.report_until(&is_over);
        }
        Ok::<_, BenchError>(())
    })?;
    match failure.into_inner() {
        Some(error) => Err(error),
        None => Ok(loading.rows()),
    }
}

/// Creates `directory` and writes the parts into files in it. Returns the rows written. Blocks.
///
/// # Errors
/// If a file cannot be written, or exists already.
pub fn export(
    directory: &Path,
    tables: &[String],
    parts: usize,
    fill: impl Fn(usize, &mut Sink, &Loading) -> Result<(), BenchError>,
) -> Result<u64, BenchError> {
    std::fs::create_dir_all(directory)?;
    for table in tables {
        let path = directory.join(format!("{table}.csv"));
        if path.exists() {
            return Err(BenchError::Usage(format!("{} is there already", path.display())));
        }
    }
    let loading = Loading::start("export", 0);
    let mut sink = Sink::Files(directory.to_owned());
    for part in 0..parts {
        fill(part, &mut sink, &loading)?;
    }
    Ok(loading.rows())
}

/// Drops the tables that exist. Blocks.
///
/// # Errors
/// The server's error.
pub fn drop_tables(session: &mut Session, tables: &[String]) -> Result<(), BenchError> {
    let there = session.ask("SHOW TABLES")?;
    let there: Vec<String> = there.iter().map(|row| crate::client::text(&row[0])).collect();
    for table in tables.iter().filter(|table| there.contains(table)) {
        session.run(&format!("DROP TABLE {table}"))?;
    }
    Ok(())
}

/// Drops the tables that exist and creates schema and tables. Blocks.
///
/// # Errors
/// The server's error.
pub fn make_tables(
    target: &Target,
    tables: &[String],
    definitions: &[&str],
) -> Result<Session, BenchError> {
    target.make_schema()?;
    let mut session = target.connect()?;
    drop_tables(&mut session, tables)?;
    for definition in definitions {
        session.run(definition)?;
    }
    Ok(session)
}

/// Numbers that parallel loads take one after the other.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    #[must_use]
    pub fn from(first: u64) -> Counter {
        Counter(AtomicU64::new(first))
    }

    pub fn take(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The next number.
    #[must_use]
    pub fn peek(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
