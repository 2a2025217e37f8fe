//! `firn cluster`: a whole cluster on this machine, and the state of any cluster. `firn start` with
//! `cluster_layout` runs one node of it.

mod change;
mod drill;
mod elastic;
mod local;
mod node;
mod ports;
mod status;
mod switch;
mod take_over;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use firn_base::Environment;
use firn_base::network::NodeIdentity;
use firn_cluster::{Layout, MAX_CHUNKS, Surveyor};
use firn_node::size::Size;
use firn_secure_network::{Credentials, SecureNetwork};

use crate::configuration::Configuration;
use crate::{CommandError, backup};

pub(crate) use elastic::KubernetesError;
pub(crate) use node::run_node;

/// The file with the nodes, in the directory of a cluster of this machine.
const LAYOUT_FILE: &str = "cluster.toml";
/// How many nodes a new cluster has if nobody says.
const USUAL_NODES: u64 = 3;
/// The kinds of standby.
const SYNCHRONOUS: &str = "synchronous";
const ASYNCHRONOUS: &str = "asynchronous";
/// The flag that names the archive that a new cluster begins with.
const ORIGIN_FLAG: &str = "from-archive";
/// The flag of `firn start` that has it end when its standard input does.
pub(crate) const ENDS_WITH_INPUT_FLAG: &str = "ends-with-input";

/// How a new cluster has its pages.
fn pages() -> [Arg; 4] {
    let number = |name: &'static str, flag: &'static str, most: u32| {
        let parser = value_parser!(u32).range(1..=i64::from(most));
        Arg::new(name).long(flag).value_name("NUMBER").value_parser(parser)
    };
    [
        number("page_nodes", "page-nodes", 64)
            .requires("separate")
            .default_value("2")
            .help("How many page nodes a new cluster of separate processes has"),
        number("page_copies", "page-copies", 7).help(
            "On how many nodes of a new cluster each page is; on all page nodes if not given",
        ),
        number("page_chunks", "page-chunks", MAX_CHUNKS).help(
            "Into how many chunks the pages of a new cluster are divided; 16 if not all page nodes \
             have all pages, else 1. Chunks that grow are cut in two later",
        ),
        number("extent_pages", "extent-pages", u32::MAX)
            .help("How many neighbouring pages of a table lie in one chunk"),
    ]
}

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
                        .help(
                            "How many nodes a new cluster has [3]; one that is there keeps its own. \
                             With a standby: in its main zone [1 if synchronous]",
                        ),
                )
                .arg(
                    Arg::new("separate")
                        .long("separate")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("nodes")
                        .help(
                            "A new cluster has a process for each part: two database nodes and a logger, \
                             which keep the log, and page nodes",
                        ),
                )
                .args(pages())
                .args([
                    Arg::new("standby")
                        .long("standby")
                        .value_name("KIND")
                        .value_parser([SYNCHRONOUS, ASYNCHRONOUS])
                        .conflicts_with("separate")
                        .help(
                            "A new cluster has a zone that goes on when the main one is lost: \
                             commits wait for it (synchronous), or it follows (asynchronous)",
                        ),
                    Arg::new("standby_replicas")
                        .long("standby-replicas")
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u64).range(0..=32))
                        .default_value("0")
                        .requires("standby")
                        .help("How many replicas the standby of a new cluster has"),
                ])
                .arg(
                    Arg::new("replicas")
                        .long("replicas")
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u64).range(0..=32))
                        .default_value("0")
                        .help("How many nodes of a new cluster follow the log and answer reads"),
                )
                .args(elastic::flags())
                .arg(origin_flag())
                .args(backup::moment_flags().map(|flag| flag.requires(ORIGIN_FLAG)))
                .args([
                    Arg::new("archive")
                        .long("archive")
                        .value_name("URL")
                        .help("Where the cluster is archived, such as file:///backup/firn"),
                    Arg::new("archive_interval_seconds")
                        .long("archive-interval-seconds")
                        .value_name("SECONDS")
                        .requires("archive")
                        .help("How long new log waits before it is archived"),
                    Arg::new("pause_after_idle_seconds")
                        .long("pause-after-idle-seconds")
                        .value_name("SECONDS")
                        .help(
                            "Close engine and replicas when nobody has used the cluster for so \
                             long; the next client has them opened again",
                        ),
                ])
                .arg(
                    Arg::new("proxies")
                        .long("proxies")
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u64).range(0..=32))
                        .default_value("0")
                        .help(
                            "How many nodes of a new cluster have clients and no data: sessions run at \
                             the node that writes",
                        ),
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
            Command::new("origin")
                .about("Print what a layout says so that its cluster begins with what an archive has")
                .arg(origin_flag().required(true))
                .args(backup::moment_flags()),
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
            Command::new("split")
                .about("Cut a chunk of pages in two")
                .arg(
                    Arg::new("chunk")
                        .value_name("CHUNK")
                        .required(true)
                        .value_parser(value_parser!(u64))
                        .help("Its number; firn cluster status lists them"),
                )
                .args(which_cluster()),
        )
        .subcommand(
            Command::new("chunk-size")
                .about("Set from which size on chunks of pages are cut in two")
                .arg(
                    Arg::new("size")
                        .value_name("SIZE")
                        .required(true)
                        .value_parser(value_parser!(Size))
                        .help("The most that a chunk has, such as 10G"),
                )
                .args(which_cluster()),
        )
        .subcommand(
            Command::new("members")
                .about("Set how many members keep the log")
                .arg(
                    Arg::new("voters")
                        .value_name("VOTERS")
                        .required(true)
                        .value_parser(value_parser!(u8).range(1..=15))
                        .help("How many members vote and may write, on nodes with database+log"),
                )
                .arg(
                    Arg::new("loggers")
                        .value_name("LOGGERS")
                        .default_value("0")
                        .value_parser(value_parser!(u8).range(0..=14))
                        .help("How many members vote alone, on nodes with log"),
                )
                .args(which_cluster()),
        )
        .subcommand(
            Command::new("controls")
                .about("Set how many control nodes there are")
                .arg(
                    Arg::new("number")
                        .value_name("NUMBER")
                        .required(true)
                        .value_parser(value_parser!(u8).range(1..=15))
                        .help("How many; 3 bear the loss of one, 5 that of two"),
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
            Command::new("switch")
                .about("Have another database node write; clients keep their connections")
                .arg(
                    Arg::new("node")
                        .value_name("NODE")
                        .help("The node that is to write; any that can, if none is named"),
                )
                .args(which_cluster()),
        )
        .subcommand(
            Command::new("take-over")
                .about("Have a zone go on without the others, which are lost")
                .arg(
                    Arg::new("zone")
                        .value_name("ZONE")
                        .required(true)
                        .help("The zone that goes on; firn cluster status lists them"),
                )
                .arg(
                    Arg::new("accept_loss")
                        .long("accept-loss")
                        .action(ArgAction::SetTrue)
                        .help(
                            "Do it: what the zone has not got is lost, and other zones cannot come \
                             back with it",
                        ),
                )
                .args(which_cluster()),
        )
        .subcommand(
            Command::new("drill")
                .about("Show on this machine what happens when the zone that writes is lost")
                .arg(directory().required(true).help("A new directory for the drill's cluster"))
                .arg(
                    Arg::new("standby")
                        .long("standby")
                        .value_name("KIND")
                        .value_parser([SYNCHRONOUS, ASYNCHRONOUS])
                        .default_value(ASYNCHRONOUS)
                        .help("Whether commits wait for the standby"),
                )
                .arg(
                    Arg::new("clients")
                        .long("clients")
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u64).range(1..=256))
                        .default_value("16")
                        .help("How many clients insert when the zone is lost"),
                )
                .arg(
                    Arg::new("seconds")
                        .long("seconds")
                        .value_name("SECONDS")
                        .value_parser(value_parser!(u64).range(1..=3600))
                        .default_value("10")
                        .help("For how long they insert before"),
                ),
        )
        .subcommand(
            Command::new("layout")
                .about("Print the nodes of a cluster as a layout, for --layout from now on")
                .args(which_cluster()),
        )
        .subcommand(elastic::command())
        .subcommand(
            Command::new("status")
                .about("Show the nodes of a cluster: who is up, who leads, how far each one is")
                .args(which_cluster())
                .arg(
                    Arg::new("watch")
                        .long("watch")
                        .value_name("SECONDS")
                        .num_args(0..=1)
                        .default_missing_value("1")
                        .value_parser(value_parser!(u64).range(1..=3600))
                        .help("Show the state again every so many seconds until Ctrl-C [1]"),
                ),
        )
}

