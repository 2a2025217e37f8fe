//! Lines to statements and commands: what both the prompt and scripts go through.
//!
//! A line between two statements may be a command of the client; all others are parts of
//! statements. A command can name a file of lines, and that file another one.

#![allow(clippy::disallowed_methods, reason = "files of the user who runs the client")]

use std::io::{self, BufRead, Write};
use std::path::Path;

use super::shell::{Flow, Shell, show_failure};
use super::{ClientError, commands};

/// Depth at which files that run files end.
const DEEPEST: usize = 16;

/// Runs the lines of a text. The first statement that fails ends it, unless `--force` is
/// given.
///
/// # Errors
/// [`ClientError::Stopped`] if a statement failed; otherwise if `input` cannot be read or `out`
/// cannot be written.
pub(crate) fn run_lines(
    shell: &mut Shell,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut line = Vec::new();
    let mut failed = false;
    loop {
        line.clear();
        let flow = match input.read_until(b'\n', &mut line)? {
            0 => finish(shell, out)?,
            _ => take_line(shell, &line, out)?,
        };
        match flow {
            Flow::Continue if line.is_empty() => break,
            Flow::Continue => {}
            Flow::Failed => {
                failed = true;
                if !shell.goes_on() || line.is_empty() {
                    break;
                }
            }
            Flow::Quit => break,
        }
    }
    out.flush()?;
    match failed {
        true => Err(ClientError::Stopped),
        false => Ok(()),
    }
}

/// Runs a line: a command of the client, or a part of statements.
///
/// # Errors
/// If `out` cannot be written.
pub(crate) fn take_line(
    shell: &mut Shell,
    line: &[u8],
    out: &mut dyn Write,
) -> Result<Flow, ClientError> {
    if shell.splitter.is_between_statements()
        && let Ok(text) = std::str::from_utf8(line)
        && let Some(command) = commands::parse(text)
    {
        // Blank lines before a statement count as lines of the script.
        shell.splitter.push(line);
        shell.splitter.clear();
        return match command.script() {
            Some(path) => show_failure(run_file(shell, path, out)),
            None => commands::run(shell, &command, out),
        };
    }
    shell.splitter.push(line);
    let mut flow = Flow::Continue;
    while let Some(statement) = shell.splitter.next() {
        let ended = shell.run_statement(&statement, out)?;
        if ended != Flow::Continue {
            flow = ended;
            if !shell.goes_on() {
                shell.splitter.clear();
                break;
            }
        }
    }
    Ok(flow)
}

/// Runs the rest of the text after the last delimiter.
fn finish(shell: &mut Shell, out: &mut dyn Write) -> Result<Flow, ClientError> {
    match shell.splitter.finish() {
        Some(statement) => shell.run_statement(&statement, out),
        None => Ok(Flow::Continue),
    }
}

fn run_file(shell: &mut Shell, path: &Path, out: &mut dyn Write) -> Result<Flow, ClientError> {
    let refused = |why: String| ClientError::Options(format!("{}: {why}", path.display()));
    if shell.depth >= DEEPEST {
        return Err(refused("files run each other too deeply".to_owned()));
    }
    let file = std::fs::File::open(path).map_err(|error| refused(error.to_string()))?;
    let outer = std::mem::take(&mut shell.splitter);
    shell.depth += 1;
    let ran = run_lines(shell, &mut io::BufReader::new(file), out);
    shell.depth -= 1;
    shell.splitter = outer;
    match ran {
        Ok(()) => Ok(Flow::Continue),
        Err(ClientError::Stopped) => Ok(Flow::Failed),
        Err(error) => Err(error),
    }
}
