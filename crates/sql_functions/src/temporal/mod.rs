//! Dates and times.
//!
//! Units of intervals are text arguments: `DATE_ADD(date, amount, 'DAY')`, `TIMESTAMPDIFF('HOUR',
//! a, b)`, `TIMESTAMPADD('HOUR', amount, date)`, `EXTRACT('YEAR_MONTH', date)`, `GET_FORMAT('DATE',
//! 'USA')`.

mod arithmetic;
mod convert;
mod difference;
mod format;
mod now;
mod parse;
mod parts;
mod period;
mod value;

use crate::Function;

pub(crate) use value::{date_beside, is_like_date};

pub(super) const FAMILIES: &[&[Function]] = &[
    arithmetic::FUNCTIONS,
    convert::FUNCTIONS,
    difference::FUNCTIONS,
    format::FUNCTIONS,
    now::FUNCTIONS,
    parse::FUNCTIONS,
    parts::FUNCTIONS,
    period::FUNCTIONS,
];
