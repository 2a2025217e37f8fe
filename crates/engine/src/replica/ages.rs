//! How old snapshots are: what was newest at times of the past.

use std::collections::VecDeque;
use std::time::Duration;

use firn_base::Cts;

/// The most times that are remembered; with more, every second one is forgotten.
const MOST: usize = 1024;

/// Timestamps that were the newest, and when.
#[derive(Debug, Default)]
pub(super) struct Ages(VecDeque<(Duration, Cts)>);

impl Ages {
    /// A snapshot that is opened now sees `newest`.
    pub(super) fn note(&mut self, now: Duration, newest: Cts) {
        if self.0.back().is_some_and(|(_, last)| *last >= newest) {
            return;
        }
        if self.0.len() == MOST {
            let mut number = 0;
            self.0.retain(|_| {
                number += 1;
                number % 2 == 0
            });
        }
        self.0.push_back((now, newest));
    }

    /// A timestamp below which every snapshot was opened longer than `limit` ago.
    pub(super) fn at(&mut self, now: Duration, limit: Duration) -> Option<Cts> {
        let then = now.checked_sub(limit)?;
        // The last entry that is old enough stays, for the next call.
        while self.0.get(1).is_some_and(|(at, _)| *at <= then) {
            self.0.pop_front();
        }
        self.0.front().filter(|(at, _)| *at <= then).map(|(_, newest)| *newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn snapshots_below_what_was_newest_then_are_older() {
        let mut ages = Ages::default();
        for second in 0..100 {
            ages.note(seconds(second), Cts(second * 10));
        }
        assert_eq!(ages.at(seconds(99), seconds(100)), None, "nothing is so old");
        assert_eq!(ages.at(seconds(99), seconds(50)), Some(Cts(490)));
        assert_eq!(ages.at(seconds(99), seconds(9)), Some(Cts(900)));
        ages.note(seconds(200), Cts(990));
        assert_eq!(
            ages.at(seconds(200), seconds(9)),
            Some(Cts(990)),
            "nothing was committed since"
        );
    }

    #[test]
    fn what_is_remembered_is_limited_and_never_too_new() {
        let mut ages = Ages::default();
        for second in 0..10_000 {
            ages.note(seconds(second), Cts(second));
        }
        assert!(ages.0.len() <= MOST);
        let oldest = ages.at(seconds(9_999), seconds(1_000)).unwrap();
        assert!(oldest <= Cts(8_999), "{oldest}");
    }
}
