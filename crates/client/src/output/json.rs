//! One array of objects, one object on each line. Numbers and documents are written as they are,
//! all other values as strings.

use std::io::{self, Write};

use mysql::Value;

use super::{Header, RowWriter, shown};

/// Writes the array.
#[derive(Default)]
pub(super) struct Json {
    rows: u64,
}

impl RowWriter for Json {
    fn begin(&mut self, _: &[Header], out: &mut dyn Write) -> io::Result<()> {
        self.rows = 0;
        out.write_all(b"[")
    }

    fn row(&mut self, headers: &[Header], row: &[Value], out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.rows == 0 { b"\n{" } else { b",\n{" })?;
        self.rows += 1;
        for (number, (header, value)) in headers.iter().zip(row).enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(out, "{comma}{}:", serde_json::Value::from(header.name.as_str()))?;
            write_value(header, value, out)?;
        }
        out.write_all(b"}")
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.rows == 0 { b"]\n" } else { b"\n]\n" })
    }
}

fn write_value(header: &Header, value: &Value, out: &mut dyn Write) -> io::Result<()> {
    let Some(text) = shown(header, value) else { return out.write_all(b"null") };
    // A number keeps the digits that the server sent.
    let is_itself = header.is_json
        || header.is_number && serde_json::from_str::<serde_json::Number>(&text).is_ok();
    match is_itself {
        true => out.write_all(text.as_bytes()),
        false => write!(out, "{}", serde_json::Value::from(text.as_ref())),
    }
}
