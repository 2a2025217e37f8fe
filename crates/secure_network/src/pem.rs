//! PEM: base64 in lines of 64 characters between two marks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const LINE_CHARACTERS: usize = 64;

/// The text of something in DER.
pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_CHARACTERS));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}
