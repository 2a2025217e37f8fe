//! The driver's state, and how it carries out what the member commands.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::{LogEpoch, LogError, Room, Watermarks};
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::{Cts, Environment, Lsn, TrxId};
use firn_consensus::{Command, Content, Member, MemberId, Message, MessageKind, Term, Write};
use parking_lot::Mutex;

use super::member_log::MemberLog;
use super::options::GroupOptions;
use super::peers::{EntryBytes, Inbox, Outgoing, Peers};
use super::recent::RecentLog;
use super::writing::Writing;
use crate::leases::Leases;

/// What the tasks, the committers and the readers of a member share.
pub(super) struct Shared {
    pub(super) options: GroupOptions,
    pub(super) log: Arc<dyn MemberLog>,
    pub(super) peers: Arc<dyn Peers>,
    pub(super) clock: Arc<dyn Clock>,
    /// When the member started, by the clock.
    began: Duration,
    pub(super) core: Mutex<Core>,
    /// Whether a thread has the turn; see [`super::turn`].
    pub(super) turn: AtomicBool,
    pub(super) durable: AtomicU64,
    pub(super) truncated: AtomicU64,
    /// How far the log may be released, as far as the owner of the pages is concerned.
    pub(super) let_go: AtomicU64,
    /// The floor up to which the log was asked to be released last.
    pub(super) released: AtomicU64,
    /// A majority has not answered for longer than the patience.
    pub(super) is_silent: AtomicBool,
    /// Why the member does nothing any more.
    pub(super) failure: OnceLock<LogError>,
    pub(super) is_stopping: AtomicBool,
    /// Notified when more log is durable, and when the member begins or ends to lead. Committers
    /// wait for their rounds instead.
    pub(super) advanced: Event,
    /// The task `group-log` waits here.
    pub(super) work: Event,
    /// The task `group-clock` waits here.
    pub(super) stopped: Event,
    pub(super) leases: Leases,
    /// Where clients find the members. A leaf.
    pub(super) names: Mutex<BTreeMap<MemberId, String>>,
}

/// What the driver's latch protects.
pub(super) struct Core {
    pub(super) member: Member,
    /// How many ticks the member was told of.
    ticks: u64,
    pub(super) recent: RecentLog,
    /// Writes that the disk has not begun, with the bytes of their entries.
    pub(super) queue: VecDeque<Queued>,
    /// The end of the log that is on the disk.
    pub(super) stored: Lsn,
    /// The writer of this process, while it may write or may go on later.
    pub(super) writer: Option<Arc<Writing>>,
    /// Writers that have ended and whose sources were not told.
    pub(super) ended: Vec<Arc<Writing>>,
    /// The last term that was handed out as an epoch.
    pub(super) opened_in: Term,
    /// How many calls of `open` are under way. Meanwhile nothing is proposed.
    pub(super) openings: usize,
    /// The last confirmed read that was asked for, and the last one that was answered.
    pub(super) last_read: u64,
    pub(super) answered_read: u64,
    /// This member has asked another one to lead.
    pub(super) is_handing_over: bool,
    /// When more log became durable last, or this member began to lead.
    pub(super) progress_at: Duration,
    /// The log of the event's entries, by where it begins.
    stash: Vec<(Lsn, EntryBytes)>,
    /// The event is log of another leader.
    is_foreign: bool,
    pub(super) published_lease: Option<PublishedLease>,
}

/// A leader's lease, as others of this machine see it.
pub(super) struct PublishedLease {
    pub(super) term: Term,
    /// Says until when, on the monotonic clock, this member surely leads; zero: not any more.
    pub(super) tell: Box<dyn Fn(Duration) + Send>,
    /// The tick in which it was told last, and what.
    pub(super) told: Option<(u64, Duration)>,
}

/// A write for the disk.
pub(super) struct Queued {
    pub(super) write: Write,
    pub(super) log: Vec<EntryBytes>,
}

/// Whom an event concerns. They are notified without the latch.
#[derive(Default)]
pub(super) struct Effects {
    /// Messages were queued.
    sends: bool,
    /// Readers, and calls of `open`.
    advanced: bool,
    /// The task `group-log`.
    work: bool,
    /// Committers.
    durable: Option<(Arc<Writing>, RangeInclusive<u64>)>,
}

impl Core {
    pub(super) fn new(member: Member, stored: Lsn, recent_bytes: usize, now: Duration) -> Core {
        Core {
            member,
            ticks: 0,
            recent: RecentLog::new(recent_bytes),
            queue: VecDeque::new(),
            stored,
            writer: None,
            ended: Vec::new(),
            opened_in: Term(0),
            openings: 0,
            last_read: 0,
            answered_read: 0,
            is_handing_over: false,
            progress_at: now,
            stash: Vec::new(),
            is_foreign: false,
            published_lease: None,
        }
    }

