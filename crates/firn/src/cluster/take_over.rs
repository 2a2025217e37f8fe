//! `firn cluster take-over`: a zone goes on without the others, which are lost.

#![allow(clippy::disallowed_methods, reason = "files of the user who runs the binary")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use clap::ArgMatches;
use firn_base::Environment;
use firn_base::task::sleep;
use firn_cluster::{Layout, Surveyor, TakeOver, plan};

use super::{layout_path, surveyor};
use crate::CommandError;

const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long the zone has to answer clients.
const LIMIT: Duration = Duration::from_secs(120);

/// `firn cluster take-over ZONE [--accept-loss]`. Waits until a node of the zone writes.
///
/// # Errors
/// If the zone does not have what it needs, another node writes, or the loss is not accepted.
pub(super) fn run(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let zone = matches.get_one::<String>("zone").expect("clap requires it");
    let surveyor = surveyor(matches)?;
    if !matches.get_flag("accept_loss") {
        tell(&planned(&surveyor, zone)?, zone, out)?;
        return Err(CommandError::Usage(
            "nothing has been changed; give --accept-loss to have the zone take over".to_owned(),
        ));
    }
    let planned = carry_out(&surveyor, zone, out)?;
    keep_layout(&layout_path(matches)?, planned.layout(), out)
}

fn tell(planned: &TakeOver, zone: &str, out: &mut dyn Write) -> Result<(), CommandError> {
    writeln!(out, "firn: {zone} can go on: {}", planned.nodes.join(", "))?;
    writeln!(
        out,
        "firn: {} has the log up to {}; what was committed behind it, if anything, is lost",
        planned.leader, planned.end
    )?;
    Ok(out.flush()?)
}

/// Has the zone take over. Waits until a node of it writes.
///
/// # Errors
/// If the zone does not have what it needs, another node writes, or nobody does in time.
pub(super) fn carry_out(
    surveyor: &Surveyor,
    zone: &str,
    out: &mut dyn Write,
) -> Result<TakeOver, CommandError> {
    let clock = Environment::system().clock;
    let began = clock.monotonic();
    let planned = planned(surveyor, zone)?;
    tell(&planned, zone, out)?;
    surveyor.take_over(&planned).map_err(|(node, error)| {
        CommandError::Usage(format!(
            "{node} was not told: {error}; give the command again, or stop {node} first"
        ))
    })?;
    let writer = wait_for_writer(&surveyor.of_taken(&planned), began + LIMIT, out)?;
    let took = clock.monotonic().saturating_sub(began);
    writeln!(out, "firn: {writer} writes ({:.1} s)", took.as_secs_f64())?;
    Ok(planned)
}

/// Plans with the nodes that the zone knows.
fn planned(surveyor: &Surveyor, zone: &str) -> Result<TakeOver, CommandError> {
    surveyor.learn_from(zone);
    let survey = surveyor.look_at_nodes();
    plan(&survey, zone).map_err(|error| CommandError::Usage(error.to_string()))
}

/// The name of the node that answers clients. Tells now and then what is waited for.
fn wait_for_writer(
    surveyor: &Surveyor,
    end: Duration,
    out: &mut dyn Write,
) -> Result<String, CommandError> {
    let clock = Environment::system().clock;
    let mut told = String::new();
    loop {
        let survey = surveyor.look_at_nodes();
        let writes = survey.nodes.iter().find_map(|one| {
            let status = one.status.as_ref().ok()?;
            let leads = status.log.as_ref()?.leads.is_some();
            let serves = status.serves.as_ref()?;
            leads.then(|| format!("{} at {serves}", one.node.name))
        });
        if let Some(writes) = writes {
            return Ok(writes);
        }
        let answering = survey.nodes.iter().filter(|one| one.status.is_ok()).count();
        let state = format!("{answering} of {} nodes have started again", survey.nodes.len());
        if clock.monotonic() >= end {
            return Err(CommandError::Usage(format!(
                "{state}, and none writes yet; firn cluster status and the nodes' messages say why"
            )));
        }
        if state != told {
            writeln!(out, "firn: {state}")?;
            out.flush()?;
            told = state;
        }
        sleep(LOOK_INTERVAL);
    }
}

/// Has later commands find the nodes that are left.
fn keep_layout(path: &Path, layout: &Layout, out: &mut dyn Write) -> Result<(), CommandError> {
    let text = layout.to_text();
    let (before, new) = (path.with_extension("before"), path.with_extension("new"));
    let kept = fs::copy(path, &before)
        .and_then(|_| fs::write(&new, &text))
        .and_then(|()| fs::rename(&new, path));
    match kept {
        Ok(()) => writeln!(
            out,
            "firn: {} has the nodes that are left; what it had is in {}",
            path.display(),
            before.display()
        )?,
        Err(error) => {
            writeln!(out, "firn: {}: {error}; from now on the layout is\n\n{text}", path.display())?
        }
    }
    Ok(())
}
