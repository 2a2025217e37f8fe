//! The leader's lease: how long it may answer reads without asking.
//!
//! ```text
//!   leader     tick 40 ──stamp 40──►            ◄──stamp 40──   tick 43: sure until 40 + lease
//!   follower            hears it: votes for nobody for election_ticks
//! ```
//!
//! A member that hears its leader grants no vote for `election_ticks` of its own clock, also
//! across a restart (`quiet_until`). So nobody is elected before a majority is that far past the
//! stamps that it confirmed. The library's own notion of a lease is too long: it asks once in
//! `election_ticks` whether a majority has answered since the last time.
//!
//! An election that a leader asks for ignores these promises, so a leader that hands over has no
//! lease for the rest of its term.

use std::collections::{BTreeMap, HashSet};

use raft::StateRole;

use super::Member;
use crate::entry::Term;
use crate::message::{Message, MessageKind};

pub(super) struct Lease {
    ticks: u64,
    /// The term that everything below belongs to.
    term: Term,
    /// As a leader: the highest stamp that each member has confirmed.
    confirmed: BTreeMap<u64, u64>,
    given_up: bool,
    /// As a follower: the leader's highest stamp.
    heard: u64,
}

impl Lease {
    pub(super) fn new(ticks: u64) -> Lease {
        Lease { ticks, term: Term(0), confirmed: BTreeMap::new(), given_up: false, heard: 0 }
    }

    fn enter(&mut self, term: Term) {
        if self.term != term {
            *self = Lease { term, ..Lease::new(self.ticks) };
        }
    }
}

impl Member {
    /// Whether a majority has promised to elect nobody else yet. A process that was stopped for a
    /// while first makes up for the ticks that it missed.
    #[must_use]
    pub fn has_lease(&self) -> bool {
        let (raft, lease) = (&self.node.raft, &self.lease);
        // What members confirmed in another term, or before a hand-over, binds them no more.
        let binds = lease.term.0 == raft.term && !lease.given_up;
        let fresh = |(_, stamp): &(&u64, &u64)| binds && self.ticks < **stamp + lease.ticks;
        let confirmed = lease.confirmed.iter().filter(fresh).map(|(id, _)| *id);
        // A lone voter has nobody to ask.
        raft.state == StateRole::Leader
            && raft.prs().has_quorum(&confirmed.chain([raft.id]).collect())
    }

    /// Whether this member has no lease for the rest of its term, because it lets another one lead.
    #[must_use]
    pub fn has_given_lease_up(&self) -> bool {
        self.lease.given_up && self.lease.term.0 == self.node.raft.term
    }

    /// For how many ticks from now [`Member::has_lease`] stays true if nothing more is heard; 0
    /// without a lease. A hand-over ends it earlier.
    #[must_use]
    pub fn lease_left(&self) -> u64 {
        if !self.has_lease() {
            return 0;
        }
        let raft = &self.node.raft;
        // A lone voter has the lease for as long as it leads.
        let mut left = self.lease.ticks;
        let mut ends: Vec<(u64, u64)> =
            self.lease.confirmed.iter().map(|(id, stamp)| (*stamp + left, *id)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let mut confirmed: HashSet<u64, _> = HashSet::default();
        confirmed.insert(raft.id);
        for (end, id) in ends {
            if raft.prs().has_quorum(&confirmed) {
                break;
            }
            confirmed.insert(id);
            left = end.saturating_sub(self.ticks);
        }
        left
    }

    /// Notes the stamp of a message that was processed.
    pub(super) fn hear(&mut self, message: &Message) {
        let term = self.term();
        if message.term != term {
            return;
        }
        self.lease.enter(term);
        match message.kind {
            // A term has one leader, so all of these are its messages.
            MessageKind::Append | MessageKind::Heartbeat => {
                self.lease.heard = self.lease.heard.max(message.stamp);
            }
            MessageKind::AppendAnswer | MessageKind::HeartbeatAnswer => {
                let confirmed = self.lease.confirmed.entry(message.from.0).or_insert(0);
                *confirmed = message.stamp.max(*confirmed);
            }
            _ => {}
        }
    }

    /// The stamp for a message; one to the leader answers the leader's.
    pub(super) fn stamp(&self) -> u64 {
        if self.node.raft.state == StateRole::Leader {
            return self.ticks;
        }
        if self.lease.term == self.term() { self.lease.heard } else { 0 }
    }

    pub(super) fn give_lease_up(&mut self) {
        let term = self.term();
        self.lease.enter(term);
        self.lease.given_up = true;
    }
}

#[cfg(test)]
mod tests;
