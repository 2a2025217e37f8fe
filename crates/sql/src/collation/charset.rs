//! Character sets. Text is UTF-8 wherever Firn holds it; a set says which characters a column takes and what
//! bytes `LENGTH()`, `HEX()` and `CONVERT()` speak of.

use std::borrow::Cow;

use firn_format::value::CollationId;

/// A character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charset {
    /// UTF-8.
    Utf8mb4,
    /// UTF-8 without characters beyond U+FFFF.
    Utf8mb3,
    /// Windows code page 1252, as MySQL's `latin1` is.
    Latin1,
    /// US-ASCII.
    Ascii,
    /// Bytes.
    Binary,
}

/// Characters of the bytes 0x80 to 0x9F of Windows code page 1252. The five bytes that have none there are
/// the control characters of their number, as in MySQL.
const CP1252_HIGH: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

impl Charset {
    /// All of them.
    pub const ALL: [Charset; 5] =
        [Charset::Ascii, Charset::Binary, Charset::Latin1, Charset::Utf8mb3, Charset::Utf8mb4];

    /// A set by its name; `utf8` is `utf8mb3`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Charset> {
        if name.eq_ignore_ascii_case("utf8") {
            return Some(Charset::Utf8mb3);
        }
        Charset::ALL.into_iter().find(|charset| charset.name().eq_ignore_ascii_case(name))
    }

    /// MySQL's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Charset::Utf8mb4 => "utf8mb4",
            Charset::Utf8mb3 => "utf8mb3",
            Charset::Latin1 => "latin1",
            Charset::Ascii => "ascii",
            Charset::Binary => "binary",
        }
    }

    /// What `SHOW CHARACTER SET` says of it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Charset::Utf8mb4 | Charset::Utf8mb3 => "UTF-8 Unicode",
            Charset::Latin1 => "cp1252 West European",
            Charset::Ascii => "US ASCII",
            Charset::Binary => "Binary pseudo charset",
        }
    }

    /// The most bytes of a character.
    #[must_use]
    pub const fn max_character_bytes(self) -> u32 {
        match self {
            Charset::Utf8mb4 => 4,
            Charset::Utf8mb3 => 3,
            _ => 1,
        }
    }

    /// The collation of columns that name only the set.
    #[must_use]
    pub const fn default_collation(self) -> CollationId {
        CollationId(match self {
            Charset::Utf8mb4 => 255,
            Charset::Utf8mb3 => 33,
            Charset::Latin1 => 8,
            Charset::Ascii => 11,
            Charset::Binary => 63,
        })
    }

    /// Whether the set is UTF-8, so that its bytes are those that Firn holds.
    #[must_use]
    pub const fn is_unicode(self) -> bool {
        matches!(self, Charset::Utf8mb4 | Charset::Utf8mb3)
    }

    /// Whether the set has a character.
    #[must_use]
    pub fn has(self, character: char) -> bool {
        match self {
            Charset::Utf8mb4 | Charset::Binary => true,
            Charset::Utf8mb3 => u32::from(character) <= 0xffff,
            Charset::Latin1 => latin1_byte(character).is_some(),
            Charset::Ascii => character.is_ascii(),
        }
    }

    /// The bytes of a text (UTF-8) in this set; what the set has not becomes `?`.
    #[must_use]
    pub fn encode(self, text: &[u8]) -> Cow<'_, [u8]> {
        if text.is_ascii() || matches!(self, Charset::Utf8mb4 | Charset::Binary) {
            return Cow::Borrowed(text);
        }
        let mut bytes = Vec::with_capacity(text.len());
        for character in characters(text) {
            match self {
                Charset::Latin1 => bytes.push(latin1_byte(character).unwrap_or(b'?')),
                _ if self.has(character) => {
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => bytes.push(b'?'),
            }
        }
        Cow::Owned(bytes)
    }

    /// The text, in UTF-8, of bytes in this set; `None` when they are no text of it.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
        let text = match self {
            _ if bytes.is_ascii() => Cow::Borrowed(bytes),
            Charset::Binary => Cow::Borrowed(bytes),
            Charset::Ascii => return None,
            Charset::Latin1 => {
                let text: String = bytes.iter().map(|&byte| latin1_character(byte)).collect();
                Cow::Owned(text.into_bytes())
            }
            Charset::Utf8mb3 | Charset::Utf8mb4 => {
                let text = std::str::from_utf8(bytes).ok()?;
                if !text.chars().all(|character| self.has(character)) {
                    return None;
                }
                Cow::Borrowed(bytes)
            }
        };
        Some(text)
    }

    /// Bytes that a text (UTF-8) takes in this set.
    #[must_use]
    pub fn encoded_length(self, text: &[u8]) -> usize {
        match self {
            Charset::Latin1 | Charset::Ascii => character_count(text),
            _ => text.len(),
        }
    }

    /// Characters of a text (UTF-8), or bytes of a binary string.
    #[must_use]
    pub fn character_count(self, text: &[u8]) -> usize {
        if self == Charset::Binary { text.len() } else { character_count(text) }
    }
}

/// The characters of UTF-8 text; each run of bytes that is none is U+FFFD.
pub fn characters(text: &[u8]) -> impl Iterator<Item = char> + Clone + '_ {
    text.utf8_chunks().flat_map(|chunk| {
        let replacement = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        chunk.valid().chars().chain(replacement)
    })
}

/// Number of characters of UTF-8 text.
#[must_use]
pub fn character_count(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// Bytes of the first so many characters of UTF-8 text.
#[must_use]
pub fn prefix_length(text: &[u8], characters: usize) -> usize {
    if text.len() <= characters {
        return text.len();
    }
    let starts = text.iter().enumerate().filter(|&(_, &byte)| byte & 0xc0 != 0x80);
    starts.map(|(at, _)| at).nth(characters).unwrap_or(text.len())
}

/// The byte of a character in `latin1`.
pub(super) fn latin1_byte(character: char) -> Option<u8> {
    match u32::from(character) {
        code @ (0..=0x7f | 0xa0..=0xff) => Some(code as u8),
        _ => {
            let at = CP1252_HIGH.iter().position(|&high| high == character)?;
            Some(0x80 + at as u8)
        }
    }
}

fn latin1_character(byte: u8) -> char {
    match byte {
        0x80..=0x9f => CP1252_HIGH[usize::from(byte - 0x80)],
        byte => byte.into(),
    }
}
