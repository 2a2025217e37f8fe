//! Counting distinct values in little memory.
//!
//! ```text
//!   level 0    all hashes are kept                                      the count is exact
//!   full       level 1: of those kept, and of those to come, only hashes that end in one zero bit
//!   full       level 2: … in two zero bits                              the count is kept × 2^level
//! ```
//!
//! Invariant: what is kept are all hashes so far whose last `level` bits are zero. (Wegman's adaptive sampling; with
//! [`MOST_KEPT`] of them the count is off by about one part in a hundred.) Most hashes of a large column are turned
//! away by a look at their last bits.

use rustc_hash::FxHashSet;

/// So many hashes are kept at most.
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

    /// About how many there were.
    pub(super) fn estimate(&self) -> f64 {
        self.kept.len() as f64 * f64::from(self.level).exp2()
    }
}

/// Spreads what differs anywhere over all bits.
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
