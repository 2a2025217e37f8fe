//! `SHOW` and `DESCRIBE`.

pub mod create;
