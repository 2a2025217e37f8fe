//! Archives, as the user meets them: what is in one, whether it is whole, a restore to a moment,
//! and a clone.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use firn_archive::{Archive, Moment, Progress, Restore, RestorePlan, verify};
use firn_base::{Environment, Lsn};
use firn_cluster::Origin;
use firn_node::size::Size;
use firn_storage::local::LocalOptions;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::CommandError;
use crate::archived::open_store;
use crate::configuration::Configuration;
use crate::node_directory::refuse_node_directory;

/// The flag that names an archive.
const ARCHIVE_FLAG: &str = "archive";
/// The archive of which a new directory becomes a clone.
pub(crate) const CLONE_FLAG: &str = "clone-of";
const DATA_DIR_FLAG: &str = "data-dir";
const TIME_FLAG: &str = "to-time";
const LSN_FLAG: &str = "to-lsn";
/// How often a long command says how far it is.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

fn archive_flag() -> Arg {
    let flag = Arg::new(ARCHIVE_FLAG).long(ARCHIVE_FLAG).value_name("URL").required(true);
    flag.env("FIRN_ARCHIVE").help("The archive, such as file:///backup/firn")
}

/// Flags for the moment of a restore.
pub(crate) fn moment_flags() -> [Arg; 2] {
    [
        Arg::new(TIME_FLAG).long(TIME_FLAG).value_name("TIME").conflicts_with(LSN_FLAG).help(
            "The moment, in UTC or with an offset: '2026-11-26 10:15:00.5', \
             2026-11-26T11:15:00+01:00 [default: the newest]",
        ),
        Arg::new(LSN_FLAG)
            .long(LSN_FLAG)
            .value_name("LSN")
            .value_parser(clap::value_parser!(u64))
            .help("The moment, as a position of the log"),
    ]
}

/// `firn admin backup …`.
pub(crate) fn command() -> Command {
    Command::new("backup")
        .about("Inspect an archive")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("Print the moments that can be restored, the sets of images and the gaps")
                .arg(archive_flag()),
        )
        .subcommand(
            Command::new("verify")
                .about("Read everything in the archive, and name what is damaged or missing")
                .arg(archive_flag()),
        )
}

/// `firn admin restore`.
pub(crate) fn restore_command() -> Command {
    Command::new("restore")
        .about("Make a data directory at a moment of an archive")
        .arg(archive_flag())
        .arg(
            Arg::new(DATA_DIR_FLAG)
                .long(DATA_DIR_FLAG)
                .value_name("DIR")
                .required(true)
                .help("The new directory; it must not exist or be empty"),
        )
        .args(moment_flags())
}

/// Runs a command of `firn admin backup`.
///
/// # Errors
/// If the archive cannot be read, or is damaged.
pub(crate) fn dispatch(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    match matches.subcommand() {
        Some(("list", matches)) => list(&open_archive(matches)?, out),
        Some(("verify", matches)) => verify_archive(&open_archive(matches)?, out),
        _ => unreachable!("clap lets no other command through"),
    }
}

fn open_archive(matches: &ArgMatches) -> Result<Archive, CommandError> {
    let url = matches.get_one::<String>(ARCHIVE_FLAG).expect("clap asks for it");
    let store = open_store(&Environment::system(), url)?;
    Ok(Archive::open(&store)?)
}

// ---- moments ----

/// The moment that the flags name.
fn moment(matches: &ArgMatches) -> Result<Moment, CommandError> {
    if let Some(lsn) = matches.get_one::<u64>(LSN_FLAG) {
        return Ok(Moment::Lsn(Lsn(*lsn)));
    }
    let Some(text) = matches.get_one::<String>(TIME_FLAG) else { return Ok(Moment::Newest) };
    Ok(Moment::Time(time_ms(text)?))
}

/// Milliseconds since the Unix epoch.
fn time_ms(text: &str) -> Result<u64, CommandError> {
    let refuse = || {
        CommandError::Usage(format!(
            "--{TIME_FLAG}: {text:?} is not a time; write 2026-11-26 10:15:00 (UTC) or \
             2026-11-26T11:15:00+01:00"
        ))
    };
    let time = text.parse::<Timestamp>().or_else(|_| {
        text.parse::<DateTime>()
            .and_then(|time| time.to_zoned(TimeZone::UTC))
            .map(|time| time.timestamp())
    });
    let time = time.map_err(|_| refuse())?;
    u64::try_from(time.as_millisecond()).map_err(|_| refuse())
}

