//! Rust source as words and signs: enough of a lexer to find paths.
//!
//! Comments, strings and characters are left out. Everything that is not a word is a sign of one
//! character, except `::`.

/// The words and signs of a source text.
#[must_use]
pub(crate) fn tokens(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if let Some(skipped) = skipped(rest) {
            skipped
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            found.push(&rest[..length]);
            length
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            found.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a comment or literal that begins here.
fn skipped(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    raw_string(text).or_else(|| quoted(text)).or_else(|| character(text))
}

/// Block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'/', b'*', ..] => depth += 1,
            [b'*', b'/', ..] => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at
}

/// `r"…"`, `br#"…"#`
fn raw_string(text: &str) -> Option<usize> {
    let after_prefix = ["r", "br", "cr"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = after_prefix.len() - after_prefix.trim_start_matches('#').len();
    let inside = after_prefix[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let before = text.len() - inside.len();
    Some(inside.find(&end).map_or(text.len(), |length| before + length + end.len()))
}

/// `"…"`, `b"…"`
fn quoted(text: &str) -> Option<usize> {
    let inside = ["\"", "b\"", "c\""].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let before = text.len() - inside.len();
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(before + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// `'x'`, `'
/// '`; for a lifetime, only its tick.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let mut characters = inside.char_indices();
    match characters.next()? {
        (_, '\\') => Some(inside[2..].find('\'').map_or(text.len(), |length| length + 4)),
        (_, first) => match characters.next() {
            Some((_, '\'')) => Some(first.len_utf8() + 2),
            _ => Some(1),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn comments_and_literals_are_left_out() {
        let source = r###"
            // crate::a
            /* crate::b /* nested */ crate::c */
            let s = "crate::d \" crate::e"; let r = r#"crate::"f"#; let c = '"'; let q = '\'';
            fn f<'a>(x: &'a crate::G) {}
        "###;
        let found = tokens(source).join(" ");
        assert_eq!(
            found,
            "let s = ; let r = ; let c = ; let q = ; fn f < a > ( x : & a crate :: G ) { }"
        );
    }
}
