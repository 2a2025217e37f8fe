//! Randomness, injected into the process.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random words. Seeded by the operating system in production, by the run's seed under
/// simulation. Not for secrets.
pub trait RandomSource: Send + Sync {
    fn next_u64(&self) -> u64;
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
        const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut word =
            self.state.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed).wrapping_add(GOLDEN_GAMMA);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
mod tests;
