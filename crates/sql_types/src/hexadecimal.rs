//! Bytes as hexadecimal digits.

use std::fmt::Write as _;

/// Two capital digits for each byte.
#[must_use]
pub fn hexadecimal_digits(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(digits, "{byte:02X}");
    }
    digits
}
