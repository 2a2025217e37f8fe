//! Randomness, injected into the process.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random words. Seeded by the operating system in production, by the run's seed under
/// simulation. Not for secrets.
pub trait RandomSource: Send + Sync {
    /// 64 random bits.
    fn next_u64(&self) -> u64;

    /// A number below `bound`, one word's worth: biased by at most `bound / 2^64`.
    ///
    /// # Panics
    /// If `bound` is 0.
    fn below(&self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        // The high half of the product is as uniform as the word.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number of `0.0..1.0`, with 53 random bits.
    fn unit(&self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The step between two states of SplitMix64.
pub const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64: spreads the bits of a state over the whole word.
#[must_use]
pub const fn mix(state: u64) -> u64 {
    let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// SplitMix64 over a shared counter: each word is a hash of its index, so threads never wait for
/// each other.
#[derive(Debug)]
pub struct SplitMix {
    state: AtomicU64,
}

impl SplitMix {
    /// A sequence that `seed` determines.
    #[must_use]
    pub fn new(seed: u64) -> SplitMix {
        SplitMix { state: AtomicU64::new(seed) }
    }

    /// A sequence that differs from process to process.
    #[must_use]
    pub fn from_entropy() -> SplitMix {
        use std::hash::{BuildHasher, Hasher};
        let hasher = std::collections::hash_map::RandomState::new().build_hasher();
        SplitMix::new(hasher.finish())
    }
}

impl RandomSource for SplitMix {
    fn next_u64(&self) -> u64 {
        let before = self.state.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed);
        mix(before.wrapping_add(GOLDEN_GAMMA))
    }
}

#[cfg(test)]
mod tests;
