//! Text to tokens, by MySQL's rules.
//!
//! ```text
//!   SELECT /*!80000 a, */ 'it''s' -- why
//!   Word           Word , Text
//! ```
//!
//! A token is a kind and the range of its bytes; its content is read from the text when it is
//! needed. `/*! … */` is read as if the marks were blanks, unless its version is later than
//! [`VERSION`]. Other comments are blanks, except `/*+ … */` after a word that may have hints.
//! Inside quotes neither has a meaning. All bounds are character boundaries, because every byte
//! that is examined is ASCII, and other bytes only ever occur inside a longer token.

use std::borrow::Cow;

use firn_base::bytes::find_any;

use super::Mode;

/// The version whose `/*!` comments are executed.
pub(crate) const VERSION: u32 = 80_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An unquoted name or keyword.
    Word,
    /// A name in backquotes, or in double quotes under `ANSI_QUOTES`.
    Quoted,
    Text,
    /// `N'…'`.
    NationalText,
    /// Digits.
    Integer,
    /// Digits with a point.
    Decimal,
    /// Digits with an exponent.
    Float,
    /// `0x…` or `x'…'`.
    Hex,
    /// `0b…` or `b'…'`.
    Bits,
    /// `?`.
    Parameter,
    /// `@name`; also the host of an account.
    UserVariable,
    /// `@@`.
    AtAt,
    /// `/*+ … */`.
    Hint,
    /// `(`.
    LeftParen,
    /// `)`.
    RightParen,
    /// `,`.
    Comma,
    /// `.`.
    Dot,
    /// `;`.
    Semicolon,
    /// `*`.
    Star,
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `/`.
    Slash,
    /// `%`.
    Percent,
    /// `^`.
    Caret,
    /// `~`.
    Tilde,
    /// `!`.
    Bang,
    /// `&`.
    Ampersand,
    /// `|`.
    Pipe,
    /// `&&`.
    AndAnd,
    /// `||`.
    OrOr,
    /// `=`.
    Equal,
    /// `<=>`.
    NullSafeEqual,
    /// `<>` or `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// `:=`.
    Assign,
    /// `->`.
    Arrow,
    /// `->>`.
    LongArrow,
    /// `{`.
    LeftBrace,
    /// `}`.
    RightBrace,
    /// A byte that starts no token, or unterminated quotes or comments.
    Invalid,
    /// The end of the text.
    End,
}

/// A token: its kind and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Its first byte.
    pub(crate) start: u32,
    /// The byte after its last.
    pub(crate) end: u32,
}

/// Whether a byte may occur in an unquoted name.
pub(crate) const fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[byte as usize]
}

const NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        byte += 1;
    }
    table
};

