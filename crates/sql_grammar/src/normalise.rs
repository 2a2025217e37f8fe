//! A statement's text without its literals, for the plan cache.
//!
//! ```text
//!   SELECT c FROM t WHERE id = 17 AND s = 'x'   ──►   SELECT c FROM t WHERE id = ? AND s = ?
//!                                                     17 (integer), 'x' (text)
//! ```
//!
//! The remaining text is the key of the plan cache, so all statements that differ only in literals
//! share one plan. [`super::parse_lifted`] parses the original text with the lifted literals as
//! parameters. A prepared statement with `?` in the same places finds the same plan if its
//! parameters have the same kinds. Normalising takes one pass over the tokens. The caller keeps the
//! buffers, so nothing is allocated once they have grown.
//!
//! # Which literals are lifted
//!
//! Only literals that are nothing but values. In `SELECT`, `INSERT`, `REPLACE`, `UPDATE` and
//! `DELETE`, these are numbers of up to 18 digits, strings, and hexadecimal literals of more than 8
//! bytes, except
//!
//! 1. between `SELECT` and `FROM`, since the text of an item names its column;
//! 2. in `GROUP BY` and `ORDER BY`, where a number is a column's position;
//! 3. in a function's arguments, in the lengths of a type and in anything that looks like these (a
//!    name and parentheses), since they may decide the result's type: `ROUND(x, 2)`, `NOW(6)`;
//! 4. after `INTERVAL`, `SEPARATOR`, `ESCAPE`, `COLLATE`, `AS`, `->`, `->>`, in typed and
//!    introduced strings (`DATE '…'`, `_latin1'…'`), and in window frames;
//! 5. as the whole of a condition or at its beginning (`WHERE 1 = 1`), so that it can be folded.
//!
//! `NULL`, `TRUE` and `FALSE` stay. Comments become a blank, except where rule 1 applies; optimizer
//! hints stay. Rules 1 to 3 apply up to a subquery, where they start again.
//!
//! # Which statements are refused
//!
//! Other statements than those five, several statements in one text, `/*! … */`, adjacent strings
//! that are joined, bytes that start no token, more than [`MAX_LITERALS`] literals, more than 64
//! KiB apart from the literals, and texts of 4 GiB. They are parsed unchanged.

use super::Mode;
use super::lexer::{Kind, Lexer, Token, unquoted};
use rustc_hash::FxHasher;
use std::borrow::Cow;
use std::hash::Hasher;

/// The most literals and parameters of a statement. An insert of more rows is a different statement
/// each time anyway.
pub const MAX_LITERALS: usize = 256;
/// The longest text without its literals. A longer one would fill the plan cache with a statement
/// that is unlikely to come again.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// How deep parentheses may nest.
const MAX_PARENTHESES: usize = 64;
/// Characters of `x'…'` with 8 bytes.
pub(super) const LONGEST_NUMBER_IN_HEX: usize = 19;
/// This many digits always fit an `i64`.
pub(super) const MAX_DIGITS: usize = 18;

/// The kind of a lifted literal. Plans depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// A whole number that fits an `i64`.
    Integer,
    /// A number with a point.
    Decimal,
    /// A number with an exponent.
    Float,
    Text,
    /// Bytes in hexadecimal.
    Hex,
    /// A `?` of the text: not a literal, but it has a place among them.
    Parameter,
}

/// A literal that was lifted, or a `?` of the text. The first one is the statement's first
/// parameter, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Literal {
    pub kind: LiteralKind,
    start: u32,
    end: u32,
}

impl Literal {
    /// The literal as written in the normalised text's original.
    #[must_use]
    pub fn written<'a>(&self, text: &'a str) -> &'a str {
        &text[self.start as usize..self.end as usize]
    }

    /// Its place in the text.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The literal's value, from the original text under the same mode.
    #[must_use]
    pub fn value<'a>(&self, text: &'a str, mode: Mode) -> LiteralValue<'a> {
        let written = self.written(text);
        match self.kind {
            LiteralKind::Integer => LiteralValue::Integer(written.parse().unwrap_or(0)),
            LiteralKind::Decimal => LiteralValue::Decimal(written),
            LiteralKind::Float => LiteralValue::Float(written.parse().unwrap_or(0.0)),
            LiteralKind::Text => LiteralValue::Text(unquoted(written, !mode.no_backslash_escapes)),
            LiteralKind::Hex => LiteralValue::Bytes(hex(written)),
            LiteralKind::Parameter => LiteralValue::Parameter,
        }
    }
}

