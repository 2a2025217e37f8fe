//! Sessions: what a client's statements do, between the wire and a database node.

pub mod variables;
