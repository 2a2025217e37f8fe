//! The command line: the commands, and a flag for each setting.

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::configuration::setting::SETTINGS;
use crate::configuration::{CONFIGURATION_FLAG, Configuration, sources};
use crate::logging::Verbosity;
use crate::{CommandError, admin, backup, certificates, cluster, demo, logging, start};

/// The complete command line of this build.
pub(crate) fn command() -> Command {
    Command::new("firn")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Firn, a MySQL-compatible cloud-native database")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(with_settings(
            Command::new("start")
                .about("Run a node over a data directory until SIGINT or SIGTERM")
                .arg(
                    Arg::new(cluster::ENDS_WITH_INPUT_FLAG)
                        .long(cluster::ENDS_WITH_INPUT_FLAG)
                        .action(ArgAction::SetTrue)
                        .hide(true)
                        .help("End when the standard input ends"),
                )
                .arg(
                    Arg::new(backup::CLONE_FLAG).long(backup::CLONE_FLAG).value_name("URL").help(
                        "Make the data directory first, as a clone of this archive's database",
                    ),
                )
                .args(backup::moment_flags()),
        ))
        .subcommand(cluster::command())
        .subcommand(firn_client::command())
        .subcommand(firn_bench_engine::command())
        .subcommand(demo::command())
        .subcommand(
            Command::new("admin")
                .about("Inspect a node and its settings")
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(backup::command())
                .subcommand(backup::restore_command())
                .subcommand(certificates::command())
                .subcommand(with_settings(
                    Command::new("configuration")
                        .about("Print each setting, its value and where the value comes from"),
                ))
                .subcommand(with_settings(Command::new("check").about(
                    "Check the log, pages, trees and indexes of a data directory that is not in use, or the files of a cluster's node",
                ))),
        )
}

/// Runs the command of a command line.
///
/// # Errors
/// The error that kept the command from doing its work.
pub(crate) fn dispatch(matches: &ArgMatches) -> Result<(), CommandError> {
    let out = &mut std::io::stdout().lock();
    match matches.subcommand() {
        Some(("start", matches)) => {
            let (configuration, verbosity) = started(matches)?;
            match cluster::is_node(&configuration) {
                false => {
                    backup::clone_if_asked(matches, &configuration, out)?;
                    start::run(&configuration, verbosity, out)
                }
                true => {
                    let ends_with_input = matches.get_flag(cluster::ENDS_WITH_INPUT_FLAG);
                    cluster::run_node(&configuration, verbosity, ends_with_input, out)
                }
            }
        }
        Some(("admin", matches)) => match matches.subcommand() {
            Some(("configuration", matches)) => {
                admin::print_configuration(&configuration(matches)?, out)
            }
            Some(("backup", matches)) => backup::dispatch(matches, out),
            Some(("restore", matches)) => backup::restore(matches, out),
            Some(("certificates", matches)) => certificates::dispatch(matches, out),
            Some(("check", matches)) => admin::check(&started(matches)?.0, out),
            _ => unreachable!("clap lets no other administrative command through"),
        },
        Some(("cluster", matches)) => cluster::dispatch(matches, out),
        Some(("sql", matches)) => Ok(firn_client::run(matches, out)?),
        Some(("bench", matches)) => Ok(firn_bench_engine::dispatch(matches, out)?),
        Some(("demo", matches)) => demo::run_demo(matches, out),
        _ => unreachable!("clap lets no other command through"),
    }
}

/// The settings of a command that opens a data directory. Starts logging, and warns of variables
/// that look like settings and are none.
fn started(matches: &ArgMatches) -> Result<(Configuration, Verbosity), CommandError> {
    let configuration = configuration(matches)?;
    let verbosity = logging::start(configuration.log_level.value);
    for variable in &configuration.unknown_variables {
        tracing::warn!(variable, "names no setting and is ignored");
    }
    Ok((configuration, verbosity))
}

/// Adds the configuration file's flag and one flag for each setting to `command`.
fn with_settings(command: Command) -> Command {
    let file = Arg::new(CONFIGURATION_FLAG)
        .long(CONFIGURATION_FLAG)
        .value_name("FILE")
        .help("Settings file (TOML), weaker than FIRN_* variables and flags [env: FIRN_CONFIG]");
    let settings = SETTINGS.iter().map(|setting| {
        Arg::new(setting.name).long(setting.flag()).value_name(setting.value_name).help(
            match setting.default {
                "" => setting.help.to_owned(),
                default => format!("{} [default: {default}]", setting.help),
            },
        )
    });
    command.arg(file).args(settings).after_help(
        "Every setting has one name: `buffer_pool = \"2G\"` in the file, FIRN_BUFFER_POOL=2G in \
             the environment, --buffer-pool 2G here.",
    )
}

/// Merges the settings of `matches`, the environment and the file.
fn configuration(matches: &ArgMatches) -> Result<Configuration, CommandError> {
    let flags = SETTINGS.iter().filter_map(|setting| {
        matches.get_one::<String>(setting.name).map(|value| (setting.name, value.clone()))
    });
    let file = matches.get_one::<String>(CONFIGURATION_FLAG).map(String::as_str);
    let sources = sources::gather(file, flags, std::env::vars_os())?;
    Ok(Configuration::merge(&sources)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
