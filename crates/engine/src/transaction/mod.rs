//! Transactions (PolarTrans, paper 000 §4.2): ids, timestamps, snapshots, versions, rollback and purge.

pub mod commit_order;
pub mod snapshots;
pub mod table;