/// What a literal says.
#[derive(Debug, Clone, PartialEq)]
pub enum LiteralValue<'a> {
    Integer(i64),
    /// Digits with a point among them.
    Decimal(&'a str),
    Float(f64),
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
    /// Not a literal: the next parameter that the client binds.
    Parameter,
}

/// The result of [`normalise`]; the caller keeps and reuses it.
#[derive(Debug, Default, Clone)]
pub struct Normalised {
    text: String,
    literals: Vec<Literal>,
    regions: Vec<Region>,
}

impl Normalised {
    /// The text with `?` for each literal.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The literals replaced by each `?`, in order.
    #[must_use]
    pub fn literals(&self) -> &[Literal] {
        &self.literals
    }

    /// A hash of text and kinds. Equal keys do not imply equal statements: after finding one,
    /// compare [`Normalised::text`] and the kinds. A parameter counts as the kind that `bound`
    /// returns for it, counted from 0 among the parameters.
    #[must_use]
    pub fn key(&self, bound: impl Fn(usize) -> LiteralKind) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(self.text.as_bytes());
        let mut parameters = 0;
        for literal in &self.literals {
            let mut kind = literal.kind;
            if kind == LiteralKind::Parameter {
                kind = bound(parameters);
                parameters += 1;
            }
            hasher.write_u8(kind as u8);
        }
        hasher.finish()
    }
}

/// Lifts literals out of a statement. False if the statement must not be cached by its text without
/// them; the content of `out` is then meaningless.
pub fn normalise(text: &str, mode: Mode, out: &mut Normalised) -> bool {
    out.text.clear();
    out.literals.clear();
    out.regions.clear();
    if u32::try_from(text.len()).is_err() {
        return false;
    }
    let mut pass = Pass { text, copied: 0, end: 0, out, state: State::default() };
    pass.run(Lexer::new(text, mode)).is_some()
}

/// The role of literals in a part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Region {
    #[default]
    Values,
    /// Part of an item of `SELECT`, up to `FROM`.
    Items,
    /// Anything else.
    Kept,
}

/// What the tokens so far imply for the next one.
#[derive(Default)]
struct State {
    region: Region,
    last: Option<Kind>,
    last_word: Word,
    /// The last token was a word.
    after_word: bool,
    /// Since the start of a condition there have been only kept literals and operators.
    folding: bool,
    /// `BETWEEN` waits for its `AND`.
    between: bool,
    /// `INTERVAL` waits for its unit.
    interval: bool,
}

struct Pass<'a, 'b> {
    text: &'a str,
    /// The text up to here is in `out`.
    copied: usize,
    /// Where the last token ended.
    end: usize,
    out: &'b mut Normalised,
    state: State,
}

impl Pass<'_, '_> {
    /// Reads all tokens; `None` if the statement is refused.
    fn run(&mut self, mut lexer: Lexer<'_>) -> Option<()> {
        let first = lexer.next();
        if first.kind != Kind::Word {
            return None;
        }
        let begins = Word::of(self.text, first);
        if !begins.begins_statement() {
            return None;
        }
        self.copied = first.start as usize;
        self.end = first.end as usize;
        self.word(begins);
        loop {
            let token = lexer.next();
            self.gap(token.start as usize)?;
            match token.kind {
                Kind::End => break,
                Kind::Semicolon => {
                    self.copy_to(token.start as usize)?;
                    self.copied = self.text.len();
                    return (lexer.next().kind == Kind::End).then_some(());
                }
                _ => self.token(token)?,
            }
            self.end = token.end as usize;
        }
        self.copy_to(self.end)
    }