fn origin_flag() -> Arg {
    Arg::new(ORIGIN_FLAG)
        .long(ORIGIN_FLAG)
        .value_name("URL")
        .help("Begin a new cluster with what this archive has, such as file:///backup/firn")
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
        Some(("origin", matches)) => {
            let origin = backup::origin(matches, ORIGIN_FLAG, out)?;
            Ok(write!(out, "\n[origin]\n{}", origin.expect("clap asks for it").to_text())?)
        }
        Some(("layout", matches)) => status::print_layout(matches, out),
        Some(("scale", matches)) => elastic::run(matches, out),
        Some(("status", matches)) => status::run(matches, out),
        Some(("copies", matches)) => change::set_copies(matches, out),
        Some(("split", matches)) => change::split(matches, out),
        Some(("chunk-size", matches)) => change::set_chunk_size(matches, out),
        Some(("members", matches)) => change::set_members(matches, out),
        Some(("controls", matches)) => change::set_controls(matches, out),
        Some(("drain", matches)) => change::drain(matches, out),
        Some(("remove", matches)) => change::remove(matches, out),
        Some(("switch", matches)) => switch::run(matches, out),
        Some(("take-over", matches)) => take_over::run(matches, out),
        Some(("drill", matches)) => drill::run(matches, out),
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

/// The layout that the arguments of a command name.
fn layout_path(matches: &ArgMatches) -> Result<PathBuf, CommandError> {
    let given = matches.get_one::<PathBuf>("layout").cloned();
    let directory = matches.get_one::<PathBuf>("dir");
    let path = given.or_else(|| directory.map(|directory| directory.join(LAYOUT_FILE)));
    path.ok_or_else(|| CommandError::Usage("give --dir or --layout".to_owned()))
}

/// What asks the cluster that the arguments of a command name.
fn surveyor(matches: &ArgMatches) -> Result<Surveyor, CommandError> {
    let layout = read_layout(&layout_path(matches)?)?;
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
