//! The log in memory.

use firn_consensus::{MemberId, Members, Role};
use firn_control::{ClusterId, Settings};

use super::*;

fn stored(index: u64, term: u64, start: u64, bytes: &[u8]) -> StoredEntry {
    let content = match bytes {
        [] => Content::Mark,
        bytes => Content::Log { bytes: bytes.len() as u64, checksum: crc32c::crc32c(bytes) },
    };
    let (index, term, start) = (Index(index), Term(term), Lsn(start));
    StoredEntry { entry: Entry { index, term, start, content }, bytes: bytes.to_vec() }
}

fn founding() -> Whole {
    let members = [1, 2, 3].map(|id| (MemberId(id), Role::Voter));
    let catalog = Catalog::new(ClusterId(7), Settings::default()).unwrap();
    Whole::founding(Members::new(members).unwrap(), &catalog)
}

fn write(truncate: Option<u64>, append: Vec<StoredEntry>) -> StoredWrite {
    let truncate = truncate.map(Index);
    StoredWrite { vote: None, truncate, append, durable: Index(1) }
}

#[test]
fn truncated_entries_are_gone_from_memory() {
    let mut log = Log::new(founding());
    log.take(&write(None, vec![stored(2, 1, 8, b"abc"), stored(3, 1, 11, b"d")]));
    let replaced = stored(2, 2, 8, b"");
    log.take(&write(Some(2), vec![replaced.clone()]));
    assert_eq!(log.entries.values().collect::<Vec<_>>(), [&replaced]);
    assert_eq!(log.bytes_of(&replaced.entry), Some(&b""[..]));
    assert_eq!(log.bytes_of(&stored(2, 1, 8, b"abc").entry), None);
}

#[test]
fn only_what_is_in_the_catalog_is_released() {
    let mut log = Log::new(founding());
    let entries = vec![stored(2, 1, 8, b"abc"), stored(3, 1, 11, b"d"), stored(4, 1, 12, b"")];
    log.take(&write(None, entries.clone()));
    log.base.pass(&entries[0].entry);
    log.base.pass(&entries[1].entry);
    log.release(Lsn(11));
    assert_eq!(log.entries.keys().copied().collect::<Vec<_>>(), [Index(3), Index(4)]);
    log.release(Lsn::MAX);
    assert_eq!(log.entries.keys().copied().collect::<Vec<_>>(), [Index(4)]);
}
