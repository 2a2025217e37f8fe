//! The beginning of an archiver: it reads what is archived, goes on where that ends, and says so
//! before it removes what an earlier archiver left behind.

use std::collections::BTreeSet;
use std::sync::Arc;

use firn_api::{FollowOptions, LogError, LogFollower, PageFilter};
use firn_base::{Environment, Lsn, PageId, SpaceId};
use firn_objects::{ObjectError, ObjectStore, put_once};

use super::log_buffer::LogBuffer;
use super::turn::{Turns, Work};
use super::{ArchiveOptions, ArchiveSource, Shared, TakenOver};
use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::format::{Gap, Manifest, SetEntry};
use crate::names;

/// How the archiver follows the log from a position.
pub(super) fn follow(from: Lsn, options: &ArchiveOptions) -> FollowOptions {
    FollowOptions {
        name: "archive".to_owned(),
        from,
        until: None,
        pages: PageFilter::All,
        hold_limit_bytes: options.hold_log_bytes,
    }
}

/// Writes a manifest.
///
/// # Errors
/// [`ArchiveError::Replaced`] if its number is taken (A2).
pub(super) fn put_manifest(
    store: &dyn ObjectStore,
    manifest: &Manifest,
) -> Result<(), ArchiveError> {
    match put_once(store, &names::manifest(manifest.number), &manifest.encode()) {
        Err(ObjectError::Exists { location, .. }) => {
            Err(ArchiveError::Replaced { location, number: manifest.number })
        }
        other => Ok(other?),
    }
}

/// The starts of the sets that clones still need.
pub(super) fn pinned(store: &dyn ObjectStore) -> Result<Vec<Lsn>, ArchiveError> {
    let mut found = Vec::new();
    for name in store.list(names::PINS)? {
        match store.get(&name) {
            Err(error) if error.is_not_found() => {}
            other => {
                let bytes = other?;
                let start = bytes.first_chunk().map(|bytes| Lsn(u64::from_le_bytes(*bytes)));
                found.extend(start);
            }
        }
    }
    Ok(found)
}

/// Reads the archive and takes it over. Blocks for I/O.
pub(super) fn begin(
    environment: &Environment,
    store: &Arc<dyn ObjectStore>,
    source: &ArchiveSource,
    options: &ArchiveOptions,
    shared: &Arc<Shared>,
) -> Result<Turns, ArchiveError> {
    let archive = match Archive::open(store) {
        Ok(archive) => Some(archive),
        Err(ArchiveError::Empty { .. }) => None,
        Err(error) => return Err(error),
    };
    let writer = environment.random.next_u64() as u32;
    let mut manifest = next_manifest(store, source, archive.as_ref(), writer)?;
    manifest.window_ms = options.window_ms;
    let (follower, from) = follow_on(environment, store, source, options, &mut manifest)?;
    let watermarks = source.writer.watermarks()?;
    let (changes, needs_full) = match &archive {
        Some(archive) => changes_since_last_set(archive, &manifest)?,
        None => (Changes::default(), true),
    };
    put_manifest(store.as_ref(), &manifest)?;
    if let Err(error) = remove_orphans(store.as_ref(), &manifest) {
        tracing::info!(%error, "objects that no manifest names stay for now");
    }
    Ok(Turns {
        environment: environment.clone(),
        store: Arc::clone(store),
        database: source.database,
        log: Arc::clone(&source.log),
        pages: Arc::clone(&source.pages),
        origin: Arc::clone(&source.writer),
        options: options.clone(),
        shared: Arc::clone(shared),
        follower,
        writer,
        manifest,
        archived: from,
        buffer: LogBuffer::new(from, watermarks),
        changed: changes.pages,
        dropped: changes.dropped,
        needs_full,
        work: Work::default(),
    })
}

/// The manifest with which this archiver takes the archive over.
fn next_manifest(
    store: &Arc<dyn ObjectStore>,
    source: &ArchiveSource,
    archive: Option<&Archive>,
    writer: u32,
) -> Result<Manifest, ArchiveError> {
    let epoch = source.epoch;
    let Some(archive) = archive else {
        return Ok(Manifest { number: 1, epoch, ..Manifest::new(source.database, writer, 0) });
    };
    let found = archive.manifest().database;
    if found != source.database {
        let (location, wanted) = (store.location().to_owned(), source.database);
        return Err(ArchiveError::OtherDatabase { location, found, wanted });
    }
    let known = archive.manifest().epoch;
    if known > epoch {
        let location = store.location().to_owned();
        return Err(ArchiveError::Superseded { location, epoch, known });
    }
    if let Some(TakenOver { at, .. }) = source.taken_over.filter(|one| known < one.first_epoch)
        && let Some(archived) = archived_end(archive.manifest()).filter(|archived| *archived > at)
    {
        let location = store.location().to_owned();
        return Err(ArchiveError::OfLostLog { location, archived, at });
    }
    let number = archive.highest + 1;
    Ok(Manifest { number, writer, epoch, ..archive.manifest().clone() })
}

