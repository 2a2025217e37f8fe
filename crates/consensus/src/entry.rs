//! The entries of a group's log: batches of log groups, named by their positions.

use std::fmt;

use firn_base::Lsn;
use serde::{Deserialize, Serialize};

use crate::members::{MemberChange, Members};

/// Numbers the leaders of a group: no two leaders have the same term, and a later one has a higher
/// term. It is the epoch of the leader's writer.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Term(pub u64);

/// Numbers the entries of a group's log, without gaps.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Index(pub u64);

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A run of whole log groups, which becomes durable as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Where the first group begins.
    pub start: Lsn,
    /// Where the last group ends.
    pub end: Lsn,
    /// The crc32c of the bytes between the two. The writer of the bytes compares it.
    pub checksum: u32,
}

/// An entry. Index and term identify it: no two entries of a group have both in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub index: Index,
    /// The term of the leader that made the entry.
    pub term: Term,
    /// Where the log was when the entry was made: the end of the entry before it.
    pub start: Lsn,
    pub content: Content,
}

/// What an entry adds to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Nothing. A leader's first entry: once it is durable, so is all log of earlier terms.
    Mark,
    /// Log groups.
    Log {
        /// How many bytes of log, at least one.
        bytes: u64,
        /// The crc32c of these bytes.
        checksum: u32,
    },
    /// A change of the group's members. Without changes it ends the change before it: from then on
    /// majorities of the new members alone count.
    Members(Vec<MemberChange>),
}

impl Entry {
    /// How many bytes of log the entry stands for. `None`: a batch without bytes, which is not
    /// valid.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match self.content {
            Content::Log { bytes: 0, .. } => None,
            Content::Log { bytes, .. } => Some(bytes),
            Content::Mark | Content::Members(_) => Some(0),
        }
    }

    /// Where the log is after this entry.
    #[must_use]
    pub fn end(&self) -> Lsn {
        match self.content {
            Content::Log { bytes, .. } => self.start.advance(bytes),
            Content::Mark | Content::Members(_) => self.start,
        }
    }
}

/// The durable entry behind which a member keeps its log. What came before is in the pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub index: Index,
    pub term: Term,
    /// The end of the entry, where the kept log begins.
    pub lsn: Lsn,
    /// The members as of the entry.
    pub members: Members,
    /// Within a change of members, those before it, whose majorities count too.
    pub before: Option<Members>,
}

impl Base {
    /// The index of every founding base. A member that joins later knows index 0 only, so the
    /// leader sees that it lacks the base.
    pub(crate) const FOUNDED_AT: Index = Index(1);

    /// The base of a group's founders, whose log begins at `lsn`. `term` is at least 1 and at least
    /// the epoch of every writer that the log has had.
    #[must_use]
    pub fn founding(term: Term, lsn: Lsn, members: Members) -> Base {
        Base { index: Base::FOUNDED_AT, term, lsn, members, before: None }
    }

    /// Moves the base past the entry behind it, which is durable.
    pub fn pass(&mut self, entry: &Entry) {
        debug_assert_eq!(entry.index.0, self.index.0 + 1);
        (self.index, self.term, self.lsn) = (entry.index, entry.term, entry.end());
        if let Content::Members(changes) = &entry.content {
            (self.members, self.before) = self.members.after(changes);
        }
    }

    /// The base of a process that will join a group and knows nothing of it yet.
    #[must_use]
    pub fn joining() -> Base {
        let members = Members::default();
        Base { index: Index(0), term: Term(0), lsn: Lsn(0), members, before: None }
    }
}
