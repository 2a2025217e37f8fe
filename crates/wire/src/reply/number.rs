//! Floating-point numbers with a fixed number of decimals.

use firn_base::number_text::{NumberText, put_fixed};

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
