//! Text files split into lines and fields, in the format of `LOAD DATA`.
//!
//! ```text
//!   1\t"a, b"\t\N\n      fields terminated by \t, optionally enclosed by ", escaped by \
//!   Some("1") Some("a, b") None
//! ```
//!
//! Invariant: a field is at most as long as the reader's limit; a longer one is an error and takes
//! no memory.

use std::io::{self, BufRead};

use firn_base::bytes::find_any;
use firn_sql::grammar::ast::FileFormat;

/// Reads lines of fields.
pub(super) struct FieldReader<R> {
    input: R,
    format: Marks,
    longest_field_bytes: usize,
}

/// The marks of a format, as bytes.
struct Marks {
    field_end: Vec<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
    enclosure: Option<u8>,
    escape: Option<u8>,
    /// The bytes of each field, if neither marks nor enclosures tell where it ends.
    widths: Option<Vec<usize>>,
    /// Bytes at which a field without an enclosure may end or change its meaning; `None`: there are
    /// no such bytes.
    stops: Option<Stops>,
    /// The same within an enclosure.
    enclosed_stops: Option<Stops>,
}

/// A set of bytes.
type Stops = [u8; 3];

fn stops(bytes: [Option<u8>; 3]) -> Option<Stops> {
    let any = bytes.into_iter().flatten().next()?;
    Some(bytes.map(|byte| byte.unwrap_or(any)))
}

/// The fields of a line, in one piece of memory that the next line reuses.
#[derive(Debug, Default)]
pub(super) struct Line {
    bytes: Vec<u8>,
    fields: Vec<FieldEnd>,
}

#[derive(Debug, Clone, Copy)]
struct FieldEnd {
    end: usize,
    is_null: bool,
}

impl Line {
    /// How many fields there are.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field; `None` is NULL, or after the last field.
    pub(super) fn field(&self, number: usize) -> Option<&[u8]> {
        let field = self.fields.get(number).filter(|field| !field.is_null)?;
        let start = number.checked_sub(1).map_or(0, |before| self.fields[before].end);
        Some(&self.bytes[start..field.end])
    }

    pub(super) fn push(&mut self, field: Option<&[u8]>) {
        self.bytes.extend_from_slice(field.unwrap_or_default());
        self.end_field(field.is_none());
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    /// Cuts the only field into fields of these widths; what is behind them is another one.
    fn cut(&mut self, widths: &[usize]) {
        self.fields.clear();
        let mut end = 0;
        for width in widths.iter().copied().chain([usize::MAX]) {
            if end == self.bytes.len() {
                return;
            }
            end = end.saturating_add(width).min(self.bytes.len());
            self.fields.push(FieldEnd { end, is_null: false });
        }
    }

    fn start(&self) -> usize {
        self.fields.last().map_or(0, |field| field.end)
    }

    fn end_field(&mut self, is_null: bool) {
        if is_null {
            let start = self.start();
            self.bytes.truncate(start);
        }
        self.fields.push(FieldEnd { end: self.bytes.len(), is_null });
    }
}

/// How a field ended.
enum End {
    Field,
    Line,
    File,
}

/// Whether fields have the widths of their columns, and nothing between them.
pub(super) fn has_fixed_widths(format: &FileFormat) -> bool {
    format.fields_terminated_by.is_empty() && format.enclosed_by.is_empty()
}

impl<R: BufRead> FieldReader<R> {
    /// Reads fields of this format. `widths` are the bytes of each field if it has no marks.
    pub(super) fn new(
        input: R,
        format: &FileFormat,
        widths: &[usize],
        longest_field_bytes: usize,
    ) -> FieldReader<R> {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let last = |text: &str| text.bytes().next_back();
        let enclosure = format.enclosed_by.bytes().next();
        let escape = format.escaped_by.bytes().next();
        let field_end = last(&format.fields_terminated_by);
        let line_end = last(&format.lines_terminated_by);
        FieldReader {
            input,
            format: Marks {
                field_end: bytes(&format.fields_terminated_by),
                line_start: bytes(&format.lines_starting_by),
                line_end: bytes(&format.lines_terminated_by),
                enclosure,
                escape,
                widths: has_fixed_widths(format).then(|| widths.to_vec()),
                stops: stops([field_end, line_end, escape]),
                enclosed_stops: stops([enclosure, escape, None]),
            },
            longest_field_bytes,
        }
    }

    /// The fields of the next line; false at the end of the file.
    pub(super) fn read_line(&mut self, line: &mut Line) -> io::Result<bool> {
        line.clear();
        if !self.skip_line_start()? || self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        while let End::Field = self.read_field(line)? {}
        if let Some(widths) = &self.format.widths {
            line.cut(widths);
        }
        Ok(true)
    }

