//! The places of `?` in a statement's text.

use std::ops::Range;

use super::Mode;
use super::lexer::{Kind, Lexer};

/// The places of `?` in a text, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Placeholders {
    /// Where each is, in bytes.
    pub places: Vec<Range<usize>>,
    /// Whether one is the character of `LIKE … ESCAPE ?`, which a plan must know.
    pub in_escape: bool,
}

/// The placeholders of a text.
#[must_use]
pub fn placeholders(text: &str, mode: Mode) -> Placeholders {
    let mut found = Placeholders::default();
    if u32::try_from(text.len()).is_err() {
        return found;
    }
    let mut lexer = Lexer::new(text, mode);
    let mut after_escape = false;
    loop {
        let token = lexer.next();
        let place = token.start as usize..token.end as usize;
        match token.kind {
            Kind::End => return found,
            Kind::Parameter => {
                found.in_escape |= after_escape;
                found.places.push(place);
                after_escape = false;
            }
            kind => {
                after_escape = kind == Kind::Word && text[place].eq_ignore_ascii_case("ESCAPE");
            }
        }
    }
}
