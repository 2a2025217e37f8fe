//! A process of a cluster: the parts that its roles need, and what connects them with those of
//! other processes.
//!
//! ```text
//!                      ┌──────────────── one process ─────────────────┐
//!   clients ──────────►│ endpoint ─ engine     while its member leads │
//!                      │      log │     │ pages                        │
//!   log members ◄─────►│ member of the log group                      │
//!                      │      log │     ▲                              │
//!   database nodes ───►│          ▼     │                              │
//!                      │ page node ─────┘                              │
//!                      └──────────────────────────────────────────────┘
//! ```
//!
//! A [`Layout`] says which nodes the cluster has, where they are and which roles each one has;
//! every process has the same. A node with the role `log` is a member of the cluster's log group,
//! from the founding on or since control had it join ([`log_role`]).
//! If it has the role `database` too, it may lead, and the process opens an engine and answers
//! clients while it does ([`database`]). A node with the role `pages` makes the pages of the log. A
//! node with the role `replica` follows the log and answers reads ([`replica`]).
//!
//! Architecture invariant: at most one engine of a cluster makes anything durable. The term in
//! which its member leads is the epoch in which it writes, and the group refuses those of earlier
//! terms.

mod archive_role;
mod choice;
mod clients;
mod control_role;
mod database;
mod durable_history;
mod elastic;
mod engine_pages;
mod far_memory;
mod framed_file;
mod group_peers;
mod handover;
mod health;
mod joining;
mod lag;
mod layout;
mod lease;
mod left_behind;
mod links;
mod log_keeper;
mod log_member;
mod log_role;
mod message;
mod moments;
mod near;
mod node_log;
mod open_chunks;
mod page_archive;
mod page_chunk;
mod page_copy;
mod page_list;
mod page_order;
mod page_role;
mod pause;
mod process;
mod record;
mod replica;
mod report;
mod seen_writer;
#[cfg(feature = "simulation")]
pub mod simulation;
mod status;
mod stopped;
mod storage;
mod survey;
mod take_over;
mod task;
mod versioned;
mod view;
mod zones;

pub use database::{DatabaseState, OnState};
pub use elastic::{PoolError, PoolProcess, ReplicaNames, ReplicaPool, Scaler};
pub use firn_control_service::ProposeError;
pub use joining::{JoinError, JoinRequest, join};
pub use layout::catalog::LOG_GROUP;
pub use layout::{DEFAULT_ZONE, Layout, LayoutError, MAX_CHUNKS, NodeEntry, Origin, PageDivision};
pub use message::{ArchivingStatus, LoadStatus, LogStatus, NodeStatus, PagesStatus, ReplicaStatus};
pub use page_archive::OpenArchive;
pub use process::{ProcessError, ProcessOptions, RunningProcess, has_record, is_node_directory};
pub use record::RecordError;
pub use status::AskError;
pub use stopped::{StoppedError, StoppedNode};
pub use survey::{Control, Survey, SurveyedNode, Surveyor};
pub use take_over::{ApplyError, NoTakeOver, TakeOver, TakeOverError, plan};
pub use zones::{Loss, ZonePlace, ZoneReport, zones};
