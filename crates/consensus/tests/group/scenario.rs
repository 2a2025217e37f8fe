//! Runs a scenario: a text of commands, each followed by what it led to.
//!
//! ```text
//!   # Remarks and empty lines stay.
//!   > propose 1 100
//!   1: write 4: entries 3 to 3
//! ```
//!
//! | command | effect |
//! |---|---|
//! | `group 1=voter 2=logger …` | the founders of a group start |
//! | `join 4` | a process without log starts |
//! | `tick 1 20` | 20 ticks pass at member 1 |
//! | `elect 1` | time passes at 1 alone, and all is delivered and synced, until it leads; prints just that |
//! | `deliver`, `deliver 1 2` | messages that are under way arrive (from 1 to 2), each once |
//! | `lose`, `lose 1 2` | they are lost |
//! | `sync 1`, `sync 1 2` | all writes of the members become durable |
//! | `settle` | delivers and syncs until nothing is under way; prints no messages |
//! | `propose 1 100` | a batch of 100 bytes at member 1, in the term that it was told to lead |
//! | `propose 1 100 term 2` | the same by a writer of term 2 |
//! | `read 1` | a read at member 1 |
//! | `change 1 4=learner -2` | member 1 proposes a change of members |
//! | `hand-over 1 2` | leader 1 lets 2 lead |
//! | `lead-again 1` | leader 1 begins the next term |
//! | `release 1 108` | member 1 forgets log before 108 |
//! | `unreachable 1 2` | member 1 is told that a message to 2 could not be sent |
//! | `cut 1`, `heal 1` | all messages from and to 1 are lost, until it is healed |
//! | `take-over 4 9=voter 5 10=voter` | 4 and 5 start as 9 and 10, without the others, from 4's log |
//! | `crash 1`, `start 1` | member 1 loses power; it starts from its disk |
//! | `show` | the log of each member |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use firn_base::Lsn;
use firn_consensus::{
    Base, Batch, Command, MemberChange, MemberId, Members, Message, Options, ReadId, Refusal, Role,
    Saved, Term, Write, take_over,
};

use crate::disk::Disk;

#[derive(Default)]
pub(crate) struct Scenario {
    members: BTreeMap<u64, firn_consensus::Member>,
    disks: BTreeMap<u64, Disk>,
    under_way: Vec<Message>,
    cut: BTreeSet<u64>,
    /// How many reads each member has asked for.
    reads: BTreeMap<u64, u64>,
    output: String,
}

/// Runs the commands of `script` and returns it with the output that they have now.
pub(crate) fn run(script: &str) -> String {
    let mut scenario = Scenario::default();
    for line in script.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            writeln!(scenario.output, "{line}").unwrap();
            let words: Vec<&str> = command.split_whitespace().collect();
            scenario.command(&words);
        } else if line.is_empty() || line.starts_with('#') {
            writeln!(scenario.output, "{line}").unwrap();
        }
    }
    scenario.output
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn role(word: &str) -> Role {
    match word {
        "voter" => Role::Voter,
        "logger" => Role::Logger,
        "learner" => Role::Learner,
        _ => panic!("{word} is no role"),
    }
}

fn member_role(word: &str) -> (MemberId, Role) {
    let (id, name) = word.split_once('=').expect("write ID=ROLE");
    (MemberId(number(id)), role(name))
}

fn change(word: &str) -> MemberChange {
    match word.strip_prefix('-') {
        Some(id) => MemberChange::Remove(MemberId(number(id))),
        None => {
            let (id, role) = member_role(word);
            MemberChange::Set(id, role)
        }
    }
}

fn show_members(members: &Members) -> String {
    let each =
        members.iter().map(|(id, role)| format!("{id}={}", format!("{role:?}").to_lowercase()));
    each.collect::<Vec<_>>().join(" ")
}

