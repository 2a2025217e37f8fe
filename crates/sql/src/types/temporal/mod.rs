//! Dates and times: reading, printing and counting them.

pub mod format;
