//! Floating-point numbers as text, as MySQL writes them to clients and into strings.
//!
//! ```text
//!   DOUBLE  the fewest digits that read back as the same number:  0.1   1e15   1.2345678901234568e17
//!   FLOAT   at most six digits:                                   3.14159   16777200
//! ```
//!
//! A plain form is used from 10^-15 up to 10^15, and above as long as there is something after the
//! point: `1e15` but `1234567890123456.8`. As a part of a text, a number whose plain form is longer
//! than its type's longest number has an exponent: `-1.2345678901234568e-5`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Deref;

/// A number whose point is at most this many places from its first digit is written out.
const MAX_POINT: i32 = 15;
/// Digits of a float after the first.
const FLOAT_DIGITS: usize = 5;
/// Digits that a double has at most.
const MAX_DIGITS: usize = 17;
/// Characters of a number as a part of a text.
const DOUBLE_CHARS: usize = 22;
const DOUBLE_COLUMN_CHARS: usize = 24;
const FLOAT_CHARS: usize = 12;
/// `-0.00000000000000` and 17 digits, or anything else that is written here.
const MAX_BYTES: usize = 48;

/// Appends a number with `decimals` digits after the point. Those beyond the digits that identify
/// the number are zeros.
pub fn put_fixed(buffer: &mut Vec<u8>, number: f64, decimals: u8) {
    let decimals = usize::from(decimals);
    let begin = buffer.len();
    // Writing to memory does not fail.
    let _ = write!(buffer, "{number}");
    let point = buffer[begin..].iter().position(|byte| *byte == b'.');
    let written = point.map_or(0, |point| buffer.len() - begin - point - 1);
    if written > decimals {
        buffer.truncate(begin);
        let _ = write!(buffer, "{number:.decimals$}");
    } else if decimals > 0 {
        if point.is_none() {
            buffer.push(b'.');
        }
        buffer.resize(buffer.len() + decimals - written, b'0');
    }
}

/// The text of a number, on the stack.
#[derive(Clone, Copy, Debug)]
pub struct NumberText {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl NumberText {
    const EMPTY: NumberText = NumberText { bytes: [0; MAX_BYTES], length: 0 };

    /// The text of a `DOUBLE`.
    #[must_use]
    pub fn of_double(number: f64) -> NumberText {
        let mut scientific = NumberText::EMPTY;
        // A text that does not fit is cut off; a number always fits.
        let _ = write!(scientific, "{number:e}");
        scientific.in_shorter_form()
    }

    /// The text of a `DOUBLE` in at most `most_bytes`: rounded as far as necessary, in the form
    /// that keeps more digits. False if it does not fit. If the number has several digits, a text
    /// of one digit with an exponent fits only if there is also room for a point.
    #[must_use]
    pub fn of_double_within(number: f64, most_bytes: usize) -> (NumberText, bool) {
        let whole = NumberText::of_double(number);
        if whole.len() <= most_bytes || !number.is_finite() {
            return (whole, true);
        }
        let plain = (0..MAX_DIGITS).rev().map(|digits| {
            let mut text = NumberText::EMPTY;
            let _ = write!(text, "{number:.digits$}");
            text.without_trailing_zeros()
        });
        // More digits than those that read back as the same number say nothing.
        let scientific = (0..whole.digits().max(1)).rev().map(|digits| {
            let mut text = NumberText::EMPTY;
            let _ = write!(text, "{number:.digits$e}");
            text.without_trailing_zeros()
        });
        let fits = |text: &NumberText| text.len() <= most_bytes && text.length < MAX_BYTES;
        let plain = plain.into_iter().find(fits);
        let scientific = scientific.into_iter().find(fits);
        match (plain, scientific) {
            (Some(plain), _) if plain.digits() == 0 && scientific.is_none() => {
                // What is rounded to zero has no sign.
                (NumberText::of_double(0.0), true)
            }
            (Some(plain), Some(other)) if other.digits() > plain.digits() => (other, true),
            (Some(text), _) => (text, true),
            (None, Some(text)) => {
                let is_all = text.digits() >= whole.digits();
                (text, is_all || text.contains(&b'.') || text.len() < most_bytes)
            }
            (None, None) => {
                let mut text = NumberText::EMPTY;
                let _ = write!(text, "{number:.0e}");
                (text, false)
            }
        }
    }

