//! Sizes as people write them: `4096`, `64K`, `512M`, `2GB`, `1TiB`; units are powers of 1024.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Units, largest first.
const UNITS: [(char, u64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

/// Why a text is not a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It is not a number with a unit.
    #[error(
        "is not a size; write a whole number of bytes, or one with K, M, G or T after it, such as 512M, 512MB or 512MiB"
    )]
    Malformed,
    /// It is beyond 64 bits.
    #[error("is more bytes than can be counted")]
    TooLarge,
}

/// The bytes of one unit: `M`, `MB` and `MiB` are the same, in either case. `None` for other texts.
fn factor_of(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_uppercase();
    if matches!(&*unit, "" | "B") {
        return Some(1);
    }
    let letter = unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B')).unwrap_or(&unit);
    let mut letters = letter.chars();
    let (first, None) = (letters.next()?, letters.next()) else { return None };
    UNITS.iter().find(|(letter, _)| *letter == first).map(|(_, factor)| *factor)
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let unit_start = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(unit_start);
        let factor = factor_of(unit).filter(|_| !digits.is_empty()).ok_or(SizeError::Malformed)?;
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
            ("256MB", 256 << 20),
            ("256MiB", 256 << 20),
            ("256mib", 256 << 20),
            ("3Kb", 3 << 10),
            ("2GiB", 2 << 30),
            ("4096B", 4096),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "", "G", "-1", "+1", "1.5G", "2 G", "2GBB", "2iB", "2BG", "2MiBi", "GB", "0x10",
            "1_000", "٣G", "🏔",
        ] {
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
