//! Character sets and collations, and how they compare, fold and match text.
//!
//! ```text
//!   CollationId 255 ──get──► Collation { utf8mb4_0900_ai_ci } ──compare, write_sort_key──►
//! ```
//!
//! Invariants:
//! * `compare(a, b)` is the order of their sort keys' bytes;
//! * sort keys are stored in indexes: the result of [`Collation::write_sort_key`] never changes for
//!   an id (golden tests ensure this).

mod charset;
mod fold;
mod like;
mod registry;
#[cfg(test)]
mod tests;
mod unicode;
mod weights;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::{LazyLock, OnceLock};

use firn_format::key::CollationKeys;
use firn_format::value::CollationId;

pub use charset::{Charset, character_count, characters, prefix_length};
pub use fold::{lower, to_lower, to_upper, upper};
pub use like::LikePattern;
pub use registry::{all, by_id, by_name, get};

use unicode::Unicode;
use weights::Weights;

#[derive(Debug)]
pub struct Collation {
    /// MySQL's number.
    pub id: CollationId,
    /// MySQL's name.
    pub name: &'static str,
    /// The character set that it orders.
    pub charset: Charset,
    /// The value of `Sortlen` in `SHOW COLLATION`.
    pub sort_length: u8,
    rules: Rules,
    ascii: OnceLock<AsciiClasses>,
}

/// How many ASCII characters there are.
const ASCII: usize = 128;
/// For each of them, the first one that is equal to it.
type AsciiClasses = [u8; ASCII];

/// How a collation orders.
enum Rules {
    /// By bytes; spaces count.
    Bytes,
    /// Character by character; trailing spaces do not count.
    Weights(Weights),
    /// By Unicode's algorithm; spaces count.
    Unicode(&'static LazyLock<Unicode>),
    /// By Unicode's algorithm; trailing spaces do not count.
    UnicodePadSpace(&'static LazyLock<Unicode>),
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Rules::Bytes => "Bytes",
            Rules::Weights(_) => "Weights",
            Rules::Unicode(_) => "Unicode",
            Rules::UnicodePadSpace(_) => "UnicodePadSpace",
        })
    }
}

/// The first byte of a character beyond U+FFFF in UTF-8, at least.
const FIRST_OF_FOUR_BYTES: u8 = 0xf0;
const LAST_OF_BASIC_PLANE: char = '\u{ffff}';

