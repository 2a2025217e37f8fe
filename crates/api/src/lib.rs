//! The seams between the tiers: traits and messages, no logic.
//!
//! SQL sees a database node through [`rows`]; the node sees the log and the pages only through
//! [`LogStore`] and [`PageStore`]. A local directory and storage nodes elsewhere implement these
//! two; memory that nodes share can stand before the pages as a [`PageTier`]. The node numbers
//! commits itself or asks a [`TimestampSource`]. A replica knows the node that writes as a
//! [`WriterNode`].

pub mod cluster;
pub mod log_store;
pub mod page_store;
pub mod report;
pub mod rows;
pub mod server;
pub mod timestamps;
pub mod writer;

pub use log_store::{
    FollowOptions, Followed, FollowedGroup, LogEpoch, LogError, LogFollower, LogPiece, LogSource,
    LogStore, LogWriter, OpenedLog, PageFilter, Room, Tail, Watermarks, WriterEpoch,
};
pub use page_store::{
    ImageSource, LocalImages, NoTier, Offer, PageLease, PageRead, PageRequest, PageSink, PageStore,
    PageStoreError, PageTier, PageVersion, TierLatch, TierLatchMode,
};
pub use server::Incarnation;
pub use timestamps::{TimestampError, TimestampSource, Timestamps};
pub use writer::{
    LogTail, Modifications, TailRead, WriterError, WriterNode, WriterPlace, WriterPositions,
};
