//! Counting distinct values in little memory, or estimating them from a sample.
//!
//! ```text
//!   level 0   all hashes are kept                                      the count is exact
//!   full      level 1: of those kept, and of those to come, only hashes that end in one zero bit
//!   full      level 2: … in two zero bits                              the count is kept × 2^level
//! ```
//!
//! Invariant: the kept hashes are all hashes so far whose last `level` bits are zero. (Wegman's
//! adaptive sampling; with [`MOST_KEPT`] of them the count is off by about one percent.) A look at
//! the last bits rejects most hashes of a large column.
//!
//! A sample estimates the total from the number of its values that occur only once: if there are
//! none, it has seen all values; if all are, the column has one for each row (the estimator Duj1 of
//! Haas and Stokes).

use rustc_hash::FxHashSet;

/// The most hashes that are kept.
const MOST_KEPT: usize = 16_384;

/// How many distinct values were seen.
#[derive(Debug, Clone, Default)]
pub(super) struct DistinctCount {
    kept: FxHashSet<u64>,
    level: u32,
}

impl DistinctCount {
    /// Counts a value by its hash.
    #[inline]
    pub(super) fn add(&mut self, hash: u64) {
        let hash = mixed(hash);
        if hash.trailing_zeros() < self.level {
            return;
        }
        self.kept.insert(hash);
        while self.kept.len() > MOST_KEPT {
            self.level += 1;
            let level = self.level;
            self.kept.retain(|hash| hash.trailing_zeros() >= level);
        }
    }

    /// The estimated number of distinct values.
    pub(super) fn estimate(&self) -> f64 {
        self.kept.len() as f64 * f64::from(self.level).exp2()
    }
}

/// The estimated number of distinct values in `rows`, from the hashes in `sample`, which gets
/// sorted.
pub(super) fn estimated_from(sample: &mut [u64], rows: f64) -> f64 {
    sample.sort_unstable();
    let (mut distinct, mut once) = (0.0, 0.0);
    for group in sample.chunk_by(|a, b| a == b) {
        distinct += 1.0;
        once += if group.len() == 1 { 1.0 } else { 0.0 };
    }
    let sampled = sample.len() as f64;
    let among_all = sampled - once + once * sampled / rows.max(sampled);
    if among_all > 0.0 { sampled * distinct / among_all } else { 0.0 }
}

/// Spreads differences in any bit over all bits.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(values: impl Iterator<Item = u64>) -> f64 {
        let mut count = DistinctCount::default();
        values.for_each(|value| count.add(value));
        count.estimate()
    }

    #[test]
    fn few_values_are_counted_exactly_however_often_they_come() {
        assert_eq!(counted(0..0), 0.0);
        assert_eq!(counted((0..100_000).map(|number| number % 16_000)), 16_000.0);
    }

    #[test]
    fn a_sample_of_all_values_or_of_none_twice_says_it_all() {
        assert_eq!(estimated_from(&mut [], 0.0), 0.0);
        assert_eq!(estimated_from(&mut [1, 2, 2, 3], 4.0), 3.0);
        assert_eq!(estimated_from(&mut [5, 6, 5, 6], 1_000.0), 2.0);
        assert_eq!(estimated_from(&mut [1, 2, 3, 4], 1_000.0), 1_000.0);
    }

    #[test]
    fn a_sample_tells_about_how_many_there_are() {
        for kinds in [100_u64, 5_000, 20_000, 100_000] {
            let rows: Vec<_> = (0..200_000).map(|number| mixed(number) % kinds).collect();
            let distinct = rows.iter().collect::<FxHashSet<_>>().len();
            let mut every_tenth: Vec<_> = rows.iter().step_by(10).copied().collect();
            let found = estimated_from(&mut every_tenth, rows.len() as f64);
            let off = (found / distinct as f64 - 1.0).abs();
            assert!(off < 0.2, "{found} for {distinct}");
        }
    }

    #[test]
    fn many_values_are_counted_nearly() {
        for step in [1, 1 << 20, 0x9E37_79B9_7F4A_7C15] {
            for distinct in [20_000_u64, 100_000, 1_000_000] {
                let found = counted((0..distinct).map(|number| number.wrapping_mul(step)));
                let off = (found / distinct as f64 - 1.0).abs();
                assert!(off < 0.04, "{found} for {distinct} with step {step}");
            }
        }
    }
}
