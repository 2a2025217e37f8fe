//! How rows are shown.
//!
//! ```text
//!   table  +----+------+  vertical  *** 1. row ***  tab  id⇥name  csv  id,name  json  [
//!          | id | name |              id: 1              1⇥nut         1,nut          {"id":1,"name":"nut"}
//!          +----+------+            name: nut                                         ]
//! ```
//!
//! A table needs all rows before the first is shown; the others are written as rows arrive.

mod delimited;
mod json;
mod table;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use mysql::consts::{ColumnFlags, ColumnType};
use mysql::{Column, Value};

pub(crate) use table::{Screen, write_table};

/// A form in which rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Vertical,
    Tab,
    Csv,
    Json,
}

impl Format {
    /// The names by which users choose them.
    pub(crate) const NAMES: [&str; 5] = ["table", "vertical", "tab", "csv", "json"];

    pub(crate) fn named(name: &str) -> Option<Format> {
        let all = [Format::Table, Format::Vertical, Format::Tab, Format::Csv, Format::Json];
        Self::NAMES.iter().position(|known| *known == name).map(|at| all[at])
    }
}

/// The collation number of binary strings.
const BINARY: u16 = 63;

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) is_number: bool,
    /// Whether its values are JSON documents.
    pub(crate) is_json: bool,
    is_binary: bool,
}

impl Header {
    pub(crate) fn of(column: &Column) -> Header {
        use ColumnType::*;
        let kind = column.column_type();
        let is_bytes = matches!(
            kind,
            MYSQL_TYPE_BIT
                | MYSQL_TYPE_TINY_BLOB
                | MYSQL_TYPE_MEDIUM_BLOB
                | MYSQL_TYPE_LONG_BLOB
                | MYSQL_TYPE_BLOB
                | MYSQL_TYPE_VAR_STRING
                | MYSQL_TYPE_STRING
                | MYSQL_TYPE_GEOMETRY
        );
        Header {
            name: column.name_str().into_owned(),
            is_number: kind.is_numeric_type()
                && kind != MYSQL_TYPE_BIT
                && !column.flags().contains(ColumnFlags::ENUM_FLAG),
            is_json: kind == MYSQL_TYPE_JSON,
            is_binary: is_bytes && column.character_set() == BINARY,
        }
    }
}

/// A value as text; `None` for NULL. Bytes that are not text are shown in hexadecimal.
pub(crate) fn shown<'v>(header: &Header, value: &'v Value) -> Option<Cow<'v, str>> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(match std::str::from_utf8(bytes) {
            Ok(text) if !header.is_binary || !text.contains(|c: char| c.is_control()) => {
                Cow::Borrowed(text)
            }
            _ => Cow::Owned(hexadecimal(bytes)),
        }),
        other => Some(Cow::Owned(other.as_sql(false).trim_matches('\'').to_owned())),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("0x");
    for byte in bytes {
        let _ = write!(text, "{byte:02X}");
    }
    text
}

/// Writes a result row by row.
pub(crate) trait RowWriter {
    fn begin(&mut self, headers: &[Header], out: &mut dyn Write) -> io::Result<()>;
    fn row(&mut self, headers: &[Header], row: &[Value], out: &mut dyn Write) -> io::Result<()>;
    fn end(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

/// The writer of a format; `None` for formats that need all rows first.
pub(crate) fn row_writer(format: Format, skips_names: bool) -> Option<Box<dyn RowWriter>> {
    match format {
        Format::Table => None,
        Format::Vertical => Some(Box::new(table::Vertical::default())),
        Format::Tab => Some(Box::new(delimited::Tab { skips_names })),
        Format::Csv => Some(Box::new(delimited::Csv { skips_names })),
        Format::Json => Some(Box::new(json::Json::default())),
    }
}

#[cfg(test)]
mod tests;