/// A time as people read it, in UTC.
fn shown(time_ms: u64) -> String {
    let time = i64::try_from(time_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| {
        let civil = time.to_zoned(TimeZone::UTC).datetime();
        let milliseconds = civil.subsec_nanosecond() / 1_000_000;
        format!("{}.{milliseconds:03}", civil.strftime("%F %T"))
    })
}

// ---- list and verify ----

/// Prints rows below their headings; numbers of columns are right-aligned if `numbers` says so.
fn table(out: &mut dyn Write, headings: &[&str], rows: &[Vec<String>]) -> std::io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
    for row in std::iter::once(&headings).chain(rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn list(archive: &Archive, out: &mut dyn Write) -> Result<(), CommandError> {
    let manifest = archive.manifest();
    writeln!(out, "database {}, {} of objects", manifest.database, Size(manifest.size_bytes()))?;
    writeln!(out, "\nmoments that can be restored (UTC)")?;
    let moments: Vec<Vec<String>> = archive
        .coverage()
        .iter()
        .map(|found| {
            let lsn = (found.from.lsn.to_string(), found.to.lsn.to_string());
            vec![shown(found.from.time_ms), shown(found.to.time_ms), lsn.0, lsn.1]
        })
        .collect();
    table(out, &["from", "to", "from LSN", "to LSN"], &moments)?;
    writeln!(out, "\nsets of images")?;
    let sets: Vec<Vec<String>> = manifest
        .sets
        .iter()
        .map(|set| {
            let kind = if set.is_full { "full" } else { "changes" };
            vec![
                shown(set.time_ms),
                set.end.to_string(),
                kind.to_owned(),
                set.images.to_string(),
                Size(set.size_bytes).to_string(),
            ]
        })
        .collect();
    table(out, &["complete at", "LSN", "kind", "images", "size"], &sets)?;
    let log_bytes = manifest.log.iter().map(|entry| entry.size_bytes).sum();
    writeln!(out, "\nlog: {} objects, {}", manifest.log.len(), Size(log_bytes))?;
    if manifest.gaps.is_empty() {
        writeln!(out, "no gaps")?;
    } else {
        writeln!(out, "\ngaps: no moment within them can be restored")?;
        let gaps: Vec<Vec<String>> = manifest
            .gaps
            .iter()
            .map(|gap| {
                let lsn = (gap.from.to_string(), gap.to.to_string());
                vec![shown(gap.from_ms), shown(gap.to_ms), lsn.0, lsn.1]
            })
            .collect();
        table(out, &["from", "to", "from LSN", "to LSN"], &gaps)?;
    }
    Ok(())
}

fn verify_archive(archive: &Archive, out: &mut dyn Write) -> Result<(), CommandError> {
    let mut speed = Speed::new("verified");
    let report = verify(archive, &mut |done, total| speed.tell(done, total, Unit::Bytes))?;
    writeln!(
        out,
        "{} objects, {}: {} log groups, {} images",
        report.objects,
        Size(report.bytes),
        report.groups,
        report.images
    )?;
    for finding in &report.findings {
        writeln!(out, "{}: {}", finding.name, finding.what)?;
    }
    match report.findings.len() {
        0 => Ok(writeln!(out, "no damage found")?),
        findings => Err(CommandError::ArchiveDamage { findings }),
    }
}

// ---- restore and clone ----

/// `firn admin restore`: makes a directory that stands alone.
///
/// # Errors
/// If the archive cannot be read or the directory cannot be written.
pub(crate) fn restore(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), CommandError> {
    let directory = matches.get_one::<String>(DATA_DIR_FLAG).expect("clap asks for it");
    let url = matches.get_one::<String>(ARCHIVE_FLAG).expect("clap asks for it");
    let archive = open_archive(matches)?;
    let plan = archive.plan(moment(matches)?)?;
    say_plan(&plan, out)?;
    let environment = Environment::system();
    let restore = Restore {
        environment: &environment,
        archive: &archive,
        url,
        plan: &plan,
        options: LocalOptions::default(),
    };
    let (mut log, mut pages) = (Speed::new("log"), Speed::new("pages"));
    let restored = restore.restore_to(Path::new(directory), &mut |step| match step {
        Progress::Log { done, total } => log.tell(done, total, Unit::Bytes),
        Progress::Pages { done, total } => pages.tell(done, total, Unit::Pages),
    })?;
    writeln!(out, "restored to LSN {}: firn start --data-dir {directory}", restored.end)?;
    Ok(())
}

fn say_plan(plan: &RestorePlan, out: &mut dyn Write) -> Result<(), CommandError> {
    let base = plan.base();
    let log = plan.target.since(base.start);
    let moment = plan.time_ms.map_or_else(String::new, |time| format!(", {} UTC", shown(time)));
    writeln!(
        out,
        "the moment is LSN {}{moment}: images as of {} and {} of log",
        plan.target,
        base.start,
        Size(log)
    )?;
    out.flush()?;
    Ok(())
}

/// What a new cluster begins with, if the flag asks for what an archive has. Says which moment that
/// is.
///
/// # Errors
/// If the archive cannot be read, or does not have the moment.
pub(crate) fn origin(
    matches: &ArgMatches,
    flag: &str,
    out: &mut dyn Write,
) -> Result<Option<Origin>, CommandError> {
    let Some(url) = matches.get_one::<String>(flag) else { return Ok(None) };
    let archive = Archive::open(&open_store(&Environment::system(), url)?)?;
    let plan = archive.plan(moment(matches)?)?;
    say_plan(&plan, out)?;
    let (position, watermarks) = archive.end_of(&plan)?;
    Ok(Some(Origin { archive: url.clone(), position, watermarks }))
}

/// If the flags ask for a clone, makes its directory; the pages stay in the archive until they are
/// needed.
///
/// # Errors
/// If the archive cannot be read or the directory cannot be written.
pub(crate) fn clone_if_asked(
    matches: &ArgMatches,
    configuration: &Configuration,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let moment = moment(matches)?;
    let Some(url) = matches.get_one::<String>(CLONE_FLAG) else {
        return match moment {
            Moment::Newest => Ok(()),
            _ => Err(CommandError::Usage(format!("a moment needs --{CLONE_FLAG}"))),
        };
    };
    let path = &configuration.data_dir.value;
    refuse_node_directory(path)?;
    let environment = Environment::system();
    let archive = Archive::open(&open_store(&environment, url)?)?;
    let plan = archive.plan(moment)?;
    let restore = Restore {
        environment: &environment,
        archive: &archive,
        url,
        plan: &plan,
        options: configuration.storage_options(),
    };
    say_plan(&plan, out)?;
    restore.clone_to(path, &mut |_| {})?;
    Ok(())
}

#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Pages,
}

