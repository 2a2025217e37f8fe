//! `SET_VAR` hints: variables that have another value while a statement runs.
//!
//! ```text
//!   SELECT /*+ SET_VAR(sort_buffer_size = 16M) NO_MERGE(v) SET_VAR(sql_mode = 'ANSI') */ …
//!              name: sort_buffer_size, Number 2^24         name: sql_mode, Text ANSI
//! ```
//!
//! They may stand among the hints of any block, and hold for the whole statement. What stands
//! before a hint that cannot be read counts; what stands behind it in the same comment does not.

use super::Mode;
use super::lexer::{Kind, Lexer};

/// The most characters of a text that a warning shows.
const SHOWN_CHARS: usize = 80;

/// One hint, or a place where there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum VariableHint<'a> {
    /// A variable, its value, and the value as it is written.
    Set { name: &'a str, value: HintedValue, written: &'a str },
    /// The rest of a statement that begins with what cannot be read, and the line.
    Unreadable { near: String, line: usize },
}

#[derive(Debug, Clone, PartialEq)]
pub enum HintedValue {
    Number(u64),
    Real(f64),
    /// A word, or a text in quotes.
    Text(String),
}

/// The hints of a statement, in order.
#[must_use]
pub fn variable_hints(text: &str, mode: Mode) -> Vec<VariableHint<'_>> {
    let mut found = Vec::new();
    if u32::try_from(text.len()).is_err() {
        return found;
    }
    let mut lexer = Lexer::new(text, mode);
    loop {
        let token = lexer.next();
        match token.kind {
            Kind::End | Kind::Invalid | Kind::Semicolon => return found,
            Kind::Hint => {
                let (begin, end) = (token.start as usize + "/*+".len(), token.end as usize - 2);
                Comment { text, at: begin, end }.read(&mut found);
            }
            _ => {}
        }
    }
}

/// The content of a comment with hints.
struct Comment<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Comment<'a> {
    fn read(mut self, found: &mut Vec<VariableHint<'a>>) {
        let mut has_variable = false;
        loop {
            self.skip_blanks();
            let Some(name) = self.word() else { break };
            if name.eq_ignore_ascii_case("SET_VAR") {
                has_variable = true;
                match self.variable() {
                    Some(hint) => found.push(hint),
                    None => break,
                }
            } else if self.take(b'(') {
                self.skip_arguments();
            }
        }
        if has_variable && self.at < self.end {
            found.push(self.unreadable());
        }
    }

    /// `(name = value)`. Otherwise it stays before what does not belong there.
    fn variable(&mut self) -> Option<VariableHint<'a>> {
        let is_open = self.take(b'(');
        let name = if is_open { self.name()? } else { return None };
        if !self.take(b'=') {
            return None;
        }
        self.skip_blanks();
        let begin = self.at;
        let value = self.value()?;
        let written = &self.text[begin..self.at];
        self.take(b')').then_some(VariableHint::Set { name, value, written })
    }

    fn name(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let (begin, text) = (self.at, self.text);
        if self.peek() != Some(b'`') {
            return self.word();
        }
        let length = self.rest()[1..].find('`')?;
        self.at = begin + length + 2;
        Some(&text[begin + 1..=begin + length])
    }

    fn value(&mut self) -> Option<HintedValue> {
        match self.peek()? {
            quote @ (b'\'' | b'"') => self.quoted(char::from(quote)).map(HintedValue::Text),
            _ => self.word().map(plain_value),
        }
    }

    /// A text in quotes, which are doubled in it. An empty one is no value.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut value = String::new();
        let mut characters = self.rest().char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if character != quote {
                value.push(character);
            } else if characters.next_if(|(_, next)| *next == quote).is_some() {
                value.push(quote);
            } else if value.is_empty() {
                return None;
            } else {
                self.at += at + 1;
                return Some(value);
            }
        }
        None
    }

    /// A word or a number.
    fn word(&mut self) -> Option<&'a str> {
        let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
        let (begin, text) = (self.at, self.text);
        let length = self.rest().find(|c| !belongs(c)).unwrap_or(self.end - begin);
        self.at = begin + length;
        (length > 0).then(|| &text[begin..begin + length])
    }

    fn skip_arguments(&mut self) {
        self.at = self.rest().find(')').map_or(self.end, |length| self.at + length + 1);
    }

    fn take(&mut self, wanted: u8) -> bool {
        self.skip_blanks();
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&self) -> Option<u8> {
        self.rest().as_bytes().first().copied()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..self.end]
    }

    fn unreadable(&self) -> VariableHint<'a> {
        let (before, rest) = self.text.split_at(self.at);
        let near = rest.chars().take(SHOWN_CHARS).collect();
        VariableHint::Unreadable { near, line: 1 + before.matches('\n').count() }
    }
}

