//! The flags of `firn bench WORKLOAD …`, `… compare`, `… interruptions` and `… plot`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::client::{Mode, Target};
use crate::error::BenchError;
use crate::flags::{count, flag, number};
use crate::interruptions::Interruptions;
use crate::load::{LoadBy, LoadOptions};
use crate::output::Files;
use crate::run::RunOptions;
use crate::suites;
use crate::workload::Suite;

/// An action on a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Prepare,
    Run,
    Check,
    Cleanup,
    Export,
}

const ACTIONS: [(&str, Action, &str); 4] = [
    ("prepare", Action::Prepare, "Drop the tables, make them again and load them"),
    ("run", Action::Run, "Run transactions and print what was measured"),
    ("check", Action::Check, "Look whether the data is consistent"),
    ("cleanup", Action::Cleanup, "Drop the tables"),
];

fn seconds(name: &'static str, default: &'static str, help: &'static str) -> Arg {
    flag(name, "SECONDS", help).value_parser(parse_seconds).default_value(default)
}

/// The value of a flag that [`seconds`] made.
fn duration(matches: &ArgMatches, name: &str) -> Duration {
    *matches.get_one::<Duration>(name).expect("the flag has a default")
}

fn url() -> Arg {
    flag("url", "URL", "Server: mysql://user:password@host:port/schema")
        .default_value("mysql://root@127.0.0.1:3306")
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e7).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("is not a number of seconds from 0 to ten million".to_owned()),
    }
}

/// Flags that every workload has.
fn common(command: Command) -> Command {
    command
        .arg(number("connections", "8", "Connections, each with a thread"))
        .arg(
            flag("mode", "MODE", "How statements are sent")
                .value_parser(["prepared", "text"])
                .default_value("prepared"),
        )
        .arg(flag("isolation", "LEVEL", "Isolation level [default: the server's]").value_parser([
            "read-committed",
            "repeatable-read",
            "serializable",
        ]))
        .arg(
            flag("load", "HOW", "How rows are loaded")
                .value_parser(["insert", "infile"])
                .default_value("insert"),
        )
        .arg(seconds("seconds", "60", "How long is measured"))
        .arg(seconds("warm-up", "5", "How long is run before that"))
        .arg(
            flag("seed", "N", "Fixes data and input")
                .value_parser(value_parser!(u64))
                .default_value("1"),
        )
        .arg(path("json", "Also write what was measured to this file"))
        .arg(path("html", "Also write a page with plots to this file"))
}

fn path(name: &'static str, help: &'static str) -> Arg {
    flag(name, "FILE", help).value_parser(value_parser!(PathBuf))
}

/// A command for each workload, `compare`, `interruptions` and `plot`.
#[must_use]
pub fn commands() -> Vec<Command> {
    let mut commands: Vec<Command> = suites::all().iter().map(workload).collect();
    commands.push(compare());
    commands.push(interruptions());
    commands.push(plot());
    commands
}

fn interruptions() -> Command {
    Command::new("interruptions")
        .about("Measure what clients notice while a command is run, such as a switch of the writer")
        .arg(number("connections", "64", "Clients, each with a row that it changes"))
        .arg(number("rounds", "10", "How often the command is run"))
        .arg(seconds("settle", "2", "How long the usual rate is measured before the command"))
        .arg(seconds("watch", "5", "How long clients are watched from the command on"))
        .arg(url())
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .help("What happens to the server, behind --")
                .required(true)
                .last(true)
                .num_args(1..),
        )
}

/// Reads `interruptions … -- COMMAND`.
pub(crate) fn read_interruptions(matches: &ArgMatches) -> Result<Interruptions, BenchError> {
    let url = text(matches, "url").expect("the address has a default");
    Ok(Interruptions {
        target: Target::parse(url, "interruptions")?,
        connections: count(matches, "connections") as usize,
        rounds: count(matches, "rounds"),
        settle: duration(matches, "settle"),
        watch: duration(matches, "watch"),
        command: matches.get_many::<String>("command").into_iter().flatten().cloned().collect(),
    })
}

fn plot() -> Command {
    Command::new("plot").about("Draw result files (docs/figures) as SVG files beside them").arg(
        Arg::new("files")
            .value_name("FILE")
            .required(true)
            .num_args(1..)
            .value_parser(value_parser!(PathBuf)),
    )
}

