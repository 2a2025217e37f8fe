//! Entry sectors: the entries of a group's log, as a member's segment files list them.
//!
//! ```text
//!   0  u32  crc32c of bytes 4..512            an entry
//!   4  u16  bytes of the entries               0  u8   1 mark, 2 log, 3 change of members
//!   6  u16  number of entries, at least 1      1  u8   number of changes of members
//!   8  u64  index of the first entry           2  u16  zero
//!  16  u64  LSN where that entry begins        4  u32  crc32c of its log; else zero
//!  24  u64  first LSN of the segment           8  u64  term
//!  32  u32  incarnation                       16  u64  bytes of log; else zero
//!  36  u32  magic "ENTR"                      24       the changes
//!  40  u64  last entry known to be synced
//!  48  u64  last entry known to be durable    a change of members
//!           in the group                       0  u64  member
//!  56       entries, then zeros up to 512      8  u8   0 removed, 1 voter, 2 logger, 3 learner
//!                                              9       zeros up to 16
//! ```
//!
//! Entries follow each other without a gap, in indexes and in the log, so an entry says neither its
//! index nor where it begins.

use firn_base::Lsn;
use firn_base::disk::SECTOR_BYTES;
use firn_consensus::{Content, Entry, Index, MemberChange, MemberId, Role, Term};

/// Bytes of a sector before its entries.
const HEAD_BYTES: usize = 56;
/// Bytes of an entry without changes of members.
const ENTRY_BYTES: usize = 24;
const CHANGE_BYTES: usize = 16;
/// Bytes of entries that a sector takes.
const ROOM_BYTES: usize = SECTOR_BYTES - HEAD_BYTES;
const MAGIC: &[u8; 4] = b"ENTR";

const MARK: u8 = 1;
const LOG: u8 = 2;
const MEMBERS: u8 = 3;

/// Entries that stand in one sector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntrySector {
    /// The first LSN of the segment: an earlier use of the file has another one.
    pub(super) segment: Lsn,
    /// The incarnation of the log that wrote the sector.
    pub(super) incarnation: u32,
    /// Index of the first entry.
    pub(super) first: Index,
    /// Where the first entry begins.
    pub(super) start: Lsn,
    /// The last entry that was synced when the sector was written.
    pub(super) synced: Index,
    /// The last entry that was known to be durable in the group.
    pub(super) durable: Index,
    pub(super) entries: Vec<Entry>,
}

impl EntrySector {
    /// Whether another entry fits.
    pub(super) fn has_room_for(&self, entry: &Entry) -> bool {
        let used: usize = self.entries.iter().map(entry_bytes).sum();
        used + entry_bytes(entry) <= ROOM_BYTES
    }

    /// Index of the entry behind the last one.
    pub(super) fn next(&self) -> Index {
        Index(self.first.0 + self.entries.len() as u64)
    }

    /// Where the log is after the last entry.
    pub(super) fn end(&self) -> Lsn {
        self.entries.last().map_or(self.start, Entry::end)
    }

