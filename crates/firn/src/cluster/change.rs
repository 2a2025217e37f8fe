//! `firn cluster copies`, `split`, `chunk-size`, `members`, `controls`, `drain` and `remove`: how
//! many nodes have the pages, keep the log and control the cluster, how large chunks of pages are,
//! and nodes that give away what they have, and leave.

use std::io::Write;
use std::time::Duration;

use clap::ArgMatches;
use firn_base::task::sleep;
use firn_cluster::{Control, LOG_GROUP, Surveyor};
use firn_control::{Catalog, ChunkId, GroupId, NodeId, Proposal, Reason, Settings, can_leave};
use firn_node::size::Size;
use signal_hook::iterator::Signals;

use super::status::operations;
use super::surveyor;
use crate::CommandError;
use crate::signals::listen;

const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// `firn cluster copies NUMBER`: on how many page nodes the pages are kept from now on.
///
/// # Errors
/// If control refuses.
pub(super) fn set_copies(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let surveyor = surveyor(matches)?;
    let replicas = *matches.get_one::<u8>("number").expect("clap requires it");
    let settings = Settings { replicas, ..surveyor.catalog()?.settings().clone() };
    surveyor.propose(Proposal::Configure(settings))?;
    writeln!(out, "firn: the pages are kept on {replicas} page nodes, if there are as many")?;
    Ok(())
}

/// `firn cluster split CHUNK`: cuts a chunk of pages in two.
///
/// # Errors
/// If control refuses.
pub(super) fn split(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let surveyor = surveyor(matches)?;
    let chunk = ChunkId(*matches.get_one::<u64>("chunk").expect("clap requires it"));
    let catalog = surveyor.catalog()?;
    let known = catalog.chunks().get(&chunk).ok_or_else(|| {
        let numbers: Vec<_> = catalog.chunks().keys().map(ToString::to_string).collect();
        CommandError::Usage(format!("there is no chunk {chunk}; there are {}", numbers.join(", ")))
    })?;
    let (epoch, reason) = (known.epoch, Reason::Asked);
    surveyor.propose(Proposal::Divide { chunk, epoch, reason })?;
    writeln!(out, "firn: chunk {chunk} is cut in two; firn cluster status shows how far")?;
    Ok(())
}

/// `firn cluster chunk-size SIZE`: from which size on chunks are cut in two.
///
/// # Errors
/// If control refuses.
pub(super) fn set_chunk_size(
    matches: &ArgMatches,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let surveyor = surveyor(matches)?;
    let size = *matches.get_one::<Size>("size").expect("clap requires it");
    surveyor.propose(Proposal::SplitAbove { bytes: size.0 })?;
    writeln!(out, "firn: chunks of more than {size} are cut in two")?;
    Ok(())
}

/// `firn cluster members VOTERS [LOGGERS]`: how many members the log group has from now on.
///
/// # Errors
/// If control refuses.
pub(super) fn set_members(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let surveyor = surveyor(matches)?;
    let number = |name| *matches.get_one::<u8>(name).expect("clap knows it");
    let (voters, loggers) = (number("voters"), number("loggers"));
    surveyor.propose(Proposal::Resize { group: LOG_GROUP, voters, loggers })?;
    writeln!(
        out,
        "firn: {voters} voters and {loggers} loggers keep the log, as soon as there are nodes for them"
    )?;
    Ok(())
}

/// `firn cluster controls NUMBER`: how many control nodes there are from now on.
///
/// # Errors
/// If control refuses.
pub(super) fn set_controls(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let surveyor = surveyor(matches)?;
    let voters = *matches.get_one::<u8>("number").expect("clap requires it");
    surveyor.propose(Proposal::Resize { group: GroupId::CONTROL, voters, loggers: 0 })?;
    writeln!(
        out,
        "firn: {voters} control nodes, as soon as there are as many nodes with the role control"
    )?;
    Ok(())
}

