//! The pool's memory, and all of its `unsafe` code: the pages' bytes ([`slots`]) and the published
//! images of inner nodes ([`image`]). The rest of this crate is safe Rust built on these two.

pub(crate) mod image;
pub(crate) mod slots;
