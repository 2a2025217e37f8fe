//! `firn cluster drill`: what happens when the zone that writes is lost, shown on this machine.
//!
//! ```text
//!   a new cluster with a standby ── clients insert ──► all nodes of zone main are killed at once
//!        ──► (asynchronous: the standby is told to take over) ──► the first insert at the standby
//!        ──► which of the acknowledged inserts are there?
//! ```

#![allow(clippy::disallowed_methods, reason = "files of the user who runs the binary")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use firn_base::Environment;
use firn_base::network::Role;
use firn_base::task::{StopAtEnd, monotonic, sleep};
use firn_bench::client::{Session, Target, Value};
use firn_cluster::{LOG_GROUP, Layout, Loss, Survey, Surveyor, ZonePlace, zones};
use firn_control::Proposal;
use firn_node::size::Size;
use parking_lot::Mutex;

use super::local::{MAIN_ZONE, Processes, STANDBY_ZONE, standby_cluster};
use super::{ASYNCHRONOUS, LAYOUT_FILE, take_over};
use crate::CommandError;

/// How long the cluster has to answer at first, and the standby after the loss.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
const SCHEMA: &str = "drill";

/// When each insert was acknowledged, by its number.
type Acknowledged = BTreeMap<u64, Duration>;

/// What the drill has shown.
struct Outcome {
    kind: String,
    acknowledged: usize,
    seconds: f64,
    /// What status said a moment before the loss.
    told: Option<Loss>,
    lost: usize,
    /// How long before the loss the first insert was acknowledged that is lost.
    lost_for: Duration,
    /// From the loss to the first insert at the standby.
    until_writes: Duration,
    /// Inserts that are there though nobody was told so: they were under way.
    unknown: usize,
}

/// Runs the drill in a directory that has no cluster yet.
///
/// # Errors
/// If the cluster does not start, the standby does not go on, or a synchronous one has lost
/// something.
pub(super) fn run(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let directory: &PathBuf = matches.get_one("dir").expect("clap requires it");
    if directory.join(LAYOUT_FILE).exists() {
        return Err(CommandError::Usage(format!(
            "{} has a cluster, and a drill kills nodes; give a new directory",
            directory.display()
        )));
    }
    let kind = matches.get_one::<String>("standby").expect("it has a default");
    let clients = *matches.get_one::<u64>("clients").expect("it has a default");
    let load = Duration::from_secs(*matches.get_one("seconds").expect("it has a default"));
    let (layout, mut processes) = standby_cluster(directory, kind)?;
    processes.start_all()?;
    let outcome = drill(&layout, &mut processes, (kind, clients, load), out);
    processes.end_all();
    let outcome = outcome?;
    write!(out, "{}", table(&outcome))?;
    match outcome.lost {
        0 => Ok(()),
        _ if kind == ASYNCHRONOUS => Ok(()),
        lost => Err(CommandError::Drill { lost }),
    }
}

fn drill(
    layout: &Layout,
    processes: &mut Processes,
    (kind, clients, load): (&str, u64, Duration),
    out: &mut dyn Write,
) -> Result<Outcome, CommandError> {
    writeln!(out, "firn: a cluster with a standby ({kind}) starts")?;
    out.flush()?;
    let mut first = connect(layout, MAIN_ZONE, monotonic() + PATIENCE, || Ok(()))?;
    first.run("CREATE DATABASE IF NOT EXISTS drill")?;
    first.run("CREATE TABLE IF NOT EXISTS drill.kept (n BIGINT PRIMARY KEY, at DATETIME(6))")?;
    let surveyor = Surveyor::new(&Environment::system(), layout.clone(), None);
    wait_for_standby(&surveyor)?;
    writeln!(out, "firn: {clients} clients insert for {} s", load.as_secs())?;
    out.flush()?;
    let stop = AtomicBool::new(false);
    let acknowledged = Arc::<Mutex<Acknowledged>>::default();
    let (told, lost_at) = thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for client in 0..clients {
            let session = connect(layout, MAIN_ZONE, monotonic() + PATIENCE, || Ok(()))?;
            let (stop, acknowledged) = (&stop, Arc::clone(&acknowledged));
            scope.spawn(move || insert(session, (client, clients), stop, &acknowledged));
        }
        sleep(load);
        let told = loss_in(&surveyor.look());
        let lost_at = monotonic();
        processes.kill(|node| node.zone == MAIN_ZONE)?;
        Ok::<_, CommandError>((told, lost_at))
    })?;
    writeln!(out, "firn: all nodes of zone {MAIN_ZONE} are killed")?;
    out.flush()?;
    if kind == ASYNCHRONOUS {
        take_over::carry_out(&surveyor, STANDBY_ZONE, out)?;
    }
    let mut standby =
        connect(layout, STANDBY_ZONE, lost_at + PATIENCE, || processes.look_after(out))?;
    let number = Value::from(u64::MAX >> 1);
    let statement = standby.prepare("INSERT INTO drill.kept VALUES (?, NOW(6))")?;
    standby.change_one(&statement, &[number])?;
    let until_writes = monotonic().saturating_sub(lost_at);
    let acknowledged = std::mem::take(&mut *acknowledged.lock());
    compare(&mut standby, &acknowledged, (kind, load, told, lost_at, until_writes))
}