/// Follows the log from where the archive ends; behind a gap, if the log there is gone.
fn follow_on(
    environment: &Environment,
    store: &Arc<dyn ObjectStore>,
    source: &ArchiveSource,
    options: &ArchiveOptions,
    manifest: &mut Manifest,
) -> Result<(Box<dyn LogFollower>, Lsn), ArchiveError> {
    let end = source.log.durable_lsn();
    let Some(archived) = archived_end(manifest) else {
        return Ok((source.log.follow(follow(end, options))?, end));
    };
    if archived > end && source.epoch > 0 {
        // Another process knew the log's end earlier than this one.
        let reason = format!("it is not known yet that the log up to {archived} is durable");
        return Err(LogError::Unavailable { reason }.into());
    }
    if archived > end {
        let location = store.location().to_owned();
        return Err(ArchiveError::Ahead { location, archived, end });
    }
    match source.log.follow(follow(archived, options)) {
        Err(LogError::OutOfRange { .. }) => {}
        other => return Ok((other?, archived)),
    }
    let follower = source.log.follow(follow(end, options))?;
    let gap = Gap {
        from: archived,
        to: end,
        from_ms: manifest.as_of_ms,
        to_ms: environment.clock.wall_time_ms(),
    };
    tracing::error!(from = %gap.from, to = %gap.to, "log was written without the archive and is gone; no moment of it can be restored");
    manifest.gaps.push(gap);
    Ok((follower, end))
}

/// Where the archive goes on; `None` if it has nothing yet.
fn archived_end(manifest: &Manifest) -> Option<Lsn> {
    let archived = manifest.log_end().or(manifest.sets.last().map(|set| set.start));
    // After a gap without log behind it, the archive goes on there.
    archived.max(manifest.gaps.last().map(|gap| gap.to))
}

/// What changed since the last set.
#[derive(Default)]
struct Changes {
    pages: BTreeSet<PageId>,
    dropped: BTreeSet<SpaceId>,
}

/// What the archived log behind the last set changes; true if only a full set can follow.
fn changes_since_last_set(
    archive: &Archive,
    manifest: &Manifest,
) -> Result<(Changes, bool), ArchiveError> {
    let mut changes = Changes::default();
    let Some(last) = manifest.sets.last() else { return Ok((changes, true)) };
    if manifest.gaps.iter().any(|gap| gap.to > last.start) {
        return Ok((changes, true));
    }
    for entry in manifest.log.iter().filter(|entry| entry.to > last.start) {
        match archive.log_head(entry) {
            Ok(head) => {
                changes.pages.extend(head.pages);
                changes.dropped.extend(head.dropped);
            }
            Err(ArchiveError::Damaged { location, name, reason }) => {
                tracing::error!(
                    location,
                    name,
                    reason,
                    "an archived object is damaged; a full set of images begins"
                );
                return Ok((Changes::default(), true));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((changes, false))
}

/// Removes the objects that an earlier archiver wrote and no manifest names. That archiver cannot
/// write another manifest (A2), so nothing will name them.
fn remove_orphans(store: &dyn ObjectStore, manifest: &Manifest) -> Result<(), ArchiveError> {
    let log: BTreeSet<String> = manifest.log.iter().map(names::log).collect();
    let sets: BTreeSet<String> = manifest.sets.iter().map(names::set_of).collect();
    let is_of_set = |name: &String| {
        let is_of = |set: &SetEntry| names::is_pack_of(name, set.start, set.writer);
        manifest.sets.iter().any(is_of)
    };
    let mut orphans = store.list(names::LOG)?;
    orphans.retain(|name| !log.contains(name));
    orphans.extend(store.list(names::SETS)?.into_iter().filter(|name| !sets.contains(name)));
    orphans.extend(store.list(names::PAGES)?.into_iter().filter(|name| !is_of_set(name)));
    orphans.iter().try_for_each(|name| Ok(store.delete(name)?))
}
