//! Medians, ratios and spreads.

/// The median; for an even number of values, the mean of the two in the middle; 0 for none.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count.is_multiple_of(2) => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// `candidate / baseline`; `None` if the baseline is 0.
#[must_use]
pub fn ratio(candidate: f64, baseline: f64) -> Option<f64> {
    (baseline != 0.0).then(|| candidate / baseline)
}

/// Standard deviation over mean. `None` for fewer than two values or a mean of zero.
#[must_use]
pub fn jitter(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    ratio((squares / values.len() as f64).sqrt(), mean)
}

/// The median of the rounds' ratios, and their range. `None` if no round has a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratios {
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
}

impl Ratios {
    /// The ratios of rounds, each with a figure of the candidate and one of the baseline.
    pub fn of(rounds: impl IntoIterator<Item = (f64, f64)>) -> Option<Ratios> {
        let ratios =
            rounds.into_iter().filter_map(|(candidate, baseline)| ratio(candidate, baseline));
        let ratios: Vec<f64> = ratios.collect();
        Some(Ratios {
            lowest: ratios.iter().copied().reduce(f64::min)?,
            highest: ratios.iter().copied().reduce(f64::max)?,
            median: median(ratios),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_in_the_middle() {
        assert_eq!(median([]), 0.0);
        assert_eq!(median([3.0]), 3.0);
        assert_eq!(median([9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median([4.0, 1.0, 2.0, 100.0]), 3.0);
    }

    #[test]
    fn a_ratio_to_nothing_is_none() {
        assert_eq!(ratio(6.0, 4.0), Some(1.5));
        assert_eq!(ratio(6.0, 0.0), None);
    }

    #[test]
    fn jitter_is_relative() {
        assert_eq!(jitter(&[5.0]), None);
        assert_eq!(jitter(&[5.0, 5.0, 5.0]), Some(0.0));
        assert_eq!(jitter(&[8.0, 12.0]), Some(0.2));
        assert_eq!(jitter(&[0.0, 0.0]), None);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // Both sides slow down together in the second round; the ratio of the medians would be 2.5.
        let ratios = Ratios::of([(20.0, 10.0), (5.0, 1.0), (30.0, 10.0)]).unwrap();
        assert_eq!(ratios, Ratios { median: 3.0, lowest: 2.0, highest: 5.0 });
        assert_eq!(Ratios::of([(1.0, 0.0)]), None);
    }
}
