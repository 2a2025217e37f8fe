//! `firn admin certificates`: the authority of a cluster and the certificates of its nodes.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use firn_base::Environment;
use firn_base::network::{ClusterId, NodeId, Roles, identity::is_node_name};
use firn_secure_network::{CertificateDirectory, CertificateFacts, CertificateHost, NodeRequest};

use crate::CommandError;

const AUTHORITY_DAYS: &str = "3650";
const NODE_DAYS: &str = "365";
/// Longer than any certificate should last, and within what one can say.
const MOST_DAYS: i64 = 36_500;
const DAY_SECONDS: i64 = 24 * 3600;

/// The command with its own commands.
pub(crate) fn command() -> Command {
    let directory = Arg::new("dir")
        .long("dir")
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .required(true)
        .help("The directory of the cluster's certificates; keep it where only you can read it");
    Command::new("certificates")
        .about("Make and list the certificates with which the nodes of a cluster know each other")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("create")
                .about("Make the authority of a new cluster, and the cluster's id")
                .arg(directory.clone())
                .arg(days(AUTHORITY_DAYS))
                .arg(Arg::new("renew").long("renew").action(ArgAction::SetTrue).help(
                    "Make a new certificate for the authority that is there, with the same key",
                )),
        )
        .subcommand(
            Command::new("node")
                .about("Make a key and a certificate for a node, or new ones for one that has some")
                .arg(directory.clone())
                .args(node_arguments())
                .arg(days(NODE_DAYS)),
        )
        .subcommand(
            Command::new("show").about("List the certificates and when they expire").arg(directory),
        )
}

fn days(default: &'static str) -> Arg {
    Arg::new("days")
        .long("days")
        .value_name("DAYS")
        .value_parser(value_parser!(u32).range(1..=MOST_DAYS))
        .default_value(default)
        .help("How long the certificate is valid")
}

fn node_arguments() -> [Arg; 4] {
    let name = |text: &str| match is_node_name(text) {
        true => Ok(text.to_owned()),
        false => Err("use letters, digits, '.', '_' and '-', with a letter or digit in front"),
    };
    [
        Arg::new("name")
            .long("name")
            .value_name("NAME")
            .value_parser(name)
            .required(true)
            .help("The node's name"),
        Arg::new("address")
            .long("address")
            .value_name("IP|NAME")
            .value_parser(value_parser!(CertificateHost))
            .action(ArgAction::Append)
            .help(
                "An IP or a host name of the node, for programs that look at it; may be repeated",
            ),
        Arg::new("roles")
            .long("roles")
            .value_name("ROLES")
            .value_parser(value_parser!(Roles))
            .help("Such as log+pages [default: those that it has, or all]"),
        Arg::new("id")
            .long("id")
            .value_name("NUMBER")
            .value_parser(value_parser!(u64).range(1..))
            .help("The node's number [default: the one that it has, or the next one]"),
    ]
}

/// Runs one of the commands.
///
/// # Errors
/// If files cannot be read or written, or do not belong together.
pub(crate) fn dispatch(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let environment = Environment::system();
    let now = Duration::from_millis(environment.clock.wall_time_ms());
    let (name, matches) = matches.subcommand().expect("clap asks for a command");
    let path = matches.get_one::<PathBuf>("dir").expect("clap asks for the directory");
    let directory = CertificateDirectory::at(path);
    match name {
        "create" => {
            let days = *matches.get_one("days").expect("it has a default");
            let facts = match matches.get_flag("renew") {
                true => directory.renew(now, days)?,
                false => directory.create(new_cluster(&environment), now, days)?,
            };
            writeln!(out, "cluster {}, valid until {}", facts.cluster, facts.valid_until)?;
        }
        "node" => {
            let request = node_request(matches);
            let facts = directory.make_node(&request, now)?;
            let place = directory.of_node(&request.name);
            print_facts(&facts, now, out)?;
            writeln!(out, "copy {} to the node's machine, readable by it alone", place.display())?;
        }
        "show" => {
            for facts in directory.list()? {
                print_facts(&facts, now, out)?;
            }
        }
        _ => unreachable!("clap lets no other command through"),
    }
    Ok(())
}

/// An id that no other cluster has. Certificates are what proves it; it is no secret.
fn new_cluster(environment: &Environment) -> ClusterId {
    let word = || u128::from(environment.random.next_u64());
    let time = u128::from(environment.clock.wall_time_us());
    ClusterId(((word() << 64 | word()) ^ time).max(1))
}

fn node_request(matches: &ArgMatches) -> NodeRequest {
    NodeRequest {
        name: matches.get_one::<String>("name").expect("clap asks for the name").clone(),
        id: matches.get_one("id").copied().map(NodeId),
        roles: matches.get_one("roles").copied(),
        hosts: matches.get_many("address").into_iter().flatten().cloned().collect(),
        days: *matches.get_one("days").expect("it has a default"),
    }
}

fn print_facts(
    facts: &CertificateFacts,
    now: Duration,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let whose = match &facts.node {
        None => format!("authority of cluster {}", facts.cluster),
        Some(node) => format!("node {} ({}) {}", node.node, node.name, node.roles),
    };
    let left = facts.valid_until.as_second() - now.as_secs() as i64;
    let state = match left {
        ..0 => "EXPIRED".to_owned(),
        left => format!("{} days left", left / DAY_SECONDS),
    };
    Ok(writeln!(out, "{whose}: valid until {}, {state}", facts.valid_until)?)
}
