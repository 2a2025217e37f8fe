//! Collations that give each character one number: the binary ones, `general_ci` and those of
//! one-byte sets. All of them ignore trailing spaces (PAD SPACE).
//!
//! A text compares as if it were followed by an infinite number of spaces. So that sort keys of
//! texts of any length compare in the same way, a space has one of two numbers, depending on
//! whether the first other character after it is below or above a space, and the end is between the
//! two:
//!
//! ```text
//!   TAB < space before a TAB < end < space before a letter < letters
//!
//!   'a\t'    a  TAB  end
//!   'a'      a  end
//!   'a b'    a  space(above)  b  end
//! ```
//!
//! The numbers are written with as few bytes as their size allows, and compare as the numbers do:
//!
//! ```text
//!   1 … 7F              one byte
//!   80 … 7F7F           80 + high byte, low byte
//!   above               FF and three bytes
//! ```

use std::cmp::Ordering;
use std::sync::LazyLock;

use super::charset::{Charset, characters, latin1_byte};

/// The number of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weights {
    CodePoint,
    /// The number of its base letter's upper case, in the Latin, Greek and Cyrillic scripts.
    GeneralCi,
    /// Its byte in `latin1`.
    Latin1Bin,
    /// A Swedish order of `latin1`.
    Latin1SwedishCi,
    /// Letters with accents after those without.
    Latin1GeneralCi,
    /// The same, upper case first.
    Latin1GeneralCs,
    /// The upper case of an ASCII letter.
    AsciiCi,
}

const SPACE: u32 = 0x20;
const SPACE_BEFORE_LOWER: u32 = SPACE + 1;
const END: u32 = SPACE + 2;
const SPACE_BEFORE_HIGHER: u32 = SPACE + 3;

const ONE_BYTE_END: u32 = 0x80;
const TWO_BYTE_END: u32 = ONE_BYTE_END + 0x7f00;

impl Weights {
    /// The number of a character. A space has 0x20, and no other character has it.
    #[inline]
    pub(super) fn of(self, character: char) -> u32 {
        match self {
            Weights::CodePoint => character.into(),
            Weights::GeneralCi => general_ci(character),
            Weights::AsciiCi => character.to_ascii_uppercase().into(),
            Weights::Latin1Bin => {
                latin1_byte(character).map_or_else(|| u32::from(character) + 0x100, u32::from)
            }
            Weights::Latin1SwedishCi => latin1(&LATIN1_SWEDISH_CI, character),
            Weights::Latin1GeneralCi => latin1(&LATIN1_GENERAL_CI, character),
            Weights::Latin1GeneralCs => latin1(&LATIN1_GENERAL_CS, character),
        }
    }

    /// How many bytes each weight has in MySQL.
    pub(super) fn width_bytes(self, charset: Charset) -> usize {
        match (self, charset) {
            (Weights::CodePoint, Charset::Utf8mb4 | Charset::Utf32) => 3,
            (Weights::CodePoint | Weights::GeneralCi, _) if charset.max_character_bytes() > 1 => 2,
            _ => 1,
        }
    }

    pub(super) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        if a.is_ascii() && b.is_ascii() {
            let of = |&byte: &u8| self.of(byte.into());
            return compare_padded(a.iter().map(of), b.iter().map(of));
        }
        let of = |character| self.of(character);
        compare_padded(characters(a).map(of), characters(b).map(of))
    }

    pub(super) fn write_sort_key(self, text: &[u8], out: &mut Vec<u8>) {
        self.write_prefix_key(text, out);
        write_number(END, out);
    }

    /// The key of everything except the trailing spaces, without the end.
    pub(super) fn write_prefix_key(self, text: &[u8], out: &mut Vec<u8>) {
        let mut spaces = 0;
        for weight in characters(text).map(|character| self.of(character)) {
            if weight == SPACE {
                spaces += 1;
                continue;
            }
            let space = if weight < SPACE { SPACE_BEFORE_LOWER } else { SPACE_BEFORE_HIGHER };
            (0..spaces).for_each(|_| write_number(space, out));
            spaces = 0;
            write_number(if weight < SPACE { weight + 1 } else { weight + 3 }, out);
        }
    }
}

/// Compares as if infinitely many spaces followed.
fn compare_padded(mut a: impl Iterator<Item = u32>, mut b: impl Iterator<Item = u32>) -> Ordering {
    loop {
        let (a, b) = (a.next(), b.next());
        if a.is_none() && b.is_none() {
            return Ordering::Equal;
        }
        let order = a.unwrap_or(SPACE).cmp(&b.unwrap_or(SPACE));
        if order.is_ne() {
            return order;
        }
    }
}

