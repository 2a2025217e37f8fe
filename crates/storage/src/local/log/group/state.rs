//! The state of a group's member beside its log: vote, base, and where the log was last cut.
//!
//! ```text
//!   group.state, 8192 bytes:   slot 0 │ slot 1       written in turn; the valid one with the
//!                                                    higher sequence counts
//!   a slot, 4096 bytes
//!     0  magic "FIRNGRP\0"                 64  u64  index of the base
//!     8  u16  version                      72  u64  term of the base
//!    10  u16  log stream                   80  u64  LSN of the base
//!    12  u32  incarnation                  88  u32  incarnation of the base's sector
//!    16  database id, 16 bytes             92  u16  members of the base
//!    32  u64  sequence                     94  u16  members before; 0xffff: no change is under way
//!    40  u64  term of the vote             96  u64  index of the end
//!    48  u64  member of the vote; 0: none 104  u64  LSN of the end
//!    56  u64  last entry known to be      112  u8   1: make the log again at the base
//!             durable in the group        113       zeros
//!                                         120  u64  transaction id limit   ┐ highest known
//!                                         128  u64  commit timestamp limit ┘ before the base
//!                                         136       members, then members before, 16 bytes each
//!                                        4092  u32  crc32c of bytes 0..4092
//! ```
//!
//! A member is written as in [`super::sector`], with its role.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::Watermarks;
use firn_base::disk::{Disk, File, OpenMode};
use firn_base::{Cts, LogStreamId, Lsn, TrxId};
use firn_consensus::{Base, Index, MemberId, Members, Term, Vote};

use super::sector::{put_member, role_number, role_of, take_member};
use crate::local::directory::DatabaseId;
use crate::local::log::keeper::NEW_SUFFIX;
use crate::local::log::recovery::GROUP_FILE;

const SLOT_BYTES: usize = 4096;
const CHECKSUM_OFFSET: usize = SLOT_BYTES - 4;
const MEMBERS_OFFSET: usize = 136;
const MAGIC: &[u8; 8] = b"FIRNGRP\0";
const STATE_VERSION: u16 = 1;
const NO_CHANGE: u16 = u16::MAX;
/// What is saved of a member beside its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::local::log) struct GroupState {
    pub(super) stream: LogStreamId,
    pub(super) database: DatabaseId,
    /// No block and no sector has a higher incarnation.
    pub(super) incarnation: u32,
    pub(super) vote: Vote,
    pub(super) base: Base,
    /// The incarnation of the sector in which the base entry stood: no later sector has a lower
    /// one.
    pub(super) base_incarnation: u32,
    /// The first entry, and its start, that is not part of the log unless a sector of `incarnation`
    /// has it. All before it is synced.
    pub(super) end: (Index, Lsn),
    /// The last entry known to be durable in the group.
    pub(super) durable: Index,
    /// The segment files are of an earlier log: they go, and the log begins at the base.
    pub(super) is_restarting: bool,
    /// The highest watermarks that were known when the log was made again.
    pub(super) watermarks: Watermarks,
}

