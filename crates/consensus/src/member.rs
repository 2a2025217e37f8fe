//! A member of a group: events in, commands out.
//!
//! A member has no clock, no disk and no network. Its driver calls a method for each event and then
//! carries out [`Member::take_commands`], in order. The following holds, where *synced*
//! means that the process has reported the write with [`Member::synced`]:
//!
//! ```text
//!   base ≤ applied = durable ≤ synced ≤ written        (indexes of entries)
//! ```
//!
//! 1. *One leader.* At most one member is told to lead in a term ([`Command::Lead`]), and it is
//!    told so once a majority has all log of earlier terms. [`Member::propose`] refuses every other
//!    term, so a writer that was fenced adds nothing.
//! 2. *Nothing is promised that is not synced.* A vote, and an answer that entries have arrived,
//!    is sent after the write that it speaks of. A leader sends entries at once, but counts its own
//!    copy when it is synced.
//! 3. *Durable is for good.* [`Command::Durable`] names entries that a majority has synced, this
//!    member among them. Later leaders have them too. The position never goes back, and
//!    [`crate::Write::truncate`] never reaches below it.
//! 4. *Logs agree.* Two members that have an entry with the same index and term have the same
//!    entries before it.
//! 5. *Reads are not stale.* [`crate::Read::durable`] is at or above everything that was reported
//!    as durable, by any member, before the read began. A leader answers alone only within its
//!    lease ([`lease`]).
//! 6. *A logger never leads.* It is never told to lead. If it alone has log that others need, it is
//!    elected, takes no proposals, sends that log on and hands over ([`elections`]).
//!
//! A group with one voter needs no message: its entries are durable when they are synced.

mod drive;
mod elections;
mod lease;

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use firn_base::Lsn;
use firn_base::random::SplitMix;
use raft::prelude::{HardState, MessageType};
use raft::{Config, ProgressState, RawNode, StateRole};

use crate::command::{Command, ReadId, Vote, WriteNumber};
use crate::entry::{Base, Batch, Entry, Index, Term};
use crate::index::EntryIndex;
use crate::library;
use crate::members::{MemberChange, MemberId, Members, MembersError, Role};
use crate::message::{Message, MessageKind};
use crate::options::{Options, OptionsError};
use lease::Lease;

/// What a process finds on its disk.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The last vote that was written.
    pub vote: Vote,
    /// Where the log begins.
    pub base: Base,
    /// The log, from the base on.
    pub entries: Vec<Entry>,
    /// [`crate::Write::durable`] of the last write, or the base's index if that is higher.
    pub durable: Index,
}

impl Saved {
    /// A process that has no log yet.
    #[must_use]
    pub fn empty(base: Base) -> Saved {
        let vote = Vote { term: base.term, member: None };
        let durable = base.index;
        Saved { vote, base, entries: Vec::new(), durable }
    }

    /// Whether the member has never heard a leader. One that has, has written the leader's term,
    /// even if it got no entry and voted for nobody.
    fn is_new(&self) -> bool {
        let founding = Vote { term: self.base.term, member: None };
        self.vote == founding && self.base.index <= Base::FOUNDED_AT
    }
}

/// Why a member cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SavedError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("the saved log of the group is damaged: {0}. Restore it, or join the group again")]
    Damaged(&'static str),
}

/// Why a request is refused. Nothing has happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this member does not lead")]
    NotLeader { leader: Option<MemberId> },
    /// The caller's term is over. It must stop writing.
    #[error("the group is in term {by}")]
    Fenced { by: Term },
    /// The leader is about to be another member.
    #[error("the leadership is being handed over")]
    HandingOver,
    #[error("too much log is not durable yet; try again later")]
    NoCredit,
    #[error("a batch begins at {start}, and the log ends at {end}")]
    OutOfPlace { start: Lsn, end: Lsn },
    #[error("another change of members is under way; try again later")]
    ChangeUnderWay,
    #[error(transparent)]
    Members(#[from] MembersError),
    #[error("member {0} may not lead")]
    CannotLead(MemberId),
    #[error("a write is under way; try again once it is synced")]
    WriteUnderWay,
}

/// Why a message is not processed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    #[error("the message is for member {0}")]
    Misdirected(MemberId),
    /// Processing the message would continue with a log that has a hole.
    #[error(
        "this member's log ends at entry {last}, and it had confirmed entry {confirmed}. Its disk lost data; remove the member, and let it join again"
    )]
    LogLost { last: Index, confirmed: Index },
    /// A leader sends other entries in the place of durable ones.
    #[error("durable entry {0} differs from the leader's; one of the two logs is damaged")]
    Contradiction(Index),
}

/// A write that was not reported as synced.
struct Unsynced {
    number: WriteNumber,
    with_vote: bool,
    restart: Option<Base>,
}

