//! Strings: text in characters, binary strings in bytes.

mod alter;
mod base;
mod cut;
mod list;
mod measure;
mod number_format;
mod pad;
mod search;
mod trim;
mod units;
mod weights;

use crate::Function;

#[cfg(test)]
pub(super) use base::from_hex;
pub(super) use base::to_small_hex;
pub(super) use units::Units;

pub(super) const FAMILIES: &[&[Function]] = &[
    alter::FUNCTIONS,
    base::FUNCTIONS,
    cut::FUNCTIONS,
    list::FUNCTIONS,
    measure::FUNCTIONS,
    number_format::FUNCTIONS,
    pad::FUNCTIONS,
    search::FUNCTIONS,
    trim::FUNCTIONS,
    weights::FUNCTIONS,
];
