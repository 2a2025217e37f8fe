//! Commands that look at a node without running it.

use std::io::Write;
use std::path::Path;

use firn_api::{LogStore, PageStore};
use firn_base::disk::Disk;
use firn_base::{Environment, Lsn};
use firn_format::redo::{Change, Group};
use firn_storage::local::LocalStorage;

use crate::CommandError;
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

/// How much log is read at once, in bytes.
const LOG_READ_BYTES: usize = 4 << 20;

/// Reads everything in the data directory and checks it: each record of the log that is kept, each stored
/// page. Brings the pages up to date first. Blocks for I/O.
///
/// # Errors
/// The first damage, or that there is no database.
pub(crate) fn verify(
    configuration: &Configuration,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let environment = Environment::system();
    require_database(environment.disk.as_ref(), &configuration.data_dir.value)?;
    let path = &configuration.data_dir.value;
    let storage = LocalStorage::open(&environment, path, configuration.storage_options())?;
    let outcome = verify_storage(&storage, out);
    storage.close();
    outcome
}

fn verify_storage(storage: &LocalStorage, out: &mut dyn Write) -> Result<(), CommandError> {
    let records = verify_log(storage)?;
    let (from, to) = (storage.log.truncated_lsn(), storage.log.durable_lsn());
    writeln!(out, "log: {records} records, from {from} to {to}")?;
    storage.pages.materialise_up_to(to)?;
    let images = storage.pages.verify_all(&mut |_| {})?;
    writeln!(out, "pages: {images} images, up to date to {}", storage.pages.applied_lsn())?;
    writeln!(out, "no damage found")?;
    Ok(())
}

/// Opening a directory would make a database in it; whoever checks one wants it to be there.
fn require_database(disk: &dyn Disk, path: &Path) -> Result<(), CommandError> {
    let is_empty = disk.list(path).map(|names| names.is_empty());
    match is_empty {
        Ok(false) => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Err(CommandError::NoDatabase(path.to_owned())),
    }
}

/// Counts the records of the log that is kept, and makes sure that each can be taken apart.
fn verify_log(storage: &LocalStorage) -> Result<u64, CommandError> {
    let (mut position, end) = (storage.log.truncated_lsn(), storage.log.durable_lsn());
    let (mut bytes, mut records) = (Vec::new(), 0);
    while position < end {
        bytes.clear();
        let next = storage.log.read(position, LOG_READ_BYTES, &mut bytes)?;
        records += verify_groups(position, &bytes)?;
        position = next;
    }
    Ok(records)
}

/// Counts the records of the whole groups in `bytes`, which begin at `position`.
fn verify_groups(mut position: Lsn, bytes: &[u8]) -> Result<u64, CommandError> {
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
