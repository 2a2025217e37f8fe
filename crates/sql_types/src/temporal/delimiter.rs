//! Delimiters in the texts of dates and times that MySQL still reads, but warns of.
//!
//! ```text
//!   '2024/01/01'            4095: '/' in position 4, the standard is '-'
//!   '2024-01-01  10:00'     4096: ' ' in position 11 is superfluous
//!   ' 10:00', '10:00 '      4096: ' ' in positions 0 and 5
//! ```

use super::parse::{DateRules, parse_behind_date};
use crate::error::{Condition, Level};

const CODE_DEPRECATED: u16 = 4095;
const CODE_SUPERFLUOUS: u16 = 4096;
/// What the standard has after year, month, day, hour and minute.
const STANDARD: &[u8; 5] = b"-- ::";
const DAY: usize = 2;

/// The first delimiter of a text that is not the standard's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiter {
    byte: u8,
    position_bytes: usize,
    /// What should stand there; `None` for one that is superfluous.
    standard: Option<u8>,
}

impl Delimiter {
    fn superfluous(text: &[u8], position_bytes: usize) -> Delimiter {
        Delimiter { byte: text[position_bytes], position_bytes, standard: None }
    }

    /// Its warning, for a value of a row.
    #[must_use]
    pub fn condition(&self, text: &[u8], row: u64) -> Condition {
        Condition { level: Level::Warning, code: self.code(), message: self.message(text, row) }
    }

    /// The number of its warning.
    #[must_use]
    pub fn code(&self) -> u16 {
        if self.standard.is_some() { CODE_DEPRECATED } else { CODE_SUPERFLUOUS }
    }

    /// The text of its warning, for a value of a row.
    #[must_use]
    pub fn message(&self, text: &[u8], row: u64) -> String {
        let (text, position) = (String::from_utf8_lossy(text), self.position_bytes);
        let byte = char::from(self.byte);
        let shown = match byte.is_ascii_control() {
            true => byte.escape_default().to_string(),
            false => byte.to_string(),
        };
        let place = format!(
            "Delimiter '{shown}' in position {position} in datetime value '{text}' at row {row}"
        );
        match self.standard.map(char::from) {
            Some(standard) => {
                format!("{place} is deprecated. Prefer the standard '{standard}'.")
            }
            None => format!("{place} is superfluous and is deprecated. Please remove."),
        }
    }
}

/// Whether a condition only tells of a delimiter: the value was read.
#[must_use]
pub fn is_of_delimiter(condition: &Condition) -> bool {
    matches!(condition.code, CODE_DEPRECATED | CODE_SUPERFLUOUS)
}

/// The delimiter to warn of in a text from which a date, or a date and time, was read.
#[must_use]
pub fn in_date_time(text: &[u8]) -> Option<Delimiter> {
    if text.first().is_some_and(is_space) {
        return Some(Delimiter::superfluous(text, 0));
    }
    let packed = digits(text, 0);
    if packed == text.len() || text[packed] == b'.' && is_packed(text, packed) {
        return after_fraction(text, packed);
    }
    let mut at = 0;
    for (part, standard) in STANDARD.iter().copied().enumerate() {
        at += digits(&text[at..], 0);
        let run = text[at..].iter().take_while(|byte| is_delimiter(byte)).count();
        match (part, text.get(at)) {
            (_, None) => return None,
            (DAY, Some(b'T')) => at += 1,
            _ if run == 0 => return None,
            (_, Some(byte)) if *byte != standard => {
                let standard = Some(standard);
                return Some(Delimiter { byte: *byte, position_bytes: at, standard });
            }
            _ if run > 1 => return Some(Delimiter::superfluous(text, at + 1)),
            // Nothing stands behind the only space.
            (DAY, _) if at + 1 == text.len() => return Some(Delimiter::superfluous(text, at)),
            _ => at += 1,
        }
    }
    after_fraction(text, at + digits(&text[at..], 0))
}

/// The delimiter to warn of in a text that is read as a time. In front of one, a space is warned of
/// even if nothing was read: `was_read` is false.
#[must_use]
pub fn in_time(text: &[u8], was_read: bool) -> Option<Delimiter> {
    if text.first().is_some_and(is_space) {
        return Some(Delimiter::superfluous(text, 0));
    }
    if !was_read {
        return None;
    }
    if parse_behind_date(text, DateRules::LENIENT).is_some() {
        return in_date_time(text);
    }
    let first = digits(text, usize::from(text.first() == Some(&b'-')));
    let spaces = text[first..].iter().take_while(|byte| is_space(byte)).count();
    let has_more = text.get(first + spaces).is_some_and(u8::is_ascii_digit);
    let mut at = first;
    if spaces > 0 {
        if spaces > 1 || !has_more {
            return Some(Delimiter::superfluous(text, first));
        }
        at += spaces + digits(&text[first + spaces..], 0);
    }
    while text.get(at) == Some(&b':') && text.get(at + 1).is_some_and(u8::is_ascii_digit) {
        at += 1 + digits(&text[at + 1..], 0);
    }
    after_fraction(text, at)
}

/// A space behind the whole of a value, whose fraction may begin here.
fn after_fraction(text: &[u8], at: usize) -> Option<Delimiter> {
    let end = match text.get(at) {
        Some(b'.') => at + 1 + digits(&text[at + 1..], 0),
        _ => at,
    };
    text.get(end).is_some_and(is_space).then(|| Delimiter::superfluous(text, end))
}

/// Whether the digits before a point are a whole date: `20240101100000.5`, unlike `2024.01.01`.
fn is_packed(text: &[u8], point: usize) -> bool {
    let behind = point + 1 + digits(&text[point + 1..], 0);
    !text.get(behind).is_some_and(|byte| byte.is_ascii_punctuation())
}

fn digits(text: &[u8], from: usize) -> usize {
    from + text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == 0x0b
}

fn is_delimiter(byte: &u8) -> bool {
    byte.is_ascii_punctuation() || is_space(byte)
}
