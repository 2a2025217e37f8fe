//! Statements to answers: a connection and how its answers are shown.

use std::io::{self, IsTerminal, Write};
use std::rc::Rc;
use std::time::Duration;

use firn_base::Environment;
use mysql::prelude::Queryable;
use mysql::{Conn, ResultSet, Text, Value};

use super::connection::{self, Interrupter};
use super::names::Names;
use super::options::Options;
use super::output::{Format, Header, Screen, row_writer, write_table};
use super::splitter::{Ending, Splitter, Statement};
use super::words;
use super::{ClientError, pager};

/// How to continue after a line or a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    /// A statement failed, and the user has seen the error.
    Failed,
    Quit,
}

/// Shows why something did not succeed, if the user or the server can do something about it.
///
/// # Errors
/// Every other error.
pub(crate) fn show_failure(done: Result<Flow, ClientError>) -> Result<Flow, ClientError> {
    match done {
        Err(ClientError::Server(error)) => eprintln!("{}", firn_bench::message_of(&error)),
        Err(ClientError::Options(why)) => eprintln!("{why}"),
        done => return done,
    }
    Ok(Flow::Failed)
}

/// When rows are shown vertically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expanded {
    Off,
    On,
}

/// A connection and the way in which its answers are shown.
pub(crate) struct Shell {
    pub(crate) environment: Environment,
    pub(crate) options: Options,
    pub(crate) connection: Conn,
    pub(crate) is_interactive: bool,
    pub(crate) format: Format,
    pub(crate) expanded: Expanded,
    pub(crate) timing: bool,
    pub(crate) warnings: bool,
    pub(crate) pages: bool,
    /// The previous statement, for `\e`.
    pub(crate) last: String,
    /// The text that the next prompt begins with, after `\e`.
    pub(crate) initial: Option<String>,
    pub(crate) names: Rc<Names>,
    interrupter: Interrupter,
    pub(crate) splitter: Splitter,
    /// Nesting depth of files that run files.
    pub(crate) depth: usize,
}

impl Shell {
    /// Connects.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub(crate) fn open(
        environment: &Environment,
        mut options: Options,
    ) -> Result<Shell, ClientError> {
        let is_interactive = options.is_interactive();
        let connection = connection::connect(&mut options.target)?;
        let format = options.format.unwrap_or(match io::stdout().is_terminal() {
            true => Format::Table,
            false => Format::Tab,
        });
        Ok(Shell {
            environment: environment.clone(),
            connection,
            is_interactive,
            format,
            expanded: Expanded::Off,
            timing: is_interactive || options.timing,
            warnings: is_interactive,
            pages: is_interactive,
            last: String::new(),
            initial: None,
            names: Rc::new(Names::new(&options.target)),
            interrupter: Interrupter::start(environment, &options.target)?,
            splitter: Splitter::default(),
            depth: 0,
            options,
        })
    }

    /// Whether a script continues after a statement that failed.
    pub(crate) fn goes_on(&self) -> bool {
        self.options.goes_on
    }

    /// Runs a statement; an error of the server is shown.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(crate) fn run_statement(
        &mut self,
        statement: &Statement,
        out: &mut dyn Write,
    ) -> Result<Flow, ClientError> {
        let Ok(text) = std::str::from_utf8(&statement.text) else {
            let why =
                "is not UTF-8; binary values can be written in base 16 (mysqldump --hex-blob)";
            eprintln!("ERROR at line {}: the statement {why}", statement.line);
            return Ok(Flow::Failed);
        };
        if text.is_empty() {
            return Ok(Flow::Continue);
        }
        let format = match (statement.ending, self.expanded) {
            (Ending::Vertical, _) | (_, Expanded::On) => Format::Vertical,
            _ => self.format,
        };
        let done = self.run_text(text, format, out);
        self.last = text.to_owned();
        match done {
            Ok(()) => Ok(Flow::Continue),
            Err(ClientError::Server(error)) => {
                out.flush()?;
                let line = statement.line;
                let message = firn_bench::message_of(&error);
                match message.split_once(": ") {
                    Some((code, rest)) if !self.is_interactive => {
                        eprintln!("{code} at line {line}: {rest}");
                    }
                    _ => eprintln!("{message}"),
                }
                self.after_error(&error);
                Ok(Flow::Failed)
            }
            Err(other) => Err(other),
        }
    }

    /// Connects again after the connection was lost, so that the user can go on.
    fn after_error(&mut self, error: &mysql::Error) {
        if !self.is_interactive || !error.is_connectivity_error() {
            return;
        }
        match self.reconnect() {
            Ok(()) => eprintln!("Connected again; the transaction, if one was open, is lost."),
            Err(error) => eprintln!("{error}"),
        }
    }

    /// Connects again and chooses the schema that was current.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub(crate) fn reconnect(&mut self) -> Result<(), ClientError> {
        self.connection = connection::connect(&mut self.options.target)?;
        self.names.forget();
        Ok(())
    }

    /// Runs one statement and shows its answer.
    ///
    /// # Errors
    /// The server's error, or that `out` cannot be written.
    pub(crate) fn run_text(
        &mut self,
        text: &str,
        format: Format,
        out: &mut dyn Write,
    ) -> Result<(), ClientError> {
        let clock = self.environment.clock.clone();
        let began = clock.monotonic();
        let done = {
            let _running = self.interrupter.running(&self.connection);
            let show = Show {
                format,
                skips_names: self.options.skips_names,
                screen: self.screen(),
                pages: self.pages,
                says_counts: self.is_interactive,
                timing: self.timing.then_some(&*clock),
                began,
            };
            show_answer(&mut self.connection, text, &show, out)?
        };
        if self.timing && !self.is_interactive {
            writeln!(out, "-- {}", seconds(clock.monotonic().saturating_sub(began)))?;
        }
        if done.warnings > 0 && self.warnings {
            self.show_warnings(out)?;
        }
        self.follow(text);
        if self.is_interactive {
            out.flush()?;
        }
        Ok(())
    }

    /// Applies the effects of a successful statement on the client's own state.
    fn follow(&mut self, text: &str) {
        let mut words = words::words(text);
        match words.next().map(|word| word.to_ascii_uppercase()).as_deref() {
            Some("USE") => {
                let schema = self.connection.query_first::<Option<String>, _>("SELECT DATABASE()");
                if let Ok(Some(schema)) = schema {
                    self.names.set_current(schema.as_deref());
                    self.options.target.schema = schema;
                }
                self.names.forget();
            }
            Some("CREATE" | "DROP" | "ALTER" | "RENAME") => self.names.forget(),
            _ => {}
        }
    }

    fn show_warnings(&mut self, out: &mut dyn Write) -> Result<(), ClientError> {
        for (level, code, message) in
            self.connection.query::<(String, u32, String), _>("SHOW WARNINGS")?
        {
            writeln!(out, "{level} ({code}): {message}")?;
        }
        Ok(())
    }

    /// The terminal's size; without limits outside a terminal.
    pub(crate) fn screen(&self) -> Screen {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return Screen::default();
        }
        match rustix::termios::tcgetwinsize(stdout) {
            Ok(size) if size.ws_col > 0 => {
                Screen { width: Some(size.ws_col), height: Some(size.ws_row) }
            }
            _ => Screen::default(),
        }
    }
}

