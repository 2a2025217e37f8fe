//! What the node's latch protects.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::time::Duration;

use firn_base::Lsn;
use firn_consensus::{
    Base, Batch, Content, Entry, Index, Member, Message, Refusal, Term, Write, WriteNumber,
};
use firn_control::{Catalog, Controller, NodeId, Proposal, ToNode};
use firn_link::Responder;

use crate::file::{StoredEntry, StoredWrite, Whole};
use crate::message::{Reply, Watcher};

/// The most orders that wait for a node. Control repeats those that are dropped.
const MOST_ORDERS: usize = 256;

/// The node's state in memory.
pub(super) struct Core {
    pub(super) member: Member,
    pub(super) controller: Controller,
    /// How many ticks the member was told of.
    pub(super) ticks: u64,
    pub(super) log: Log,
    /// Writes that the disk has not begun; `None` for one that begins the log again.
    pub(super) queue: Vec<(WriteNumber, Option<StoredWrite>)>,
    /// Callers that wait for a proposal, by the entry and its term.
    pub(super) waiting: BTreeMap<Index, (Term, Responder)>,
    pub(super) watching: Vec<Watching>,
    /// What waits for nodes until they watch.
    pub(super) orders: BTreeMap<NodeId, VecDeque<ToNode>>,
    /// The answer to the last heartbeat of a node.
    pub(super) heard: BTreeMap<NodeId, ToNode>,
    /// The bytes of the event's entries, by where they begin.
    pub(super) stash: Vec<(Lsn, Vec<u8>)>,
    /// The catalog that came with the event's message.
    pub(super) stashed_catalog: Option<Catalog>,
    pub(super) answers: Vec<(Responder, Reply)>,
    /// The term in which this node, as the leader, has seen to the group's entry in the catalog.
    pub(super) entered_in: Option<Term>,
    /// A snapshot, with the entries of its catalog.
    snapshot: Option<(u64, Vec<u8>)>,
}

/// The log in memory. It has what all writes asked for, synced or not.
pub(super) struct Log {
    vote: (Term, u64),
    /// The last entry that is in the catalog.
    pub(super) base: Base,
    durable: Index,
    pub(super) entries: BTreeMap<Index, StoredEntry>,
}

/// A node that waits for news.
pub(super) struct Watching {
    pub(super) watcher: Option<Watcher>,
    pub(super) entries: u64,
    pub(super) until: Duration,
    pub(super) responder: Responder,
}

impl Core {
    pub(super) fn new(member: Member, catalog: Catalog, whole: Whole) -> Core {
        Core {
            member,
            controller: Controller::new(catalog),
            ticks: 0,
            log: Log::new(whole),
            queue: Vec::new(),
            waiting: BTreeMap::new(),
            watching: Vec::new(),
            orders: BTreeMap::new(),
            heard: BTreeMap::new(),
            stash: Vec::new(),
            stashed_catalog: None,
            answers: Vec::new(),
            entered_in: None,
            snapshot: None,
        }
    }

    /// The term in which this node may act: it leads, and nobody else can be elected yet.
    pub(super) fn acts(&self) -> Option<Term> {
        let term = self.controller.leads()?;
        (self.member.leads() == Some(term) && self.member.has_lease()).then_some(term)
    }

    /// Appends a proposal, if the node leads. Returns its entry and term.
    pub(super) fn propose(&mut self, proposal: &Proposal) -> Result<(Index, Term), Refusal> {
        let leader = self.member.leader();
        let term = self.controller.leads().ok_or(Refusal::NotLeader { leader })?;
        let bytes = proposal.encode();
        let start = self.member.end();
        let end = start.advance(bytes.len() as u64);
        let batch = Batch { start, end, checksum: crc32c::crc32c(&bytes) };
        let index = self.member.propose(term, &[batch])?;
        self.stash.push((start, bytes));
        Ok((index, term))
    }

    /// Answers, once the latch is free.
    pub(super) fn answer(&mut self, responder: Responder, reply: Reply) {
        self.answers.push((responder, reply));
    }

    /// The node leads no more, or in another term: nobody gets what it was about to say.
    pub(super) fn end_leadership(&mut self, leader: Option<&String>) {
        for (_, (_, responder)) in mem::take(&mut self.waiting) {
            self.answer(responder, Reply::Unknown);
        }
        for watching in mem::take(&mut self.watching) {
            self.answer(watching.responder, Reply::NotLeader { leader: leader.cloned() });
        }
        self.orders.clear();
        self.heard.clear();
    }

