//! Code that the fuzz targets share: turning the fuzzer's bytes into choices, reading a page
//! completely, and files in memory that can be damaged.

mod damage;
mod input;
mod memory_disk;
mod page;

pub use damage::{Reseal, damage};
pub use input::Input;
pub use memory_disk::{Contents, MemoryDisk};
pub use page::read_everything;
