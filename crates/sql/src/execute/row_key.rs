//! Rows as bytes that are equal exactly if the rows are: for sets, groups and hash tables.

use crate::types::sort_key::write_comparison_key as write_one;
use crate::types::{ComparisonKind, Datum, SqlType, write_sort_key};

/// Appends the key of a row's values; NULLs are equal to each other.
pub(crate) fn write_row_key<'t>(
    row: &[Datum],
    types: impl IntoIterator<Item = &'t SqlType>,
    out: &mut Vec<u8>,
) {
    for (value, ty) in row.iter().zip(types) {
        write_sort_key(value, ty, false, out);
    }
}

/// Appends the key of values that are compared as `kinds`; false, and a part of a key, if one is
/// NULL.
pub(crate) fn write_comparison_key(
    row: &[Datum],
    kinds: &[ComparisonKind],
    out: &mut Vec<u8>,
) -> bool {
    for (value, kind) in row.iter().zip(kinds) {
        if value.is_null() {
            return false;
        }
        write_one(value, *kind, out);
    }
    true
}