/// What a member was last told about its leadership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Leads(Term),
    Follows { term: Term, leader: Option<MemberId> },
}

/// One member of a group. See the module's page.
pub struct Member {
    options: Options,
    node: RawNode<EntryIndex>,
    /// Ticks of this life.
    ticks: u64,
    /// Until this tick the member may be bound by a promise of its life before.
    quiet_until: u64,
    draws: SplitMix,
    /// The election timeout that was drawn last.
    timeout: usize,
    /// The vote of the last write that had one, or of the disk.
    written_vote: Vote,
    unsynced: VecDeque<Unsynced>,
    /// Messages that wait for a write.
    held: VecDeque<(WriteNumber, Message)>,
    standing: Option<Standing>,
    durable: (Index, Lsn),
    /// Reads that are confirmed, up to an entry that is not durable here yet.
    reads: Vec<(ReadId, Index)>,
    lease: Lease,
    /// Members that restart from a base, and the tick at which the base was sent.
    restarting: BTreeMap<u64, u64>,
    commands: Vec<Command>,
}

impl Member {
    /// Starts a member from what is on its disk.
    ///
    /// # Errors
    /// If the options contradict each other or the saved log is not one.
    pub fn start(options: Options, saved: Saved) -> Result<Member, SavedError> {
        options.check()?;
        check_saved(&saved)?;
        let is_new = saved.is_new();
        let (base, durable) = (saved.base, saved.durable);
        let state = HardState {
            term: saved.vote.term.0,
            vote: saved.vote.member.map_or(0, |id| id.0),
            commit: durable.0,
            ..Default::default()
        };
        let config = config(&options);
        let applied = (base.index, base.lsn);
        let index = EntryIndex::new(base, saved.entries, state, &options);
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&config, index, &logger)
            .map_err(|_| SavedError::Damaged("the library refuses it"))?;
        let mut member = Member {
            ticks: 0,
            quiet_until: if is_new { 0 } else { u64::from(options.election_ticks) },
            draws: SplitMix::new(options.seed),
            timeout: 0,
            written_vote: saved.vote,
            unsynced: VecDeque::new(),
            held: VecDeque::new(),
            standing: None,
            durable: applied,
            reads: Vec::new(),
            lease: Lease::new(options.lease_ticks()),
            restarting: BTreeMap::new(),
            commands: Vec::new(),
            options,
            node,
        };
        member.settle();
        Ok(member)
    }

    /// The commands since the last call. The driver carries them out in this order.
    #[must_use]
    pub fn take_commands(&mut self) -> Vec<Command> {
        mem::take(&mut self.commands)
    }

    /// Time passes: call it at a steady rate. A process that was stopped for a while first makes up
    /// for the ticks that it missed, because the lease counts them.
    pub fn tick(&mut self) {
        self.ticks += 1;
        // A disk that does not answer is no reason to become leader, and the library relies on it.
        let stuck = !self.unsynced.is_empty() && self.would_campaign();
        if !stuck {
            self.node.tick();
        }
        self.retry_restarts();
        self.settle();
    }

    /// Takes a message of another member. The bytes of its entries have been compared with their
    /// checksums. The driver keeps them until it has carried out the commands; entries that no
    /// write names were not needed.
    ///
    /// # Errors
    /// If the message is for another member, or shows that data was lost.
    pub fn receive(&mut self, message: &Message) -> Result<(), ReceiveError> {
        if message.to != self.options.id {
            return Err(ReceiveError::Misdirected(message.to));
        }
        if self.is_unwelcome(message) {
            return Ok(());
        }
        self.check_received(message)?;
        // An answer of a member that was removed, or a read without a leader: nothing to do.
        let _ = self.node.step(library::received(message));
        self.hear(message);
        self.settle();
        Ok(())
    }

    /// All writes up to `write` are durable.
    pub fn synced(&mut self, write: WriteNumber) {
        while let Some(first) = self.unsynced.pop_front_if(|first| first.number <= write) {
            if let Some(base) = first.restart {
                self.node.on_persist_ready(first.number.0);
                self.node.advance_apply_to(base.index.0);
                self.reach((base.index, base.lsn));
                self.commands.push(Command::Members(base.members));
            }
        }
        self.node.on_persist_ready(write.0);
        while let Some((_, message)) = self.held.pop_front_if(|(until, _)| *until <= write) {
            self.commands.push(Command::Send(message));
        }
        self.settle();
    }

    /// Adds batches to the log, one entry each. They follow each other and the log's end. All of
    /// them go into one message to each member that keeps up.
    ///
    /// # Errors
    /// If this member does not lead in `term`, or the batches do not fit; then none is added.
    pub fn propose(&mut self, term: Term, batches: &[Batch]) -> Result<Index, Refusal> {
        self.check_leads(term)?;
        let mut end = self.end();
        for batch in batches {
            if batch.start != end || batch.end <= batch.start {
                return Err(Refusal::OutOfPlace { start: batch.start, end });
            }
            end = batch.end;
        }
        let waiting = self.end().since(self.durable.1);
        if waiting > 0 && end.since(self.durable.1) > self.options.undurable_bytes {
            return Err(Refusal::NoCredit);
        }
        let mut proposal = raft::prelude::Message::default();
        proposal.set_msg_type(MessageType::MsgPropose);
        proposal
            .set_entries(batches.iter().map(library::proposed_batch).collect::<Vec<_>>().into());
        if !batches.is_empty() {
            self.node.raft.step(proposal).map_err(|_| Refusal::HandingOver)?;
        }
        self.settle();
        Ok(self.last())
    }

    /// Asks for a position that includes everything durable; the answer is a [`Command::Read`].
    /// None comes if messages are lost: ask again.
    ///
    /// # Errors
    /// If no leader is known.
    pub fn read(&mut self, id: ReadId) -> Result<(), Refusal> {
        if self.leads().is_some() && self.has_lease() {
            // A follower may have reported this before the leader's own copy is synced.
            self.reads.push((id, Index(self.node.raft.raft_log.committed)));
            self.settle();
            return Ok(());
        }
        let raft = &self.node.raft;
        if raft.leader_id == 0 || (raft.state == StateRole::Leader && self.leads().is_none()) {
            return Err(Refusal::NotLeader { leader: self.leader() });
        }
        let mut context = self.id().to_le_bytes().to_vec();
        context.extend_from_slice(&id.0.to_le_bytes());
        self.node.read_index(context);
        self.settle();
        Ok(())
    }

    /// Changes the members. Several changes are one step: until it is done, majorities of the old
    /// and of the new members are needed.
    ///
    /// # Errors
    /// If this member does not lead in `term`, another change is under way, or the changes do not
    /// fit the members.
    pub fn change_members(
        &mut self,
        term: Term,
        changes: &[MemberChange],
    ) -> Result<Index, Refusal> {
        self.check_leads(term)?;
        if self.node.raft.has_pending_conf() {
            return Err(Refusal::ChangeUnderWay);
        }
        self.members().changed(changes)?;
        let (context, change) = library::proposed_change(changes);
        self.node.propose_conf_change(context, change).map_err(|_| Refusal::HandingOver)?;
        self.settle();
        Ok(self.last())
    }

    /// Lets another voter lead. Proposals are refused until it does, or until an election's time
    /// has passed.
    ///
    /// # Errors
    /// If this member does not lead, or `to` may not.
    pub fn hand_over(&mut self, term: Term, to: MemberId) -> Result<(), Refusal> {
        self.check_leads(term)?;
        if self.members().role(to) != Some(Role::Voter) || to == self.options.id {
            return Err(Refusal::CannotLead(to));
        }
        self.node.transfer_leader(to.0);
        self.settle();
        Ok(())
    }

    /// Begins the next term at once, in which this member leads again: a second writer in the same
    /// process fences the first one. If the election fails, any voter may lead the term after it.
    ///
    /// The voters ignore what they promised to the leader's lease, as in a hand-over. That harms no
    /// read: the lease was this member's own, and no other member can be elected in a term between.
    ///
    /// # Errors
    /// If this member does not lead in `term`, or a write is not synced.
    pub fn lead_again(&mut self, term: Term) -> Result<(), Refusal> {
        self.check_leads(term)?;
        if !self.unsynced.is_empty() {
            return Err(Refusal::WriteUnderWay);
        }
        self.node.raft.become_follower(term.0, 0);
        let mut at_once = raft::prelude::Message::default();
        at_once.set_msg_type(MessageType::MsgTimeoutNow);
        // Ignored while a change of members is not in force yet: an election follows in time.
        let _ = self.node.raft.step(at_once);
        self.settle();
        Ok(())
    }

    /// A message to `member` could not be sent. Its entries are sent again when it answers.
    pub fn unreachable(&mut self, member: MemberId) {
        self.node.report_unreachable(member.0);
        self.settle();
    }

    /// Forgets durable log before `lsn`, which is in the pages. Returns where the kept log begins.
    pub fn release(&mut self, lsn: Lsn) -> Lsn {
        self.node.mut_store().release(lsn)
    }

    /// The term in which this member leads, if it was told so.
    #[must_use]
    pub fn leads(&self) -> Option<Term> {
        match self.standing {
            Some(Standing::Leads(term)) => Some(term),
            _ => None,
        }
    }

    /// The leader, as far as this member knows.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        Some(MemberId(self.node.raft.leader_id)).filter(|id| id.0 != 0)
    }

    #[must_use]
    pub fn term(&self) -> Term {
        Term(self.node.raft.term)
    }

    /// Everything before this position is durable in the group, as far as this member knows.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.durable.1
    }

    /// The end of the log, durable or not.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.node.store().end()
    }

    /// The last entry, durable or not.
    #[must_use]
    pub fn last(&self) -> Index {
        self.node.store().last()
    }

    /// The members in force.
    #[must_use]
    pub fn members(&self) -> &Members {
        self.node.store().members()
    }

    fn id(&self) -> u64 {
        self.options.id.0
    }

    fn role(&self) -> Option<Role> {
        self.members().role(self.options.id)
    }

    fn check_leads(&self, term: Term) -> Result<(), Refusal> {
        match self.leads() {
            Some(own) if own == term && self.node.raft.lead_transferee.is_some() => {
                Err(Refusal::HandingOver)
            }
            Some(own) if own == term => Ok(()),
            _ if self.term() > term => Err(Refusal::Fenced { by: self.term() }),
            _ => Err(Refusal::NotLeader { leader: self.leader() }),
        }
    }

    /// Messages that are dropped like lost ones.
    fn is_unwelcome(&self, message: &Message) -> bool {
        let restarting = self.unsynced.iter().any(|write| write.restart.is_some());
        match message.kind {
            MessageKind::HandOver => self.role() != Some(Role::Voter),
            // What the leader sends fits the log as it was before, or another base.
            MessageKind::Append | MessageKind::Restart => restarting,
            // The life before may have promised a leader not to vote. A leader that hands over
            // has given its lease up.
            MessageKind::AskVote | MessageKind::AskPreVote => {
                self.ticks < self.quiet_until && message.context.is_empty()
            }
            _ => false,
        }
    }

    /// Refuses what the library would panic about.
    fn check_received(&self, message: &Message) -> Result<(), ReceiveError> {
        let (index, last) = (self.node.store(), self.last());
        if message.kind == MessageKind::Heartbeat
            && message.term >= self.term()
            && message.durable > last
        {
            return Err(ReceiveError::LogLost { last, confirmed: message.durable });
        }
        if message.kind == MessageKind::Append && message.term >= self.term() {
            let durable = |entry: &&Entry| entry.index.0 <= self.node.raft.raft_log.committed;
            for entry in message.entries.iter().take_while(durable) {
                if index.term_of(entry.index).is_some_and(|term| term != entry.term) {
                    return Err(ReceiveError::Contradiction(entry.index));
                }
            }
        }
        Ok(())
    }

    /// Sends the base again to members that have not restarted for a while: it may be lost.
    fn retry_restarts(&mut self) {
        let patience = 2 * u64::from(self.options.election_ticks);
        let progress = self.node.raft.prs();
        let restarting = progress.iter().filter(|(_, one)| one.state == ProgressState::Snapshot);
        let restarting: Vec<u64> = restarting.map(|(id, _)| *id).collect();
        self.restarting.retain(|id, _| restarting.contains(id));
        for id in restarting {
            let since = *self.restarting.entry(id).or_insert(self.ticks);
            if self.ticks - since >= patience {
                self.restarting.remove(&id);
                self.node.report_snapshot(id, raft::SnapshotStatus::Failure);
            }
        }
    }
}

