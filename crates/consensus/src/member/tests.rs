//! What a member refuses. How groups work is in `tests/group`.

use super::*;
use crate::entry::Content;

fn founders() -> Base {
    let voters = [1, 2, 3].map(|id| (MemberId(id), Role::Voter));
    Base::founding(Term(1), Lsn(8), Members::new(voters).unwrap())
}

fn start(saved: Saved) -> Result<Member, SavedError> {
    Member::start(Options::new(MemberId(1), 1), saved)
}

fn log(index: u64, term: u64, start: u64) -> Entry {
    let content = Content::Log { bytes: 8, checksum: 0 };
    Entry { index: Index(index), term: Term(term), start: Lsn(start), content }
}

/// A message from member 2, as the leader of term 2.
pub(super) fn message(kind: MessageKind) -> Message {
    Message {
        kind,
        from: MemberId(2),
        to: MemberId(1),
        term: Term(2),
        stamp: 0,
        index: Index(1),
        log_term: Term(1),
        durable: Index(1),
        durable_term: Term(0),
        refused: false,
        hint: Index(0),
        base: None,
        entries: Vec::new(),
        context: Vec::new(),
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let refused = |change: fn(&mut Options)| {
        let mut options = Options::new(MemberId(1), 1);
        change(&mut options);
        options.check().is_err()
    };
    assert!(!refused(|_| ()));
    assert!(refused(|options| options.id = MemberId(0)));
    assert!(refused(|options| options.election_ticks = 7));
    assert!(refused(|options| options.heartbeat_ticks = 5));
    assert!(refused(|options| options.messages_in_flight = 0));
}

#[test]
fn one_step_changes_at_most_sixteen_members() {
    let members = founders().members;
    let changes: Vec<_> =
        (10..27).map(|id| MemberChange::Set(MemberId(id), Role::Learner)).collect();
    assert_eq!(members.changed(&changes), Err(MembersError::TooMany));
    assert!(members.changed(&changes[1..]).is_ok());
    // Groups may have more members than one step changes.
    assert!(Members::new((1..=20).map(|id| (MemberId(id), Role::Voter))).is_ok());
}

#[test]
fn a_saved_log_with_gaps_is_refused() {
    let refused = |change: fn(&mut Saved)| {
        let mut saved = Saved::empty(founders());
        saved.entries = vec![log(2, 1, 8), log(3, 1, 16)];
        change(&mut saved);
        matches!(start(saved), Err(SavedError::Damaged(_)))
    };
    assert!(!refused(|_| ()));
    assert!(refused(|saved| saved.entries[1].index = Index(4)));
    assert!(refused(|saved| saved.entries[1].start = Lsn(24)));
    assert!(refused(|saved| saved.entries[1].term = Term(2)), "a term above the vote's");
    assert!(refused(|saved| saved.durable = Index(4)));
}

/// Whether a member that starts from this would vote for another one `ticks` later.
fn votes(saved: &Saved, ticks: u32) -> bool {
    let mut member = start(saved.clone()).unwrap();
    (0..ticks).for_each(|_| member.tick());
    let asks = Message {
        term: Term(9),
        index: Index(9),
        log_term: Term(8),
        ..message(MessageKind::AskPreVote)
    };
    member.receive(&asks).unwrap();
    let answer = |command: &Command| matches!(command, Command::Send(answer) if !answer.refused);
    member.take_commands().iter().any(answer)
}

#[test]
fn a_member_that_may_have_promised_something_votes_later() {
    let election_ticks = Options::new(MemberId(1), 1).election_ticks;
    let new = Saved::empty(founders());
    assert!(votes(&new, 0));
    let vote = Vote { term: Term(2), member: None };
    let heard = Saved { vote, ..new.clone() };
    let voted = Saved { vote: Vote { member: Some(MemberId(2)), ..vote }, ..new };
    // All entries are gone: their log is in the pages, or in what they have led to.
    let trimmed = Saved::empty(Base { index: Index(2), term: Term(2), ..founders() });
    for saved in [heard, voted, trimmed] {
        assert!(!votes(&saved, election_ticks - 1), "{saved:?}");
        assert!(votes(&saved, election_ticks), "{saved:?}");
    }
}

/// A lone voter that starts from this and syncs whatever it writes, once it leads.
pub(super) fn leads_alone(options: Options, saved: Saved) -> Member {
    let mut member = Member::start(options, saved).unwrap();
    while member.leads().is_none() {
        member.tick();
        sync(&mut member);
    }
    member
}

pub(super) fn sync(member: &mut Member) {
    for command in member.take_commands() {
        if let Command::Write(write) = command {
            member.synced(write.number);
        }
    }
}

#[test]
fn a_logger_asks_for_no_votes_when_it_hears_late_that_it_should_lead() {
    let term_after = |role| {
        let voters = [2, 3].map(|id| (MemberId(id), Role::Voter));
        let members = Members::new([(MemberId(1), role)].into_iter().chain(voters)).unwrap();
        let base = Base { members, ..founders() };
        let mut member = start(Saved::empty(base)).unwrap();
        member.receive(&message(MessageKind::Heartbeat)).unwrap();
        member.receive(&message(MessageKind::HandOver)).unwrap();
        member.term()
    };
    assert_eq!(term_after(Role::Voter), Term(3));
    assert_eq!(term_after(Role::Logger), Term(2));
}

#[test]
fn what_a_leader_sends_is_not_taken_before_the_base_is_synced() {
    let mut member = start(Saved::empty(founders())).unwrap();
    let base = Base { index: Index(5), term: Term(2), lsn: Lsn(108), ..founders() };
    let restart = Message { base: Some(base), ..message(MessageKind::Restart) };
    member.receive(&restart).unwrap();
    let append = Message {
        index: Index(5),
        log_term: Term(2),
        entries: vec![log(6, 2, 108)],
        ..message(MessageKind::Append)
    };
    member.receive(&append).unwrap();
    assert_eq!(member.last(), Index(5));
    sync(&mut member);
    member.receive(&append).unwrap();
    assert_eq!(member.last(), Index(6));
}

/// The leader of a group of itself and learner 2, which has everything.
fn leader_with_a_learner(options: Options) -> Member {
    let members = [(MemberId(1), Role::Voter), (MemberId(2), Role::Learner)];
    let base = Base::founding(Term(1), Lsn(8), Members::new(members).unwrap());
    let mut member = leads_alone(options, Saved::empty(base));
    let answer = Message { index: member.last(), stamp: 1, ..message(MessageKind::AppendAnswer) };
    member.receive(&answer).unwrap();
    drop(member.take_commands());
    member
}

/// How many messages of that kind the member sends now.
fn sent(member: &mut Member, kind: MessageKind) -> usize {
    let is_sent = |command: &Command| matches!(command, Command::Send(one) if one.kind == kind);
    member.take_commands().iter().filter(|command| is_sent(command)).count()
}

#[test]
fn a_leader_is_heard_as_often_as_its_settings_say() {
    let mut member =
        leader_with_a_learner(Options { heartbeat_ticks: 3, ..Options::new(MemberId(1), 1) });
    (0..30).for_each(|_| member.tick());
    assert_eq!(sent(&mut member, MessageKind::Heartbeat), 10);
}

#[test]
fn no_more_messages_with_entries_are_under_way_than_the_settings_say() {
    let mut member =
        leader_with_a_learner(Options { messages_in_flight: 3, ..Options::new(MemberId(1), 1) });
    for _ in 0..5 {
        let (start, end) = (member.end(), member.end().advance(8));
        member.propose(member.term(), &[Batch { start, end, checksum: 0 }]).unwrap();
    }
    assert_eq!(sent(&mut member, MessageKind::Append), 3);
}

#[test]
fn a_writer_hears_of_its_end_before_anything_is_written_for_the_next() {
    let alone = Members::new([(MemberId(1), Role::Voter)]).unwrap();
    let saved = Saved::empty(Base::founding(Term(1), Lsn(8), alone));
    let mut member = leads_alone(Options::new(MemberId(1), 1), saved);
    drop(member.take_commands());
    member.lead_again(member.term()).unwrap();
    let commands = member.take_commands();
    assert!(matches!(commands[0], Command::Follow { .. }), "{commands:?}");
}

#[test]
fn a_member_that_should_not_lead_any_more_waits_longer() {
    let mut member = start(Saved::empty(founders())).unwrap();
    let election_ticks = Options::new(MemberId(1), 1).election_ticks;
    member.set_priority(2);
    (0..3 * election_ticks - 1).for_each(|_| member.tick());
    assert_eq!(sent(&mut member, MessageKind::AskPreVote), 0);
    (0..election_ticks).for_each(|_| member.tick());
    assert_eq!(sent(&mut member, MessageKind::AskPreVote), 2);
}

fn add_learner(member: &mut Member, id: u64) -> Result<(), Refusal> {
    let (term, add) = (member.term(), MemberChange::Set(MemberId(id), Role::Learner));
    member.change_members(term, &[add]).map(drop)
}

#[test]
fn one_change_of_members_is_under_way_at_a_time() {
    let alone = Members::new([(MemberId(1), Role::Voter)]).unwrap();
    let saved = Saved::empty(Base::founding(Term(1), Lsn(8), alone));
    let mut member = leads_alone(Options::new(MemberId(1), 1), saved);
    assert_eq!(add_learner(&mut member, 2), Ok(()));
    assert_eq!(add_learner(&mut member, 3), Err(Refusal::ChangeUnderWay));
    sync(&mut member);
    assert_eq!(add_learner(&mut member, 3), Ok(()));
}

#[test]
fn a_leader_ends_the_change_that_its_base_is_within() {
    let voter = (MemberId(1), Role::Voter);
    let members = Members::new([voter]).unwrap();
    let before = Members::new([voter, (MemberId(2), Role::Learner)]).unwrap();
    let base = Base { before: Some(before), ..Base::founding(Term(1), Lsn(8), members) };
    let mut member = leads_alone(Options::new(MemberId(1), 1), Saved::empty(base));
    sync(&mut member);
    assert_eq!(add_learner(&mut member, 3), Ok(()));
    sync(&mut member);
    assert_eq!(member.members().role(MemberId(3)), Some(Role::Learner));
}

#[test]
fn a_lost_log_is_noticed() {
    let mut member = start(Saved::empty(founders())).unwrap();
    let heartbeat = Message { durable: Index(3), ..message(MessageKind::Heartbeat) };
    let lost = ReceiveError::LogLost { last: Index(1), confirmed: Index(3) };
    assert_eq!(member.receive(&heartbeat), Err(lost));
}

#[test]
fn a_leader_with_other_durable_entries_is_noticed() {
    let mut saved = Saved::empty(founders());
    saved.entries = vec![log(2, 1, 8)];
    saved.durable = Index(2);
    let mut member = start(saved).unwrap();
    let append = Message { entries: vec![log(2, 2, 8)], ..message(MessageKind::Append) };
    assert_eq!(member.receive(&append), Err(ReceiveError::Contradiction(Index(2))));
}

#[test]
fn proposals_beyond_the_credit_are_refused() {
    let alone = Members::new([(MemberId(1), Role::Voter)]).unwrap();
    let saved = Saved::empty(Base::founding(Term(1), Lsn(8), alone));
    let mut options = Options::new(MemberId(1), 1);
    options.undurable_bytes = 100;
    let mut member = leads_alone(options, saved);
    let term = member.term();
    let propose = |member: &mut Member, bytes| {
        let (start, end) = (member.end(), member.end().advance(bytes));
        member.propose(term, &[Batch { start, end, checksum: 0 }]).map(drop)
    };
    assert_eq!(propose(&mut member, 1000), Ok(()), "one batch of any size");
    assert_eq!(propose(&mut member, 8), Err(Refusal::NoCredit));
    sync(&mut member);
    assert_eq!(propose(&mut member, 92), Ok(()));
    assert_eq!(propose(&mut member, 8), Ok(()), "the credit to its end");
    let gap = Batch { start: Lsn(8), end: Lsn(16), checksum: 0 };
    let end = member.end();
    assert_eq!(member.propose(term, &[gap]), Err(Refusal::OutOfPlace { start: Lsn(8), end }));
}
