//! Opening: the sum of the page map's batches, and a check that it is plausible.

use std::collections::BTreeMap;

use firn_api::PageStoreError;
use firn_base::{Lsn, PageId, SpaceId};

use super::allocator::SlotAllocator;
use super::map_format::Batch;
use super::slots::{SlotFiles, SlotNo};
use super::table::Contents;
use super::version::{Version, Versions, prune};

/// Adds up the batches.
#[derive(Debug, Default)]
pub(super) struct MapLoader {
    contents: Contents,
    /// Slots of versions that a later batch made unnecessary; other versions may be in them by now.
    freed: Vec<SlotNo>,
}

impl MapLoader {
    /// Adds the next batch.
    pub(super) fn accept(&mut self, batch: Batch) -> Result<(), String> {
        let contents = &mut self.contents;
        contents.applied = contents.applied.max(batch.applied);
        let images = batch.puts.iter().map(|(_, version)| version.lsn.max(version.since));
        let drops = batch.drops.iter().map(|(_, end)| *end);
        let named = [batch.applied, batch.horizon].into_iter().chain(images).chain(drops);
        contents.newest_named = named.fold(contents.newest_named, Lsn::max);
        contents.horizon = contents.horizon.max(batch.horizon);
        contents.dropped.extend(batch.drops);
        for (page, version) in batch.puts {
            let versions = contents.versions.entry(page).or_default();
            put(versions, version).map_err(|reason| format!("{page}: {reason}"))?;
            prune(versions, contents.horizon, &mut self.freed);
            self.freed.clear();
        }
        Ok(())
    }

    /// The content of the whole map; reads before the horizon are no longer served.
    pub(super) fn finish(mut self) -> Contents {
        let horizon = self.contents.horizon;
        let gone = |space: &SpaceId, dropped: &rustc_hash::FxHashMap<SpaceId, Lsn>| {
            dropped.get(space).is_some_and(|end| *end <= horizon)
        };
        let dropped = &self.contents.dropped;
        self.contents.versions.retain(|page, _| !gone(&page.space, dropped));
        for versions in self.contents.versions.values_mut() {
            prune(versions, horizon, &mut self.freed);
        }
        self.contents
    }
}

fn put(versions: &mut Versions, version: Version) -> Result<(), String> {
    match versions.last_mut() {
        Some(newest) if newest.lsn > version.lsn => {
            Err(format!("the image as of {} comes after that of {}", version.lsn, newest.lsn))
        }
        Some(newest) if newest.lsn == version.lsn => {
            *newest = version;
            Ok(())
        }
        _ => {
            versions.push(version);
            Ok(())
        }
    }
}

/// Marks the slots that the map names.
///
/// # Errors
/// If a slot is named twice or is not in any file.
pub(super) fn take_named_slots(
    versions: &BTreeMap<PageId, Versions>,
    files: &SlotFiles,
    total: u32,
) -> Result<SlotAllocator, PageStoreError> {
    let mut slots = SlotAllocator::new(total);
    for (page, versions) in versions {
        for version in versions {
            if !slots.take(version.slot) {
                let reason = if version.slot.0 < total {
                    "the page map names this slot for two images"
                } else {
                    "the file ends before this slot"
                };
                let place = files.place(version.slot);
                let reason = reason.to_owned();
                return Err(PageStoreError::Damaged { page: *page, place, reason });
            }
        }
    }
    Ok(slots)
}