/// Reads tokens from a text of less than 4 GiB.
pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    mode: Mode,
    in_version_comment: bool,
    last: Token,
    hint_may_follow: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, mode: Mode) -> Lexer<'a> {
        let last = Token { kind: Kind::Semicolon, start: 0, end: 0 };
        Lexer {
            bytes: text.as_bytes(),
            at: 0,
            mode,
            in_version_comment: false,
            last,
            hint_may_follow: false,
        }
    }

    /// The next token; after the end, always `End`.
    pub(crate) fn next(&mut self) -> Token {
        let token = self.skip_blanks().unwrap_or_else(|| self.token());
        self.hint_may_follow = token.kind == Kind::Word
            && matches!(token.end - token.start, 6 | 7)
            && self.begins_hints(token);
        self.last = token;
        token
    }

    fn begins_hints(&self, token: Token) -> bool {
        let word = &self.bytes[token.start as usize..token.end as usize];
        ["SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"]
            .iter()
            .any(|begin| word.eq_ignore_ascii_case(begin.as_bytes()))
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn made(&mut self, kind: Kind, start: usize, end: usize) -> Token {
        self.at = end;
        Token { kind, start: start as u32, end: end as u32 }
    }

    /// Skips blanks and comments; returns a token if a comment is one.
    fn skip_blanks(&mut self) -> Option<Token> {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.peek(1) == b'-' && is_blank_or_end(self.peek(2)) => self.skip_line(),
                b'/' if self.peek(1) == b'*' => {
                    if let Some(token) = self.comment() {
                        return Some(token);
                    }
                }
                b'*' if self.in_version_comment && self.peek(1) == b'/' => {
                    self.in_version_comment = false;
                    self.at += 2;
                }
                _ => return None,
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
            self.at += 1;
        }
    }

    fn comment(&mut self) -> Option<Token> {
        let start = self.at;
        if self.peek(2) == b'!' && !self.in_version_comment && self.enter_version_comment() {
            return None;
        }
        let Some(end) = find(self.bytes, b"*/", start + 2) else {
            return Some(self.made(Kind::Invalid, start, self.bytes.len()));
        };
        self.at = end + 2;
        let is_hint = self.bytes[start + 2] == b'+' && self.hint_may_follow;
        is_hint.then(|| self.made(Kind::Hint, start, end + 2))
    }

    /// Enters `/*!`, unless its version is later than this one's.
    fn enter_version_comment(&mut self) -> bool {
        let digits = self.bytes[self.at + 3..].iter().take(6).take_while(|b| b.is_ascii_digit());
        let digits = digits.count();
        let (taken, version) = match digits {
            0..=4 => (0, 0),
            _ => (digits, self.number_at(self.at + 3, digits)),
        };
        if version > VERSION {
            return false;
        }
        self.in_version_comment = true;
        self.at += 3 + taken;
        true
    }

    fn number_at(&self, at: usize, digits: usize) -> u32 {
        self.bytes[at..at + digits].iter().fold(0, |n, digit| n * 10 + u32::from(digit - b'0'))
    }

    fn token(&mut self) -> Token {
        let start = self.at;
        let Some(&byte) = self.bytes.get(start) else {
            return self.made(Kind::End, self.bytes.len(), self.bytes.len());
        };
        let after_dot = self.last.kind == Kind::Dot && self.last.end as usize == start;
        match byte {
            b'`' => self.quoted(start, start, Kind::Quoted),
            b'\'' => self.quoted(start, start, Kind::Text),
            b'"' if self.mode.ansi_quotes => self.quoted(start, start, Kind::Quoted),
            b'"' => self.quoted(start, start, Kind::Text),
            b'@' => self.at_sign(start),
            b'0'..=b'9' if !after_dot => self.number(start),
            b'.' if self.peek(1).is_ascii_digit() && !self.dot_joins_names() => self.number(start),
            _ if is_name_byte(byte) => self.word(start),
            _ => self.operator(start),
        }
    }

    /// Whether a point here is between names and not in a number.
    fn dot_joins_names(&self) -> bool {
        matches!(self.last.kind, Kind::Word | Kind::Quoted) && self.last.end as usize == self.at
    }

    fn word(&mut self, start: usize) -> Token {
        if self.peek(1) == b'\'' {
            let kind = match self.bytes[start] {
                b'x' | b'X' => Some(Kind::Hex),
                b'b' | b'B' => Some(Kind::Bits),
                b'n' | b'N' => Some(Kind::NationalText),
                _ => None,
            };
            if let Some(kind) = kind {
                return self.quoted(start, start + 1, kind);
            }
        }
        let end = self.name_end(start);
        self.made(Kind::Word, start, end)
    }

    fn name_end(&self, start: usize) -> usize {
        let rest = &self.bytes[start..];
        start + rest.iter().position(|&byte| !is_name_byte(byte)).unwrap_or(rest.len())
    }

    /// A token from `start` whose quotes begin at `open`.
    fn quoted(&mut self, start: usize, open: usize, kind: Kind) -> Token {
        let escapes = !matches!(kind, Kind::Quoted) && !self.mode.no_backslash_escapes;
        let (end, closed) = quoted_end(self.bytes, open, escapes);
        let valid = closed && digits_fit(kind, self.bytes, open, end);
        self.made(if valid { kind } else { Kind::Invalid }, start, end)
    }

    fn at_sign(&mut self, start: usize) -> Token {
        match self.peek(1) {
            b'@' => self.made(Kind::AtAt, start, start + 2),
            b'`' => self.quoted(start, start + 1, Kind::Quoted).with(Kind::UserVariable),
            b'\'' | b'"' => self.quoted(start, start + 1, Kind::Text).with(Kind::UserVariable),
            _ => {
                let rest = &self.bytes[start + 1..];
                let length = rest.iter().position(|&byte| !is_name_byte(byte) && byte != b'.');
                let end = start + 1 + length.unwrap_or(rest.len());
                self.made(Kind::UserVariable, start, end)
            }
        }
    }

    fn number(&mut self, start: usize) -> Token {
        if let Some(token) = self.prefixed_number(start) {
            return token;
        }
        let mut end = self.digits_end(start);
        let mut kind = Kind::Integer;
        if self.bytes.get(end).is_some_and(|&byte| is_name_byte(byte)) && end > start {
            if let Some(exponent) = self.exponent_end(end) {
                return self.made(Kind::Float, start, exponent);
            }
            let end = self.name_end(start);
            return self.made(Kind::Word, start, end);
        }
        if self.bytes.get(end) == Some(&b'.') {
            kind = Kind::Decimal;
            end = self.digits_end(end + 1);
            if let Some(exponent) = self.exponent_end(end) {
                (kind, end) = (Kind::Float, exponent);
            }
        }
        self.made(kind, start, end)
    }

    fn digits_end(&self, start: usize) -> usize {
        let rest = &self.bytes[start..];
        start + rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())
    }

    fn exponent_end(&self, at: usize) -> Option<usize> {
        let mark = *self.bytes.get(at)?;
        let sign = matches!(self.bytes.get(at + 1), Some(b'+' | b'-')) as usize;
        let end = self.digits_end((at + 1 + sign).min(self.bytes.len()));
        let whole = matches!(mark, b'e' | b'E') && end > at + 1 + sign;
        // `1e5x` is a name, while `1e5` alone would be a number.
        let ends = sign == 1 || !self.bytes.get(end).is_some_and(|&byte| is_name_byte(byte));
        (whole && ends).then_some(end)
    }

    /// `0x…` and `0b…`; followed by any other letter, they are names.
    fn prefixed_number(&mut self, start: usize) -> Option<Token> {
        let (kind, is_digit): (Kind, fn(&u8) -> bool) = match (self.bytes[start], self.peek(1)) {
            (b'0', b'x') => (Kind::Hex, u8::is_ascii_hexdigit),
            (b'0', b'b') => (Kind::Bits, |byte| matches!(byte, b'0' | b'1')),
            _ => return None,
        };
        let end = self.name_end(start);
        let digits = &self.bytes[start + 2..end];
        (!digits.is_empty() && digits.iter().all(is_digit)).then(|| self.made(kind, start, end))
    }

    fn operator(&mut self, start: usize) -> Token {
        let (kind, length) = operator(self.peek(0), self.peek(1), self.peek(2));
        self.made(kind, start, start + length)
    }
}

