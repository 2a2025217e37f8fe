//! A seeded run of a group: time, network, disks and faults are drawn from the seed.
//!
//! Messages are lost, delayed, doubled and overtake each other. Members are cut off, or stopped for
//! a while. They lose power, with the writes that were not synced, and start again. Clocks tick at
//! rates that differ by a few percent. Every leader has a writer that proposes batches, and members
//! read. Now and then a leader hands over, releases log, or changes the members.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use firn_base::Lsn;
use firn_base::random::{RandomSource, SplitMix, mix};
use firn_consensus::{
    Base, Batch, Command, Member, MemberChange, MemberId, Members, Message, Options, ReadId, Role,
    Term, WriteNumber,
};

use crate::checker::{Checker, Violation};
use crate::disk::Disk;

/// A bug that is put in on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// Writes of votes are reported as synced at once.
    VoteSentBeforeItIsSynced,
    /// Writes of entries are reported as synced at once.
    CountedBeforeItIsSynced,
    /// The durable index is not written with the entries.
    DurableIndexForgotten,
    /// A process that was stopped goes on as if no time had passed.
    TicksMissed,
    /// A member takes messages of older terms for messages of its own term.
    TermNotChecked,
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) roles: Vec<Role>,
    /// How long faults happen, in milliseconds. Then all is healed.
    pub(crate) faulty_ms: u64,
    pub(crate) bug: Bug,
    /// One message in twenty takes up to this long.
    pub(crate) late_ms: u64,
    /// Whether members come and go.
    pub(crate) changes: bool,
}

/// What a run did, to see that it did something.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) leaders: u64,
    pub(crate) durable: u64,
    pub(crate) reads: u64,
    pub(crate) crashes: u64,
    pub(crate) changes: u64,
    pub(crate) restarts: u64,
    pub(crate) truncated: u64,
    /// A hash of all messages, in order.
    pub(crate) trace: u64,
}

impl Summary {
    pub(crate) fn add(&mut self, other: Summary) {
        self.leaders += other.leaders;
        self.durable += other.durable;
        self.reads += other.reads;
        self.crashes += other.crashes;
        self.changes += other.changes;
        self.restarts += other.restarts;
        self.truncated += other.truncated;
    }

    pub(crate) fn has_everything_but_changes(&self) -> bool {
        let each =
            [self.leaders, self.durable, self.reads, self.crashes, self.restarts, self.truncated];
        !each.contains(&0)
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Tick {
        id: u64,
        life: u64,
    },
    Deliver {
        id: u64,
        bytes: Vec<u8>,
    },
    Sync {
        id: u64,
        life: u64,
    },
    Write {
        id: u64,
        life: u64,
    },
    Read {
        id: u64,
    },
    Fault,
    Start {
        id: u64,
    },
    /// A stopped process goes on.
    Resume {
        id: u64,
        life: u64,
    },
}

impl Event {
    /// The process at which it happens.
    fn process(&self) -> Option<u64> {
        match self {
            Event::Tick { id, .. }
            | Event::Deliver { id, .. }
            | Event::Sync { id, .. }
            | Event::Write { id, .. }
            | Event::Read { id }
            | Event::Start { id } => Some(*id),
            Event::Fault | Event::Resume { .. } => None,
        }
    }
}

/// A process: a member while it runs, and its disk.
struct Process {
    member: Option<Member>,
    disk: Disk,
    life: u64,
    /// How long its ticks last, in microseconds.
    tick_us: u64,
    /// The term in which its engine writes.
    writes_in: Option<Term>,
    /// Until then nothing happens here.
    stopped_until_us: u64,
    /// The ticks that passed while it was stopped.
    missed: u64,
}

pub(crate) struct Simulation {
    random: SplitMix,
    now_us: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    processes: BTreeMap<u64, Process>,
    cut: BTreeSet<u64>,
    checker: Checker,
    plan: Plan,
    reads: u64,
    summary: Summary,
}

type Outcome = Result<(), Violation>;

impl Simulation {
    pub(crate) fn new(seed: u64, plan: Plan) -> Simulation {
        let roles = plan.roles.iter().zip(1..).map(|(role, id)| (MemberId(id), *role));
        let members = Members::new(roles).unwrap();
        let mut simulation = Simulation {
            random: SplitMix::new(seed),
            now_us: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            processes: BTreeMap::new(),
            cut: BTreeSet::new(),
            checker: Checker::new(plan.bug != Bug::None),
            plan,
            reads: 0,
            summary: Summary::default(),
        };
        for (id, _) in members.iter() {
            let base = Base::founding(Term(1), Lsn::FIRST, members.clone());
            simulation.install(id.0, base);
        }
        simulation.schedule(1_000_000, Event::Fault);
        simulation
    }