    /// Reads past the mark that begins a line; false if there is none any more.
    fn skip_line_start(&mut self) -> io::Result<bool> {
        if self.format.line_start.is_empty() {
            return Ok(true);
        }
        let mut matched = 0;
        while matched < self.format.line_start.len() {
            let Some(byte) = self.next_byte()? else { return Ok(false) };
            let wanted = &self.format.line_start;
            matched = match byte {
                byte if byte == wanted[matched] => matched + 1,
                byte => usize::from(byte == wanted[0]),
            };
        }
        Ok(true)
    }

    fn next_byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.input.fill_buf()?.first().copied();
        if byte.is_some() {
            self.input.consume(1);
        }
        Ok(byte)
    }

    /// Copies the bytes before the next of `stops`; false at the end of the file.
    fn read_run(&mut self, enclosed: bool, into: &mut Vec<u8>) -> io::Result<bool> {
        let stops = if enclosed { self.format.enclosed_stops } else { self.format.stops };
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(false);
            }
            let run = stops.and_then(|stops| find_any(chunk, stops));
            let length = run.unwrap_or(chunk.len());
            into.extend_from_slice(&chunk[..length]);
            self.input.consume(length);
            if run.is_some() || into.len() > self.longest_field_bytes {
                return Ok(true);
            }
        }
    }

    fn read_field(&mut self, line: &mut Line) -> io::Result<End> {
        let is_enclosed = self.format.enclosure.is_some()
            && self.input.fill_buf()?.first().copied() == self.format.enclosure;
        if is_enclosed {
            self.input.consume(1);
            return self.read_enclosed(line);
        }
        let start = line.start();
        let mut is_null = false;
        let end = loop {
            let goes_on = self.read_run(false, &mut line.bytes)?;
            self.check_length(line)?;
            let next = if goes_on { self.next_byte()? } else { None };
            let Some(byte) = next else { break End::File };
            if Some(byte) == self.format.escape {
                is_null |= self.read_escaped(&mut line.bytes)?;
                continue;
            }
            line.bytes.push(byte);
            if self.ends_line_after_field(line, start) {
                line.bytes.truncate(start);
                return Ok(End::Line);
            }
            if let Some(end) = self.ending(&mut line.bytes, start) {
                break end;
            }
        };
        // Where texts may be enclosed, the word alone is no text.
        let has_enclosure = self.format.enclosure.is_some();
        let field = &line.bytes[start..];
        line.end_field(is_null && field.is_empty() || has_enclosure && field == b"NULL");
        Ok(end)
    }

    /// Whether the mark that ended the previous field was the beginning of the one that ends the
    /// line, as in `FIELDS TERMINATED BY ',' LINES TERMINATED BY ',\n'`: there is no field between
    /// the two.
    fn ends_line_after_field(&self, line: &Line, start: usize) -> bool {
        let marks = &self.format;
        let rest = marks.line_end.strip_prefix(marks.field_end.as_slice());
        let is_split = !marks.field_end.is_empty() && rest.is_some_and(|rest| !rest.is_empty());
        is_split && line.len() > 0 && rest == Some(&line.bytes[start..])
    }

    /// Removes an end mark from what begins at `start`, if it ends with one.
    fn ending(&self, bytes: &mut Vec<u8>, start: usize) -> Option<End> {
        let marks = &self.format;
        for (mark, end) in [(&marks.line_end, End::Line), (&marks.field_end, End::Field)] {
            let is_there = match mark.as_slice() {
                [] => false,
                [only] => bytes[start..].last() == Some(only),
                mark => bytes[start..].ends_with(mark),
            };
            if is_there {
                bytes.truncate(bytes.len() - mark.len());
                return Some(end);
            }
        }
        None
    }

    /// Reads what follows an escape; true for `\N`.
    fn read_escaped(&mut self, field: &mut Vec<u8>) -> io::Result<bool> {
        let Some(byte) = self.next_byte()? else { return Ok(false) };
        field.push(match byte {
            b'N' => return Ok(true),
            b'0' => 0,
            b'b' => 8,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'Z' => 26,
            other => other,
        });
        Ok(false)
    }

    fn read_enclosed(&mut self, line: &mut Line) -> io::Result<End> {
        let enclosure = self.format.enclosure;
        let start = line.start();
        let end = loop {
            let goes_on = self.read_run(true, &mut line.bytes)?;
            self.check_length(line)?;
            let next = if goes_on { self.next_byte()? } else { None };
            let Some(byte) = next else {
                // The enclosure has no end, so it was content.
                line.bytes.splice(start..start, enclosure);
                break End::File;
            };
            if Some(byte) == self.format.escape && self.format.escape != enclosure {
                self.read_escaped(&mut line.bytes)?;
            } else if Some(byte) != enclosure {
                line.bytes.push(byte);
            } else if self.input.fill_buf()?.first().copied() == enclosure {
                // Doubled, it stands for itself; otherwise the field ends if a mark follows.
                self.input.consume(1);
                line.bytes.push(byte);
            } else if let Some(end) = self.end_behind_enclosure(&mut line.bytes, byte)? {
                break end;
            }
        };
        line.end_field(false);
        Ok(end)
    }

    /// Reads the mark after a closing enclosure. `None`: none follows, so the enclosure is content.
    fn end_behind_enclosure(
        &mut self,
        field: &mut Vec<u8>,
        enclosure: u8,
    ) -> io::Result<Option<End>> {
        let mut behind = Vec::new();
        let longest = self.format.field_end.len().max(self.format.line_end.len());
        while behind.len() < longest {
            let Some(byte) = self.next_byte()? else { break };
            behind.push(byte);
            if let Some(end) = self.ending(&mut behind, 0)
                && behind.is_empty()
            {
                return Ok(Some(end));
            }
        }
        if behind.is_empty() {
            return Ok(Some(End::File));
        }
        field.push(enclosure);
        field.extend_from_slice(&behind);
        Ok(None)
    }

    fn check_length(&self, line: &Line) -> io::Result<()> {
        if line.bytes.len() - line.start() <= self.longest_field_bytes {
            return Ok(());
        }
        let why = format!("a field is longer than {} bytes", self.longest_field_bytes);
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, format: &FileFormat) -> Vec<Vec<Option<String>>> {
        let mut reader = FieldReader::new(text.as_bytes(), format, &[3, 2], 100);
        let (mut lines, mut line) = (Vec::new(), Line::default());
        while reader.read_line(&mut line).unwrap() {
            let fields = (0..line.len()).map(|number| line.field(number));
            let text = |field: &[u8]| String::from_utf8(field.to_vec()).unwrap();
            lines.push(fields.map(|field| field.map(text)).collect());
        }
        lines
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_default_format_has_tabs_escapes_and_nulls() {
        let found = lines("1\ta\\tb\t\\N\n2\t\tc\\\nd\n", &FileFormat::default());
        assert_eq!(
            found,
            [vec![some("1"), some("a\tb"), None], vec![some("2"), some(""), some("c\nd")]]
        );
    }

    #[test]
    fn a_lines_end_may_begin_as_a_fields_end() {
        let format = FileFormat {
            fields_terminated_by: ",".into(),
            lines_terminated_by: ",\n".into(),
            ..FileFormat::default()
        };
        let found = lines("1,a,\n,b,\n", &format);
        assert_eq!(found, [vec![some("1"), some("a")], vec![some(""), some("b")]]);
    }

    #[test]
    fn enclosed_fields_hold_marks_and_doubled_quotes() {
        let format = FileFormat {
            fields_terminated_by: ",".into(),
            enclosed_by: "\"".into(),
            optionally_enclosed: true,
            lines_terminated_by: "\r\n".into(),
            ..FileFormat::default()
        };
        let found = lines("1,\"a, \"\"b\"\"\",x\r\n2,\"c\r\nd\",\"e\"", &format);
        assert_eq!(
            found,
            [
                vec![some("1"), some("a, \"b\""), some("x")],
                vec![some("2"), some("c\r\nd"), some("e")]
            ]
        );
    }

    #[test]
    fn the_word_null_is_none_where_texts_are_enclosed() {
        let format = FileFormat {
            fields_terminated_by: ",".into(),
            enclosed_by: "\"".into(),
            ..FileFormat::default()
        };
        assert_eq!(lines("NULL,\"NULL\"\n", &format), [[None, some("NULL")]]);
        assert_eq!(lines("NULL\t\\N\n", &FileFormat::default()), [[some("NULL"), None]]);
    }

    #[test]
    fn an_enclosure_without_end_is_content() {
        let format = FileFormat { enclosed_by: "'".into(), ..FileFormat::default() };
        assert_eq!(lines("'a'\t'b\n", &format), [[some("a"), some("'b\n")]]);
    }

    #[test]
    fn fields_without_marks_have_their_widths() {
        let format = FileFormat { fields_terminated_by: String::new(), ..FileFormat::default() };
        let found = lines("abcde\nabcd\nab\n\nabcdef\n", &format);
        let expected: [&[&str]; 5] =
            [&["abc", "de"], &["abc", "d"], &["ab"], &[], &["abc", "de", "f"]];
        let expected =
            expected.map(|line| line.iter().map(|field| some(field)).collect::<Vec<_>>());
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_begin_behind_their_mark() {
        let format = FileFormat { lines_starting_by: "xx".into(), ..FileFormat::default() };
        assert_eq!(lines("ab xx1\t2\nnothing\nxxx3\t4\n", &format)[0], [some("1"), some("2")]);
    }

    #[test]
    fn a_field_without_end_is_refused_before_it_fills_the_memory() {
        let text = "x".repeat(1000);
        let format = FileFormat::default();
        let mut reader = FieldReader::new(text.as_bytes(), &format, &[], 100);
        assert!(reader.read_line(&mut Line::default()).is_err());
    }
}
