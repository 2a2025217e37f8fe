//! Long answers go through a pager: `$PAGER`, else `less`.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use super::output::Screen;

/// `less` ends by itself if everything fits, keeps colours, does not wrap long lines, and leaves
/// the text on the screen.
const LESS_OPTIONS: &str = "FRSX";

/// Writes a text, through the pager if it is longer than the screen. Without a pager the text is
/// written directly.
///
/// # Errors
/// If `out` cannot be written.
pub(crate) fn write(text: &[u8], screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    // The summary and the prompt need a few lines.
    let is_long = screen.height.is_some_and(|height| lines + 3 > usize::from(height));
    if is_long {
        out.flush()?;
        if page(text).is_ok() {
            return Ok(());
        }
    }
    out.write_all(text)
}

fn page(text: &[u8]) -> io::Result<()> {
    let pager = std::env::var("PAGER").unwrap_or_default();
    let mut words = pager.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("less"));
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS_OPTIONS);
    }
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // The user may leave the pager before the end.
        let _ = input.write_all(text);
    }
    child.wait().map(|_| ())
}
