//! Masks passwords in statements that are logged.
//!
//! ```text
//!   CREATE USER a IDENTIFIED BY 'x' REPLACE 'y'  ──►  … IDENTIFIED BY <secret> REPLACE <secret>
//!   SET PASSWORD FOR 'a'@'%' = 'x'               ──►  SET PASSWORD FOR 'a'@'%' = <secret>
//!   PREPARE s FROM 'SET PASSWORD = "x"'          ──►  PREPARE s FROM 'SET PASSWORD = <secret>'
//! ```
//!
//! A string is a secret if it follows one of a few words or signs in a statement about passwords. A
//! string can itself be such a statement, for `PREPARE`. Of all other statements, only the words
//! are examined.

use std::borrow::Cow;

/// The replacement of a secret.
const MASK: &str = "<secret>";
/// Words before a secret in a statement about passwords.
const BEFORE: [&str; 8] = ["BY", "AS", "REPLACE", "PASSWORD", "=", "(", "USING", "TO"];
/// What may stand between such a word and the secret: introducers of strings.
const INTRODUCERS: [&str; 3] = ["X", "N", "B"];
/// How deep strings within strings are examined.
const DEEPEST: usize = 4;

/// The statement, without the passwords in it.
#[must_use]
pub fn masked(statement: &str) -> Cow<'_, str> {
    if !has_secrets(statement) {
        return Cow::Borrowed(statement);
    }
    match rewritten(statement, 0) {
        same if same == statement => Cow::Borrowed(statement),
        masked => Cow::Owned(masked),
    }
}

/// Whether a text, including its strings, has words that occur around passwords.
fn has_secrets(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    has(b"PASSWORD") || has(b"IDENTIFIED") || has(b"USER") && has(b"BY")
}

fn rewritten(statement: &str, depth: usize) -> String {
    let speaks = speaks_of_passwords(statement);
    let mut text = String::with_capacity(statement.len());
    let mut before = "";
    for (piece, at) in pieces(statement) {
        let piece_text = &statement[at..at + piece.len()];
        let is_string = piece.starts_with(['\'', '"']);
        let is_number = piece.starts_with("0x") || piece.starts_with("0X");
        let follows = speaks && BEFORE.iter().any(|word| word.eq_ignore_ascii_case(before));
        match () {
            () if (is_string || is_number) && follows => text.push_str(MASK),
            () if is_string && depth < DEEPEST && has_secrets(piece) => {
                let quote = &piece[..1];
                let inner = piece[1..].strip_suffix(quote).unwrap_or(&piece[1..]);
                let inner = unquoted(inner, quote);
                let inner = rewritten(&inner, depth + 1).replace('\\', "\\\\");
                text.push_str(quote);
                text.push_str(&inner.replace(quote, &quote.repeat(2)));
                text.push_str(quote);
            }
            () => text.push_str(piece_text),
        }
        let introduces = piece.starts_with('_')
            || INTRODUCERS.iter().any(|word| word.eq_ignore_ascii_case(piece));
        if !is_blank(piece) && !introduces {
            before = piece;
        }
    }
    text
}

/// Whether a statement is about passwords: it has a word for them, or is about a user, even if
/// misspelt.
fn speaks_of_passwords(statement: &str) -> bool {
    let mut before = "";
    for (piece, _) in pieces(statement).filter(|(piece, _)| !is_blank(piece)) {
        let makes = before.eq_ignore_ascii_case("CREATE") || before.eq_ignore_ascii_case("ALTER");
        let word = piece.to_ascii_uppercase();
        if word == "IDENTIFIED" || word.ends_with("PASSWORD") || makes && word == "USER" {
            return true;
        }
        before = piece;
    }
    false
}

fn is_blank(piece: &str) -> bool {
    let is_comment = ["/*", "*/", "-- ", "#"].iter().any(|sign| piece.starts_with(sign));
    is_comment || piece.trim().is_empty()
}

/// A string's value, with quotes and backslashes resolved.
fn unquoted(inner: &str, quote: &str) -> String {
    let inner = inner.replace(&quote.repeat(2), quote);
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    text
}

/// The pieces of a statement with their places: words, strings with their quotes, runs of blanks,
/// comments, signs.
fn pieces(statement: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &statement[at..];
        let first = rest.chars().next()?;
        let length = match first {
            '\'' | '"' | '`' => quoted_length(rest, first),
            _ if is_word(first) => length_while(rest, is_word),
            _ if first.is_whitespace() => length_while(rest, char::is_whitespace),
            // The content of such a comment is executed.
            '/' if rest.starts_with("/*!") || rest.starts_with("/*+") => {
                3 + length_while(&rest[3..], |character| character.is_ascii_digit())
            }
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '*' if rest.starts_with("*/") => 2,
            '#' => length_while(rest, |character| character != '\n'),
            '-' if rest.starts_with("-- ") => length_while(rest, |character| character != '\n'),
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

/// A string with its quotes; an unterminated one takes the rest. Doubled quotes belong to it.
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
