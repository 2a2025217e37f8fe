//! Tables, and rows written vertically.

use std::io::{self, Write};

use comfy_table::presets::ASCII_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use mysql::Value;

use super::{Header, RowWriter, shown};

/// The terminal's size in characters; `None`: without a limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Screen {
    pub(crate) width: Option<u16>,
    pub(crate) height: Option<u16>,
}

impl Screen {
    /// The same size if `is_bounded`, otherwise one without limits.
    pub(crate) fn filter(self, is_bounded: bool) -> Screen {
        if is_bounded { self } else { Screen::default() }
    }
}

/// The least width of a wrapped column.
const NARROWEST: usize = 12;

/// Whether a table of these columns can be wrapped to a width.
fn fits(columns: usize, width: u16) -> bool {
    columns * (NARROWEST + 3) < usize::from(width)
}

/// Writes a table, wrapped to the screen's width. One with too many columns is written vertically.
///
/// # Errors
/// If `out` cannot be written.
pub(crate) fn write_table(
    headers: &[Header],
    rows: &[Vec<Value>],
    skips_names: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(
        ASCII_FULL_CONDENSED.header_separator(comfy_table::LineStyle::new('+', '-', '+', '+')),
    );
    if !skips_names {
        table.set_header(headers.iter().map(|header| Cell::new(plain(&header.name))));
    }
    for row in rows {
        table.add_row(headers.iter().zip(row).map(|(header, value)| {
            let cell = Cell::new(shown(header, value).map_or("NULL".into(), |text| plain(&text)));
            match header.is_number {
                true => cell.set_alignment(CellAlignment::Right),
                false => cell,
            }
        }));
    }
    table.set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = screen.width {
        let natural: usize =
            table.column_max_content_widths().iter().map(|width| usize::from(*width) + 3).sum();
        if natural + 1 > usize::from(width) {
            if !fits(headers.len(), width) {
                return write_vertical(headers, rows, out);
            }
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width);
        }
    }
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// A text without control characters, which would break the table.
fn plain(text: &str) -> String {
    let visible = |character: char| match character {
        '\n' => '\n',
        '\t' => ' ',
        other if other.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.chars().map(visible).collect()
}

/// Writes each row as lines of `name: value`.
///
/// # Errors
/// If `out` cannot be written.
pub(crate) fn write_vertical(
    headers: &[Header],
    rows: &[Vec<Value>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = Vertical::default();
    writer.begin(headers, out)?;
    rows.iter().try_for_each(|row| writer.row(headers, row, out))?;
    writer.end(out)
}

/// Writes rows as [`write_vertical`] does.
#[derive(Default)]
pub(crate) struct Vertical {
    rows: u64,
    width: usize,
}

impl RowWriter for Vertical {
    fn begin(&mut self, headers: &[Header], _: &mut dyn Write) -> io::Result<()> {
        self.rows = 0;
        self.width =
            headers.iter().map(|header| header.name.chars().count()).max().unwrap_or_default();
        Ok(())
    }

    fn row(&mut self, headers: &[Header], row: &[Value], out: &mut dyn Write) -> io::Result<()> {
        self.rows += 1;
        let stars = "*".repeat(27);
        writeln!(out, "{stars} {}. row {stars}", self.rows)?;
        for (header, value) in headers.iter().zip(row) {
            let text = shown(header, value);
            let text = text.as_deref().unwrap_or("NULL");
            writeln!(out, "{:>width$}: {text}", header.name, width = self.width)?;
        }
        Ok(())
    }

    fn end(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
