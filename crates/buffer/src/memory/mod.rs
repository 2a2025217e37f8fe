//! The pool's memory, and all of its `unsafe` code: the pages' bytes ([`slots`]) and the published images
//! of inner nodes ([`image`]). Everything else in this crate is safe Rust over these two.

pub(crate) mod image;
pub(crate) mod slots;
