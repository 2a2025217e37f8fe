//! Going on without the others: when most members of a group are lost for good, one that is left is
//! made to believe that the group is those that are left.
//!
//! ```text
//!   saved     … 41  42  43 │                    members 1, 2, 3, and 4 learns
//!   written   … 41  42  43 │ 44: 9 instead of 1 to 4 │ 45: the change is over
//!                          └── durable up to 45, in a term that nobody has had here
//! ```
//!
//! This is no step of the protocol: entries that the others made durable and that this member never
//! got are gone, and its own are durable because nobody is left to say otherwise. So it is a
//! person who decides it. Those that go on have numbers that the group has never had. Messages of
//! the others, who may come back and know nothing of this, are for members that there are not, and
//! nobody here sends them any: the two groups cannot mix.

use crate::command::{Vote, Write, WriteNumber};
use crate::entry::{Content, Entry, Index, Term};
use crate::member::Saved;
use crate::members::Members;

/// What makes the saved log of a member that of a group of `members`, who go on with its end. It
/// is written, and synced, before a member starts from the log. `None`: it is theirs already.
#[must_use]
pub fn take_over(saved: &Saved, members: &Members) -> Option<Write> {
    let mut base = saved.base.clone();
    saved.entries.iter().for_each(|entry| base.pass(entry));
    if base.members == *members && base.before.is_none() {
        return None;
    }
    let term = Term(saved.vote.term.max(base.term).0 + 1);
    let unfinished = base.before.is_some().then(Vec::new);
    let whole = base.members.changes_to(members);
    // One change alone is over at once.
    let end = (whole.len() > 1).then(Vec::new);
    let contents = unfinished.into_iter().chain([whole]).chain(end);
    let entries = (base.index.0 + 1..).zip(contents).map(|(index, changes)| Entry {
        index: Index(index),
        term,
        start: base.lsn,
        content: Content::Members(changes),
    });
    let append: Vec<Entry> = entries.collect();
    let durable = append.last().map_or(base.index, |entry| entry.index);
    let vote = Some(Vote { term, member: None });
    Some(Write { number: WriteNumber(1), vote, restart: None, truncate: None, append, durable })
}

#[cfg(test)]
mod tests {
    use firn_base::Lsn;

    use super::*;
    use crate::members::{MemberChange, MemberId, Role};
    use crate::{Base, Command, Member, Options};

    fn members(roles: &[(u64, Role)]) -> Members {
        Members::new(roles.iter().map(|(id, role)| (MemberId(*id), *role))).unwrap()
    }

    fn three_and_a_learner() -> Members {
        let voters = [1, 2, 3].map(|id| (id, Role::Voter));
        members(&[&voters[..], &[(4, Role::Learner)]].concat())
    }

    /// A learner's log with two entries, of which it knows the first one to be durable.
    fn saved() -> Saved {
        let base = Base::founding(Term(1), Lsn(8), three_and_a_learner());
        let entry = |index, start| Entry {
            index: Index(index),
            term: Term(5),
            start: Lsn(start),
            content: Content::Log { bytes: 10, checksum: 0 },
        };
        let vote = Vote { term: Term(6), member: None };
        let entries = vec![entry(2, 8), entry(3, 18)];
        Saved { vote, base, entries, durable: Index(2) }
    }

    /// What the process finds after the write.
    fn written(mut saved: Saved, write: Write) -> Saved {
        saved.vote = write.vote.unwrap();
        saved.entries.extend(write.append);
        Saved { durable: write.durable, ..saved }
    }

    #[test]
    fn a_learner_goes_on_alone_with_all_that_it_has() {
        let alone = members(&[(9, Role::Voter)]);
        let write = take_over(&saved(), &alone).unwrap();
        assert_eq!((write.append.len(), write.durable), (2, Index(5)));
        assert_eq!(write.vote.unwrap().term, Term(7));
        let after = written(saved(), write);
        assert_eq!(take_over(&after, &alone), None, "it is done once");
        let mut member = Member::start(Options::new(MemberId(9), 3), after).unwrap();
        assert_eq!(member.members(), &alone);
        for _ in 0..40 {
            member.tick();
            for command in member.take_commands() {
                if let Command::Write(write) = command {
                    member.synced(write.number);
                }
            }
        }
        assert!(member.leads().is_some_and(|term| term > Term(7)));
        assert_eq!(member.durable(), Lsn(28), "what it had is durable");
    }

    #[test]
    fn several_go_on_with_roles_of_their_own() {
        let two = members(&[(9, Role::Voter), (10, Role::Logger)]);
        let after = written(saved(), take_over(&saved(), &two).unwrap());
        let member = Member::start(Options::new(MemberId(9), 3), after).unwrap();
        assert_eq!(member.members(), &two);
    }

    #[test]
    fn a_change_that_was_under_way_is_over() {
        let mut saved = saved();
        let changes =
            vec![MemberChange::Set(MemberId(5), Role::Voter), MemberChange::Remove(MemberId(3))];
        let content = Content::Members(changes);
        saved.entries.push(Entry { index: Index(4), term: Term(6), start: Lsn(28), content });
        let alone = members(&[(9, Role::Voter)]);
        let write = take_over(&saved, &alone).unwrap();
        assert_eq!(write.append.len(), 3);
        let member = Member::start(Options::new(MemberId(9), 3), written(saved, write)).unwrap();
        assert_eq!(member.members(), &alone);
    }
}
