//! A connection to any server that speaks the MySQL protocol, with prepared or text statements.
//!
//! ```text
//!   Target (URL, mode) ── connect ──► Session ── prepare ──► Command
//!                                        └── rows / execute(&Command, values)
//! ```
//!
//! In prepared mode a command is a statement that the server has prepared. In text mode it is the
//! pieces of the text between its question marks, and each execution fills in literals.

use std::io::Write as _;
use std::sync::Arc;

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler, Opts, OptsBuilder, Params, Statement};
use parking_lot::Mutex;

pub use mysql::Value;

use crate::error::{BenchError, bare};

/// How statements are sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Prepared once for each connection, executed with binary values.
    #[default]
    Prepared,
    /// As text with literals.
    Text,
}

impl Mode {
    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Prepared => "prepared",
            Mode::Text => "text",
        }
    }
}

/// A server, an account and a schema.
#[derive(Debug, Clone)]
pub struct Target {
    options: Opts,
    schema: String,
    mode: Mode,
    /// Statements that each new session runs.
    setup: Vec<String>,
}

impl Target {
    /// Reads `mysql://user:password@host:port/schema`; without a schema it is `default_schema`.
    ///
    /// # Errors
    /// [`BenchError::Url`].
    pub fn parse(url: &str, default_schema: &str) -> Result<Target, BenchError> {
        let reason = |reason: String| BenchError::Url { url: url.to_owned(), reason };
        let options = Opts::from_url(url).map_err(|error| reason(bare(&error.to_string())))?;
        let schema = options.get_db_name().unwrap_or(default_schema).to_owned();
        if schema.is_empty() || schema.contains('`') {
            return Err(reason(format!("'{schema}' cannot be a schema's name")));
        }
        Ok(Target { options, schema, mode: Mode::default(), setup: Vec::new() })
    }

    /// The same target, with statements sent in another mode.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Target {
        self.mode = mode;
        self
    }

    /// The same target, with one more statement at the beginning of each session.
    #[must_use]
    pub fn with_setup(mut self, statement: impl Into<String>) -> Target {
        self.setup.push(statement.into());
        self
    }

    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Host and port, for reports: without the password.
    #[must_use]
    pub fn address(&self) -> String {
        let host = self.options.get_ip_or_hostname();
        format!("{host}:{}/{}", self.options.get_tcp_port(), self.schema)
    }

    /// Creates the schema unless it exists. Blocks.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub fn make_schema(&self) -> Result<(), BenchError> {
        let mut session = self.open(None)?;
        session.run(&format!("CREATE DATABASE IF NOT EXISTS `{}`", self.schema))
    }

    /// Connects a session to the schema. Blocks.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub fn connect(&self) -> Result<Session, BenchError> {
        let mut session = self.open(Some(self.schema.clone()))?;
        for statement in &self.setup {
            session.run(statement)?;
        }
        Ok(session)
    }

    fn open(&self, schema: Option<String>) -> Result<Session, BenchError> {
        let options = OptsBuilder::from_opts(self.options.clone())
            .db_name(schema)
            .prefer_socket(false)
            .tcp_nodelay(true)
            .stmt_cache_size(0);
        let connection = Conn::new(options)
            .map_err(|error| server_error(&format!("connecting to {}", self.address()), error))?;
        Ok(Session { connection, mode: self.mode, text: String::new() })
    }
}

pub struct Session {
    connection: Conn,
    mode: Mode,
    /// Buffer for the texts of statements.
    text: String,
}

/// A statement that can be executed again and again, in the session that made it.
#[derive(Debug)]
pub struct Command {
    sql: String,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Prepared(Statement),
    Text,
}

/// A row: a value for each column.
pub type Row = Vec<Value>;

impl Session {
    /// Makes a command. Text mode needs no round trip; prepared mode blocks for the server.
    ///
    /// # Errors
    /// If the server refuses to prepare it.
    pub fn prepare(&mut self, sql: &str) -> Result<Command, BenchError> {
        let form = match self.mode {
            Mode::Prepared => {
                Form::Prepared(self.connection.prep(sql).map_err(|error| server_error(sql, error))?)
            }
            Mode::Text => Form::Text,
        };
        Ok(Command { sql: sql.to_owned(), form })
    }