    /// Keeps a message until its node asks.
    pub(super) fn keep(&mut self, node: NodeId, message: ToNode) {
        if matches!(message.body, firn_control::ControlMessage::Heard { .. }) {
            self.heard.insert(node, message);
            return;
        }
        let orders = self.orders.entry(node).or_default();
        orders.push_back(message);
        if orders.len() > MOST_ORDERS {
            orders.pop_front();
        }
    }

    /// A snapshot of the catalog.
    pub(super) fn snapshot(&mut self) -> Vec<u8> {
        let catalog = self.controller.catalog();
        match &self.snapshot {
            Some((entries, bytes)) if *entries == catalog.entries() => bytes.clone(),
            _ => {
                let bytes = catalog.snapshot();
                self.snapshot = Some((catalog.entries(), bytes.clone()));
                bytes
            }
        }
    }

    /// Puts what a write asks for into the log and into the queue of the disk. `None` if something
    /// is missing that should have come with the event.
    pub(super) fn take_write(&mut self, write: &Write) -> Option<()> {
        if let Some(base) = &write.restart {
            self.controller.restore(self.stashed_catalog.take()?);
            self.log.restart(base.clone());
        }
        let mut append = Vec::with_capacity(write.append.len());
        for entry in &write.append {
            let bytes = match entry.content {
                Content::Log { .. } => self.stashed(entry.start)?,
                Content::Mark | Content::Members(_) => Vec::new(),
            };
            append.push(StoredEntry { entry: entry.clone(), bytes });
        }
        let stored = StoredWrite::new(write, append);
        self.log.take(&stored);
        let stored = write.restart.is_none().then_some(stored);
        self.queue.push((write.number, stored));
        Some(())
    }

    fn stashed(&self, start: Lsn) -> Option<Vec<u8>> {
        let (_, bytes) = self.stash.iter().find(|(begin, _)| *begin == start)?;
        Some(bytes.clone())
    }

    /// The bytes of a message with what goes behind it: its entries, or the catalog. `None` if they
    /// are not here any more; then the message is not sent.
    pub(super) fn encode(&mut self, message: &Message) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        if let Some(base) = message.base() {
            if base.index != self.log.base.index {
                return None;
            }
            bytes.extend_from_slice(&self.snapshot());
        }
        for entry in message.entries() {
            bytes.extend_from_slice(self.log.bytes_of(entry)?);
        }
        Some(bytes)
    }

    /// All that the disk has to have.
    pub(super) fn whole(&mut self) -> Whole {
        let catalog = self.snapshot();
        let Log { vote, base, durable, entries } = &self.log;
        let after = entries.range(Index(base.index.0 + 1)..);
        Whole {
            vote: *vote,
            base: base.clone(),
            durable: (*durable).max(base.index),
            catalog,
            entries: after.map(|(_, entry)| entry.clone()).collect(),
        }
    }
}

impl Log {
    fn new(whole: Whole) -> Log {
        let Whole { vote, base, durable, entries, .. } = whole;
        let entries = entries.into_iter().map(|one| (one.entry.index, one)).collect();
        Log { vote, base, durable, entries }
    }

    fn restart(&mut self, base: Base) {
        self.durable = base.index;
        self.base = base;
        self.entries.clear();
    }

    fn take(&mut self, write: &StoredWrite) {
        self.vote = write.vote.unwrap_or(self.vote);
        if let Some(index) = write.truncate {
            self.entries.split_off(&index);
        }
        self.entries.extend(write.append.iter().map(|one| (one.entry.index, one.clone())));
        self.durable = self.durable.max(write.durable);
    }

    fn bytes_of(&self, entry: &Entry) -> Option<&[u8]> {
        let stored = self.entries.get(&entry.index)?;
        (stored.entry == *entry).then_some(stored.bytes.as_slice())
    }

    /// Forgets entries that end at or before `lsn` and are in the catalog.
    pub(super) fn release(&mut self, lsn: Lsn) {
        let applied = self.base.index;
        while let Some(first) = self.entries.first_entry() {
            if *first.key() > applied || first.get().entry.end() > lsn {
                break;
            }
            first.remove();
        }
    }
}

#[cfg(test)]
mod tests;
