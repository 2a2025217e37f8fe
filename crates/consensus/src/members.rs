//! The members of a group, their roles and changes of both.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A process in a group. Never 0, and never used again for another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The most members that one step changes: the entry has to fit into a sector of a member's disk.
pub const MAX_CHANGES: usize = 16;

/// What a member is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Votes, keeps log and pages, and may lead.
    Voter,
    /// Votes and keeps log. It has no pages, so no engine ever writes there.
    Logger,
    /// Receives the log and counts in no majority.
    Learner,
}

impl Role {
    #[must_use]
    pub fn votes(self) -> bool {
        self != Role::Learner
    }
}

/// One step of a change of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberChange {
    /// Adds a member, or gives another role to one that is there.
    Set(MemberId, Role),
    Remove(MemberId),
}

impl MemberChange {
    #[must_use]
    pub fn member(self) -> MemberId {
        match self {
            MemberChange::Set(id, _) | MemberChange::Remove(id) => id,
        }
    }
}

/// Why a change of members is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MembersError {
    #[error("member id 0 is reserved; choose another id")]
    ZeroId,
    #[error("member {0} is changed twice; name each member once")]
    Twice(MemberId),
    #[error("member {0} is not in the group")]
    Absent(MemberId),
    #[error("more than {MAX_CHANGES} members are changed at once; change them one after the other")]
    TooMany,
    #[error("the change changes nothing")]
    Nothing,
    #[error("no voter would be left, so nobody could lead; add a voter first")]
    NoVoter,
}

/// The members of a group with their roles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members(BTreeMap<MemberId, Role>);

impl Members {
    /// # Errors
    /// If an id is 0 or is there twice, or if no voter is among them.
    pub fn new(
        members: impl IntoIterator<Item = (MemberId, Role)>,
    ) -> Result<Members, MembersError> {
        let changes: Vec<_> =
            members.into_iter().map(|(id, role)| MemberChange::Set(id, role)).collect();
        Members::default().changed_by(&changes)
    }

    #[must_use]
    pub fn role(&self, id: MemberId) -> Option<Role> {
        self.0.get(&id).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (MemberId, Role)> + '_ {
        self.0.iter().map(|(id, role)| (*id, *role))
    }

    /// What leads from these members to others.
    #[must_use]
    pub fn changes_to(&self, to: &Members) -> Vec<MemberChange> {
        let gone = self.iter().filter(|(id, _)| to.role(*id).is_none());
        let set = to.iter().filter(|(id, role)| self.role(*id) != Some(*role));
        let set = set.map(|(id, role)| MemberChange::Set(id, role));
        set.chain(gone.map(|(id, _)| MemberChange::Remove(id))).collect()
    }

    /// The members after `changes`.
    ///
    /// # Errors
    /// If the changes do not fit the members, or would leave a group that nobody can lead.
    pub fn changed(&self, changes: &[MemberChange]) -> Result<Members, MembersError> {
        if changes.len() > MAX_CHANGES {
            return Err(MembersError::TooMany);
        }
        self.changed_by(changes)
    }

    fn changed_by(&self, changes: &[MemberChange]) -> Result<Members, MembersError> {
        let mut after = self.clone();
        for (place, change) in changes.iter().enumerate() {
            let id = change.member();
            if id.0 == 0 {
                return Err(MembersError::ZeroId);
            }
            if changes[..place].iter().any(|earlier| earlier.member() == id) {
                return Err(MembersError::Twice(id));
            }
            after.change(*change)?;
        }
        if after == *self {
            return Err(MembersError::Nothing);
        }
        if !after.0.values().any(|role| *role == Role::Voter) {
            return Err(MembersError::NoVoter);
        }
        Ok(after)
    }

    /// The members that a durable change puts in force, and those before, whose majorities count
    /// until the end of the change.
    pub(crate) fn after(&self, changes: &[MemberChange]) -> (Members, Option<Members>) {
        // A leader checks changes before it proposes them, so only an end of a change, which
        // changes nothing more, is refused here.
        let members = self.changed(changes).unwrap_or_else(|_| self.clone());
        let before = (changes.len() > 1).then(|| self.clone());
        (members, before)
    }

    fn change(&mut self, change: MemberChange) -> Result<(), MembersError> {
        match change {
            MemberChange::Set(id, role) => {
                self.0.insert(id, role);
                Ok(())
            }
            MemberChange::Remove(id) => {
                self.0.remove(&id).map(drop).ok_or(MembersError::Absent(id))
            }
        }
    }
}