    /// The number of digits, without zeros at both ends.
    fn digits(&self) -> usize {
        let mantissa = self.split(|byte| *byte == b'e').next().unwrap_or_default();
        let is_zero = |byte: &&u8| **byte == b'0';
        let digits = mantissa.iter().filter(|byte| byte.is_ascii_digit()).skip_while(is_zero);
        let count = digits.clone().count();
        count - digits.collect::<Vec<_>>().into_iter().rev().take_while(is_zero).count()
    }

    fn without_trailing_zeros(mut self) -> NumberText {
        let end = self.iter().position(|byte| *byte == b'e').unwrap_or(self.length);
        let mantissa = &self.bytes[..end];
        if !mantissa.contains(&b'.') {
            return self;
        }
        let zeros = mantissa.iter().rev().take_while(|byte| **byte == b'0').count();
        let point = usize::from(mantissa[..end - zeros].last() == Some(&b'.'));
        self.bytes.copy_within(end..self.length, end - zeros - point);
        self.length -= zeros + point;
        self
    }

    /// The text of a `DOUBLE` that an expression has worked out, as a part of a text.
    #[must_use]
    pub fn of_double_in_text(number: f64) -> NumberText {
        NumberText::of_double_within(number, DOUBLE_CHARS).0
    }

    /// The text of a `DOUBLE` column as a part of a text.
    #[must_use]
    pub fn of_double_column_in_text(number: f64) -> NumberText {
        NumberText::of_double_within(number, DOUBLE_COLUMN_CHARS).0
    }

    /// The text of a `FLOAT`.
    #[must_use]
    pub fn of_float(number: f64) -> NumberText {
        NumberText::scientific_float(number).in_shorter_form()
    }

    /// The text of a `FLOAT` as a part of a text.
    #[must_use]
    pub fn of_float_in_text(number: f64) -> NumberText {
        let whole = NumberText::of_float(number);
        match whole.len() > FLOAT_CHARS {
            true => NumberText::scientific_float(number).without_trailing_zeros(),
            false => whole,
        }
    }

    /// A `FLOAT` as `-d.ddddde-xx`.
    fn scientific_float(number: f64) -> NumberText {
        let mut scientific = NumberText::EMPTY;
        let _ = write!(scientific, "{number:.FLOAT_DIGITS$e}");
        scientific
    }

    /// The shorter form of a number that is written as `-d.dddde-xx`.
    fn in_shorter_form(&self) -> NumberText {
        let mut text = NumberText::EMPTY;
        let Some(e) = self.iter().position(|byte| *byte == b'e') else {
            // Not a number, or infinite: values that SQL does not have.
            return *self;
        };
        let (mantissa, exponent) = (&self[..e], &self[e + 1..]);
        let exponent = std::str::from_utf8(exponent).ok().and_then(|text| text.parse().ok());
        let point = exponent.unwrap_or(0_i32) + 1;
        let (mut digits, mut length) = ([b'0'; MAX_DIGITS], 0);
        for digit in mantissa.iter().filter(|byte| byte.is_ascii_digit()).take(MAX_DIGITS) {
            digits[length] = *digit;
            length += 1;
        }
        while length > 1 && digits[length - 1] == b'0' {
            length -= 1;
        }
        if mantissa.first() == Some(&b'-') {
            text.push(b"-");
        }
        let digits = &digits[..length];
        let has_fraction = length as i32 > point;
        if point > -MAX_POINT && (point <= MAX_POINT || has_fraction) {
            text.push_plain(digits, point);
        } else {
            text.push_scientific(digits, point - 1);
        }
        text
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = (self.length + bytes.len()).min(MAX_BYTES);
        let taken = end - self.length;
        self.bytes[self.length..end].copy_from_slice(&bytes[..taken]);
        self.length = end;
    }

    fn push_zeros(&mut self, count: i32) {
        (0..count).for_each(|_| self.push(b"0"));
    }

    /// The number 0.d₁d₂… · 10^`point`.
    fn push_plain(&mut self, digits: &[u8], point: i32) {
        if point <= 0 {
            self.push(b"0.");
            self.push_zeros(-point);
            return self.push(digits);
        }
        let (whole, fraction) = digits.split_at(digits.len().min(point as usize));
        self.push(whole);
        self.push_zeros(point - whole.len() as i32);
        if !fraction.is_empty() {
            self.push(b".");
            self.push(fraction);
        }
    }

