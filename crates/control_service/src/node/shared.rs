//! What the tasks and the services of a control node share, and how an event is carried out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_base::Environment;
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_consensus::{Command, Role};
use firn_link::Responder;
use parking_lot::{Mutex, RwLock};

use super::core::Core;
use super::lanes::Lanes;
use crate::message::{OperationLine, Reply, StatusReply};
use crate::options::{ControlMembers, ControlOptions};

/// The most ticks that are made up for after the process was stopped, in election timeouts: a lease
/// and an election are over by then.
const MOST_ELECTIONS: u64 = 4;

pub(super) struct Shared {
    pub(super) options: ControlOptions,
    /// Where the members are, this one among them. A leaf.
    pub(super) addresses: RwLock<ControlMembers>,
    pub(super) clock: Arc<dyn Clock>,
    /// When the node started, by the clock.
    began: Duration,
    election_ticks: u64,
    pub(super) core: Mutex<Core>,
    pub(super) lanes: Lanes,
    /// The task `control-disk` waits here.
    pub(super) disk_work: Event,
    answers: Mutex<VecDeque<(Responder, Reply)>>,
    /// The task `control-reply` waits here.
    answered: Event,
    /// The disk lacks what this member has confirmed.
    pub(super) has_lost_entries: AtomicBool,
    /// Why the node does nothing any more.
    pub(super) failure: OnceLock<String>,
    pub(super) is_stopping: AtomicBool,
    /// The task `control-clock` and all pauses wait here.
    pub(super) stopped: Event,
}

impl Shared {
    pub(super) fn new(
        environment: &Environment,
        options: ControlOptions,
        members: ControlMembers,
        core: Core,
        lanes: Lanes,
    ) -> Shared {
        let member = firn_consensus::Options::new(options.id, 0);
        Shared {
            options,
            addresses: RwLock::new(members),
            clock: Arc::clone(&environment.clock),
            began: environment.clock.monotonic(),
            election_ticks: u64::from(member.election_ticks),
            core: Mutex::new(core),
            lanes,
            disk_work: Event::new(),
            answers: Mutex::default(),
            answered: Event::new(),
            has_lost_entries: AtomicBool::new(false),
            failure: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            stopped: Event::new(),
        }
    }

