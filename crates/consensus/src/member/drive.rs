//! Turns what the library has ready into commands, in an order that keeps the promises.

use firn_base::Lsn;
use raft::{Ready, StateRole};

use super::{Member, Standing, Unsynced};
use crate::command::{Command, Read, ReadId, Vote, Write, WriteNumber};
use crate::entry::{Index, Term};
use crate::library;
use crate::members::{MemberId, Role};
use crate::message::MessageKind;

impl Member {
    /// Carries every effect of an event into commands.
    pub(super) fn settle(&mut self) {
        // An engine ends before its log is truncated.
        self.tell_end_of_leadership();
        loop {
            while self.node.has_ready() {
                self.take_ready();
            }
            self.pass_on();
            if !self.node.has_ready() {
                break;
            }
        }
        self.draw_timeout();
        self.tell_standing();
        self.answer_reads();
    }

    fn take_ready(&mut self) {
        let mut ready = self.node.ready();
        let number = WriteNumber(ready.number());
        let read_states = ready.take_read_states();
        let durable = ready.take_committed_entries().last().map(|entry| Index(entry.index));
        let sent_at_once = ready.take_messages();
        let held = ready.take_persisted_messages();
        let write = ready.must_sync().then(|| self.write(&mut ready));
        self.node.advance_append_async(ready);
        if let Some(write) = &write {
            let (with_vote, restart) = (write.vote.is_some(), write.restart.clone());
            self.unsynced.push_back(Unsynced { number, with_vote, restart });
        }
        // A leader's sends come before its own write, so that they overlap.
        self.send(&sent_at_once, false);
        self.commands.extend(write.map(Command::Write));
        self.send(&held, true);
        if self.unsynced.is_empty() {
            self.node.on_persist_ready(number.0);
        }
        if let Some(durable) = durable {
            self.apply(durable);
        }
        let own =
            read_states.iter().filter_map(|state| self.own_read(&state.request_ctx, state.index));
        let own: Vec<_> = own.collect();
        self.reads.extend(own);
    }

    /// Brings the index up to date, and says what has to be on the disk for that.
    fn write(&mut self, ready: &mut Ready) -> Write {
        let vote =
            ready.hs().filter(|state| self.is_new_vote(state.term, state.vote)).map(|state| Vote {
                term: Term(state.term),
                member: Some(MemberId(state.vote)).filter(|id| id.0 != 0),
            });
        self.written_vote = vote.unwrap_or(self.written_vote);
        let restart = (!ready.snapshot().is_empty()).then(|| library::base(ready.snapshot()));
        let entries = ready.take_entries();
        let index = self.node.mut_store();
        if let Some(base) = &restart {
            index.restart(base.clone());
        }
        let first = entries.first().map(|entry| Index(entry.index));
        let truncate = first.and_then(|first| Some((first, index.truncate(first)?)));
        let mut append = Vec::with_capacity(entries.len());
        for entry in &entries {
            let entry = library::written_entry(entry, index.end());
            append.push(entry.clone());
            index.append(entry);
        }
        let durable = Index(self.node.raft.raft_log.committed);
        Write { number: WriteNumber(ready.number()), vote, restart, truncate, append, durable }
    }

    fn is_new_vote(&self, term: u64, member: u64) -> bool {
        let written = self.written_vote;
        written.term.0 != term || written.member.map_or(0, |id| id.0) != member
    }

    /// Sends messages once the writes that they speak of are synced.
    fn send(&mut self, messages: &[raft::prelude::Message], about_entries: bool) {
        let stamp = self.stamp();
        for message in messages {
            let whole = |index| self.node.store().get(index).cloned();
            let Some(message) = library::sent(message, whole, stamp) else { continue };
            if message.kind == MessageKind::HandOver {
                self.give_lease_up();
            }
            // An answer to a heartbeat confirms no entry. A slow disk must not depose the leader.
            let about_entries = about_entries && message.kind != MessageKind::HeartbeatAnswer;
            let waits_for = |write: &&Unsynced| about_entries || write.with_vote;
            match self.unsynced.iter().rev().find(waits_for) {
                Some(write) => self.held.push_back((write.number, message)),
                None => self.commands.push(Command::Send(message)),
            }
        }
    }

    /// Puts entries in force that a majority and this member have synced.
    fn apply(&mut self, durable: Index) {
        let mut next = Index(self.node.store().applied().0 + 1);
        while next <= durable {
            if let Some(changes) = self.node.mut_store().apply(next) {
                // Refused only if it does not fit, and then by all members alike.
                let _ = self.node.apply_conf_change(&library::conf_change(&changes));
                let members = self.members().clone();
                self.commands.push(Command::Members(members));
            }
            next.0 += 1;
        }
        let lsn = self.node.store().end_of(durable).expect("applied entries are in the index");
        self.reach((durable, lsn));
        self.node.advance_apply_to(durable.0);
        self.leave_if_removed();
    }

    /// Moves the durable position forward.
    pub(super) fn reach(&mut self, durable: (Index, Lsn)) {
        debug_assert!(durable.0 > self.durable.0, "only what is new is reached");
        debug_assert!(durable.1 >= self.durable.1, "the durable position never goes back");
        self.durable = durable;
        self.commands.push(Command::Durable { index: durable.0, lsn: durable.1 });
    }

    /// A leader that is no voter any more steps down.
    fn leave_if_removed(&mut self) {
        let raft = &mut self.node.raft;
        let votes = raft.prs().conf().voters().contains(raft.id);
        if raft.state == StateRole::Leader && !votes {
            let term = raft.term;
            raft.become_follower(term, 0);
        }
    }

    fn tell_end_of_leadership(&mut self) {
        let term = self.term();
        if self.leads().is_some_and(|own| own != term) {
            self.tell_standing();
        }
    }

    fn tell_standing(&mut self) {
        let standing = self.current_standing();
        if self.standing.replace(standing) == Some(standing) {
            return;
        }
        self.commands.push(match standing {
            Standing::Leads(term) => Command::Lead { term, end: self.end() },
            Standing::Follows { term, leader } => Command::Follow { term, leader },
        });
    }

    fn current_standing(&self) -> Standing {
        let (term, me) = (self.term(), self.options.id);
        let index = self.node.store();
        let settled = index.term_of(index.applied()) == Some(term);
        let is_leader = self.node.raft.state == StateRole::Leader;
        if is_leader && settled && self.role() == Some(Role::Voter) {
            return Standing::Leads(term);
        }
        Standing::Follows { term, leader: self.leader().filter(|leader| *leader != me) }
    }

    /// The read of this member with that context.
    fn own_read(&self, context: &[u8], index: u64) -> Option<(ReadId, Index)> {
        let (member, id) = context.split_first_chunk::<8>()?;
        let id = id.first_chunk::<8>()?;
        let own = u64::from_le_bytes(*member) == self.id();
        own.then(|| (ReadId(u64::from_le_bytes(*id)), Index(index)))
    }

    fn answer_reads(&mut self) {
        let (index, durable) = self.durable;
        for (id, _) in self.reads.extract_if(.., |(_, confirmed)| *confirmed <= index) {
            self.commands.push(Command::Read(Read { id, durable }));
        }
    }
}
