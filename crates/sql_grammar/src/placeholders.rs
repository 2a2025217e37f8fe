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
    /// The numbers of those that are row counts: `LIMIT ?, ?`, `OFFSET ?`.
    pub row_counts: Vec<usize>,
}

/// What the tokens before a token begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Escape,
    /// A row count is next.
    Limit,
    /// A comma and another row count may be next.
    RowCount,
    Anything,
}

#[must_use]
pub fn placeholders(text: &str, mode: Mode) -> Placeholders {
    let mut found = Placeholders::default();
    if u32::try_from(text.len()).is_err() {
        return found;
    }
    let mut lexer = Lexer::new(text, mode);
    let mut after = After::Anything;
    loop {
        let token = lexer.next();
        let place = token.start as usize..token.end as usize;
        after = match token.kind {
            Kind::End => return found,
            Kind::Parameter => {
                found.in_escape |= after == After::Escape;
                if after == After::Limit {
                    found.row_counts.push(found.places.len());
                }
                found.places.push(place);
                if after == After::Limit { After::RowCount } else { After::Anything }
            }
            Kind::Integer if after == After::Limit => After::RowCount,
            Kind::Comma if after == After::RowCount => After::Limit,
            Kind::Word if text[place.clone()].eq_ignore_ascii_case("ESCAPE") => After::Escape,
            Kind::Word if is_limit(&text[place]) => After::Limit,
            _ => After::Anything,
        };
    }
}

fn is_limit(word: &str) -> bool {
    word.eq_ignore_ascii_case("LIMIT") || word.eq_ignore_ascii_case("OFFSET")
}

#[cfg(test)]
mod tests {
    use super::placeholders;
    use crate::Mode;

    #[test]
    fn row_counts_are_told_by_the_words_before_them() {
        let numbers = |text| placeholders(text, Mode::default()).row_counts;
        assert_eq!(numbers("SELECT ? FROM t LIMIT ?"), [1]);
        assert_eq!(numbers("SELECT ?, (SELECT a FROM u LIMIT ?, ?), ?"), [1, 2]);
        assert_eq!(numbers("SELECT 1 LIMIT 5, ?"), [0]);
        assert_eq!(numbers("SELECT 1 LIMIT ? OFFSET ?"), [0, 1]);
        assert_eq!(numbers("SELECT a FROM t WHERE a IN (?, ?) LIMIT 3"), []);
    }
}
