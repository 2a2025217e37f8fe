//! The entries that a member has, as the library wants to see them.
//!
//! ```text
//!   base ≤ applied ≤ durable in the group, synced here ≤ last       (indexes)
//!    │       └ members as of this entry are in force
//!    └ entries up to here are gone; their log is in the pages
//! ```
//!
//! The index is kept in memory, about 50 bytes for a batch of log. It has every entry that a write
//! asked for, synced or not: the library counts what is synced itself.

use std::collections::VecDeque;

use firn_base::Lsn;
use raft::prelude::{HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};

use crate::entry::{Base, Content, Entry, Index, Term};
use crate::library;
use crate::members::{MemberChange, Members};
use crate::options::{Options, RestartAt};

/// Members since an entry.
#[derive(Debug, Clone)]
struct Membership {
    since: Index,
    members: Members,
    /// The members before, as long as their majorities count too.
    before: Option<Members>,
}

pub(crate) struct EntryIndex {
    base: (Index, Term, Lsn),
    entries: VecDeque<Entry>,
    /// Since the base, in order. Never empty.
    memberships: VecDeque<Membership>,
    applied: Index,
    /// The most log that one message carries.
    message_bytes: u64,
    restart_at: RestartAt,
    /// As it was at the start, for the library.
    saved: HardState,
}

impl EntryIndex {
    /// An index of `entries`, which follow `base` without a gap.
    pub(crate) fn new(
        base: Base,
        entries: Vec<Entry>,
        saved: HardState,
        options: &Options,
    ) -> EntryIndex {
        let mut index = EntryIndex {
            base: (Index(0), Term(0), Lsn(0)),
            entries: VecDeque::new(),
            memberships: VecDeque::new(),
            applied: Index(0),
            message_bytes: options.message_bytes,
            restart_at: options.restart_at,
            saved,
        };
        index.restart(base);
        index.entries = entries.into();
        index
    }

    /// Forgets everything and begins at `base`.
    pub(crate) fn restart(&mut self, base: Base) {
        self.base = (base.index, base.term, base.lsn);
        self.entries.clear();
        self.applied = base.index;
        let Base { members, before, .. } = base;
        let membership = Membership { since: base.index, members, before };
        self.memberships = VecDeque::from([membership]);
    }

    pub(crate) fn last(&self) -> Index {
        Index(self.base.0.0 + self.entries.len() as u64)
    }

    pub(crate) fn end(&self) -> Lsn {
        self.entries.back().map_or(self.base.2, Entry::end)
    }

    pub(crate) fn get(&self, index: Index) -> Option<&Entry> {
        let place = index.0.checked_sub(self.base.0.0 + 1)?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// The term of an entry; `None` if it is not known.
    pub(crate) fn term_of(&self, index: Index) -> Option<Term> {
        if index == self.base.0 {
            return Some(self.base.1);
        }
        self.get(index).map(|entry| entry.term)
    }

    /// Where the log is after an entry.
    pub(crate) fn end_of(&self, index: Index) -> Option<Lsn> {
        if index == self.base.0 {
            return Some(self.base.2);
        }
        self.get(index).map(Entry::end)
    }

    pub(crate) fn applied(&self) -> Index {
        self.applied
    }

    /// Removes the entries from `index` on. Returns where the log ends now, if any was there.
    pub(crate) fn truncate(&mut self, index: Index) -> Option<Lsn> {
        let start = self.get(index)?.start;
        self.entries.truncate((index.0 - self.base.0.0 - 1) as usize);
        Some(start)
    }

    pub(crate) fn append(&mut self, entry: Entry) {
        debug_assert_eq!(entry.index.0, self.last().0 + 1);
        debug_assert_eq!(entry.start, self.end());
        self.entries.push_back(entry);
    }

    /// Puts the next durable entry in force. Returns its changes of members, if it has any.
    pub(crate) fn apply(&mut self, index: Index) -> Option<Vec<MemberChange>> {
        debug_assert!(index > self.applied);
        self.applied = index;
        let Content::Members(changes) = &self.get(index)?.content else { return None };
        let changes = changes.clone();
        let (members, before) = self.members().after(&changes);
        self.memberships.push_back(Membership { since: index, members, before });
        Some(changes)
    }

    /// The members in force.
    pub(crate) fn members(&self) -> &Members {
        &self.membership().members
    }

    fn membership(&self) -> &Membership {
        self.memberships.back().expect("never empty")
    }

    /// Forgets applied entries that end at or before `lsn`. Returns where the kept log begins.
    pub(crate) fn release(&mut self, lsn: Lsn) -> Lsn {
        let goes = |entry: &&Entry| entry.end() <= lsn && entry.index <= self.applied;
        let gone = self.entries.iter().take_while(goes).count();
        if let Some(last) = self.entries.drain(..gone).next_back() {
            self.base = (last.index, last.term, last.end());
            while self.memberships.get(1).is_some_and(|later| later.since <= last.index) {
                self.memberships.pop_front();
            }
        }
        self.base.2
    }

    /// The base that a member gets which lacks entries that are not kept. It has the members in
    /// force, of which that one is one.
    fn base_for_others(&self) -> Option<Base> {
        let Membership { since, members, before } = self.membership().clone();
        let index = match self.restart_at {
            RestartAt::KeptLog => since.max(self.base.0),
            RestartAt::NewestEntry => self.applied,
        };
        let (term, lsn) = (self.term_of(index)?, self.end_of(index)?);
        Some(Base { index, term, lsn, members, before })
    }
}

impl Storage for EntryIndex {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let Membership { members, before, .. } = self.membership();
        let members = library::conf_state(members, before.as_ref());
        Ok(RaftState::new(self.saved.clone(), members))
    }

    /// Entries without content: the library passes them on and looks at terms and types only.
    fn entries(
        &self,
        low: u64,
        high: u64,
        _: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> raft::Result<Vec<raft::prelude::Entry>> {
        if low <= self.base.0.0 {
            return Err(Error::Store(StorageError::Compacted));
        }
        let mut entries = Vec::new();
        let mut bytes = 0;
        for index in low..high {
            let entry = self.get(Index(index)).ok_or(Error::Store(StorageError::Unavailable))?;
            bytes += entry.bytes().unwrap_or(0);
            if bytes > self.message_bytes && !entries.is_empty() {
                break;
            }
            entries.push(library::bare_entry(entry));
        }
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        let term = self.term_of(Index(index)).map(|term| term.0);
        term.ok_or(Error::Store(StorageError::Unavailable))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.0.0 + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last().0)
    }

    fn snapshot(&self, _: u64, _: u64) -> raft::Result<Snapshot> {
        let unavailable = Error::Store(StorageError::SnapshotTemporarilyUnavailable);
        self.base_for_others().map(|base| library::snapshot(&base)).ok_or(unavailable)
    }
}

#[cfg(test)]
mod tests;
