//! A member: one copy of the log, with what it has promised and accepted.

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_api::LogEpoch;
use firn_base::Lsn;

/// Whole groups, by the position of the first one. Rounds do not overlap, but there may be gaps
/// between them.
pub(super) type Rounds = BTreeMap<Lsn, Arc<[u8]>>;

/// The end of a round.
pub(super) fn end_of(start: Lsn, bytes: &[u8]) -> Lsn {
    start.advance(bytes.len() as u64)
}

/// The end of the rounds that follow each other from `from` on.
pub(super) fn end_before_gap(rounds: &Rounds, from: Lsn) -> Lsn {
    let mut end = from;
    while let Some(bytes) = rounds.get(&end) {
        end = end_of(end, bytes);
    }
    end
}

/// One copy of the log.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// It takes nothing of an older epoch.
    pub(super) promised: LogEpoch,
    /// The epoch of the writer whose log this is; `accepted ≤ promised`.
    pub(super) accepted: LogEpoch,
    /// What it has synced.
    pub(super) rounds: Rounds,
    pub(super) is_lost: bool,
}

impl Member {
    /// Takes the log with which the writer of `epoch` begins, in place of its own. Does nothing if
    /// it has it already.
    pub(super) fn accept(&mut self, epoch: LogEpoch, base: &Rounds, floor: Lsn) {
        if epoch > self.accepted {
            self.promised = self.promised.max(epoch);
            self.accepted = epoch;
            self.rounds.clone_from(base);
            self.truncate(floor);
        }
    }

    /// Takes a round.
    pub(super) fn sync(&mut self, start: Lsn, bytes: &Arc<[u8]>, floor: Lsn) {
        if start >= floor {
            self.rounds.insert(start, Arc::clone(bytes));
        }
    }

    /// The round that has the log at `position`.
    pub(super) fn round_at(&self, position: Lsn) -> Option<(Lsn, &Arc<[u8]>)> {
        let (start, bytes) = self.rounds.range(..=position).next_back()?;
        (position < end_of(*start, bytes)).then_some((*start, bytes))
    }

    pub(super) fn truncate(&mut self, floor: Lsn) {
        self.rounds = self.rounds.split_off(&floor);
    }
}
