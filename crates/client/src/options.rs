//! The settings of `firn sql`: flags, variables and the option file of MySQL's clients.

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::ClientError;
use super::output::Format;

/// How the connection is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tls {
    Disabled,
    /// TLS if the server has it. The certificate is not checked.
    Preferred,
    /// TLS or no connection. The certificate is not checked.
    Required,
    /// TLS with a certificate for the host, signed by the file's authority or by a public one.
    Verified(Option<PathBuf>),
}

/// Where to connect, and as which user.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) socket: Option<String>,
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) asks_password: bool,
    pub(crate) schema: Option<String>,
    pub(crate) tls: Tls,
    pub(crate) local_infile: bool,
}

/// All settings of the client.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) target: Target,
    pub(crate) execute: Vec<String>,
    /// `None`: a table on a terminal, otherwise tabs.
    pub(crate) format: Option<Format>,
    pub(crate) skips_names: bool,
    pub(crate) goes_on: bool,
    pub(crate) history: Option<PathBuf>,
    pub(crate) timing: bool,
}

/// The command line of `firn sql`.
pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("sql")
        .about("Talk to a server: a prompt, or statements from --execute or standard input")
        .long_about(LONG_ABOUT)
        .disable_help_flag(true)
        .arg(Arg::new("help").long("help").action(ArgAction::Help).help("Print help"))
        .arg(Arg::new("database_name").value_name("DATABASE").help("Initial schema"))
        .arg(
            text("host", "HOST", "Host of the server [default: 127.0.0.1]")
                .short('h')
                .env("MYSQL_HOST")
                .hide_env_values(true),
        )
        .arg(
            text("port", "PORT", "Port of the server [default: 3306]")
                .short('P')
                .env("MYSQL_TCP_PORT")
                .hide_env_values(true)
                .value_parser(clap::value_parser!(u16)),
        )
        .arg(
            text("socket", "FILE", "Unix socket of the server, instead of host and port")
                .short('S')
                .env("MYSQL_UNIX_PORT")
                .hide_env_values(true),
        )
        .arg(text("user", "NAME", "User name [default: root]").short('u'))
        .arg(
            text(
                "password",
                "PASSWORD",
                "Password; without a value the client asks for it. In MYSQL_PWD \
                  or an option file, other users cannot see it",
            )
            .short('p')
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(""),
        )
        .arg(text("database", "DATABASE", "Initial schema").short('D'))
        .arg(
            text("execute", "SQL", "Run these statements and end; may be repeated")
                .short('e')
                .action(ArgAction::Append),
        )
        .arg(
            text(
                "format",
                "FORMAT",
                "Format of rows [default: table at a terminal, otherwise tab]",
            )
            .short('f')
            .value_parser(PossibleValuesParser::new(Format::NAMES)),
        )
        .arg(switch("skip-column-names", "Omit the line of column names").short('N'))
        .arg(switch("force", "Continue after a statement that fails"))
        .arg(switch("timing", "Show how long each statement took, even outside a terminal"))
        .arg(
            text(
                "tls",
                "MODE",
                "disabled, preferred, required or verified [default: preferred, \
                  disabled to this machine]",
            )
            .value_parser(["disabled", "preferred", "required", "verified"]),
        )
        .arg(text("tls-ca", "FILE", "Certificates, in PEM, that --tls verified trusts"))
        .arg(switch("local-infile", "Let the server ask for files (LOAD DATA LOCAL)"))
        .arg(text(
            "defaults-file",
            "FILE",
            "Option file; its group [client] is read [default: ~/.my.cnf]",
        ))
        .arg(text(
            "history",
            "FILE",
            "File that keeps the statements typed; empty for none \
                   [default: ~/.firn_history]",
        ))
}

const LONG_ABOUT: &str = "\
Talk to a server that speaks MySQL's protocol: Firn, MySQL or MariaDB.

At a terminal there is a prompt with history, completion (Tab) and multi-line statements; a statement ends \
with ; or with \\G, which shows its rows vertically. Ctrl-C ends the running statement. \\? lists the \
prompt's own commands.

Otherwise statements are read from standard input or taken from --execute; the first that fails ends the client \
with status 1.";

