//! Histograms of equal height: the distribution of a column's values.
//!
//! ```text
//!   share of rows   0.25      0.5       0.75      1.0
//!                ├─────────┼─────────┼─────────┼─────────┤
//!   values       2 … 7     8 … 9     9 (all)   12 … 90      bounds are values of the column
//! ```

use std::cmp::Ordering;

use firn_sql_types::{Datum, SqlType, compare};

use super::super::notation::literal_text;

pub(super) const BUCKETS: usize = 64;

/// A range of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    /// The least value.
    pub lower: Datum,
    /// The greatest value.
    pub upper: Datum,
    /// The share of values up to and including the greatest.
    pub cumulative: f64,
    /// Different values.
    pub distinct: f64,
}

/// Buckets do not overlap, except for a value that fills several.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// In the order of values.
    pub buckets: Vec<Bucket>,
}

impl Histogram {
    /// The histogram of values, none of which is NULL; `None` without values.
    #[must_use]
    pub fn of(ty: &SqlType, mut values: Vec<Datum>) -> Option<Histogram> {
        if values.is_empty() {
            return None;
        }
        values.sort_by(|one, other| compare::compare_values(ty, one, other));
        let height = values.len().div_ceil(BUCKETS).max(1);
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut at = 0;
        while at < values.len() {
            let mut end = (at + height).min(values.len());
            // A value is in one bucket only.
            while end < values.len() && is_equal(ty, &values[end - 1], &values[end]) {
                end += 1;
            }
            let of_bucket = &values[at..end];
            let changes = of_bucket.windows(2).filter(|pair| !is_equal(ty, &pair[0], &pair[1]));
            buckets.push(Bucket {
                lower: of_bucket[0].clone(),
                upper: of_bucket[of_bucket.len() - 1].clone(),
                cumulative: end as f64 / values.len() as f64,
                distinct: changes.count() as f64 + 1.0,
            });
            at = end;
        }
        Some(Histogram { buckets })
    }

    /// The share of values that are equal to a value.
    #[must_use]
    pub fn equal(&self, ty: &SqlType, value: &Datum) -> f64 {
        let mut before = 0.0;
        for bucket in &self.buckets {
            let share = bucket.cumulative - before;
            before = bucket.cumulative;
            if compare::compare_values(ty, value, &bucket.upper) != Ordering::Greater {
                let is_inside = compare::compare_values(ty, value, &bucket.lower) != Ordering::Less;
                return if is_inside { share / bucket.distinct.max(1.0) } else { 0.0 };
            }
        }
        0.0
    }

    /// The share of values between two bounds.
    #[must_use]
    pub fn between(
        &self,
        ty: &SqlType,
        lower: Option<(&Datum, bool)>,
        upper: Option<(&Datum, bool)>,
    ) -> f64 {
        let up_to = upper.map_or(1.0, |(value, included)| self.below(ty, value, included));
        let from = lower.map_or(0.0, |(value, included)| self.below(ty, value, !included));
        (up_to - from).max(0.0)
    }

    /// The share of values below a value; including it, if `included`.
    fn below(&self, ty: &SqlType, value: &Datum, included: bool) -> f64 {
        let mut before = 0.0;
        for bucket in &self.buckets {
            let one = (bucket.cumulative - before) / bucket.distinct.max(1.0);
            let equal = if included { one } else { 0.0 };
            match compare::compare_values(ty, value, &bucket.upper) {
                Ordering::Greater => before = bucket.cumulative,
                Ordering::Equal => return bucket.cumulative - one + equal,
                Ordering::Less => {
                    return match compare::compare_values(ty, value, &bucket.lower) {
                        Ordering::Less => before,
                        Ordering::Equal => before + equal,
                        // Both bounds are values, and the others are assumed evenly between them.
                        Ordering::Greater => {
                            let others = (bucket.distinct - 2.0).max(0.0);
                            before + one * (1.0 + others * position(bucket, value))
                        }
                    };
                }
            }
        }
        1.0
    }

    /// As in MySQL's dictionary.
    pub(super) fn json_text(&self, ty: &SqlType, null_fraction: f64) -> String {
        let buckets: Vec<String> = self
            .buckets
            .iter()
            .map(|bucket| {
                let bound = |datum: &Datum| {
                    let mut text = String::new();
                    firn_sql_types::json::write_quoted(&literal_text(datum, ty), &mut text);
                    text
                };
                let (lower, upper) = (bound(&bucket.lower), bound(&bucket.upper));
                format!("[{lower}, {upper}, {}, {}]", bucket.cumulative, bucket.distinct)
            })
            .collect();
        format!(
            "{{\"buckets\": [{}], \"histogram-type\": \"equi-height\", \"null-values\": {null_fraction}, \
             \"number-of-buckets-specified\": {BUCKETS}}}",
            buckets.join(", ")
        )
    }
}

fn is_equal(ty: &SqlType, one: &Datum, other: &Datum) -> bool {
    compare::compare_values(ty, one, other) == Ordering::Equal
}

/// The position of a value between the lower and the upper bound; one half if it cannot be
/// computed.
fn position(bucket: &Bucket, value: &Datum) -> f64 {
    let number = |datum: &Datum| match datum {
        Datum::Int(number) => Some(*number as f64),
        Datum::UInt(number) => Some(*number as f64),
        Datum::Double(number) => Some(*number),
        Datum::Decimal(number) => Some(number.to_double()),
        other => other.calendar_us().map(|us| us as f64),
    };
    let place = number(&bucket.lower).zip(number(&bucket.upper)).zip(number(value));
    match place {
        Some(((lower, upper), value)) if upper > lower => {
            ((value - lower) / (upper - lower)).clamp(0.0, 1.0)
        }
        _ => 0.5,
    }
}
