//! Joins.

mod filled;
mod hash;
mod nested_loop;

pub(crate) use hash::HashJoin;
pub(crate) use nested_loop::NestedLoop;