impl Token {
    fn with(self, kind: Kind) -> Token {
        if self.kind == Kind::Invalid { self } else { Token { kind, ..self } }
    }
}

/// The operator that begins with these bytes, and its length.
fn operator(first: u8, second: u8, third: u8) -> (Kind, usize) {
    match (first, second, third) {
        (b'<', b'=', b'>') => (Kind::NullSafeEqual, 3),
        (b'-', b'>', b'>') => (Kind::LongArrow, 3),
        (b'<', b'=', _) => (Kind::LessEqual, 2),
        (b'<', b'>', _) | (b'!', b'=', _) => (Kind::NotEqual, 2),
        (b'<', b'<', _) => (Kind::ShiftLeft, 2),
        (b'>', b'=', _) => (Kind::GreaterEqual, 2),
        (b'>', b'>', _) => (Kind::ShiftRight, 2),
        (b'-', b'>', _) => (Kind::Arrow, 2),
        (b'&', b'&', _) => (Kind::AndAnd, 2),
        (b'|', b'|', _) => (Kind::OrOr, 2),
        (b':', b'=', _) => (Kind::Assign, 2),
        _ => (single(first), 1),
    }
}

fn single(byte: u8) -> Kind {
    match byte {
        b'(' => Kind::LeftParen,
        b')' => Kind::RightParen,
        b',' => Kind::Comma,
        b'.' => Kind::Dot,
        b';' => Kind::Semicolon,
        b'*' => Kind::Star,
        b'+' => Kind::Plus,
        b'-' => Kind::Minus,
        b'/' => Kind::Slash,
        b'%' => Kind::Percent,
        b'^' => Kind::Caret,
        b'~' => Kind::Tilde,
        b'!' => Kind::Bang,
        b'&' => Kind::Ampersand,
        b'|' => Kind::Pipe,
        b'=' => Kind::Equal,
        b'<' => Kind::Less,
        b'>' => Kind::Greater,
        b'?' => Kind::Parameter,
        b'{' => Kind::LeftBrace,
        b'}' => Kind::RightBrace,
        _ => Kind::Invalid,
    }
}

