//! The sequences of `RAND(n)`.
//!
//! `RAND(n)` with a given seed returns MySQL's sequence for that seed, row by row. The sequence
//! starts again with each execution, and whenever the seed changes.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

/// The modulus of the two words of MySQL's generator.
const MODULUS: u64 = 0x3fff_ffff;

#[derive(Clone, Copy, Debug)]
struct Sequence {
    seed: u32,
    words: [u64; 2],
}

impl Sequence {
    fn new(seed: u32) -> Sequence {
        let first = seed.wrapping_mul(0x10001).wrapping_add(55_555_555);
        let second = seed.wrapping_mul(0x1000_0001);
        Sequence { seed, words: [u64::from(first) % MODULUS, u64::from(second) % MODULUS] }
    }

    fn next(&mut self) -> f64 {
        let [first, second] = self.words;
        let first = (first * 3 + second) % MODULUS;
        self.words = [first, (first + second + 33) % MODULUS];
        first as f64 / MODULUS as f64
    }
}

/// The sequences of a statement's execution, each with the address of its call.
#[derive(Debug, Default)]
pub struct RandomSequences(RefCell<FxHashMap<usize, Sequence>>);

impl RandomSequences {
    /// Restarts the sequences: addresses of calls are meaningless in another execution.
    pub fn restart(&self) {
        let mut sequences = self.0.borrow_mut();
        if !sequences.is_empty() {
            sequences.clear();
        }
    }

    /// The next number of a call's sequence, in [0, 1). The sequence starts again when the seed
    /// changes.
    pub fn next(&self, call: usize, seed: u32) -> f64 {
        let mut sequences = self.0.borrow_mut();
        let sequence = sequences.entry(call).or_insert_with(|| Sequence::new(seed));
        if sequence.seed != seed {
            *sequence = Sequence::new(seed);
        }
        sequence.next()
    }
}