impl Scenario {
    fn command(&mut self, words: &[&str]) {
        match words {
            ["group", founders @ ..] => self.found(founders),
            ["join", id] => self.install(number(id), Disk::new(Base::joining())),
            ["tick", id, count] => (0..number(count)).for_each(|_| self.tick(number(id))),
            ["elect", id] => self.elect(number(id)),
            ["deliver", way @ ..] => self.deliver(way, true),
            ["lose", way @ ..] => {
                self.take(way).iter().for_each(|m| self.line(&format!("lost: {m}")))
            }
            ["sync", ids @ ..] => ids.iter().for_each(|id| self.sync(number(id))),
            ["settle"] => self.settle(),
            ["propose", id, bytes] => self.propose(number(id), number(bytes), None),
            ["propose", id, bytes, "term", term] => {
                self.propose(number(id), number(bytes), Some(Term(number(term))));
            }
            ["read", id] => self.read(number(id)),
            ["change", id, changes @ ..] => self.change(number(id), changes),
            ["hand-over", id, to] => self.hand_over(number(id), MemberId(number(to))),
            ["lead-again", id] => self.lead_again(number(id)),
            ["release", id, lsn] => {
                let begins = self.member(number(id)).release(Lsn(number(lsn)));
                self.line(&format!("{id}: the log begins at {begins}"));
            }
            ["unreachable", id, to] => {
                self.member(number(id)).unreachable(MemberId(number(to)));
                self.carry_out(number(id));
            }
            ["cut", id] => drop(self.cut.insert(number(id))),
            ["heal", id] => drop(self.cut.remove(&number(id))),
            ["crash", id] => {
                self.members.remove(&number(id));
                self.disks.get_mut(&number(id)).expect("a member").crash(0);
            }
            ["take-over", left @ ..] => self.take_over(left),
            ["start", id] => self.start(number(id)),
            ["show"] => self.show(),
            _ => panic!("no such command: {words:?}"),
        }
    }

    fn line(&mut self, text: &str) {
        writeln!(self.output, "{text}").unwrap();
    }

    fn member(&mut self, id: u64) -> &mut firn_consensus::Member {
        self.members.get_mut(&id).unwrap_or_else(|| panic!("member {id} does not run"))
    }

    fn found(&mut self, founders: &[&str]) {
        let members = Members::new(founders.iter().map(|word| member_role(word))).unwrap();
        for (id, _) in members.iter() {
            let base = Base::founding(Term(1), Lsn::FIRST, members.clone());
            self.install(id.0, Disk::new(base));
        }
    }

    fn install(&mut self, id: u64, disk: Disk) {
        self.disks.insert(id, disk);
        self.start(id);
    }

    fn start(&mut self, id: u64) {
        let saved: Saved = self.disks[&id].saved().clone();
        let options = Options::new(MemberId(id), id);
        self.members.insert(id, firn_consensus::Member::start(options, saved).unwrap());
        self.carry_out(id);
    }

    fn take_over(&mut self, left: &[&str]) {
        let left: Vec<(u64, (MemberId, Role))> =
            left.chunks(2).map(|pair| (number(pair[0]), member_role(pair[1]))).collect();
        let members = Members::new(left.iter().map(|(_, member)| *member)).unwrap();
        for (place, (before, (id, _))) in left.into_iter().enumerate() {
            self.members.remove(&before);
            let mut disk = self.disks.remove(&before).expect("a member");
            disk.crash(0);
            if place == 0 {
                let write = take_over(disk.saved(), &members).expect("the members are others");
                self.line(&format!("{before}: {}", show_write(&write)));
                disk.write(write);
                disk.sync_one();
            }
            self.install(id.0, disk);
        }
    }

    fn tick(&mut self, id: u64) {
        self.member(id).tick();
        self.carry_out(id);
    }

    fn elect(&mut self, id: u64) {
        for _ in 0..200 {
            let before = self.output.len();
            self.tick(id);
            self.settle();
            self.output.truncate(before);
            if let Some(term) = self.member(id).leads() {
                let end = self.member(id).end();
                return self.line(&format!("{id}: leads term {term} from {end}"));
            }
        }
        panic!("member {id} is not elected");
    }

    /// Removes the messages that go from the one to the other, or all.
    fn take(&mut self, way: &[&str]) -> Vec<Message> {
        let way: Vec<u64> = way.iter().map(|word| number(word)).collect();
        let matches = |message: &mut Message| match way[..] {
            [] => true,
            [from, to] => message.from().0 == from && message.to().0 == to,
            _ => panic!("write FROM TO"),
        };
        self.under_way.extract_if(.., matches).collect()
    }

    fn deliver(&mut self, way: &[&str], shown: bool) {
        for message in self.take(way) {
            let (from, to) = (message.from().0, message.to().0);
            let lost = self.cut.contains(&from) || self.cut.contains(&to);
            if lost || !self.members.contains_key(&to) {
                continue;
            }
            if shown {
                self.line(&format!("{message}"));
            }
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let (message, rest) = Message::decode(&bytes).unwrap();
            assert!(rest.is_empty());
            if let Err(error) = self.member(to).receive(&message) {
                self.line(&format!("{to}: {error}"));
            }
            self.carry_out(to);
        }
    }