fn is_blank_or_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_control()
}

/// The byte after the quotes that open at `open`, and whether they close.
pub(crate) fn quoted_end(bytes: &[u8], open: usize, escapes: bool) -> (usize, bool) {
    let quote = bytes[open];
    let escape = if escapes { b'\\' } else { quote };
    let mut at = open + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(found) = find_any(rest, [quote, escape]) else { return (bytes.len(), false) };
        at += found;
        if bytes[at] == quote && bytes.get(at + 1) != Some(&quote) {
            return (at + 1, true);
        }
        at += 2;
    }
}

/// Whether the content of `x'…'` or `b'…'` is valid digits.
fn digits_fit(kind: Kind, bytes: &[u8], open: usize, end: usize) -> bool {
    let inner = &bytes[open + 1..end - 1];
    match kind {
        Kind::Hex => inner.len().is_multiple_of(2) && inner.iter().all(u8::is_ascii_hexdigit),
        Kind::Bits => inner.iter().all(|digit| matches!(digit, b'0' | b'1')),
        Kind::Quoted => !inner.contains(&0),
        _ => true,
    }
}

fn find(bytes: &[u8], what: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(what.len()).position(|window| window == what).map(|at| from + at)
}

/// The content of quotes: without them, doubled quotes made single, escapes resolved.
pub(crate) fn unquote(text: &str, escapes: bool) -> String {
    unquoted(text, escapes).into_owned()
}

/// As [`unquote`], without a copy if nothing is escaped.
pub(crate) fn unquoted(text: &str, escapes: bool) -> Cow<'_, str> {
    let quote = text.as_bytes()[0] as char;
    let inner = &text[1..text.len() - 1];
    if !inner.contains(quote) && (!escapes || !inner.contains('\\')) {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            chars.next();
            out.push(quote);
        } else if c == '\\' && escapes {
            if let Some(escaped) = chars.next() {
                unescape(escaped, &mut out);
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// `\%` and `\_` stay unchanged, since `LIKE` reads them.
fn unescape(escaped: char, out: &mut String) {
    match escaped {
        'n' => out.push('\n'),
        't' => out.push('\t'),
        'r' => out.push('\r'),
        '0' => out.push('\0'),
        'b' => out.push('\u{8}'),
        'Z' => out.push('\u{1a}'),
        '%' | '_' => out.extend(['\\', escaped]),
        _ => out.push(escaped),
    }
}