    /// The sector to write.
    ///
    /// # Panics
    /// If the entries do not fit.
    pub(super) fn encode(&self) -> [u8; SECTOR_BYTES] {
        let mut body = Vec::with_capacity(ROOM_BYTES);
        self.entries.iter().for_each(|entry| encode_entry(entry, &mut body));
        let mut bytes = [0; SECTOR_BYTES];
        bytes[4..6].copy_from_slice(&(body.len() as u16).to_le_bytes());
        bytes[6..8].copy_from_slice(&(self.entries.len() as u16).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.start.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.segment.0.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[36..40].copy_from_slice(MAGIC);
        bytes[40..48].copy_from_slice(&self.synced.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.durable.0.to_le_bytes());
        bytes[HEAD_BYTES..HEAD_BYTES + body.len()].copy_from_slice(&body);
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[0..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a sector. `None` for all other bytes.
    pub(super) fn decode(bytes: &[u8; SECTOR_BYTES]) -> Option<EntrySector> {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if half(0) != crc32c::crc32c(&bytes[4..]) || bytes[36..40] != MAGIC[..] {
            return None;
        }
        let (length, count) = ((half(4) & 0xffff) as usize, half(4) >> 16);
        let mut sector = EntrySector {
            segment: Lsn(word(24)),
            incarnation: half(32),
            first: Index(word(8)),
            start: Lsn(word(16)),
            synced: Index(word(40)),
            durable: Index(word(48)),
            entries: Vec::new(),
        };
        sector.first.0.checked_add(u64::from(count))?;
        let (mut body, zeros) = bytes[HEAD_BYTES..].split_at_checked(length)?;
        for _ in 0..count {
            let entry = decode_entry(&mut body, sector.next(), sector.end())?;
            sector.entries.push(entry);
        }
        let is_whole = count > 0 && body.is_empty() && zeros.iter().all(|byte| *byte == 0);
        is_whole.then_some(sector)
    }
}

/// How many sectors these entries take at most, in a segment that has some already.
pub(super) fn sectors_for(entries: &[Entry]) -> u32 {
    let bytes: usize = entries.iter().map(entry_bytes).sum();
    let largest = entries.iter().map(entry_bytes).max().unwrap_or(ENTRY_BYTES);
    // Every sector but the last is filled so far that the largest entry would not fit.
    (bytes.div_ceil(ROOM_BYTES - largest.min(ROOM_BYTES - ENTRY_BYTES)) + 1) as u32
}

/// Whether an entry fits into a sector at all.
pub(super) fn can_be_written(entry: &Entry) -> bool {
    entry_bytes(entry) <= ROOM_BYTES
}

fn entry_bytes(entry: &Entry) -> usize {
    match &entry.content {
        Content::Mark | Content::Log { .. } => ENTRY_BYTES,
        Content::Members(changes) => ENTRY_BYTES + changes.len() * CHANGE_BYTES,
    }
}

fn encode_entry(entry: &Entry, into: &mut Vec<u8>) {
    let none: &[MemberChange] = &[];
    let (kind, bytes, checksum, changes) = match &entry.content {
        Content::Mark => (MARK, 0, 0, none),
        Content::Log { bytes, checksum } => (LOG, *bytes, *checksum, none),
        Content::Members(changes) => (MEMBERS, 0, 0, changes.as_slice()),
    };
    into.extend_from_slice(&[kind, changes.len() as u8, 0, 0]);
    into.extend_from_slice(&checksum.to_le_bytes());
    into.extend_from_slice(&entry.term.0.to_le_bytes());
    into.extend_from_slice(&bytes.to_le_bytes());
    for change in changes {
        let role = match change {
            MemberChange::Remove(_) => 0,
            MemberChange::Set(_, role) => role_number(*role),
        };
        put_member(change.member(), role, into);
    }
}

fn decode_entry(body: &mut &[u8], index: Index, start: Lsn) -> Option<Entry> {
    let (head, mut rest) = body.split_first_chunk::<ENTRY_BYTES>()?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    let (kind, count, checksum) = (head[0], head[1], (word(0) >> 32) as u32);
    let (term, bytes) = (Term(word(8)), word(16));
    let mut changes = Vec::new();
    for _ in 0..count {
        let (id, role) = take_member(&mut rest)?;
        changes.push(match role {
            0 => MemberChange::Remove(id),
            number => MemberChange::Set(id, role_of(number)?),
        });
    }
    let is_bare = bytes == 0 && checksum == 0;
    let content = match kind {
        MARK if is_bare && changes.is_empty() => Content::Mark,
        LOG if bytes > 0 && changes.is_empty() => Content::Log { bytes, checksum },
        MEMBERS if is_bare => Content::Members(changes),
        _ => return None,
    };
    start.0.checked_add(bytes)?;
    *body = rest;
    (head[2..4] == [0, 0]).then_some(Entry { index, term, start, content })
}

/// Appends a member and the number of its role, 16 bytes.
pub(super) fn put_member(id: MemberId, role: u8, into: &mut Vec<u8>) {
    into.extend_from_slice(&id.0.to_le_bytes());
    into.extend_from_slice(&[role, 0, 0, 0, 0, 0, 0, 0]);
}

/// Takes what [`put_member`] appended.
pub(super) fn take_member(input: &mut &[u8]) -> Option<(MemberId, u8)> {
    let (bytes, rest) = input.split_first_chunk::<CHANGE_BYTES>()?;
    *input = rest;
    let id = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    let is_valid = id != 0 && bytes[9..].iter().all(|byte| *byte == 0);
    is_valid.then_some((MemberId(id), bytes[8]))
}

pub(super) fn role_number(role: Role) -> u8 {
    match role {
        Role::Voter => 1,
        Role::Logger => 2,
        Role::Learner => 3,
    }
}

pub(super) fn role_of(number: u8) -> Option<Role> {
    match number {
        1 => Some(Role::Voter),
        2 => Some(Role::Logger),
        3 => Some(Role::Learner),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
