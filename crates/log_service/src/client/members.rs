//! What a client knows of the members, and the decisions that follow from it. No I/O.
//!
//! ```text
//!   held by the reader     member 1: keeps from 800     ─┐
//!        at 1000           member 2: keeps from 1000    ─┴ a majority: the reader has its log
//!                          member 3: keeps from 1400       gone there
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use firn_base::Lsn;

use crate::message::Positions;

/// A member is far if it answers this many times slower than the fastest one, and by more than
/// [`FAR_LEAST`].
const FAR_TIMES: u32 = 4;
const FAR_LEAST: Duration = Duration::from_millis(2);
/// A slower answer counts for one part in `SLOWER_PARTS`: one slow answer says little.
const SLOWER_PARTS: u32 = 8;

/// Numbers the readers of a client.
pub(super) type ReaderId = u64;

/// What a member said last.
#[derive(Debug, Clone, Default)]
pub(super) struct Member {
    /// It is in the group no more. Its place in the list stays, and it counts for nothing.
    pub(super) is_gone: bool,
    pub(super) positions: Option<Positions>,
    /// Whether it was asked for the positions of the readers that stay, if the client has some.
    pub(super) is_asked: bool,
    /// When a request came to nothing; no request has succeeded since then.
    pub(super) failed_at: Option<Duration>,
    /// Why that was so.
    pub(super) reason: String,
    /// Where it says the log is written.
    pub(super) leader: Option<String>,
    /// What it keeps for each reader.
    pub(super) kept: BTreeMap<ReaderId, Kept>,
    /// How long it usually takes to answer.
    usual: Option<Duration>,
}

impl Member {
    /// It has answered something that it knows at once.
    pub(super) fn answered_in(&mut self, took: Duration) {
        self.usual = Some(match self.usual {
            Some(usual) if took > usual => usual + (took - usual) / SLOWER_PARTS,
            _ => took,
        });
    }
}

/// An answer to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    /// The position that the reader held when the renewal was sent.
    pub(super) held: Lsn,
    /// Where the log begins that the member keeps for it.
    pub(super) from: Lsn,
}

impl Kept {
    fn is_gone(&self) -> bool {
        self.from > self.held
    }
}

/// What a reader has, at all members together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its log is kept at a majority.
    Held,
    /// Its log is gone at a majority, where it begins later.
    Gone,
    /// Too few members have answered.
    Unknown,
}

/// The members of the group, in the client's order.
#[derive(Debug, Clone)]
pub(super) struct Members(pub(super) Vec<Member>);

impl Members {
    pub(super) fn new(count: usize) -> Members {
        Members(vec![Member::default(); count])
    }

    /// The members that the group has now.
    pub(super) fn present(&self) -> impl Iterator<Item = &Member> {
        self.0.iter().filter(|member| !member.is_gone)
    }

    /// The places of the members that the group has now.
    pub(super) fn places(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|place| !self.0[*place].is_gone).collect()
    }

    pub(super) fn majority(&self) -> usize {
        self.present().count() / 2 + 1
    }

    /// How many have answered all that the client has to know at first.
    pub(super) fn heard(&self) -> usize {
        self.present().filter(|member| member.positions.is_some() && member.is_asked).count()
    }

    /// The earliest position from which on a majority keeps the log. `None`: too few are known.
    pub(super) fn truncated(&self) -> Option<Lsn> {
        let known = self.present().filter_map(|member| member.positions);
        let mut starts: Vec<Lsn> = known.map(|positions| positions.truncated).collect();
        starts.sort_unstable();
        starts.get(self.majority() - 1).copied()
    }

    pub(super) fn standing(&self, reader: ReaderId) -> Standing {
        let answers = self.present().filter_map(|member| member.kept.get(&reader));
        let (gone, held): (Vec<&Kept>, Vec<_>) = answers.partition(|kept| kept.is_gone());
        if held.len() >= self.majority() {
            Standing::Held
        } else if gone.len() >= self.majority() {
            Standing::Gone
        } else {
            Standing::Unknown
        }
    }

    /// Whether any member keeps the reader's log.
    pub(super) fn is_held(&self, reader: ReaderId) -> bool {
        let mut answers = self.present().filter_map(|member| member.kept.get(&reader));
        answers.any(|kept| !kept.is_gone())
    }

    /// Whether another member than `but` is known to have log after `position`.
    pub(super) fn is_ahead_elsewhere(&self, position: Lsn, but: usize) -> bool {
        let others = self.places().into_iter().filter(|place| *place != but);
        let positions = others.filter_map(|place| self.0[place].positions);
        positions.into_iter().any(|has| has.durable > position)
    }

    /// All members, the most promising first, to read from `position`: those that answer, that
    /// keep it and have log after it, and that are near. Equals are asked in a circle that begins
    /// with `first`.
    pub(super) fn order(
        &self,
        position: Lsn,
        first: usize,
        now: Duration,
        forgiven_after: Duration,
    ) -> Vec<usize> {
        let fastest = self.present().filter_map(|member| member.usual).min().unwrap_or_default();
        let far = FAR_LEAST.max(fastest * FAR_TIMES);
        let count = self.0.len();
        let circle = (0..count).map(|step| (first + step) % count);
        let mut order: Vec<usize> = circle.filter(|place| !self.0[*place].is_gone).collect();
        order.sort_by_key(|number| {
            let member = &self.0[*number];
            let failed = member.failed_at;
            let has_failed = failed.is_some_and(|at| now.saturating_sub(at) < forgiven_after);
            let (lacks_it, has_nothing_after) = match member.positions {
                Some(has) => {
                    (has.truncated > position || has.durable < position, has.durable <= position)
                }
                None => (true, true),
            };
            let is_far = member.usual.is_some_and(|usual| usual > far);
            (has_failed, lacks_it, has_nothing_after, is_far)
        });
        order
    }
}

#[cfg(test)]
mod tests;