impl Collation {
    /// Whether the collation orders bytes or code points, so that case and accents count.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        matches!(self.rules, Rules::Bytes | Rules::Weights(Weights::CodePoint | Weights::Latin1Bin))
    }

    /// Whether trailing spaces do not count.
    #[must_use]
    pub fn pads_with_spaces(&self) -> bool {
        matches!(self.rules, Rules::Weights(_) | Rules::UnicodePadSpace(_))
    }

    /// Whether it is the default of its character set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.charset.default_collation() == self.id
    }

    /// The order of two texts.
    #[must_use]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match &self.rules {
            _ if a == b => Ordering::Equal,
            Rules::Bytes => a.cmp(b),
            Rules::Weights(weights) => weights.compare(a, b),
            Rules::Unicode(unicode) => unicode.compare(a, b),
            Rules::UnicodePadSpace(unicode) => {
                unicode.compare(&self.unpadded(a), &self.unpadded(b))
            }
        }
    }

    /// Whether two texts are equal.
    #[must_use]
    pub fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        self.compare(a, b).is_eq()
    }

    /// Whether two texts are equal, including spaces at their ends.
    #[must_use]
    pub fn equal_unpadded(&self, a: &[u8], b: &[u8]) -> bool {
        let padding = |text: &[u8]| text.len() - without_padding(text).len();
        (!self.pads_with_spaces() || padding(a) == padding(b)) && self.equal(a, b)
    }

    /// Whether the collation only knows characters up to U+FFFF: in `…_unicode_ci`, which follows
    /// Unicode 4.0, all others are equal.
    fn is_of_basic_plane(&self) -> bool {
        self.name.ends_with("_unicode_ci")
    }

    /// A text without its padding, with U+FFFD for each character that the collation does not know.
    fn unpadded<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let text = without_padding(text);
        if text.iter().all(|byte| *byte < FIRST_OF_FOUR_BYTES) || !self.is_of_basic_plane() {
            return Cow::Borrowed(text);
        }
        let mut known = Vec::with_capacity(text.len());
        for byte in text {
            match *byte {
                FIRST_OF_FOUR_BYTES.. => known.push(*byte),
                // The bytes after the first of four are left out.
                0x80..=0xbf if known.last().is_some_and(|last| *last >= FIRST_OF_FOUR_BYTES) => {}
                byte => known.push(byte),
            }
        }
        let unknown = "\u{fffd}".as_bytes();
        let replaced = known.iter().flat_map(|byte| match *byte {
            FIRST_OF_FOUR_BYTES.. => unknown,
            _ => std::slice::from_ref(byte),
        });
        Cow::Owned(replaced.copied().collect())
    }

    /// Appends bytes that compare as the texts do.
    pub fn write_sort_key(&self, text: &[u8], out: &mut Vec<u8>) {
        match &self.rules {
            Rules::Bytes => out.extend_from_slice(text),
            Rules::Weights(weights) => weights.write_sort_key(text, out),
            Rules::Unicode(unicode) => unicode.write_sort_key(text, out),
            Rules::UnicodePadSpace(unicode) => unicode.write_sort_key(&self.unpadded(text), out),
        }
    }

    /// Appends the weights of a text as MySQL shows them. For Unicode collations, this is the sort
    /// key.
    pub fn write_weights(&self, text: &[u8], out: &mut Vec<u8>) {
        match &self.rules {
            Rules::Weights(weights) => {
                let width_bytes = weights.width_bytes(self.charset);
                for character in characters(text) {
                    let weight = weights.of(character).to_be_bytes();
                    out.extend_from_slice(&weight[weight.len() - width_bytes..]);
                }
            }
            _ => self.write_sort_key(text, out),
        }
    }

    /// The first eight bytes of a text's sort key, as a number: a lower number sorts before, and
    /// equal ones leave the order open. Cheaper than the key; `scratch` is memory for it.
    #[must_use]
    pub fn sort_key_head(&self, text: &[u8], scratch: &mut Vec<u8>) -> u64 {
        scratch.clear();
        match &self.rules {
            Rules::Bytes => return head_of(text),
            Rules::Weights(weights) => weights.write_sort_key(text, scratch),
            Rules::Unicode(unicode) => unicode.write_key_head(text, scratch),
            Rules::UnicodePadSpace(unicode) => {
                unicode.write_key_head(&self.unpadded(text), scratch);
            }
        }
        head_of(scratch)
    }

    /// Appends bytes with which the sort keys of all texts that begin with `prefix` begin; they may
    /// cover only a part of `prefix`.
    pub fn write_prefix_key(&self, prefix: &[u8], out: &mut Vec<u8>) {
        match &self.rules {
            Rules::Bytes => out.extend_from_slice(prefix),
            Rules::Weights(weights) => weights.write_prefix_key(prefix, out),
            Rules::Unicode(unicode) => unicode.write_prefix_key(prefix, out),
            Rules::UnicodePadSpace(unicode) => {
                unicode.write_prefix_key(&self.unpadded(prefix), out);
            }
        }
    }

    /// Whether two characters are equal, as `LIKE` and `LOCATE()` compare them.
    #[must_use]
    pub fn is_same_character(&self, a: char, b: char) -> bool {
        if a == b {
            return true;
        }
        match &self.rules {
            Rules::Bytes => false,
            Rules::Weights(weights) => weights.of(a) == weights.of(b),
            Rules::UnicodePadSpace(_)
                if self.is_of_basic_plane() && a.min(b) > LAST_OF_BASIC_PLANE =>
            {
                true
            }
            Rules::Unicode(unicode) | Rules::UnicodePadSpace(unicode) => {
                let (mut of_a, mut of_b) = ([0; 4], [0; 4]);
                let a = a.encode_utf8(&mut of_a).as_bytes();
                unicode.compare(a, b.encode_utf8(&mut of_b).as_bytes()).is_eq()
            }
        }
    }

    /// Which ASCII characters are equal; computed at the first use.
    fn ascii_classes(&self) -> &AsciiClasses {
        self.ascii.get_or_init(|| {
            let mut classes = [0; ASCII];
            for byte in 0..ASCII as u8 {
                let is_same = |other: &u8| self.is_same_character((*other).into(), byte.into());
                classes[usize::from(byte)] = (0..byte).find(is_same).unwrap_or(byte);
            }
            classes
        })
    }

    /// The characters of a text; for a binary string its bytes, each as the character with its
    /// number.
    pub fn characters<'a>(&self, text: &'a [u8]) -> Characters<'a> {
        Characters { rest: text, bytes: self.charset == Charset::Binary }
    }
}

/// Characters of a text, one after the other.
#[derive(Clone, Debug)]
pub struct Characters<'a> {
    rest: &'a [u8],
    bytes: bool,
}

impl<'a> Characters<'a> {
    /// The rest that has not been taken yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let &first = self.rest.first()?;
        if first.is_ascii() || self.bytes {
            self.rest = &self.rest[1..];
            return Some(first.into());
        }
        let length = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        let length = length.min(self.rest.len());
        let character = std::str::from_utf8(&self.rest[..length]).ok();
        let character = character.and_then(|text| text.chars().next());
        self.rest = &self.rest[character.map_or(1, char::len_utf8)..];
        Some(character.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

/// The first eight bytes, most significant first, with zeros after the end.
fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let length = key.len().min(8);
    head[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(head)
}

fn without_padding(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

/// All collations, for the key codec.
#[derive(Clone, Copy, Debug, Default)]
pub struct Collations;

impl CollationKeys for Collations {
    fn write_sort_key(&self, collation: CollationId, text: &[u8], out: &mut Vec<u8>) {
        get(collation).write_sort_key(text, out);
    }

    fn sort_key_is_text(&self, collation: CollationId) -> bool {
        matches!(get(collation).rules, Rules::Bytes)
    }

    fn prefix_bytes(&self, collation: CollationId, text: &[u8], characters: u32) -> usize {
        match get(collation).charset {
            Charset::Binary => text.len().min(characters as usize),
            _ => prefix_length(text, characters as usize),
        }
    }
}
