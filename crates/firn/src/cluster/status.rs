//! `firn cluster status`: what control and the nodes of a cluster tell of themselves.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ArgMatches;
use firn_base::task::sleep;
use firn_base::{Environment, Lsn, PageNo};
use firn_cluster::{
    Control, Layout, Loss, NodeStatus, PagesStatus, ReplicaStatus, Survey, SurveyedNode, ZonePlace,
    ZoneReport, zones,
};
use firn_control::{Catalog, Chunk, EVERY_SPACE, NodeId, ReplicaState};
use firn_node::size::Size;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{elastic, surveyor};
use crate::CommandError;

/// How often somebody who watches looks whether there was a signal.
const LOOK: Duration = Duration::from_millis(100);
const HEADS: [&str; 11] = [
    "node",
    "address",
    "roles",
    "state",
    "log",
    "durable",
    "kept",
    "pages behind",
    "seconds",
    "replica",
    "clients",
];

/// Prints the state of a cluster, once or until a signal.
///
/// # Errors
/// If there is no layout. Nodes that do not answer are part of the state.
pub(super) fn run(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let surveyor = surveyor(matches)?;
    let directory = matches.get_one::<PathBuf>("dir");
    let stop = Arc::new(AtomicBool::new(false));
    let interval = matches.get_one::<u64>("watch").map(|seconds| Duration::from_secs(*seconds));
    if interval.is_some() {
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
    }
    let clock = Environment::system().clock;
    let mut before = None;
    loop {
        let survey = surveyor.look();
        let (now, end) = (clock.monotonic(), survey.durable_end());
        let rate = before.replace((now, end)).map(|(then, before): (Duration, Lsn)| {
            let seconds = now.saturating_sub(then).as_secs_f64();
            (end.0.saturating_sub(before.0) as f64 / seconds.max(1e-3)) as u64
        });
        let mut text = text_of(&survey);
        text.extend(directory.and_then(|directory| elastic::status(directory)));
        let Some(interval) = interval else {
            write!(out, "{text}")?;
            return Ok(());
        };
        let rate = rate.map(|rate| format!("log: {} a second\n", Size(rate))).unwrap_or_default();
        write!(out, "\x1b[2J\x1b[H{text}{rate}")?;
        out.flush()?;
        while clock.monotonic().saturating_sub(now) < interval {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            sleep(LOOK);
        }
    }
}

/// `firn cluster layout`: the nodes that the cluster has now.
///
/// # Errors
/// If control does not answer.
pub(super) fn print_layout(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let catalog = surveyor(matches)?.catalog()?;
    let layout = Layout::of_catalog(&catalog);
    let text = layout.map(|layout| layout.to_text()).unwrap_or_default();
    Ok(write!(out, "{text}")?)
}

fn text_of(survey: &Survey) -> String {
    let mut text = match &survey.control {
        Ok(control) => line_of_control(control),
        Err(reason) => format!("control does not answer: {reason}\n"),
    };
    text.push_str(&table(&survey.nodes, survey.durable_end()));
    for SurveyedNode { node, status, .. } in &survey.nodes {
        let failures = match status {
            Err(error) => vec![error.to_string()],
            Ok(status) => failures(status),
        };
        for failure in failures {
            text.push_str(&format!("{}: {failure}\n", node.name));
        }
    }
    text.push_str(&lines_of_zones(survey));
    text.push_str(&archive(&survey.nodes));
    if let Ok(control) = &survey.control {
        text.push_str(&chunks(&control.catalog));
        text.push_str(&operations(control));
    }
    text
}

fn name_of(catalog: &Catalog, node: NodeId) -> String {
    let known = catalog.nodes().get(&node);
    known.map_or_else(|| format!("node {node}"), |node| node.name.clone())
}

fn line_of_control(Control { status, catalog }: &Control) -> String {
    let groups: Vec<_> = catalog
        .groups()
        .iter()
        .map(|(id, group)| {
            let what = if id.0 == 0 { "control".to_owned() } else { format!("log group {id}") };
            let leader = match group.writer_node() {
                Some(node) => {
                    format!("{} leads in term {}", name_of(catalog, node), group.term)
                }
                None => "nobody has led yet".to_owned(),
            };
            let members = group.members.values().map(|member| name_of(catalog, member.node));
            let members: Vec<String> = members.collect();
            format!("{what}: {leader}, {} members: {}\n", members.len(), members.join(", "))
        })
        .collect();
    format!("{}catalog: {} entries\n", groups.concat(), status.entries)
}

