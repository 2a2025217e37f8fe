//! Random draws of the workloads: seeded, one generator for each worker or part of a load, so that
//! a run's input can be repeated.

use firn_base::random::{RandomSource, SplitMix};

/// A sequence that its seed determines.
#[derive(Debug)]
pub struct Draw {
    words: SplitMix,
}

const ALPHANUMERIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Draw {
    /// The sequence for a seed and a worker or part.
    #[must_use]
    pub fn new(seed: u64, part: u64) -> Draw {
        // A word of the first sequence seeds the second, so that neighbouring parts share no words.
        let mixed = SplitMix::new(seed ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93)).next_u64();
        Draw { words: SplitMix::new(mixed) }
    }

    pub fn word(&mut self) -> u64 {
        self.words.next_u64()
    }

    /// Uniform in `low..=high`.
    ///
    /// # Panics
    /// If `low > high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        assert!(low <= high, "an empty range has no number");
        low + self.words.below((high - low) as u64 + 1) as i64
    }

    /// Uniform in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        self.words.unit()
    }

    /// True in `percent` of a hundred draws.
    pub fn percent(&mut self, percent: f64) -> bool {
        self.unit() * 100.0 < percent
    }

    /// One element of `choices`.
    pub fn one<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.between(0, choices.len() as i64 - 1) as usize]
    }

    pub fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.between(0, words.len() as i64 - 1) as usize]
    }

    /// Draws an index with a probability in proportion to its weight.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: u32 = weights.iter().sum();
        let mut left = self.between(0, i64::from(total) - 1) as u32;
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        unreachable!("the draw is below the sum of the weights")
    }

    /// Non-uniform: combines the bits of two draws, so that some numbers occur far more often
    /// (TPC-C 2.1.6). `a` is one less than a power of two, `c` a constant of the run in `0..=a`.
    pub fn non_uniform(&mut self, a: i64, c: i64, low: i64, high: i64) -> i64 {
        let joined = self.between(0, a) | self.between(low, high);
        (joined + c) % (high - low + 1) + low
    }

    /// A waiting time with a negative exponential distribution, cut off at ten times its mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        (-(1.0 - self.unit()).ln() * mean).min(mean * 10.0)
    }

    /// A text of letters and digits.
    pub fn alphanumeric(&mut self, low: i64, high: i64) -> String {
        let length = self.between(low, high);
        self.drawn_from(ALPHANUMERIC, length as usize)
    }

    /// A text of `length` digits.
    pub fn digits(&mut self, length: usize) -> String {
        self.drawn_from(b"0123456789", length)
    }

    /// A text of `length` bytes from an ASCII alphabet.
    pub fn drawn_from(&mut self, alphabet: &[u8], length: usize) -> String {
        let mut text = String::with_capacity(length);
        while text.len() < length {
            // Draws of 16 bits from one word favour no byte of the alphabet by more than one part
            // in a thousand.
            let mut word = self.word();
            for _ in 0..4.min(length - text.len()) {
                let index = ((word & 0xffff) * alphabet.len() as u64) >> 16;
                text.push(char::from(alphabet[index as usize]));
                word >>= 16;
            }
        }
        text
    }
}

/// Ranks from 0, of which a rank occurs in proportion to `1 / (rank + 1)^theta` (Gray et al.,
/// "Quickly Generating Billion-Record Synthetic Databases", 1994, as in YCSB).
#[derive(Debug, Clone)]
pub struct Zipfian {
    count: u64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

/// Exponent that YCSB uses.
pub const ZIPFIAN_THETA: f64 = 0.99;

fn zeta(from: u64, to: u64, theta: f64) -> f64 {
    (from..to).map(|rank| ((rank + 1) as f64).powf(-theta)).sum()
}

impl Zipfian {
    /// Over `count` ranks; takes time in proportion to it.
    ///
    /// # Panics
    /// If `count` is zero.
    #[must_use]
    pub fn new(count: u64, theta: f64) -> Zipfian {
        assert!(count > 0, "a distribution over nothing");
        let mut zipfian = Zipfian {
            count,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta: zeta(0, count, theta),
            eta: 0.0,
        };
        zipfian.set_eta();
        zipfian
    }

    fn set_eta(&mut self) {
        let two = zeta(0, 2, self.theta);
        self.eta =
            (1.0 - (2.0 / self.count as f64).powf(1.0 - self.theta)) / (1.0 - two / self.zeta);
    }

    /// Covers more ranks from now on.
    pub fn grow(&mut self, count: u64) {
        if count > self.count {
            self.zeta += zeta(self.count, count, self.theta);
            self.count = count;
            self.set_eta();
        }
    }

    pub fn draw(&self, draw: &mut Draw) -> u64 {
        let unit = draw.unit();
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1.min(self.count - 1);
        }
        let rank = self.count as f64 * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.count - 1)
    }
}

/// A hash that spreads neighbouring numbers (Fowler–Noll–Vo, 64 bits, as YCSB scatters ranks over
/// keys).
#[must_use]
pub fn scatter(number: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    number.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests;