impl GroupState {
    fn encode(&self, sequence: u64) -> Result<[u8; SLOT_BYTES], String> {
        let mut bytes = [0; SLOT_BYTES];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&STATE_VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.stream.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database.0);
        let words = [
            sequence,
            self.vote.term.0,
            self.vote.member.map_or(0, |id| id.0),
            self.durable.0,
            self.base.index.0,
            self.base.term.0,
            self.base.lsn.0,
        ];
        put_words(&mut bytes[32..88], &words);
        bytes[88..92].copy_from_slice(&self.base_incarnation.to_le_bytes());
        let before = self.base.before.as_ref();
        let count = |members: &Members| members.iter().count() as u16;
        bytes[92..94].copy_from_slice(&count(&self.base.members).to_le_bytes());
        bytes[94..96].copy_from_slice(&before.map_or(NO_CHANGE, count).to_le_bytes());
        put_words(&mut bytes[96..112], &[self.end.0.0, self.end.1.0]);
        bytes[112] = u8::from(self.is_restarting);
        let limits = [self.watermarks.trx_id_limit.0, self.watermarks.cts_limit.0];
        put_words(&mut bytes[120..136], &limits);
        let mut members = Vec::new();
        let all =
            self.base.members.iter().chain(before.into_iter().flat_map(|members| members.iter()));
        all.for_each(|(id, role)| put_member(id, role_number(role), &mut members));
        let room = bytes.get_mut(MEMBERS_OFFSET..MEMBERS_OFFSET + members.len());
        let room = room.filter(|_| MEMBERS_OFFSET + members.len() <= CHECKSUM_OFFSET);
        room.ok_or("the group has too many members")?.copy_from_slice(&members);
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM_OFFSET]);
        bytes[CHECKSUM_OFFSET..].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    /// Decodes a slot, with its sequence. `Ok(None)`: it was never written, or torn.
    fn decode(bytes: &[u8; SLOT_BYTES]) -> Result<Option<(u64, GroupState)>, String> {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM_OFFSET]);
        if half(CHECKSUM_OFFSET) != checksum || bytes[0..8] != MAGIC[..] {
            return Ok(None);
        }
        if short(8) != STATE_VERSION {
            return Err(format!("group version {}, this build reads {STATE_VERSION}", short(8)));
        }
        let mut input = &bytes[MEMBERS_OFFSET..CHECKSUM_OFFSET];
        let mut members = |count: u16| {
            let members = (0..count).map(|_| {
                let (id, role) = take_member(&mut input)?;
                Some((id, role_of(role)?))
            });
            let members = members.collect::<Option<Vec<_>>>()?;
            // A member that has not joined yet knows of no members.
            if members.is_empty() { Some(Members::default()) } else { Members::new(members).ok() }
        };
        let impossible = "the members in it are not possible";
        let now = members(short(92)).ok_or(impossible)?;
        let before = (short(94) != NO_CHANGE).then(|| members(short(94)).ok_or(impossible));
        let base = Base {
            index: Index(word(64)),
            term: Term(word(72)),
            lsn: Lsn(word(80)),
            members: now,
            before: before.transpose()?,
        };
        let member = Some(MemberId(word(48))).filter(|id| id.0 != 0);
        let state = GroupState {
            stream: LogStreamId(short(10)),
            database: DatabaseId(bytes[16..32].try_into().expect("16 bytes")),
            incarnation: half(12),
            vote: Vote { term: Term(word(40)), member },
            base,
            base_incarnation: half(88),
            end: (Index(word(96)), Lsn(word(104))),
            durable: Index(word(56)),
            is_restarting: bytes[112] != 0,
            watermarks: Watermarks { trx_id_limit: TrxId(word(120)), cts_limit: Cts(word(128)) },
        };
        Ok(Some((word(32), state)))
    }
}

fn put_words(into: &mut [u8], words: &[u64]) {
    for (place, word) in into.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

pub(in crate::local::log) struct StateFile {
    file: Arc<dyn File>,
    path: PathBuf,
    sequence: u64,
    state: GroupState,
}

impl StateFile {
    /// Makes the file, durably. Blocks for I/O.
    pub(super) fn create(
        disk: &dyn Disk,
        folder: &Path,
        state: GroupState,
    ) -> io::Result<StateFile> {
        let path = folder.join(GROUP_FILE);
        let new_path = folder.join(format!("{GROUP_FILE}{}", NEW_SUFFIX));
        let file = disk.open(&new_path, OpenMode::CreateNew)?;
        let sequence = 1;
        file.write_at(&state.encode(sequence).map_err(io::Error::other)?, SLOT_BYTES as u64)?;
        file.write_at(&[0; SLOT_BYTES], 0)?;
        file.sync_data()?;
        disk.rename(&new_path, &path)?;
        disk.sync_directory(folder)?;
        Ok(StateFile { file, path, sequence, state })
    }

    /// Opens the file. Blocks for I/O.
    ///
    /// # Errors
    /// The disk's error, or what is wrong with the file.
    pub(super) fn open(disk: &dyn Disk, path: &Path) -> io::Result<Result<StateFile, String>> {
        let file = disk.open(path, OpenMode::ReadWrite)?;
        let mut newest = None;
        for slot in 0..2u64 {
            let mut bytes = [0; SLOT_BYTES];
            if file.length()? < (slot + 1) * SLOT_BYTES as u64 {
                return Ok(Err("the file was cut off".to_owned()));
            }
            file.read_at(&mut bytes, slot * SLOT_BYTES as u64)?;
            match GroupState::decode(&bytes) {
                Ok(Some(found)) if newest.as_ref().is_none_or(|(best, _)| found.0 > *best) => {
                    newest = Some(found);
                }
                Ok(_) => {}
                Err(what) => return Ok(Err(what)),
            }
        }
        let path = path.to_owned();
        let opened = newest.map(|(sequence, state)| StateFile { file, path, sequence, state });
        Ok(opened.ok_or_else(|| "neither of its two slots is valid".to_owned()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::local::log) fn state(&self) -> &GroupState {
        &self.state
    }

    /// Makes `state` the durable one. After an error either of the two may be there. Blocks for
    /// I/O.
    pub(super) fn write(&mut self, state: GroupState) -> io::Result<()> {
        let sequence = self.sequence + 1;
        let bytes = state.encode(sequence).map_err(io::Error::other)?;
        self.file.write_at(&bytes, sequence % 2 * SLOT_BYTES as u64)?;
        self.file.sync_data()?;
        (self.sequence, self.state) = (sequence, state);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
