//! Searching bytes, eight at a time.

const ONES: u64 = 0x0101_0101_0101_0101;

/// Index of the first byte that equals one of `wanted`.
#[must_use]
#[inline]
pub fn find_any<const COUNT: usize>(bytes: &[u8], wanted: [u8; COUNT]) -> Option<usize> {
    let patterns = wanted.map(|byte| ONES * u64::from(byte));
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest set bit marks the first match. Higher bits may be set without a match.
        let found = patterns.iter().fold(0, |found, pattern| found | zero_bytes(word ^ pattern));
        if found != 0 {
            return Some(number * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let found = rest.iter().position(|byte| wanted.contains(byte));
    found.map(|found| words.len() * 8 + found)
}

fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_wherever_it_is() {
        for length in 0..40 {
            let mut bytes = vec![b'x'; length];
            assert_eq!(find_any(&bytes, [b'a', b'b']), None);
            for at in (0..length).rev() {
                bytes[at] = if at % 2 == 0 { b'a' } else { b'b' };
                assert_eq!(find_any(&bytes, [b'a', b'b']), Some(at));
            }
        }
    }

    #[test]
    fn neighbours_of_what_is_wanted_are_not() {
        for wanted in [0, 1, 0x7f, 0x80, 0xff] {
            let others: Vec<u8> = (0..=255).filter(|byte| *byte != wanted).collect();
            assert_eq!(find_any(&others, [wanted]), None, "{wanted}");
            let all: Vec<u8> = (0..=255).rev().collect();
            assert_eq!(find_any(&all, [wanted; 3]), Some(255 - usize::from(wanted)));
        }
    }
}
