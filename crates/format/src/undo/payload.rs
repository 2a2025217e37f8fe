//! The payload of the previous version, relative to the next one: most updates change few bytes.
//!
//! ```text
//!   form 0  Whole   the old bytes
//!   form 1  Same    nothing: only the version changed (a delete mark)
//!   form 2  Diff    u16 old length, then per patch: u16 at, u16 length, old bytes
//! ```
//!
//! `Diff`: cut or zero-extend the new payload to the old length, then apply the patches.

use super::record::UndoDamage;
use crate::reader::ByteReader;

const WHOLE: u8 = 0;
const SAME: u8 = 1;
const DIFF: u8 = 2;

/// Bytes of a patch before its content. A run of equal bytes up to this length does not end a
/// patch.
const PATCH_HEADER_BYTES: usize = 4;

/// The form of the old payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldPayload<'a> {
    Whole(&'a [u8]),
    /// Equal to the new payload.
    Same,
    /// Equal to the new payload, except for some bytes.
    Diff {
        length: u16,
        patches: Patches<'a>,
    },
}

impl<'a> OldPayload<'a> {
    /// The form that takes the fewest bytes; `scratch` holds the patches, if any.
    #[must_use]
    pub fn smallest(old: &'a [u8], new: &[u8], scratch: &'a mut Vec<u8>) -> OldPayload<'a> {
        if old == new {
            return OldPayload::Same;
        }
        let Ok(length) = u16::try_from(old.len()) else { return OldPayload::Whole(old) };
        scratch.clear();
        write_patches(old, new, scratch);
        if 2 + scratch.len() < old.len() {
            OldPayload::Diff { length, patches: Patches { encoded: scratch } }
        } else {
            OldPayload::Whole(old)
        }
    }

    /// Writes the old payload into `old`, replacing its content.
    ///
    /// # Errors
    /// If a patch lies outside the old payload.
    pub fn restore(&self, new: &[u8], old: &mut Vec<u8>) -> Result<(), UndoDamage> {
        old.clear();
        match *self {
            OldPayload::Whole(bytes) => old.extend_from_slice(bytes),
            OldPayload::Same => old.extend_from_slice(new),
            OldPayload::Diff { length, patches } => {
                old.extend_from_slice(&new[..new.len().min(usize::from(length))]);
                old.resize(usize::from(length), 0);
                for (at, bytes) in patches.iter() {
                    let target = old.get_mut(at..at + bytes.len()).ok_or(UndoDamage::Payload)?;
                    target.copy_from_slice(bytes);
                }
            }
        }
        Ok(())
    }

    pub(super) fn form(&self) -> u8 {
        match self {
            OldPayload::Whole(_) => WHOLE,
            OldPayload::Same => SAME,
            OldPayload::Diff { .. } => DIFF,
        }
    }

    pub(super) fn write(&self, into: &mut Vec<u8>) {
        match *self {
            OldPayload::Whole(bytes) => into.extend_from_slice(bytes),
            OldPayload::Same => {}
            OldPayload::Diff { length, patches } => {
                into.extend_from_slice(&length.to_le_bytes());
                into.extend_from_slice(patches.encoded);
            }
        }
    }

    pub(super) fn parse(form: u8, bytes: &'a [u8]) -> Option<OldPayload<'a>> {
        match form {
            WHOLE => Some(OldPayload::Whole(bytes)),
            SAME => bytes.is_empty().then_some(OldPayload::Same),
            DIFF => {
                let mut reader = ByteReader::new(bytes);
                let length = reader.u16()?;
                Some(OldPayload::Diff { length, patches: Patches::parse(reader.take_all())? })
            }
            _ => None,
        }
    }
}

/// Replaced bytes with their offsets, known to be well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patches<'a> {
    encoded: &'a [u8],
}

impl<'a> Patches<'a> {
    fn parse(encoded: &'a [u8]) -> Option<Patches<'a>> {
        let mut reader = ByteReader::new(encoded);
        while !reader.is_empty() {
            read_patch(&mut reader)?;
        }
        Some(Patches { encoded })
    }

    /// The replaced bytes, with their offsets.
    #[must_use]
    pub fn iter(&self) -> PatchIter<'a> {
        PatchIter { reader: ByteReader::new(self.encoded) }
    }
}

impl<'a> IntoIterator for Patches<'a> {
    type Item = (usize, &'a [u8]);
    type IntoIter = PatchIter<'a>;

    fn into_iter(self) -> PatchIter<'a> {
        self.iter()
    }
}

#[derive(Debug, Clone)]
pub struct PatchIter<'a> {
    reader: ByteReader<'a>,
}

impl<'a> Iterator for PatchIter<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        read_patch(&mut self.reader)
    }
}

fn read_patch<'a>(reader: &mut ByteReader<'a>) -> Option<(usize, &'a [u8])> {
    let at = usize::from(reader.u16()?);
    let length = usize::from(reader.u16()?);
    Some((at, reader.take(length)?))
}

/// The length of the common prefix of two strings.
#[must_use]
#[inline]
pub fn common_prefix_length(one: &[u8], other: &[u8]) -> usize {
    let (words, _) = one.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    let same = words.iter().zip(others).take_while(|(word, other)| word == other).count() * 8;
    let rest = one[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(byte, other)| byte == other).count()
}

/// The length of the common suffix of two strings of the same length.
#[must_use]
#[inline]
pub fn common_suffix_length(one: &[u8], other: &[u8]) -> usize {
    let (_, words) = one.as_rchunks::<8>();
    let (_, others) = other.as_rchunks::<8>();
    let words = words.iter().rev().zip(others.iter().rev());
    let same = words.take_while(|(word, other)| word == other).count() * 8;
    let rest = one[..one.len() - same].iter().rev().zip(other[..other.len() - same].iter().rev());
    same + rest.take_while(|(byte, other)| byte == other).count()
}

/// Writes the bytes of `old` that differ from `new` at the same offset.
fn write_patches(old: &[u8], new: &[u8], into: &mut Vec<u8>) {
    let differs = |at: usize| new.get(at) != old.get(at);
    let mut at = 0;
    loop {
        at += common_prefix_length(&old[at..], new.get(at..).unwrap_or_default());
        if at == old.len() {
            return;
        }
        let start = at;
        let mut end = at + 1;
        while at < old.len() && at <= end + PATCH_HEADER_BYTES {
            if differs(at) {
                end = at + 1;
            }
            at += 1;
        }
        into.extend_from_slice(&(start as u16).to_le_bytes());
        into.extend_from_slice(&((end - start) as u16).to_le_bytes());
        into.extend_from_slice(&old[start..end]);
        at = end;
    }
}
