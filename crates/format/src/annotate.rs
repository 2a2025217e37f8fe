//! Draws bytes for golden tests: each run of bytes on its own line, with its meaning.

use std::fmt::Write as _;

/// Draws bytes from front to back, one named field at a time.
pub(crate) struct Annotated<'a> {
    bytes: &'a [u8],
    at: usize,
    drawing: String,
}

impl<'a> Annotated<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Annotated<'a> {
        Annotated { bytes, at: 0, drawing: String::new() }
    }

    /// Draws the next `length` bytes as `meaning`.
    pub(crate) fn field(&mut self, length: usize, meaning: &str) -> &mut Self {
        let bytes = &self.bytes[self.at..self.at + length];
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.drawing, "{:<5}  {hex:<24}  {meaning}", self.at).expect("a string");
        self.at += length;
        self
    }

    pub(crate) fn fields(&mut self, fields: &[(usize, &str)]) -> &mut Self {
        for &(length, meaning) in fields {
            self.field(length, meaning);
        }
        self
    }

    /// Draws zeros up to `to`.
    pub(crate) fn zeros_to(&mut self, to: usize) -> &mut Self {
        assert!(
            self.bytes[self.at..to].iter().all(|&byte| byte == 0),
            "bytes that nobody explains"
        );
        if to > self.at {
            writeln!(self.drawing, "{:<5}  zeros up to {to}", self.at).expect("a string");
        }
        self.at = to;
        self
    }

    /// The drawing. Every byte must have been drawn.
    pub(crate) fn finish(&mut self) -> String {
        assert_eq!(self.at, self.bytes.len(), "bytes that nobody explains");
        std::mem::take(&mut self.drawing)
    }
}

/// The fields that all pages begin with.
pub(crate) const PAGE_HEADER: [(usize, &str); 9] = [
    (4, "checksum"),
    (2, "version"),
    (1, "kind"),
    (1, "flags"),
    (4, "space"),
    (4, "page"),
    (8, "LSN"),
    (2, "log stream"),
    (6, "reserved"),
];
