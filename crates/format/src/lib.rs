//! Every byte that Firn puts on disk or passes to another tier: pages, redo records, undo records,
//! rows and keys, and the one pure function that changes a page.
//!
//! Architecture invariant: no I/O, no latch, no clock. Every decoder accepts arbitrary bytes and
//! returns an error; it never panics.

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
