//! The names of an archive's objects. A writer's number is a part of most of them, so that two
//! writers never make different objects of one name.

use firn_base::Lsn;
use firn_storage::local::DatabaseId;

use crate::format::{LogEntry, SetEntry};

pub(crate) const MANIFESTS: &str = "manifest";
pub(crate) const LOG: &str = "log";
pub(crate) const PAGES: &str = "pages";
pub(crate) const SETS: &str = "sets";
pub(crate) const PINS: &str = "pins";

pub(crate) fn manifest(number: u64) -> String {
    format!("{MANIFESTS}/{number:016x}")
}

/// The number of the manifest with this name.
pub(crate) fn manifest_number(name: &str) -> Option<u64> {
    let leaf = name.strip_prefix(MANIFESTS)?.strip_prefix('/')?;
    (leaf.len() == 16).then(|| u64::from_str_radix(leaf, 16).ok())?
}

pub(crate) fn log(entry: &LogEntry) -> String {
    format!("{LOG}/{:016x}-{:016x}-{:08x}", entry.from.0, entry.to.0, entry.writer)
}

pub(crate) fn set(start: Lsn, writer: u32) -> String {
    format!("{SETS}/{:016x}-{writer:08x}", start.0)
}

pub(crate) fn set_of(entry: &SetEntry) -> String {
    set(entry.start, entry.writer)
}

pub(crate) fn pack(start: Lsn, writer: u32, number: usize) -> String {
    format!("{PAGES}/{:016x}-{number:06x}-{writer:08x}", start.0)
}

/// Whether this is the name of a pack of that set.
pub(crate) fn is_pack_of(name: &str, start: Lsn, writer: u32) -> bool {
    name.starts_with(&format!("{PAGES}/{:016x}-", start.0))
        && name.ends_with(&format!("-{writer:08x}"))
}

/// Written by a clone as long as it needs a set. Its content is the set's start, eight bytes.
pub(crate) fn pin(database: DatabaseId) -> String {
    format!("{PINS}/{database}")
}
