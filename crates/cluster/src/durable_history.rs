//! When the log of a leader was durable up to where, so that somebody who knows how far a copy is
//! can tell how old it is.
//!
//! ```text
//!   now            a copy has log up to 700
//!   │ 0.2 s ago    900
//!   │ 0.6 s ago    800
//!   ▼ 1.4 s ago    650    the newest sample that the copy has: it lacks the last 1.4 s at most
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use firn_base::Lsn;

/// The most samples that are kept. Beyond that, they are thinned out.
const MOST_SAMPLES: usize = 256;
/// Thinning leaves samples whose ages differ by at least one part in `AGE_PARTS`.
const AGE_PARTS: u32 = 16;
/// The ratio of the ages of neighbouring samples that are told, in eighths.
const SPREAD_EIGHTHS: u32 = 10;

/// Samples of the end of the durable log, the newest one last.
#[derive(Debug, Default)]
pub(crate) struct DurableHistory {
    samples: VecDeque<(Duration, Lsn)>,
}

impl DurableHistory {
    /// The log is durable up to `durable` now.
    pub(crate) fn sample(&mut self, now: Duration, durable: Lsn) {
        // While nothing is written, the time that counts is the last one.
        if let Some(last) = self.samples.back_mut()
            && last.1 == durable
        {
            last.0 = now;
            return;
        }
        self.samples.push_back((now, durable));
        if self.samples.len() > MOST_SAMPLES {
            self.thin_out(now);
        }
    }

    fn thin_out(&mut self, now: Duration) {
        let mut kept: VecDeque<(Duration, Lsn)> = VecDeque::new();
        for (at, durable) in self.samples.drain(..).rev() {
            let is_wanted = kept.front().is_none_or(|(newer, _)| {
                newer.saturating_sub(at) >= now.saturating_sub(*newer) / AGE_PARTS
            });
            if is_wanted && kept.len() < MOST_SAMPLES {
                kept.push_front((at, durable));
            }
        }
        self.samples = kept;
    }

    /// How many milliseconds ago the log was durable up to where; a few samples, the newest first.
    pub(crate) fn told(&self, now: Duration) -> Vec<(u64, Lsn)> {
        let mut told = Vec::new();
        let mut least = Duration::ZERO;
        for (at, durable) in self.samples.iter().rev() {
            let age = now.saturating_sub(*at);
            if age >= least {
                told.push((u64::try_from(age.as_millis()).unwrap_or(u64::MAX), *durable));
                least = (age * SPREAD_EIGHTHS / 8).max(Duration::from_millis(1));
            }
        }
        told
    }

    /// It says nothing about another term.
    pub(crate) fn forget(&mut self) {
        self.samples.clear();
    }
}

/// For how many milliseconds there has been durable log behind `end` at most, by what a leader
/// told.
/// Of a copy that lacks more than the leader remembers, the age of what it remembers.
pub(crate) fn age_ms(told: &[(u64, Lsn)], end: Lsn) -> u64 {
    let newest_known = told.iter().find(|(_, durable)| *durable <= end).or(told.last());
    newest_known.map_or(0, |(ago_ms, _)| *ago_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_copy_is_as_old_as_the_newest_position_that_it_has() {
        let mut history = DurableHistory::default();
        for (ms, durable) in [(0, 600), (600, 650), (1_400, 800), (1_800, 900)] {
            history.sample(at(ms), Lsn(durable));
        }
        let told = history.told(at(2_000));
        assert_eq!(
            told,
            [(200, 900), (600, 800), (1_400, 650), (2_000, 600)].map(|(a, b)| (a, Lsn(b)))
        );
        assert_eq!(age_ms(&told, Lsn(700)), 1_400);
        assert_eq!(age_ms(&told, Lsn(899)), 600);
        assert_eq!(age_ms(&told, Lsn(5)), 2_000, "as far as is remembered");
        assert_eq!(age_ms(&[], Lsn(5)), 0);
    }

    #[test]
    fn time_in_which_nothing_is_written_makes_no_copy_older() {
        let mut history = DurableHistory::default();
        history.sample(at(0), Lsn(600));
        history.sample(at(90_000), Lsn(600));
        history.sample(at(90_200), Lsn(700));
        assert_eq!(age_ms(&history.told(at(90_300)), Lsn(600)), 300);
    }

    #[test]
    fn samples_are_bounded_and_go_far_back() {
        let mut history = DurableHistory::default();
        for second in 0..10_000 {
            history.sample(at(second * 1_000), Lsn(second * 8));
        }
        assert!(history.samples.len() <= MOST_SAMPLES);
        let told = history.told(at(10_000_000));
        assert!(told.len() < 64, "{}", told.len());
        for behind in [10_u64, 100, 1_000, 5_000] {
            let age = age_ms(&told, Lsn((10_000 - behind) * 8));
            assert!((behind * 1_000..behind * 1_500).contains(&age), "{behind}: {age}");
        }
    }
}
