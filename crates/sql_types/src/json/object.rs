//! The members of a JSON object, in MySQL's order: shorter keys first, keys of equal length by
//! their bytes.

use std::cmp::Ordering;

use super::JsonValue;

/// Members by key. Of equal keys, the last one is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonObject(Vec<(Box<str>, JsonValue)>);

fn compare_keys(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl JsonValue {
    /// The value with the changes of a merge patch (RFC 7396): members of an object replace those
    /// of the same keys, NULL removes them, and anything else replaces the whole.
    #[must_use]
    pub fn patched_with(self, patch: JsonValue) -> JsonValue {
        let JsonValue::Object(changes) = patch else { return patch };
        let mut object = match self {
            JsonValue::Object(object) => object,
            _ => JsonObject::new(),
        };
        for (key, change) in changes {
            let old = object.remove(&key);
            if change != JsonValue::Null {
                object.insert(key, old.unwrap_or(JsonValue::Null).patched_with(change));
            }
        }
        JsonValue::Object(object)
    }
}

impl JsonObject {
    #[must_use]
    pub fn new() -> JsonObject {
        JsonObject::default()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets a member, and returns its previous value.
    pub fn insert(&mut self, key: impl Into<Box<str>>, value: JsonValue) -> Option<JsonValue> {
        let key = key.into();
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    #[must_use]
    pub fn get(&self, key: &str) -> Option<&JsonValue> {
        self.find(key).ok().map(|at| &self.0[at].1)
    }

    /// The value of a key, for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut JsonValue> {
        self.find(key).ok().map(|at| &mut self.0[at].1)
    }

    pub fn remove(&mut self, key: &str) -> Option<JsonValue> {
        self.find(key).ok().map(|at| self.0.remove(at).1)
    }

    /// Members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &JsonValue)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// Keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// Values in the order of their keys.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &JsonValue> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Values in the order of their keys, for changes.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut JsonValue> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| compare_keys(known, key))
    }
}

impl FromIterator<(Box<str>, JsonValue)> for JsonObject {
    fn from_iter<I: IntoIterator<Item = (Box<str>, JsonValue)>>(members: I) -> JsonObject {
        let mut members: Vec<_> = members.into_iter().collect();
        // The sort is stable, so the last of equal keys comes last, and is the one to keep.
        members.sort_by(|(a, _), (b, _)| compare_keys(a, b));
        members.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        JsonObject(members)
    }
}

impl IntoIterator for JsonObject {
    type Item = (Box<str>, JsonValue);
    type IntoIter = std::vec::IntoIter<(Box<str>, JsonValue)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
