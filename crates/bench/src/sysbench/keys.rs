//! Distributions of row numbers, and texts.

use crate::random::{Draw, ZIPFIAN_THETA, Zipfian, scatter};

/// How often each row is used.
#[derive(Debug, Clone)]
pub enum Distribution {
    /// All rows equally often.
    Uniform,
    /// sysbench's default: three of four draws hit the hundredth in the middle, and the others lie
    /// in a bell shape around it.
    Special,
    /// By rank, scattered over the table.
    Zipfian(Zipfian),
}

impl Distribution {
    /// The distribution with a name, over tables of `rows` rows.
    #[must_use]
    pub fn named(name: &str, rows: i64) -> Option<Distribution> {
        match name {
            "uniform" => Some(Distribution::Uniform),
            "special" => Some(Distribution::Special),
            "zipfian" => {
                Some(Distribution::Zipfian(Zipfian::new(rows.max(1) as u64, ZIPFIAN_THETA)))
            }
            _ => None,
        }
    }

    /// Name on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Special => "special",
            Distribution::Zipfian(_) => "zipfian",
        }
    }

    /// A row's number in `1..=rows`.
    pub fn key(&self, draw: &mut Draw, rows: i64) -> i64 {
        match self {
            Distribution::Uniform => draw.between(1, rows),
            Distribution::Special => special(draw, rows),
            Distribution::Zipfian(zipfian) => {
                (scatter(zipfian.draw(draw)) % rows as u64) as i64 + 1
            }
        }
    }
}

const HOT_PERCENT: f64 = 75.0;
const BELL_DRAWS: i64 = 12;

fn special(draw: &mut Draw, rows: i64) -> i64 {
    if draw.percent(HOT_PERCENT) {
        let hot = (rows / 100).max(1);
        return (rows - hot) / 2 + draw.between(1, hot);
    }
    (0..BELL_DRAWS).map(|_| draw.between(1, rows)).sum::<i64>() / BELL_DRAWS
}

fn groups(draw: &mut Draw, count: usize) -> String {
    let groups: Vec<String> = (0..count).map(|_| draw.digits(11)).collect();
    groups.join("-")
}

/// Ten groups of eleven digits.
pub(crate) fn c(draw: &mut Draw) -> String {
    groups(draw, 10)
}

/// Five groups of eleven digits.
pub(crate) fn pad(draw: &mut Draw) -> String {
    groups(draw, 5)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_rows(seed: u64, rows in 1i64..10_000) {
            let mut draw = Draw::new(seed, 0);
            for name in ["uniform", "special", "zipfian"] {
                let distribution = Distribution::named(name, rows).unwrap();
                for _ in 0..20 {
                    prop_assert!((1..=rows).contains(&distribution.key(&mut draw, rows)), "{name}");
                }
            }
        }
    }

    #[test]
    fn three_of_four_draws_are_hot() {
        let mut draw = Draw::new(1, 0);
        let hot = (0..100_000).filter(|_| (49_501..=50_500).contains(&special(&mut draw, 100_000)));
        // One in twenty draws of the bell also falls into the middle.
        let hot = hot.count();
        assert!((75_000..79_000).contains(&hot), "{hot}");
    }

    #[test]
    fn texts_are_as_long_as_sysbench_has_them() {
        let mut draw = Draw::new(1, 0);
        assert_eq!((c(&mut draw).len(), pad(&mut draw).len()), (119, 59));
    }
}
