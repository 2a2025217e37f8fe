//! The prompt's own commands: `\d`, `\timing`, `\q` and the like, and the few words of MySQL's
//! client that scripts use.

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

use std::io::{self, Write};
use std::path::Path;

use mysql::Value;
use mysql::prelude::Queryable;

use super::ClientError;
use super::output::Format;
use super::shell::{Expanded, Flow, Shell, show_failure};

/// A command and its argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    name: String,
    argument: String,
}

/// Name, argument, and one line of help.
const HELP: [(&str, &str, &str); 22] = [
    ("\\?", "", "this list"),
    ("\\q", "", "leave (also Ctrl-D, quit, exit)"),
    ("\\c", "[SCHEMA]", "change the current schema; connect again"),
    ("\\conninfo", "", "server, user and schema of the connection"),
    ("\\d", "[TABLE]", "columns, indexes and foreign keys of a table; all tables and views"),
    ("\\dt", "[PATTERN]", "tables, with rows and size"),
    ("\\dv", "[PATTERN]", "views"),
    ("\\di", "[PATTERN]", "indexes"),
    ("\\du", "[PATTERN]", "accounts"),
    ("\\l", "[PATTERN]", "schemas"),
    ("\\df", "[PATTERN]", "system variables"),
    ("\\ps", "", "running statements"),
    ("\\e", "[FILE]", "edit the last statement, or a file, in $EDITOR"),
    ("\\i", "FILE", "run the statements of a file (also source FILE)"),
    ("\\o", "[FORMAT]", "format of rows: table, vertical, tab, csv, json"),
    ("\\x", "[on|off]", "show rows vertically"),
    ("\\timing", "[on|off]", "show how long each statement took"),
    ("\\warnings", "[on|off]", "show the warnings of each statement"),
    ("\\pager", "[on|off]", "show long answers in $PAGER"),
    ("\\g", "", "at a statement's end: run it"),
    ("\\G", "", "at a statement's end: run it, rows vertically"),
    ("delimiter", "SIGN", "end statements with this instead of ;"),
];

/// Parses a line as a command; `None` if it is none.
pub(crate) fn parse(line: &str) -> Option<Command> {
    let line = line.trim();
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    let lower = name.to_ascii_lowercase();
    let plain = argument.trim_end_matches(';').trim_end();
    let command = |name: &str, argument: &str| {
        Some(Command { name: name.to_owned(), argument: argument.to_owned() })
    };
    match lower.trim_end_matches(';') {
        "delimiter" => command("delimiter", argument),
        "source" | "\\." => command("\\i", plain),
        "quit" | "exit" if plain.is_empty() => command("\\q", ""),
        "help" | "?" if plain.is_empty() => command("\\?", ""),
        _ if name.starts_with("\\g") || name.starts_with("\\G") => None,
        _ if name.starts_with('\\') => command(name.trim_end_matches(';'), plain),
        _ => None,
    }
}

impl Command {
    /// The file whose statements the command runs, if that is what it does.
    pub(crate) fn script(&self) -> Option<&Path> {
        (self.name == "\\i").then(|| Path::new(&self.argument))
    }
}

/// Runs a command that is no [`Command::script`].
///
/// # Errors
/// If `out` cannot be written. Other failures are reported to the user.
pub(crate) fn run(
    shell: &mut Shell,
    command: &Command,
    out: &mut dyn Write,
) -> Result<Flow, ClientError> {
    show_failure(run_command(shell, command, out))
}

fn run_command(
    shell: &mut Shell,
    command: &Command,
    out: &mut dyn Write,
) -> Result<Flow, ClientError> {
    let argument = command.argument.as_str();
    match command.name.as_str() {
        "\\q" => return Ok(Flow::Quit),
        "\\?" | "\\h" => help(out)?,
        "\\c" | "\\u" => change_schema(shell, argument, out)?,
        "\\conninfo" | "\\s" => connection_information(shell, out)?,
        "\\d" if !argument.is_empty() => describe(shell, argument, out)?,
        "\\d" | "\\dt" | "\\dv" | "\\di" | "\\du" | "\\l" | "\\df" | "\\ps" => {
            list(shell, &command.name, argument, out)?;
        }
        "\\e" => edit(shell, argument)?,
        "\\o" => {
            let unknown =
                || ClientError::Options(format!("\\o takes one of {}", Format::NAMES.join(", ")));
            shell.format = Format::named(if argument.is_empty() { "table" } else { argument })
                .ok_or_else(unknown)?;
        }
        "\\x" => {
            let is_on = switched(shell.expanded == Expanded::On, argument, "Rows vertically", out)?;
            shell.expanded = if is_on { Expanded::On } else { Expanded::Off };
        }
        "\\timing" => shell.timing = switched(shell.timing, argument, "Timing", out)?,
        "\\warnings" | "\\w" => {
            shell.warnings = switched(shell.warnings, argument, "Warnings", out)?;
        }
        "\\pager" => shell.pages = switched(shell.pages, argument, "Pager", out)?,
        "delimiter" => shell.splitter.set_delimiter(argument),
        other => {
            return Err(ClientError::Options(format!(
                "There is no command {other}; \\? lists them"
            )));
        }
    }
    Ok(Flow::Continue)
}

