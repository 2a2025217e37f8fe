//! What the fuzz targets share: how the bytes that the fuzzer made up become choices, and how a page is
//! read in full.

mod input;
mod page;

pub use input::Input;
pub use page::read_everything;