impl Options {
    /// Reads the settings. Flags outweigh variables, and variables the option file.
    ///
    /// # Errors
    /// If a named option file cannot be read, or flags contradict each other.
    pub(crate) fn read(matches: &ArgMatches) -> Result<Options, ClientError> {
        let named = matches.get_one::<String>("defaults-file").map(PathBuf::from);
        let file = read_option_file(named.as_deref())?;
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let or_file = |name: &str| text(name).or_else(|| file.get(name));
        let socket = or_file("socket").filter(|socket| !socket.is_empty());
        let host = or_file("host").unwrap_or_else(|| "127.0.0.1".to_owned());
        let port = match matches.get_one::<u16>("port") {
            Some(port) => *port,
            None => match file.get("port") {
                Some(port) => port.parse().map_err(|_| {
                    ClientError::Options(format!("{}: port: '{port}' is not a port", file.path))
                })?,
                None => 3306,
            },
        };
        // A host on the command line outweighs the option file's socket.
        let is_typed =
            |name: &str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
        let socket =
            socket.filter(|_| is_typed("socket") || !is_typed("host") && !is_typed("port"));
        let given = text("password");
        let variable = std::env::var("MYSQL_PWD").ok();
        let asks_password = given.as_deref() == Some("");
        let password =
            given.filter(|one| !one.is_empty()).or(variable).or_else(|| file.get("password"));
        let target = Target {
            tls: tls(text("tls").as_deref(), text("tls-ca"), socket.is_some() || is_local(&host))?,
            host,
            port,
            socket,
            user: or_file("user").unwrap_or_else(|| "root".to_owned()),
            password: password.filter(|_| !asks_password),
            asks_password,
            schema: text("database_name").or_else(|| or_file("database")),
            local_infile: matches.get_flag("local-infile"),
        };
        let execute = matches.get_many::<String>("execute");
        Ok(Options {
            target,
            execute: execute.map(|all| all.cloned().collect()).unwrap_or_default(),
            format: text("format").and_then(|name| Format::named(&name)),
            skips_names: matches.get_flag("skip-column-names"),
            goes_on: matches.get_flag("force"),
            history: history(text("history")),
            timing: matches.get_flag("timing"),
        })
    }

    /// Whether the client runs at a terminal.
    pub(crate) fn is_interactive(&self) -> bool {
        self.execute.is_empty() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }
}

fn is_local(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1")
}

fn tls(mode: Option<&str>, authority: Option<String>, is_local: bool) -> Result<Tls, ClientError> {
    let tls = match mode {
        Some("disabled") => Tls::Disabled,
        Some("required") => Tls::Required,
        Some("verified") => return Ok(Tls::Verified(authority.map(PathBuf::from))),
        None if authority.is_some() => return Ok(Tls::Verified(authority.map(PathBuf::from))),
        None if is_local => Tls::Disabled,
        _ => Tls::Preferred,
    };
    match authority {
        Some(_) => Err(ClientError::Options("--tls-ca goes with --tls verified only".to_owned())),
        None => Ok(tls),
    }
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

fn history(given: Option<String>) -> Option<PathBuf> {
    match given {
        Some(path) => (!path.is_empty()).then(|| PathBuf::from(path)),
        None => home().map(|home| home.join(".firn_history")),
    }
}

/// The values under `[client]` in an option file.
#[derive(Debug, Default)]
struct OptionFile {
    path: String,
    values: Vec<(String, String)>,
}

impl OptionFile {
    /// The last value of a name.
    fn get(&self, name: &str) -> Option<String> {
        let found = self.values.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }

    fn parse(path: String, text: &str) -> OptionFile {
        let mut values = Vec::new();
        let mut is_ours = false;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';', '!']) {
                continue;
            }
            if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                is_ours = matches!(group.trim(), "client" | "firn-sql");
                continue;
            }
            if is_ours {
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                values.push((name.trim().replace('_', "-"), unquoted(value.trim()).to_owned()));
            }
        }
        OptionFile { path, values }
    }
}

/// A value without surrounding quotes.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

/// Reads the named file, which must exist, or `~/.my.cnf`, if it exists.
fn read_option_file(named: Option<&Path>) -> Result<OptionFile, ClientError> {
    let path = named.map(Path::to_owned).or_else(|| home().map(|home| home.join(".my.cnf")));
    let Some(path) = path else { return Ok(OptionFile::default()) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(OptionFile::parse(path.display().to_string(), &text)),
        Err(_) if named.is_none() => Ok(OptionFile::default()),
        Err(error) => Err(ClientError::Options(format!("{}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_file_gives_what_its_group_says() {
        let text = "[mysqld]\nport=1\n[client]\n# no\nuser = ann\npassword=\"a # b\"\nport=3307\n[x]\nuser=y\n";
        let file = OptionFile::parse("my.cnf".to_owned(), text);
        assert_eq!(file.get("user").as_deref(), Some("ann"));
        assert_eq!(file.get("password").as_deref(), Some("a # b"));
        assert_eq!(file.get("port").as_deref(), Some("3307"));
        assert_eq!(file.get("host"), None);
    }

    #[test]
    fn certificates_go_with_verification_only() {
        assert_eq!(tls(None, None, true).unwrap(), Tls::Disabled);
        assert_eq!(tls(None, None, false).unwrap(), Tls::Preferred);
        let ca = Some("ca.pem".to_owned());
        assert_eq!(tls(None, ca.clone(), true).unwrap(), Tls::Verified(Some("ca.pem".into())));
        assert!(tls(Some("required"), ca, true).is_err());
    }
}