fn switched(is_on: bool, argument: &str, what: &str, out: &mut dyn Write) -> io::Result<bool> {
    let is_on = match argument.to_ascii_lowercase().as_str() {
        "on" => true,
        "off" => false,
        _ => !is_on,
    };
    writeln!(out, "{what}: {}", if is_on { "on" } else { "off" })?;
    Ok(is_on)
}

fn help(out: &mut dyn Write) -> io::Result<()> {
    for (name, argument, text) in HELP {
        writeln!(out, "  {:<22}{text}", format!("{name} {argument}"))?;
    }
    writeln!(
        out,
        "A PATTERN is one of LIKE: \\dt sale%. Ctrl-C ends the statement that runs, Tab completes, Ctrl-R \
         searches the history."
    )
}

fn change_schema(shell: &mut Shell, schema: &str, out: &mut dyn Write) -> Result<(), ClientError> {
    if schema.is_empty() {
        shell.reconnect()?;
        return Ok(writeln!(out, "Connected again")?);
    }
    shell.connection.select_db(schema)?;
    shell.options.target.schema = Some(schema.to_owned());
    shell.names.set_current(Some(schema));
    shell.names.forget();
    Ok(writeln!(out, "The current schema is {schema}")?)
}

fn connection_information(shell: &mut Shell, out: &mut dyn Write) -> Result<(), ClientError> {
    let row: Option<(String, Option<String>, String, String)> = shell
        .connection
        .query_first("SELECT CURRENT_USER(), DATABASE(), VERSION(), @@version_comment")?;
    let cipher: Option<(String, String)> =
        shell.connection.query_first("SHOW SESSION STATUS LIKE 'Ssl_cipher'")?;
    let Some((account, schema, version, comment)) = row else { return Ok(()) };
    let place = shell.options.target.place();
    let cipher = cipher.map(|(_, cipher)| cipher).filter(|cipher| !cipher.is_empty());
    writeln!(out, "Account     {account}, connection {}", shell.connection.connection_id())?;
    writeln!(out, "Server      {place}, {version}, {comment}")?;
    writeln!(out, "Schema      {}", schema.as_deref().unwrap_or("none"))?;
    Ok(writeln!(out, "Encryption  {}", cipher.as_deref().unwrap_or("none"))?)
}

/// A text as a string literal of SQL.
fn literal(text: &str) -> String {
    Value::from(text).as_sql(false)
}

fn list(
    shell: &mut Shell,
    name: &str,
    pattern: &str,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let pattern = literal(if pattern.is_empty() { "%" } else { pattern });
    let text = match name {
        "\\l" => format!(
            "SELECT SCHEMA_NAME AS `Schema`, DEFAULT_CHARACTER_SET_NAME AS `Character set`, \
             DEFAULT_COLLATION_NAME AS `Collation` FROM information_schema.SCHEMATA \
             WHERE SCHEMA_NAME LIKE {pattern} ORDER BY 1"
        ),
        "\\du" => format!(
            "SELECT User, Host, plugin AS Plugin, account_locked AS Locked FROM mysql.user \
             WHERE User LIKE {pattern} ORDER BY 1, 2"
        ),
        "\\df" => format!("SHOW VARIABLES LIKE {pattern}"),
        "\\ps" => "SHOW FULL PROCESSLIST".to_owned(),
        "\\di" => format!(
            "SELECT TABLE_NAME AS `Table`, INDEX_NAME AS `Index`, \
             GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX) AS `Columns`, \
             IF(MAX(NON_UNIQUE), '', 'yes') AS `Unique` FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE {pattern} GROUP BY TABLE_NAME, INDEX_NAME ORDER BY 1, 2"
        ),
        _ => {
            let kind = match name {
                "\\dt" => " AND TABLE_TYPE = 'BASE TABLE'",
                "\\dv" => " AND TABLE_TYPE = 'VIEW'",
                _ => "",
            };
            format!(
                "SELECT TABLE_NAME AS `Name`, LOWER(TABLE_TYPE) AS `Kind`, TABLE_ROWS AS `Rows (about)`, \
                 DATA_LENGTH + INDEX_LENGTH AS `Bytes (about)`, TABLE_COMMENT AS `Comment` \
                 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
                 AND TABLE_NAME LIKE {pattern}{kind} ORDER BY 1"
            )
        }
    };
    shell.run_text(&text, Format::Table, out)
}