/// One line for each node.
fn table(nodes: &[SurveyedNode], end: Lsn) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(nodes.iter().map(|node| row(node, end)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..HEADS.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// One line for each zone, if there are several.
fn lines_of_zones(survey: &Survey) -> String {
    let lines = zones(survey).into_iter().map(|ZoneReport { zone, place, loss, missing_chunks }| {
        let lost = loss.map_or_else(
            || "it is not known what it would lose".to_owned(),
            |loss| match loss {
                Loss { bytes: 0, .. } => "it would lose nothing".to_owned(),
                Loss { bytes, ms } => {
                    let seconds = ms as f64 / 1e3;
                    format!("it would lose {} and {seconds:.1} seconds", Size(bytes))
                }
            },
        );
        let what = match place {
            ZonePlace::Writes => "writes".to_owned(),
            ZonePlace::Synchronous => format!("synchronous; {lost} if it took over now"),
            ZonePlace::Votes => format!(
                "votes, and has no majority without the zone that writes; {lost} if it took over now"
            ),
            ZonePlace::Asynchronous if missing_chunks > 0 => {
                format!("asynchronous; it cannot take over; chunks without a copy there: {missing_chunks}")
            }
            ZonePlace::Asynchronous => format!("asynchronous; {lost} if it took over now"),
            ZonePlace::WithoutLog => "has no log".to_owned(),
        };
        format!("zone {zone}: {what}\n")
    });
    lines.collect()
}

fn failures(status: &NodeStatus) -> Vec<String> {
    let log = status.log.as_ref().and_then(|log| log.failure.clone());
    let pages = status.pages.as_ref().and_then(|pages| pages.failure.clone());
    [log, pages, status.failure.clone()].into_iter().flatten().collect()
}

fn row(SurveyedNode { node, state, status }: &SurveyedNode, end: Lsn) -> [String; HEADS.len()] {
    let none = || "-".to_owned();
    let fixed = [
        node.name.clone(),
        node.address.to_string(),
        node.roles.to_string(),
        state.map_or_else(none, |state| state.to_string()),
    ];
    let told = match status {
        Err(_) => ["does not answer".to_owned(), none(), none(), none(), none(), none(), none()],
        Ok(status) => {
            let log = status.log.as_ref();
            let part = log.map(|log| match (log.leads, log.leader) {
                (Some(term), _) => format!("leads, term {term}"),
                (None, Some(leader)) => format!("follows {leader}"),
                (None, None) => "no leader".to_owned(),
            });
            let pages = status.pages.as_ref().filter(|pages| pages.is_open);
            let behind = |pages: &PagesStatus| Size(end.0.saturating_sub(pages.applied.0));
            [
                part.unwrap_or_else(none),
                log.map_or_else(none, |log| log.durable.to_string()),
                log.map_or_else(none, |log| Size(log.durable.since(log.truncated)).to_string()),
                pages.map_or_else(none, |pages| behind(pages).to_string()),
                pages.map_or_else(none, |pages| format!("{:.1}", pages.behind_ms as f64 / 1e3)),
                match status.is_paused {
                    true => status.replica.as_ref().map_or_else(none, |_| "paused".to_owned()),
                    false => status.replica.as_ref().map_or_else(none, replica),
                },
                status.serves.clone().unwrap_or_else(none),
            ]
        }
    };
    let [name, address, roles, state] = fixed;
    let [part, durable, kept, behind, seconds, replica, clients] = told;
    [name, address, roles, state, part, durable, kept, behind, seconds, replica, clients]
}

/// How far a replica is behind the log.
fn replica(status: &ReplicaStatus) -> String {
    if !status.is_open {
        return "is opened".to_owned();
    }
    let behind = format!("{} behind, {} ms", Size(status.behind_bytes), status.behind_ms);
    if status.is_cut_off { format!("{behind}, no writer") } else { behind }
}

/// One line for each node that archives or was chosen for it; none if the cluster has no archive.
fn archive(nodes: &[SurveyedNode]) -> String {
    let told = nodes
        .iter()
        .filter_map(|node| Some((&node.node.name, node.status.as_ref().ok()?.archive.as_ref()?)));
    let shown = told.filter(|(_, archive)| archive.is_chosen || archive.archived.is_some());
    let lines = shown.map(|(name, archive)| {
        let state = match archive.archived {
            None => "has not begun".to_owned(),
            Some(archived) => format!(
                "up to {archived}, {} and {:.1} seconds behind; {} in {} objects of log and {} sets",
                Size(archive.progress.behind_bytes),
                archive.progress.behind_ms as f64 / 1e3,
                Size(archive.progress.size_bytes),
                archive.progress.log_objects,
                archive.progress.sets,
            ),
        };
        let error = archive.progress.error.as_ref().map(|error| format!("; {error}")).unwrap_or_default();
        format!("archive: {name} {state}{error}\n")
    });
    lines.collect()
}

/// One line for each chunk.
fn chunks(catalog: &Catalog) -> String {
    let lines = catalog.chunks().iter().map(|(id, chunk)| {
        let replicas = chunk.replicas.iter().map(|(node, replica)| {
            let name = name_of(catalog, *node);
            match replica.state {
                ReplicaState::InService => name,
                ReplicaState::Copying => format!("{name} (copying)"),
                ReplicaState::Leaving => format!("{name} (leaving)"),
            }
        });
        let replicas = replicas.collect::<Vec<_>>().join(", ");
        format!("chunk {id}: {}, {}, on {replicas}\n", range(catalog, chunk), Size(chunk.bytes))
    });
    lines.collect()
}

/// Which pages a chunk has.
fn range(catalog: &Catalog, chunk: &Chunk) -> String {
    let (first, end) = (chunk.first, chunk.end);
    match (chunk.space == EVERY_SPACE, catalog.chunks().len()) {
        (true, 1) => "all pages".to_owned(),
        (true, parts) => {
            let before = catalog.chunks().values().filter(|other| other.first <= first).count();
            format!("part {before} of {parts}")
        }
        (false, _) if end == PageNo::NONE => {
            format!("space {}, pages {first} to end", chunk.space)
        }
        (false, _) => format!("space {}, pages {first} to {end}", chunk.space),
    }
}

/// One line for each operation under way.
pub(super) fn operations(Control { status, .. }: &Control) -> String {
    let lines = status.operations.iter().map(|one| {
        let progress = one
            .progress
            .map(|progress| format!("; {} of {}", Size(progress.done), Size(progress.total)));
        let waits = one.waits_for.as_ref().map(|what| format!("; waits: {what}"));
        let (progress, waits) = (progress.unwrap_or_default(), waits.unwrap_or_default());
        format!("operation {}: {}{progress}{waits}\n", one.operation, one.text)
    });
    lines.collect()
}
