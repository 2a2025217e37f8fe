//! `firn cluster`: a whole cluster on this machine, and the state of any cluster. `firn start` with
//! `cluster_layout` runs one node of it.

mod change;
mod local;
mod node;
mod status;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use firn_base::Environment;
use firn_base::network::NodeIdentity;
use firn_cluster::{Layout, Surveyor};
use firn_secure_network::{Credentials, SecureNetwork};

use crate::CommandError;
use crate::configuration::Configuration;

pub(crate) use node::run_node;

/// The file with the nodes, in the directory of a cluster of this machine.
const LAYOUT_FILE: &str = "cluster.toml";
const DEFAULT_NODES: &str = "3";
/// The flag of `firn start` that has it end when its standard input does.
pub(crate) const ENDS_WITH_INPUT_FLAG: &str = "ends-with-input";

/// The command with its own commands.
pub(crate) fn command() -> Command {
    Command::new("cluster")
        .about("Run a whole cluster on this machine, or show the state of a cluster")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("start")
                .about("Run a cluster of several processes on this machine until Ctrl-C")
                .arg(directory().required(true))
                .arg(
                    Arg::new("nodes")
                        .long("nodes")
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u64).range(1..=7))
                        .default_value(DEFAULT_NODES)
                        .help("How many nodes a new cluster has; one that is there keeps its own"),
                )
                .arg(
                    Arg::new("separate")
                        .long("separate")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("nodes")
                        .help(
                            "A new cluster has a process for each part: two database nodes and a logger, \
                             which keep the log, and two page nodes",
                        ),
                )
                .arg(
                    Arg::new("replicas")
                        .long("replicas")
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u64).range(0..=32))
                        .default_value("0")
                        .help("How many nodes of a new cluster follow the log and answer reads"),
                )
                .arg(
                    Arg::new("buffer_pool")
                        .long("buffer-pool")
                        .value_name("SIZE")
                        .default_value("256M")
                        .help("Memory of each node for cached pages"),
                ),
        )
        .subcommand(
            Command::new("copies")
                .about("Set on how many page nodes the pages are kept")
                .arg(
                    Arg::new("number")
                        .value_name("NUMBER")
                        .required(true)
                        .value_parser(value_parser!(u8).range(1..=7))
                        .help("How many; as many as there are page nodes, if there are fewer"),
                )
                .args(which_cluster()),
        )
        .subcommand(
            Command::new("drain")
                .about("Give what a node has to other nodes, and give it nothing new")
                .arg(node())
                .args(which_cluster())
                .arg(
                    Arg::new("undo")
                        .long("undo")
                        .action(ArgAction::SetTrue)
                        .help("Let the node take again"),
                ),
        )
        .subcommand(
            Command::new("remove")
                .about("Drain a node, or wait until what a dead one had is elsewhere, and forget it")
                .arg(node())
                .args(which_cluster()),
        )
        .subcommand(
            Command::new("status")
                .about("Show the nodes of a cluster: who is up, who leads, how far each one is")
                .args(which_cluster())
                .arg(
                    Arg::new("watch")
                        .long("watch")
                        .action(ArgAction::SetTrue)
                        .help("Show the state again every second until Ctrl-C"),
                ),
        )
}

fn node() -> Arg {
    Arg::new("node").value_name("NODE").required(true).help("The node's name")
}

/// The arguments that name a running cluster.
fn which_cluster() -> [Arg; 3] {
    let path = |name| {
        let arg = Arg::new(name).long(name);
        arg.value_parser(value_parser!(PathBuf))
    };
    [
        directory(),
        path("layout")
            .value_name("FILE")
            .conflicts_with("dir")
            .help("The file with the nodes that the cluster began with"),
        path("certificates")
            .value_name("DIR")
            .help("A node's certificates; without them, only a cluster of this machine answers"),
    ]
}

fn directory() -> Arg {
    Arg::new("dir")
        .long("dir")
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .help("The directory of a cluster of this machine")
}

/// Runs `firn cluster …`.
///
/// # Errors
/// The error that kept the command from doing its work.
pub(crate) fn dispatch(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    match matches.subcommand() {
        Some(("start", matches)) => local::run(matches, out),
        Some(("status", matches)) => status::run(matches, out),
        Some(("copies", matches)) => change::set_copies(matches, out),
        Some(("drain", matches)) => change::drain(matches, out),
        Some(("remove", matches)) => change::remove(matches, out),
        _ => unreachable!("clap lets no other command of a cluster through"),
    }
}

/// Whether the settings are those of a node of a cluster: they say so, or the directory does.
pub(crate) fn is_node(configuration: &Configuration) -> bool {
    let disk = &Environment::system().disk;
    !configuration.cluster_layout.value.is_empty()
        || !configuration.join.value.0.is_empty()
        || firn_cluster::has_record(&**disk, &configuration.data_dir.value)
}

/// Refuses the directory of a node of a cluster, for commands that want one of a server of its own.
///
/// # Errors
/// If the directory has the files of a node.
pub(crate) fn refuse_node_directory(path: &Path) -> Result<(), CommandError> {
    match firn_cluster::is_node_directory(&*Environment::system().disk, path) {
        false => Ok(()),
        true => Err(CommandError::Usage(format!(
            "{} has the files of a node of a cluster; firn start --data-dir runs it",
            path.display()
        ))),
    }
}

/// What asks the cluster that the arguments of a command name.
fn surveyor(matches: &ArgMatches) -> Result<Surveyor, CommandError> {
    let given = matches.get_one::<PathBuf>("layout").cloned();
    let directory = matches.get_one::<PathBuf>("dir");
    let path = given.or_else(|| directory.map(|directory| directory.join(LAYOUT_FILE)));
    let path = path.ok_or_else(|| CommandError::Usage("give --dir or --layout".to_owned()))?;
    let layout = read_layout(&path)?;
    let certificates = matches.get_one::<PathBuf>("certificates");
    let (environment, certified) = environment(certificates.map(PathBuf::as_path))?;
    Ok(Surveyor::new(&environment, layout, certified))
}

/// Reads the file with a cluster's nodes.
#[allow(clippy::disallowed_methods, reason = "a file of the user who runs the binary")]
fn read_layout(path: &Path) -> Result<Layout, CommandError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        CommandError::Usage(format!("{}: cannot be read: {error}", path.display()))
    })?;
    Layout::parse(&text).map_err(|error| CommandError::Layout { path: path.to_owned(), error })
}

/// The system's environment, with the cluster's network: TLS if there are certificates. With them,
/// whom they are of.
fn environment(
    certificates: Option<&Path>,
) -> Result<(Environment, Option<NodeIdentity>), CommandError> {
    let mut environment = Environment::system();
    let (network, identity) = match certificates {
        Some(directory) => {
            let clock = Arc::clone(&environment.clock);
            let credentials = Arc::new(Credentials::from_directory(directory, clock)?);
            let identity = credentials.identity().clone();
            (SecureNetwork::new(credentials), Some(identity))
        }
        None => (SecureNetwork::of_this_machine(), None),
    };
    environment.network = Arc::new(network);
    Ok((environment, identity))
}
