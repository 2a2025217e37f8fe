//! `mysql_native_password`: the stored string is `*` and SHA1(SHA1(password)) in hexadecimal
//! digits.
//!
//! ```text
//!   client → server: SHA1(password) XOR SHA1(challenge, SHA1(SHA1(password)))
//! ```

use sha1::{Digest, Sha1};

use super::equal_in_constant_time;

/// The stored string of a password; empty for an empty password.
#[must_use]
pub fn authentication_string(password: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    if !password.is_empty() {
        text.push('*');
        for byte in Sha1::digest(Sha1::digest(password)) {
            let _ = write!(text, "{byte:02X}");
        }
    }
    text
}

/// The hash in an authentication string.
pub(super) fn parse(authentication_string: &str) -> Option<[u8; 20]> {
    let digits = authentication_string.strip_prefix('*')?.as_bytes();
    let mut hash = [0; 20];
    if digits.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(hash)
}

/// Whether the client's response to `challenge` shows that it knows the password.
#[must_use]
pub fn verify(authentication_string: &[u8], challenge: &[u8], response: &[u8]) -> bool {
    let stored = std::str::from_utf8(authentication_string).ok().and_then(parse);
    let (Some(stored), Ok(response)) = (stored, <[u8; 20]>::try_from(response)) else {
        return false;
    };
    let mask = Sha1::new_with_prefix(challenge).chain_update(stored).finalize();
    let mut hash = response;
    hash.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    equal_in_constant_time(&Sha1::digest(hash), &stored)
}
