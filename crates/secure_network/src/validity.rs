//! Until when a certificate is valid: the one field that no library here reads for us.
//!
//! ```text
//!   Certificate  SEQUENCE
//!     to be signed  SEQUENCE
//!       [0] version, INTEGER serial, SEQUENCE algorithm, SEQUENCE issuer,
//!       SEQUENCE validity: two times, from and until
//! ```

use jiff::Timestamp;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
/// A year of two digits.
const UTC_TIME: u8 = 0x17;
/// A year of four digits.
const GENERALIZED_TIME: u8 = 0x18;

/// The first and last moment of a certificate in DER.
pub(crate) fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut rest, _) = element(certificate, SEQUENCE)?;
    if let Some((_, after)) = element(rest, VERSION) {
        rest = after;
    }
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        rest = element(rest, tag)?.1;
    }
    let (validity, _) = element(rest, SEQUENCE)?;
    let (from, rest) = time(validity)?;
    let (until, _) = time(rest)?;
    Some((from, until))
}

/// The content of an element with this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (*found == tag).then(|| rest.split_at_checked(length)).flatten()
}

fn time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (century, text, rest) = match element(bytes, UTC_TIME) {
        Some((text, rest)) => {
            // Years of two digits lie between 1950 and 2049.
            (if text.first()? < &b'5' { "20" } else { "19" }, text, rest)
        }
        None => {
            let (text, rest) = element(bytes, GENERALIZED_TIME)?;
            ("", text, rest)
        }
    };
    let text = format!("{century}{}", std::str::from_utf8(text).ok()?);
    let is_plain = text.len() == 15 && text.is_ascii() && text.ends_with('Z');
    let (day, time) = is_plain.then(|| text.split_at(8))?;
    Some((format!("{day}T{time}").parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_element(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, content.len() as u8][..], content].concat()
    }

    #[test]
    fn times_of_both_kinds_are_read() {
        let times = [
            in_element(UTC_TIME, b"261125200000Z"),
            in_element(GENERALIZED_TIME, b"20510101000001Z"),
        ]
        .concat();
        let fields = [
            in_element(VERSION, &[2, 1, 2]),
            in_element(INTEGER, &[9]),
            in_element(SEQUENCE, b"algorithm"),
            in_element(SEQUENCE, b"issuer"),
            in_element(SEQUENCE, &times),
        ]
        .concat();
        let whole = in_element(SEQUENCE, &in_element(SEQUENCE, &fields));
        let (from, until) = validity(&whole).unwrap();
        assert_eq!(from.to_string(), "2026-11-25T20:00:00Z");
        assert_eq!(until.to_string(), "2051-01-01T00:00:01Z");
        for length in 0..whole.len() {
            assert_eq!(validity(&whole[..length]), None);
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let _ = validity(&damaged);
            }
        }
    }
}
