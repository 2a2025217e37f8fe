//! Character sets. Firn holds text as UTF-8 everywhere; the set says which characters a column
//! accepts and which bytes `LENGTH()`, `HEX()` and `CONVERT()` use.

use std::borrow::Cow;

use firn_format::value::CollationId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charset {
    /// UTF-8.
    Utf8mb4,
    /// UTF-8 without characters beyond U+FFFF.
    Utf8mb3,
    /// UTF-16, high byte first.
    Utf16,
    /// UTF-16, low byte first.
    Utf16le,
    /// UTF-16 without characters beyond U+FFFF.
    Ucs2,
    /// UTF-32, high byte first.
    Utf32,
    /// Windows code page 1252, which is MySQL's `latin1`.
    Latin1,
    Ascii,
    Binary,
}

/// Characters of the bytes 0x80 to 0x9F of Windows code page 1252. The five undefined bytes are the
/// control characters with their number, as in MySQL.
const CP1252_HIGH: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

impl Charset {
    pub const ALL: [Charset; 9] = [
        Charset::Ascii,
        Charset::Binary,
        Charset::Latin1,
        Charset::Ucs2,
        Charset::Utf16,
        Charset::Utf16le,
        Charset::Utf32,
        Charset::Utf8mb3,
        Charset::Utf8mb4,
    ];

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
            Charset::Utf16 => "utf16",
            Charset::Utf16le => "utf16le",
            Charset::Ucs2 => "ucs2",
            Charset::Utf32 => "utf32",
            Charset::Latin1 => "latin1",
            Charset::Ascii => "ascii",
            Charset::Binary => "binary",
        }
    }

    /// The description in `SHOW CHARACTER SET`.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Charset::Utf8mb4 | Charset::Utf8mb3 => "UTF-8 Unicode",
            Charset::Utf16 => "UTF-16 Unicode",
            Charset::Utf16le => "UTF-16LE Unicode",
            Charset::Ucs2 => "UCS-2 Unicode",
            Charset::Utf32 => "UTF-32 Unicode",
            Charset::Latin1 => "cp1252 West European",
            Charset::Ascii => "US ASCII",
            Charset::Binary => "Binary pseudo charset",
        }
    }

    /// The most bytes of a character.
    #[must_use]
    pub const fn max_character_bytes(self) -> u32 {
        match self {
            Charset::Utf8mb4 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 => 4,
            Charset::Utf8mb3 => 3,
            Charset::Ucs2 => 2,
            Charset::Latin1 | Charset::Ascii | Charset::Binary => 1,
        }
    }

    /// The size of the units of which a character has one or more. More than one byte in the sets
    /// in which ASCII is not encoded as itself.
    #[must_use]
    pub const fn unit_bytes(self) -> usize {
        match self {
            Charset::Utf16 | Charset::Utf16le | Charset::Ucs2 => 2,
            Charset::Utf32 => 4,
            _ => 1,
        }
    }

    /// The collation of columns that name only the set.
    #[must_use]
    pub const fn default_collation(self) -> CollationId {
        CollationId(match self {
            Charset::Utf8mb4 => 255,
            Charset::Utf8mb3 => 33,
            Charset::Utf16 => 54,
            Charset::Utf16le => 56,
            Charset::Ucs2 => 35,
            Charset::Utf32 => 60,
            Charset::Latin1 => 8,
            Charset::Ascii => 11,
            Charset::Binary => 63,
        })
    }

    /// The collation `…_bin`, in which texts have their code points as weights.
    #[must_use]
    pub const fn binary_collation(self) -> CollationId {
        CollationId(match self {
            Charset::Utf8mb4 => 46,
            Charset::Utf8mb3 => 83,
            Charset::Utf16 => 55,
            Charset::Utf16le => 62,
            Charset::Ucs2 => 90,
            Charset::Utf32 => 61,
            Charset::Latin1 => 47,
            Charset::Ascii => 65,
            Charset::Binary => 63,
        })
    }

    /// Whether the set is UTF-8, so that its bytes are Firn's own.
    #[must_use]
    pub const fn is_utf8(self) -> bool {
        matches!(self, Charset::Utf8mb4 | Charset::Utf8mb3)
    }

    /// Whether a text's bytes in the set are Firn's own.
    #[must_use]
    pub const fn holds_own_bytes(self) -> bool {
        self.is_utf8() || matches!(self, Charset::Ascii | Charset::Binary)
    }

    /// Whether the set has all characters of Unicode.
    #[must_use]
    pub const fn is_all_of_unicode(self) -> bool {
        matches!(self, Charset::Utf8mb4 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32)
    }

    /// Whether the set has the characters up to U+FFFF and no others.
    #[must_use]
    pub const fn is_basic_plane(self) -> bool {
        matches!(self, Charset::Utf8mb3 | Charset::Ucs2)
    }

    /// Whether the set is one of Unicode's.
    #[must_use]
    pub const fn is_unicode(self) -> bool {
        self.is_all_of_unicode() || self.is_basic_plane()
    }

    /// Whether the set has a character.
    #[must_use]
    pub fn has(self, character: char) -> bool {
        match self {
            Charset::Latin1 => latin1_byte(character).is_some(),
            Charset::Ascii => character.is_ascii(),
            _ if self.is_basic_plane() => u32::from(character) <= 0xffff,
            _ => true,
        }
    }

    /// Appends a character, or `?` if the set does not have it.
    fn push(self, character: char, bytes: &mut Vec<u8>) {
        let character = if self.has(character) { character } else { '?' };
        match self {
            Charset::Latin1 => bytes.push(latin1_byte(character).unwrap_or(b'?')),
            Charset::Utf32 => bytes.extend_from_slice(&u32::from(character).to_be_bytes()),
            Charset::Utf16 | Charset::Ucs2 | Charset::Utf16le => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    bytes.extend_from_slice(&match self {
                        Charset::Utf16le => unit.to_le_bytes(),
                        _ => unit.to_be_bytes(),
                    });
                }
            }
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    /// The bytes of a text (UTF-8) in this set; characters that the set does not have become `?`.
    #[must_use]
    pub fn encode(self, text: &[u8]) -> Cow<'_, [u8]> {
        let is_the_same = matches!(self, Charset::Utf8mb4 | Charset::Binary)
            || self.unit_bytes() == 1 && text.is_ascii();
        if is_the_same {
            return Cow::Borrowed(text);
        }
        let mut bytes = Vec::with_capacity(text.len() * self.unit_bytes());
        characters(text).for_each(|character| self.push(character, &mut bytes));
        Cow::Owned(bytes)
    }

    /// The text, in UTF-8, of bytes in this set; `None` if they are invalid. If a unit has more
    /// than one byte, missing zeros are added before the first one.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
        let text = match self {
            _ if self.unit_bytes() > 1 => Cow::Owned(self.decode_units(bytes)?.into_bytes()),
            _ if bytes.is_ascii() => Cow::Borrowed(bytes),
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
            _ => Cow::Borrowed(bytes),
        };
        Some(text)
    }

    /// The text of bytes in a set with two or four bytes per unit.
    fn decode_units(self, bytes: &[u8]) -> Option<String> {
        let unit_bytes = self.unit_bytes();
        let mut padded = vec![0; bytes.len().next_multiple_of(unit_bytes) - bytes.len()];
        padded.extend_from_slice(bytes);
        let units = padded.chunks_exact(unit_bytes).map(|unit| match self {
            Charset::Utf16le => {
                unit.iter().rev().fold(0, |code, &byte| code << 8 | u32::from(byte))
            }
            _ => unit.iter().fold(0, |code, &byte| code << 8 | u32::from(byte)),
        });
        match self {
            Charset::Utf32 | Charset::Ucs2 => units.map(char::from_u32).collect(),
            _ => char::decode_utf16(units.map(|unit| unit as u16)).collect::<Result<_, _>>().ok(),
        }
    }

    /// The number of bytes of a text (UTF-8) in this set.
    #[must_use]
    pub fn encoded_length(self, text: &[u8]) -> usize {
        match self {
            Charset::Utf16 | Charset::Utf16le => {
                2 * characters(text).map(char::len_utf16).sum::<usize>()
            }
            _ if self.is_utf8() || self == Charset::Binary => text.len(),
            _ => self.unit_bytes() * character_count(text),
        }
    }

    /// Bytes, as UTF-8, of the first characters of a text that take at most this many bytes in this
    /// set.
    #[must_use]
    pub fn longest_prefix(self, text: &[u8], max_bytes: usize) -> usize {
        match self {
            Charset::Utf16 | Charset::Utf16le => {
                let mut encoded_bytes = 0;
                let fitting = characters(text).take_while(|character| {
                    encoded_bytes += 2 * character.len_utf16();
                    encoded_bytes <= max_bytes
                });
                prefix_length(text, fitting.count())
            }
            _ if self.is_utf8() => (0..=max_bytes.min(text.len()))
                .rev()
                .find(|&at| text.get(at).is_none_or(|byte| byte & 0xc0 != 0x80))
                .unwrap_or(0),
            _ => prefix_length(text, max_bytes / self.unit_bytes()),
        }
    }

    /// Characters of a text (UTF-8), or bytes of a binary string.
    #[must_use]
    pub fn character_count(self, text: &[u8]) -> usize {
        if self == Charset::Binary { text.len() } else { character_count(text) }
    }
}

/// The characters of UTF-8 text; each run of invalid bytes is U+FFFD.
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

/// Bytes of the first `count` characters of UTF-8 text.
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
