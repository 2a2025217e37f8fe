//! The prompt: line editing with history, completion and colours, and statements of several lines.

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

use std::borrow::Cow;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use mysql::prelude::Queryable;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::highlight::highlighted;
use super::names::Names;
use super::script::take_line;
use super::shell::{Flow, Shell};
use super::splitter::Splitter;
use super::{ClientError, commands, completion, history};

/// Statements that the history file keeps.
const HISTORY_LENGTH: usize = 10_000;

/// What the line editor calls for completion, highlighting and validation.
struct Assistant {
    names: Rc<Names>,
    delimiter: String,
    has_colours: bool,
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(completion::candidates(line, at, &self.names.get()))
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.has_colours {
            true => Cow::Owned(highlighted(line)),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.has_colours && kind != CmdKind::MoveCursor
    }
}

impl Validator for Assistant {
    /// Enter ends the input where a statement, or a command of the prompt, has ended.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(context.input(), &self.delimiter) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Helper for Assistant {}

fn is_complete(input: &str, delimiter: &str) -> bool {
    if commands::parse(input).is_some() {
        return true;
    }
    let mut splitter = Splitter::default();
    splitter.set_delimiter(delimiter);
    splitter.push(input.as_bytes());
    // The end of the line decides what a backslash or dash at its end means.
    splitter.push(b"\n");
    while splitter.next().is_some() {}
    splitter.finish().is_none()
}

/// Reads statements from the terminal and runs them, until the user leaves.
///
/// # Errors
/// If the terminal cannot be used.
pub(super) fn run(shell: &mut Shell, out: &mut dyn Write) -> Result<(), ClientError> {
    let config = Config::builder()
        .max_history_size(HISTORY_LENGTH)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .build();
    let mut editor: Editor<Assistant, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Assistant {
        names: Rc::clone(&shell.names),
        delimiter: shell.splitter.delimiter(),
        has_colours: std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
    }));
    if let Some(path) = &shell.options.history {
        // The first time there is no file.
        let _ = editor.load_history(path);
    }
    greet(shell, out)?;
    while let Some(input) = read(shell, &mut editor)? {
        let is_wanted = !input.trim().is_empty() && !history::has_secret(&input);
        if is_wanted && editor.add_history_entry(input.as_str())? {
            keep(shell.options.history.as_deref(), &mut editor);
        }
        match take_input(shell, &input, out) {
            Ok(Flow::Quit) => break,
            Ok(Flow::Continue | Flow::Failed) => {}
            Err(ClientError::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Err(error.into());
            }
            Err(error) => eprintln!("{error}"),
        }
        // The rest is a comment.
        shell.splitter.clear();
        out.flush()?;
        if let Some(assistant) = editor.helper_mut() {
            assistant.delimiter = shell.splitter.delimiter();
        }
    }
    Ok(())
}

/// Runs an input line by line: pasted text may hold several statements and commands of the prompt.
fn take_input(shell: &mut Shell, input: &str, out: &mut dyn Write) -> Result<Flow, ClientError> {
    for line in input.lines() {
        if take_line(shell, format!("{line}\n").as_bytes(), out)? == Flow::Quit {
            return Ok(Flow::Quit);
        }
    }
    Ok(Flow::Continue)
}

fn greet(shell: &mut Shell, out: &mut dyn Write) -> Result<(), ClientError> {
    let version: Option<String> = shell.connection.query_first("SELECT VERSION()")?;
    let (target, version) = (&shell.options.target, version.unwrap_or_default());
    writeln!(
        out,
        "{version} at {}, as {}. A statement ends with ; and \\? lists the other commands.",
        target.place(),
        target.user,
    )?;
    Ok(out.flush()?)
}

/// The next input; `None` at the end.
fn read(
    shell: &mut Shell,
    editor: &mut Editor<Assistant, FileHistory>,
) -> Result<Option<String>, ClientError> {
    let target = &shell.options.target;
    let schema = target.schema.as_deref().map(|schema| format!("/{schema}")).unwrap_or_default();
    let prompt = format!("{}@{}{schema}> ", target.user, target.place());
    loop {
        let initial = shell.initial.take();
        let read = match &initial {
            Some(text) => editor.readline_with_initial(&prompt, (text, "")),
            None => editor.readline(&prompt),
        };
        return match read {
            Ok(input) => Ok(Some(input)),
            // Ctrl-C discards the line.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => Ok(None),
            Err(error) => Err(error.into()),
        };
    }
}

/// Writes the history file, which only its owner can read. A failure is ignored: the client works
/// without a history.
fn keep(path: Option<&Path>, editor: &mut Editor<Assistant, FileHistory>) {
    let Some(path) = path else { return };
    if fs::symlink_metadata(path).is_err() {
        let _ = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
    }
    let _ = editor.append_history(path);
}

#[cfg(test)]
mod tests {
    use super::is_complete;

    #[test]
    fn enter_ends_what_is_complete() {
        for text in
            ["SELECT 1;", "SELECT 1\\G", "\\dt", "", "  ", "-- nothing", "SELECT ';';", "quit"]
        {
            assert!(is_complete(text, ";"), "{text}");
        }
        for text in ["SELECT 1", "SELECT ';", "/* ;", "SELECT 1; SELECT", "SELECT 1 --"] {
            assert!(!is_complete(text, ";"), "{text}");
        }
        assert!(!is_complete("SELECT 1;", "//"));
        assert!(is_complete("SELECT 1;//", "//"));
    }
}