/// A number, with `K`, `M` or `G` behind it or not, or a word.
fn plain_value(word: &str) -> HintedValue {
    let (digits, factor) = match word.as_bytes().last() {
        Some(b'K') => (&word[..word.len() - 1], 1 << 10),
        Some(b'M') => (&word[..word.len() - 1], 1 << 20),
        Some(b'G') => (&word[..word.len() - 1], 1 << 30),
        _ => (word, 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let begins_with_digit = word.as_bytes()[0].is_ascii_digit();
    match number.filter(|_| begins_with_digit) {
        Some(number) => HintedValue::Number(number),
        None if begins_with_digit => match word.parse() {
            Ok(real) => HintedValue::Real(real),
            Err(_) => HintedValue::Text(word.to_owned()),
        },
        None => HintedValue::Text(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn shown(text: &str) -> String {
        let hints = variable_hints(text, Mode::default());
        let shown = hints.iter().map(|hint| match hint {
            VariableHint::Set { name, value, written } => format!("{name} = {value:?} ({written})"),
            VariableHint::Unreadable { near, line } => format!("? {near:?} in line {line}"),
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn values_are_numbers_words_and_texts() {
        let text = "INSERT /*+ SET_VAR(a=16M) BKA(t, u) set_var( `b c` = 'it''s' )SET_VAR(c=1.5) */ \
                    INTO t SELECT /*+ SET_VAR(d=ON) SET_VAR(e=1k) SET_VAR(f=\"x)\") */ 1";
        expect![[r#"
            a = Number(16777216) (16M)
            b c = Text("it's") ('it''s')
            c = Real(1.5) (1.5)
            d = Text("ON") (ON)
            e = Text("1k") (1k)
            f = Text("x)") ("x)")"#]]
        .assert_eq(&shown(text));
    }

    #[test]
    fn what_follows_an_unreadable_hint_in_its_comment_does_not_count() {
        for (text, expected) in [
            (
                "SELECT /*+ SET_VAR(a=1) SET_VAR(b 2) SET_VAR(c=3) */ 1",
                "a = Number(1) (1)\n? \"2) SET_VAR(c=3) */ 1\" in line 1",
            ),
            ("SELECT /*+\n SET_VAR(a=)\n */ 1", "? \")\\n */ 1\" in line 2"),
            ("SELECT /*+ SET_VAR(a=1, b=2) */ 1", "? \", b=2) */ 1\" in line 1"),
            ("SELECT /*+ SET_VAR(a='') */ 1", "? \"'') */ 1\" in line 1"),
            ("SELECT /*+ SET_VAR(a=-1) */ 1", "? \"-1) */ 1\" in line 1"),
            ("SELECT /*+ SET_VAR(a='x) */ 1", "? \"'x) */ 1\" in line 1"),
            ("SELECT /*+ SET_VAR */ 1", ""),
            ("SELECT /*+ BKA(t), SET_VAR(a=1) */ 1", ""),
            ("SELECT 1 /*+ SET_VAR(a=1) */, '/*+ SET_VAR(a=1) */'", ""),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