impl Unit {
    fn show(self, count: u64) -> String {
        match self {
            Unit::Bytes => Size(count).to_string(),
            Unit::Pages => format!("{count} pages"),
        }
    }
}

/// Says on standard error how far a long command is, how fast, and how long it will take.
struct Speed {
    what: &'static str,
    environment: Environment,
    began: Duration,
    told: Duration,
}

impl Speed {
    fn new(what: &'static str) -> Speed {
        let environment = Environment::system();
        let now = environment.clock.monotonic();
        Speed { what, environment, began: now, told: now }
    }

    fn tell(&mut self, done: u64, total: u64, unit: Unit) {
        let now = self.environment.clock.monotonic();
        if now.saturating_sub(self.told) < REPORT_INTERVAL {
            return;
        }
        self.told = now;
        let seconds = now.saturating_sub(self.began).as_secs_f64().max(0.001);
        let rate = done as f64 / seconds;
        let left = total.saturating_sub(done) as f64 / rate.max(1.0);
        let percent = done * 100 / total.max(1);
        let (done, rate) = (unit.show(done), unit.show(rate as u64));
        // There is nobody to tell if standard error is closed.
        let _ = writeln!(
            std::io::stderr(),
            "{}: {done}, {percent} %, {rate}/s, {left:.0} s left",
            self.what
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_unless_they_say_otherwise() {
        let noon = 1_795_694_400_000;
        assert_eq!(time_ms("2026-11-26 12:00:00").unwrap(), noon);
        assert_eq!(time_ms("2026-11-26 12:00:00.25").unwrap(), noon + 250);
        assert_eq!(time_ms("2026-11-26T13:00:00+01:00").unwrap(), noon);
        assert_eq!(time_ms("2026-11-26T12:00:00Z").unwrap(), noon);
        assert_eq!(shown(noon + 250), "2026-11-26 12:00:00.250");
        assert!(time_ms("yesterday").is_err());
    }
}
