//! Floating-point numbers with a fixed number of decimals.

use std::io::Write;

use firn_base::number_text::NumberText;

/// From here on the number of decimals is not fixed.
pub(super) const NOT_FIXED: u8 = 31;

pub(super) fn put_double(buffer: &mut Vec<u8>, value: f64, decimals: u8) {
    if decimals < NOT_FIXED {
        return put_fixed(buffer, value, decimals);
    }
    buffer.extend_from_slice(&NumberText::of_double(value));
}

pub(super) fn put_float(buffer: &mut Vec<u8>, value: f32, decimals: u8) {
    if decimals < NOT_FIXED {
        return put_fixed(buffer, f64::from(value), decimals);
    }
    buffer.extend_from_slice(&NumberText::of_float(f64::from(value)));
}

/// Writes `decimals` digits after the point. Those beyond the digits that identify the number are
/// zeros.
fn put_fixed(buffer: &mut Vec<u8>, value: f64, decimals: u8) {
    let decimals = usize::from(decimals);
    let begin = buffer.len();
    let _ = write!(buffer, "{value}");
    let point = buffer[begin..].iter().position(|byte| *byte == b'.');
    let written = point.map_or(0, |point| buffer.len() - begin - point - 1);
    if written > decimals {
        buffer.truncate(begin);
        let _ = write!(buffer, "{value:.decimals$}");
    } else if decimals > 0 {
        if point.is_none() {
            buffer.push(b'.');
        }
        buffer.resize(buffer.len() + decimals - written, b'0');
    }
}
