//! What the fuzz targets share: how the bytes that the fuzzer made up become choices, how a page is
//! read in full, and files in memory that can be damaged.

mod damage;
mod input;
mod memory_disk;
mod page;

pub use damage::{Reseal, damage};
pub use input::Input;
pub use memory_disk::{Contents, MemoryDisk};
pub use page::read_everything;
