//! Collations by the Unicode Collation Algorithm, through ICU4X.
//!
//! A sort key is what ICU writes: the primary weights of all characters, then, each after a 01,
//! those of the finer levels that the collation considers. Texts in ASCII use a table of the same
//! weights instead of ICU:
//!
//! ```text
//!   character   primary weight (1 to 4 bytes)
//!   'a'         2B 02        the first byte is the script's
//!   'b'         2B 06        and is left out behind another of the same script
//!   'ab'   ──►  2B 02 06
//! ```
//!
//! Invariant: for every ASCII text, the table's key equals ICU's. The keys are stored in indexes;
//! `docs/decisions/2026-11-21-collations-through-icu.md` says what guards them against a change of
//! ICU's data.

use std::cmp::Ordering;

use icu_collator::options::{AlternateHandling, CollatorOptions, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};

/// Written between the primary weights of two scripts, when the second is below or above the first.
const BACK_TO_LOWER_SCRIPT: u8 = 0x03;
const ON_TO_HIGHER_SCRIPT: u8 = 0xff;

/// The locale without special rules.
const ROOT: &str = "und";

/// The primary weight of an ASCII character; 0 for one that is ignored.
#[derive(Clone, Copy, Debug, Default)]
struct AsciiWeight {
    /// First byte highest.
    primary: u32,
    /// All bytes, and their number.
    whole: [u8; 4],
    whole_bytes: u8,
    /// The bytes after the first one, and their number.
    rest: [u8; 4],
    rest_bytes: u8,
    /// The first byte, if it is left out after another of its kind; otherwise 0.
    script: u8,
}

/// How many bytes of a key [`Unicode::write_key_head`] writes.
const HEAD_BYTES: usize = 8;
/// Keys are made from texts in pieces of this many characters, each in a buffer on the stack.
const PIECE_CHARACTERS: usize = 64;
/// The most bytes that a character adds to a key: a separator from the previous script, and its
/// weight.
const CHARACTER_KEY_BYTES: usize = 5;

/// A collation's rules, ready to use.
pub(super) struct Unicode {
    collator: CollatorBorrowed<'static>,
    ascii: Box<[AsciiWeight; 128]>,
    /// Whether no two ASCII characters together have another weight than alone, as `ch` does in
    /// Czech.
    is_root: bool,
    /// Whether the key of an ASCII text has only the table's weights.
    table_suffices: bool,
}

impl Unicode {
    /// The rules of a locale (`und` for the root) at a strength.
    pub(super) fn new(locale: &str, strength: Strength) -> Unicode {
        let primary = collator(locale, Strength::Primary);
        let mut ascii = Box::new([AsciiWeight::default(); 128]);
        for (code, weight) in (0_u8..).zip(ascii.iter_mut()) {
            *weight = ascii_weight(&primary, code.into());
        }
        Unicode {
            collator: collator(locale, strength),
            ascii,
            is_root: locale == ROOT,
            table_suffices: strength == Strength::Primary && locale == ROOT,
        }
    }