    /// Carries out what the member commands first.
    pub(super) fn begin(&self) {
        self.event(|core| {
            let voters = core.member.members().iter().filter(|(_, role)| role.votes());
            let is_lone = voters.eq([(self.options.id, Role::Voter)]);
            let before = core.member.term();
            // A lone voter has nobody to wait for: it leads at once.
            let most = if is_lone { 4 * self.election_ticks } else { 0 };
            for _ in 0..most {
                if core.member.term() == before {
                    core.member.tick();
                }
            }
        });
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst) || self.failure.get().is_some()
    }

    pub(super) fn wake_all(&self) {
        self.disk_work.notify_all();
        self.answered.notify_all();
        self.stopped.notify_all();
        self.lanes.wake_all();
    }

    /// The node can go on no more: its disk has failed, or what it has contradicts the group's.
    pub(super) fn fail(&self, what: String) {
        tracing::error!(failure = what, "this control node takes part no longer; start it again");
        self.failure.get_or_init(|| what);
        self.wake_all();
    }

    /// Lets the core take an event, and carries out what follows. Does not block.
    pub(super) fn event<T>(&self, event: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.core.lock();
        self.catch_up(&mut core);
        self.carry_out(&mut core);
        let outcome = event(&mut core);
        self.carry_out(&mut core);
        self.tell_watchers(&mut core);
        core.stash.clear();
        core.stashed_catalog = None;
        let answers = std::mem::take(&mut core.answers);
        let has_writes = !core.queue.is_empty();
        drop(core);
        if has_writes {
            self.disk_work.notify_all();
        }
        if !answers.is_empty() {
            self.answers.lock().extend(answers);
            self.answered.notify_all();
        }
        outcome
    }

    /// Ticks, as often as time has passed.
    fn catch_up(&self, core: &mut Core) {
        let passed = self.clock.monotonic().saturating_sub(self.began).as_nanos();
        let due = (passed / self.options.tick.as_nanos().max(1)) as u64;
        let missed = due.saturating_sub(core.ticks).min(MOST_ELECTIONS * self.election_ticks);
        (0..missed).for_each(|_| core.member.tick());
        core.ticks = due;
    }

    /// Carries out commands until there are none (latch rule 3).
    pub(super) fn carry_out(&self, core: &mut Core) {
        loop {
            let commands = core.member.take_commands();
            if !commands.is_empty() {
                commands.into_iter().for_each(|command| self.command(core, command));
                continue;
            }
            let commands = core.controller.take_commands();
            if commands.is_empty() {
                return;
            }
            commands.into_iter().for_each(|command| self.control(core, command));
        }
    }

    fn command(&self, core: &mut Core, command: Command) {
        match command {
            Command::Send(message) => self.send(core, &message),
            Command::Write(write) => {
                if core.take_write(&write).is_none() {
                    self.fail("an entry came without its bytes".to_owned());
                }
            }
            Command::Durable { index, .. } => self.apply(core, index),
            Command::Lead { term, .. } => {
                let leader = self.own_address();
                core.end_leadership(leader.as_ref());
                core.controller.lead(term);
                self.found_cluster(core);
            }
            Command::Follow { .. } => {
                if core.controller.leads().is_some() {
                    let leader = self.leader_of(core);
                    core.end_leadership(leader.as_ref());
                    core.controller.follow();
                }
            }
            // Control repeats its order until the change is in force.
            Command::Members(_) | Command::Read(_) => {}
        }
    }

    fn send(&self, core: &mut Core, message: &firn_consensus::Message) {
        let to = message.to();
        let sent = match core.encode(message) {
            Some(bytes) => {
                if let Some(observer) = &self.options.observer {
                    observer.sends(message);
                }
                self.lanes.send(to, bytes)
            }
            None => false,
        };
        if !sent {
            core.member.unreachable(to);
        }
    }

    fn control(&self, core: &mut Core, command: firn_control::Command) {
        match command {
            // What cannot be proposed now the controller proposes again.
            firn_control::Command::Propose(proposal) => drop(core.propose(&proposal)),
            firn_control::Command::Send(node, message) => {
                let Some(term) = core.acts() else { return };
                if let Some(observer) = &self.options.observer {
                    observer.acts(term, &message);
                }
                core.keep(node, message);
            }
        }
    }

    /// Where the leader is, as far as this node knows.
    pub(super) fn leader_of(&self, core: &Core) -> Option<String> {
        self.addresses.read().get(&core.member.leader()?).map(ToString::to_string)
    }

    fn own_address(&self) -> Option<String> {
        self.addresses.read().get(&self.options.id).map(ToString::to_string)
    }

    pub(super) fn status(&self, core: &Core) -> StatusReply {
        let lines = core.controller.operation_statuses().into_iter().map(|one| OperationLine {
            operation: one.operation,
            text: one.text,
            reason: one.reason,
            progress: one.progress,
            waits_for: one.waits_for,
        });
        StatusReply {
            member: self.options.id,
            term: core.member.term(),
            leads: core.acts().is_some(),
            leader: self.leader_of(core),
            entries: core.controller.catalog().entries(),
            operations: lines.collect(),
        }
    }

    /// What the task `control-clock` does.
    pub(super) fn run_clock(&self) {
        let tick_ns = self.options.tick.as_nanos().max(1);
        while !self.is_stopped() {
            let ticket = self.stopped.listen();
            self.event(|core| {
                // Without a lease nobody is heard, and silence proves nothing.
                if core.controller.leads().is_none() || core.acts().is_some() {
                    core.controller.tick();
                }
                self.enter_group(core);
                self.end_watches(core);
            });
            let passed = self.clock.monotonic().saturating_sub(self.began);
            let left = tick_ns - passed.as_nanos() % tick_ns;
            self.stopped.wait(ticket, Some(Duration::from_nanos(left as u64)));
        }
    }

    /// What the task `control-reply` does. A client that does not read holds up the others' answers
    /// for a while, and nothing else.
    pub(super) fn run_replies(&self) {
        loop {
            let is_due = || self.is_stopped() || !self.answers.lock().is_empty();
            self.answered.wait_until(None, is_due);
            if self.is_stopped() {
                return self.answer_last();
            }
            while let Some((responder, reply)) = self.next_answer() {
                responder.reply(reply.encode());
            }
        }
    }

    fn next_answer(&self) -> Option<(Responder, Reply)> {
        self.answers.lock().pop_front()
    }

    /// The last words of a node that stops.
    fn answer_last(&self) {
        let mut core = self.core.lock();
        core.controller.follow();
        core.end_leadership(None);
        let rest = std::mem::take(&mut core.answers);
        drop(core);
        self.answers.lock().extend(rest);
        while let Some((responder, reply)) = self.next_answer() {
            responder.reply(reply.encode());
        }
    }
}
