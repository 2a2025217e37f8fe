//! JSON text to values, with the messages of RapidJSON, which MySQL includes in its error 3140.

use firn_base::memory::{self, NoRoom};

use super::{JsonObject, JsonValue};

/// The deepest nesting that is accepted.
pub const MAX_DEPTH: usize = 100;

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonError {
    Syntax {
        /// What was wrong, such as `Invalid value.`
        message: &'static str,
        /// Bytes before the error.
        position: usize,
    },
    /// It is nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The memory budget has no room for it.
    NoRoom(NoRoom),
}

impl JsonValue {
    /// The value of a text in UTF-8.
    ///
    /// # Errors
    /// [`JsonError`]
    pub fn parse(text: &str) -> Result<JsonValue, JsonError> {
        let _promise = memory::ask(size_estimate(text)).map_err(JsonError::NoRoom)?;
        let mut parser = Parser { text, at: 0 };
        parser.skip_space();
        if parser.peek().is_none() {
            return parser.fail("The document is empty.");
        }
        let value = parser.value(1)?;
        parser.skip_space();
        if parser.peek().is_some() {
            return parser.fail("The document root must not be followed by other values.");
        }
        Ok(value)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn fail<T>(&self, message: &'static str) -> Result<T, JsonError> {
        Err(JsonError::Syntax { message, position: self.at })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<JsonValue, JsonError> {
        if depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(JsonValue::String(self.string()?.into())),
            Some(b'n') => self.word("null", JsonValue::Null),
            Some(b't') => self.word("true", JsonValue::Bool(true)),
            Some(b'f') => self.word("false", JsonValue::Bool(false)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail("Invalid value."),
        }
    }

    fn word(&mut self, word: &str, value: JsonValue) -> Result<JsonValue, JsonError> {
        let same = self.text.as_bytes()[self.at..].iter().zip(word.bytes());
        let same = same.take_while(|&(&a, b)| a == b).count();
        self.at += same;
        if same == word.len() { Ok(value) } else { self.fail("Invalid value.") }
    }

    fn array(&mut self, depth: usize) -> Result<JsonValue, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(JsonValue::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(JsonValue::Array(items));
            }
            if !self.take(b',') {
                return self.fail("Missing a comma or ] after an array element.");
            }
            self.skip_space();
        }
    }

    fn object(&mut self, depth: usize) -> Result<JsonValue, JsonError> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(JsonValue::Object(JsonObject::new()));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("Missing a name for object member.");
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return self.fail("Missing a colon after a name of object member.");
            }
            self.skip_space();
            members.push((key.into_boxed_str(), self.value(depth + 1)?));
            self.skip_space();
            if self.take(b'}') {
                return Ok(JsonValue::Object(members.into_iter().collect()));
            }
            if !self.take(b',') {
                return self.fail("Missing a comma or } after an object member.");
            }
            self.skip_space();
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain =
                rest.bytes().take_while(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
            let plain = plain.count();
            text.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return self.fail("Invalid encoding in string."),
                None => {
                    self.at = start;
                    return self.fail("Missing a closing quotation mark in string.");
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let escaped = self.peek();
        self.at += 1;
        let character = match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            _ => {
                self.at = start;
                return self.fail("Invalid escape character in string.");
            }
        };
        Ok(character)
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, JsonError> {
        const SURROGATE: &str = "The surrogate pair in string is invalid.";
        let high = self.hex_digits(start)?;
        let code = if (0xd800..0xdc00).contains(&high) {
            if !(self.take(b'\\') && self.take(b'u')) {
                self.at = start;
                return self.fail(SURROGATE);
            }
            let low = self.hex_digits(start)?;
            match low {
                0xdc00..0xe000 => 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00),
                _ => u32::MAX,
            }
        } else {
            high
        };
        char::from_u32(code).map_or_else(
            || {
                self.at = start;
                self.fail(SURROGATE)
            },
            Ok,
        )
    }

    fn hex_digits(&mut self, start: usize) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or(&[]);
        let digit = |&byte: &u8| char::from(byte).to_digit(16);
        let code = digits.iter().map(digit).try_fold(0, |code, digit| Some(code << 4 | digit?));
        match code.filter(|_| !digits.is_empty()) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => {
                self.at = start;
                self.fail("Incorrect hex digit after \\u escape in string.")
            }
        }
    }

    fn number(&mut self) -> Result<JsonValue, JsonError> {
        let start = self.at;
        self.take(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return self.fail("Invalid value."),
        }
        let mut whole = true;
        if self.take(b'.') {
            whole = false;
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return self.fail("Miss fraction part in number.");
            }
            self.skip_digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            if !self.take(b'-') {
                self.take(b'+');
            }
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return self.fail("Miss exponent in number.");
            }
            self.skip_digits();
        }
        let text = &self.text[start..self.at];
        if whole && let Some(value) = whole_number(text) {
            return Ok(value);
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(JsonValue::Double(number)),
            _ => {
                self.at = start;
                self.fail("Number too big to be stored in double.")
            }
        }
    }

    fn skip_digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }
}

/// `-0`, and numbers that fit no integer, are doubles.
fn whole_number(text: &str) -> Option<JsonValue> {
    let signed = text.parse().ok().map(JsonValue::Int);
    signed.or_else(|| text.parse().ok().map(JsonValue::UInt))
}

/// Approximate memory of a long text's value: its strings, and a slot for each item.
fn size_estimate(text: &str) -> usize {
    if text.len() < memory::UNASKED_BYTES / size_of::<JsonValue>() {
        return 0;
    }
    let ends = text.bytes().filter(|byte| matches!(byte, b',' | b']' | b'}' | b':')).count();
    text.len() + ends * size_of::<JsonValue>()
}
