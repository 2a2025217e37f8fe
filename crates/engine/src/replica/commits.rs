//! The timestamp up to which a replica has applied every commit: what its snapshots see.
//!
//! Commits come out of the log in the order of their positions. That is nearly the order of their
//! timestamps, but not quite: two transactions that commit at once may append their markers in the
//! other order. A snapshot must not see the later one first and the earlier one only a moment
//! afterwards.
//!
//! ```text
//!   commits by position:     41   42   44   43   46            applied so far
//!   visible, dense:          41   42   42   44   44            46 waits for 45
//! ```
//!
//! If the writer numbers its commits itself, timestamps have no gaps, so the commits that follow
//! the last visible one without a gap are visible. If a shared source numbers them, the writer
//! announces now and then up to which timestamp its commits are durable. Durable commits lie before
//! the end of the durable log, so they are visible once the replica has applied the log up to there
//! ([`announce`]). A dense writer announces this once, because commits before the replica's start
//! are in the pages and not among those that it applies.
//!
//! Invariant: every commit with a timestamp up to `visible` is applied; `visible` never goes back.
//!
//! [`announce`]: AppliedCommits::announce

use std::collections::{BTreeSet, VecDeque};

use firn_base::{Cts, Lsn};

#[derive(Debug, Default)]
pub(crate) struct AppliedCommits {
    /// Whether timestamps are handed out without gaps.
    is_dense: bool,
    /// `None` until the first announcement is reached.
    visible: Option<Cts>,
    /// Applied commits that are not visible yet; only with a dense writer.
    ahead: BTreeSet<Cts>,
    announced: VecDeque<Announced>,
}

/// All commits up to a timestamp lie before a position of the log.
#[derive(Debug, Clone, Copy)]
struct Announced {
    commits: Cts,
    before: Lsn,
}

impl AppliedCommits {
    /// Nothing is visible yet.
    pub(crate) fn new(is_dense: bool) -> AppliedCommits {
        AppliedCommits { is_dense, ..AppliedCommits::default() }
    }

    pub(crate) fn applied(&mut self, cts: Cts) {
        if self.is_dense && self.visible.is_none_or(|visible| cts > visible) {
            self.ahead.insert(cts);
        }
    }

    /// All commits up to `commits` lie before `before`.
    pub(crate) fn announce(&mut self, commits: Cts, before: Lsn) {
        let is_newer = |last: &Announced| commits > last.commits;
        if self.announced.back().is_none_or(is_newer) {
            self.announced.push_back(Announced { commits, before });
        }
    }

    /// The visible timestamp once the log is applied up to `applied`; `None` before the first
    /// announcement.
    pub(crate) fn advance(&mut self, applied: Lsn) -> Option<Cts> {
        while let Some(reached) = self.announced.front().filter(|next| next.before <= applied) {
            self.visible = self.visible.max(Some(reached.commits));
            self.announced.pop_front();
        }
        let visible = self.visible.as_mut()?;
        self.ahead = self.ahead.split_off(&Cts(visible.0 + 1));
        while self.ahead.first().is_some_and(|next| next.0 == visible.0 + 1) {
            self.ahead.pop_first();
            visible.0 += 1;
        }
        self.visible
    }
}

impl AppliedCommits {
    /// Whether every applied commit is visible. Unknown, and so never, if timestamps have gaps.
    pub(crate) fn are_all_visible(&self) -> bool {
        self.is_dense && self.visible.is_some() && self.ahead.is_empty()
    }
}

#[cfg(test)]
impl AppliedCommits {
    /// Whether only applied commits make more visible, and no announcement.
    pub(super) fn go_by_applied(&self) -> bool {
        self.is_dense && self.visible.is_some() && self.announced.is_empty()
    }

    /// A fault on purpose: every applied commit becomes visible, whether or not an earlier one is
    /// missing.
    pub(super) fn ignore_gaps(&mut self) {
        if let (Some(visible), Some(last)) = (&mut self.visible, self.ahead.last()) {
            *visible = (*visible).max(*last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn lsn(groups: u64) -> Lsn {
        Lsn(groups * Lsn::ALIGNMENT)
    }

    #[test]
    fn commits_that_follow_without_a_gap_are_visible() {
        let mut commits = AppliedCommits::new(true);
        commits.announce(Cts(40), lsn(5));
        assert_eq!(commits.advance(lsn(4)), None);
        assert_eq!(commits.advance(lsn(5)), Some(Cts(40)));
        let order = [(41, 41), (42, 42), (44, 42), (43, 44), (46, 44), (45, 46)];
        for (cts, visible) in order {
            commits.applied(Cts(cts));
            assert_eq!(commits.advance(lsn(6)), Some(Cts(visible)), "after {cts}");
        }
    }

    #[test]
    fn commits_that_the_announcement_covers_do_not_hold_up_later_ones() {
        let mut commits = AppliedCommits::new(true);
        commits.announce(Cts(45), lsn(9));
        // 41 to 44 lie before the replica's start, and 47 comes before the announcement is reached.
        commits.applied(Cts(45));
        commits.applied(Cts(47));
        assert_eq!(commits.advance(lsn(8)), None);
        assert_eq!(commits.advance(lsn(9)), Some(Cts(45)));
        commits.applied(Cts(46));
        assert_eq!(commits.advance(lsn(9)), Some(Cts(47)));
        assert!(commits.ahead.is_empty());
    }

    #[test]
    fn with_gaps_only_announcements_make_visible() {
        let mut commits = AppliedCommits::new(false);
        commits.announce(Cts(100), lsn(1));
        commits.applied(Cts(101));
        assert_eq!(commits.advance(lsn(1)), Some(Cts(100)));
        commits.announce(Cts(250), lsn(3));
        commits.announce(Cts(250), lsn(4));
        assert_eq!(commits.advance(lsn(2)), Some(Cts(100)));
        assert_eq!(commits.advance(lsn(3)), Some(Cts(250)));
        assert!(commits.announced.is_empty(), "what was said twice is kept once");
    }
}