/// How an answer is shown.
struct Show<'c> {
    format: Format,
    skips_names: bool,
    screen: Screen,
    pages: bool,
    says_counts: bool,
    timing: Option<&'c dyn firn_base::clock::Clock>,
    began: Duration,
}

/// The outcome of a successful statement.
struct Done {
    warnings: u16,
}

fn show_answer(
    connection: &mut Conn,
    text: &str,
    show: &Show<'_>,
    out: &mut dyn Write,
) -> Result<Done, ClientError> {
    let mut result = connection.query_iter(text)?;
    let mut summaries = Vec::new();
    while let Some(mut set) = result.iter() {
        let headers: Vec<Header> = set.columns().as_ref().iter().map(Header::of).collect();
        let (affected, information) = (set.affected_rows(), set.info_str().into_owned());
        let rows = match headers.is_empty() {
            true => set.next().transpose().map(|_| None)?,
            false => Some(show_rows(&mut set, &headers, show, out)?),
        };
        let took = show.timing.map(|clock| clock.monotonic().saturating_sub(show.began));
        summaries.push((rows, affected, information, took));
    }
    drop(result);
    let warnings = connection.warnings();
    if show.says_counts {
        for (rows, affected, information, took) in summaries {
            writeln!(out, "{}", summary(rows, affected, &information, warnings, took))?;
        }
    }
    Ok(Done { warnings })
}

/// Shows a result set; returns its number of rows.
fn show_rows(
    set: &mut ResultSet<'_, '_, '_, '_, Text>,
    headers: &[Header],
    show: &Show<'_>,
    out: &mut dyn Write,
) -> Result<u64, ClientError> {
    let mut count = 0;
    if let Some(mut writer) = row_writer(show.format, show.skips_names)
        && !show.pages
    {
        // As in MySQL's client, a result without rows shows nothing, except that JSON must be
        // valid.
        let mut has_begun = show.format == Format::Json;
        if has_begun {
            writer.begin(headers, out)?;
        }
        for row in set {
            let row = row?.unwrap();
            if !has_begun {
                writer.begin(headers, out)?;
                has_begun = true;
            }
            writer.row(headers, &row, out)?;
            count += 1;
        }
        if has_begun {
            writer.end(out)?;
        }
        return Ok(count);
    }
    let rows = set.map(|row| row.map(mysql::Row::unwrap)).collect::<Result<Vec<_>, _>>()?;
    if !rows.is_empty() {
        let mut text = Vec::new();
        match show.format {
            Format::Table => {
                write_table(headers, &rows, show.skips_names, show.screen, &mut text)?;
            }
            format => write_all(format, headers, &rows, show.skips_names, &mut text)?,
        }
        pager::write(&text, show.screen.filter(show.pages), out)?;
    }
    Ok(rows.len() as u64)
}

fn write_all(
    format: Format,
    headers: &[Header],
    rows: &[Vec<Value>],
    skips_names: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(mut writer) = row_writer(format, skips_names) else { return Ok(()) };
    writer.begin(headers, out)?;
    rows.iter().try_for_each(|row| writer.row(headers, row, out))?;
    writer.end(out)
}

/// The line below an answer.
fn summary(
    rows: Option<u64>,
    affected: u64,
    information: &str,
    warnings: u16,
    took: Option<Duration>,
) -> String {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let mut line = match rows {
        Some(0) => "Empty set".to_owned(),
        Some(count) => format!("{count} row{} in set", plural(count)),
        None => format!("Query OK, {affected} row{} affected", plural(affected)),
    };
    if warnings > 0 {
        line.push_str(&format!(", {warnings} warning{}", plural(u64::from(warnings))));
    }
    if let Some(took) = took {
        line.push_str(&format!(" ({})", seconds(took)));
    }
    if !information.is_empty() {
        line.push_str(&format!("\n{information}"));
    }
    line
}

/// A time with as many digits as are significant.
fn seconds(took: Duration) -> String {
    match took.as_secs_f64() {
        short if short < 0.1 => format!("{:.1} ms", short * 1e3),
        long => format!("{long:.2} s"),
    }
}