    /// How much log may be proposed now. Some goes through even if much is not durable, as long as
    /// anything else is: a group may be longer than the limit.
    pub(super) fn credit(&self, limit_bytes: u64) -> u64 {
        let waiting = self.member.end().since(self.member.durable());
        if waiting == 0 { u64::MAX } else { limit_bytes.saturating_sub(waiting) }
    }

    /// Whether the writer has log that can be proposed at once.
    pub(super) fn may_propose(&self, limit_bytes: u64) -> bool {
        self.openings == 0
            && self.member.leads().is_some()
            && self.writer.as_ref().is_some_and(|writer| {
                writer.wants() && self.credit(limit_bytes) >= writer.pending_bytes().max(1)
            })
    }

    /// Whether log waits for a majority.
    fn is_waiting(&self) -> bool {
        let leads = self.member.leads().is_some();
        self.member.end() > self.member.durable() || (self.writer.is_some() && !leads)
    }
}

impl Shared {
    pub(super) fn new(
        environment: &Environment,
        (options, log, peers): (GroupOptions, Arc<dyn MemberLog>, Arc<dyn Peers>),
        member: Member,
        (begin, stored): (Lsn, Lsn),
    ) -> Shared {
        let now = environment.clock.monotonic();
        let core = Core::new(member, stored, options.recent_bytes, now);
        Shared {
            log,
            peers,
            clock: Arc::clone(&environment.clock),
            began: now,
            core: Mutex::new(core),
            turn: AtomicBool::new(false),
            durable: AtomicU64::new(begin.0),
            truncated: AtomicU64::new(begin.0),
            let_go: AtomicU64::new(0),
            released: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
            failure: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            advanced: Event::new(),
            work: Event::new(),
            stopped: Event::new(),
            leases: Leases::new(begin),
            names: Mutex::new(options.names.clone()),
            options,
        }
    }

    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst) || self.failure.get().is_some()
    }

    /// Nothing works any more: the disk has failed, or a thread died within a round.
    pub(super) fn fail(&self, error: LogError) {
        tracing::error!(%error, "this copy of the log has failed; it takes part no longer");
        self.failure.get_or_init(|| error);
        self.notify(Effects { advanced: true, work: true, ..Effects::default() });
        self.stopped.notify_all();
    }

    /// Lets the member take an event, and carries out what follows. Does not block.
    pub(super) fn event<T>(&self, event: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.core.lock();
        let outcome = event(&mut core);
        let effects = self.carry_out(&mut core);
        drop(core);
        self.notify(effects);
        outcome
    }

    /// As [`Shared::event`], for log that comes with it: of a proposal, or of another leader.
    pub(super) fn event_with_log<T>(
        &self,
        log: Vec<(Lsn, EntryBytes)>,
        event: impl FnOnce(&mut Core) -> T,
    ) -> T {
        self.event(|core| {
            core.stash = log;
            event(core)
        })
    }

    fn notify(&self, effects: Effects) {
        if effects.sends {
            self.peers.flush();
        }
        if let Some((writer, rounds)) = effects.durable {
            writer.rounds.wake(rounds);
            if writer.has_left() {
                writer.answer(None);
            }
        }
        if effects.advanced {
            self.advanced.notify_all();
        }
        if effects.work {
            self.work.notify_all();
        }
    }

    /// Says how long the lease lasts, once in a tick; and at once that it has ended, before a
    /// message leaves that lets another member lead.
    fn publish_lease(&self, core: &mut Core) {
        let Core { published_lease: Some(published), member, ticks, .. } = core else { return };
        let may_hold = member.leads() == Some(published.term) && !member.has_given_lease_up();
        let is_known = |(at, until): (u64, Duration)| at == *ticks && (may_hold || until.is_zero());
        if published.told.is_some_and(is_known) {
            return;
        }
        let left = if may_hold { member.lease_left() } else { 0 };
        let until = match left {
            0 => Duration::ZERO,
            left => self.began + self.options.tick * (*ticks + left) as u32,
        };
        published.told = Some((*ticks, until));
        (published.tell)(until);
    }

    /// Carries out the member's commands, in order.
    fn carry_out(&self, core: &mut Core) -> Effects {
        let mut effects = Effects::default();
        loop {
            let commands = core.member.take_commands();
            self.publish_lease(core);
            if commands.is_empty() {
                break;
            }
            for command in commands {
                self.command(core, command, &mut effects);
            }
        }
        core.stash.clear();
        core.is_foreign = false;
        effects
    }

    fn command(&self, core: &mut Core, command: Command, effects: &mut Effects) {
        match command {
            Command::Send(message) => {
                // A leader's sends come before its write, so their log is not among the recent yet.
                let (to, log) = (message.to(), core.recent.of(message.entries(), &core.stash));
                if let Some((_, end)) = log.stored {
                    debug_assert!(end <= core.stored, "log that is not on the disk is in memory");
                }
                effects.sends = true;
                if !self.peers.send(Outgoing { message, log }) {
                    core.member.unreachable(to);
                }
            }
            Command::Write(write) => self.write(core, write, effects),
            Command::Durable { lsn, .. } => self.reach(core, lsn, effects),
            Command::Lead { .. } => {
                core.is_handing_over = false;
                self.has_progressed(core);
                (effects.advanced, effects.work) = (true, true);
            }
            Command::Follow { term, leader } => {
                effects.advanced = true;
                if leader.is_some() {
                    self.depose_writer(core, leader, term);
                    effects.work = true;
                }
            }
            Command::Read(read) => {
                core.answered_read = core.answered_read.max(read.id.0);
                effects.advanced = true;
            }
            // The caller that changes the members provides the addresses of newcomers.
            Command::Members(_) => {}
        }
    }

    /// Ends the writer because another member leads. Where this one gave its office away, the log
    /// is written elsewhere; else the writer was fenced.
    fn depose_writer(&self, core: &mut Core, leader: Option<MemberId>, term: Term) {
        let error = if std::mem::take(&mut core.is_handing_over) {
            LogError::NotLeader { hint: leader.and_then(|leader| self.name_of(leader)) }
        } else {
            LogError::Fenced { by: LogEpoch(term.0) }
        };
        self.end_writer(core, error);
    }

    pub(super) fn name_of(&self, member: MemberId) -> Option<String> {
        self.names.lock().get(&member).cloned()
    }

    /// Puts a write with its log into the queue of the disk.
    fn write(&self, core: &mut Core, write: Write, effects: &mut Effects) {
        if core.is_foreign {
            // Another member leads: log of its own takes the place of what was never durable.
            let (leader, term) = (core.member.leader(), core.member.term());
            self.depose_writer(core, leader, term);
            effects.advanced = true;
        }
        if let Some(base) = &write.restart {
            core.recent.clear();
            core.stored = base.lsn;
            self.truncated.fetch_max(base.lsn.0, Ordering::SeqCst);
        }
        if let Some((_, lsn)) = write.truncate {
            core.recent.truncate(lsn);
            core.stored = core.stored.min(lsn);
        }
        let mut log = Vec::new();
        for entry in &write.append {
            if matches!(entry.content, Content::Log { .. }) {
                let bytes = core.stash.iter().find(|(start, _)| *start == entry.start);
                let bytes = Arc::clone(&bytes.expect("the log came with the event").1);
                core.recent.push(entry.start, Arc::clone(&bytes));
                log.push(bytes);
            }
        }
        core.queue.push_back(Queued { write, log });
        effects.work = true;
    }

    /// The group has everything before `lsn`.
    fn reach(&self, core: &mut Core, lsn: Lsn, effects: &mut Effects) {
        self.log.set_durable(lsn);
        if let Some(writer) = &core.writer {
            if let Some(rounds) = writer.reach(lsn) {
                let first = effects.durable.take().map_or(*rounds.start(), |(_, one)| *one.start());
                effects.durable = Some((Arc::clone(writer), first..=*rounds.end()));
            }
            effects.work |= writer.has_news() || core.may_propose(self.limit_bytes());
        }
        self.durable.fetch_max(lsn.0, Ordering::SeqCst);
        self.has_progressed(core);
        effects.advanced = true;
    }

    pub(super) fn limit_bytes(&self) -> u64 {
        self.options.member.undurable_bytes
    }

    fn has_progressed(&self, core: &mut Core) {
        core.progress_at = self.clock.monotonic();
        self.is_silent.store(false, Ordering::SeqCst);
    }

    /// Ends the writer of this process, if there is one. Its source is told later, by a task.
    pub(super) fn end_writer(&self, core: &mut Core, error: LogError) {
        if let Some(writer) = core.writer.take() {
            writer.end(error);
            writer.rounds.wake_all();
            core.ended.push(writer);
        }
    }

    /// Ends `writer`, unless it has ended before.
    pub(super) fn end_if_current(&self, writer: &Arc<Writing>, error: LogError) {
        let mut core = self.core.lock();
        if core.writer.as_ref().is_some_and(|current| Arc::ptr_eq(current, writer)) {
            self.end_writer(&mut core, error);
        }
    }

    /// What the task `group-clock` does.
    pub(super) fn run_clock(&self) {
        let tick_ns = self.options.tick.as_nanos().max(1);
        while !self.is_stopped() {
            let ticket = self.stopped.listen();
            self.event(|core| self.catch_up(core));
            if self.is_silent.load(Ordering::SeqCst) {
                self.refuse_left();
            }
            let passed = self.clock.monotonic().saturating_sub(self.began);
            let left = tick_ns - passed.as_nanos() % tick_ns;
            self.stopped.wait(ticket, Some(Duration::from_nanos(left as u64)));
        }
    }

    /// Ticks, as often as time has passed. A process that was stopped for long makes up for as many
    /// ticks as a lease and an election last, and no more. What relies on the lease calls this
    /// first: the task may be late.
    pub(super) fn catch_up(&self, core: &mut Core) {
        let now = self.clock.monotonic();
        let passed = now.saturating_sub(self.began).as_nanos();
        let due = (passed / self.options.tick.as_nanos().max(1)) as u64;
        let most = 4 * u64::from(self.options.member.election_ticks);
        (0..(due - core.ticks).min(most)).for_each(|_| core.member.tick());
        core.ticks = due;
        if !core.is_waiting() {
            core.progress_at = now;
        } else if now.saturating_sub(core.progress_at) > self.options.patience {
            self.is_silent.store(true, Ordering::SeqCst);
        }
    }

    /// Why no log is taken at the moment, or how much room there is.
    pub(super) fn room(&self) -> Result<Room, LogError> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        if self.is_silent.load(Ordering::SeqCst) {
            Err(self.unavailable())
        } else {
            self.log.room()
        }
    }

    pub(super) fn unavailable(&self) -> LogError {
        let patience = self.options.patience;
        LogError::Unavailable {
            reason: format!("no majority of its copies has answered for {patience:?}"),
        }
    }
}

