//! `firn cluster status`: what the nodes of a cluster tell of themselves.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ArgMatches;
use firn_base::network::{Address, NodeId, NodeIdentity, Roles};
use firn_base::task::sleep;
use firn_base::{Environment, Lsn};
use firn_cluster::{AskError, NodeEntry, NodeStatus, ReplicaStatus, ask};
use firn_link::{Caller, CallerSettings, LocalNode};
use firn_node::size::Size;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{LAYOUT_FILE, environment, read_layout};
use crate::CommandError;

/// How long a node has to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Prints the state of a cluster, once or until a signal.
///
/// # Errors
/// If there is no layout. Nodes that do not answer are part of the state.
pub(super) fn run(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let given = matches.get_one::<PathBuf>("layout").cloned();
    let directory = matches.get_one::<PathBuf>("dir");
    let path = given.or_else(|| directory.map(|directory| directory.join(LAYOUT_FILE)));
    let path = path.ok_or_else(|| CommandError::Usage("give --dir or --layout".to_owned()))?;
    let layout = read_layout(&path)?;
    let certificates = matches.get_one::<PathBuf>("certificates");
    let (environment, certified) = environment(certificates.map(PathBuf::as_path))?;
    let identity = certified.unwrap_or_else(|| NodeIdentity {
        cluster: layout.cluster,
        node: NodeId(0),
        name: "status".to_owned(),
        roles: Roles::default(),
    });
    let local = Arc::new(LocalNode::new(identity, 0));
    let nodes: Vec<_> =
        layout.nodes().map(|node| (node, caller(&environment, &local, node))).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let watches = matches.get_flag("watch");
    if watches {
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
    }
    loop {
        let answers: Vec<_> =
            nodes.iter().map(|(node, caller)| (*node, ask(caller, TIMEOUT))).collect();
        let text = table(&answers);
        match watches {
            true => write!(out, "\x1b[2J\x1b[H{text}")?,
            false => write!(out, "{text}")?,
        }
        out.flush()?;
        if !watches || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        sleep(WATCH_INTERVAL);
    }
}

fn caller(environment: &Environment, local: &Arc<LocalNode>, node: &NodeEntry) -> Caller {
    let settings = CallerSettings {
        wanted: Some(node.number),
        ..CallerSettings::new(Address::Tcp(node.address))
    };
    Caller::new(environment, Arc::clone(local), settings)
}

type Answer<'a> = (&'a NodeEntry, Result<NodeStatus, AskError>);

/// One line for each node.
fn table(answers: &[Answer<'_>]) -> String {
    let end = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()?.log.as_ref());
    let end = end.map(|log| log.durable).max().unwrap_or(Lsn(0));
    let heads = [
        "node",
        "address",
        "roles",
        "log",
        "durable",
        "kept",
        "pages behind",
        "replica",
        "clients",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(answers.iter().map(|(node, answer)| row(node, answer, end)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..heads.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    for (node, answer) in answers {
        let failures = match answer {
            Err(error) => vec![error.to_string()],
            Ok(status) => failures(status),
        };
        for failure in failures {
            text.push_str(&format!("{}: {failure}\n", node.name));
        }
    }
    text
}

fn failures(status: &NodeStatus) -> Vec<String> {
    let log = status.log.as_ref().and_then(|log| log.failure.clone());
    let pages = status.pages.as_ref().and_then(|pages| pages.failure.clone());
    [log, pages, status.failure.clone()].into_iter().flatten().collect()
}

fn row(node: &NodeEntry, answer: &Result<NodeStatus, AskError>, end: Lsn) -> [String; 9] {
    let none = || "-".to_owned();
    let fixed = [node.name.clone(), node.address.to_string(), node.roles.to_string()];
    let told = match answer {
        Err(_) => ["does not answer".to_owned(), none(), none(), none(), none(), none()],
        Ok(status) => {
            let log = status.log.as_ref();
            let part = log.map(|log| match (log.leads, log.leader) {
                (Some(term), _) => format!("leads, term {term}"),
                (None, Some(leader)) => format!("follows {leader}"),
                (None, None) => "no leader".to_owned(),
            });
            [
                part.unwrap_or_else(none),
                log.map_or_else(none, |log| log.durable.to_string()),
                log.map_or_else(none, |log| Size(log.durable.since(log.truncated)).to_string()),
                status.pages.as_ref().filter(|pages| pages.is_open).map_or_else(none, |pages| {
                    Size(end.0.saturating_sub(pages.applied.0)).to_string()
                }),
                status.replica.as_ref().map_or_else(none, replica),
                status.serves.clone().unwrap_or_else(none),
            ]
        }
    };
    let [name, address, roles] = fixed;
    let [part, durable, kept, behind, replica, clients] = told;
    [name, address, roles, part, durable, kept, behind, replica, clients]
}

/// How far a replica is behind the log.
fn replica(status: &ReplicaStatus) -> String {
    if !status.is_open {
        return "is opened".to_owned();
    }
    let behind = format!("{} behind, {} ms", Size(status.behind_bytes), status.behind_ms);
    if status.is_cut_off { format!("{behind}, no writer") } else { behind }
}
