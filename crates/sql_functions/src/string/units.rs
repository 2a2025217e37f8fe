//! A string as a sequence of its type's units: characters of text, bytes of a binary string.

use firn_sql_types::{Datum, SqlType};

use crate::arguments::bytes;

/// A string and its units.
#[derive(Clone, Copy)]
pub(crate) struct Units<'a> {
    pub(crate) bytes: &'a [u8],
    binary: bool,
}

/// Whether a byte begins a character of UTF-8.
fn begins_char(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

impl<'a> Units<'a> {
    /// The string of an argument, in units of its type.
    pub(crate) fn new(datum: &'a Datum, ty: &SqlType) -> Units<'a> {
        Units { bytes: bytes(datum), binary: ty.kind.is_binary() }
    }

    /// Other bytes, in the same units.
    pub(crate) fn like<'b>(&self, bytes: &'b [u8]) -> Units<'b> {
        Units { bytes, binary: self.binary }
    }

    /// Characters or bytes.
    pub(crate) fn len(&self) -> usize {
        if self.binary || self.bytes.is_ascii() {
            return self.bytes.len();
        }
        self.bytes.iter().filter(|&&byte| begins_char(byte)).count()
    }

    /// The offset of the `n`-th unit (from 0); the end if there are fewer.
    pub(crate) fn offset(&self, n: usize) -> usize {
        if self.binary {
            return n.min(self.bytes.len());
        }
        let starts = self.bytes.iter().enumerate().filter(|(_, byte)| begins_char(**byte));
        starts.map(|(at, _)| at).nth(n).unwrap_or(self.bytes.len())
    }

    /// At most `count` units from the `n`-th on.
    pub(crate) fn slice(&self, n: usize, count: usize) -> &'a [u8] {
        let rest = &self.bytes[self.offset(n)..];
        &rest[..self.like(rest).offset(count)]
    }

    /// Units before a byte.
    pub(crate) fn count_before(&self, offset_bytes: usize) -> usize {
        self.like(&self.bytes[..offset_bytes.min(self.bytes.len())]).len()
    }

    /// Each unit's bytes.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let begins = |byte: &u8| self.binary || begins_char(*byte);
            let end = rest[1..].iter().position(begins).map_or(rest.len(), |at| at + 1);
            let (unit, tail) = rest.split_at(end);
            rest = tail;
            Some(unit)
        })
    }

    /// Each unit's bytes, from the last to the first.
    pub(crate) fn rev(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let begins = |byte: &u8| self.binary || begins_char(*byte);
            let start = match rest.iter().rposition(begins) {
                Some(start) => start,
                None if rest.is_empty() => return None,
                None => 0,
            };
            let (head, unit) = rest.split_at(start);
            rest = head;
            Some(unit)
        })
    }
}
