//! The `firn` binary: the command line, the configuration and the life of the process.
//!
//! Architecture invariant: nothing below knows that there is a command line, a configuration file
//! or an environment variable; each part receives its settings as typed values.

#![allow(clippy::disallowed_types, reason = "files and sockets of the user who runs the binary")]

mod admin;
mod archived;
mod backup;
mod certificates;
mod cluster;
mod command_line;
mod configuration;
mod demo;
mod logging;
mod node_directory;
mod signals;
mod start;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use cluster::KubernetesError;
use configuration::ConfigurationError;
use firn_api::{LogError, PageStoreError};
use firn_archive::ArchiveError;
use firn_base::Lsn;
use firn_base::network::Address;
use firn_bench_engine::BenchError;
use firn_client::ClientError;
use firn_cluster::{JoinError, ProcessError, ProposeError, StoppedError};
use firn_engine::EngineError;
use firn_node::endpoint::EndpointError;
use firn_node::node::NodeError;
use firn_secure_network::DirectoryError;
use firn_storage::local::OpenError;

/// The status of a node that the cluster has gone on without.
const LEFT_BEHIND: u8 = 3;

/// Why a command ended without doing its work.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    /// An error of the user: a setting, a file or a flag.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The client stopped.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A measurement failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A server that a drill uses does not do what it should.
    #[error(transparent)]
    Session(#[from] firn_bench::BenchError),
    /// Standard output or a file could not be written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// There is no database in the directory.
    #[error("there is no database in {}; --data-dir names the directory of one", .0.display())]
    NoDatabase(PathBuf),
    /// The data directory cannot be opened.
    #[error(transparent)]
    Storage(#[from] OpenError),
    /// The node cannot be opened or closed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Clients cannot be served.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A page cannot be read.
    #[error(transparent)]
    Pages(#[from] PageStoreError),
    /// Certificates cannot be made or read.
    #[error(transparent)]
    Certificates(#[from] DirectoryError),
    /// A node of a cluster does not start.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The files of a node that does not run are damaged, or cannot be read.
    #[error(transparent)]
    StoppedNode(#[from] StoppedError),
    /// An archive cannot be written or read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Kubernetes does not let its replicas be looked after.
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
    /// The node that wrote goes on writing, or another one does.
    #[error("the switch has failed, and {0} writes; the logs of the nodes say why")]
    NotSwitched(String),
    /// Another process listens where a node of the cluster should.
    #[error(
        "{address} of {node} is taken by another process; end that, or give {node} another address in {}",
        path.display()
    )]
    PortTaken { node: String, address: Address, path: PathBuf },
    /// A standby for which commits wait does not have them.
    #[error("{lost} acknowledged inserts are lost; please report this with the directory")]
    Drill { lost: usize },
    /// Objects of an archive are damaged or missing.
    #[error(
        "{findings} objects are damaged or missing; make a new archive, and keep this one until its window has passed"
    )]
    ArchiveDamage { findings: usize },
    /// A node does not join a cluster.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Control does not change the cluster.
    #[error(transparent)]
    Control(#[from] ProposeError),
    /// The file with a cluster's nodes is wrong.
    #[error("{}: {error}", path.display())]
    Layout { path: PathBuf, error: firn_cluster::LayoutError },
    /// The user asked for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// Stored data contradicts itself.
    #[error("{problems} problems were found; restore from a backup or a replica")]
    Damage { problems: u64 },
    /// The engine cannot go on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A whole log group cannot be decoded.
    #[error("the log group at {position} is damaged: {what}; restore from a backup or a replica")]
    DamagedGroup {
        /// Where the group begins.
        position: Lsn,
        /// What is wrong with it.
        what: String,
    },
}

impl CommandError {
    /// 2 for an error of the command line or of a setting (like the argument parser), 3 for a node
    /// that must not be started again, otherwise 1.
    fn exit_code(&self) -> ExitCode {
        match self {
            CommandError::Configuration(_)
            | CommandError::Layout { .. }
            | CommandError::Usage(_)
            | CommandError::Client(ClientError::Options(_)) => ExitCode::from(2),
            CommandError::Process(ProcessError::LeftBehind { .. }) => ExitCode::from(LEFT_BEHIND),
            _ => ExitCode::from(1),
        }
    }
}

fn main() -> ExitCode {
    firn_node::allocator::tune();
    firn_node::descriptors::raise_limit();
    let matches = command_line::command().get_matches();
    match command_line::dispatch(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !matches!(error, CommandError::Client(ClientError::Stopped)) {
                // There is nobody to tell if standard error is closed.
                let _ = writeln!(std::io::stderr(), "firn: {error}");
            }
            error.exit_code()
        }
    }
}
