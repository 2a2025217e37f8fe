//! `LIKE`: patterns with `%` and `_`, compared character by character as equal under the collation.
//!
//! ```text
//!   '%Snow_ice'  over ASCII: pieces '' and 'Snow_ice', each character the first one that is equal to it (S ─► s)
//!                other text: Any, S, n, o, w, One, i, c, e
//! ```

use std::convert::Infallible;

use super::{ASCII, AsciiClasses, Collation};

/// A piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Character(char),
    /// Any one character, `_`.
    One,
    /// Any characters or none, `%`.
    Any,
}

/// A pattern, parsed once.
#[derive(Clone, Debug)]
pub struct LikePattern {
    collation: &'static Collation,
    tokens: Vec<Token>,
    /// The same for texts of ASCII characters; `None` if the pattern has others.
    pieces: Option<Pieces>,
}

/// The pieces between `%`s; the first and the last piece are at the ends of the text.
#[derive(Clone, Debug)]
struct Pieces {
    classes: &'static AsciiClasses,
    /// Classes of characters, or [`ANY_CLASS`].
    pieces: Vec<Vec<u8>>,
}

/// Comparisons of characters between two calls of who counts them, more or less.
const STEPS_COUNTED: usize = 1 << 16;

/// Stands for all classes.
const ANY_CLASS: u8 = u8::MAX;

impl Pieces {
    fn new(collation: &'static Collation, tokens: &[Token]) -> Option<Pieces> {
        let classes = collation.ascii_classes();
        let class = |token: &Token| match token {
            Token::Character(character) => {
                let byte = u8::try_from(*character).ok().filter(u8::is_ascii)?;
                Some(classes[usize::from(byte)])
            }
            _ => Some(ANY_CLASS),
        };
        let pieces = tokens.split(|token| *token == Token::Any);
        let pieces = pieces.map(|piece| piece.iter().map(class).collect::<Option<Vec<u8>>>());
        Some(Pieces { classes, pieces: pieces.collect::<Option<_>>()? })
    }

    /// Whether a text of ASCII characters matches the pattern.
    fn matches<E>(
        &self,
        text: &[u8],
        count: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some((first, rest)) = self.pieces.split_first() else { return Ok(text.is_empty()) };
        let Some((last, middle)) = rest.split_last() else {
            return Ok(text.len() == first.len() && self.begins(text, first));
        };
        if text.len() < first.len() + last.len() || !self.begins(text, first) {
            return Ok(false);
        }
        let (text, end) = text[first.len()..].split_at(text.len() - first.len() - last.len());
        match self.begins(end, last) {
            true => self.has_all(text, middle, count),
            false => Ok(false),
        }
    }

    /// Whether the text contains the pieces in their order; each is taken at its first place.
    fn has_all<E>(
        &self,
        mut text: &[u8],
        pieces: &[Vec<u8>],
        mut count: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        for piece in pieces {
            // Two adjacent `%` are one, so no piece in the middle is empty.
            let Some(at) = self.place(text, piece, &mut count)? else { return Ok(false) };
            text = &text[at + piece.len()..];
        }
        Ok(true)
    }

    /// The first place of a piece.
    fn place<E>(
        &self,
        text: &[u8],
        piece: &[u8],
        mut count: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let length = piece.len().max(1);
        let together = (STEPS_COUNTED / length).max(1);
        let mut at = 0;
        while at + length <= text.len() {
            let end = text.len().min(at + together + length - 1);
            let mut places = text[at..end].windows(length);
            if let Some(place) = places.position(|text| self.begins(text, piece)) {
                return Ok(Some(at + place));
            }
            count(together * length)?;
            at += together;
        }
        Ok(None)
    }

    #[inline]
    fn begins(&self, text: &[u8], piece: &[u8]) -> bool {
        let is_of = |(byte, class): (&u8, &u8)| {
            *class == ANY_CLASS || self.classes[usize::from(*byte) % ASCII] == *class
        };
        text.iter().zip(piece).all(is_of)
    }
}

impl LikePattern {
    /// A pattern under a collation. `escape` makes the next character an ordinary one.
    #[must_use]
    pub fn new(collation: &'static Collation, pattern: &[u8], escape: Option<char>) -> LikePattern {
        let mut tokens = Vec::new();
        let mut characters = collation.characters(pattern);
        while let Some(character) = characters.next() {
            let token = match character {
                character if Some(character) == escape => {
                    Token::Character(characters.next().unwrap_or(character))
                }
                '%' if tokens.last() == Some(&Token::Any) => continue,
                '%' => Token::Any,
                '_' => Token::One,
                character => Token::Character(character),
            };
            tokens.push(token);
        }
        let pieces = Pieces::new(collation, &tokens);
        LikePattern { collation, tokens, pieces }
    }

    /// Whether a text matches the pattern.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let Ok(matches) = self.matches_counted(text, |_| Ok::<(), Infallible>(()));
        matches
    }

    /// Whether a text matches the pattern. `count` learns every now and then how many comparisons
    /// of characters that has taken since the last time: up to the product of both lengths in all.
    ///
    /// # Errors
    /// Those of `count`, which end the search.
    pub fn matches_counted<E>(
        &self,
        text: &[u8],
        count: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        match &self.pieces {
            Some(pieces) if text.is_ascii() => pieces.matches(text, count),
            _ => self.matches_any(text, count),
        }
    }

    /// Whether a text of any characters matches the pattern.
    pub(super) fn matches_any<E>(
        &self,
        text: &[u8],
        mut count: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut text = self.collation.characters(text);
        let mut at = 0;
        // Where to continue if the part after the last `%` does not match: one character later.
        let mut retry = None;
        let mut steps = 0;
        loop {
            steps += 1;
            if steps == STEPS_COUNTED {
                count(steps)?;
                steps = 0;
            }
            let before = text.clone();
            match (self.tokens.get(at), text.next()) {
                (Some(Token::Any), _) => {
                    at += 1;
                    text = before.clone();
                    retry = Some((at, before));
                    if at == self.tokens.len() {
                        return Ok(true);
                    }
                    continue;
                }
                (None, None) => return Ok(true),
                (Some(Token::One), Some(_)) => {
                    at += 1;
                    continue;
                }
                (Some(Token::Character(wanted)), Some(found))
                    if self.collation.is_same_character(*wanted, found) =>
                {
                    at += 1;
                    continue;
                }
                (Some(_), None) => return Ok(false),
                _ => {}
            }
            let Some((token, start)) = &mut retry else { return Ok(false) };
            if start.next().is_none() {
                return Ok(false);
            }
            at = *token;
            text = start.clone();
        }
    }

    /// The text with which every match begins, as far as the collation considers it equal.
    #[must_use]
    pub fn literal_prefix(&self) -> String {
        let literal = self.tokens.iter().map_while(|token| match token {
            Token::Character(character) => Some(*character),
            _ => None,
        });
        literal.collect()
    }

    /// Whether the pattern is only its literal prefix.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.tokens.iter().all(|token| matches!(token, Token::Character(_)))
    }
}
