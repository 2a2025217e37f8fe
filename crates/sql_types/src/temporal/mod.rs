//! Dates and times: reading, printing, rounding and counting them. The calendar is in
//! [`calendar`](super::calendar), zones in [`time_zone`](super::time_zone).

pub mod delimiter;
pub mod format;
pub mod interval;
pub mod parse;
pub mod round;
#[cfg(test)]
mod tests;

pub use interval::{Interval, IntervalUnit};
pub use parse::{DateRules, Fault, MAX_TIME, Parsed, WrittenDateTime};
