//! `firn sql`: a prompt against any server that speaks MySQL's protocol, and a runner of scripts.
//!
//! ```text
//!   editor (a terminal) ─┐                                      ┌─► output: table, vertical, tab, csv, json
//!   standard input ──────┼─► script ────► shell ─► connection ──┤
//!   --execute ───────────┘     └─► commands (\d, \timing …) ─┘   └─► errors: one line, code, SQLSTATE
//! ```
//!
//! Of a server it knows only what the protocol tells.

#![allow(clippy::disallowed_types, reason = "files of whoever runs the client, under no simulator")]

mod commands;
mod completion;
mod connection;
mod editor;
mod highlight;
mod history;
mod names;
mod options;
mod output;
mod pager;
mod script;
mod shell;
mod splitter;
mod words;

use std::io::{self, Write};

use clap::ArgMatches;
use firn_base::Environment;

use options::Options;
use script::run_lines;
use shell::Shell;

pub use options::command;

/// Why the client ended without doing its work.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// An error of the user: a flag, a variable, an option file.
    #[error("{0}")]
    Options(String),
    /// An error of the server or of the connection to it.
    #[error("{}", firn_bench::message_of(.0))]
    Server(#[from] mysql::Error),
    /// A file, the terminal or standard output failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] rustyline::error::ReadlineError),
    /// A statement was refused, and the user has seen the error.
    #[error("stopped after an error")]
    Stopped,
}

/// Runs `firn sql`.
///
/// # Errors
/// If it cannot connect, or a statement fails.
pub fn run(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), ClientError> {
    let options = Options::read(matches)?;
    let environment = Environment::system();
    let is_interactive = options.is_interactive();
    let mut shell = Shell::open(&environment, options.clone())?;
    if is_interactive {
        return editor::run(&mut shell, out);
    }
    if options.execute.is_empty() {
        return run_lines(&mut shell, &mut io::stdin().lock(), out);
    }
    let text = options.execute.join(";\n");
    run_lines(&mut shell, &mut text.as_bytes(), out)
}