    fn sync(&mut self, id: u64) {
        while let Some(write) = self.disks.get_mut(&id).expect("a member").sync_one() {
            self.member(id).synced(write);
            self.carry_out(id);
        }
    }

    fn settle(&mut self) {
        let ids: Vec<u64> = self.members.keys().copied().collect();
        let busy = |this: &Scenario| {
            !this.under_way.is_empty() || ids.iter().any(|id| this.disks[id].unsynced() > 0)
        };
        while busy(self) {
            self.deliver(&[], false);
            ids.iter().for_each(|id| self.sync(*id));
        }
    }

    fn propose(&mut self, id: u64, bytes: u64, term: Option<Term>) {
        let member = self.member(id);
        let term = term.or(member.leads()).unwrap_or(member.term());
        let start = member.end();
        let batch = Batch { start, end: start.advance(bytes), checksum: 0 };
        let refused = member.propose(term, &[batch]).err();
        self.refused(id, refused);
        self.carry_out(id);
    }

    fn refused(&mut self, id: u64, refused: Option<Refusal>) {
        if let Some(refusal) = refused {
            self.line(&format!("{id}: refused: {refusal}"));
        }
    }

    fn read(&mut self, id: u64) {
        let number = self.reads.entry(id).or_insert(0);
        *number += 1;
        let read = ReadId(*number);
        let refused = self.member(id).read(read).err();
        self.refused(id, refused);
        self.carry_out(id);
    }

    fn change(&mut self, id: u64, changes: &[&str]) {
        let changes: Vec<MemberChange> = changes.iter().map(|word| change(word)).collect();
        let member = self.member(id);
        let term = member.leads().unwrap_or(member.term());
        let refused = member.change_members(term, &changes).err();
        self.refused(id, refused);
        self.carry_out(id);
    }

    fn hand_over(&mut self, id: u64, to: MemberId) {
        let member = self.member(id);
        let term = member.leads().unwrap_or(member.term());
        let refused = member.hand_over(term, to).err();
        self.refused(id, refused);
        self.carry_out(id);
    }

    fn lead_again(&mut self, id: u64) {
        let member = self.member(id);
        let term = member.leads().unwrap_or(member.term());
        let refused = member.lead_again(term).err();
        self.refused(id, refused);
        self.carry_out(id);
    }

    fn carry_out(&mut self, id: u64) {
        for command in self.member(id).take_commands() {
            match command {
                Command::Send(message) => self.under_way.push(message),
                Command::Write(write) => {
                    self.line(&format!("{id}: {}", show_write(&write)));
                    self.disks.get_mut(&id).expect("a member").write(write);
                }
                Command::Durable { index, lsn } => {
                    self.line(&format!("{id}: durable {index}, log to {lsn}"));
                }
                Command::Lead { term, end } => {
                    self.line(&format!("{id}: leads term {term} from {end}"))
                }
                Command::Follow { term, leader: Some(leader) } => {
                    self.line(&format!("{id}: follows {leader} in term {term}"));
                }
                Command::Follow { term, leader: None } => {
                    self.line(&format!("{id}: knows no leader in term {term}"));
                }
                Command::Members(members) => {
                    self.line(&format!("{id}: members {}", show_members(&members)));
                }
                Command::Read(read) => {
                    self.line(&format!("{id}: read {} at {}", read.id.0, read.durable));
                }
            }
        }
    }

    fn show(&mut self) {
        let ids: Vec<u64> = self.disks.keys().copied().collect();
        for id in ids {
            let saved = self.disks[&id].saved();
            let entries: Vec<String> =
                saved.entries.iter().map(|e| format!("{}/{}", e.index, e.term)).collect();
            let log = format!("{id}: base {}, entries {}", saved.base.index, entries.join(" "));
            self.line(log.trim_end());
        }
    }
}

fn show_write(write: &Write) -> String {
    let mut parts = Vec::new();
    if let Some(vote) = write.vote {
        let member = vote.member.map_or("nobody".to_owned(), |member| member.to_string());
        parts.push(format!("term {}, vote for {member}", vote.term));
    }
    if let Some(base) = &write.restart {
        parts.push(format!("restart at {} with log from {}", base.index, base.lsn));
    }
    if let Some((index, lsn)) = write.truncate {
        parts.push(format!("truncate from entry {index}, log from {lsn}"));
    }
    if let (Some(first), Some(last)) = (write.append.first(), write.append.last()) {
        let (from, to) = (first.start, last.end());
        parts.push(format!("entries {} to {}, log {from} to {to}", first.index, last.index));
    }
    format!("write {}: {}", write.number.0, parts.join("; "))
}
