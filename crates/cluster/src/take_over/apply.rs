//! A node carries an order out, before any of its parts is open.

use std::path::Path;
use std::sync::Arc;

use firn_base::Environment;
use firn_base::disk::Disk;
use firn_consensus::take_over;
use firn_control_service::Place;
use firn_storage::group::{GroupLog, MemberLog};
use firn_storage::local::{LocalDirectory, LogOptions, OpenError};

use super::{FILE_NAME, TakeOverOrder};
use crate::framed_file::{delete_below, remove};
use crate::layout::catalog::FOUNDED_EPOCH;
use crate::layout::parts::HeldPart;
use crate::log_member::database_of;
use crate::record::{MemberPlace, Record, RecordError, RecordFile};

/// Why an order is not carried out. The next start tries again.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("{}: {source}", path.display())]
    Io { path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Log(#[from] OpenError),
    #[error("{} has an order to take over and no node", .0.display())]
    NoNode(std::path::PathBuf),
}

/// Carries out the order that the directory has, if it has one. Blocks for I/O.
///
/// # Errors
/// [`ApplyError`]
pub(crate) fn apply(
    environment: &Environment,
    directory: &Path,
    options: LogOptions,
) -> Result<(), ApplyError> {
    let disk = &environment.disk;
    let at = |source| ApplyError::Io { path: directory.join(FILE_NAME), source };
    let Some(order) = TakeOverOrder::read(&**disk, directory).map_err(at)? else { return Ok(()) };
    let record = RecordFile::read(&**disk, directory)?;
    let record = record.ok_or_else(|| ApplyError::NoNode(directory.to_owned()))?;
    if record.generation < order.generation {
        // The lock keeps other processes away until all is done.
        let file = RecordFile::write(disk, directory, record)?;
        let record = file.get();
        // The catalog of before is that of nodes that are gone.
        if let Some(place) = record.control_member {
            delete_below(&**disk, &Place::from(place).directory(directory));
        }
        let place = place(&order, &record);
        change_log(environment, directory, (&order, &record, place), options)?;
        file.change(|record| go_on(record, &order, place))?;
        tracing::info!(generation = order.generation, "this node goes on without other zones");
    }
    remove(&**disk, &directory.join(FILE_NAME)).map_err(at)
}

/// The member that the node has from now on. It goes on with the log of the one of before.
fn place(order: &TakeOverOrder, record: &Record) -> Option<MemberPlace> {
    let member = order.layout.log_member_on(record.number?)?;
    let new = MemberPlace { member, is_founder: false, is_made: false };
    Some(record.log_member.map_or(new, |before| MemberPlace { member, ..before }))
}

fn change_log(
    environment: &Environment,
    directory: &Path,
    (order, record, place): (&TakeOverOrder, &Record, Option<MemberPlace>),
    options: LogOptions,
) -> Result<(), ApplyError> {
    let disk = &*environment.disk;
    let Some(before) = record.log_member else { return Ok(()) };
    let Some(place) = place else {
        before.directories(directory).iter().for_each(|path| delete_below(disk, path));
        return Ok(());
    };
    for (from, to) in before.directories(directory).iter().zip(place.directories(directory)) {
        if *from != to && exists(disk, from) {
            let at = |source| ApplyError::Io { path: to.clone(), source };
            disk.rename(from, &to).and_then(|()| disk.sync_directory(directory)).map_err(at)?;
        }
    }
    if record.number == Some(order.leader) && place.is_made {
        let [path, _] = place.directories(directory);
        let files =
            LocalDirectory::open_for(environment, &path, database_of(order.layout.cluster))?;
        let log = Arc::new(GroupLog::open_again(&files, options)?);
        let write = take_over(&log.saved(), &order.layout.members());
        let written = write.map_or(Ok(()), |write| {
            log.write(&write, &[])?;
            log.sync()
        });
        log.close();
        written.map_err(OpenError::from)?;
    }
    Ok(())
}

fn exists(disk: &dyn Disk, directory: &Path) -> bool {
    disk.list(directory).is_ok_and(|names| !names.is_empty())
}

/// The node of the cluster that goes on.
fn go_on(record: &mut Record, order: &TakeOverOrder, place: Option<MemberPlace>) {
    record.left = record.log_member.map(|before| before.member).or(record.left);
    record.log_member = place;
    (record.control_member, record.control_left) = (None, None);
    (record.generation, record.taken_over_at) = (order.generation, order.position);
    let own: Vec<_> = record.number.iter().flat_map(|own| order.layout.chunks_on(*own)).collect();
    // A node that heard of a later cut than the others do lacks what the chunk has for them.
    let is_whole = |chunk, part: &HeldPart| {
        order.layout.held_part(chunk).is_some_and(|whole| part.covers(&whole))
    };
    record.note_parts(&order.layout);
    record.parts.retain(|chunk, part| own.contains(chunk) && is_whole(*chunk, part));
    record.held.retain(|chunk, _| record.parts.contains_key(chunk));
    record.held.values_mut().for_each(|epoch| *epoch = FOUNDED_EPOCH);
    let control = order.layout.control_members();
    record.told = control.map(|(_, node)| node.address.clone()).collect();
    record.layout = Some(order.layout.clone());
}
