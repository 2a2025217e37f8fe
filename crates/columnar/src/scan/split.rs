//! Splits a range of keys into parts with about the same number of entries.
//!
//! Keys are ordered bytes, so their first eight bytes are a number between those of the range's
//! ends. The borders are found by bisection on that number, with the tree's estimates.

use firn_format::key::KeyRange;

/// Most steps of a bisection; each reads one path of the tree.
const STEPS: u32 = 64;
/// How far a part may be from its share.
const TOLERANCE: f64 = 0.02;

/// Parts of a range, in order; fewer than requested if no keys lie between.
pub(crate) fn split(
    range: &KeyRange,
    parts: usize,
    estimate: &dyn Fn(&KeyRange) -> f64,
) -> Vec<KeyRange> {
    let total = estimate(range);
    let mut borders: Vec<Vec<u8>> = Vec::new();
    for part in 1..parts {
        let share = part as f64 / parts as f64;
        if let Some(border) = border(range, total * share, total * TOLERANCE, estimate) {
            let start = borders.last().unwrap_or(&range.start);
            if border > *start && range.end.as_ref().is_none_or(|end| border < *end) {
                borders.push(border);
            }
        }
    }
    let mut starts = vec![range.start.clone()];
    starts.extend(borders.iter().cloned());
    let ends = borders.into_iter().map(Some).chain([range.end.clone()]);
    starts.into_iter().zip(ends).map(|(start, end)| KeyRange { start, end }).collect()
}

/// A key with `wanted` entries of the range before it, to within `tolerance`.
fn border(
    range: &KeyRange,
    wanted: f64,
    tolerance: f64,
    estimate: &dyn Fn(&KeyRange) -> f64,
) -> Option<Vec<u8>> {
    let mut low = number(&range.start);
    let mut high = range.end.as_ref().map_or(u64::MAX, |end| number(end));
    for _ in 0..STEPS {
        if high - low < 2 {
            break;
        }
        let middle = low + (high - low) / 2;
        let key = middle.to_be_bytes().to_vec();
        let before = estimate(&KeyRange { start: range.start.clone(), end: Some(key.clone()) });
        if (before - wanted).abs() <= tolerance {
            return Some(key);
        }
        if before < wanted { low = middle } else { high = middle }
    }
    Some(low.to_be_bytes().to_vec())
}

/// The first eight bytes of a key.
fn number(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = key.len().min(bytes.len());
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_range_and_are_about_equal() {
        let keys: Vec<[u8; 9]> = (0..10_000_u64)
            .map(|number| {
                let mut key = [1; 9];
                key[1..].copy_from_slice(&(number | 1 << 63).to_be_bytes());
                key
            })
            .collect();
        let count = |range: &KeyRange| {
            let has = |key: &&[u8; 9]| {
                key[..] >= range.start[..] && range.end.as_ref().is_none_or(|end| key[..] < end[..])
            };
            keys.iter().filter(has).count() as f64
        };
        let parts = split(&KeyRange::all(), 4, &count);
        let counts: Vec<f64> = parts.iter().map(&count).collect();
        assert_eq!(counts.iter().sum::<f64>(), 10_000.0);
        assert!(counts.len() == 4 && counts.iter().all(|count| (count - 2500.0).abs() < 500.0));
    }
}
