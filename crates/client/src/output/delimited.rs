//! Tabs, as MySQL's client writes them outside a terminal, and comma-separated values after RFC
//! 4180.

use std::io::{self, Write};

use mysql::Value;

use super::{Header, RowWriter, shown};

/// Fields separated by tabs. Tab, newline, NUL and backslash are escaped; NULL is `NULL`.
pub(super) struct Tab {
    pub(super) skips_names: bool,
}

impl RowWriter for Tab {
    fn begin(&mut self, headers: &[Header], out: &mut dyn Write) -> io::Result<()> {
        match self.skips_names {
            true => Ok(()),
            false => write_fields(headers.iter().map(|one| escaped(&one.name)), '\t', out),
        }
    }

    fn row(&mut self, headers: &[Header], row: &[Value], out: &mut dyn Write) -> io::Result<()> {
        let field = |(header, value): (&Header, &Value)| match shown(header, value) {
            Some(text) => escaped(&text),
            None => "NULL".to_owned(),
        };
        write_fields(headers.iter().zip(row).map(field), '\t', out)
    }

    fn end(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Fields separated by commas and quoted where necessary. NULL is an empty field, an empty text is
/// `""`.
pub(super) struct Csv {
    pub(super) skips_names: bool,
}

impl RowWriter for Csv {
    fn begin(&mut self, headers: &[Header], out: &mut dyn Write) -> io::Result<()> {
        match self.skips_names {
            true => Ok(()),
            false => write_fields(headers.iter().map(|one| quoted(&one.name)), ',', out),
        }
    }

    fn row(&mut self, headers: &[Header], row: &[Value], out: &mut dyn Write) -> io::Result<()> {
        let field = |(header, value): (&Header, &Value)| {
            shown(header, value).map_or_else(String::new, |text| quoted(&text))
        };
        write_fields(headers.iter().zip(row).map(field), ',', out)
    }

    fn end(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

fn write_fields(
    fields: impl Iterator<Item = String>,
    separator: char,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (number, field) in fields.enumerate() {
        if number > 0 {
            write!(out, "{separator}")?;
        }
        out.write_all(field.as_bytes())?;
    }
    writeln!(out)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\0' => escaped.push_str("\\0"),
            '\\' => escaped.push_str("\\\\"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn quoted(text: &str) -> String {
    match text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