impl Inbox for Shared {
    fn receive(&self, bytes: &[u8]) {
        let Ok((message, log)) = Message::decode(bytes) else {
            tracing::warn!("bytes arrived that are no message of a group; update the older member");
            return;
        };
        let damaged = || {
            tracing::warn!(from = %message.from(), "a message arrived with damaged log");
        };
        if self.is_stopped() {
            return;
        }
        let log = if message.kind() == MessageKind::Restart {
            // Before the restart: the disk gets both at once.
            let Some(watermarks) = watermarks_of(log) else { return damaged() };
            self.log.raise_watermarks(watermarks);
            Vec::new()
        } else {
            let Some(log) = log_of(&message, log) else { return damaged() };
            log
        };
        let received = self.event_with_log(log, |core| {
            core.is_foreign = matches!(message.kind(), MessageKind::Append | MessageKind::Restart);
            core.member.receive(&message)
        });
        if let Err(error) = received {
            tracing::error!(%error, from = %message.from(), "a message of the group was refused");
        }
    }

    fn unreachable(&self, member: MemberId) {
        if !self.is_stopped() {
            self.event(|core| core.member.unreachable(member));
        }
    }

    fn read(&self, from: Lsn, to: Lsn, into: &mut Vec<u8>) -> Result<(), LogError> {
        self.log.read(from, to, into)
    }

