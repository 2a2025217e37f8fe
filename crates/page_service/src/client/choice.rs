//! Which node to ask for a page, and when: a decision without effects.
//!
//! ```text
//!   first in order ──► slow ──► the next one too ──► slow ──► …
//!         └─ failed ─► the next one at once ─► … ─► each again, after a pause
//! ```

use std::time::Duration;

/// What was done about a page at one node of its chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    None,
    UnderWay {
        since: Duration,
    },
    /// It may be asked again at this time; `None`: that cannot help.
    Failed {
        again: Option<Duration>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Ask the node at this place; nobody else was asked, or all who were have failed.
    Ask(usize),
    /// Ask the node at this place too: those that were asked are slow.
    Hedge(usize),
    /// Wait for answers until this time, if one is given.
    Wait(Option<Duration>),
}

/// `order` has the places of the chunk's nodes, `attempts` what was done at each place. A node is
/// slow after `hedge_after`.
pub(super) fn decide(
    order: &[usize],
    attempts: &[Attempt],
    now: Duration,
    hedge_after: Duration,
) -> Decision {
    let ready_at = |place: &usize| match attempts[*place] {
        Attempt::None => Some(Duration::ZERO),
        Attempt::UnderWay { .. } => None,
        Attempt::Failed { again } => again,
    };
    let since = |attempt: &Attempt| match attempt {
        Attempt::UnderWay { since } => Some(*since),
        _ => None,
    };
    // The first that may be asked now, or else the one that may be asked first.
    let candidates = order.iter().filter_map(|place| Some((ready_at(place)?.max(now), *place)));
    let Some((ready, place)) = candidates.min_by_key(|(ready, _)| *ready) else {
        return Decision::Wait(None);
    };
    match attempts.iter().filter_map(since).max() {
        None if ready <= now => Decision::Ask(place),
        None => Decision::Wait(Some(ready)),
        Some(since) => match since.saturating_add(hedge_after).max(ready) {
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

    const OVER: Attempt = Attempt::Failed { again: None };

    fn failed(again: u32) -> Attempt {
        Attempt::Failed { again: Some(MS * again) }
    }

    #[test]
    fn the_next_node_is_asked_when_the_others_are_slow_or_have_failed() {
        const NONE: Attempt = Attempt::None;
        let decide =
            |attempts: [Attempt; 3], now: u32| decide(&[1, 2, 0], &attempts, MS * now, MS * 10);
        assert_eq!(decide([NONE, NONE, NONE], 5), Decision::Ask(1));
        assert_eq!(decide([NONE, under_way(5), NONE], 14), Decision::Wait(Some(MS * 15)));
        assert_eq!(decide([NONE, under_way(5), NONE], 15), Decision::Hedge(2));
        assert_eq!(decide([NONE, failed(9), NONE], 5), Decision::Ask(2));
        assert_eq!(
            decide([NONE, under_way(5), under_way(15)], 20),
            Decision::Wait(Some(MS * 25)),
            "the delay counts from the last one that was asked"
        );
        assert_eq!(decide([NONE, under_way(5), under_way(15)], 25), Decision::Hedge(0));
        assert_eq!(decide([under_way(25), under_way(5), OVER], 99), Decision::Wait(None));
    }

    #[test]
    fn a_node_that_failed_is_asked_again_after_a_pause() {
        let decide =
            |attempts: [Attempt; 3], now: u32| decide(&[0, 1, 2], &attempts, MS * now, MS * 10);
        assert_eq!(decide([failed(9), failed(7), OVER], 5), Decision::Wait(Some(MS * 7)));
        assert_eq!(decide([failed(9), failed(7), OVER], 8), Decision::Ask(1));
        assert_eq!(decide([failed(9), failed(7), OVER], 9), Decision::Ask(0), "in order again");
        assert_eq!(decide([OVER, OVER, OVER], 99), Decision::Wait(None));
        // Also while another one is silent.
        assert_eq!(decide([under_way(5), failed(7), OVER], 8), Decision::Wait(Some(MS * 15)));
        assert_eq!(decide([under_way(5), failed(7), OVER], 15), Decision::Hedge(1));
        assert_eq!(decide([under_way(5), failed(30), OVER], 15), Decision::Wait(Some(MS * 30)));
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
