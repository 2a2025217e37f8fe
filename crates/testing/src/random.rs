//! Random choices that a seed determines.

use firn_base::random::{RandomSource, SplitMix};

/// A seeded source of choices. The same seed and the same calls give the same choices.
#[derive(Debug)]
pub struct Random {
    words: SplitMix,
}

impl Random {
    /// The sequence that `seed` determines.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random { words: SplitMix::new(seed) }
    }

    /// An independent sequence, seeded by a word of this one.
    #[must_use]
    pub fn fork(&self) -> Random {
        Random::new(self.words.next_u64())
    }

    pub fn word(&self) -> u64 {
        self.words.next_u64()
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&self, bound: u64) -> u64 {
        self.words.below(bound)
    }

    /// An index into something of `length` elements, which must not be empty.
    pub fn index(&self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number of `low..=high`.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True with `probability`; never for 0, always for 1. Draws nothing in these two cases.
    pub fn chance(&self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        if probability >= 1.0 {
            return true;
        }
        self.words.unit() < probability
    }

    /// One of `items`, which must not be empty.
    pub fn pick<'a, T>(&self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }
}

impl RandomSource for Random {
    fn next_u64(&self) -> u64 {
        self.word()
    }
}

#[cfg(test)]
mod tests;
