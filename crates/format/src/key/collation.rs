//! The order of text. The SQL layer defines it; the key codec only requests sort keys.

use crate::value::CollationId;

/// Returns the sort keys of collations. The same text must have the same sort key for as long as
/// any key is stored.
pub trait CollationKeys: Send + Sync {
    /// Appends the sort key of `text` to `out`: bytes that compare as the collation orders texts,
    /// and are equal exactly when the collation considers the texts equal. The collation also
    /// decides on the padding of short texts.
    fn write_sort_key(&self, collation: CollationId, text: &[u8], out: &mut Vec<u8>);

    /// Whether sort keys are the texts themselves, so that a text can be read back from a key.
    fn sort_key_is_text(&self, collation: CollationId) -> bool {
        collation == CollationId::BINARY
    }

    /// Bytes of the first `characters` characters of `text`. The default implementation takes text
    /// as UTF-8.
    fn prefix_bytes(&self, _collation: CollationId, text: &[u8], characters: u32) -> usize {
        let is_first_byte = |byte: u8| byte & 0xc0 != 0x80;
        let starts = text.iter().enumerate().filter(|&(_, &byte)| is_first_byte(byte));
        starts.map(|(at, _)| at).nth(characters as usize).unwrap_or(text.len())
    }
}

/// Orders all text by its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct BinaryCollation;

impl CollationKeys for BinaryCollation {
    fn write_sort_key(&self, _collation: CollationId, text: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(text);
    }

    fn sort_key_is_text(&self, _collation: CollationId) -> bool {
        true
    }
}
