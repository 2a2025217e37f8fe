//! How old the log is that a part of the process has not taken yet.

use std::collections::VecDeque;
use std::time::Duration;

use firn_base::Lsn;

/// The most samples that are kept. Beyond that, every second one is dropped.
const MOST_SAMPLES: usize = 512;

/// When the end of a log was where. Samples are taken at a steady rate.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    samples: VecDeque<(Duration, Lsn)>,
}

impl Lag {
    /// The log ends at `end` now, and everything before `taken` has been taken.
    pub(crate) fn sample(&mut self, now: Duration, end: Lsn, taken: Lsn) {
        while self.samples.front().is_some_and(|(_, end)| *end <= taken) {
            self.samples.pop_front();
        }
        if self.samples.back().is_none_or(|(_, last)| *last < end) && end > taken {
            self.samples.push_back((now, end));
        }
        if self.samples.len() > MOST_SAMPLES {
            let mut place = 0;
            // The first one stays: it is the oldest log that is missing.
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }

    /// For how long there has been log behind `taken`, as of `now`.
    pub(crate) fn age(&self, now: Duration, taken: Lsn) -> Duration {
        let missing = self.samples.iter().find(|(_, end)| *end > taken);
        missing.map_or(Duration::ZERO, |(since, _)| now.saturating_sub(*since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_age_is_that_of_the_oldest_log_that_is_missing() {
        let mut lag = Lag::default();
        lag.sample(at(1), Lsn(100), Lsn(100));
        assert_eq!(lag.age(at(9), Lsn(100)), Duration::ZERO, "all is taken");
        lag.sample(at(2), Lsn(200), Lsn(100));
        lag.sample(at(5), Lsn(300), Lsn(150));
        lag.sample(at(6), Lsn(300), Lsn(150));
        assert_eq!(lag.age(at(9), Lsn(150)), at(7));
        assert_eq!(lag.age(at(9), Lsn(200)), at(4), "the first part has been taken");
        assert_eq!(lag.age(at(9), Lsn(300)), Duration::ZERO);
    }

    #[test]
    fn samples_are_bounded_and_the_oldest_stays() {
        let mut lag = Lag::default();
        for second in 1..10_000 {
            lag.sample(at(second), Lsn(second * 8), Lsn(7));
        }
        assert!(lag.samples.len() <= MOST_SAMPLES);
        assert_eq!(lag.age(at(10_000), Lsn(7)), at(9_999));
    }
}
