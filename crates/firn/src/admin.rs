//! Commands that inspect a node without running it.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogStore, WriterEpoch};
use firn_base::disk::Disk;
use firn_base::task::sleep;
use firn_base::{Environment, Lsn};
use firn_cluster::StoppedNode;
use firn_format::redo::{Change, Group};
use firn_node::node::Node;
use firn_sql_collation::Collations;
use firn_storage::local::{LocalStorage, LogOptions};
use firn_storage::page_node::VerifiedPages;

use crate::CommandError;
use crate::archived::open_local;
use crate::configuration::Configuration;

/// Prints a line for each setting: name, value, origin.
///
/// # Errors
/// If `out` cannot be written.
pub(crate) fn print_configuration(
    configuration: &Configuration,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let rows = configuration.rows();
    let width = |column: fn(&(&str, String, String)) -> usize, rows: &[_]| {
        rows.iter().map(column).max().unwrap_or(0)
    };
    let rows = rows.map(|(name, value, origin)| (name, value, origin.to_string()));
    let name_width = width(|row| row.0.chars().count(), &rows);
    let value_width = width(|row| row.1.chars().count(), &rows);
    for (name, value, origin) in rows {
        writeln!(out, "{name:name_width$}  {value:value_width$}  {origin}")?;
    }
    for variable in &configuration.unknown_variables {
        writeln!(out, "{variable} names no setting and is ignored")?;
    }
    Ok(())
}

/// Bytes of log that are read at once.
const LOG_READ_BYTES: usize = 4 << 20;

/// Reads and checks everything in the data directory: each record of the log that is kept, each
/// stored page, and then every tree, undo chain, allocation map and index entry. Before that it
/// brings the pages up to date and rolls unfinished transactions back. Of a node of a cluster, it
/// checks the files. Blocks for I/O.
///
/// # Errors
/// If there is damage, or no database.
pub(crate) fn check(
    configuration: &Configuration,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let environment = Environment::system();
    let path = &configuration.data_dir.value;
    require_database(environment.disk.as_ref(), path)?;
    let options = configuration.node_options();
    if firn_cluster::is_node_directory(&*environment.disk, path) {
        let node = StoppedNode::open(&environment, path)?;
        return check_node(&node, options.storage.log, out);
    }
    let storage = open_local(&environment, path, options.storage.clone())?;
    let opened = Arc::new(storage.clone());
    let node = Node::open_over(&environment, opened, WriterEpoch::Next, &options)?;
    let began = environment.clock.monotonic();
    let seconds = || (environment.clock.monotonic().saturating_sub(began)).as_secs_f64();
    let outcome = check_storage(&storage, out).and_then(|()| check_engine(&node, &seconds, out));
    node.close()?;
    outcome
}

fn check_engine(
    node: &Node,
    seconds: &dyn Fn() -> f64,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    while node.engine().losers_left() > 0 {
        sleep(Duration::from_millis(10));
    }
    let dictionary = node.engine().open_dictionary(Arc::new(Collations))?;
    let report = firn_engine::check::check(&dictionary, &mut |report| {
        let rate = report.pages as f64 / seconds().max(0.001);
        tracing::info!(pages = report.pages, problems = report.problems.count, rate, "checking");
        true
    })?;
    writeln!(
        out,
        "engine: {} pages of {} spaces, {} trees, {} records, {} index entries, {} long values",
        report.pages, report.spaces, report.trees, report.records, report.entries, report.chains,
    )?;
    if report.leaked_pages > 0 {
        writeln!(
            out,
            "{} pages are marked as used, but nothing refers to them",
            report.leaked_pages
        )?;
    }
    for problem in &report.problems.first {
        writeln!(out, "{problem}")?;
    }
    match report.problems.count {
        0 => Ok(writeln!(out, "no damage found")?),
        problems => Err(CommandError::Damage { problems }),
    }
}

fn check_storage(storage: &LocalStorage, out: &mut dyn Write) -> Result<(), CommandError> {
    let to = check_log(&*storage.log, out)?;
    storage.pages.materialise_up_to(to)?;
    storage.pages.copy_base(&mut |_| {})?;
    let images = storage.pages.verify_all(&mut |_| {})?;
    writeln!(out, "pages: {images} images, up to date to {}", storage.pages.status().applied_lsn)?;
    Ok(())
}

/// Checks the files of a node of a cluster. What lies across nodes is checked by the database node
/// that writes.
fn check_node(
    node: &StoppedNode,
    log: LogOptions,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    writeln!(out, "node {} of a cluster", node.name())?;
    if let Some(entries) = node.verify_control()? {
        writeln!(out, "control: {entries} entries behind the catalog")?;
    }
    if let Some(group) = node.open_log(log)? {
        check_log(&*group.log(), out)?;
    }
    for chunk in node.chunks() {
        let pages = node.verify_chunk(chunk, &mut |images| {
            tracing::info!(chunk = chunk.0, images, "checking");
        })?;
        let VerifiedPages { images, applied } = pages;
        writeln!(out, "chunk {}: {images} images, up to date to {applied}", chunk.0)?;
    }
    let tables = "CHECK TABLE at a running node checks tables and indexes";
    Ok(writeln!(out, "no damage found in the node's files; {tables}")?)
}

/// Fails without a database: opening the directory would create one.
fn require_database(disk: &dyn Disk, path: &Path) -> Result<(), CommandError> {
    let is_empty = disk.list(path).map(|names| names.is_empty());
    match is_empty {
        Ok(false) => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Err(CommandError::NoDatabase(path.to_owned())),
    }
}

/// Checks that each record of the log that is kept can be decoded. Returns the log's end.
fn check_log(log: &dyn LogStore, out: &mut dyn Write) -> Result<Lsn, CommandError> {
    let (from, to) = (log.truncated_lsn(), log.durable_lsn());
    let (mut position, mut bytes, mut records) = (from, Vec::new(), 0);
    while position < to {
        bytes.clear();
        let next = log.read(position, LOG_READ_BYTES, &mut bytes)?;
        records += check_groups(position, &bytes)?;
        position = next;
    }
    writeln!(out, "log: {records} records, from {from} to {to}")?;
    Ok(to)
}

/// Counts the records of the whole groups in `bytes`, which begin at `position`.
fn check_groups(mut position: Lsn, bytes: &[u8]) -> Result<u64, CommandError> {
    let (mut rest, mut records) = (bytes, 0);
    while !rest.is_empty() {
        let damaged = |what: String| CommandError::DamagedGroup { position, what };
        let group = Group::parse(rest).map_err(|damage| damaged(damage.to_string()))?;
        for record in group.records() {
            let record = record.map_err(|damage| damaged(damage.to_string()))?;
            Change::decode(&record).map_err(|damage| damaged(damage.to_string()))?;
            records += 1;
        }
        rest = &rest[group.length_bytes() as usize..];
        position = position.advance(group.length_bytes());
    }
    Ok(records)
}