fn workload(kind: &suites::Kind) -> Command {
    let command = Command::new(kind.name).about(kind.about).subcommand_required(true);
    let command = (kind.flags)(common(command)).arg(url());
    let command = ACTIONS.iter().fold(command, |command, (name, _, about)| {
        command.subcommand(Command::new(*name).about(*about))
    });
    if !kind.exports {
        return command;
    }
    command.subcommand(
        Command::new("export")
            .about("Write data and statements to files instead of a server")
            .arg(Arg::new("directory").required(true).value_parser(value_parser!(PathBuf))),
    )
}

fn compare() -> Command {
    let command = Command::new("compare")
        .about("Run a workload at two servers in turns, and print ratios")
        .subcommand_required(true)
        .arg(flag("a", "URL", "The first server: mysql://user:password@host:port/schema"))
        .arg(flag("b", "URL", "The second server"))
        .arg(number("rounds", "5", "Rounds, of which medians are reported"))
        .arg(
            flag("prepared-before", "", "Run over tables that are there, and leave them")
                .action(ArgAction::SetTrue)
                .num_args(0),
        );
    suites::all().iter().fold(command, |command, kind| {
        command.subcommand((kind.flags)(common(Command::new(kind.name).about(kind.about))))
    })
}

/// A request for one workload.
pub(crate) struct Request {
    pub(crate) action: Action,
    pub(crate) suite: Box<dyn Suite>,
    pub(crate) target: Target,
    pub(crate) common: Common,
    /// Directory of [`Action::Export`].
    pub(crate) directory: Option<PathBuf>,
}

/// The flags that all workloads have.
pub(crate) struct Common {
    pub(crate) load: LoadOptions,
    pub(crate) run: RunOptions,
    pub(crate) files: Files,
}

/// A request to compare two servers.
pub(crate) struct Comparison {
    pub(crate) suite: Box<dyn Suite>,
    pub(crate) targets: [Target; 2],
    pub(crate) rounds: u64,
    pub(crate) is_prepared: bool,
    pub(crate) common: Common,
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

fn target(matches: &ArgMatches, url: &str, suite: &dyn Suite) -> Result<Target, BenchError> {
    let mode = if text(matches, "mode") == Some("text") { Mode::Text } else { Mode::Prepared };
    let target = Target::parse(url, suite.name())?.with_mode(mode);
    Ok(match text(matches, "isolation") {
        Some(level) => {
            let level = level.replace('-', " ").to_uppercase();
            target.with_setup(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))
        }
        None => target,
    })
}

fn read_common(matches: &ArgMatches) -> Common {
    let connections = count(matches, "connections") as usize;
    let file = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let by = if text(matches, "load") == Some("infile") { LoadBy::Infile } else { LoadBy::Insert };
    Common {
        load: LoadOptions { connections, by, reports_progress: true },
        run: RunOptions {
            connections,
            duration: duration(matches, "seconds"),
            warm_up: duration(matches, "warm-up"),
            seed: count(matches, "seed"),
        },
        files: Files { json: file("json"), html: file("html") },
    }
}

/// Reads `WORKLOAD ACTION …`.
pub(crate) fn request(name: &str, matches: &ArgMatches) -> Result<Request, BenchError> {
    let (action, matches) = matches.subcommand().expect("clap asks for an action");
    let suite = suites::read(name, matches)?;
    let url = text(matches, "url").expect("the address has a default");
    let found = ACTIONS.iter().find(|(known, ..)| *known == action);
    Ok(Request {
        action: found.map_or(Action::Export, |(_, action, _)| *action),
        target: target(matches, url, &*suite)?,
        suite,
        common: read_common(matches),
        directory: match action {
            "export" => matches.get_one::<PathBuf>("directory").cloned(),
            _ => None,
        },
    })
}

/// Reads `compare --a URL --b URL WORKLOAD …`.
pub(crate) fn comparison(matches: &ArgMatches) -> Result<Comparison, BenchError> {
    let (name, matches) = matches.subcommand().expect("clap asks for a workload");
    let suite = suites::read(name, matches)?;
    let side = |name: &str| match text(matches, name) {
        Some(url) => target(matches, url, &*suite),
        None => Err(BenchError::Usage(format!("--{name} URL is missing"))),
    };
    Ok(Comparison {
        targets: [side("a")?, side("b")?],
        suite,
        rounds: count(matches, "rounds"),
        is_prepared: matches.get_flag("prepared-before"),
        common: read_common(matches),
    })
}

#[cfg(test)]
mod tests;