    /// Executes a command and returns its rows. Blocks.
    ///
    /// # Errors
    /// The server's error.
    pub fn rows(&mut self, command: &Command, values: &[Value]) -> Result<Vec<Row>, BenchError> {
        let rows = match &command.form {
            Form::Prepared(statement) => {
                self.connection.exec::<mysql::Row, _, _>(statement, parameters(values))
            }
            Form::Text => {
                fill(&mut self.text, &command.sql, values);
                self.connection.query::<mysql::Row, _>(&self.text)
            }
        };
        let rows = rows.map_err(|error| server_error(&command.sql, error))?;
        Ok(rows.into_iter().map(mysql::Row::unwrap).collect())
    }

    /// The only row.
    ///
    /// # Errors
    /// The server's error, and [`BenchError::Wrong`] if there is not exactly one row.
    pub fn row(&mut self, command: &Command, values: &[Value]) -> Result<Row, BenchError> {
        let mut rows = self.rows(command, values)?;
        match (rows.pop(), rows.len()) {
            (Some(row), 0) => Ok(row),
            (_, more) => Err(BenchError::Wrong(format!(
                "{more} rows instead of one from {} with {}",
                beginning(&command.sql),
                shown(values)
            ))),
        }
    }

    /// Executes a command and returns how many rows it has changed. Blocks.
    ///
    /// # Errors
    /// The server's error.
    pub fn execute(&mut self, command: &Command, values: &[Value]) -> Result<u64, BenchError> {
        let outcome = match &command.form {
            Form::Prepared(statement) => self.connection.exec_drop(statement, parameters(values)),
            Form::Text => {
                fill(&mut self.text, &command.sql, values);
                self.connection.query_drop(&self.text)
            }
        };
        outcome.map_err(|error| server_error(&command.sql, error))?;
        Ok(self.connection.affected_rows())
    }

    /// Executes a command that must change just one row.
    ///
    /// # Errors
    /// The server's error, and [`BenchError::Wrong`] if it changed another number of rows.
    pub fn change_one(&mut self, command: &Command, values: &[Value]) -> Result<(), BenchError> {
        match self.execute(command, values)? {
            1 => Ok(()),
            other => Err(BenchError::Wrong(format!(
                "{other} rows changed instead of one by {} with {}",
                beginning(&command.sql),
                shown(values)
            ))),
        }
    }

    /// Runs a text as it is. Blocks.
    ///
    /// # Errors
    /// The server's error.
    pub fn run(&mut self, sql: &str) -> Result<(), BenchError> {
        self.connection.query_drop(sql).map_err(|error| server_error(sql, error))
    }

    /// Runs a text as it is and returns its rows. Blocks.
    ///
    /// # Errors
    /// The server's error.
    pub fn ask(&mut self, sql: &str) -> Result<Vec<Row>, BenchError> {
        let rows = self.connection.query::<mysql::Row, _>(sql);
        let rows = rows.map_err(|error| server_error(sql, error))?;
        Ok(rows.into_iter().map(mysql::Row::unwrap).collect())
    }

    /// Runs `LOAD DATA LOCAL INFILE` with `data` as the file. Returns the loaded rows. Blocks.
    ///
    /// # Errors
    /// The server's error.
    pub fn load(&mut self, sql: &str, data: Vec<u8>) -> Result<u64, BenchError> {
        let data = Arc::new(Mutex::new(data));
        let handler = LocalInfileHandler::new(move |_, stream| {
            let data = std::mem::take(&mut *data.lock());
            stream.write_all(&data)
        });
        self.connection.set_local_infile_handler(Some(handler));
        self.run(sql)?;
        Ok(self.connection.affected_rows())
    }
}

fn parameters(values: &[Value]) -> Params {
    if values.is_empty() { Params::Empty } else { Params::Positional(values.to_vec()) }
}