/// A session at a node of the zone that answers. Calls `look` while there is none.
fn connect(
    layout: &Layout,
    zone: &str,
    end: Duration,
    mut look: impl FnMut() -> Result<(), CommandError>,
) -> Result<Session, CommandError> {
    let nodes = layout.with_role(Role::Database).filter(|node| node.zone == zone);
    let targets = nodes.filter_map(|node| {
        let url = format!("mysql://root@{}/mysql", node.client_address.as_ref()?);
        Target::parse(&url, SCHEMA).ok()
    });
    let targets: Vec<Target> = targets.collect();
    loop {
        look()?;
        for target in &targets {
            match target.connect() {
                Ok(session) => return Ok(session),
                Err(error) if monotonic() >= end => return Err(error.into()),
                Err(_) => {}
            }
        }
        sleep(LOOK_INTERVAL);
    }
}

/// Waits until the main zone writes and the standby has all that there is.
fn wait_for_standby(surveyor: &Surveyor) -> Result<(), CommandError> {
    let end = monotonic() + PATIENCE;
    while !is_ready(surveyor) {
        if monotonic() >= end {
            let what = "the standby does not follow; firn cluster status and its messages say why";
            return Err(CommandError::Usage(what.to_owned()));
        }
        sleep(LOOK_INTERVAL);
    }
    Ok(())
}

/// Whether a node of the main zone writes, and the standby has all that there is. If a node of
/// another zone writes, asks for a switch.
fn is_ready(surveyor: &Surveyor) -> bool {
    let survey = surveyor.look();
    let writes = zones(&survey).into_iter().find(|one| one.place == ZonePlace::Writes);
    let Some(writes) = writes else { return false };
    if writes.zone == MAIN_ZONE {
        return loss_in(&survey) == Some(Loss::default());
    }
    let mut nodes = survey.layout.with_role(Role::Database);
    let to = nodes.find(|node| node.zone == MAIN_ZONE).map(|node| node.number);
    // Refused while one is under way.
    let _ = surveyor.propose(Proposal::Switch { group: LOG_GROUP, to });
    false
}

/// What the standby would lose, as `firn cluster status` shows it.
fn loss_in(survey: &Survey) -> Option<Loss> {
    zones(survey).into_iter().find(|one| one.zone == STANDBY_ZONE)?.loss
}

/// Inserts numbers until the connection breaks.
fn insert(
    mut session: Session,
    (client, clients): (u64, u64),
    stop: &AtomicBool,
    acknowledged: &Mutex<Acknowledged>,
) {
    let Ok(statement) = session.prepare("INSERT INTO drill.kept VALUES (?, NOW(6))") else {
        return;
    };
    let numbers = (client..).step_by(usize::try_from(clients).unwrap_or(usize::MAX));
    for number in numbers {
        let is_over = stop.load(Ordering::Relaxed);
        if is_over || session.change_one(&statement, &[Value::from(number)]).is_err() {
            return;
        }
        let now = monotonic();
        acknowledged.lock().insert(number, now);
    }
}

fn compare(
    standby: &mut Session,
    acknowledged: &Acknowledged,
    (kind, load, told, lost_at, until_writes): (&str, Duration, Option<Loss>, Duration, Duration),
) -> Result<Outcome, CommandError> {
    let rows = standby.ask("SELECT n FROM drill.kept WHERE n < 4611686018427387904")?;
    let number = |row: &Vec<Value>| row.first().and_then(mysql_number);
    let kept: BTreeSet<u64> = rows.iter().filter_map(number).collect();
    let lost: Vec<Duration> = acknowledged
        .iter()
        .filter(|(number, _)| !kept.contains(number))
        .map(|(_, at)| *at)
        .collect();
    let lost_for = lost.iter().min().map_or(Duration::ZERO, |first| lost_at.saturating_sub(*first));
    Ok(Outcome {
        kind: kind.to_owned(),
        acknowledged: acknowledged.len(),
        seconds: load.as_secs_f64(),
        told,
        lost: lost.len(),
        lost_for,
        until_writes,
        unknown: kept.iter().filter(|number| !acknowledged.contains_key(number)).count(),
    })
}

fn mysql_number(value: &Value) -> Option<u64> {
    match value {
        Value::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        _ => None,
    }
}

fn table(outcome: &Outcome) -> String {
    let told = outcome.told.map_or_else(
        || "not known".to_owned(),
        |told| format!("{}, {:.1} s", Size(told.bytes), told.ms as f64 / 1e3),
    );
    let rows = [
        ("standby", outcome.kind.clone()),
        ("acknowledged inserts", outcome.acknowledged.to_string()),
        ("a second", format!("{:.0}", outcome.acknowledged as f64 / outcome.seconds)),
        ("status said it would lose", told),
        ("acknowledged and lost", outcome.lost.to_string()),
        ("the first of these, before the loss", format!("{:.3} s", outcome.lost_for.as_secs_f64())),
        ("there, and nobody was told", outcome.unknown.to_string()),
        ("until the standby writes", format!("{:.1} s", outcome.until_writes.as_secs_f64())),
    ];
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
}
