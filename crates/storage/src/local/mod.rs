//! Log and pages in one local directory.
//!
//! ```text
//!   DIR/FORMAT            which format this directory has
//!   DIR/LOCK              held by the one process that has it open
//!   DIR/log/…             log segments, see docs/formats/log.md
//!   DIR/pages/…           page files and the page map, see docs/formats/pages.md
//! ```

pub mod directory;
pub mod log;
pub mod page_log;
pub mod pages;

pub use directory::{DatabaseId, LocalDirectory, OpenError};
pub use log::{LocalLog, LogOptions, Watermarks};
