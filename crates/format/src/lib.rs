//! Every byte that Firn puts on disk or hands to another tier: pages, redo records, undo records, rows
//! and keys, with the one pure function that changes a page.
//!
//! Architecture invariant: nothing here does I/O, takes a latch or knows a clock. Every decoder takes
//! arbitrary bytes and answers with an error, never with a panic.

#[cfg(test)]
mod annotate;
pub mod definition;
pub mod key;
pub mod overflow;
pub mod page;
mod reader;
pub mod redo;
pub mod row;
pub mod space;
pub mod tree;
pub mod undo;
pub mod value;