    /// Copies the text up to `end`; `None` if that is too much.
    fn copy_to(&mut self, end: usize) -> Option<()> {
        if self.copied < end {
            if self.out.text.len() + (end - self.copied) > MAX_TEXT_BYTES {
                return None;
            }
            self.out.text.push_str(&self.text[self.copied..end]);
            self.copied = end;
        }
        Some(())
    }

    /// The text between two tokens: comments become a blank.
    fn gap(&mut self, start: usize) -> Option<()> {
        let gap = &self.text[self.end..start];
        if gap.len() <= 1 || gap.bytes().all(|byte| byte == b' ') {
            return Some(());
        }
        if gap.contains("/*!") || gap.contains("*/") && !gap.contains("/*") {
            return None;
        }
        // Between `SELECT` and `FROM` they are part of columns' names.
        let comments = gap.bytes().any(|byte| matches!(byte, b'/' | b'-' | b'#'));
        if comments && self.state.region != Region::Items {
            self.copy_to(self.end)?;
            self.out.text.push(' ');
            self.copied = start;
        }
        Some(())
    }

    fn token(&mut self, token: Token) -> Option<()> {
        let mut folding = false;
        match token.kind {
            Kind::Word => {
                let word = Word::of(self.text, token);
                self.word(word);
                self.state.last = Some(Kind::Word);
                return Some(());
            }
            Kind::LeftParen => self.open()?,
            Kind::RightParen => self.state.region = self.out.regions.pop()?,
            Kind::Integer | Kind::Decimal | Kind::Float | Kind::Text | Kind::Hex => {
                let begins = self.state.after_word && self.state.last_word.begins_condition();
                let lifted = self.literal(token)?;
                folding = (self.state.folding || begins) && !lifted;
            }
            Kind::Parameter => self.lift(token, LiteralKind::Parameter)?,
            Kind::Invalid => return None,
            Kind::Comma => {}
            _ => folding = self.state.folding,
        }
        self.state.folding = folding;
        self.state.after_word = false;
        self.state.last = Some(token.kind);
        Some(())
    }

    fn open(&mut self) -> Option<()> {
        if self.out.regions.len() >= MAX_PARENTHESES {
            return None;
        }
        self.out.regions.push(self.state.region);
        let after_name = self.state.after_word && !self.state.last_word.opens_values();
        let called = after_name || self.state.last == Some(Kind::Quoted);
        if called || self.state.region == Region::Items {
            self.state.region = Region::Kept;
        }
        Some(())
    }

    /// Whether a literal was lifted.
    fn literal(&mut self, token: Token) -> Option<bool> {
        let length = (token.end - token.start) as usize;
        let kind = match token.kind {
            Kind::Integer if length <= MAX_DIGITS => LiteralKind::Integer,
            Kind::Decimal => LiteralKind::Decimal,
            Kind::Float => LiteralKind::Float,
            Kind::Text => LiteralKind::Text,
            // Short ones may be numbers, depending on what is beside them.
            Kind::Hex if length > LONGEST_NUMBER_IN_HEX => LiteralKind::Hex,
            _ => return Some(false),
        };
        if kind == LiteralKind::Text && self.state.last == Some(Kind::Text) {
            return None;
        }
        let state = &self.state;
        let kept = state.region != Region::Values
            || state.interval
            || state.folding
            || (state.after_word
                && (state.last_word == Word::Holds || state.last_word.begins_condition()))
            || matches!(state.last, Some(Kind::Arrow | Kind::LongArrow));
        if kept {
            return Some(false);
        }
        self.lift(token, kind)?;
        Some(true)
    }

    fn lift(&mut self, token: Token, kind: LiteralKind) -> Option<()> {
        if self.out.literals.len() >= MAX_LITERALS {
            return None;
        }
        self.copy_to(token.start as usize)?;
        self.out.text.push('?');
        self.copied = token.end as usize;
        self.out.literals.push(Literal { kind, start: token.start, end: token.end });
        Some(())
    }