    fn push_scientific(&mut self, digits: &[u8], exponent: i32) {
        self.push(&digits[..1]);
        if digits.len() > 1 {
            self.push(b".");
            self.push(&digits[1..]);
        }
        let _ = write!(self, "e{exponent}");
    }
}

impl Deref for NumberText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl std::fmt::Write for NumberText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::NumberText;

    fn double(number: f64) -> String {
        String::from_utf8_lossy(&NumberText::of_double(number)).into_owned()
    }

    #[test]
    fn doubles_are_written_out_while_they_have_a_fraction() {
        let texts = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1_159_679_703_871_592.8, "1159679703871592.8"),
            (123_456_789_012_345_680.0, "1.2345678901234568e17"),
            (1e-15, "0.000000000000001"),
            (-1e-16, "-1e-16"),
            (1.5e300, "1.5e300"),
            (-1.5e-300, "-1.5e-300"),
            (-1.25e-15, "-0.00000000000000125"),
        ];
        for (number, text) in texts {
            assert_eq!(double(number), text);
        }
    }

    #[test]
    fn doubles_are_rounded_to_the_room_that_they_have() {
        let texts = [
            (-1.5, 3, "-2"),
            (20_240_229.5, 4, "2e7"),
            (100_000.0, 4, "1e5"),
            (1234.56, 6, "1234.6"),
            (0.05, 3, "0.1"),
            (9.96, 3, "10"),
            (-20_231_231.0, 6, "-2e7"),
        ];
        for (number, most, text) in texts {
            let (found, fits) = NumberText::of_double_within(number, most);
            assert_eq!((&*String::from_utf8_lossy(&found), fits), (text, true));
        }
        let (found, fits) = NumberText::of_double_within(1e5, 3);
        assert_eq!((&*String::from_utf8_lossy(&found), fits), ("1e5", true));
        let others = [(-1e40, 4, "-1e40"), (20_240_229.5, 3, "2e7"), (2155.0, 3, "2e3")];
        for (number, most, text) in others {
            let (found, fits) = NumberText::of_double_within(number, most);
            assert_eq!((&*String::from_utf8_lossy(&found), fits), (text, false));
        }
    }

    #[test]
    fn numbers_in_texts_have_an_exponent_where_they_are_long() {
        let doubles = [
            (-1.234_567_890_123_456_7e-3, "-0.0012345678901234567"),
            (1.234_567_890_123_456_7e-5, "1.2345678901234568e-5"),
            (-1.234_567_890_123_456_7e-10, "-1.234567890123457e-10"),
            (8.230_452_600_823_045e-11, "8.230452600823045e-11"),
        ];
        for (number, text) in doubles {
            assert_eq!(String::from_utf8_lossy(&NumberText::of_double_in_text(number)), text);
        }
        let column = NumberText::of_double_column_in_text(-1.234_567_890_123_456_7e-5);
        assert_eq!(String::from_utf8_lossy(&column), "-0.000012345678901234568");
        let floats = [(1e11, "100000000000"), (1e12, "1e12"), (-1.234_56e-5, "-1.23456e-5")];
        for (number, text) in floats {
            assert_eq!(String::from_utf8_lossy(&NumberText::of_float_in_text(number)), text);
        }
    }

    #[test]
    fn fixed_numbers_are_filled_with_zeros() {
        let texts = [
            (1.5, 2, "1.50"),
            (-0.0, 2, "-0.00"),
            (2.0, 0, "2"),
            (0.126, 2, "0.13"),
            (1e22, 1, "10000000000000000000000.0"),
        ];
        for (number, decimals, text) in texts {
            let mut buffer = Vec::new();
            super::put_fixed(&mut buffer, number, decimals);
            assert_eq!(String::from_utf8_lossy(&buffer), text);
        }
    }

    #[test]
    fn floats_have_six_digits() {
        let texts = [(1.234_567_8, "1.23457"), (16_777_216.0, "16777200"), (1e15, "1e15")];
        for (number, text) in texts {
            assert_eq!(String::from_utf8_lossy(&NumberText::of_float(number)), text);
        }
    }
}
