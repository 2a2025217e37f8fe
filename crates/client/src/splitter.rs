//! Splits a text that arrives in pieces into statements.
//!
//! ```text
//!   push("SELECT ';'")  next() = None
//!   push("\\G DO 1;")   next() = "SELECT ';'", vertically     next() = " DO 1"     next() = None
//! ```
//!
//! A delimiter (`;` until it is changed) ends a statement unless it stands in quotes or in a
//! comment; so does `\G`, which asks for a vertical answer, and `\g`. Texts are bytes: quoted parts
//! may be in any character set. Each byte is examined once, wherever the text is cut. The server
//! splits texts of several statements with its own lexer, which knows neither these commands nor
//! other delimiters.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The delimiter, `\g`, or the end of the text.
    Plain,
    /// `\G`.
    Vertical,
}

/// A statement without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) text: Vec<u8>,
    pub(crate) ending: Ending,
    /// The line of its first word, counted from 1.
    pub(crate) line: usize,
}

/// What the current byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    Quoted(u8),
    LineComment,
    BlockComment,
}

/// Collects text and returns whole statements.
#[derive(Debug)]
pub(crate) struct Splitter {
    delimiter: Vec<u8>,
    buffer: Vec<u8>,
    /// How far the buffer has been examined.
    at: usize,
    state: State,
    /// The line of the buffer's first byte.
    line: usize,
}

impl Default for Splitter {
    fn default() -> Splitter {
        Splitter {
            delimiter: b";".to_vec(),
            buffer: Vec::new(),
            at: 0,
            state: State::Plain,
            line: 1,
        }
    }
}

impl Splitter {
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(text);
    }

    /// Changes the delimiter for the text that follows; an empty one changes nothing.
    pub(crate) fn set_delimiter(&mut self, delimiter: &str) {
        if !delimiter.is_empty() {
            self.delimiter = delimiter.as_bytes().to_vec();
        }
    }

    pub(crate) fn delimiter(&self) -> String {
        String::from_utf8_lossy(&self.delimiter).into_owned()
    }

    /// Whether no statement has begun, so that a line can be a command of the client.
    pub(crate) fn is_between_statements(&self) -> bool {
        self.state == State::Plain && self.buffer.trim_ascii().is_empty()
    }

    /// Drops the statement that has begun.
    pub(crate) fn clear(&mut self) {
        self.consume(self.buffer.len());
        self.state = State::Plain;
    }

    /// The next whole statement.
    pub(crate) fn next(&mut self) -> Option<Statement> {
        while self.at < self.buffer.len() {
            let rest = &self.buffer[self.at..];
            if self.state == State::Plain {
                if rest.starts_with(&self.delimiter) {
                    return Some(self.cut(self.delimiter.len(), Ending::Plain));
                }
                match rest {
                    [b'\\', b'G', ..] => return Some(self.cut(2, Ending::Vertical)),
                    [b'\\', b'g', ..] => return Some(self.cut(2, Ending::Plain)),
                    _ => {}
                }
                if self.delimiter.len() > rest.len() && self.delimiter.starts_with(rest) {
                    return None;
                }
            }
            if self.needs_more() {
                return None;
            }
            self.step();
        }
        None
    }

    /// Whether the meaning of the next bytes depends on the next piece.
    fn needs_more(&self) -> bool {
        let rest = &self.buffer[self.at..];
        match self.state {
            State::Plain => matches!(rest, [b'\\' | b'-' | b'/'] | [b'-', b'-']),
            State::Quoted(_) => matches!(rest, [b'\\']),
            State::BlockComment => matches!(rest, [b'*']),
            State::LineComment => false,
        }
    }

    /// The rest of the text at its end, unless it is only blanks and comments.
    pub(crate) fn finish(&mut self) -> Option<Statement> {
        let is_comment = matches!(self.state, State::LineComment);
        let has_words = !without_comments(&self.buffer).trim_ascii().is_empty();
        if !has_words && (self.state == State::Plain || is_comment) {
            self.clear();
            return None;
        }
        self.at = self.buffer.len();
        self.state = State::Plain;
        Some(self.cut(0, Ending::Plain))
    }

    /// Consumes the next byte, or the next few that belong together.
    fn step(&mut self) {
        let rest = &self.buffer[self.at..];
        let (state, length) = match (self.state, rest) {
            (State::Plain, [quote @ (b'\'' | b'"' | b'`'), ..]) => (State::Quoted(*quote), 1),
            (State::Plain, [b'#', ..]) => (State::LineComment, 1),
            (State::Plain, [b'-', b'-', space, ..]) if space.is_ascii_whitespace() => {
                (State::LineComment, 2)
            }
            (State::Plain, [b'/', b'*', ..]) => (State::BlockComment, 2),
            (State::Quoted(b'\'' | b'"'), [b'\\', _, ..]) => (self.state, 2),
            (State::Quoted(quote), [byte, ..]) if *byte == quote => (State::Plain, 1),
            (State::LineComment, [b'\n', ..]) => (State::Plain, 1),
            (State::BlockComment, [b'*', b'/', ..]) => (State::Plain, 2),
            (state, _) => (state, 1),
        };
        self.state = state;
        self.at += length;
    }

    /// Cuts off a statement that ends at the current byte.
    fn cut(&mut self, ending_length: usize, ending: Ending) -> Statement {
        let whole = &self.buffer[..self.at];
        let text = whole.trim_ascii();
        let blank = whole.len() - whole.trim_ascii_start().len();
        let line = self.line + count_lines(&whole[..blank]);
        let statement = Statement { text: text.to_vec(), ending, line };
        self.consume(self.at + ending_length);
        statement
    }

    fn consume(&mut self, length: usize) {
        self.line += count_lines(&self.buffer[..length]);
        self.buffer.drain(..length);
        self.at = 0;
    }
}

