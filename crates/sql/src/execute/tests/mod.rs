//! Plans made by hand, run on a node over a temporary directory.

mod bytes;
mod fixture;
mod operators;
mod reads;
mod writes;
