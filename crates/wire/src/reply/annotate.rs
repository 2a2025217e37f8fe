//! Packets as text, for golden tests.

use std::fmt::Write;

/// Sixteen bytes a line, as numbers and as characters.
pub(crate) fn hex_dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let numbers: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
        let characters: String = line
            .iter()
            .map(
                |&byte| {
                    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' }
                },
            )
            .collect();
        let _ = writeln!(text, "{}", format!("{numbers:48}|{characters}").trim_end());
    }
    text
}

/// Each packet's length and number, and its payload.
pub(crate) fn packets(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while let [a, b, c, number, rest @ ..] = bytes {
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        let (payload, next) = rest.split_at(length);
        let _ = write!(text, "packet {number}, {length} bytes\n{}", hex_dump(payload));
        bytes = next;
    }
    text
}
