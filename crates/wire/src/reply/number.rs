//! Floating-point numbers as text, as MySQL writes them.
//!
//! With a fixed number of decimals a number is written out. Without, it gets as few significant digits as
//! tell it from every other (a `FLOAT`: at most six), and an exponent if its point would stand more than 15
//! places to the right or more than 14 to the left of the first digit: `1e15`, `100000000000000`, `1e-15`… .

use std::io::Write;

/// From here on the number of decimals is not fixed.
const NOT_FIXED: u8 = 31;

/// Beyond these places of the point a number is written with an exponent.
const MAX_POINT: i32 = 15;

pub(super) fn put_double(buffer: &mut Vec<u8>, value: f64, decimals: u8) {
    if decimals < NOT_FIXED {
        return put_fixed(buffer, value, decimals);
    }
    let mut scientific = Scientific::default();
    let _ = write!(scientific, "{value:e}");
    put_general(buffer, scientific.text(), value);
}

pub(super) fn put_float(buffer: &mut Vec<u8>, value: f32, decimals: u8) {
    if decimals < NOT_FIXED {
        return put_fixed(buffer, f64::from(value), decimals);
    }
    let mut scientific = Scientific::default();
    let _ = write!(scientific, "{value:.5e}");
    put_general(buffer, scientific.text(), f64::from(value));
}

fn put_fixed(buffer: &mut Vec<u8>, value: f64, decimals: u8) {
    let _ = write!(buffer, "{value:.0$}", usize::from(decimals));
}

/// A number as `d.ddde-xx`, on the stack.
#[derive(Default)]
struct Scientific {
    bytes: [u8; 32],
    length: usize,
}

impl Scientific {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for Scientific {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = (&mut self.bytes[self.length..]).write(bytes)?;
        self.length += written;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes a number that is given as `-d.dddde-xx` in the shorter of its forms.
fn put_general(buffer: &mut Vec<u8>, scientific: &str, value: f64) {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        // Not a number, or infinite: no value of SQL is, so any words do.
        buffer.extend_from_slice(scientific.as_bytes());
        return;
    };
    if value.is_sign_negative() {
        buffer.push(b'-');
    }
    let mut digits = [0; 24];
    let mut length = 0;
    for digit in mantissa.bytes().filter(u8::is_ascii_digit) {
        digits[length] = digit;
        length += 1;
    }
    while length > 1 && digits[length - 1] == b'0' {
        length -= 1;
    }
    let exponent: i32 = exponent.parse().unwrap_or_default();
    put_digits(buffer, &digits[..length], exponent + 1);
}

/// The number 0.d₁d₂… · 10^`point`.
fn put_digits(buffer: &mut Vec<u8>, digits: &[u8], point: i32) {
    let length = digits.len() as i32;
    if !(1 - MAX_POINT..=MAX_POINT).contains(&point) {
        buffer.push(digits[0]);
        if length > 1 {
            buffer.push(b'.');
            buffer.extend_from_slice(&digits[1..]);
        }
        let _ = write!(buffer, "e{}", point - 1);
    } else if point <= 0 {
        buffer.extend_from_slice(b"0.");
        buffer.resize(buffer.len() + point.unsigned_abs() as usize, b'0');
        buffer.extend_from_slice(digits);
    } else if point >= length {
        buffer.extend_from_slice(digits);
        buffer.resize(buffer.len() + (point - length) as usize, b'0');
    } else {
        let (whole, fraction) = digits.split_at(point as usize);
        buffer.extend_from_slice(whole);
        buffer.push(b'.');
        buffer.extend_from_slice(fraction);
    }
}