/// `firn cluster drain NODE [--undo]`: what the node has is given to others, or it takes again.
///
/// # Errors
/// If there is no such node, or control refuses.
pub(super) fn drain(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let surveyor = surveyor(matches)?;
    let name = name(matches);
    let catalog = surveyor.catalog()?;
    let node = find(&catalog, name)?;
    let on = !matches.get_flag("undo");
    surveyor.propose(Proposal::Drain { node, on })?;
    match on {
        true => {
            writeln!(
                out,
                "firn: {name} gives away what it has; firn cluster status shows how far"
            )?;
            if !can_leave(&catalog, GroupId::CONTROL, node) {
                writeln!(
                    out,
                    "firn: {name} stays a control node until another node with the role control joins"
                )?;
            }
        }
        false => writeln!(out, "firn: {name} takes again")?,
    }
    Ok(())
}

/// `firn cluster remove NODE`: drains the node if it is up, waits until it has nothing, and removes
/// it. A signal ends the wait, not the draining.
///
/// # Errors
/// If there is no such node, or control refuses.
pub(super) fn remove(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let mut signals = listen()?;
    let surveyor = surveyor(matches)?;
    let name = name(matches);
    let catalog = surveyor.catalog()?;
    let node = find(&catalog, name)?;
    if !can_leave(&catalog, GroupId::CONTROL, node) {
        return Err(CommandError::Usage(format!(
            "'{name}' is a control node, and no other node can take its place: let a node with the \
             role control join first, or ask for fewer of them (firn cluster controls)"
        )));
    }
    let known = &catalog.nodes()[&node];
    if holds(&catalog, node) && known.is_up() && !known.draining {
        surveyor.propose(Proposal::Drain { node, on: true })?;
    }
    if !wait_until_empty(&surveyor, node, &mut signals, out)? {
        writeln!(
            out,
            "firn: {name} goes on giving away; firn cluster drain --undo {name} stops it"
        )?;
        return Ok(());
    }
    surveyor.propose(Proposal::Remove { node })?;
    writeln!(out, "firn: {name} is removed; its process can be ended")?;
    Ok(())
}

fn name(matches: &ArgMatches) -> &str {
    matches.get_one::<String>("node").expect("clap requires it")
}

pub(super) fn find(catalog: &Catalog, name: &str) -> Result<NodeId, CommandError> {
    let found = catalog.nodes().iter().find(|(_, node)| node.name == name);
    found.map(|(number, _)| *number).ok_or_else(|| {
        let names: Vec<_> = catalog.nodes().values().map(|node| node.name.as_str()).collect();
        CommandError::Usage(format!("there is no node '{name}'; there are {}", names.join(", ")))
    })
}

/// Whether the node has pages, or is a member of a group.
fn holds(catalog: &Catalog, node: NodeId) -> bool {
    let is_member = catalog.groups().values().any(|group| group.member_on(node).is_some());
    is_member || catalog.chunks_on(node).next().is_some()
}

/// Tells of the operations under way until the node has nothing. False after a signal.
fn wait_until_empty(
    surveyor: &Surveyor,
    node: NodeId,
    signals: &mut Signals,
    out: &mut dyn Write,
) -> Result<bool, CommandError> {
    let mut told = String::new();
    loop {
        // While control elects a leader there is nothing to see.
        if let Ok(control) = surveyor.control() {
            if !holds(&control.catalog, node) {
                return Ok(true);
            }
            tell(&control, &mut told, out)?;
        }
        if signals.pending().next().is_some() {
            return Ok(false);
        }
        sleep(LOOK_INTERVAL);
    }
}

fn tell(control: &Control, told: &mut String, out: &mut dyn Write) -> std::io::Result<()> {
    let lines = operations(control);
    if lines != *told {
        write!(out, "{lines}")?;
        out.flush()?;
        *told = lines;
    }
    Ok(())
}