fn count_lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// A text without `-- …`, `# …` and `/* … */`. `/*! … */` stays, because servers run it.
pub(crate) fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut splitter = Splitter { delimiter: Vec::new(), ..Splitter::default() };
    splitter.push(text);
    let mut kept = Vec::with_capacity(text.len());
    while splitter.at < text.len() {
        let (from, before) = (splitter.at, splitter.state);
        let is_run = text[from..].starts_with(b"/*!");
        splitter.step();
        let is_comment = |state| matches!(state, State::LineComment | State::BlockComment);
        match (before, splitter.state) {
            (before, _) if is_comment(before) => {}
            (_, State::BlockComment) if is_run => {
                kept.extend_from_slice(b"/*!");
            }
            (_, after) if is_comment(after) => kept.push(b' '),
            _ => kept.extend_from_slice(&text[from..splitter.at.min(text.len())]),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(pieces: &[&str]) -> Vec<(String, Ending)> {
        let mut splitter = Splitter::default();
        let mut found = Vec::new();
        for piece in pieces {
            splitter.push(piece.as_bytes());
            while let Some(statement) = splitter.next() {
                found.push((String::from_utf8(statement.text).unwrap(), statement.ending));
            }
        }
        found.extend(
            splitter.finish().map(|one| (String::from_utf8(one.text).unwrap(), one.ending)),
        );
        found
    }

    fn texts(text: &str) -> Vec<String> {
        statements(&[text]).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn delimiters_in_quotes_and_comments_end_nothing() {
        let text = "SELECT ';', \"a\\\";\", `b;`; -- c;\n# d;\nDO 1 /* ; */;";
        assert_eq!(texts(text), ["SELECT ';', \"a\\\";\", `b;`", "-- c;\n# d;\nDO 1 /* ; */"]);
    }

    #[test]
    fn a_backslash_outside_quotes_ends_as_it_asks() {
        let found = statements(&["SELECT 1\\G SELECT 2\\g SELECT '\\G'"]);
        assert_eq!(
            found,
            [
                ("SELECT 1".to_owned(), Ending::Vertical),
                ("SELECT 2".to_owned(), Ending::Plain),
                ("SELECT '\\G'".to_owned(), Ending::Plain)
            ]
        );
    }

    #[test]
    fn pieces_are_joined_wherever_they_are_cut() {
        let text = "SELECT 'a\\'; b' -- x;\n, 2; /* y; */ DO 3\\G\nSELECT 4";
        let whole = statements(&[text]);
        for cut in 0..text.len() {
            assert_eq!(statements(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn another_delimiter_leaves_semicolons_alone() {
        let mut splitter = Splitter::default();
        splitter.set_delimiter("//");
        splitter.push(b"CREATE PROCEDURE p() BEGIN DO 1; END //\nDO 2");
        let first = splitter.next().unwrap();
        assert_eq!(first.text, b"CREATE PROCEDURE p() BEGIN DO 1; END");
        let last = splitter.finish().unwrap();
        assert_eq!((last.text.as_slice(), last.line), (b"DO 2".as_slice(), 2));
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert_eq!(texts("-- nothing\n/* here */\n"), Vec::<String>::new());
        assert_eq!(texts("/*!40101 SET NAMES utf8 */"), ["/*!40101 SET NAMES utf8 */"]);
    }
}
