//! Who asks for votes first: priorities, loggers, and the draws of timeouts.
//!
//! | member | waits without a leader, in multiples of `election_ticks` |
//! |---|---|
//! | voter of priority p | 1 + p to 2 + p |
//! | logger of priority p | 5 + p to 6 + p |
//!
//! The library has priorities too: a member refuses its vote to a candidate of lower priority
//! unless that one has more entries. That can end in a group without a leader, when the member of
//! high priority has more entries of an older term: it refuses, and is refused. So priorities are
//! waiting times here, and delay an election at most.
//!
//! A logger is elected if it alone has the end of the durable log: of two voters and a logger, one
//! voter has died, and the other one was behind. Nobody but the logger can then collect a majority.
//! It hands over to the voter that has the most log, as soon as that voter has all of it.

use firn_base::random::RandomSource;
use raft::StateRole;

use super::Member;
use crate::members::{MemberId, Role};

/// Election timeouts that a logger waits longer than a voter of the same priority.
const LOGGER_STEPS: u64 = 4;

impl Member {
    /// Whether the next tick would begin an election.
    pub(super) fn would_campaign(&self) -> bool {
        let raft = &self.node.raft;
        raft.state != StateRole::Leader
            && raft.promotable()
            && raft.election_elapsed + 1 >= raft.randomized_election_timeout()
    }

    /// Replaces an election timeout that the library has drawn. Its draws are from so wide a range
    /// that none is ever equal to the one of the member.
    pub(super) fn draw_timeout(&mut self) {
        if self.node.raft.randomized_election_timeout() != self.timeout {
            self.draw_again();
        }
    }

    /// Sets [`crate::Options::priority`], from now on.
    pub fn set_priority(&mut self, priority: u8) {
        if self.options.priority != priority {
            self.options.priority = priority;
            self.draw_again();
        }
    }

    fn draw_again(&mut self) {
        let ticks = u64::from(self.options.election_ticks);
        let logger = if self.role() == Some(Role::Logger) { LOGGER_STEPS } else { 0 };
        let steps = 1 + u64::from(self.options.priority) + logger;
        self.timeout = (ticks * steps + self.draws.below(ticks)) as usize;
        self.node.raft.set_randomized_election_timeout(self.timeout);
    }

    /// Lets a voter lead instead of this logger.
    pub(super) fn pass_on(&mut self) {
        let is_handing_over = self.node.raft.lead_transferee.is_some();
        if is_handing_over || self.role() != Some(Role::Logger) {
            return;
        }
        if let Some(voter) = self.successor(|_| true) {
            self.node.transfer_leader(voter.0);
        }
    }

    /// The other voter that was heard of lately and has most of the log, one that is preferred if
    /// there is one. `None` if this member does not lead, or heard of none.
    #[must_use]
    pub fn successor(&self, is_preferred: impl Fn(MemberId) -> bool) -> Option<MemberId> {
        let raft = &self.node.raft;
        if raft.state != StateRole::Leader {
            return None;
        }
        let progress = |id: MemberId| raft.prs().get(id.0).filter(|one| one.recent_active);
        let voters = self.members().iter().filter(|(_, role)| *role == Role::Voter);
        let others = voters.map(|(id, _)| id).filter(|id| id.0 != raft.id);
        let ranked = others.filter_map(|id| Some((is_preferred(id), progress(id)?.matched, id)));
        ranked.max().map(|(_, _, id)| id)
    }
}