fn describe(shell: &mut Shell, table: &str, out: &mut dyn Write) -> Result<(), ClientError> {
    let table = table.replace('`', "");
    let (schema, name) = match table.split_once('.') {
        Some((schema, name)) => (literal(schema), literal(name)),
        None => ("DATABASE()".to_owned(), literal(&table)),
    };
    let is_it = format!("TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}");
    let columns = format!(
        "SELECT COLUMN_NAME AS `Column`, COLUMN_TYPE AS `Type`, IF(IS_NULLABLE = 'YES', '', 'not null') AS `Null`, \
         COALESCE(COLUMN_DEFAULT, '') AS `Default`, EXTRA AS `Extra`, COLUMN_COMMENT AS `Comment` \
         FROM information_schema.COLUMNS WHERE {is_it} ORDER BY ORDINAL_POSITION"
    );
    let count = format!("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE {is_it}");
    if shell.connection.query_first::<u64, _>(count)? == Some(0) {
        return Err(ClientError::Options(format!("There is no table {table} here")));
    }
    shell.run_text(&columns, Format::Table, out)?;
    let indexes = format!(
        "SELECT INDEX_NAME AS `Index`, GROUP_CONCAT(COALESCE(COLUMN_NAME, EXPRESSION) ORDER BY SEQ_IN_INDEX) AS `Columns`, \
         IF(MAX(NON_UNIQUE), '', 'yes') AS `Unique` FROM information_schema.STATISTICS WHERE {is_it} \
         GROUP BY INDEX_NAME ORDER BY INDEX_NAME <> 'PRIMARY', 1"
    );
    let keys = format!(
        "SELECT CONSTRAINT_NAME AS `Foreign key`, GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION) AS `Columns`, \
         MAX(REFERENCED_TABLE_NAME) AS `References`, \
         GROUP_CONCAT(REFERENCED_COLUMN_NAME ORDER BY ORDINAL_POSITION) AS `Columns there` \
         FROM information_schema.KEY_COLUMN_USAGE WHERE {is_it} AND REFERENCED_TABLE_NAME IS NOT NULL \
         GROUP BY CONSTRAINT_NAME ORDER BY 1"
    );
    for text in [indexes, keys] {
        if shell.connection.query_first::<mysql::Row, _>(&text)?.is_some() {
            shell.run_text(&text, Format::Table, out)?;
        }
    }
    Ok(())
}

/// Opens the last statement, or a file, in the editor and puts the result at the prompt.
fn edit(shell: &mut Shell, file: &str) -> Result<(), ClientError> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let kept = tempfile::Builder::new().prefix("firn-").suffix(".sql").tempfile()?;
    let path = match file {
        "" => {
            std::fs::write(kept.path(), &shell.last)?;
            kept.path()
        }
        file => Path::new(file),
    };
    let mut words = editor.split_whitespace();
    let mut process = std::process::Command::new(words.next().unwrap_or("vi"));
    let status = process.args(words).arg(path).status();
    let status = status.map_err(|error| ClientError::Options(format!("{editor}: {error}")))?;
    if status.success() {
        shell.initial = Some(std::fs::read_to_string(path)?.trim_end().to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<(String, String)> {
        parse(line).map(|command| (command.name, command.argument))
    }

    #[test]
    fn lines_are_commands_or_statements() {
        let some = |name: &str, argument: &str| Some((name.to_owned(), argument.to_owned()));
        assert_eq!(parsed("\\d shop.item;\n"), some("\\d", "shop.item"));
        assert_eq!(parsed("DELIMITER ;;"), some("delimiter", ";;"));
        assert_eq!(parsed("source a b.sql"), some("\\i", "a b.sql"));
        assert_eq!(parsed("quit;"), some("\\q", ""));
        assert_eq!(parsed("\\G"), None);
        assert_eq!(parsed("SELECT 1;"), None);
        assert_eq!(parsed("help me"), None);
    }
}
