//! Commands that look at a node without running it.

use std::io::Write;

use crate::CommandError;
use crate::configuration::Configuration;

/// Prints a line for each setting: name, value, origin.
///
/// # Errors
/// If `out` cannot be written.
pub(crate) fn print_configuration(
    configuration: &Configuration,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let rows = configuration.rows();
    let width = |column: fn(&(&str, String, String)) -> usize, rows: &[_]| {
        rows.iter().map(column).max().unwrap_or(0)
    };
    let rows = rows.map(|(name, value, origin)| (name, value, origin.to_string()));
    let name_width = width(|row| row.0.chars().count(), &rows);
    let value_width = width(|row| row.1.chars().count(), &rows);
    for (name, value, origin) in rows {
        writeln!(out, "{name:name_width$}  {value:value_width$}  {origin}")?;
    }
    for variable in &configuration.unknown_variables {
        writeln!(out, "{variable} names no setting and is ignored")?;
    }
    Ok(())
}
