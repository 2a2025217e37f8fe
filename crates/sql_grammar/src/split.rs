//! A text of several statements, one after another.
//!
//! ```text
//!   SELECT ';'; /* ; */ DO 1;   ──►   "SELECT ';'"   "/* ; */ DO 1"
//! ```
//!
//! A semicolon ends a statement unless it is inside quotes or a comment. The body of a stored
//! program contains semicolons; since Firn refuses stored programs as a whole, one that begins
//! takes the rest of the text.

use super::Mode;
use super::lexer::{Kind, Lexer};

/// The statements of a text; see [`split`].
pub struct Split<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    begin: usize,
    ended: bool,
}

/// The statements of a text, without the semicolons between them. A statement between two
/// semicolons may be empty ([`super::parse`] then returns 1065); after the last semicolon there is
/// one only if there are tokens.
#[must_use]
pub fn split(text: &str, mode: Mode) -> Split<'_> {
    // A text too long to be counted is one statement, which the parser refuses.
    let too_long = u32::try_from(text.len()).is_err();
    Split {
        text,
        lexer: Lexer::new(if too_long { "" } else { text }, mode),
        begin: 0,
        ended: false,
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.ended {
            return None;
        }
        let begin = self.begin;
        if begin == 0 && !self.text.contains(';') {
            self.ended = true;
            return Some(self.text.trim());
        }
        let mut program = Program::default();
        let mut tokens = 0;
        loop {
            let token = self.lexer.next();
            match token.kind {
                Kind::End => {
                    self.ended = true;
                    let rest = self.text[begin..].trim();
                    return (tokens > 0 || begin == 0).then_some(rest);
                }
                Kind::Semicolon if !program.begun() => {
                    self.begin = token.end as usize;
                    return Some(self.text[begin..token.start as usize].trim());
                }
                kind => {
                    let (start, end) = (token.start as usize, token.end as usize);
                    program.see(tokens, kind, &self.text[start..end]);
                    tokens += 1;
                }
            }
        }
    }
}

/// Whether a statement is a `CREATE` of a stored program, by its words so far.
#[derive(Default)]
enum Program {
    #[default]
    Unknown,
    /// `CREATE DEFINER = …`: the word after the account decides.
    Definer,
    No,
    Begun,
}

impl Program {
    fn begun(&self) -> bool {
        matches!(self, Program::Begun)
    }

    fn see(&mut self, index: usize, kind: Kind, text: &str) {
        let is = |word: &str| kind == Kind::Word && text.eq_ignore_ascii_case(word);
        let begins = || ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"].iter().any(|word| is(word));
        match (&self, index) {
            (Program::Unknown, 0) if !is("CREATE") => *self = Program::No,
            (Program::Unknown, 1) if is("DEFINER") => *self = Program::Definer,
            (Program::Unknown, 1) if !begins() => *self = Program::No,
            (Program::Definer, _) if is("VIEW") || is("SQL") => *self = Program::No,
            (Program::Unknown, 1) | (Program::Definer, _) if begins() => *self = Program::Begun,
            _ => {}
        }
    }
}