fn config(options: &Options) -> Config {
    let ticks = options.election_ticks as usize;
    Config {
        id: options.id.0,
        election_tick: ticks,
        heartbeat_tick: options.heartbeat_ticks as usize,
        // Sizes are those of the log's bytes, which the library does not see: the index limits.
        max_size_per_msg: raft::NO_LIMIT,
        max_inflight_msgs: options.messages_in_flight,
        check_quorum: true,
        pre_vote: true,
        // Draws of the library are always replaced by those of the member; see `elections`.
        max_election_tick: usize::MAX / 2,
        // Followers learn the durable position with the next entries or the next heartbeat.
        skip_bcast_commit: true,
        ..Config::default()
    }
}

fn check_saved(saved: &Saved) -> Result<(), SavedError> {
    let damaged = |what| Err(SavedError::Damaged(what));
    let (mut index, mut term, mut end) = (saved.base.index.0, saved.base.term, saved.base.lsn);
    for entry in &saved.entries {
        if entry.index.0 != index + 1 || entry.term < term || entry.start != end {
            return damaged("its entries do not follow each other");
        }
        (index, term, end) = (entry.index.0, entry.term, entry.end());
    }
    if saved.vote.term < term {
        return damaged("its vote is older than its entries");
    }
    if saved.durable < saved.base.index || saved.durable.0 > index {
        return damaged("its durable entry is not in it");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