    fn word(&mut self, word: Word) {
        let state = &mut self.state;
        state.interval = word == Word::Interval;
        state.folding = false;
        state.after_word = true;
        state.last_word = word;
        match word {
            Word::Select => state.region = Region::Items,
            Word::From if state.region == Region::Items => state.region = Region::Values,
            Word::By => state.region = Region::Kept,
            Word::Limit | Word::Having | Word::Update => state.region = Region::Values,
            Word::Between => state.between = true,
            Word::And if state.between => {
                state.between = false;
                state.last_word = Word::Other;
            }
            _ => {}
        }
    }
}

/// The words that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Word {
    #[default]
    Other,
    Select,
    Statement,
    From,
    By,
    Limit,
    Having,
    Values,
    Update,
    Between,
    And,
    Interval,
    /// A literal directly after it is more than a value, or is a condition to be folded.
    Holds,
    /// The beginning of a condition: as `Holds`, and parentheses after it contain values.
    Begins,
    /// An operator or the like: parentheses after it contain values.
    Operator,
}

/// A word of up to eight letters as a number.
const fn letters(word: &str) -> u64 {
    let bytes = word.as_bytes();
    let mut number = 0;
    let mut at = 0;
    while at < bytes.len() {
        number = number << 8 | (bytes[at] | 0x20) as u64;
        at += 1;
    }
    number
}

macro_rules! words {
    ($number:expr, $($meaning:expr => [$($word:literal),+]),+ $(,)?) => {
        match $number {
            $($(number if number == const { letters($word) } => $meaning,)+)+
            _ => Word::Other,
        }
    };
}

impl Word {
    fn of(text: &str, token: Token) -> Word {
        let word = &text.as_bytes()[token.start as usize..token.end as usize];
        if word[0] == b'_' {
            return Word::Holds;
        }
        let number = match word.len() {
            2..=8 => word.iter().fold(0, |number, byte| number << 8 | u64::from(byte | 0x20)),
            9 => return Word::of_nine(word),
            _ => return Word::Other,
        };
        words!(number,
            Word::Select => ["select"],
            Word::Statement => ["insert", "replace", "delete"],
            Word::Update => ["update"],
            Word::From => ["from"],
            Word::By => ["by"],
            Word::Limit => ["limit"],
            Word::Having => ["having"],
            Word::Values => ["values", "value"],
            Word::Between => ["between"],
            Word::And => ["and"],
            Word::Interval => ["interval"],
            Word::Holds => [
                "date", "time", "escape", "collate", "as", "rows", "range", "mod", "outfile",
                "dumpfile"
            ],
            Word::Begins => ["where", "or", "on", "not"],
            Word::Operator => [
                "in", "xor", "set", "like", "when", "then", "else", "case", "div", "all", "any",
                "some", "exists", "join", "regexp", "rlike", "is", "union", "using", "offset"
            ],
        )
    }

    fn of_nine(word: &[u8]) -> Word {
        let holds = [&b"separator"[..], b"timestamp"];
        match holds.iter().any(|held| word.eq_ignore_ascii_case(held)) {
            true => Word::Holds,
            false => Word::Other,
        }
    }

    fn begins_statement(self) -> bool {
        matches!(self, Word::Select | Word::Statement | Word::Update)
    }

    /// Whether parentheses after it contain values and not a function's arguments.
    fn opens_values(self) -> bool {
        !matches!(self, Word::Other | Word::Holds | Word::Interval | Word::Update | Word::Statement)
    }

    fn begins_condition(self) -> bool {
        matches!(self, Word::Begins | Word::And | Word::Having)
    }
}

pub(super) fn hex(written: &str) -> Vec<u8> {
    let digits = written[2..].trim_end_matches('\'').as_bytes();
    let value = |chunk: &[u8]| {
        chunk.iter().fold(0, |byte, digit| byte * 16 + char::from(*digit).to_digit(16).unwrap_or(0))
            as u8
    };
    let mut bytes: Vec<u8> = digits.rchunks(2).map(value).collect();
    bytes.reverse();
    bytes
}
