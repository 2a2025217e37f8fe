//! Sizes as people write them: `4096`, `64K`, `512M`, `2G`, `1T`; units are powers of 1024.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) u64);

/// Units, largest first.
const UNITS: [(char, u64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

/// Why a text is no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SizeError {
    #[error("is not a size; write a whole number of bytes, or one with K, M, G or T after it")]
    Malformed,
    #[error("is more bytes than can be counted")]
    TooLarge,
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let unit =
            UNITS.iter().find(|(letter, _)| text.ends_with([*letter, letter.to_ascii_lowercase()]));
        let (digits, factor) =
            unit.map_or((text, 1), |(_, factor)| (&text[..text.len() - 1], *factor));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(SizeError::Malformed);
        }
        let number: u64 = digits.parse().map_err(|_| SizeError::TooLarge)?;
        number.checked_mul(factor).map(Size).ok_or(SizeError::TooLarge)
    }
}

impl fmt::Display for Size {
    /// The shortest exact form, which parses back to the same size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor)) {
            Some((letter, factor)) => write!(f, "{}{letter}", self.0 / factor),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_are_powers_of_1024_in_either_case() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("16K", 16 << 10),
            ("512m", 512 << 20),
            ("2G", 2 << 30),
            ("1t", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "G", "-1", "+1", "1.5G", "2 G", "2GB", "0x10", "1_000", "٣G", "🏔"] {
            assert_eq!(text.parse::<Size>(), Err(SizeError::Malformed), "{text:?}");
        }
        for text in ["99999999999999999999", "18446744073709551615K"] {
            assert_eq!(text.parse::<Size>(), Err(SizeError::TooLarge), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(bytes in any::<u64>(), shift in 0u32..50) {
            let size = Size(bytes >> shift << shift);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn any_text_is_answered(text in ".*") {
            let _ = text.parse::<Size>();
        }
    }
}
