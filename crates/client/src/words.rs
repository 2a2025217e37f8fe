//! Statements as words: the little SQL that completion, highlighting and the history need.

use std::ops::Range;

/// The kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An unquoted name or keyword.
    Word,
    /// A name in backquotes.
    Name,
    /// A string, which may lack its end.
    Text,
    Number,
    Comment,
    /// Any other character except blanks.
    Sign,
}

/// The pieces of a statement with their byte ranges, without blanks.
pub(crate) fn pieces(text: &str) -> Pieces<'_> {
    Pieces { text, at: 0 }
}

/// The unquoted words of a statement.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter(|(kind, _)| *kind == Kind::Word).map(|(_, range)| &text[range])
}

/// The iterator of [`pieces`].
pub(crate) struct Pieces<'t> {
    text: &'t str,
    at: usize,
}

impl Iterator for Pieces<'_> {
    type Item = (Kind, Range<usize>);

    fn next(&mut self) -> Option<(Kind, Range<usize>)> {
        let rest = &self.text[self.at..];
        let blanks = rest.len() - rest.trim_start().len();
        let (start, rest) = (self.at + blanks, &rest[blanks..]);
        let first = rest.chars().next()?;
        let (kind, length) = match first {
            '\'' | '"' => (Kind::Text, quoted_length(rest, first)),
            '`' => (Kind::Name, quoted_length(rest, first)),
            '#' => (Kind::Comment, line_length(rest)),
            '-' if rest.starts_with("-- ") || rest == "--" => (Kind::Comment, line_length(rest)),
            '/' if rest.starts_with("/*") => {
                (Kind::Comment, rest.find("*/").map_or(rest.len(), |end| end + 2))
            }
            '0'..='9' => (Kind::Number, length_while(rest, |c| c.is_alphanumeric() || c == '.')),
            _ if is_name(first) => (Kind::Word, length_while(rest, is_name)),
            other => (Kind::Sign, other.len_utf8()),
        };
        self.at = start + length;
        Some((kind, start..self.at))
    }
}

/// Whether a character can stand in an unquoted name.
pub(crate) fn is_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

fn length_while(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|character| !wanted(character)).unwrap_or(text.len())
}

fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if quote != '`' => is_escaped = true,
            other if other == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<(Kind, &str)> {
        pieces(text).map(|(kind, range)| (kind, &text[range])).collect()
    }

    #[test]
    fn a_statement_is_taken_apart() {
        assert_eq!(
            shown("SELECT `a b`,'it\\'s' -- why\n+ 1.5e3 /* x */"),
            [
                (Kind::Word, "SELECT"),
                (Kind::Name, "`a b`"),
                (Kind::Sign, ","),
                (Kind::Text, "'it\\'s'"),
                (Kind::Comment, "-- why"),
                (Kind::Sign, "+"),
                (Kind::Number, "1.5e3"),
                (Kind::Comment, "/* x */"),
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in ".*") {
            let taken: usize = pieces(&text).map(|(_, range)| text[range].len()).sum();
            prop_assert!(taken <= text.len());
        }
    }
}
