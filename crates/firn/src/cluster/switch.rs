//! `firn cluster switch`: another database node writes from now on.

use std::io::Write;
use std::time::Duration;

use clap::ArgMatches;
use firn_base::Environment;
use firn_base::task::sleep;
use firn_cluster::{LOG_GROUP, Surveyor};
use firn_control::{Applied, Catalog, OperationId, Outcome, Proposal};

use super::change::find;
use super::surveyor;
use crate::CommandError;

const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How long a node may take until control knows it as the one that writes.
const WRITER_LIMIT: Duration = Duration::from_secs(10);
/// A switch that has not ended by then is stopped.
const LIMIT: Duration = Duration::from_secs(20);

/// `firn cluster switch [NODE]`. Waits until the other node writes.
///
/// # Errors
/// If there is no such node, control refuses, or the node that writes goes on writing.
pub(super) fn run(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let surveyor = surveyor(matches)?;
    let catalog = wait_for_writer(&surveyor)?;
    let name = matches.get_one::<String>("node");
    let to = name.map(|name| find(&catalog, name)).transpose()?;
    let before = writer(&catalog).unwrap_or_else(|| "nobody".to_owned());
    let applied = surveyor.propose(Proposal::Switch { group: LOG_GROUP, to })?;
    let Applied::Operation(operation) = applied else {
        unreachable!("a switch is an operation");
    };
    let clock = Environment::system().clock;
    let began = clock.monotonic();
    let catalog = wait_for_end(&surveyor, operation, began + LIMIT)?;
    let ended = catalog.ended().iter().find(|ended| ended.operation == operation);
    let took = clock.monotonic().saturating_sub(began);
    match (ended.map(|ended| ended.outcome), writer(&catalog)) {
        (Some(Outcome::Done), Some(now)) => {
            writeln!(out, "firn: {now} writes, no longer {before} ({:.1} s)", took.as_secs_f64())?;
            Ok(())
        }
        (_, now) => Err(CommandError::NotSwitched(now.unwrap_or_else(|| "nobody".to_owned()))),
    }
}

/// The catalog with a node that writes: control hears of a new one a little later than clients. As
/// it is if that takes too long.
fn wait_for_writer(surveyor: &Surveyor) -> Result<Catalog, CommandError> {
    let clock = Environment::system().clock;
    let end = clock.monotonic() + WRITER_LIMIT;
    loop {
        let catalog = surveyor.catalog()?;
        if writer(&catalog).is_some() || clock.monotonic() >= end {
            return Ok(catalog);
        }
        sleep(LOOK_INTERVAL);
    }
}

/// The catalog in which the operation is over. One that takes too long is stopped.
fn wait_for_end(
    surveyor: &Surveyor,
    operation: OperationId,
    end: Duration,
) -> Result<Catalog, CommandError> {
    let clock = Environment::system().clock;
    loop {
        let catalog = surveyor.catalog()?;
        if !catalog.operations().contains_key(&operation) {
            return Ok(catalog);
        }
        if clock.monotonic() >= end {
            // Refused if it has ended meanwhile.
            let _ = surveyor.propose(Proposal::Cancel { operation });
        }
        sleep(LOOK_INTERVAL);
    }
}

/// The name of the node that writes.
fn writer(catalog: &Catalog) -> Option<String> {
    let node = catalog.groups().get(&LOG_GROUP)?.writer_node()?;
    Some(catalog.nodes().get(&node)?.name.clone())
}
