//! Self-terminating byte strings: a 00 within becomes 00 FF, and the end is 00 00. So "a" (61 00
//! 00) sorts before "a\0" (61 00 FF 00 00), and that before "a\x01" (61 01 00 00), as the strings
//! do.
//!
//! In a descending part all bits are inverted, so the same scan runs with FF and 00 exchanged.

/// Follows a 00 that is part of the string.
const ESCAPE: u8 = 0xff;
/// Bytes of the end mark.
const END_LENGTH: usize = 2;

/// Appends `bytes`, escaped and ended.
#[inline]
pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.contains(&0) {
        for piece in bytes.split_inclusive(|&byte| byte == 0) {
            out.extend_from_slice(piece);
            if piece.ends_with(&[0]) {
                out.push(ESCAPE);
            }
        }
    } else {
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(&[0; END_LENGTH]);
}

/// Escapes and terminates the bytes of `out` from `start` on.
pub(super) fn finish_in_place(out: &mut Vec<u8>, start: usize) {
    if out[start..].contains(&0) {
        let raw = out.split_off(start);
        write(&raw, out);
    } else {
        out.extend_from_slice(&[0; END_LENGTH]);
    }
}

/// Length of the escaped string at the head of `bytes`, terminator included, or `None` if there is
/// no terminator. `zero` is the byte for 00: FF in a descending part.
#[inline]
pub(super) fn length(bytes: &[u8], zero: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == zero)?;
        match *bytes.get(at + 1)? {
            next if next == zero => return Some(at + END_LENGTH),
            next if next == !zero => at += 2,
            _ => return None,
        }
    }
}

/// The original string of `escaped`, whose end [`length`] has found.
pub(super) fn read(escaped: &[u8], zero: u8) -> Vec<u8> {
    let body = &escaped[..escaped.len() - END_LENGTH];
    let mut bytes = Vec::with_capacity(body.len());
    for piece in body.split_inclusive(|&byte| byte == zero) {
        let escape_before = usize::from(bytes.last() == Some(&0));
        bytes.extend(piece[escape_before..].iter().map(|byte| byte ^ zero));
    }
    bytes
}
