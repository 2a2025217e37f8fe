//! Conditions on key parts as ranges of bytes.
//!
//! ```text
//!   key (a, b), condition a = 7 and b > 3:
//!     start  bytes(7) ‖ successor of bytes(3)   the least key that does not begin with bytes(7, 3)
//!     end    successor of bytes(7)              the least key that does not begin with bytes(7)
//! ```

use std::ops::Bound;

use crate::value::ValueRef;

use super::{CollationKeys, Direction, KeyError, KeyLayout, KeyPart};

/// All keys from `start` on, up to and without `end`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KeyRange {
    /// The first key of the range, if there is such a key.
    pub start: Vec<u8>,
    /// The first key after the range; `None` reaches to the end of the index.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    #[must_use]
    pub fn all() -> KeyRange {
        KeyRange { start: Vec::new(), end: None }
    }

    /// Every key that begins with `prefix`.
    #[must_use]
    pub fn prefix(prefix: Vec<u8>) -> KeyRange {
        let end = prefix_successor(&prefix);
        KeyRange { start: prefix, end }
    }

    /// Whether `key` is in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Whether no key can be in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    fn none() -> KeyRange {
        KeyRange { start: Vec::new(), end: Some(Vec::new()) }
    }
}

/// The least byte string above all strings that begin with `prefix`; `None` if there is none,
/// because `prefix` is empty or all FF.
#[must_use]
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut successor = prefix[..=last].to_vec();
    successor[last] += 1;
    Some(successor)
}

impl KeyLayout {
    /// The range of the keys whose first parts are `equal` and whose next part lies between `lower`
    /// and `upper`. The bounds compare as values, in whichever direction the part is ordered.
    ///
    /// NULL is a value, the lowest: `x < 5` in SQL is `lower = Excluded(NULL)`. A part with a
    /// prefix length holds only the head of its values, so the range may contain more keys than the
    /// condition, never fewer.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_row`]; [`KeyError::WrongValueCount`] also if there is no part for a
    /// bound.
    pub fn range(
        &self,
        equal: &[ValueRef<'_>],
        lower: Bound<ValueRef<'_>>,
        upper: Bound<ValueRef<'_>>,
        collations: &dyn CollationKeys,
    ) -> Result<KeyRange, KeyError> {
        let mut prefix = Vec::new();
        self.encode_parts(equal, collations, &mut prefix)?;
        if matches!((lower, upper), (Bound::Unbounded, Bound::Unbounded)) {
            return Ok(KeyRange::prefix(prefix));
        }
        let (number, parts) = (equal.len(), self.parts.len());
        let too_many = KeyError::WrongValueCount { given: number + 1, parts };
        let part = self.parts.get(number).ok_or(too_many)?;
        let (first, last) = match part.direction {
            Direction::Ascending => (lower, upper),
            Direction::Descending => (upper, lower),
        };
        let first = part.bound(number, &prefix, first, collations)?;
        let last = part.bound(number, &prefix, last, collations)?;
        Ok(between(prefix, first, last))
    }
}

impl KeyPart {
    /// The bytes of a bound, appended to those of the parts before it.
    fn bound(
        &self,
        number: usize,
        prefix: &[u8],
        bound: Bound<ValueRef<'_>>,
        collations: &dyn CollationKeys,
    ) -> Result<Bound<Vec<u8>>, KeyError> {
        let encode = |value| {
            let mut bytes = prefix.to_vec();
            self.write(number, value, collations, &mut bytes)?;
            Ok(bytes)
        };
        Ok(match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(value) => Bound::Included(encode(value)?),
            // Values that differ only after the prefix share a key.
            Bound::Excluded(value) if self.prefix_length.is_some() && !value.is_null() => {
                Bound::Included(encode(value)?)
            }
            Bound::Excluded(value) => Bound::Excluded(encode(value)?),
        })
    }
}

fn between(prefix: Vec<u8>, first: Bound<Vec<u8>>, last: Bound<Vec<u8>>) -> KeyRange {
    let end = match last {
        Bound::Unbounded => prefix_successor(&prefix),
        Bound::Included(bytes) => prefix_successor(&bytes),
        Bound::Excluded(bytes) => Some(bytes),
    };
    let start = match first {
        Bound::Unbounded => Some(prefix),
        Bound::Included(bytes) => Some(bytes),
        Bound::Excluded(bytes) => prefix_successor(&bytes),
    };
    start.map_or_else(KeyRange::none, |start| KeyRange { start, end })
}
