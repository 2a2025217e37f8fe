//! Which node to ask for a page, and when: a decision without effects.
//!
//! ```text
//!   first in order ──► slow ──► the next one too ──► slow ──► …
//!         └─ failed ─► the next one at once ─► … ─► nobody left: the round is over
//! ```

use std::time::Duration;

/// What was done about a page at one node of its chunk, in this round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    None,
    UnderWay { since: Duration },
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Ask the node at this place; nobody else was asked, or all who were have failed.
    Ask(usize),
    /// Ask the node at this place too: those that were asked are slow.
    Hedge(usize),
    /// Wait for answers until this time, if one is given.
    Wait(Option<Duration>),
    /// Every node has failed.
    RoundOver,
}

/// `order` has the places of the chunk's nodes, `attempts` what was done at each place. A node is
/// slow after `hedge_after`.
pub(super) fn decide(
    order: &[usize],
    attempts: &[Attempt],
    now: Duration,
    hedge_after: Duration,
) -> Decision {
    let next = order.iter().copied().find(|place| attempts[*place] == Attempt::None);
    let since = |attempt: &Attempt| match attempt {
        Attempt::UnderWay { since } => Some(*since),
        _ => None,
    };
    let newest = attempts.iter().filter_map(since).max();
    match (newest, next) {
        (None, Some(place)) => Decision::Ask(place),
        (None, None) => Decision::RoundOver,
        (Some(_), None) => Decision::Wait(None),
        (Some(since), Some(place)) => match since.saturating_add(hedge_after) {
            time if time <= now => Decision::Hedge(place),
            time => Decision::Wait(Some(time)),
        },
    }
}

/// How long an answer may take before another node is asked: twice what the others usually need,
/// within `least..=most`. `usual` has the usual times of the other nodes that are known.
pub(super) fn hedge_after(
    usual: impl Iterator<Item = Duration>,
    least: Duration,
    most: Duration,
) -> Duration {
    usual.min().map_or(most, |usual| (usual * 2).clamp(least, most.max(least)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn under_way(since: u32) -> Attempt {
        Attempt::UnderWay { since: MS * since }
    }

    #[test]
    fn the_next_node_is_asked_when_the_others_are_slow_or_have_failed() {
        use Attempt::{Failed, None};
        let decide =
            |attempts: [Attempt; 3], now: u32| decide(&[1, 2, 0], &attempts, MS * now, MS * 10);
        assert_eq!(decide([None, None, None], 5), Decision::Ask(1));
        assert_eq!(decide([None, under_way(5), None], 14), Decision::Wait(Some(MS * 15)));
        assert_eq!(decide([None, under_way(5), None], 15), Decision::Hedge(2));
        assert_eq!(decide([None, Failed, None], 5), Decision::Ask(2));
        assert_eq!(
            decide([None, under_way(5), under_way(15)], 20),
            Decision::Wait(Some(MS * 25)),
            "the delay counts from the last one that was asked"
        );
        assert_eq!(decide([None, under_way(5), under_way(15)], 25), Decision::Hedge(0));
        assert_eq!(decide([under_way(25), under_way(5), Failed], 99), Decision::Wait(Option::None));
        assert_eq!(decide([Failed, Failed, Failed], 99), Decision::RoundOver);
    }

    #[test]
    fn the_delay_follows_the_fastest_of_the_others() {
        let after = |usual: &[u32]| hedge_after(usual.iter().map(|ms| MS * *ms), MS * 2, MS * 50);
        assert_eq!(after(&[7, 5, 90]), MS * 10);
        assert_eq!(after(&[0]), MS * 2);
        assert_eq!(after(&[70]), MS * 50);
        assert_eq!(after(&[]), MS * 50, "nothing is known yet");
    }
}