    /// Runs to the end: faults, then quiet, then all members agree.
    pub(crate) fn run(mut self) -> Result<Summary, Violation> {
        let faulty_us = self.plan.faulty_ms * 1_000;
        self.run_until(faulty_us)?;
        self.heal();
        self.run_until(faulty_us + 30_000_000)?;
        self.check_end()?;
        Ok(self.summary)
    }

    fn run_until(&mut self, end_us: u64) -> Outcome {
        while self.events.peek().is_some_and(|Reverse((at, _, _))| *at <= end_us) {
            let Reverse((at, _, event)) = self.events.pop().expect("peeked");
            self.now_us = at;
            self.happen(event)?;
        }
        Ok(())
    }

    fn schedule(&mut self, after_us: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((self.now_us + after_us, self.scheduled, event)));
    }

    fn between(&self, low: u64, high: u64) -> u64 {
        low + self.random.below(high - low + 1)
    }

    fn one_in(&self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn is_faulty(&self) -> bool {
        self.now_us < self.plan.faulty_ms * 1_000
    }

    fn install(&mut self, id: u64, base: Base) {
        let tick_us = self.between(95_000, 105_000);
        let process = Process {
            member: None,
            disk: Disk::new(base),
            life: 0,
            tick_us,
            writes_in: None,
            stopped_until_us: 0,
            missed: 0,
        };
        self.processes.insert(id, process);
        self.schedule(0, Event::Start { id });
        self.schedule(500_000, Event::Read { id });
    }

    fn happen(&mut self, event: Event) -> Outcome {
        let process = event.process().and_then(|id| self.processes.get_mut(&id));
        if let Some(process) = process.filter(|process| process.stopped_until_us >= self.now_us) {
            if let Event::Tick { .. } = event {
                process.missed += 1;
                self.schedule(self.between(95_000, 105_000), event);
            } else {
                let left = process.stopped_until_us - self.now_us;
                self.schedule(left + 1, event);
            }
            return Ok(());
        }
        match event {
            Event::Resume { id, life } if self.lives(id, life) => self.resume(id),
            Event::Start { id } => self.start(id),
            Event::Tick { id, life } if self.lives(id, life) => {
                self.schedule(self.processes[&id].tick_us, Event::Tick { id, life });
                self.member(id).tick();
                self.carry_out(id)
            }
            Event::Sync { id, life } if self.lives(id, life) => self.sync(id),
            Event::Write { id, life } if self.lives(id, life) => {
                self.schedule(self.between(1_000, 60_000), Event::Write { id, life });
                self.propose(id)
            }
            Event::Deliver { id, bytes } => self.deliver(id, &bytes),
            Event::Read { id } => self.read(id),
            Event::Fault => self.fault(),
            Event::Tick { .. }
            | Event::Sync { .. }
            | Event::Write { .. }
            | Event::Resume { .. } => Ok(()),
        }
    }

    fn lives(&self, id: u64, life: u64) -> bool {
        self.processes.get(&id).is_some_and(|one| one.life == life && one.member.is_some())
    }

    fn process(&mut self, id: u64) -> &mut Process {
        self.processes.get_mut(&id).expect("installed")
    }

    fn member(&mut self, id: u64) -> &mut Member {
        self.process(id).member.as_mut().expect("runs")
    }

    fn start(&mut self, id: u64) -> Outcome {
        let seed = self.random.next_u64();
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        if process.member.is_some() {
            return Ok(());
        }
        let mut options = Options::new(MemberId(id), seed);
        (options.messages_in_flight, options.message_bytes) = (4, 500);
        options.undurable_bytes = 3_000;
        options.priority = (id % 2) as u8;
        let saved = process.disk.saved().clone();
        self.checker.starts(MemberId(id), saved.base.index);
        let process = self.process(id);
        process.life += 1;
        let life = process.life;
        process.member = Some(Member::start(options, saved).map_err(|error| error.to_string())?);
        self.schedule(self.between(0, 100_000), Event::Tick { id, life });
        self.schedule(self.between(0, 100_000), Event::Write { id, life });
        self.carry_out(id)
    }

    fn sync(&mut self, id: u64) -> Outcome {
        let Some(write) = self.process(id).disk.sync_one() else { return Ok(()) };
        self.member(id).synced(write);
        self.carry_out(id)
    }

    fn deliver(&mut self, id: u64, bytes: &[u8]) -> Outcome {
        let (message, _) = Message::decode(bytes).map_err(|error| error.to_string())?;
        let from = message.from().0;
        let unreachable = self.cut.contains(&id) || self.cut.contains(&from);
        let Some(member) = self.processes.get_mut(&id).and_then(|one| one.member.as_mut()) else {
            return Ok(());
        };
        if unreachable {
            return Ok(());
        }
        let old = message.term() != Term(0) && message.term() < member.term();
        let received = if old && self.plan.bug == Bug::TermNotChecked {
            member.receive(&with_term(bytes, member.term()))
        } else {
            member.receive(&message)
        };
        received.map_err(|error| format!("member {id}: {error}"))?;
        self.carry_out(id)
    }

    fn propose(&mut self, id: u64) -> Outcome {
        let count = self.between(1, 3);
        let Some(term) = self.process(id).writes_in else { return Ok(()) };
        let mut start = self.member(id).end();
        let mut batches = Vec::new();
        for _ in 0..count {
            let end = start.advance(8 * self.between(1, 30));
            let checksum = self.random.next_u64() as u32;
            batches.push(Batch { start, end, checksum });
            start = end;
        }
        // A refusal is no failure: the member may be handing over, or out of credit.
        let _ = self.member(id).propose(term, &batches);
        self.carry_out(id)
    }

    fn read(&mut self, id: u64) -> Outcome {
        self.schedule(self.between(10_000, 300_000), Event::Read { id });
        if self.processes.get(&id).is_none_or(|one| one.member.is_none()) {
            return Ok(());
        }
        self.reads += 1;
        let read = ReadId(self.reads);
        self.checker.read_begins(read);
        let _ = self.member(id).read(read);
        self.carry_out(id)
    }

    fn carry_out(&mut self, id: u64) -> Outcome {
        let commands = self.member(id).take_commands();
        for command in commands {
            match command {
                Command::Send(message) => self.send(&message),
                Command::Write(write) => self.write(id, write)?,
                Command::Durable { index, lsn } => {
                    let disk = &self.processes[&id].disk;
                    self.checker.durable(MemberId(id), index, lsn, disk)?;
                    self.summary.durable += 1;
                }
                Command::Lead { term, end } => {
                    self.checker.leads(MemberId(id), term, end)?;
                    self.process(id).writes_in = Some(term);
                    self.summary.leaders += 1;
                }
                Command::Follow { .. } => self.process(id).writes_in = None,
                Command::Members(_) => self.summary.changes += 1,
                Command::Read(read) => {
                    self.checker.read_ends(read)?;
                    self.summary.reads += 1;
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, id: u64, mut write: firn_consensus::Write) -> Outcome {
        if self.plan.bug == Bug::DurableIndexForgotten {
            let before = self.processes[&id].disk.saved().durable;
            write.durable = write.restart.as_ref().map_or(before, |base| base.index);
        }
        let (number, life) = (write.number, self.processes[&id].life);
        self.summary.restarts += u64::from(write.restart.is_some());
        self.summary.truncated += u64::from(write.truncate.is_some());
        let lies = match self.plan.bug {
            Bug::VoteSentBeforeItIsSynced => write.vote.is_some(),
            Bug::CountedBeforeItIsSynced => !write.append.is_empty(),
            _ => false,
        };
        self.process(id).disk.write(write);
        let slow = if self.is_faulty() && self.one_in(50) { 400_000 } else { 0 };
        self.schedule(self.between(100, 5_000) + slow, Event::Sync { id, life });
        if lies { self.lie(id, number) } else { Ok(()) }
    }

    /// Reports a write that is not synced.
    fn lie(&mut self, id: u64, number: WriteNumber) -> Outcome {
        self.member(id).synced(number);
        self.carry_out(id)
    }

    fn send(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        for byte in &bytes {
            self.summary.trace = mix(self.summary.trace ^ u64::from(*byte));
        }
        let id = message.to().0;
        let copies = if !self.is_faulty() {
            1
        } else if self.one_in(30) {
            0
        } else {
            1 + u64::from(self.one_in(30))
        };
        for _ in 0..copies {
            let is_late = self.is_faulty() && self.one_in(20);
            let late = if is_late { self.plan.late_ms * 1_000 } else { 4_000 };
            self.schedule(self.between(200, late), Event::Deliver { id, bytes: bytes.clone() });
        }
    }

    fn fault(&mut self) -> Outcome {
        if !self.is_faulty() {
            return Ok(());
        }
        self.schedule(self.between(50_000, 1_500_000), Event::Fault);
        let ids: Vec<u64> = self.processes.keys().copied().collect();
        let id = ids[self.random.below(ids.len() as u64) as usize];
        match self.random.below(11) {
            10 => self.stop(id),
            0..=3 => self.crash(id),
            4 | 5 => drop(self.cut.insert(id)),
            6 | 7 => self.cut.clear(),
            8 => return self.ask_leader(id),
            _ => return self.release(id),
        }
        Ok(())
    }

    fn stop(&mut self, id: u64) {
        let for_us = self.between(100_000, 4_000_000);
        let now_us = self.now_us;
        let process = self.process(id);
        process.stopped_until_us = now_us + for_us;
        let life = process.life;
        self.schedule(for_us, Event::Resume { id, life });
    }

    fn resume(&mut self, id: u64) -> Outcome {
        let missed = std::mem::take(&mut self.process(id).missed);
        if self.plan.bug == Bug::TicksMissed {
            return Ok(());
        }
        (0..missed).for_each(|_| self.member(id).tick());
        self.carry_out(id)
    }

    /// A loss of power. A part of the writes that were not synced is there all the same.
    fn crash(&mut self, id: u64) {
        let draw = self.random.next_u64();
        let process = self.process(id);
        let surviving = draw % (process.disk.unsynced() as u64 + 1);
        process.member = None;
        process.writes_in = None;
        (process.stopped_until_us, process.missed) = (0, 0);
        process.disk.crash(surviving as usize);
        self.summary.crashes += 1;
        self.schedule(self.between(1_000, 3_000_000), Event::Start { id });
    }

    /// The leader hands over, or changes the members.
    fn ask_leader(&mut self, other: u64) -> Outcome {
        let leader = self.processes.iter().find_map(|(id, one)| Some((*id, one.writes_in?)));
        let Some((leader, term)) = leader else { return Ok(()) };
        let draw = self.random.below(4);
        if !self.plan.changes || draw == 0 {
            let _ = self.member(leader).hand_over(term, MemberId(other));
            return self.carry_out(leader);
        }
        let change = self.draw_change(leader, other);
        if self.member(leader).change_members(term, &change).is_ok() {
            for change in change {
                if let MemberChange::Set(id, _) = change
                    && !self.processes.contains_key(&id.0)
                {
                    self.install(id.0, Base::joining());
                }
            }
        }
        self.carry_out(leader)
    }

    /// A newcomer, another role for a learner, or a newcomer in the place of a member. At least as
    /// many voters as at the start remain.
    fn draw_change(&mut self, leader: u64, other: u64) -> Vec<MemberChange> {
        let newcomer = MemberId(self.processes.keys().next_back().copied().unwrap_or(0) + 1);
        let learner = self.member(leader).members().iter().find(|(_, role)| *role == Role::Learner);
        match learner {
            Some((learner, _)) => {
                vec![MemberChange::Set(learner, Role::Voter), MemberChange::Remove(MemberId(other))]
            }
            None => vec![MemberChange::Set(newcomer, Role::Learner)],
        }
    }

    fn release(&mut self, id: u64) -> Outcome {
        let back = self.random.below(2_000);
        let Some(member) = self.process(id).member.as_mut() else { return Ok(()) };
        let durable = member.durable();
        member.release(Lsn(durable.0.saturating_sub(back)));
        Ok(())
    }

    fn heal(&mut self) {
        self.cut.clear();
        let ids: Vec<u64> = self.processes.keys().copied().collect();
        ids.into_iter().for_each(|id| self.schedule(0, Event::Start { id }));
    }

    /// After half a minute without faults a leader works, and every member has all durable log.
    fn check_end(&mut self) -> Outcome {
        for process in self.processes.values_mut() {
            process.writes_in = None;
        }
        let before = self.now_us;
        self.run_until(before + 2_000_000)?;
        let leader = self
            .processes
            .iter()
            .find(|(_, one)| one.member.as_ref().is_some_and(|member| member.leads().is_some()));
        let Some((_, process)) = leader else {
            return Err(format!("nobody leads at the end\n{}", self.show()));
        };
        let members = process.member.as_ref().expect("it leads").members().clone();
        for (id, _) in members.iter() {
            let disk = &self.processes[&id.0].disk;
            self.checker.complete(id, disk)?;
            if disk.last() < self.checker.last() {
                return Err(format!("member {id} did not catch up"));
            }
        }
        Ok(())
    }
}

impl Simulation {
    /// The state of all members, for a failure.
    fn show(&self) -> String {
        let line = |(id, one): (&u64, &Process)| {
            let saved = one.disk.saved();
            let base = saved.base.index;
            let log =
                format!("{id}: base {base}, last {}, durable {}", one.disk.last(), saved.durable);
            let Some(member) = &one.member else { return format!("{log}, down") };
            let (term, leader) = (member.term(), member.leader());
            format!("{log}, term {term}, leader {leader:?}, {:?}", member.members())
        };
        self.processes.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The encoded message with another term, whose place is behind version, kind, sender and receiver.
fn with_term(bytes: &[u8], term: Term) -> Message {
    const TERM_AT: usize = 4;
    let mut bytes = bytes.to_vec();
    assert!(bytes[TERM_AT] < 128 && term.0 < 128, "terms of a run have one byte");
    bytes[TERM_AT] = term.0 as u8;
    Message::decode(&bytes).expect("only the term is another one").0
}