    pub(super) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.table_suffices && is_ascii(a) && is_ascii(b) {
            return self.primaries(a).cmp(self.primaries(b));
        }
        self.collator.compare_utf8(a, b)
    }

    pub(super) fn write_sort_key(&self, text: &[u8], out: &mut Vec<u8>) {
        if self.table_suffices && is_ascii(text) {
            return self.write_ascii_key(text, out);
        }
        self.write_icu_key(text, out);
    }

    /// Appends at least the first [`HEAD_BYTES`] bytes of the key, or all of it if it has no more.
    #[inline]
    pub(super) fn write_key_head(&self, text: &[u8], out: &mut Vec<u8>) {
        if !self.table_suffices || !is_ascii(text) {
            return self.write_icu_key(text, out);
        }
        let start = out.len();
        self.write_ascii_key(&text[..text.len().min(HEAD_BYTES)], out);
        if out.len() - start < HEAD_BYTES && text.len() > HEAD_BYTES {
            out.truncate(start);
            self.write_ascii_key(text, out);
        }
    }

    fn write_icu_key(&self, text: &[u8], out: &mut Vec<u8>) {
        let Ok(()) = self.collator.write_sort_key_utf8_to(text, out);
    }

    #[cfg(test)]
    pub(super) fn key_by_icu(&self, text: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        self.write_icu_key(text, &mut key);
        key
    }

    /// Appends bytes with which the keys of all texts beginning with `prefix` begin.
    pub(super) fn write_prefix_key(&self, prefix: &[u8], out: &mut Vec<u8>) {
        if !self.is_root {
            return;
        }
        let ascii = prefix.iter().take_while(|byte| byte.is_ascii()).count();
        // The following characters may change the weight of the last one: `l·` is one letter in
        // Catalan.
        self.write_ascii_key(&prefix[..ascii.saturating_sub(1)], out);
    }

    fn primaries(&self, ascii: &[u8]) -> impl Iterator<Item = u32> {
        let primary = |&byte: &u8| self.ascii[usize::from(byte & 0x7f)].primary;
        ascii.iter().map(primary).filter(|&primary| primary != 0)
    }

    fn write_ascii_key(&self, text: &[u8], out: &mut Vec<u8>) {
        let mut script = 0;
        for piece in text.chunks(PIECE_CHARACTERS) {
            // Weights are written four bytes at a time, whatever their length, hence the room at
            // the end.
            let mut buffer = [0; PIECE_CHARACTERS * CHARACTER_KEY_BYTES + 4];
            let mut length = 0;
            for &byte in piece {
                let weight = &self.ascii[usize::from(byte & 0x7f)];
                let (bytes, count) = weight.behind(script);
                if script != 0 && script != weight.script {
                    if weight.primary == 0 {
                        continue;
                    }
                    buffer[length] = weight.separator_behind(script);
                    length += 1;
                }
                buffer[length..length + 4].copy_from_slice(&bytes);
                length += usize::from(count);
                // An ignored character has no script either; here it is the first one.
                script = weight.script;
            }
            out.extend_from_slice(&buffer[..length]);
        }
    }
}

impl AsciiWeight {
    fn new(primary: u32, compressible: bool) -> AsciiWeight {
        let whole = primary.to_be_bytes();
        let whole_bytes = whole.iter().take_while(|&&byte| byte != 0).count() as u8;
        let [lead, a, b, c] = whole;
        AsciiWeight {
            primary,
            whole,
            whole_bytes,
            rest: [a, b, c, 0],
            rest_bytes: whole_bytes.saturating_sub(1),
            script: if compressible { lead } else { 0 },
        }
    }

    /// The bytes to write after a character of this script, and how many of them count.
    #[inline]
    fn behind(&self, script: u8) -> ([u8; 4], u8) {
        match script != 0 && script == self.script {
            true => (self.rest, self.rest_bytes),
            false => (self.whole, self.whole_bytes),
        }
    }

    /// The separator between a character of this script and one of another.
    #[inline]
    fn separator_behind(&self, script: u8) -> u8 {
        match ((self.primary >> 24) as u8) < script {
            true => BACK_TO_LOWER_SCRIPT,
            false => ON_TO_HIGHER_SCRIPT,
        }
    }
}

/// Like the standard library's, but with as many bytes at once as the processor supports.
#[inline]
fn is_ascii(text: &[u8]) -> bool {
    text.iter().fold(0, |all, byte| all | byte) < 0x80
}

fn collator(locale: &str, strength: Strength) -> CollatorBorrowed<'static> {
    let mut options = CollatorOptions::default();
    options.strength = Some(strength);
    options.alternate_handling = Some(AlternateHandling::NonIgnorable);
    let preferences = locale.parse::<icu_locale_core::Locale>().map(CollatorPreferences::from);
    CollatorBorrowed::try_new(preferences.unwrap_or_default(), options)
        .unwrap_or_else(|error| unreachable!("collation data is compiled in: {error}"))
}

fn ascii_weight(primary: &CollatorBorrowed<'static>, character: char) -> AsciiWeight {
    let key = |text: String| {
        let mut key = Vec::new();
        let Ok(()) = primary.write_sort_key_to(&text, &mut key);
        key
    };
    let once = key(character.to_string());
    let twice = key(format!("{character}{character}"));
    let mut weight = [0; 4];
    weight[..once.len()].copy_from_slice(&once);
    AsciiWeight::new(u32::from_be_bytes(weight), twice.len() < 2 * once.len())
}
