//! What has to hold over all members of a group, whatever fails.
//!
//! 1. A term has one leader.
//! 2. All members report the same entries as durable.
//! 3. What one member reported as durable is in the log of every later leader.
//! 4. A member's durable position never goes back, and it is synced there.
//! 5. A read returns a position that includes all that was durable when it began.

use std::collections::BTreeMap;

use firn_base::Lsn;
use firn_consensus::{Entry, Index, MemberId, Read, ReadId, Term};

use crate::disk::Disk;

/// What went wrong.
pub(crate) type Violation = String;

#[derive(Default)]
pub(crate) struct Checker {
    leaders: BTreeMap<Term, MemberId>,
    /// The entries that somebody reported as durable.
    durable: BTreeMap<Index, Entry>,
    durable_lsn: Lsn,
    /// What each running member reported last.
    reported: BTreeMap<MemberId, Index>,
    /// Reads under way, and the durable position when they began.
    reads: BTreeMap<ReadId, Lsn>,
    /// Whether disks are honest. A dishonest one reports writes before it has synced them.
    dishonest_disks: bool,
}

impl Checker {
    pub(crate) fn new(dishonest_disks: bool) -> Checker {
        Checker { dishonest_disks, ..Checker::default() }
    }

    pub(crate) fn starts(&mut self, member: MemberId, base: Index) {
        self.reported.insert(member, base);
    }

    pub(crate) fn leads(
        &mut self,
        member: MemberId,
        term: Term,
        end: Lsn,
    ) -> Result<(), Violation> {
        let leader = *self.leaders.entry(term).or_insert(member);
        if leader != member {
            return Err(format!("members {leader} and {member} lead in term {term}"));
        }
        if end < self.durable_lsn {
            let durable = self.durable_lsn;
            return Err(format!("the leader of term {term} has log to {end} of {durable} durable"));
        }
        Ok(())
    }

    pub(crate) fn durable(
        &mut self,
        member: MemberId,
        index: Index,
        lsn: Lsn,
        disk: &Disk,
    ) -> Result<(), Violation> {
        let before = self.reported.insert(member, index).unwrap_or_default();
        if index < before {
            return Err(format!("member {member} goes back from entry {before} to {index}"));
        }
        if self.dishonest_disks {
            return self.compare(member, before, disk);
        }
        if index > disk.last() {
            return Err(format!("member {member} reports entry {index} before it is synced"));
        }
        self.compare(member, before, disk)?;
        self.durable_lsn = self.durable_lsn.max(lsn);
        Ok(())
    }

    /// Compares the entries that a member reports with those that others have reported.
    fn compare(&mut self, member: MemberId, before: Index, disk: &Disk) -> Result<(), Violation> {
        let reported = self.reported[&member];
        for place in before.0 + 1..=reported.0 {
            let Some(entry) = disk.entry(Index(place)) else { continue };
            let known = self.durable.entry(entry.index).or_insert_with(|| entry.clone());
            if known != entry {
                return Err(format!("member {member} has {entry:?} in the place of {known:?}"));
            }
            self.durable_lsn = self.durable_lsn.max(entry.end());
        }
        Ok(())
    }

    pub(crate) fn read_begins(&mut self, read: ReadId) {
        self.reads.insert(read, self.durable_lsn);
    }

    pub(crate) fn read_ends(&mut self, read: Read) -> Result<(), Violation> {
        let least = self.reads.remove(&read.id).unwrap_or_default();
        if read.durable < least {
            let durable = read.durable;
            return Err(format!("a read returned {durable}, and {least} was durable before"));
        }
        Ok(())
    }

    /// The last entry that somebody reported as durable.
    pub(crate) fn last(&self) -> Index {
        self.durable.keys().next_back().copied().unwrap_or_default()
    }

    /// At the end, when all members have caught up: each has every durable entry that it keeps.
    pub(crate) fn complete(&self, member: MemberId, disk: &Disk) -> Result<(), Violation> {
        let base = disk.saved().base.index;
        for (index, entry) in self.durable.range(Index(base.0 + 1)..) {
            if disk.entry(*index) != Some(entry) {
                return Err(format!("member {member} lacks durable entry {index}"));
            }
        }
        Ok(())
    }
}
