//! Joins.

mod filled;
mod hash;
mod key_join;
mod nested_loop;

pub(crate) use hash::HashJoin;
pub(crate) use key_join::{KeyJoin, KeyJoinPlan};
pub(crate) use nested_loop::NestedLoop;
