//! The index on its own.

use super::*;
use crate::members::{MemberId, Role};

fn index(contents: Vec<Content>) -> EntryIndex {
    let members = Members::new([(MemberId(1), Role::Voter)]).unwrap();
    let base = Base::founding(Term(1), Lsn(8), members);
    let options = Options { message_bytes: 100, ..Options::new(MemberId(1), 1) };
    let mut index = EntryIndex::new(base, Vec::new(), HardState::default(), &options);
    for content in contents {
        let entry =
            Entry { index: Index(index.last().0 + 1), term: Term(2), start: index.end(), content };
        index.append(entry);
    }
    index
}

fn log(bytes: u64) -> Content {
    Content::Log { bytes, checksum: 0 }
}

fn add(id: u64) -> MemberChange {
    MemberChange::Set(MemberId(id), Role::Voter)
}

#[test]
fn a_message_has_about_as_many_bytes_as_are_allowed_and_at_least_one_entry() {
    let index = index(vec![log(60), log(40), log(8), log(500), Content::Mark]);
    let sent = |low| {
        let context = GetEntriesContext::empty(false);
        let entries = index.entries(low, 7, None, context).unwrap();
        entries.iter().map(|entry| entry.index).collect::<Vec<_>>()
    };
    assert_eq!(sent(2), [2, 3]);
    assert_eq!(sent(4), [4]);
    assert_eq!(sent(5), [5]);
    assert_eq!(sent(6), [6]);
}

#[test]
fn a_truncation_ends_where_the_entry_began() {
    let mut index = index(vec![log(60), log(40)]);
    assert_eq!(index.truncate(Index(4)), None);
    assert_eq!(index.truncate(Index(3)), Some(Lsn(68)));
    assert_eq!((index.last(), index.end()), (Index(2), Lsn(68)));
}

#[test]
fn only_applied_entries_are_released() {
    let mut index = index(vec![log(60), log(40), log(8)]);
    index.apply(Index(2));
    index.apply(Index(3));
    assert_eq!(index.release(Lsn(67)), Lsn(8), "no entry ends before that");
    assert_eq!(index.release(Lsn(100)), Lsn(68));
    assert_eq!(index.release(Lsn(1000)), Lsn(108), "the last entry is not durable yet");
    assert_eq!(index.first_index().unwrap(), 4);
    assert_eq!(index.term_of(Index(3)), Some(Term(2)));
    assert_eq!(index.term_of(Index(2)), None);
}

#[test]
fn a_base_within_a_change_of_members_has_both_halves() {
    let two = Content::Members(vec![add(2), add(3)]);
    let mut index = index(vec![log(8), two, log(8), Content::Members(Vec::new()), log(8)]);
    let founders = index.members().clone();
    (2..=4).for_each(|entry| drop(index.apply(Index(entry))));
    assert!(index.membership().before.is_some());
    let base = index.base_for_others().unwrap();
    assert_eq!((base.members.iter().count(), base.before), (3, Some(founders)));
    assert_eq!((base.index, base.lsn), (Index(3), Lsn(16)), "nothing before is for three members");
    assert_eq!(index.release(Lsn(24)), Lsn(24));
    assert_eq!(index.memberships.len(), 1);
    assert!(index.membership().before.is_some());
    index.apply(Index(5));
    assert_eq!(index.base_for_others().unwrap().before, None);
}
