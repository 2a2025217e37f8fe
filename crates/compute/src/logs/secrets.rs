//! Passwords out of statements that are written down.
//!
//! ```text
//!   CREATE USER 'ann'@'%' IDENTIFIED BY 'x' REPLACE 'y'  ──►  … IDENTIFIED BY <secret> REPLACE <secret>
//!   SET PASSWORD FOR 'ann'@'%' = 'x'                     ──►  SET PASSWORD FOR 'ann'@'%' = <secret>
//! ```
//!
//! A string is a secret where it follows one of a few words or signs in a statement that speaks of passwords.
//! What is no such statement is not looked at beyond its words.

use std::borrow::Cow;

/// What stands in a secret's place.
const MASK: &str = "<secret>";
/// Words that make a statement one about passwords.
const TOPICS: [&str; 2] = ["IDENTIFIED", "PASSWORD"];
/// What stands before a secret in such a statement.
const BEFORE: [&str; 7] = ["BY", "AS", "REPLACE", "PASSWORD", "=", "(", "USING"];

/// The statement, without the passwords in it.
#[must_use]
pub fn masked(statement: &str) -> Cow<'_, str> {
    let speaks = |word: &str| TOPICS.iter().any(|topic| topic.eq_ignore_ascii_case(word));
    if !pieces(statement).any(|(piece, _)| speaks(piece)) {
        return Cow::Borrowed(statement);
    }
    let mut text = String::with_capacity(statement.len());
    let mut before = "";
    for (piece, at) in pieces(statement) {
        let is_string = piece.starts_with(['\'', '"']);
        let follows = BEFORE.iter().any(|word| word.eq_ignore_ascii_case(before));
        match is_string && follows {
            true => text.push_str(MASK),
            false => text.push_str(&statement[at..at + piece.len()]),
        }
        if !piece.trim().is_empty() {
            before = piece;
        }
    }
    Cow::Owned(text)
}

/// The pieces of a statement with their places: words, strings with their quotes, runs of blanks, signs.
fn pieces(statement: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &statement[at..];
        let first = rest.chars().next()?;
        let length = match first {
            '\'' | '"' | '`' => quoted_length(rest, first),
            _ if is_word(first) => length_while(rest, is_word),
            _ if first.is_whitespace() => length_while(rest, char::is_whitespace),
            sign => sign.len_utf8(),
        };
        let piece = (&rest[..length], at);
        at += length;
        Some(piece)
    })
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn length_while(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|character| !wanted(character)).unwrap_or(text.len())
}

/// A string with its quotes; one without an end takes the rest. Doubled quotes belong to it.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == '\\' && quote != '`' {
            characters.next();
        } else if character == quote {
            match characters.peek() {
                Some((_, next)) if *next == quote => {
                    characters.next();
                }
                _ => return at + 1,
            }
        }
    }
    text.len()
}
