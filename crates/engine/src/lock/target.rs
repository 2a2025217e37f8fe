//! What can be locked, and in which mode.
//!
//! Everything that can be locked lies in a [`LockSpace`], and is either one key of that space or a
//! range of its keys. A table lock is the empty key of the table's own space, so that the decisions
//! need two cases instead of three:
//!
//! ```text
//!   Record{index 7, "ant"}          space Index(7),  key "ant"
//!   Range{index 7, ["a", "c")}      space Index(7),  range ["a", "c")
//!   Table{table 3}                  space Table(3),  key ""
//! ```
//!
//! A key need not exist: an insert locks the key that it is about to add.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Bound;
use std::sync::Arc;

use firn_base::{IndexId, TableId};
use rustc_hash::FxHasher;

/// Mode of a lock, ordered by strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Any number of owners at a time, all of which read.
    Shared,
    /// One owner at a time.
    Exclusive,
}

impl LockMode {
    /// Whether two owners cannot have these modes at the same time.
    #[must_use]
    pub fn conflicts_with(self, other: LockMode) -> bool {
        self == LockMode::Exclusive || other == LockMode::Exclusive
    }
}

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockMode::Shared => "S",
            LockMode::Exclusive => "X",
        })
    }
}

/// The target of a request. Borrowed, so that a request costs no allocation.
#[derive(Debug, Clone, Copy)]
pub enum LockTarget<'a> {
    /// One key of an index, whether or not it exists.
    Record {
        index: IndexId,
        /// The complete encoded key.
        key: &'a [u8],
    },
    /// Every key of an index between two bounds, existing or not: the keys that a predicate has
    /// read.
    Range {
        index: IndexId,
        low: Bound<&'a [u8]>,
        high: Bound<&'a [u8]>,
    },
    Table {
        table: TableId,
    },
}

/// A set of keys in which locks can meet each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockSpace {
    Index(IndexId),
    /// One table as a whole, locked by its empty key.
    Table(TableId),
}

/// The hash of `key` that selects its shard.
pub(super) fn shard_hash(key: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.finish() as usize
}

/// The hash of `space` that selects its group and its occupancy counter.
pub(super) fn space_hash(space: LockSpace) -> usize {
    let mut hasher = FxHasher::default();
    space.hash(&mut hasher);
    hasher.finish() as usize
}

impl fmt::Display for LockSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockSpace::Index(index) => write!(f, "index {index}"),
            LockSpace::Table(table) => write!(f, "table {table}"),
        }
    }
}

/// A range of keys in their byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    low: Bound<Box<[u8]>>,
    high: Bound<Box<[u8]>>,
}

impl KeyRange {
    /// The keys between `low` and `high`; empty if `low` is after `high`.
    #[must_use]
    pub fn new(low: Bound<&[u8]>, high: Bound<&[u8]>) -> KeyRange {
        KeyRange { low: low.map(Box::from), high: high.map(Box::from) }
    }

    #[must_use]
    pub fn low(&self) -> Bound<&[u8]> {
        self.low.as_ref().map(|key| &**key)
    }

    #[must_use]
    pub fn high(&self) -> Bound<&[u8]> {
        self.high.as_ref().map(|key| &**key)
    }

    /// Whether no key can lie between the bounds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        ends_before(self.high(), self.low())
    }

    /// Whether `key` lies between the bounds.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let point = Bound::Included(key);
        !ends_before(point, self.low()) && !ends_before(self.high(), point)
    }

    /// Whether some key may lie in both ranges.
    #[must_use]
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        !ends_before(self.high(), other.low()) && !ends_before(other.high(), self.low())
    }

    /// Whether every key of `other` lies in this range.
    #[must_use]
    pub fn covers(&self, other: &KeyRange) -> bool {
        begins_no_later(self.low(), other.low()) && ends_no_earlier(self.high(), other.high())
    }
}

/// Whether every key up to `high` is before every key from `low` on.
fn ends_before(high: Bound<&[u8]>, low: Bound<&[u8]>) -> bool {
    match (high, low) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(high), Bound::Included(low)) => high < low,
        (
            Bound::Included(high) | Bound::Excluded(high),
            Bound::Included(low) | Bound::Excluded(low),
        ) => high <= low,
    }
}

/// Whether keys from `outer` on include all keys from `inner` on.
fn begins_no_later(outer: Bound<&[u8]>, inner: Bound<&[u8]>) -> bool {
    match (outer, inner) {
        (Bound::Unbounded, _) => true,
        (_, Bound::Unbounded) => false,
        (Bound::Excluded(outer), Bound::Included(inner)) => outer < inner,
        (
            Bound::Included(outer) | Bound::Excluded(outer),
            Bound::Included(inner) | Bound::Excluded(inner),
        ) => outer <= inner,
    }
}

/// Whether keys up to `outer` include all keys up to `inner`.
fn ends_no_earlier(outer: Bound<&[u8]>, inner: Bound<&[u8]>) -> bool {
    match (outer, inner) {
        (Bound::Unbounded, _) => true,
        (_, Bound::Unbounded) => false,
        (Bound::Excluded(outer), Bound::Included(inner)) => outer > inner,
        (
            Bound::Included(outer) | Bound::Excluded(outer),
            Bound::Included(inner) | Bound::Excluded(inner),
        ) => outer >= inner,
    }
}

impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low() {
            Bound::Included(key) => write!(f, "[{}", key.escape_ascii())?,
            Bound::Excluded(key) => write!(f, "({}", key.escape_ascii())?,
            Bound::Unbounded => f.write_str("(")?,
        }
        f.write_str("..")?;
        match self.high() {
            Bound::Included(key) => write!(f, "{}]", key.escape_ascii()),
            Bound::Excluded(key) => write!(f, "{})", key.escape_ascii()),
            Bound::Unbounded => f.write_str(")"),
        }
    }
}

/// The part of a space that a lock covers. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    Key(Arc<[u8]>),
    Range(Arc<KeyRange>),
}

/// A locked key, range or table: the lock manager's own copy of a [`LockTarget`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locked {
    pub space: LockSpace,
    /// The key or range within the space.
    pub extent: Extent,
}

impl Locked {
    /// Whether `other` is a part of this.
    #[must_use]
    pub fn covers(&self, other: &Locked) -> bool {
        self.space == other.space
            && match (&self.extent, &other.extent) {
                (Extent::Key(key), Extent::Key(other)) => key == other,
                (Extent::Key(_), Extent::Range(_)) => false,
                (Extent::Range(range), Extent::Key(key)) => range.contains(key),
                (Extent::Range(range), Extent::Range(other)) => range.covers(other),
            }
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.space, &self.extent) {
            (LockSpace::Table(table), _) => write!(f, "table {table}"),
            (space, Extent::Key(key)) => write!(f, "{space} key {}", key.escape_ascii()),
            (space, Extent::Range(range)) => write!(f, "{space} range {range}"),
        }
    }
}