    fn read_watermarks(&self, into: &mut Vec<u8>) -> Result<(), LogError> {
        let Watermarks { trx_id_limit, cts_limit } = self.log.watermarks()?;
        into.extend_from_slice(&trx_id_limit.0.to_le_bytes());
        into.extend_from_slice(&cts_limit.0.to_le_bytes());
        Ok(())
    }
}

/// The watermarks that came with a base; `None` if the bytes are none.
fn watermarks_of(bytes: &[u8]) -> Option<Watermarks> {
    let (trx_id, cts) = bytes.split_first_chunk::<8>()?;
    let cts: [u8; 8] = cts.try_into().ok()?;
    Some(Watermarks {
        trx_id_limit: TrxId(u64::from_le_bytes(*trx_id)),
        cts_limit: Cts(u64::from_le_bytes(cts)),
    })
}

/// The log of each entry of a message; `None` if it does not match the entries' checksums.
fn log_of(message: &Message, mut bytes: &[u8]) -> Option<Vec<(Lsn, EntryBytes)>> {
    let mut log = Vec::new();
    for entry in message.entries() {
        if let Content::Log { bytes: length, checksum } = entry.content {
            let (own, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            if crc32c::crc32c(own) != checksum {
                return None;
            }
            log.push((entry.start, Arc::new(own.to_vec())));
            bytes = rest;
        }
    }
    bytes.is_empty().then_some(log)
}
