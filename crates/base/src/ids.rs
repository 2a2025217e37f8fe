//! The identifiers of all tiers, as newtypes, so that a page number cannot be used as a log
//! position.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone,
            Copy,
            Default,
            PartialEq,
            Eq,
            PartialOrd,
            Ord,
            Hash,
            serde::Serialize,
            serde::Deserialize,
        )]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A position in a log stream: the number of log payload bytes before it. Log groups begin and
    /// end at multiples of [`Lsn::ALIGNMENT`].
    Lsn(u64)
}
id! {
    /// A space: a set of pages that is created and dropped as a whole. A table owns one.
    SpaceId(u32)
}
id! {
    /// The number of a page within its space.
    PageNo(u32)
}
id! {
    /// A read-write transaction. Ids are handed out in order of the first write, beginning with 1.
    TrxId(u64)
}
id! {
    /// A commit timestamp. A snapshot is one such number: it sees every transaction with `cts <=
    /// snapshot`.
    Cts(u64)
}
id! {
    /// A hybrid logical clock reading: 48 bits of milliseconds, 16 bits of counter.
    Hlc(u64)
}
id! {
    /// One B-link tree, named by its root page, which never moves.
    IndexId(u64)
}
id! {
    /// One table of the dictionary.
    TableId(u64)
}
id! {
    /// One log stream of a cluster. A single node writes stream 0.
    LogStreamId(u16)
}

impl Lsn {
    /// Where the first log group of a stream begins. Zero stands for "never changed".
    pub const FIRST: Lsn = Lsn(8);
    /// Log groups are padded to this many bytes.
    pub const ALIGNMENT: u64 = 8;
    /// Beyond every position.
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// The position `bytes` after this one.
    #[must_use]
    pub fn advance(self, bytes: u64) -> Lsn {
        Lsn(self.0 + bytes)
    }

    /// Bytes from `earlier` to this position.
    ///
    /// # Panics
    /// If `earlier` is after this position.
    #[must_use]
    pub fn since(self, earlier: Lsn) -> u64 {
        self.0 - earlier.0
    }
}

impl TrxId {
    /// No transaction: the id in a record that is visible to every reader.
    pub const NONE: TrxId = TrxId(0);
}

impl Cts {
    /// Beyond every commit.
    pub const MAX: Cts = Cts(u64::MAX);
}

impl PageNo {
    /// Stands for no page.
    pub const NONE: PageNo = PageNo(u32::MAX);
}

#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct PageId {
    pub space: SpaceId,
    pub page_no: PageNo,
}

impl PageId {
    /// The page `page_no` of `space`.
    #[must_use]
    pub const fn new(space: SpaceId, page_no: PageNo) -> PageId {
        PageId { space, page_no }
    }

    /// Both parts in one word, ordered as the pair is.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        (self.space.0 as u64) << 32 | self.page_no.0 as u64
    }

    /// The inverse of [`PageId::to_u64`].
    #[must_use]
    pub const fn from_u64(word: u64) -> PageId {
        PageId { space: SpaceId((word >> 32) as u32), page_no: PageNo(word as u32) }
    }
}

impl IndexId {
    /// The root page of the tree.
    #[must_use]
    pub const fn root(self) -> PageId {
        PageId::from_u64(self.0)
    }
}

impl From<PageId> for IndexId {
    fn from(root: PageId) -> IndexId {
        IndexId(root.to_u64())
    }
}

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.space.0, self.page_no.0)
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {} of space {}", self.page_no.0, self.space.0)
    }
}

#[cfg(test)]
mod tests;