fn write_number(number: u32, out: &mut Vec<u8>) {
    if number < ONE_BYTE_END {
        out.push(number as u8);
    } else if number < TWO_BYTE_END {
        let above = number - ONE_BYTE_END;
        out.extend_from_slice(&[0x80 + (above >> 8) as u8, above as u8]);
    } else {
        let [_, a, b, c] = number.to_be_bytes();
        out.extend_from_slice(&[0xff, a, b, c]);
    }
}

/// Numbers of the characters U+0000 to U+FFFF under `general_ci`.
static GENERAL_CI: LazyLock<Box<[u16]>> = LazyLock::new(|| {
    let weight = |code: u32| char::from_u32(code).map_or(code as u16, general_ci_weight);
    (0..=0xffff).map(weight).collect()
});

fn general_ci(character: char) -> u32 {
    if character.is_ascii() {
        return character.to_ascii_uppercase().into();
    }
    let code = usize::try_from(u32::from(character)).unwrap_or(usize::MAX);
    // All characters beyond U+FFFF are equal, as in MySQL.
    GENERAL_CI.get(code).map_or(0xfffd, |&weight| weight.into())
}

fn general_ci_weight(character: char) -> u16 {
    let base = match character {
        'ß' => 'S',
        'ı' | 'İ' => 'I',
        'ſ' => 'S',
        // Its decomposition would make it equal to И.
        'Й' | 'й' => 'Й',
        '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{4ff}' | '\u{1e00}'..='\u{1fff}' => {
            base_letter(character)
        }
        _ => character,
    };
    let capital = super::fold::to_upper(base);
    u16::try_from(u32::from(capital)).unwrap_or(u32::from(character) as u16)
}

/// The letter without its accents.
fn base_letter(character: char) -> char {
    use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};
    let decomposition = CanonicalDecompositionBorrowed::new();
    let mut base = character;
    loop {
        base = match decomposition.decompose(base) {
            Decomposed::Expansion(first, _) | Decomposed::Singleton(first) => first,
            Decomposed::Default => return base,
        };
    }
}

fn latin1(table: &[u8; 256], character: char) -> u32 {
    match latin1_byte(character) {
        Some(byte) => table[usize::from(byte)].into(),
        None => u32::from(character) + 0x100,
    }
}

const fn ascii_capitals() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).to_ascii_uppercase();
        byte += 1;
    }
    table
}

/// The Swedish alphabet: Å, Ä and Ö after Z, Ü a kind of Y, other accents ignored.
const LATIN1_SWEDISH_CI: [u8; 256] = {
    const LETTERS: [u8; 32] = *b"AAAA\\[\\CEEEEIIIIDNOOOO]\xd7\xd8UUUYY\xde\xdf";
    let mut table = ascii_capitals();
    let mut at = 0;
    while at < 32 {
        table[0xc0 + at] = LETTERS[at];
        table[0xe0 + at] = LETTERS[at];
        at += 1;
    }
    table[0xf7] = 0xf7;
    table[0xff] = 0xff;
    table
};

/// Letters in the order of the alphabet; those of one base letter in the order of their bytes.
const GENERAL_ORDER: &[u8] = b"A\xc0\xc1\xc2\xc3\xc4\xc5\xc6BC\xc7D\xd0E\xc8\xc9\xca\xcbFGHI\xcc\xcd\xce\xcfJKLMN\xd1O\xd2\xd3\xd4\xd5\xd6\xd8PQRS\xdfTU\xd9\xda\xdb\xdcVWXY\xdd\xffZ\xde";

static LATIN1_GENERAL_CI: LazyLock<Box<[u8; 256]>> = LazyLock::new(|| latin1_general(false));
static LATIN1_GENERAL_CS: LazyLock<Box<[u8; 256]>> = LazyLock::new(|| latin1_general(true));

fn latin1_general(case_sensitive: bool) -> Box<[u8; 256]> {
    let rank = |byte: u8| general_rank(byte, case_sensitive);
    let mut order: Vec<u8> = (SPACE as u8 + 1..=u8::MAX).collect();
    order.sort_by_key(|&byte| rank(byte));
    let mut table = Box::new([0; 256]);
    (0..=SPACE as u8).for_each(|byte| table[usize::from(byte)] = byte);
    let mut next = SPACE as u8;
    let mut last = None;
    for byte in order {
        if last != Some(rank(byte)) {
            next += 1;
            last = Some(rank(byte));
        }
        table[usize::from(byte)] = next;
    }
    table
}

/// Rank: what is before the letters, the letters, what is after them.
fn general_rank(byte: u8, case_sensitive: bool) -> (u8, u8, u8) {
    let capital = match byte {
        b'a'..=b'z' | 0xe0..=0xf6 | 0xf8..=0xfe => byte - 0x20,
        byte => byte,
    };
    match GENERAL_ORDER.iter().position(|&letter| letter == capital) {
        Some(at) => (1, at as u8, u8::from(case_sensitive && byte != capital)),
        None => (if byte < b'A' { 0 } else { 2 }, byte, 0),
    }
}
