//! Text files taken apart: lines and fields as `LOAD DATA` describes them.
//!
//! ```text
//!   1\t"a, b"\t\N\n      fields terminated by \t, optionally enclosed by ", escaped by \
//!   Some("1") Some("a, b") None
//! ```
//!
//! Invariant: a field is at most as long as the limit that the reader was given; a longer one is an error,
//! not memory.

use std::io::{self, BufRead};

use firn_sql::grammar::ast::FileFormat;

/// Reads lines of fields.
pub(super) struct FieldReader<R> {
    input: R,
    format: Marks,
    longest_field_bytes: usize,
    /// Lines read so far.
    pub(super) lines: u64,
}

/// The marks of a format, as bytes.
struct Marks {
    field_end: Vec<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
    enclosure: Option<u8>,
    escape: Option<u8>,
}

/// A field; `None` is NULL.
pub(super) type Field = Option<Vec<u8>>;

/// How a field has ended.
enum End {
    Field,
    Line,
    File,
}

impl<R: BufRead> FieldReader<R> {
    /// A reader of that format.
    pub(super) fn new(input: R, format: &FileFormat, longest_field_bytes: usize) -> FieldReader<R> {
        let bytes = |text: &str| text.as_bytes().to_vec();
        FieldReader {
            input,
            format: Marks {
                field_end: bytes(&format.fields_terminated_by),
                line_start: bytes(&format.lines_starting_by),
                line_end: bytes(&format.lines_terminated_by),
                enclosure: format.enclosed_by.bytes().next(),
                escape: format.escaped_by.bytes().next(),
            },
            longest_field_bytes,
            lines: 0,
        }
    }

    /// The fields of the next line; false at the end of the file. `fields` is filled from its beginning, and
    /// is as long as the line has fields.
    pub(super) fn read_line(&mut self, fields: &mut Vec<Field>) -> io::Result<bool> {
        fields.clear();
        if !self.skip_line_start()? || self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        loop {
            let (field, end) = self.read_field()?;
            fields.push(field);
            match end {
                End::Field => {}
                End::Line | End::File => {
                    self.lines += 1;
                    return Ok(true);
                }
            }
        }
    }

    /// Reads on to behind the mark that begins a line; false if there is none any more.
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

    fn read_field(&mut self) -> io::Result<(Field, End)> {
        let is_enclosed = self.format.enclosure.is_some()
            && self.input.fill_buf()?.first().copied() == self.format.enclosure;
        if is_enclosed {
            self.input.consume(1);
            return self.read_enclosed();
        }
        let mut field = Vec::new();
        let mut is_null = false;
        let end = loop {
            let Some(byte) = self.next_byte()? else { break End::File };
            if Some(byte) == self.format.escape {
                is_null |= self.read_escaped(&mut field)?;
                continue;
            }
            field.push(byte);
            if let Some(end) = self.ending(&mut field) {
                break end;
            }
            self.check_length(&field)?;
        };
        let has_escape = self.format.escape.is_some();
        let is_null = is_null && field.is_empty() || !has_escape && field == b"NULL";
        Ok(((!is_null).then_some(field), end))
    }

    /// Takes an end mark off the field, if it ends with one.
    fn ending(&self, field: &mut Vec<u8>) -> Option<End> {
        let marks = &self.format;
        for (mark, end) in [(&marks.line_end, End::Line), (&marks.field_end, End::Field)] {
            if !mark.is_empty() && field.ends_with(mark) {
                field.truncate(field.len() - mark.len());
                return Some(end);
            }
        }
        None
    }

    /// What follows an escape; true for `\N`.
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

    fn read_enclosed(&mut self) -> io::Result<(Field, End)> {
        let mut field = Vec::new();
        let enclosure = self.format.enclosure;
        loop {
            let Some(byte) = self.next_byte()? else { return Ok((Some(field), End::File)) };
            if Some(byte) == self.format.escape && self.format.escape != enclosure {
                self.read_escaped(&mut field)?;
            } else if Some(byte) == enclosure {
                // Doubled, it stands for itself; otherwise the field ends if a mark follows.
                if self.input.fill_buf()?.first().copied() == enclosure {
                    self.input.consume(1);
                    field.push(byte);
                } else if let Some(end) = self.end_behind_enclosure(&mut field, byte)? {
                    return Ok((Some(field), end));
                }
            } else {
                field.push(byte);
            }
            self.check_length(&field)?;
        }
    }

    /// Reads the mark behind a closing enclosure. `None`: none follows, the enclosure is content.
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
            if let Some(end) = self.ending(&mut behind)
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

    fn check_length(&self, field: &[u8]) -> io::Result<()> {
        if field.len() <= self.longest_field_bytes {
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
        let mut reader = FieldReader::new(text.as_bytes(), format, 100);
        let (mut lines, mut fields) = (Vec::new(), Vec::new());
        while reader.read_line(&mut fields).unwrap() {
            let shown = fields.iter().cloned();
            let shown = shown.map(|field| field.map(|field| String::from_utf8(field).unwrap()));
            lines.push(shown.collect());
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
    fn lines_begin_behind_their_mark() {
        let format = FileFormat { lines_starting_by: "xx".into(), ..FileFormat::default() };
        assert_eq!(lines("ab xx1\t2\nnothing\nxxx3\t4\n", &format)[0], [some("1"), some("2")]);
    }

    #[test]
    fn a_field_without_end_is_refused_before_it_fills_the_memory() {
        let text = "x".repeat(1000);
        let format = FileFormat::default();
        let mut reader = FieldReader::new(text.as_bytes(), &format, 100);
        assert!(reader.read_line(&mut Vec::new()).is_err());
    }
}