/// Replaces question marks by literals. No statement of a workload has one in a string.
fn fill(text: &mut String, sql: &str, values: &[Value]) {
    text.clear();
    let mut values = values.iter();
    for (index, piece) in sql.split('?').enumerate() {
        if index > 0 {
            let value = values.next().expect("a value for each question mark");
            text.push_str(&value.as_sql(false));
        }
        text.push_str(piece);
    }
}

fn beginning(sql: &str) -> String {
    const SHOWN: usize = 120;
    match sql.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &sql[..end]),
        None => sql.to_owned(),
    }
}

/// Values as literals, separated by commas.
fn shown(values: &[Value]) -> String {
    values.iter().map(|value| value.as_sql(false)).collect::<Vec<_>>().join(", ")
}

fn server_error(sql: &str, error: mysql::Error) -> BenchError {
    BenchError::Server { statement: beginning(sql), error: Box::new(error) }
}

/// The value as a whole number, by either protocol.
///
/// # Errors
/// [`BenchError::Wrong`] if it is not one.
pub fn whole(value: &Value) -> Result<i64, BenchError> {
    let number = match value {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    number.ok_or_else(|| {
        BenchError::Wrong(format!("{} instead of a whole number", value.as_sql(false)))
    })
}

/// The value as text; a literal if it is not text.
#[must_use]
pub fn text(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::NULL => "NULL".to_owned(),
        other => other.as_sql(false).trim_matches('\'').to_owned(),
    }
}

/// A decimal of two digits after the point as its hundredths, exactly.
///
/// # Errors
/// [`BenchError::Wrong`] if it is not one.
pub fn hundredths(value: &Value) -> Result<i64, BenchError> {
    let shown = text(value);
    let (sign, digits) = match shown.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, shown.as_str()),
    };
    let (units, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let parsed = || -> Option<i64> {
        let units: i64 = units.parse().ok()?;
        let fraction: i64 = format!("{fraction:0<2}").get(..2)?.parse().ok()?;
        units.checked_mul(100)?.checked_add(fraction)
    };
    let size = parsed();
    size.map(|size| sign * size)
        .ok_or_else(|| BenchError::Wrong(format!("{} instead of an amount", value.as_sql(false))))
}

/// Hundredths as a decimal literal.
#[must_use]
pub fn amount(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let size = hundredths.unsigned_abs();
    format!("{sign}{}.{:02}", size / 100, size % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where() {
        let target = Target::parse("mysql://root:p%40ss@db.example:4406/shop", "x").unwrap();
        assert_eq!(target.address(), "db.example:4406/shop");
        assert_eq!(target.options.get_pass(), Some("p@ss"));
        let target = Target::parse("mysql://root@127.0.0.1:3306", "tpcc").unwrap();
        assert_eq!(target.address(), "127.0.0.1:3306/tpcc");
        for wrong in ["", "root@host", "http://h:1/x"] {
            assert!(matches!(Target::parse(wrong, "x"), Err(BenchError::Url { .. })), "{wrong}");
        }
    }

    #[test]
    fn texts_are_filled_with_literals() {
        let mut text = String::new();
        let values = [Value::from(7), Value::from("it's"), Value::NULL];
        fill(&mut text, "SELECT ?, ? FROM t WHERE a <=> ?", &values);
        assert_eq!(text, r"SELECT 7, 'it\'s' FROM t WHERE a <=> NULL");
    }

    #[test]
    fn values_are_read_from_both_protocols() {
        assert_eq!(whole(&Value::Int(-3)).unwrap(), -3);
        assert_eq!(whole(&Value::from("42")).unwrap(), 42);
        assert!(whole(&Value::NULL).is_err());
        for (text, expected) in [("-10.00", -1000), ("0.5", 50), ("-0.07", -7), ("12", 1200)] {
            assert_eq!(hundredths(&Value::from(text)).unwrap(), expected);
        }
        assert!(hundredths(&Value::from("a.b")).is_err());
        assert_eq!([amount(-7), amount(123_456)], ["-0.07", "1234.56"]);
    }
}
