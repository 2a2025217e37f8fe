//! Colours of a statement at the prompt.

use super::completion::is_keyword;
use super::words::{self, Kind};

const RESET: &str = "\x1b[0m";

fn colour(kind: Kind, text: &str) -> Option<&'static str> {
    match kind {
        Kind::Word if is_keyword(text) => Some("\x1b[1;34m"),
        Kind::Text => Some("\x1b[32m"),
        Kind::Name => Some("\x1b[36m"),
        Kind::Number => Some("\x1b[35m"),
        Kind::Comment => Some("\x1b[90m"),
        Kind::Word | Kind::Sign => None,
    }
}

/// A statement with the terminal's escape codes for colours.
pub(crate) fn highlighted(text: &str) -> String {
    let mut coloured = String::with_capacity(text.len() * 2);
    let mut at = 0;
    for (kind, range) in words::pieces(text) {
        coloured.push_str(&text[at..range.start]);
        at = range.end;
        let piece = &text[range];
        match colour(kind, piece) {
            Some(code) => coloured.extend([code, piece, RESET]),
            None => coloured.push_str(piece),
        }
    }
    coloured.push_str(&text[at..]);
    coloured
}

#[cfg(test)]
mod tests {
    use super::highlighted;

    #[test]
    fn keywords_and_values_have_colours() {
        assert_eq!(highlighted("SELECT a + 'b'"), "\x1b[1;34mSELECT\x1b[0m a + \x1b[32m'b'\x1b[0m");
    }
}
