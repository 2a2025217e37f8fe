//! `LIKE`: patterns with `%` and `_`, compared character by character as the collation holds them equal.

use super::Collation;

/// A piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// This character.
    Character(char),
    /// Any one character, `_`.
    One,
    /// Any characters or none, `%`.
    Any,
}

/// A pattern, taken apart once.
#[derive(Clone, Debug)]
pub struct LikePattern {
    collation: &'static Collation,
    tokens: Vec<Token>,
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
        LikePattern { collation, tokens }
    }

    /// Whether a text is of the pattern.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let mut text = self.collation.characters(text);
        let mut at = 0;
        // Where to go on when what follows the last `%` does not match: one character later.
        let mut retry = None;
        loop {
            let before = text.clone();
            match (self.tokens.get(at), text.next()) {
                (Some(Token::Any), _) => {
                    at += 1;
                    text = before.clone();
                    retry = Some((at, before));
                    if at == self.tokens.len() {
                        return true;
                    }
                    continue;
                }
                (None, None) => return true,
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
                (Some(_), None) => return false,
                _ => {}
            }
            let Some((token, start)) = &mut retry else { return false };
            if start.next().is_none() {
                return false;
            }
            at = *token;
            text = start.clone();
        }
    }

    /// The text that everything of the pattern begins with, as far as the collation holds it equal.
    #[must_use]
    pub fn literal_prefix(&self) -> String {
        let literal = self.tokens.iter().map_while(|token| match token {
            Token::Character(character) => Some(*character),
            _ => None,
        });
        literal.collect()
    }

    /// Whether the pattern is nothing but its literal prefix.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.tokens.iter().all(|token| matches!(token, Token::Character(_)))
    }
}
