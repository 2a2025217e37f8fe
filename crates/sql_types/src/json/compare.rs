//! The order of JSON values: by kind first, then within the kind.
//!
//! ```text
//!   NULL < numbers < STRING < OBJECT < ARRAY < BOOLEAN < DATE < TIME < DATETIME < opaque
//! ```

use std::cmp::Ordering;

use super::JsonValue;
use crate::Decimal;

impl JsonValue {
    /// The position of the value's kind in the order.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            JsonValue::Null => 0,
            JsonValue::Int(_)
            | JsonValue::UInt(_)
            | JsonValue::Double(_)
            | JsonValue::Decimal(_) => 1,
            JsonValue::String(_) => 2,
            JsonValue::Object(_) => 3,
            JsonValue::Array(_) => 4,
            JsonValue::Bool(_) => 5,
            JsonValue::Date(_) => 6,
            JsonValue::Time(_) => 7,
            JsonValue::DateTime(_) => 8,
            JsonValue::Opaque { type_code: 16, .. } => 10,
            JsonValue::Opaque { .. } => 9,
        }
    }

    /// Compares two values. Numbers of all types compare by value. MySQL defines no meaningful
    /// order of unequal objects; here they compare by length, then member by member.
    #[must_use]
    pub fn compare(&self, other: &JsonValue) -> Ordering {
        self.rank().cmp(&other.rank()).then_with(|| self.compare_same_kind(other))
    }

    fn compare_same_kind(&self, other: &JsonValue) -> Ordering {
        match (self, other) {
            (JsonValue::String(a), JsonValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (JsonValue::Bool(a), JsonValue::Bool(b)) => a.cmp(b),
            (JsonValue::Date(a), JsonValue::Date(b))
            | (JsonValue::Time(a), JsonValue::Time(b))
            | (JsonValue::DateTime(a), JsonValue::DateTime(b)) => a.cmp(b),
            (JsonValue::Opaque { bytes: a, .. }, JsonValue::Opaque { bytes: b, .. }) => a.cmp(b),
            (JsonValue::Array(a), JsonValue::Array(b)) => compare_all(a.iter(), b.iter()),
            (JsonValue::Object(a), JsonValue::Object(b)) => a
                .len()
                .cmp(&b.len())
                .then_with(|| a.keys().cmp(b.keys()))
                .then_with(|| compare_all(a.values(), b.values())),
            _ => compare_numbers(self, other),
        }
    }
}

fn compare_all<'a>(
    a: impl ExactSizeIterator<Item = &'a JsonValue>,
    b: impl ExactSizeIterator<Item = &'a JsonValue>,
) -> Ordering {
    let lengths = a.len().cmp(&b.len());
    let difference = a.zip(b).map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
    difference.unwrap_or(lengths)
}

fn compare_numbers(a: &JsonValue, b: &JsonValue) -> Ordering {
    let ((a, exact_a), (b, exact_b)) = (a.as_number(), b.as_number());
    a.total_cmp(&b).then_with(|| exact_a.cmp(&exact_b))
}

impl JsonValue {
    /// The number as a double, and exactly, as far as possible. Numbers compare by both, in this
    /// order, so that large integers with the same double differ.
    pub(crate) fn as_number(&self) -> (f64, Decimal) {
        match self {
            JsonValue::Int(number) => (*number as f64, Decimal::from(*number)),
            JsonValue::UInt(number) => (*number as f64, Decimal::from(*number)),
            JsonValue::Decimal(number) => (number.to_double() + 0.0, *number),
            JsonValue::Double(number) => {
                (number + 0.0, Decimal::from_double(*number).unwrap_or(Decimal::ZERO))
            }
            _ => (0.0, Decimal::ZERO),
        }
    }
}
