//! When to try again.

use std::time::Duration;

use firn_base::random::RandomSource;

/// Delays that double with each failure, up to a limit. Each is shortened at random by up to its
/// half, so that the callers of a node that comes back do not all call it at the same moment.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    least: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(least: Duration, most: Duration) -> Backoff {
        Backoff { least, most, next: least }
    }

    /// The delay after one more failure.
    pub(crate) fn delay(&mut self, random: &dyn RandomSource) -> Duration {
        let whole = self.next;
        self.next = (self.next * 2).min(self.most);
        whole.mul_f64(0.5 + random.unit() / 2.0)
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.least;
    }
}

#[cfg(test)]
mod tests {
    use firn_base::random::SplitMix;

    use super::*;

    #[test]
    fn delays_double_up_to_a_limit_and_scatter() {
        let (least, most) = (Duration::from_millis(10), Duration::from_millis(100));
        let random = SplitMix::new(1);
        let mut backoff = Backoff::new(least, most);
        for whole in [10, 20, 40, 80, 100, 100] {
            let whole = Duration::from_millis(whole);
            let delay = backoff.delay(&random);
            assert!(delay >= whole / 2 && delay <= whole, "{delay:?} for {whole:?}");
        }
        backoff.reset();
        assert!(backoff.delay(&random) <= least);
        let mut delays: Vec<Duration> = (0..20)
            .map(|_| {
                backoff.reset();
                backoff.delay(&random)
            })
            .collect();
        delays.dedup();
        assert_eq!(delays.len(), 20);
    }
}
