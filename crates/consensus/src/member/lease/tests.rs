//! For how long a leader has its lease.

use firn_base::Lsn;

use super::super::tests::{leads_alone, message, sync};
use super::*;
use crate::entry::Base;
use crate::member::Saved;
use crate::members::{MemberId, Members, Role};
use crate::options::Options;

fn founders(count: u64) -> Saved {
    let members = Members::new((1..=count).map(|id| (MemberId(id), Role::Voter))).unwrap();
    Saved::empty(Base::founding(Term(1), Lsn(8), members))
}

fn answer(member: &mut Member, from: u64, kind: MessageKind, stamp: u64) {
    let (from, index) = (MemberId(from), member.last());
    let answer = Message { from, stamp, index, durable: index, ..message(kind) };
    member.receive(&answer).unwrap();
    sync(member);
}

/// Member 1 of so many, which leads in term 2 with the votes of all and has heard no heartbeat's
/// answer.
fn elected(count: u64) -> Member {
    let mut member = Member::start(Options::new(MemberId(1), 1), founders(count)).unwrap();
    while !member.would_campaign() {
        member.tick();
    }
    member.tick();
    for kind in [MessageKind::PreVoteAnswer, MessageKind::VoteAnswer, MessageKind::AppendAnswer] {
        (2..=count).for_each(|from| answer(&mut member, from, kind, 0));
    }
    assert_eq!(member.leads(), Some(Term(2)));
    member
}

fn lease_ticks() -> u64 {
    Options::new(MemberId(1), 1).lease_ticks()
}

#[test]
fn a_lease_lasts_for_its_ticks_from_the_stamp_on() {
    let mut member = elected(3);
    assert_eq!((member.has_lease(), member.lease_left()), (false, 0), "nobody has promised");
    let stamp = member.stamp();
    answer(&mut member, 2, MessageKind::HeartbeatAnswer, stamp);
    for left in (1..=lease_ticks()).rev() {
        assert_eq!((member.has_lease(), member.lease_left()), (true, left));
        member.tick();
    }
    assert_eq!((member.has_lease(), member.lease_left()), (false, 0));
    answer(&mut member, 2, MessageKind::HeartbeatAnswer, stamp);
    assert!(!member.has_lease(), "an answer to an old heartbeat");
}

#[test]
fn a_lease_ends_when_fewer_than_a_majority_are_bound() {
    let mut member = elected(5);
    for from in [2, 3, 4] {
        let stamp = member.stamp();
        answer(&mut member, from, MessageKind::HeartbeatAnswer, stamp);
        member.tick();
    }
    // Of three that are bound, the first may go: two and the leader are a majority.
    assert_eq!(member.lease_left(), lease_ticks() - 2);
    (0..lease_ticks() - 3).for_each(|_| member.tick());
    assert_eq!((member.has_lease(), member.lease_left()), (true, 1));
    member.tick();
    assert_eq!((member.has_lease(), member.lease_left()), (false, 0));
}

#[test]
fn a_leader_that_hands_over_has_no_lease_in_that_term() {
    let mut member = elected(3);
    let stamp = member.stamp();
    answer(&mut member, 2, MessageKind::HeartbeatAnswer, stamp);
    assert!(member.has_lease() && !member.has_given_lease_up());
    member.hand_over(Term(2), MemberId(2)).unwrap();
    answer(&mut member, 3, MessageKind::HeartbeatAnswer, stamp);
    assert!(member.has_given_lease_up() && !member.has_lease());
    assert_eq!(member.lease_left(), 0);
    let next = Message { term: Term(3), ..message(MessageKind::Heartbeat) };
    member.receive(&next).unwrap();
    assert!(!member.has_given_lease_up(), "another term");
}

#[test]
fn a_lone_voter_has_its_lease_while_it_leads() {
    let member = leads_alone(Options::new(MemberId(1), 1), founders(1));
    assert_eq!((member.has_lease(), member.lease_left()), (true, lease_ticks()));
    let follower = Member::start(Options::new(MemberId(1), 1), founders(1)).unwrap();
    assert_eq!((follower.has_lease(), follower.lease_left()), (false, 0));
}
