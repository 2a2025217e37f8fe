//! A run of entries outside a page: the entries that a split or a merge moves, as in the redo
//! record.
//!
//! ```text
//!   u16 prefix length, prefix, then per entry:  u16 suffix length, u16 value length, suffix, value
//! ```
//!
//! The prefix is stored once, so a run from one page is never much longer than the page.

use crate::reader::ByteReader;

/// One entry; its key is `prefix` followed by `suffix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key's first part, the same for the whole run.
    pub prefix: &'a [u8],
    /// The rest of the key.
    pub suffix: &'a [u8],
    pub value: &'a [u8],
}

impl Entry<'_> {
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        [self.prefix, self.suffix].concat()
    }
}

/// A well-formed run of entries: each lies within the bytes; their order was not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries<'a> {
    prefix: &'a [u8],
    encoded: &'a [u8],
    run: &'a [u8],
}

impl<'a> Entries<'a> {
    pub const EMPTY: Entries<'static> = Entries { prefix: &[], encoded: &[0, 0], run: &[] };

    /// Decodes the result of [`Entries::encoded`]; `None` if the bytes are not a run of entries.
    #[must_use]
    pub fn parse(encoded: &'a [u8]) -> Option<Entries<'a>> {
        let mut reader = ByteReader::new(encoded);
        let prefix_length = usize::from(reader.u16()?);
        let prefix = reader.take(prefix_length)?;
        let run = reader.remaining();
        while !reader.is_empty() {
            read_entry(&mut reader, prefix)?;
        }
        Some(Entries { prefix, encoded, run })
    }

    /// The bytes of the run.
    #[must_use]
    pub fn encoded(&self) -> &'a [u8] {
        self.encoded
    }

    /// The entries in the order in which they were pushed.
    #[must_use]
    pub fn iter(&self) -> EntriesIter<'a> {
        EntriesIter { prefix: self.prefix, reader: ByteReader::new(self.run) }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.run.is_empty()
    }
}

impl<'a> IntoIterator for Entries<'a> {
    type Item = Entry<'a>;
    type IntoIter = EntriesIter<'a>;

    fn into_iter(self) -> EntriesIter<'a> {
        self.iter()
    }
}

fn read_entry<'a>(reader: &mut ByteReader<'a>, prefix: &'a [u8]) -> Option<Entry<'a>> {
    let suffix_length = usize::from(reader.u16()?);
    let value_length = usize::from(reader.u16()?);
    let suffix = reader.take(suffix_length)?;
    let value = reader.take(value_length)?;
    Some(Entry { prefix, suffix, value })
}

#[derive(Debug, Clone)]
pub struct EntriesIter<'a> {
    prefix: &'a [u8],
    reader: ByteReader<'a>,
}

impl<'a> Iterator for EntriesIter<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        read_entry(&mut self.reader, self.prefix)
    }
}

/// Collects a run of entries.
#[derive(Debug, Clone)]
pub struct EntryList {
    encoded: Vec<u8>,
    prefix_length: usize,
}

impl Default for EntryList {
    fn default() -> EntryList {
        EntryList::new()
    }
}

impl EntryList {
    /// An empty run without a common prefix.
    #[must_use]
    pub fn new() -> EntryList {
        EntryList::with_prefix(&[])
    }

    /// An empty run whose keys all begin with `prefix`.
    ///
    /// # Panics
    /// If the prefix is longer than 65,535 bytes.
    #[must_use]
    pub fn with_prefix(prefix: &[u8]) -> EntryList {
        let mut list = EntryList { encoded: Vec::new(), prefix_length: 0 };
        list.restart(prefix);
        list
    }

    /// Reserves room for about `bytes` of entries, so that pushes do not allocate.
    pub fn reserve(&mut self, bytes: usize) {
        self.encoded.reserve(bytes);
    }

    /// Adds an entry whose key is the prefix followed by `suffix`.
    ///
    /// # Panics
    /// If a part is longer than 65,535 bytes.
    pub fn push(&mut self, suffix: &[u8], value: &[u8]) {
        self.push_parts(suffix, value, &[]);
    }

    /// Like [`EntryList::push`], for a value in two parts.
    ///
    /// # Panics
    /// As [`EntryList::push`].
    pub fn push_parts(&mut self, suffix: &[u8], first: &[u8], second: &[u8]) {
        let value_length = first.len() + second.len();
        let suffix_length = u16::try_from(suffix.len()).expect("a key fits in a page");
        let value_length = u16::try_from(value_length).expect("a value fits in a page");
        self.encoded.extend_from_slice(&suffix_length.to_le_bytes());
        self.encoded.extend_from_slice(&value_length.to_le_bytes());
        self.encoded.extend_from_slice(suffix);
        self.encoded.extend_from_slice(first);
        self.encoded.extend_from_slice(second);
    }

    /// Becomes an empty run whose keys all begin with `prefix`; keeps its memory.
    ///
    /// # Panics
    /// As [`EntryList::with_prefix`].
    pub fn restart(&mut self, prefix: &[u8]) {
        let length = u16::try_from(prefix.len()).expect("a prefix fits in a page");
        self.encoded.clear();
        self.encoded.extend_from_slice(&length.to_le_bytes());
        self.encoded.extend_from_slice(prefix);
        self.prefix_length = prefix.len();
    }

    /// The run in the form of a redo record.
    #[must_use]
    pub fn as_entries(&self) -> Entries<'_> {
        let start = 2 + self.prefix_length;
        Entries {
            prefix: &self.encoded[2..start],
            encoded: &self.encoded,
            run: &self.encoded[start..],
        }
    }
}
