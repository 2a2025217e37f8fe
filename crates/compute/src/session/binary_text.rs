//! Texts with bytes that are not UTF-8: clients write binary values into strings unchanged.
//!
//! ```text
//!   INSERT INTO t VALUES ('\0<ff>')   ──►   INSERT INTO t VALUES ( x'00FF')
//! ```
//!
//! A string that is not UTF-8 becomes a hexadecimal literal of its bytes, which is binary and goes
//! to binary columns unchanged. Outside of strings, bytes that are not UTF-8 are a syntax error.

/// The text with its binary strings in hexadecimal; `None` if bytes outside of strings are not
/// UTF-8.
pub(super) fn with_hexadecimal(text: &[u8], backslash_escapes: bool) -> Option<String> {
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    let mut kept_from = 0;
    let mut at = 0;
    while at < text.len() {
        let quote = text[at];
        match quote {
            b'\'' | b'"' => {
                let (value, end) = read_string(text, at, backslash_escapes);
                if std::str::from_utf8(&text[at..end]).is_err() {
                    out.push_str(std::str::from_utf8(&text[kept_from..at]).ok()?);
                    // The space separates it from an introducer: _binary'…'.
                    out.push_str(" x'");
                    out.extend(value.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
                    out.push('\'');
                    kept_from = end;
                }
                at = end;
            }
            b'`' => at = skip_past(text, at + 1, b"`"),
            b'#' => at = skip_past(text, at, b"\n"),
            b'-' if text[at..].starts_with(b"-- ") => at = skip_past(text, at, b"\n"),
            b'/' if text[at..].starts_with(b"/*") && text.get(at + 2) != Some(&b'!') => {
                at = skip_past(text, at + 2, b"*/");
            }
            _ => at += 1,
        }
    }
    out.push_str(std::str::from_utf8(&text[kept_from..]).ok()?);
    Some(out)
}

fn digit(half: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(half)])
}

/// After the next `mark`, or the end.
fn skip_past(text: &[u8], from: usize, mark: &[u8]) -> usize {
    let found = text[from..].windows(mark.len()).position(|window| window == mark);
    found.map_or(text.len(), |found| from + found + mark.len())
}

/// The bytes of the string at `start`, and where it ends.
fn read_string(text: &[u8], start: usize, backslash_escapes: bool) -> (Vec<u8>, usize) {
    let quote = text[start];
    let mut value = Vec::new();
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'\\' if backslash_escapes && at + 1 < text.len() => {
                value.extend_from_slice(&unescaped(text[at + 1])[..]);
                at += 2;
            }
            byte if byte == quote && text.get(at + 1) == Some(&quote) => {
                value.push(quote);
                at += 2;
            }
            byte if byte == quote => return (value, at + 1),
            byte => {
                value.push(byte);
                at += 1;
            }
        }
    }
    (value, at)
}

/// The meaning of a backslash followed by this byte.
fn unescaped(byte: u8) -> smallvec::SmallVec<[u8; 2]> {
    let one = |byte| smallvec::smallvec![byte];
    match byte {
        b'0' => one(0),
        b'b' => one(8),
        b'n' => one(b'\n'),
        b'r' => one(b'\r'),
        b't' => one(b'\t'),
        b'Z' => one(26),
        b'%' | b'_' => smallvec::smallvec![b'\\', byte],
        other => one(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_strings_become_hexadecimal_and_others_stay() {
        let rewritten = |text: &[u8]| with_hexadecimal(text, true);
        assert_eq!(
            rewritten(b"INSERT INTO `t` VALUES ('a''b', '\\0\xff''\\'', \"\xfe\") -- '\n, 'z'")
                .as_deref(),
            Some("INSERT INTO `t` VALUES ('a''b',  x'00FF2727',  x'FE') -- '\n, 'z'")
        );
        assert_eq!(rewritten(b"_binary'\xff'").as_deref(), Some("_binary x'FF'"));
        assert_eq!(rewritten("SELECT 'é'".as_bytes()).as_deref(), Some("SELECT 'é'"));
        assert_eq!(rewritten(b"SELECT \xff"), None);
        assert_eq!(with_hexadecimal(b"'\\\xff'", false).as_deref(), Some(" x'5CFF'"));
    }

    #[test]
    fn any_bytes_are_borne() {
        for text in [&b"'"[..], b"'\\", b"\"\xff", b"/*", b"`\xff", b"-- \xff", b"'\xff''"] {
            let _ = with_hexadecimal(text, true);
            let _ = with_hexadecimal(text, false);
        }
    }
}
